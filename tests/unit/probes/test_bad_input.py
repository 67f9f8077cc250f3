"""What lies under integrity/ and is refused: exit code 3, file, line, field, and every fault."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import UsageError
from certkit.probes.agents import Asking
from certkit.probes.reading import IntegrityFaultsError, read
from certkit.probes.records import PUBLIC, commitment
from certkit.probes.running import generate_probes, run_probes
from certkit.record.faults import Fault, Faults
from tests.support.running import certkit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Lines = list[bytes]
A, N = "answers.jsonl", "annotations.jsonl"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bad")
    generate_probes(root / "tasks", seed="s", instances=1)
    run_probes(root / "tasks", root / "b", Asking("reference:oracle"))
    return root / "b"


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "b")


def edit(bundle: Path, name: str, change: Callable[[Lines], Any]) -> None:
    path = bundle / "integrity" / name
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    change(lines)
    path.write_bytes(b"".join(lines))


def put(place: int, old: bytes, new: bytes) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        assert old in lines[place]
        lines[place] = lines[place].replace(old, new, 1)

    return change


def note(**fields: Any) -> Callable[[Lines], None]:
    task = "tool_output-easy-1-clean"
    document = {"kind": "difficulty", "task_id": task, "rater": "a", "rating": 3} | fields
    return lambda lines: lines.append(canonical.line({k: v for k, v in document.items() if v is not None}))


def twice(lines: Lines) -> None:
    lines.append(lines[4])


@pytest.mark.parametrize(
    ("name", "change", "place", "code"),
    [
        (A, twice, A + ":151", "repeated"),
        (A, put(2, b'"task_id":"', b'"task_id":"no-'), A + ":3 /task_id", "unknown"),
        (A, put(60, b'"probe_id":"p', b'"probe_id":"q'), A + ":61 /probe_id", "unknown"),
        (A, put(0, b'"calls"', b'"extra":1,"calls"'), A + ":1 /extra", "field"),
        (A, put(0, b'"calls":1', b'"calls":0'), A + ":1 /calls", "field"),
        (A, put(0, b'"calls":1', b'"calls":1,"confidence":NaN'), A + ":1", "line"),
        (A, put(0, b'"calls":1', b'"confidence":1.5,"calls":1'), A + ":1 /confidence", "field"),
        (A, put(0, b'"calls":1', b'"calls":1,"calls":1'), A + ":1", "line"),
        (A, put(149, b"}\n", b""), A + ":150", "line"),
        (A, put(5, b'"status":"answered"', b'"status":"error"'), A + ":6", "field"),
        (A, lambda lines: lines.insert(3, b"\n"), A + ":4", "line"),
        (N, note(rating=6), N + ":1 /rating", "field"),
        (N, note(rating=None), N + ":1 /rating", "field"),
        (N, note(kind="audit", verdict="maybe"), N + ":1 /verdict", "field"),
        (N, note(task_id="nobody"), N + ":1 /task_id", "unknown"),
        (N, lambda lines: [note()(lines), note()(lines)], N + ":2", "repeated"),
        ("tasks.jsonl", put(7, b'"gold":"', b'"gold":"x'), "tasks.jsonl:8", "not-generated"),
        ("tasks.jsonl", lambda lines: lines.pop(), "tasks.jsonl:48", "not-generated"),
        ("tasks.jsonl", put(0, b'"weight":', b'"weight":true,"w":'), "tasks.jsonl:1", "not-generated"),
        ("run.json", put(2, b"sha256:", b"sha256:0"), "run.json:1 /inventory", "field"),
        ("inventory.json", put(2, b"probes/1", b"probes/2"), "inventory.json:1 /generator", "field"),
    ],
)  # fmt: skip
def test_a_bad_line_refuses_the_bundle(
    name: str, change: Callable[[Lines], Any], place: str, code: str, bundle: Path
) -> None:
    edit(bundle, name, change)
    with pytest.raises(IntegrityFaultsError) as caught:
        read(bundle)
    assert (caught.value.code, caught.value.exit_code) == ("integrity.invalid", 3)
    found = [str(fault) for fault in caught.value.faults]
    assert any(text.startswith(f"integrity/{place}") and f"[integrity.{code}]" in text for text in found), (
        found
    )


def test_every_fault_is_listed_and_nothing_written(bundle: Path) -> None:
    edit(bundle, "answers.jsonl", put(2, b'"calls":1', b'"calls":"1"'))
    edit(bundle, "answers.jsonl", put(9, b'"status":"answered"', b'"status":"done"'))
    edit(bundle, "annotations.jsonl", note(rating=6))
    (bundle / "bundle.json").write_bytes(unsealed(bundle))
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    done = certkit("probes", "score", str(bundle), "--json")
    assert done.code == 3
    error = done.document["error"]
    assert (error["code"], error["total"]) == ("integrity.invalid", 3)
    assert [(fault["file"], fault["line"]) for fault in error["faults"]] == [
        ("integrity/answers.jsonl", 3),
        ("integrity/answers.jsonl", 10),
        ("integrity/annotations.jsonl", 1),
    ]
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before


def test_reading_ends_after_some_number_of_faults(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.record.faults.MOST", 100)
    (bundle / "integrity" / "answers.jsonl").write_bytes(b"{}\n" * 500)
    with pytest.raises(IntegrityFaultsError) as caught:
        read(bundle)
    assert caught.value.total == 101


def unsealed(bundle: Path) -> bytes:
    manifest = msgspec.json.decode((bundle / "bundle.json").read_bytes())
    del manifest["files"]
    return canonical.canonical(manifest)


def test_a_digest_that_is_mended_too_does_not_hide_a_changed_gold(bundle: Path) -> None:
    tasks = bundle / "integrity" / "tasks.jsonl"
    edit(bundle, "tasks.jsonl", lambda lines: lines.reverse())
    inventory = bundle / "integrity" / "inventory.json"
    document = msgspec.json.decode(inventory.read_bytes()) | {
        "tasks_digest": canonical.digest(tasks.read_bytes())
    }
    inventory.write_bytes(canonical.canonical(document))
    with pytest.raises(IntegrityFaultsError) as caught:
        read(bundle)
    assert "integrity.not-generated" in {fault.code for fault in caught.value.faults}


def test_tasks_of_a_withheld_seed_are_linted_and_the_commitment_is_kept(whole: Path, tmp_path: Path) -> None:
    inventory = generate_probes(tmp_path / "t", seed="secret", withhold=True)
    assert (inventory.seed, inventory.seed_commitment) == (None, commitment("secret"))
    assert b"secret" not in (tmp_path / "t" / "integrity" / "inventory.json").read_bytes()
    assert len(read(tmp_path / "t").tasks) == 144
    assert read(whole).inventory.origin == "stated"
    assert inventory.origin == "withheld"
    assert structs.replace(inventory, seed_commitment=commitment(PUBLIC)).origin == "public"


@pytest.mark.parametrize("seed", ["", "x" * 201])
def test_a_seed_that_names_nothing_is_refused(seed: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        generate_probes(tmp_path / "t", seed=seed)
    assert (caught.value.exit_code, (tmp_path / "t").exists()) == (2, False)


def test_tasks_that_were_never_asked_are_told_apart_from_a_bundle(tmp_path: Path) -> None:
    generate_probes(tmp_path / "t", seed="s", instances=1)
    done = certkit("probes", "score", str(tmp_path / "t"))
    assert (done.code, "certkit probes run" in done.err, "bundle init" in done.err) == (4, True, False)


def test_a_link_hides_no_other_fault_of_a_score(bundle: Path, tmp_path: Path) -> None:
    edit(bundle, N, note(rating=6))
    path = bundle / "integrity" / A
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    done = certkit("probes", "score", bundle, "--json")
    assert (done.code, done.document["error"]["total"]) == (3, 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"simulated"', '"measured"'), ('"reference:oracle"', '"RealAgent"'), ('"unversioned"', '"2"')],
)
def test_replies_of_another_agent_than_the_bundle_names_are_refused(old: str, new: str, bundle: Path) -> None:
    (bundle / "bundle.json").write_text(unsealed(bundle).decode().replace(old, new))
    assert certkit("bundle", "seal", bundle).code == 0
    done = certkit("assess", bundle, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "integrity.inventory")


def test_quiet_generating_says_nothing(tmp_path: Path) -> None:
    done = certkit("probes", "generate", "-o", tmp_path / "t", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_like_faults_in_two_files_name_both() -> None:
    fault = Fault(file="a", line=1, pointer="", code="integrity.line", expected="x", found="y")
    grouped = list(
        Faults([fault, structs.replace(fault, line=2), structs.replace(fault, file="b")]).grouped()
    )
    assert [line.partition(")")[0] for line in grouped] == ["3 rows (first a:1, 2, b:1"]


def test_a_reply_to_no_question_is_listed_beside_a_stray_file(bundle: Path) -> None:
    edit(bundle, A, put(2, b'"task_id":"', b'"task_id":"no-'))
    (bundle / "integrity" / "notes.txt").write_text("x")
    with pytest.raises(IntegrityFaultsError) as caught:
        read(bundle)
    assert {fault.code for fault in caught.value.faults} == {"integrity.file-name", "integrity.unknown"}


def test_stray_files_and_links_are_listed_with_all_other_faults(bundle: Path, tmp_path: Path) -> None:
    edit(bundle, "tasks.jsonl", put(7, b'"gold":"', b'"gold":"x'))
    edit(bundle, A, put(2, b'"calls":1', b'"calls":0'))
    edit(bundle, N, note(rating=6))
    folder = bundle / "integrity"
    for name in ("notes.txt", "sub/answers.jsonl", "Answers.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    (folder / "run.json").rename(tmp_path / "elsewhere")
    (folder / "run.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityFaultsError) as caught:
        read(bundle)
    found = {(fault.file.removeprefix("integrity/"), fault.line, fault.code) for fault in caught.value.faults}
    strays = ("notes.txt", "sub/answers.jsonl", "Answers.jsonl", "run.json")
    assert {(name, 1, "integrity.file-name") for name in strays} <= found
    assert {("tasks.jsonl", 8, "integrity.not-generated"), (A, 3, "integrity.field")} <= found
    (rating,) = (fault for fault in caught.value.faults if fault.file.endswith(N))
    assert rating.what() == " /rating: expected `int` <= 5, found 6 [integrity.field]"
    assert certkit("probes", "score", str(bundle)).code == 3


@pytest.mark.parametrize("name", ["inventory.json", "tasks.jsonl", ""])
def test_linked_tasks_are_refused(name: str, bundle: Path, tmp_path: Path) -> None:
    path = bundle / "integrity" / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityFaultsError, match="found a link"):
        read(bundle)


def test_without_replies_nothing_is_measured(whole: Path, tmp_path: Path) -> None:
    bundle = shutil.copytree(whole, tmp_path / "b")
    for name in ("answers.jsonl", "run.json"):
        (bundle / "integrity" / name).unlink()
    (bundle / "bundle.json").write_bytes(unsealed(bundle))
    done = certkit("probes", "score", str(bundle), "--json")
    assert (done.code, done.document["state"], done.document["core"]["value"]) == (4, "unmeasured", None)
    shutil.rmtree(bundle / "integrity")
    assert certkit("probes", "score", str(bundle), "--json").document["error"]["code"] == "integrity.missing"


def test_the_screen_of_the_design(whole: Path) -> None:
    done = certkit("probes", "score", str(whole))
    assert done.out.splitlines() == [
        "success 48/48   probes 102/102   unclear 0",
        "core .915 [.911, .915], attainable .062 to .915",
        "hollow: 0 of 48 successes",
    ]
    assert done.code == 0
