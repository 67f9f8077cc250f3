"""What an argument is built from: the assessment's document, the context, and what follows from both."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.result import moment
from certkit.evidence.context import CONTEXT_SCHEMA, Context
from certkit.evidence.records.record import Condition, Split
from certkit.report.argument.hazards import Measured, measure

if TYPE_CHECKING:
    from certkit.assessment import Assessment
    from certkit.evidence.summary.summary import Summary

NO_CONTEXT: Final = Context(schema=CONTEXT_SCHEMA)
"""Where nobody said anything: everything is blank."""


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """The assessment of a bundle and the context of a use, on a day.

    `stale` names the members of ``about`` that are about something else than this evidence; it is empty
    without a context. `measured` holds what the evidence shows of each hazard; `last_run` the day of the last
    run, or the end of the declared period.
    """

    document: dict[str, Any]
    manifest: dict[str, Any]
    context: Context
    stale: tuple[str, ...]
    measured: dict[str, Measured]
    today: date | None
    last_run: date | None

    @property
    def tier(self) -> int:
        """The tier that was asked for."""
        tier: int = self.document["verdict"]["required_tier"]
        return tier

    @property
    def specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return bool(self.document["bundle"]["origin"] == "simulated")

    @property
    def tested(self) -> set[str]:
        """The domains with runs under a fault."""
        return {
            cell["domain"]
            for cell in self.document["breakdown"]
            if cell["split"] == Split.STANDARD and cell["runs"] and cell["condition"] != Condition.NOMINAL
        }


def case(
    assessment: Assessment,
    *,
    document: dict[str, Any],
    manifest: dict[str, Any],
    context: Context | None = None,
    summary: Summary | None = None,
    today: date | None = None,
) -> Case:
    """Return what an argument is built from; `today` ends acceptances and ages evidence.

    `summary` is what the assessment rests on; hazards are measured on it, so a context needs it.
    """
    given = context or NO_CONTEXT
    if given.hazards and summary is None:
        raise TypeError("hazards are measured on the summary, which is missing")
    digests = [bundle.digest for bundle in assessment.bundles] or [assessment.facts.digest]
    protocol = assessment.facts.manifest.protocol
    stale = given.stale(
        bundles=digests, profile=assessment.profile.digest, tier=assessment.verdict.required_tier
    )
    return Case(
        document=document,
        manifest=manifest,
        context=given,
        stale=() if context is None else stale,
        measured={hazard.id: measure(summary, hazard, protocol) for hazard in given.hazards or () if summary},
        today=today,
        last_run=_last_run(summary, manifest),
    )


def _last_run(summary: Summary | None, manifest: dict[str, Any]) -> date | None:
    if summary is not None and (last := moment(summary.times.last)) is not None:
        return last.date()
    declared = ((manifest.get("protocol") or {}).get("period") or {}).get("to")
    return date.fromisoformat(declared[: len("2026-01-31")]) if declared else None
