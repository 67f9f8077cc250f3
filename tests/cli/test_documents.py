"""Every document that a command prints has a published schema, and fits it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import pytest

from certkit import canonical, resources, toml
from certkit.assessment.recheck import parse
from certkit.evidence import seal
from tests import generate
from tests.bundles import of, run
from tests.cli.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

LEAVES: Final = {
    " ".join(words[1:]) for words, command in generate.commands() if not hasattr(command, "commands")
}
PUBLISHED_ELSEWHERE: Final = {
    "agent-passport": "a predicate type; its schema stands in passport.v1 at the payload",
}

ISSUE: Final = "--key key.pem --issuer Lab --valid-from 2026-03-0"
LOGGING: Final = "--key key.pem --trust trust.json --heads heads.db --at 2026-03-03T00:00:00Z"

# Every command once, in an order in which each finds what it needs; {} holds what earlier ones printed.
SCRIPT: Final = f"""
doctor
config show
demo -o demo
simulate -o a --seed 3 --runs 300 --domains 2 --tier-target 1
simulate -o b --seed 4 --runs 300 --domains 2 --tier-target 2
bundle init empty --agent a --version 1
bundle seal a
bundle validate a
bundle show a
import records rows.csv -o imported --map map.toml --agent courier --agent-version 1
assess a
assess empty
compare a b
drift a b
drift a a
plan --tier 1 --expect r_op=0.9
recheck hb-eval-papers
profile list
profile show hb-eval-2026
profile show hb-eval-2025
profile lint hb-eval-2026
keys generate -o key.pem --public public.pem
keys public key.pem
keys id key.pem
keys rotate public.pem -o next.pem --public next-public.pem --at 2027-01-01
registry init registry --name lab
trust init --trust trust.json --issuer Lab --key public.pem --log {{registry-init[vkey]}} --accept-specimens
trust show --trust trust.json
trust check --trust trust.json
issue a -o first {ISSUE}1 --registry registry --trust trust.json --heads heads.db
issue a -o second {ISSUE}2
registry append second/passport.json --registry registry {LOGGING}
verify first/passport.json --trust trust.json --at 2026-03-02
verify rows.csv --trust trust.json
verify-bundle --bundle first/passport.json --key public.pem {{show[statement][predicate][agent][digest]}}
verify-bundle --bundle first/passport.json --key public.pem sha256:{"0" * 64}
export first/passport.json --format markdown --unverified
report a -o case.html
registry list registry
registry list registry --status current --at 2026-03-04
registry show 0 --registry registry
registry prove 0 --registry registry
registry note registry "nothing to report" {LOGGING}
registry supersede registry 0 --by 1 {LOGGING}
registry revoke registry 1 --reason issued-in-error --detail words {LOGGING}
registry history registry {{lineage}}
registry drift registry {{lineage}}
registry score registry {{lineage}} --at 2026-03-03
registry reindex registry --check
registry checkpoint --registry registry
registry audit registry --trust trust.json --heads heads.db
registry export registry tree
registry migrate registry
registry rotate-key --registry registry --heads heads.db --at 2026-03-04
trust add --trust trust.json --log {{registry-rotation[vkey]}}
trust rotate public.pem next-public.pem --trust trust.json --at 2027-01-01
keys id missing.pem
"""

REFUSED: Final = {
    "keys id missing.pem",
    f"verify-bundle --bundle first/passport.json --key public.pem sha256:{'0' * 64}",
}


def _folder(root: Path) -> None:
    (root / "rows.csv").write_text("task,result\nt/1,ok\nt/2,bad\n")
    (root / "map.toml").write_text(
        'run_id_from_line = true\n[columns]\ntask_id = "task"\noutcome = "result"\n'
        '[values.outcome]\nok = "success"\nbad = "failure"\n'
        '[constants]\ndomain = "d"\ncondition = "nominal"\n'
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, dict[str, Any]]]:
    """Every command of the script with the document that it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("certkit.report.pdf_missing", lambda: "not drawn here, for speed")
        root = tmp_path_factory.mktemp("documents")
        patch.chdir(root)
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        _folder(root)
        seen: dict[str, Any] = {}
        found = []
        for line in SCRIPT.strip().splitlines():
            if line.startswith("verify-bundle") or "lineage" in line:
                seen.setdefault("show", certkit("show", "first/passport.json", "--json").document)
                agent = seen["show"]["statement"]["predicate"]["agent"]
                seen["lineage"] = (
                    f"{agent['provider']}/{agent['name']}" if agent.get("provider") else agent["name"]
                )
            words = shlex.split(line.format(**seen))
            done = certkit(*words, "--json")
            assert "error" not in done.document or line in REFUSED, (line, done.document)
            found.append((line, done.document))
            seen[done.document["schema"].split(":")[2]] = done.document
        found.append(("show", seen["show"]))
        status = certkit("registry", "status", "registry", "0", "--at", "2026-03-05", "--heads", "heads.db")
        found.append(("registry status", status.document))
    return found


