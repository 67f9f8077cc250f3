"""Language-neutral cases of passports: ``passport/*.json``, each ``{"format": "passport", "cases": […]}``.

``forged/*.json`` and ``contested/passports.json`` have the same form: passports that a trusted key signed and
that contradict themselves or their evidence in one way, and passports with a serious finding.

A case is a file, a trust policy and a question, and says how the verification ends:

- `file`: parts of text that are put together, each `times` over (left out: once), in UTF-8;
- `trust`: the content of ``trust.json``; `at`: the time of verification;
- `agent`, `domain`, `issuer`, `require_tier`: what else is asked, where it is;
- `proof`, `status`: the texts of ``passport.json.tlog-proof`` and ``passport.json.status``, where they are;
- `seen`: the newest checkpoint that the verifier knows of the log; `bundle`: the files of a bundle, by path;
- `replay`: whether the records are summarised again;
- `twin`: the name of a case that is accepted and has not the fault;
- `expected`: `verdict`, the first failing `step` and its `code`, and the `exit_code`;
- `passport_id`: what the id must be, where it is told.

``trusted-root.json`` has another form: the root that a policy holds, one that is offered, and how that ends.

The files are made by `passport_maker`, which uses nothing of certkit; the statements that it edits are those
of ``passport-statements.json``, as certkit issues them.
"""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CODES, CertkitError
from certkit.passport.evidence import BundleEvidence
from certkit.passport.steps import STEPS
from certkit.passport.trust import Trust
from certkit.passport.trust import parse as parse_trust
from certkit.passport.verify import verify
from certkit.registry import heads
from certkit.registry.status import FileStatus
from certkit.tlog.note import VerifierKey
from tests.support import passport_maker, passport_statements
from tests.support.documents import certkit
from tests.support.passport_parts import STATEMENTS, laid_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.passport.verify import Verification

FOLDER = Path(__file__).parent
PLACES = ("passport", "forged", "contested")
ASKED = ("agent", "domain", "issuer", "require_tier")
BESIDE = {"proof": ".tlog-proof", "status": ".status"}

THREATS = {
    "algorithm confusion": 4,
    "signature stripping": 7,
    "payloadType confusion": 3,
    "hint confusion": 3,
    "embedded attacker key": 4,
    "duplicate keys": 3,
    "deep JSON": 2,
    "huge JSON": 1,
    "non-canonical base64": 7,
    "ECDSA (r, n−s)": 1,
    "replay of an older passport": 1,
    "expired": 2,
    "revoked": 1,
    "wrong subject": 3,
    "swapped evidence": 3,
    "key outside its window": 7,
    "trusted-root rollback": 8,
    "status list rollback": 3,
    "clock skew": 2,
}
"""Every threat that verification must withstand, and how many refused cases begin with its name, at least."""


