"""The whole chain on a small log and on a real one: import, assess, issue, register, verify, report.

That every shared log is read rightly is shown by tests/test_shared_evidence.py.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from certkit.bundle.writer import seal
from certkit.ground import canonical
from tests.support.drawing import Page
from tests.support.running import certkit

SAMPLE = Path(__file__).parent / "data" / "agentdojo" / "export.jsonl"
SHARED = Path(__file__).parents[2] / "shared" / "evidence" / "agentdojo"
LOGS = [SAMPLE, *sorted(SHARED.glob("*.gz"))[:1]]


def done(*arguments: object) -> None:
    result = certkit(*arguments)
    assert result.code == 0, result.err + result.out


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an issuer's key, a registry and a trust policy that knows both."""
    folder = tmp_path_factory.mktemp("office")
    done("keys", "generate", "-o", folder / "key.pem", "--public", folder / "public.pem", "-q")
    made = certkit("registry", "init", folder / "registry", "--name", "office", "--json")
    vkey = made.document["vkey"]
    trust = folder / "trust.json"
    done("trust", "add", "-t", trust, "--issuer", "Office", "--key", folder / "public.pem", "-q")
    done("trust", "add", "-t", trust, "--log", vkey, "-q")
    return folder


@pytest.fixture(scope="module", params=LOGS, ids=lambda path: path.name.partition(".")[0])
def issued(request: pytest.FixtureRequest, office: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the bundle of one log and the passport that was issued on it."""
    folder = tmp_path_factory.mktemp("issued")
    done("import", "agentdojo", request.param, "-o", folder / "bundle", "-q")
    key = ("--key", office / "key.pem", "--issuer", "Office")
    done("issue", folder / "bundle", *key, "-r", office / "registry", "-o", folder / "out", "-q")
    return folder


def verify(folder: Path, office: Path, *options: object) -> tuple[int, dict[str, object]]:
    result = certkit(
        "verify", folder / "out" / "passport.json", "-t", office / "trust.json", "--json", *options
    )
    return result.code, result.document


def test_a_passport_that_says_no_tier_is_valid(issued: Path, office: Path) -> None:
    code, document = verify(issued, office, "--bundle", issued / "bundle", "--replay")
    assert (code, document["verdict"]) == (0, "verified")
    assert document["claim"]["tier"] == 0  # type: ignore[index]
    steps = {step["id"]: step["status"] for step in document["steps"]}  # type: ignore[attr-defined]
    assert steps == dict.fromkeys(steps, "passed") | {"status": "skipped"}
    asked = canonical.loads((issued / "out" / "assessment.json").read_bytes())
    assert asked["verdict"]["binding"]
    assert (issued / "out" / "safety-case.html").stat().st_size > 10_000


def test_every_screen_and_document_counts_the_same_open_questions(issued: Path, office: Path) -> None:
    bundle, passport = issued / "bundle", issued / "out" / "passport.json"
    page = Page((issued / "out" / "safety-case.html").read_text(encoding="utf-8")).text
    [about] = set(re.findall(r"(\d+) about the evidence", page))
    assert f"{about} about the evidence" in certkit("report", bundle, "--format", "summary").out
    for screen in (
        certkit("assess", bundle),
        certkit("assess", bundle, "-v"),
        certkit("verify", passport, "-t", office / "trust.json"),
        certkit("show", passport),
    ):
        assert set(re.findall(r"Open questions: (\d+)", screen.out)) == {about}, screen.out
    [listed] = re.findall(
        r"^Open questions: .*\n((?:  .*\n)+)", certkit("assess", bundle, "-v").out, re.MULTILINE
    )
    codes = {item["code"] for item in verify(issued, office)[1]["claim"]["challenges"]}  # type: ignore[index]
    assert len(codes) == int(about)
    assert codes <= set(re.findall(r"\(([a-z-]+)\)", listed))


def test_a_tier_that_is_not_there_is_not_accepted(issued: Path, office: Path) -> None:
    assert verify(issued, office, "--require-tier", 1)[0] == 8


def test_changed_evidence_that_is_sealed_again_names_the_first_row_that_differs(
    issued: Path, office: Path, tmp_path: Path
) -> None:
    root = tmp_path / "bundle"
    shutil.copytree(issued / "bundle", root)
    path = root / "records" / "runs.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    failed = next(number for number, line in enumerate(lines) if b'"outcome":"failure"' in line)
    lines[failed] = lines[failed].replace(b'"outcome":"failure"', b'"outcome":"success"')
    path.write_bytes(b"".join(lines))
    seal(root)
    code, document = verify(issued, office, "--bundle", root, "--replay")
    assert code == 1  # another bundle fails the subject, which comes first
    steps = {step["id"]: step for step in document["steps"]}  # type: ignore[attr-defined]
    assert steps["subject"]["status"] == "failed"
    assert steps["replay"]["status"] == "failed"
    assert re.fullmatch(
        r"summary\.cells\[\d+\]\.counts\.success: the passport says \d+, the records give \d+",
        steps["replay"]["detail"],
    )


def test_the_registry_is_sound_and_knows_the_passport(issued: Path, office: Path) -> None:
    again = certkit(
        "registry",
        "append",
        office / "registry",
        issued / "out" / "passport.json",
        "--key",
        office / "key.pem",
        "-t",
        office / "trust.json",
        "--json",
    )
    assert (again.code, again.document["new"]) == (0, False)
    audit = certkit("registry", "audit", office / "registry", "-t", office / "trust.json", "--json")
    assert audit.code == 0, audit.out
