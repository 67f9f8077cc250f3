"""A ``context.json`` to fill in, and what is still blank in one.

skeleton(case)                    # every member, lists of people and hazards empty, bound to the evidence
blanks(case)                      # what is stale or missing, by its path
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from certkit.document import Document, GivenPath, Text
from certkit.evidence.context import CONTEXT_SCHEMA
from certkit.report.argument.build import build
from certkit.report.argument.challenges import (
    ASSUMED,
    STANDING,
    Challenge,
    Class,
    Standing,
    about_context,
    challenges,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.evidence.context import Context
    from certkit.report.argument.case import Case


class ContextInit(Document, frozen=True, kw_only=True, tag="urn:certkit:context-init:v1"):
    """What certkit context init wrote, what of --from it left out, and every challenge that is open."""

    context: GivenPath
    left_out: Annotated[tuple[Text, ...], Meta(description="what was said of other evidence, counted")]
    tested: Annotated[tuple[Text, ...], Meta(description="domains with runs under faults")]
    challenges: tuple[Challenge, ...]


class ContextLint(Document, frozen=True, kw_only=True, tag="urn:certkit:context-lint:v1"):
    """What is stale or blank in a context, by its path; none: an empty list."""

    context: GivenPath
    blanks: tuple[Text, ...]


def to_close(case: Case) -> tuple[Challenge, ...]:
    """Return the challenges that are open."""
    return tuple(item for item in challenges(case) if item.state is Standing.OPEN)


def skeleton(case: Case, *, earlier: Context | None = None) -> dict[str, Any]:
    """Return a context about the evidence at hand; text is carried over from an earlier one.

    What was said of other evidence stays behind: the review, and answers and decision, which are kept apart,
    so that only a person moves one back.
    """
    about = {"bundles": list(case.bundles), "profile": case.assessment.profile.digest, "tier": case.tier}
    blank = dict.fromkeys(("reason", "by", "agreed_by"))
    assumed = sorted(name for names in ASSUMED.values() for name in names)
    made: dict[str, Any] = {
        "schema": CONTEXT_SCHEMA,
        "about": about,
        "owner": None,
        "people": [],
        "use": {"purpose": None, "users": None, "oversight": None, "exclusions": []},
        "operating_domain": {"description": None, "domains": []},
        "risk": {"criterion": None, "thresholds_fit": None},
        "hazard_identification": {"method": None, "by": [], "date": None},
        "hazards": [],
        "mitigations": [],
        "assumptions": [{"id": name, "owner": None, "rationale": None} for name in assumed],
        "reviewers": [],
        "answers": [
            {"challenge": item.code, "state": None, **blank, "evidence": []}
            for item in challenges(case)
            if item.kind is not Class.BLANK
        ],
        "monitoring": [],
        "decision": None,
    }
    if earlier is None:
        return made
    said = earlier.model_dump(mode="json", exclude_none=True, exclude={"schema_", "about", "reviewers"})
    for name in ("answers", "decision"):
        said[f"previous_{name}"] = said.pop(name, None)
    return made | said


def blanks(case: Case) -> Iterator[str]:
    """Yield what is about other evidence, and what is left blank and raises a challenge, by its path."""
    yield from (f"/about/{name}: is about other evidence" for name in case.stale)
    yield from _blank(build(case).challenges)


def unfilled(context: Context) -> Iterator[str]:
    """Yield what is left blank in a context, whatever the evidence is."""
    yield from _blank(about_context(context, context.reviewing))


def _blank(raised: Iterable[Challenge]) -> Iterator[str]:
    for item in raised:
        if item.kind is Class.BLANK and item.state is Standing.OPEN:
            yield f"{STANDING[item.code.partition(':')[0]].path}: {item.text} [{item.code}]"
