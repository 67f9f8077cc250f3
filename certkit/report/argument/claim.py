"""Whether the claim about the use stands, and every reason why it does not."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from certkit.report import words
from certkit.report.argument.challenges import Challenge, Standing
from certkit.report.argument.graph import Graph, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.argument.case import Case


def reasons(
    case: Case, graph: Graph, found: dict[str, State], raised: tuple[Challenge, ...]
) -> Iterator[str]:
    """Yield every reason why the claim about the use does not stand; none where it does."""
    if case.specimen:
        yield "The evidence is simulated."
    if case.stale:
        yield f"The context is about other evidence: {words.listed(case.stale)} differ."
    for state in (State.REFUTED, State.UNDEVELOPED):
        names = [name for name, has in found.items() if has is state]
        leaves = [name for name in names if not any(found.get(lower) is state for lower in graph.below(name))]
        if leaves:
            yield f"{words.capital(state.value)}: {words.listed(leaves)}."
    for standing in (Standing.SUSTAINED, Standing.OPEN):
        codes = [item.code for item in raised if item.state is standing]
        if codes:
            yield f"{words.capital(standing.value)} challenges: {words.listed(codes)}."
    yield from _people_missing(case)


def _people_missing(case: Case) -> Iterator[str]:
    context = case.context
    if not context.hazards:
        yield "No hazard is named."
    if not (context.use and context.use.purpose):
        yield "No purpose is stated."
    if context.operating_domain is None or not (
        context.operating_domain.description or context.operating_domain.domains
    ):
        yield "No operating domain is stated."
    if not any(context.independent(reviewer.person) for reviewer in context.reviewers or ()):
        yield "No independent reviewer other than the owner has looked at it."
    if not approved(case):
        yield "No approving decision is in force."


def approved(case: Case) -> bool:
    """Tell whether the owner approved, for this evidence, and the approval has not ended."""
    decision = case.context.decision
    if decision is None or decision.by is None or decision.by != case.context.owner or case.stale:
        return False
    ended = decision.until is not None and (
        case.today is None or date.fromisoformat(decision.until) < case.today
    )
    return decision.outcome in {"approved", "approved_with_conditions"} and not ended
