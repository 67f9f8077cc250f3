"""A passport as people read it: one screen of 80 columns, or everything in it.

Whether any of it is true is not told here; the caller says above it what was checked.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from certkit.cli import output
from certkit.passport.exports import words
from certkit.passport.exports.periods import periods
from certkit.passport.terms import DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.passport.exports import Source
    from certkit.passport.statement import CriterionClaim, Predicate, RowAtTier, Trigger

_LABEL: Final = 9  # beside it a digest ends in column 80
_INDENT: Final = " " * _LABEL
_VALUE, _COUNT, _TIER = 9, 9, 10
_MOST: Final = 3
_MARKS: Final = {"met": "✓+", "not_met": "✗x", "insufficient": "??", "not_tested": "–-", None: "··"}
_LEGEND: Final = {
    "met": "met",
    "not_met": "not met",
    "insufficient": "insufficient",
    "not_tested": "not tested",
}


def show_passport(source: Source, *, verbose: bool) -> None:
    """Print a passport: who and what, the table, its limits, what ends it, and what it is not."""
    found = source.predicate
    _head(source)
    output.say()
    _table(found)
    output.say()
    _scope(found, verbose=verbose)
    if pooled := periods(found.evidence, whole=verbose):
        _section(f"Pooled from {len(pooled)} bundles, each alone", _first(pooled, verbose=verbose))
    _limits(found, verbose=verbose)
    _ends(found)
    if verbose:
        _bounds(found)
        _provenance(found)
    _section("What it is not", words.IS_NOT)


def _head(source: Source) -> None:
    found = source.predicate
    judgement, issuer, evidence = found.assessment, found.issuer, found.evidence
    output.say(source.passport_id)
    output.wrapped(found.name)
    output.say()
    _entry("claim", found.claim)
    stated = [
        f"{text} by {name} reading{' (decides)' if decides else ''}"
        for name, text, decides in words.readings(judgement)
    ]
    _entry("tier", ", ".join(stated))
    _entry("valid", _validity(source))
    relations = [
        f"relation to the {name}: {relation}" if relation else f"relation to the {name} not stated"
        for name, relation in (
            ("evaluator", issuer.relation_to_evaluator),
            ("developer", issuer.relation_to_developer),
        )
    ]
    _entry("issuer", f"{issuer.name}, key {words.short(issuer.key_id)}; {'; '.join(relations)}")
    _entry(
        "agent",
        f"{found.agent.name} {found.agent.version}, by {found.agent.provider or 'a provider not stated'}",
    )
    _entry("", found.agent.digest)
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    records = output.counted(evidence.records, "record")
    _entry("evidence", f"{found.origin}, {records}: {runs}; {words.short(evidence.digest)}")
    _entry("profile", f"{judgement.profile.id}; {words.short(judgement.profile.digest)}")
    if found.supersedes:
        _entry("replaces", found.supersedes)


def _validity(source: Source) -> str:
    validity = source.predicate.validity
    span = f"{words.utc(validity.not_before)} to {words.utc(validity.not_after)}"
    asked = f" as of {words.utc(source.at)}" if source.at != source.made else ""
    if source.at < validity.not_before:
        return f"{span}: NOT YET VALID{asked}"
    left = validity.not_after - source.at
    if left < timedelta(0):
        return f"{span}: EXPIRED {output.counted((-left).days, 'day')} ago{asked}"
    return f"{span}: {output.counted(left.days, 'day')} left{asked}"


def _table(found: Predicate) -> None:
    tiers = sorted({tier for row in found.criteria for tier in row.tiers}, key=int)
    decisive = _next(found, tiers)
    asked = [[_asked(row.tiers.get(tier)) for tier in tiers] for row in found.criteria]
    wide = max(_TIER, *(len(cell) + 1 for cells in asked for cell in cells))  # columns never touch
    used = 2 * _VALUE + _COUNT + wide * len(tiers)
    name = max(min(max(len(row.id) for row in found.criteria) + 1, output.WIDTH - used), 12)
    heads = "".join(f"{f'Tier {tier}':>{wide}}" for tier in tiers)
    output.say(f"{'criterion':<{name}}{'value':>{_VALUE}}{'bound':>{_VALUE}}{'n':>{_COUNT}}{heads}")
    for row, told in zip(found.criteria, asked, strict=True):
        at = row.tiers.get(decisive)
        cells = "".join(f"{cell:>{wide}}" for cell in told)
        numbers = f"{_value(row, at):>{_VALUE}}{_bound(at):>{_VALUE}}{_count(row.n):>{_COUNT}}"
        output.say(f"{output.cut(row.id, name - 1):<{name}}{numbers}{cells}".rstrip())
    legend = ", ".join(f"{_mark(status)} {word}" for status, word in _LEGEND.items())
    output.wrapped(
        f"{legend}: first by the table reading (point estimates), then by the bounded reading (bounds, "
        f"clusters respected); value and bound are those for Tier {decisive}"
    )
    provisional = [row.id for row in found.criteria if row.provisional]
    if provisional:
        output.wrapped(f"provisional in the source: {', '.join(provisional)}")


def _next(found: Predicate, tiers: list[str]) -> str:
    wanted = str(found.assessment.tier + 1)
    return wanted if wanted in tiers else tiers[-1]


def _value(row: CriterionClaim, at: RowAtTier | None) -> str:
    if row.state != "measured":
        return "partial" if row.state == "partial" else output.dash()
    return _number(row.value if at is None or at.value is None else at.value)


def _bound(at: RowAtTier | None) -> str:
    return "" if at is None or at.bounded is None else _number(at.bounded.bound)


def _number(value: str | bool | None) -> str:
    """Return a value as it is signed, rounded only where it is too long for its column."""
    if value is None:
        return output.dash()
    if isinstance(value, bool):
        return "yes" if value else "no"
    surplus = len(value) - (_VALUE - 1)
    return value if surplus <= 0 else f"{Decimal(value):.{max(DIGITS - surplus, 0)}f}"


def _count(n: int | None) -> str:
    if n is None:
        return ""
    return f"{n:,}" if n < 10**6 else str(n)  # eight figures fit the column


def _asked(at: RowAtTier | None) -> str:
    if at is None:
        return ""
    if isinstance(at.threshold, bool):
        asked = "yes" if at.threshold else "no"
    else:
        asked = at.operator + at.threshold.rstrip("0").rstrip(".").replace("0.", ".", 1)
    return f"{asked} {_mark(at.table)}{_mark(at.bounded.status if at.bounded else None)}"


def _scope(found: Predicate, *, verbose: bool) -> None:
    scope = found.scope
    _entry("domains", ", ".join(scope.domains) or "none")
    _entry("runs in", ", ".join(f"{name} {count:,}" for name, count in scope.fault_mix.items()) or "none")
    if verbose:
        dates = scope.dates
        first, last = (words.utc(one) if one else "not stated" for one in (dates.first_run, dates.last_run))
        _entry("run from", f"{first} to {last}")
        _entry("declared", f"{dates.declared_from or 'not stated'} to {dates.declared_to or 'not stated'}")
        for item in scope.exclusions:
            _entry("excluded", item)


def _limits(found: Predicate, *, verbose: bool) -> None:
    _section("Limitations", found.limitations)
    modes = [
        f"{mode.domain}, {mode.condition}: failed {mode.failures:,} of {mode.runs:,} runs"
        for mode in found.known_failure_modes
    ]
    _section("Known failure modes, worst first", _first(modes, verbose=verbose))
    _section(
        "Open challenges", [f"{item.severity}: {item.message} [{item.code}]" for item in found.challenges]
    )


def _first(items: Sequence[str], *, verbose: bool) -> list[str]:
    """Return as many items as one screen bears, and how many there are beside them."""
    shown = items if verbose else items[:_MOST]
    rest = [f"and {len(items) - len(shown)} more; -v shows them"] if len(shown) < len(items) else []
    return [*shown, *rest]


def _ends(found: Predicate) -> None:
    _section("Ends before its date, and asks for a new test", map(_trigger, found.validity.retest_triggers))


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


def _bounds(found: Predicate) -> None:
    """Print how every value and every bound was got."""
    lines = []
    for row in found.criteria:
        if row.interval:
            span = f"{row.interval.low} to {row.interval.high} at {_plain(row.interval.level)}"
            lines.append(f"{row.id}: {span}, {row.interval.method}")
        if row.reason:
            lines.append(f"{row.id}: {row.reason}")
        if row.drift_margin:
            lines.append(f"{row.id}: a loss above {_plain(row.drift_margin)} {row.unit} counts as drift")
        lines.extend(_how(row.id, tier, at) for tier, at in row.tiers.items() if at.bounded)
    _section("Intervals and bounds", lines)


def _how(name: str, tier: str, at: RowAtTier) -> str:
    found = at.bounded
    assert found is not None  # noqa: S101 - chosen by the caller
    parts = [
        f"bound {_number(found.bound)}" if found.bound is not None else "no bound",
        f"confidence {_plain(found.confidence)}",
        found.method,
        output.counted(found.clusters, "cluster")
        if found.clusters is not None and not found.reason
        else None,
        f"worth {_plain(found.n_eff)} independent runs" if found.n_eff else None,
        found.reason,
        f"margin {at.margin}" if at.margin else None,
    ]
    return f"{name} at Tier {tier}: {', '.join(part for part in parts if part)}"


def _provenance(found: Predicate) -> None:
    protocol, judgement, evidence = found.protocol, found.assessment, found.evidence
    _section(
        "Digests",
        [
            f"agent {found.agent.digest}",
            f"evidence {evidence.digest}",
            f"profile {judgement.profile.digest}",
            f"assessment {judgement.digest}",
            f"issuer's key {found.issuer.key_id}",
        ],
    )
    _section(
        "Components",
        [
            f"{part.role}: {part.name} {part.version or ''} {part.digest or '(not pinned to its bytes)'}"
            for part in found.agent.components
        ],
    )
    judge, evaluator = protocol.judge, protocol.evaluator
    stated = [
        ("methodology", protocol.methodology),
        ("temperature", protocol.temperature),
        ("success rule", protocol.success_rule),
        ("cascade definition", protocol.cascade_definition),
        (
            "memory observable",
            None if protocol.memory_observable is None else _number(protocol.memory_observable),
        ),
        ("declared runs", protocol.declared_runs),
        ("attempt", protocol.attempt),
        ("judge", judge and f"{judge.name}, {'independent' if judge.independent else 'not independent'}"),
        ("evaluator", evaluator and f"{evaluator.name}, {evaluator.relation or 'relation not stated'}"),
    ]
    _section("Protocol", [f"{name}: {'not stated' if value is None else value}" for name, value in stated])
    counts = f"{output.counted(evidence.harness_errors, 'harness error')}, "
    counts += f"{output.counted(evidence.novel_fault_runs, 'run')} under held-out faults"
    _section(
        "Judgement",
        [
            f"made for Tier {judgement.required_tier}: {judgement.status.replace('_', ' ')}",
            f"binding: {', '.join(judgement.binding) or 'none'}",
            f"by {judgement.tool.name} {judgement.tool.version}",
            f"agent's lineage: {found.agent.lineage}",
            f"beside the rows: {counts}",
            f"profile of reliability: {found.profile_of_reliability.tasks:,} tasks, for drift",
        ],
    )


def _entry(label: str, text: str) -> None:
    output.wrapped(text, first=f"{label:<{_LABEL}}", rest=_INDENT)


def _section(title: str, items: Iterable[str]) -> None:
    listed = list(items)
    output.say(f"{title}:" if listed else f"{title}: none stated")
    for item in listed:
        output.wrapped(item, first="  ", rest="    ")


def _mark(status: str | None) -> str:
    return _MARKS[status][0 if output.unicode() else 1]
