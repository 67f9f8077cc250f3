"""A ``context.json`` to fill in: every member, lists of people and hazards empty, bound to the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certkit.ground.document import to_builtins
from certkit.report.argument.case import about
from certkit.report.argument.challenges import ASSUMED, Class, challenges
from certkit.report.context import CONTEXT_SCHEMA

if TYPE_CHECKING:
    from certkit.report.argument.case import UseCase
    from certkit.report.context import Context


def skeleton(case: UseCase, *, earlier: Context | None = None) -> dict[str, Any]:
    """Return a context about the evidence at hand; text is carried over from an earlier one.

    What was said of other evidence stays behind: the review, and answers and decision, which are kept apart,
    so that only a person moves one back.
    """
    blank = dict.fromkeys(("reason", "by", "agreed_by"))
    assumed = sorted(name for names in ASSUMED.values() for name in names)
    made: dict[str, Any] = {
        "$schema": CONTEXT_SCHEMA,
        "schema": CONTEXT_SCHEMA,
        "about": to_builtins(about(case.evaluation)),
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
    said = earlier.model_dump(
        mode="json", exclude_none=True, exclude={"editor_schema", "schema_", "about", "reviewers"}
    )
    for name in ("answers", "decision"):
        said[f"previous_{name}"] = said.pop(name, None)
    return made | said
