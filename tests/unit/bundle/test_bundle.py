"""Opening and sealing: every byte is covered, and every difference is named."""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - an independent computation of what the digest is taken over
import os
from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.bundle.manifest import Agent
from certkit.bundle.writer import init_bundle, seal
from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.summary.summarise import summarise
from tests.support import bundles
from tests.support.bundles import lines, run

if TYPE_CHECKING:
    from pathlib import Path


def digest_of(value: Any) -> str:
    """Return the digest of a document without floats and with ASCII keys, where RFC 8785 is sorted JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = bundles.write(tmp_path / "b", {"b.jsonl": lines([run(1)]), "a.jsonl": lines([run(2)])})
    (folder / "traces" / "deep").mkdir(parents=True)
    (folder / "traces" / "deep" / "t.txt").write_bytes(b"trace")
    (folder / "context.json").write_bytes(b"{}")
    return folder


def refusal(folder: Path) -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        open_bundle(folder)
    return caught.value


def test_the_seal_lists_every_file_by_path_with_digest_and_size(root: Path) -> None:
    seal(root)
    document = json.loads((root / "bundle.json").read_text(encoding="utf-8"))
    wanted = []
    for path in ("context.json", "records/a.jsonl", "records/b.jsonl", "traces/deep/t.txt"):
        data = (root / path).read_bytes()
        wanted.append((path, hashlib.sha256(data).hexdigest(), len(data)))
    assert [(item["path"], item["sha256"], item["size"]) for item in document["files"]] == wanted
    assert [item["media_type"] for item in document["files"]] == [
        "application/json",
        "application/jsonl",
        "application/jsonl",
        "text/plain",
    ]


def test_the_digest_is_that_of_the_canonical_manifest_sealed_or_not(root: Path) -> None:
    before = open_bundle(root)
    sealed = seal(root)
    document = json.loads((root / "bundle.json").read_text(encoding="utf-8"))
    assert before.facts.digest == sealed.facts.digest == digest_of(document)
    assert (before.facts.sealed, sealed.facts.sealed) == (False, True)
    assert sealed.facts.agent.digest == digest_of({"name": "a", "version": "1"})


def test_every_byte_changes_the_digest(root: Path) -> None:
    seen = {open_bundle(root).facts.digest}
    for path in [path for path in root.rglob("*") if path.is_file()]:
        old = path.read_bytes()
        path.write_bytes(old.replace(b"1", b"2", 1).replace(b"trace", b"Trace") + b" ")
        if path.name != "bundle.json":
            seen.add(open_bundle(root).facts.digest)
        path.write_bytes(old)
    # Four files, and the bundle as it was; white space in the manifest itself is no content.
    assert len(seen) == 5


def test_the_layout_of_the_manifests_text_is_no_content(root: Path) -> None:
    digest = seal(root).facts.digest
    document = json.loads((root / "bundle.json").read_text(encoding="utf-8"))
    (root / "bundle.json").write_text(json.dumps(document, separators=(" , ", " : ")), encoding="utf-8")
    assert open_bundle(root).facts.digest == digest


def test_every_changed_file_is_named_up_to_a_limit(tmp_path: Path) -> None:
    root = bundles.write(tmp_path / "b", {f"{i:02}.jsonl": lines([run(i)]) for i in range(25)})
    seal(root)
    for path in (root / "records").iterdir():
        path.write_bytes(b"")
    error = refusal(root)
    assert error.code == "bundle.file-changed"
    assert str(error).count("expected sha256 ") == 20
    assert "and 5 more" in str(error)
    empty = hashlib.sha256(b"").hexdigest()
    assert str(error).count(f"found {empty} (0 bytes)") == 20


def test_missing_and_unlisted_files_are_named(root: Path) -> None:
    seal(root)
    (root / "records" / "b.jsonl").rename(root / "records" / "c.jsonl")
    error = refusal(root)
    assert error.code == "bundle.file-missing"
    assert "'records/b.jsonl'" in str(error)
    (root / "records" / "b.jsonl").write_bytes((root / "records" / "c.jsonl").read_bytes())
    error = refusal(root)
    assert error.code == "bundle.file-unlisted"
    assert "'records/c.jsonl'" in str(error)


def test_a_bundle_that_changes_while_it_is_sealed_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, hashed = (root / "bundle.json").read_bytes(), files.hashed

    def growing(path: Path) -> tuple[str, int]:
        told = hashed(path)
        with path.open("ab") as stream:
            stream.write(b" ")
        return told

    monkeypatch.setattr(files, "hashed", growing)
    with pytest.raises(InputError, match="changes while it is sealed") as caught:
        seal(root)
    assert caught.value.code == "bundle.file-changed"
    assert (root / "bundle.json").read_bytes() == before


def test_sealing_again_renews_the_list(root: Path) -> None:
    first = seal(root).facts.digest
    (root / "records" / "b.jsonl").write_bytes(lines([run(9)]))
    assert refusal(root).code == "bundle.file-changed"
    assert seal(root).facts.digest != first
    assert open_bundle(root).facts.sealed


def test_links_are_not_followed_even_to_what_is_inside(root: Path) -> None:
    (root / "records" / "c.jsonl").symlink_to("a.jsonl")
    assert refusal(root).code == "bundle.not-regular"


def test_a_linked_bundle_folder_is_the_bundle(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert open_bundle(tmp_path / "link").facts.digest == open_bundle(root).facts.digest


def test_a_deep_tree_is_refused_in_words(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(1)])
    here = os.open(root, os.O_RDONLY)
    try:
        for _ in range(600):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)
    error = refusal(root)
    assert error.code == "bundle.path-unsafe"
    assert "1,024 bytes" in str(error)


def test_record_files_and_their_size_are_told(root: Path) -> None:
    bundle = open_bundle(root)
    assert bundle.record_files == ("records/a.jsonl", "records/b.jsonl")
    assert bundle.records_size == sum(path.stat().st_size for path in (root / "records").iterdir())
    assert bundle.manifest.agent.lineage == "-/a"


def test_init_makes_what_opens(tmp_path: Path) -> None:
    init_bundle(tmp_path / "b", agent="a", version="1")
    bundle = open_bundle(tmp_path / "b")
    assert bundle.manifest.protocol.origin == "measured"
    assert summarise(bundle).records == 0
    with pytest.raises(UsageError) as caught:
        init_bundle(tmp_path / "b", agent="a", version="1")
    assert caught.value.code == "file.exists"
    with pytest.raises(InputError):
        init_bundle(tmp_path / "c", agent="", version="1")
    assert not (tmp_path / "c").exists()


def test_a_folder_may_be_named_by_a_string(root: Path) -> None:
    assert open_bundle(str(root)).facts == open_bundle(root).facts


def test_no_two_agents_have_one_lineage() -> None:
    parts = [(None, "a"), ("-", "a"), ("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("%2D", "a")]
    agents = [Agent(provider=provider, name=name, version="1") for provider, name in parts]
    assert [agent.lineage for agent in agents[:4]] == ["-/a", "%2D/a", "a/b/c", "a%2Fb/c"]
    assert len({agent.lineage for agent in agents}) == len(parts)