def documents(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(path for place in PLACES for path in (FOLDER / place).glob("*.json")):
        document = canonical.loads(path.read_bytes())
        if document["format"] == kind:
            yield from ((f"{path.parent.name}/{path.stem}", case) for case in document["cases"])


def params(kind: str) -> list[Any]:
    return [pytest.param(case, id=f"{stem}: {case['name']}") for stem, case in documents(kind)]


CASES = params("passport")
ROOTS = params("trusted-root")
ACCEPTED = {
    case["name"]: case for _, case in documents("passport") if case["expected"]["verdict"] == "verified"
}


def built(case: dict[str, Any]) -> bytes:
    return "".join(part["text"] * part.get("times", 1) for part in case["file"]).encode()


def check(case: dict[str, Any], document: dict[str, Any], code: int) -> None:
    expected = case["expected"]
    failed = [step for step in document["steps"] if step["status"] == "failed"]
    assert document["verdict"] == expected["verdict"]
    assert (failed[0]["id"] if failed else None) == expected["step"]
    assert (failed[0]["code"] if failed else None) == expected["code"]
    assert (document["exit_code"], code) == (expected["exit_code"], expected["exit_code"])
    assert [step["number"] for step in document["steps"]] == list(range(1, 13))
    if "passport_id" in case:
        assert document["passport_id"] == case["passport_id"]
    broken = next((step["number"] for step in failed if step["number"] <= 5), 13)
    later = [step["status"] for step in document["steps"] if step["number"] > broken]
    assert set(later) <= {"skipped"}
    agreeing = {step["status"] for step in document["steps"][:5]} == {"passed"}
    assert ("claim" in document) == agreeing


def by_library(case: dict[str, Any], folder: Path) -> Verification:
    policy = parse_trust(canonical.line(case["trust"]), "trust")
    at = datetime.fromisoformat(case["at"])
    given: dict[str, Any] = {name: case[name] for name in ASKED if name in case}
    if "proof" in case:
        given["proof"] = case["proof"].encode()
    if "bundle" in case:
        given["evidence"] = BundleEvidence([laid_out(case["bundle"], folder / "bundle")])
        given["replay"] = case.get("replay", False)
    if "status" in case:
        seen = heads.head_of(case["seen"].encode()) if "seen" in case else None
        given["beside"] = FileStatus(case["status"].encode(), trust=policy, at=at, seen=lambda _: seen)
    return verify(built(case), trust=policy, at=at, **given)


@pytest.mark.parametrize("case", CASES)
def test_library(case: dict[str, Any], tmp_path: Path) -> None:
    verification = by_library(case, tmp_path)
    check(case, verification.to_dict(), int(verification.exit_code))
    assert {step.code for step in verification.steps if step.code} <= set(CODES)
    if "twin" in case:
        twin = by_library(ACCEPTED[case["twin"]], tmp_path / "twin")
        assert twin.verdict == "verified"


@pytest.mark.parametrize("case", CASES)
def test_command_line(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tmp_path / "state" / "heads.db"
    monkeypatch.setenv("CERTKIT_HEADS", str(known))
    file, trust = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(built(case))
    trust.write_bytes(canonical.line(case["trust"]))
    for name, suffix in BESIDE.items():
        if name in case:
            file.with_name(file.name + suffix).write_text(case[name], encoding="utf-8")
    if "seen" in case:
        remember(known, case["seen"].encode(), map(VerifierKey.parse, case["trust"]["logs"]))
    options = [
        text for name in ASKED if name in case for text in (f"--{name.replace('_', '-')}", str(case[name]))
    ]
    if "bundle" in case:
        options += ["--bundle", str(laid_out(case["bundle"], tmp_path / "bundle"))]
        options += ["--replay"] if case.get("replay") else []
    before = files_in(tmp_path)
    code, document = certkit(
        "verify", str(file), "--trust", str(trust), "--at", case["at"], "--json", *options
    )
    check(case, document, code)
    assert files_in(tmp_path) == before


def files_in(folder: Path) -> list[Path]:
    """Return what lies in a folder, SQLite's files beside what is remembered apart."""
    return sorted(path for path in folder.rglob("*") if path.parent.name != "state")


def remember(path: Path, note: bytes, logs: Iterable[VerifierKey]) -> None:
    with closing(heads.Heads.open(path)) as known, known.held(*logs) as head:
        head.advance(note, lambda _: heads.head_of(note).root)


@pytest.mark.parametrize("case", ROOTS)
def test_a_trusted_root_by_the_library(case: dict[str, Any]) -> None:
    held = Trust().with_root(case["held"])
    found = None
    try:
        held.with_root(case["offered"])
    except CertkitError as error:
        found = error
    assert (found.code if found else None) == case["expected"]["code"]
    assert (int(found.exit_code) if found else 0) == case["expected"]["exit_code"]


@pytest.mark.parametrize("case", ROOTS)
def test_a_trusted_root_by_the_command_line(case: dict[str, Any], tmp_path: Path) -> None:
    trust, offered = tmp_path / "trust.json", tmp_path / "root.json"
    trust.write_bytes(Trust().with_root(case["held"]).to_json())
    offered.write_bytes(canonical.line(case["offered"]))
    before = trust.read_bytes()
    code, document = certkit("trust", "add", "--trust", str(trust), "--trusted-root", str(offered), "--json")
    assert code == case["expected"]["exit_code"]
    assert document.get("error", {}).get("code") == case["expected"]["code"]
    if code:
        assert trust.read_bytes() == before


def test_every_threat_is_among_the_refused() -> None:
    names = [
        case["name"]
        for kind in ("passport", "trusted-root")
        for _, case in documents(kind)
        if case["expected"]["exit_code"]
    ]
    names += [name for name in ACCEPTED if name.startswith("ECDSA")]  # another file, and the same passport
    found = {threat: sum(name.startswith(threat) for name in names) for threat in THREATS}
    assert {threat for threat, count in found.items() if count < THREATS[threat]} == set()


def test_every_refused_case_has_its_twin_and_every_accepted_one_a_name_of_its_own() -> None:
    refused = [case for _, case in documents("passport") if case["expected"]["verdict"] != "verified"]
    assert {case["twin"] for case in refused} <= set(ACCEPTED)
    assert len(ACCEPTED) + len(refused) == len(CASES)


def test_the_files_are_what_their_maker_makes() -> None:
    made = passport_maker.files()
    stored = {path.relative_to(FOLDER).as_posix() for place in PLACES for path in (FOLDER / place).glob("*")}
    assert stored == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text


def test_the_statements_are_what_certkit_issues() -> None:
    assert STATEMENTS.read_text(encoding="utf-8") == passport_statements.text()


def test_every_end_is_reached() -> None:
    expected = [case["expected"] for _, case in documents("passport")]
    assert {item["exit_code"] for item in expected} == {0, 1, 3, 4, 6, 7, 8}
    assert {item["step"] for item in expected} == {None, *STEPS}
