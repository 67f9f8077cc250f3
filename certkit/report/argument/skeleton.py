"""A ``context.json`` to fill in, and what is still blank in one.

skeleton(case)                    # every member, lists of people and hazards empty, bound to the evidence
blanks(case)                      # what is stale or missing, by its path
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from certkit.bundle.context import CONTEXT_SCHEMA
from certkit.ground.document import Document, GivenPath, Text
from certkit.report.argument.build import build, unstated
from certkit.report.argument.challenges import (
    ASSUMED,
    STANDING,
    Challenge,
    Class,
    Standing,
    about_context,
    challenges,
    unraised,
)
from certkit.report.argument.graph import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.bundle.context import Context
    from certkit.report.argument.case import Case


class ContextInit(Document, frozen=True, kw_only=True, tag="urn:certkit:context-init:v1"):
    """What certkit context init wrote, and every challenge that is open."""

    context: GivenPath
    tested: Annotated[tuple[Text, ...], Meta(description="domains with runs under faults")]
    challenges: tuple[Challenge, ...]


class ContextLint(Document, frozen=True, kw_only=True, tag="urn:certkit:context-lint:v1"):
    """What is stale, blank or undeveloped in a context, by its path; none: an empty list."""

    context: GivenPath
    blanks: tuple[Text, ...]


def skeleton(case: Case, *, earlier: Context | None = None) -> dict[str, Any]:
    """Return a context about the evidence at hand; text is carried over from an earlier one.

    What was said of other evidence stays behind: the review, and answers and decision, which are kept apart,
    so that only a person moves one back.
    """
    blank = dict.fromkeys(("reason", "by", "agreed_by"))
    assumed = sorted(name for names in ASSUMED.values() for name in names)
    made: dict[str, Any] = {
        "schema": CONTEXT_SCHEMA,
        "about": case.assessment.about,
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
    """Yield what is about other evidence, and what is blank or undeveloped in the report, by its path."""
    yield from (f"/about/{name}: is about other evidence" for name in case.stale)
    argument = build(case)
    told = {*_blank(argument.challenges)}
    paths = {path for path, _ in told}
    for name in argument.graph.lowest(State.UNDEVELOPED):
        node = argument.graph.by_id[name]
        if node.source not in {"rule", *paths} and name not in {*ASSUMED["G4"], *ASSUMED["G5"]}:
            told.add((node.source, f"{node.text} [{name}: undeveloped]"))
    told |= {item for item in unstated(case).items() if item[0] not in {path for path, _ in told}}
    yield from (f"{path}: {text}" for path, text in sorted(told))
    for place, answer in unraised(case.context, argument.challenges):
        yield f"/answers/{place}: nothing raises {answer.challenge} now, and the answer is left out"


def unfilled(context: Context) -> Iterator[str]:
    """Yield what is left blank in a context, as far as that shows without the evidence."""
    yield from (f"{path}: {text}" for path, text in _blank(about_context(context, context.reviewing, {})))
    yield "/about: not compared with any evidence: --bundle shows everything that is blank"


def _blank(raised: Iterable[Challenge]) -> Iterator[tuple[str, str]]:
    for item in raised:
        if item.kind is Class.BLANK and item.state is Standing.OPEN:
            yield STANDING[item.code.partition(":")[0]].path, f"{item.text} [{item.code}]"
