"""Passports over several bundles: judged as one, each told alone, and nothing hidden by pooling."""

from __future__ import annotations

import copy
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from certkit import report, workflow
from certkit.assessment.assessing import assess_accumulation
from certkit.assessment.findings.findings import Severity, finding, raised
from certkit.assessment.result import Assessment, AssessmentDocument
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import NegativeError
from certkit.ground.progress import SILENT
from certkit.passport import keys, payload, sealed
from certkit.passport.claim import from_bundle
from certkit.passport.issuing import VALIDITY, issue
from certkit.passport.verification import verify
from certkit.summary.pooling import accumulate
from tests.support import schemas
from tests.support.campaigns import campaign, made
from tests.support.documents import certkit
from tests.support.making import ISSUER, KEY, trust
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.opening import Passport

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    tmp_path = tmp_path_factory.mktemp("bundles")
    first, second, third = (
        made(tmp_path / str(month), campaign(f"m{month}", month, good))
        for month, good in ((1, 9), (2, 8), (3, 9))
    )
    return first, second, third


def codes(judged: Assessment) -> set[str]:
    return {item.code for item in judged.findings}


def message(judged: Assessment, code: str) -> str:
    return next(item.message for item in judged.findings if item.code == code)


def test_they_are_judged_as_one_bundle_that_holds_all_runs(
    tmp_path: Path, roots: tuple[Path, Path, Path]
) -> None:
    pooled = workflow.assess(roots)
    runs = [
        run | {"sequence": 60 * (month - 1) + run["sequence"]}
        for month, good in ((1, 9), (2, 8), (3, 9))
        for run in campaign(f"m{month}", month, good)
    ]
    whole = workflow.assess(made(tmp_path / "whole", runs, declared_runs=180))
    one, other = pooled.to_dict(), whole.to_dict()
    for part in ("metrics", "criteria", "tiers", "verdict", "breakdown", "fragility", "judge"):
        assert one[part] == other[part]
    assert {**one["bundle"], "digest": ""} == {**other["bundle"], "digest": ""}
    assert one["metrics"]["csi"]["n"] == 100
    assert codes(whole) <= codes(pooled)


def test_each_bundle_is_told_alone(roots: tuple[Path, Path, Path]) -> None:
    document = workflow.assess(roots).to_dict()
    Draft202012Validator(schema_of(AssessmentDocument)).validate(document)
    assert [one["records"] for one in document["bundles"]] == [60, 60, 60]
    for month, (root, one) in enumerate(zip(roots, document["bundles"], strict=True), 1):
        runs = campaign("x", month, (9, 8, 9)[month - 1])
        faults = [run for run in runs if run["condition"] != "nominal"]
        good = sum(run["outcome"] == "success" for run in faults)
        assert one["digest"] == open_bundle(root).facts.digest
        assert (one["successes"], one["fault_runs"]) == (good, 48)
        assert (one["first_run"], one["last_run"]) == (runs[0]["started_at"], runs[-1]["started_at"])
        alone = workflow.assess(root).verdict
        assert (one["table"]["tier"], one["bounded"]["tier"]) == (alone.table.tier, alone.bounded.tier)


def test_a_single_bundle_says_nothing_of_bundles(roots: tuple[Path, Path, Path]) -> None:
    judged = workflow.assess([roots[0]])
    assert judged.to_dict() == workflow.assess(roots[0]).to_dict()
    assert "bundles" not in judged.to_dict()


def test_a_decline_is_not_hidden_by_pooling(tmp_path: Path, roots: tuple[Path, Path, Path]) -> None:
    assert "periods-differ" not in codes(workflow.assess(roots))
    fallen = made(tmp_path / "4", campaign("m4", 4, 4))
    judged = workflow.assess([*roots, fallen])
    assert "bundle 4), p " in message(judged, "periods-differ")
    risen = made(tmp_path / "0", campaign("m0", 1, 4))
    assert "periods-differ" not in codes(workflow.assess([risen, *roots[1:]]))


def test_a_decline_shows_in_the_domains_that_both_have(
    tmp_path: Path, roots: tuple[Path, Path, Path]
) -> None:
    fallen = [
        *campaign("m4", 4, 3)[:50],
        *(run | {"run_id": f"e{run['sequence']}"} for run in campaign("m4", 4, 10, domain="e")[50:]),
    ]
    assert "periods-differ" in codes(workflow.assess([roots[0], made(tmp_path / "4", fallen)]))


@pytest.mark.parametrize(("good", "fell"), [(4, True), (8, False)])
def test_a_decline_in_one_domain_is_not_hidden_by_the_others(
    tmp_path: Path, good: int, *, fell: bool
) -> None:
    """Over twelve domains success falls by less than the margin."""

    def month(number: int, last: int) -> Path:
        parts = [campaign(f"m{number}{d}", number, last if d == "l" else 9, domain=d) for d in "abcdefghijkl"]
        runs = [run | {"sequence": i} for i, run in enumerate(run for part in parts for run in part)]
        return made(tmp_path / str(number), runs)

    judged = workflow.assess([month(1, 9), month(2, good)])
    assert ("periods-differ" in codes(judged)) is fell
    if fell:
        assert "success under faults in l fell from 0.896" in message(judged, "periods-differ")


