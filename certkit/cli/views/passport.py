"""A passport as people read it: one screen of 80 columns, or everything in it.

Whether any of it is true is not told here; the caller says above it what was checked.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from certkit.cli.emit import fold
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.passport import words
from certkit.text import quoted
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from certkit.cli.emit import Line
    from certkit.passport.exports import Source
    from certkit.passport.statement import CriterionClaim, Predicate, RowAtTier, Trigger

_LABEL: Final = 9  # beside it a digest ends in column 80
_INDENT: Final = " " * _LABEL
_MOST: Final = 3


def show_passport(source: Source) -> Iterator[Line]:
    """Print a passport: who and what, the table, its limits, what ends it, and what it is not."""
    predicate = source.predicate
    yield from _head(source)
    yield ""
    yield from _table(predicate)
    yield ""
    yield from _scope(predicate)
    if pooled := words.periods(predicate.evidence):
        yield from _section(f"Pooled from {len(pooled)} bundles, each alone", _first(pooled))
    yield from _limits(predicate)
    yield from _ends(predicate)
    yield from _section("What it is not", words.IS_NOT)


def _head(source: Source) -> Iterator[str]:
    predicate = source.predicate
    agent, issuer = predicate.agent, predicate.issuer
    judgement, evidence = predicate.assessment, predicate.evidence
    yield source.passport_id
    yield from fold(words.one_line(predicate.name))
    yield ""
    for line in words.above(predicate):
        yield from fold(line)
    yield from _entry("claim", words.one_line(predicate.claim))
    yield from _entry("valid", _validity(source))
    relations = [
        f"relation to the {name}: {relation}" if relation else f"relation to the {name} not stated"
        for name, relation in (
            ("evaluator", issuer.relation_to_evaluator),
            ("developer", issuer.relation_to_developer),
        )
    ]
    yield from _entry(
        "issuer", f"{quoted(issuer.name)}, key {words.short(issuer.key_id)}; {'; '.join(relations)}"
    )
    yield from _entry(
        "agent",
        f"{quoted(agent.name)} {words.one_line(agent.version)}, by"
        f" {quoted(agent.provider) if agent.provider else 'a provider not stated'}",
    )
    yield from _entry("", agent.digest)
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    records = many(evidence.records, "record")
    yield from _entry("evidence", f"{predicate.origin}, {records}: {runs}; {words.short(evidence.digest)}")
    yield from _entry("profile", f"{quoted(judgement.profile.id)}; {words.short(judgement.profile.digest)}")
    if predicate.integrity:
        yield from _entry("probes", words.commitments(predicate.integrity))
    if predicate.supersedes:
        yield from _entry("replaces", predicate.supersedes)


def _validity(source: Source) -> str:
    validity = source.predicate.validity
    span = f"{words.utc(validity.not_before)} to {words.utc(validity.not_after)}"
    asked = f" as of {words.utc(source.at)}" if source.at != source.made else ""
    if source.at < validity.not_before:
        return f"{span}: NOT YET VALID{asked}"
    left = validity.not_after - source.at
    if left < timedelta(0):
        return f"{span}: EXPIRED {many((-left).days, 'day')} ago{asked}"
    return f"{span}: {many(left.days, 'day')} left{asked}"


def _table(predicate: Predicate) -> Iterator[Line]:
    tiers = sorted({tier for row in predicate.criteria for tier in row.tiers}, key=int)
    decisive = str(predicate.assessment.tier + 1)
    decisive = decisive if decisive in tiers else tiers[-1]
    rows = []
    for row in predicate.criteria:
        at = row.tiers.get(decisive)
        value = (
            row.state if row.state == "partial" else _number(row, at.value if at and at.value else row.value)
        )
        bound = _number(row, at.bounded.bound) if at and at.bounded else ""
        asked = [_asked(row.tiers.get(tier)) for tier in tiers]
        rows.append(Cells(row.id, row.metric, value, bound, row.n, asked))
    yield from table(rows, tiers, reading=predicate.assessment.profile.reading, bound_tier=decisive)
    provisional = [row.id for row in predicate.criteria if row.provisional]
    if provisional:
        yield from fold(f"provisional in the source: {', '.join(provisional)}")


def _number(row: CriterionClaim, value: str | bool | None) -> str:
    """Return a signed value in digits, a dash for what was not measured."""
    number = value if value is None or isinstance(value, bool) else float(value)
    return digits(number, probability=row.unit == "probability")


def _asked(at: RowAtTier | None) -> Asked:
    if at is None:
        return Asked(None, None, "", None)
    threshold = at.threshold if isinstance(at.threshold, bool) else float(at.threshold)
    return Asked(at.operator, threshold, at.table, at.bounded.status if at.bounded else None)


def _scope(predicate: Predicate) -> Iterator[str]:
    scope = predicate.scope
    yield from _entry("domains", ", ".join(scope.domains) or "none")
    yield from _entry(
        "runs in", ", ".join(f"{name} {count:,}" for name, count in scope.fault_mix.items()) or "none"
    )


def _limits(predicate: Predicate) -> Iterator[str]:
    yield from _section("Limitations", predicate.limitations)
    modes = [
        f"{mode.domain}, {mode.condition}: failed {mode.failures:,} of {mode.runs:,} runs"
        for mode in predicate.known_failure_modes
    ]
    yield from _section("Known failure modes, worst first", _first(modes))
    yield from _section(
        "Open challenges", [f"{item.severity}: {item.message} [{item.code}]" for item in predicate.challenges]
    )


def _first(items: Sequence[str]) -> list[str]:
    """Return as many items as one screen bears, and how many there are beside them."""
    more = len(items) - _MOST
    return [*items[:_MOST], *([f"and {more} more; --json has them"] if more > 0 else [])]


def _ends(predicate: Predicate) -> Iterator[str]:
    yield from _section(
        "Ends before its date, and asks for a new test", map(_trigger, predicate.validity.retest_triggers)
    )


def _trigger(trigger: Trigger) -> str:
    if trigger.event == "component_change":
        return "any component of the agent changes"
    if trigger.event == "intervention_rate_above":
        return f"people intervene in more than {_percent(trigger.threshold)} of runs in operation"
    return f"in operation, {trigger.metric} is no longer {trigger.operator} {_plain(trigger.threshold)}"


def _plain(threshold: str | None) -> str:
    return "?" if threshold is None else threshold.rstrip("0").rstrip(".")


def _percent(threshold: str | None) -> str:
    return "?" if threshold is None else f"{_plain(f'{100 * Decimal(threshold):.6f}')} %"


def _entry(label: str, text: str) -> Iterator[str]:
    yield from fold(text, first=f"{label:<{_LABEL}}", rest=_INDENT)


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    yield f"{title}:" if listed else f"{title}: none stated"
    for item in listed:
        yield from fold(item, first="  ", rest="    ")
