"""Views say what the passport or the bundle says, and carry its digest; no view is signed."""

from __future__ import annotations

import json  # noqa: TID251 - a second reading, without our own door
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs

from certkit.bundle.facts import ImportFacts
from certkit.ground.errors import NegativeError, UsageError
from certkit.passport import exports, keys, words
from certkit.passport.exports import View, refuse_unverified
from tests.support import passports
from tests.support.passports import measured, viewed

HOSTILE = "a|b`c``d\n# x <script> [l](http://e.example) @all \u202e\x1b[2J"
SPACE = "{http://www.w3.org/2000/svg}"


def contested() -> Any:
    return measured(imported=ImportFacts(format="x", notes={"inverted": 1}))


def written(kind: exports.Format, view: View) -> str:
    return exports.export(kind, view).content


@pytest.mark.parametrize("kind", exports.FORMATS)
def test_every_view_carries_the_digest_of_the_passport(kind: exports.Format) -> None:
    view = viewed()
    made = exports.export(kind, view)
    assert made.subject == view.passport_id
    assert made.subject.removeprefix("sha256:") in made.content


@pytest.mark.parametrize("kind", [name for name in exports.FORMATS if name != "svr"])
def test_a_view_of_a_bundle_carries_the_digest_of_the_bundle(kind: exports.Format) -> None:
    made = exports.export(kind, View(evaluation=measured()))
    assert made.subject == passports.specimen().facts.digest
    assert made.subject.removeprefix("sha256:") in made.content


@pytest.mark.parametrize("kind", exports.FORMATS)
def test_every_view_names_every_open_question_by_code_and_severity(kind: exports.Format) -> None:
    view = viewed(contested())
    assert {"serious", "warning"} == {item.severity for item in view.questions}
    text = written(kind, view).lower().replace("_", "-")
    for item in view.questions:
        assert item.code in text
        assert item.severity in text


@pytest.mark.parametrize("kind", exports.FORMATS)
def test_every_view_of_simulated_evidence_says_so(kind: exports.Format) -> None:
    assert "specimen" in written(kind, viewed(passports.specimen())).lower()
    assert "specimen" not in written(kind, viewed()).lower()


def test_a_verification_result_needs_a_verification() -> None:
    for view in (viewed(checked=False), View(evaluation=measured())):
        with pytest.raises(UsageError):
            exports.export("svr", view)
    assert "nobody checked the signature" in written("markdown", viewed(checked=False))


def test_a_passport_that_is_not_verified_is_refused_with_the_exit_code_of_the_verification() -> None:
    for verification, code in (
        (passports.verified(trust=passports.lenient(keys.generate("p256"))), 8),
        (passports.verified(at=passports.NOW.replace(year=2027)), 6),
        (passports.verified(trust=passports.lenient(require=("replay",))), 4),
    ):
        with pytest.raises(NegativeError) as caught:
            refuse_unverified(verification)
        assert (caught.value.code, caught.value.exit_code) == ("export.unverified", code)
    refuse_unverified(passports.verified())


def test_a_specimen_has_no_property_of_a_real_passport() -> None:
    real, specimen = (
        set(json.loads(written("svr", view))["predicate"]["properties"])
        for view in (viewed(), viewed(passports.specimen()))
    )
    assert {"CERTKIT_PASSPORT_VERIFIED", "CERTKIT_TIER_1", "CERTKIT_PASSED_JUDGEMENT"} <= real
    assert not real & specimen
    assert not any("REPLAY" in name or "BOUNDED_TIER" in name for name in real)


def test_only_a_tier_that_is_met_on_measured_evidence_passes() -> None:
    judged = {"PASSED": [measured()], "WARNED": [passports.specimen(), contested()]}
    for outcome, evaluations in judged.items():
        for evaluation in evaluations:
            predicate = json.loads(written("test-result", View(evaluation=evaluation)))["predicate"]
            assert predicate["result"] == outcome


def test_a_deciding_criterion_is_a_test_and_a_provisional_one_is_none() -> None:
    predicate = json.loads(written("test-result", View(evaluation=measured())))["predicate"]
    names = [text.split()[0] for text in predicate["passedTests"]]
    assert "r_op" in names
    tests = (text for key in predicate if key.endswith("Tests") for text in predicate[key])
    assert "csi" not in {text.split()[0] for text in tests}


def test_markdown_says_both_readings_the_validity_and_what_it_is_not() -> None:
    text = written("markdown", viewed())
    assert "- `Tier 1 of hb-eval-2026 by averages; no tier with confidence limits`" in text
    assert "| Valid | 2026-03-01T12:00:00Z to 2026-05-30T12:00:00Z |" in text
    for item in words.IS_NOT:
        assert f"- {item}\n" in text


def test_foreign_text_formats_nothing() -> None:
    view = viewed()
    facts = structs.replace(
        view.evaluation.facts,
        agent=structs.replace(view.evaluation.facts.agent, name=HOSTILE, version=HOSTILE),
    )
    hostile = structs.replace(view, evaluation=structs.replace(view.evaluation, facts=facts), issuer=HOSTILE)
    plain, text = written("markdown", view), written("markdown", hostile)
    assert len(text.splitlines()) == len(plain.splitlines()), "a name made a line of its own"
    assert re.search("[\x00-\x09\x0b-\x1f\u202e]", text) is None
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # A cell ends at a bar that no backslash escapes (GFM, tables).
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {3}
    # A code span ends at a run of backticks as long as the one that opened it (CommonMark 6.1).
    outside = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    for mark in ("<script>", "@all", "http:", "`"):
        assert mark not in outside
    ET.fromstring(written("badge", hostile))  # noqa: S314 - our own text


def test_a_badge_says_three_words_and_that_it_is_no_evidence() -> None:
    said = {
        "Tier 1 met": viewed(),
        "Tier 1 contested": viewed(contested()),
        "Tier 1 specimen": viewed(passports.specimen()),
    }
    for text, view in said.items():
        root = ET.fromstring(written("badge", view))  # noqa: S314 - our own text
        assert [node.text for node in root.iter(f"{SPACE}text")] == [text]
        assert "No evidence" in (root.findtext(f"{SPACE}title") or "")
        names = {name for node in root.iter() for name in node.attrib}
        assert not names & {"href", "style", "src", "{http://www.w3.org/1999/xlink}href"}


def test_an_extension_asks_for_nothing() -> None:
    extension = json.loads(written("a2a", viewed()))
    assert set(extension) == {"uri", "description", "required", "params"}
    assert (extension["uri"], extension["required"]) == ("urn:certkit:agent-passport:v1", False)
    assert extension["params"]["tierByReading"] == {"table": 1, "bounded": 0}
    bundle = json.loads(written("a2a", View(evaluation=measured())))["params"]
    assert not {"passport", "validFrom", "validUntil"} & set(bundle)


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", exports.COLOURS.values())
def test_the_text_of_a_badge_can_be_read(colour: str) -> None:
    assert (luminance(exports.INK) + 0.05) / (luminance(colour) + 0.05) >= 7