def test_what_cannot_be_compared_is_said(tmp_path: Path, roots: tuple[Path, Path, Path]) -> None:
    elsewhere = made(tmp_path / "4", campaign("m4", 4, domain="e"))
    assert "1 of 1 pairs" in message(workflow.assess([roots[0], elsewhere]), "periods-not-compared")
    timeless = [
        {key: value for key, value in run.items() if key != "started_at"} for run in campaign("m5", 5)
    ]
    unknown = workflow.assess([roots[0], made(tmp_path / "5", timeless)])
    assert "order in time" in message(unknown, "periods-not-compared")
    for judged in (workflow.assess([roots[0], elsewhere]), unknown):
        assert grades(judged)["periods-not-compared"] == "warning"


def grades(judged: Assessment) -> dict[str, str]:
    return {item.code: str(item.severity) for item in judged.findings}


def test_a_decline_shows_where_one_good_run_is_dated_late(tmp_path: Path) -> None:
    late = campaign("m1", 1)
    late[-1]["started_at"] = campaign("m5", 5)[0]["started_at"]
    pooled = [made(tmp_path / "1", late), made(tmp_path / "4", campaign("m4", 4, 4))]
    assert grades(workflow.assess(pooled))["periods-differ"] == "serious"
    same = [pooled[0], made(tmp_path / "5", campaign("m5", 4))]
    assert "periods-differ" not in grades(workflow.assess(same))


@pytest.mark.parametrize("rename", ["condition", "task_id"])
def test_a_decline_that_cannot_be_compared_is_serious(
    tmp_path: Path, roots: tuple[Path, Path, Path], rename: str
) -> None:
    """Other conditions, or one task, leave nothing to compare; success over all runs fell all the same."""

    def renamed(good: int) -> Path:
        def name(run: dict[str, Any]) -> dict[str, Any]:
            if rename == "task_id":
                return {"task_id": f"{run['domain']}/only"}
            return {"condition": "x_other"} if run["condition"] != "nominal" else {}

        runs = [run | name(run) for run in campaign("m4", 4, good)]
        return made(tmp_path / f"{rename} {good}", runs)

    trick, twin = (workflow.assess([roots[0], renamed(good)]) for good in (4, 9))
    assert grades(trick)["periods-not-compared"] == "serious"
    assert "success differs by" in message(trick, "periods-not-compared")
    assert grades(twin)["periods-not-compared"] == "warning"


def test_what_speaks_against_one_bundle_is_told_of_all(tmp_path: Path) -> None:
    less = made(tmp_path / "a", campaign("a", 1), declared_runs=70)
    more = made(tmp_path / "b", campaign("b", 2), declared_runs=50, temperature=0.5)
    judged = workflow.assess([less, more])
    told = [item.message for item in judged.findings if item.code == "declared-runs-differ"]
    assert [text[:15] for text in told] == ["bundle 1 of 2: ", "bundle 2 of 2: "]
    assert "bundle 2 of 2" in message(judged, "temperature-not-zero")


def test_what_speaks_against_one_bundle_keeps_its_severity(
    tmp_path: Path, roots: tuple[Path, Path, Path]
) -> None:
    """Six of 48 fault runs under a condition of one's own are a warning, and too few among those of all."""
    runs = [
        run | ({"condition": "x_own"} if run["condition"] != "nominal" and i < 8 else {})
        for i, run in enumerate(campaign("m4", 4))
    ]
    judged = workflow.assess([*roots, made(tmp_path / "4", runs)])
    assert message(judged, "own-conditions-dominate").startswith("bundle 4 of 4: 6 of 48")
    assert grades(judged)["own-conditions-dominate"] == "warning"


def test_a_challenge_is_as_grave_as_its_gravest_finding() -> None:
    found = [finding("periods-not-compared", "x", grade) for grade in (Severity.SERIOUS, Severity.WARNING)]
    for order in (found, found[::-1]):
        [challenge] = raised(order, {})
        assert (challenge.severity, challenge.contests) == ("serious", True)


@pytest.fixture(scope="module")
def issued(roots: tuple[Path, Path, Path]) -> Passport:
    pooled = accumulate([open_bundle(root) for root in roots])
    judged = assess_accumulation(pooled, workflow.load_profile("hb-eval-2026"))
    return issue(judged, pooled.summary, issuer=ISSUER, key=KEY, not_before=NOW, not_after=NOW + VALIDITY)


def predicate(found: Passport) -> dict[str, Any]:
    document: dict[str, Any] = canonical.loads(found.payload)["predicate"]
    return document


def test_the_passport_lists_the_bundles_and_replays_in_any_order(
    issued: Passport, roots: tuple[Path, Path, Path]
) -> None:
    found = issued
    claimed = predicate(found)["evidence"]
    digests = [open_bundle(root).facts.digest for root in roots]
    assert [one["digest"] for one in claimed["bundles"]] == digests
    assert claimed["bundles"][0]["dates"] == {
        "first_run": "2026-01-02T10:00:00Z",
        "last_run": "2026-01-02T10:59:03Z",
    }
    first, second, third = roots
    opened, replay = from_bundle([third, first, second], workflow.load_profile, progress=SILENT)
    verified = verify(
        found.to_json(), trust=trust(require=("evidence", "replay")), at=NOW, evidence=opened, replay=replay
    )
    assert verified.verdict == "verified", verified.deciding


