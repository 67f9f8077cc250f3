"""A ``context.json`` to fill in, and what is still blank in one.

skeleton(case)                    # every member, with nothing said, bound to the evidence at hand
blanks(case)                      # what is stale or missing, by its path
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certkit.document import Document, GivenPath, Part, Text
from certkit.evidence.context import CONTEXT_SCHEMA
from certkit.report.argument.build import build
from certkit.report.argument.challenges import ASSUMED, Class, Standing, about_people, monitored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.evidence.context import Context
    from certkit.report.argument.case import Case
    from certkit.report.argument.challenges import Challenge


class ToClose(Part, frozen=True, kw_only=True):
    """A challenge that is open, and what closes it."""

    code: Text
    target: Text
    text: Text
    closed_by: Text


class ContextInit(Document, frozen=True, kw_only=True, tag="urn:certkit:context-init:v1"):
    """What certkit context init wrote, and every challenge that is open."""

    context: GivenPath
    challenges: tuple[ToClose, ...]


class ContextLint(Document, frozen=True, kw_only=True, tag="urn:certkit:context-lint:v1"):
    """What is stale or blank in a context, by its path; none: an empty list."""

    context: GivenPath
    blanks: tuple[Text, ...]


def to_close(case: Case) -> tuple[ToClose, ...]:
    """Return the challenges that are open."""
    return tuple(
        ToClose(code=item.code, target=item.target, text=item.text, closed_by=item.closed_by)
        for item in build(case).challenges
        if item.state is Standing.OPEN
    )


def skeleton(case: Case, *, earlier: Context | None = None) -> dict[str, Any]:
    """Return a context about the evidence at hand; text is carried over from an earlier one.

    Answers and the decision were given for other evidence: they are kept apart, and only a person moves one
    back.
    """
    if earlier is None:
        people = ("people", "hazards", "mitigations", "reviewers", "monitoring")
        made: dict[str, Any] = {"owner": None, **{name: [] for name in people}}
        made["use"] = {"purpose": None, "users": None, "oversight": None, "exclusions": []}
        made["operating_domain"] = {"description": None, "domains": sorted(case.tested)}
        made["risk"] = {"criterion": None, "thresholds_fit": None}
        made["hazard_identification"] = {"method": None, "by": [], "date": None}
        names = sorted(name for names in ASSUMED.values() for name in names)
        made["assumptions"] = [{"id": name, "owner": None, "rationale": None} for name in names]
        made["decision"] = None
        made["answers"] = [
            {
                "challenge": item.code,
                "state": None,
                "reason": None,
                "by": None,
                "agreed_by": None,
                "evidence": [],
            }
            for item in build(case).challenges
            if item.kind is not Class.BLANK
        ]
    else:
        made = earlier.model_dump(mode="json", exclude_none=True, by_alias=True)
        made["previous_answers"] = made.pop("answers", [])
        made["previous_decision"] = made.pop("decision", None)
    bundles = [item["digest"] for item in case.document.get("bundles", ())]
    about = {
        "bundles": bundles or [case.document["bundle"]["digest"]],
        "profile": case.document["profile"]["digest"],
        "tier": case.tier,
    }
    return made | {"schema": CONTEXT_SCHEMA, "about": about}


_PATHS = {
    "no-use": "/use/purpose",
    "no-owner": "/owner",
    "no-reviewer": "/reviewers",
    "no-hazards": "/hazards",
    "no-monitoring": "/monitoring",
    "no-oversight": "/use/oversight",
    "assumption-unowned": "/assumptions",
}


def blanks(case: Case) -> Iterator[str]:
    """Yield what is about other evidence, and what is left blank and raises a challenge, by its path."""
    yield from (f"/about/{name}: is about other evidence" for name in case.stale)
    yield from _blank(build(case).challenges)


def unfilled(context: Context) -> Iterator[str]:
    """Yield what is left blank in a context, whatever the evidence is."""
    yield from _blank(about_people(context))
    if not context.hazards:
        yield "/hazards: no hazard is named [no-hazards]"
    if not monitored(context):
        yield "/monitoring: an indicator for G3 or for a hazard is missing [no-monitoring]"


def _blank(challenges: Iterable[Challenge]) -> Iterator[str]:
    for item in challenges:
        if item.kind is Class.BLANK and item.state is Standing.OPEN:
            yield f"{_PATHS[item.code.partition(':')[0]]}: {item.text} [{item.code}]"
