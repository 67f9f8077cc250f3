"""What speaks against the verdict: challenges raised by rule, limits, assumptions, and SIL arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.assessment.findings.findings import Severity
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.material import Material

_FROM_FINDINGS: Final = {Severity.SERIOUS, Severity.WARNING}


def challenges(material: Material) -> Table:
    """Return every open challenge: standing ones by rule, then those that findings raise."""
    document = material.document
    body = [
        (f"C-{number}", text, source, "open")
        for number, (text, source) in enumerate([*_standing(material), *_raised(document)], start=1)
    ]
    columns = (
        Column("id", 6),
        Column("challenge", 64),
        Column("raised by", 23),
        Column("state", 7),
    )
    return table("Open challenges", columns, body)


def _standing(material: Material) -> Iterator[tuple[str, str]]:
    document = material.document
    yield "No reviewer is recorded: only the tool has looked at this argument.", "no-reviewer"
    yield "No hazards were supplied: the criteria are not tied to any harm in operation.", "no-hazards"
    verdict = document["verdict"]
    bounded = verdict["bounded"]["tier"]
    if verdict["tier"] > bounded:
        yield (
            (
                "The verdict rests on point estimates: under the bounded reading, which respects clusters "
                "and asks every criterion to hold with confidence, "
                f"{f'Tier {bounded}' if bounded else 'no tier'} is shown."
            ),
            "point-estimates",
        )
    yield (
        "The evidence shows one point in time: the agent, its model or its surroundings may have changed.",
        "single-time-point",
    )
    if any(cell["condition"] == "adversarial" and cell["runs"] for cell in document["breakdown"]):
        yield (
            "The attacks are the recorded ones: an opponent who adapts to this agent was not shown.",
            "static-attacks",
        )


def _raised(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for item in document["findings"]:
        if item["severity"] in _FROM_FINDINGS:
            text = item["message"]
            yield text[:1].upper() + text[1:], item["code"]


ASSUMPTIONS: Final = (
    (
        "The recorded tasks resemble those of the intended use.",
        "Tasks were chosen for convenience, or operation has drifted from them.",
    ),
    (
        "An outcome recorded as a success is a success.",
        "A lenient check, a judge that errs, or a success rule that ignores a side effect.",
    ),
    (
        "The agent assessed is the agent deployed.",
        "A model alias, prompt, tool or memory changed after the runs; only digests pin a component.",
    ),
    (
        "Runs say something new each time.",
        "Repeats of one task at temperature 0 stand or fall together, and look like many runs.",
    ),
    (
        "Injected faults took hold and resemble real ones.",
        "A fault that never reached the agent tests nothing; real faults have other shapes and other shares.",
    ),
    (
        "All runs that were made are in the bundle.",
        "Failed runs, or whole attempts, were left out before the bundle was sealed.",
    ),
    (
        "A failure of the test rig is not the agent's.",
        "Harness errors count against the agent here; a rig that hides failures would not be seen.",
    ),
)
"""What the verdict takes for granted, and how each could be false."""

SOURCE_LIMITS: Final = (
    (
        "The fault types stand for mechanisms, not for how often faults occur in any deployment, and no "
        "hazard analysis ties the scenarios to real hazards ([26] §12.2)."
    ),
    (
        "All of the source's evaluations were made at one point in time; it asks for re-evaluation "
        "every quarter ([26] §12.1, §12.4)."
    ),
    "The CSI thresholds are not calibrated against production data but reference points ([26] §12.1, §12.6).",
    "IRS rests on observable proxies; a trace need not reflect the computation behind it ([26] §12.3).",
    "Human oversight in the source's explanation layer was simulated, not measured with people ([26] §12.1).",
    (
        "The SIL and ASIL columns are offered as guidance on evidence, and were not validated against "
        "incidents ([26] §12.2)."
    ),
)
"""Limits that the source states of its own method, in our words."""

DISCREPANCIES: Final = (
    (
        "[26] §3.1 prints a posterior of 0.89 for 820 successes in 1,000 at τ = 0.80; the formula gives "
        "0.9416. This report uses the formula."
    ),
    (
        "[26] eq. 8 as printed makes the trend term of CSI 0 or 1 for any slope above 10^−6, so that an "
        "agent whose failures come at random is often given a CSI of 0."
    ),
    (
        "[26] Table 1 puts SIL 2–3 beside a success rate above 95 %; the arithmetic of the SIL section gives "
        "the SIL 1 band at best."
    ),
    (
        "[25] asks for a TI of at least 0.90 where its traceability score runs from 1 to 5; it is read as "
        "the attested transparency index, which runs from 0 to 1."
    ),
)
"""Where the source papers contradict themselves, as far as this report is concerned."""


def assumptions() -> Table:
    """Return the assumptions; nobody owns one until the safety-case context names a person."""
    body = ((f"A-{number}", text, false, None) for number, (text, false) in enumerate(ASSUMPTIONS, start=1))
    columns = (
        Column("id", 5),
        Column("assumption", 40),
        Column("how it could be false", 43),
        Column("owner", 12),
    )
    return table("Assumptions", columns, body)


def levels(document: dict[str, Any]) -> Table:
    """Return the source's SIL and ASIL guidance with the arithmetic beside it, empty without guidance."""
    body = [
        (
            f"Tier\u00a0{number}",
            given.get("sil"),
            given.get("asil"),
            given.get("arithmetic"),
            "hazard and risk analysis, target failure measure, systematic capability, architecture",
        )
        for number, tier in sorted(document["tiers"].items())
        if (given := tier["guidance"])
    ]
    columns = (
        Column("tier", 7),
        Column("source's SIL text", 13),
        Column("source's ASIL text", 13),
        Column("arithmetic", 36),
        Column("not determined here", 31),
    )
    return table("Guidance of the source against its own thresholds", columns, body)