def test_the_published_schema_accepts_it(issued: Passport) -> None:
    schema = schemas.passport_schema()
    inner = schema["properties"]["dsseEnvelope"]["properties"]["payload"]["contentSchema"]
    Draft202012Validator({**inner, "$defs": schema["$defs"]}).validate(canonical.loads(issued.payload))


def test_some_of_the_bundles_are_not_the_evidence(issued: Passport, roots: tuple[Path, Path, Path]) -> None:
    data = issued.to_json()
    for some in ([roots[0]], [*roots[:2]]):
        opened, _ = from_bundle(some, workflow.load_profile, progress=SILENT)
        found = verify(data, trust=trust(), at=NOW, evidence=opened)
        assert found.deciding is not None
        assert found.deciding.code == "passport.other-evidence"
        assert "pools 3 bundles, give --bundle once for each" in found.deciding.detail


def parts(document: dict[str, Any]) -> Any:
    return document["predicate"]["evidence"]["bundles"]


def renamed(document: dict[str, Any]) -> object:
    listed = [part["digest"] for part in parts(document)]
    digest = canonical.digest(
        canonical.canonical({"schema": "urn:certkit:accumulation:v1", "bundles": listed})
    )
    document["predicate"]["evidence"]["digest"] = digest
    document["subject"][1]["digest"]["sha256"] = digest.removeprefix("sha256:")
    return document


CHANGES: dict[str, Any] = {
    "a bundle twice": lambda d: (parts(d)[1].update(digest=parts(d)[0]["digest"]), renamed(d)),
    "another bundle": lambda d: parts(d)[0].update(digest="sha256:" + "0" * 64),
    "bundles in another order": lambda d: parts(d).reverse(),
    "a bundle left out": lambda d: (parts(d).pop(), renamed(d)),
    "one bundle alone": lambda d: (parts(d).__delitem__(slice(1, None)), renamed(d)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_parts_that_are_not_those_of_the_whole_are_refused(issued: Passport, name: str) -> None:
    document = canonical.loads(issued.payload)
    payload.read(canonical.canonical(document))
    changed = copy.deepcopy(document)
    CHANGES[name](changed)
    with pytest.raises(NegativeError) as caught:
        payload.read(canonical.canonical(changed))
    assert caught.value.code == "passport.statement"


def test_a_bundle_of_another_time_is_found_by_the_replay(
    issued: Passport, roots: tuple[Path, Path, Path]
) -> None:
    document = canonical.loads(issued.payload)
    parts(document)[0]["dates"]["first_run"] = "2025-01-01T00:00:00Z"
    data = canonical.canonical(document)
    payload.read(data)
    data = canonical.line(sealed.seal(data, KEY))
    opened, replay = from_bundle(roots, workflow.load_profile, progress=SILENT)
    found = verify(data, trust=trust(), at=NOW, evidence=opened, replay=replay)
    assert found.deciding is not None
    assert (found.deciding.code, "bundles" in found.deciding.detail) == ("passport.replay-differs", True)


def test_the_safety_case_shows_the_periods(roots: tuple[Path, Path, Path]) -> None:
    page = re.sub("<[^>]*>", "", report.html(report.view(workflow.assess(roots))))
    for month in (1, 2, 3):
        assert f"bundle {month}, 2026-0{month}-02T10:00:00Z" in page


def test_the_commands_take_several_bundles(tmp_path: Path, roots: tuple[Path, Path, Path]) -> None:
    keys.write_private(tmp_path / "k.pem", KEY, passphrase=None)
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    names = [str(root) for root in roots]
    code, document = certkit("assess", *names, "--json")
    assert (code, len(document["bundles"])) == (1, 3)
    out = str(tmp_path / "issued")
    options = ("--key", str(tmp_path / "k.pem"), "--issuer", "Example Lab", "--valid-from", NOW.isoformat())
    assert certkit("issue", *names, *options, "-o", out, "--json")[0] == 0
    given = [text for name in reversed(names) for text in ("--bundle", name)]
    code, document = certkit(
        "verify",
        f"{out}/passport.json",
        "--trust",
        str(tmp_path / "trust.json"),
        "--at",
        NOW.isoformat(),
        *given,
        "--replay",
        "--json",
    )
    assert (code, document["verdict"]) == (0, "verified")
    drawn = str(tmp_path / "case.html")
    assert certkit("report", f"{out}/passport.json", *given, "-o", drawn, "--json")[0] == 0


def test_an_output_inside_any_of_the_bundles_is_refused(roots: tuple[Path, Path, Path]) -> None:
    code, document = certkit("assess", *map(str, roots), "-o", str(roots[2] / "a.json"), "--json")
    assert (code, document["error"]["code"]) == (2, "usage.option")