def test_what_every_command_prints_fits_its_published_schema(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    failed = {}
    for line, document in printed:
        name = document["schema"].removeprefix("urn:certkit:").replace(":", ".")
        validator = jsonschema.Draft202012Validator(generate.SCHEMAS[name]())
        faults = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]
        if faults:
            failed[line] = faults[:5]
    assert failed == {}


def test_every_command_is_in_the_script(printed: list[tuple[str, dict[str, Any]]]) -> None:
    run_here = {leaf for leaf in LEAVES for line, _ in printed if re.match(rf"{re.escape(leaf)}(\s|$)", line)}
    assert LEAVES - run_here == set()


def test_every_schema_that_the_code_names_is_published() -> None:
    named = set()
    for path in (generate.ROOT / "certkit").rglob("*.py"):
        named |= set(re.findall(r"urn:certkit:([a-z0-9-]+):v1", path.read_text(encoding="utf-8")))
    published = {name.removesuffix(".v1") for name in generate.SCHEMAS}
    assert named - published == set(PUBLISHED_ELSEWHERE)


def test_every_command_prints_a_schema_of_its_own_or_a_shared_one(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    used = {document["schema"].split(":")[2] for _, document in printed}
    files = {"accumulation", "bundle", "calibration", "claims", "passport", "profile", "record", "status"}
    assert {name.removesuffix(".v1") for name in generate.SCHEMAS} - used - files == set()


def test_closed_schemas_refuse_a_key_too_many_and_one_too_few(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    for line, document in printed:
        name = document["schema"].removeprefix("urn:certkit:").replace(":", ".")
        validator = jsonschema.Draft202012Validator(generate.SCHEMAS[name]())
        assert not validator.is_valid(document | {"surprise": 1}), line
        assert not validator.is_valid({key: value for key, value in document.items() if key != "schema"}), (
            line
        )


def test_packaged_claims_fit_the_schema_of_claims() -> None:
    validator = jsonschema.Draft202012Validator(generate.SCHEMAS["claims.v1"]())
    for path in resources.path("templates", "recheck").glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        table = toml.loads(text, code="recheck.invalid", where=path.name, parse_float=str)
        validator.validate(table)
        assert not validator.is_valid(table | {"claims": [{"id": "x", "kind": "surprise"}]})
        parse(text, path.name)


def test_the_identity_of_pooled_bundles_fits_its_schema(tmp_path: Path) -> None:
    from certkit.evidence.identity import ACCUMULATION_SCHEMA  # noqa: PLC0415 - for this test only

    roots = [of(tmp_path / name, [run(name, sequence=None)]) for name in "ab"]
    digests = [seal(root).facts.digest for root in roots]
    document = {"schema": ACCUMULATION_SCHEMA, "bundles": digests}
    jsonschema.Draft202012Validator(generate.SCHEMAS["accumulation.v1"]()).validate(document)
    assert canonical.is_digest(canonical.digest(canonical.canonical(document)))
