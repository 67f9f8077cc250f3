"""An assessment file is repeated only where its rows carry its verdict."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from certkit import report
from certkit.errors import InputError
from tests.support.drawing import judged, profile, strong

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]


def document(adversarial: int = 950) -> Document:
    return deepcopy(judged(strong(adversarial=adversarial), tier=2).to_dict())


def row(of: Document, name: str, tier: int) -> dict[str, Any]:
    found: dict[str, Any] = next(
        item for item in of["criteria"] if (item["id"], item["tier"]) == (name, tier)
    )
    return found


def _promoted(of: Document) -> None:
    of["verdict"]["tier"] = 3


def _row_turned(of: Document) -> None:
    row(of, "adversarial_resistance", 3)["status"] = "met"


def _row_and_tiers_turned(of: Document) -> None:
    """A forger who turns the row, the tier and the verdict, but not the margin."""
    row(of, "adversarial_resistance", 3)["status"] = "met"
    of["tiers"]["3"] |= {"status": "met", "not_met": []}
    of["tiers"]["3"]["met"].append("adversarial_resistance")
    of["verdict"] |= {"tier": 3, "binding": []}


def _margin_too(of: Document) -> None:
    _row_and_tiers_turned(of)
    row(of, "adversarial_resistance", 3)["margin"] = 0.05


def _value_too(of: Document) -> None:
    _margin_too(of)
    row(of, "adversarial_resistance", 3)["value"] = 0.95


def _lower_threshold(of: Document) -> None:
    _row_and_tiers_turned(of)
    row(of, "adversarial_resistance", 3).update(threshold=0.8, margin=0.85 - 0.8)


def _status_of_verdict(of: Document) -> None:
    of["verdict"]["status"] = "insufficient"


def _binding_hidden(of: Document) -> None:
    of["verdict"]["binding"] = []


def _tier_status(of: Document) -> None:
    of["tiers"]["3"]["status"] = "insufficient"


def _untested_but_met(of: Document) -> None:
    row(of, "ti", 1).update(value=None, margin=None)
    of["metrics"]["ti"] |= {"state": "unmeasured", "value": None, "reason": "nobody looked"}


def _tier_missing(of: Document) -> None:
    del of["tiers"]["3"]


def _row_missing(of: Document) -> None:
    of["criteria"].remove(row(of, "ti", 1))
    of["tiers"]["1"]["met"].remove("ti")


def _strange_name(of: Document) -> None:
    for item in of["criteria"]:
        if item["id"] == "ti":
            item["id"] = "<b>"


FORGED: list[Callable[[Document], None]] = [
    _promoted,
    _row_turned,
    _row_and_tiers_turned,
    _margin_too,
    _value_too,
    _lower_threshold,
    _status_of_verdict,
    _binding_hidden,
    _tier_status,
    _untested_but_met,
    _tier_missing,
    _row_missing,
    _strange_name,
]


@pytest.mark.parametrize("forge", FORGED)
def test_a_document_that_contradicts_itself_is_refused(forge: Callable[[Document], None]) -> None:
    forged = document(adversarial=850)
    report.of_document(forged, profile=profile(), where="a.json")  # as it was made, it passes
    forge(forged)
    with pytest.raises(InputError) as caught:
        report.of_document(forged, profile=profile(), where="a.json")
    assert caught.value.code == "report.assessment-contradicts"


INVALID: list[tuple[tuple[str, ...], Any]] = [
    (("schema",), "urn:other"),
    (("verdict", "tier"), "2"),
    (("bundle", "digest"), "sha256:short"),
    (("findings",), None),
    (("extra",), 1),
]


@pytest.mark.parametrize(("path", "value"), INVALID)
def test_a_document_of_another_form_is_refused(path: tuple[str, ...], value: object) -> None:
    forged = document()
    place = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError) as caught:
        report.of_document(forged, profile=None, where="a.json")
    assert caught.value.code == "report.assessment-invalid"


@pytest.mark.parametrize("found", [None, [], "text", 3, {}])
def test_what_is_no_document_at_all_is_refused(found: object) -> None:
    with pytest.raises(InputError) as caught:
        report.of_document(found, profile=None, where="a.json")
    assert caught.value.code == "report.assessment-invalid"


def test_a_profile_of_another_digest_is_not_used() -> None:
    material = report.of_document(document(), profile=profile("hb-eval-2025"), where="a.json")
    assert material.profile is None


@pytest.mark.parametrize("name", ["hb-eval-2026", "hb-eval-2025"])
def test_what_assess_writes_always_passes(name: str) -> None:
    made = judged(strong(), name)
    report.of_document(made.to_dict(), profile=made.profile, where="a.json")


def test_a_report_of_a_file_says_that_the_evidence_was_not_read() -> None:
    material = report.of_document(document(), profile=profile(), where="a.json")
    codes = {row[2] for row in report.view(material).challenges.rows}
    assert "from-file" in codes
    assert "from-file" not in {row[2] for row in report.view(judged(strong())).challenges.rows}
