"""A passport as people read it: one screen of 80 columns, or everything in it.

Whether any of it is true is not told here; the caller says above it what was checked.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from certkit import wording
from certkit.cli.emit import WIDTH, counted, cut, dash, fold, unicode
from certkit.passport.checks import NOT_ASKED
from certkit.passport.exports import words
from certkit.passport.outcome import STEPS
from certkit.passport.terms import DIGITS
from certkit.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from certkit.passport.exports import Source
    from certkit.passport.outcome import Claim, Verification
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
_STEPS: Final = {"passed": "+", "failed": "x", "skipped": "-"}


def show_passport(source: Source, *, verbose: bool) -> Iterator[str]:
    """Print a passport: who and what, the table, its limits, what ends it, and what it is not."""
    predicate = source.predicate
    yield from _head(source)
    yield ""
    yield from _table(predicate)
    yield ""
    yield from _scope(predicate, verbose=verbose)
    if pooled := words.periods(predicate.evidence, whole=verbose):
        yield from _section(f"Pooled from {len(pooled)} bundles, each alone", _first(pooled, verbose=verbose))
    yield from _limits(predicate, verbose=verbose)
    yield from _ends(predicate)
    if verbose:
        yield from _bounds(predicate)
        yield from _provenance(predicate)
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
    records = counted(evidence.records, "record")
    yield from _entry("evidence", f"{predicate.origin}, {records}: {runs}; {words.short(evidence.digest)}")
    yield from _entry("profile", f"{quoted(judgement.profile.id)}; {words.short(judgement.profile.digest)}")
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
        return f"{span}: EXPIRED {counted((-left).days, 'day')} ago{asked}"
    return f"{span}: {counted(left.days, 'day')} left{asked}"


def _table(predicate: Predicate) -> Iterator[str]:
    tiers = sorted({tier for row in predicate.criteria for tier in row.tiers}, key=int)
    decisive = _next(predicate, tiers)
    asked = [[_asked(row.tiers.get(tier)) for tier in tiers] for row in predicate.criteria]
    wide = max(_TIER, *(len(cell) + 1 for cells in asked for cell in cells))  # columns never touch
    used = 2 * _VALUE + _COUNT + wide * len(tiers)
    name = max(min(max(len(row.id) for row in predicate.criteria) + 1, WIDTH - used), 12)
    heads = "".join(f"{f'Tier {tier}':>{wide}}" for tier in tiers)
    yield f"{'criterion':<{name}}{'value':>{_VALUE}}{'bound':>{_VALUE}}{'n':>{_COUNT}}{heads}"
    for row, told in zip(predicate.criteria, asked, strict=True):
        at = row.tiers.get(decisive)
        cells = "".join(f"{cell:>{wide}}" for cell in told)
        numbers = f"{_value(row, at):>{_VALUE}}{_bound(at):>{_VALUE}}{_count(row.n):>{_COUNT}}"
        yield f"{cut(row.id, name - 1):<{name}}{numbers}{cells}".rstrip()
    legend = ", ".join(f"{_mark(status)} {word}" for status, word in _LEGEND.items())
    yield from fold(
        f"{legend}: first by the table reading (point estimates), then by the bounded reading (bounds, "
        f"clusters respected); value and bound are those for Tier {decisive}"
    )
    provisional = [row.id for row in predicate.criteria if row.provisional]
    if provisional:
        yield from fold(f"provisional in the source: {', '.join(provisional)}")


def _next(predicate: Predicate, tiers: list[str]) -> str:
    wanted = str(predicate.assessment.tier + 1)
    return wanted if wanted in tiers else tiers[-1]


def _value(row: CriterionClaim, at: RowAtTier | None) -> str:
    if row.state != "measured":
        return "partial" if row.state == "partial" else dash()
    return _number(row.value if at is None or at.value is None else at.value)


def _bound(at: RowAtTier | None) -> str:
    return "" if at is None or at.bounded is None else _number(at.bounded.bound)


def _number(value: str | bool | None) -> str:
    """Return a value as it is signed, rounded only where it is too long for its column."""
    if value is None:
        return dash()
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


def _scope(predicate: Predicate, *, verbose: bool) -> Iterator[str]:
    scope = predicate.scope
    yield from _entry("domains", ", ".join(scope.domains) or "none")
    yield from _entry(
        "runs in", ", ".join(f"{name} {count:,}" for name, count in scope.fault_mix.items()) or "none"
    )
    if verbose:
        dates = scope.dates
        first, last = (
            words.utc(time) if time else "not stated" for time in (dates.first_run, dates.last_run)
        )
        yield from _entry("run from", f"{first} to {last}")
        yield from _entry(
            "declared", f"{dates.declared_from or 'not stated'} to {dates.declared_to or 'not stated'}"
        )
        for item in scope.exclusions:
            yield from _entry("excluded", item)


def _limits(predicate: Predicate, *, verbose: bool) -> Iterator[str]:
    yield from _section("Limitations", predicate.limitations)
    modes = [
        f"{mode.domain}, {mode.condition}: failed {mode.failures:,} of {mode.runs:,} runs"
        for mode in predicate.known_failure_modes
    ]
    yield from _section("Known failure modes, worst first", _first(modes, verbose=verbose))
    yield from _section(
        "Open challenges", [f"{item.severity}: {item.message} [{item.code}]" for item in predicate.challenges]
    )


def _first(items: Sequence[str], *, verbose: bool) -> list[str]:
    """Return as many items as one screen bears, and how many there are beside them."""
    shown = items if verbose else items[:_MOST]
    rest = [f"and {len(items) - len(shown)} more; -v shows them"] if len(shown) < len(items) else []
    return [*shown, *rest]


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


def _bounds(predicate: Predicate) -> Iterator[str]:
    """Print how every value and every bound was got."""
    lines = []
    for row in predicate.criteria:
        if row.interval:
            span = f"{row.interval.low} to {row.interval.high} at {_plain(row.interval.level)}"
            lines.append(f"{row.id}: {span}, {row.interval.method}")
        if row.reason:
            lines.append(f"{row.id}: {row.reason}")
        if row.drift_margin:
            lines.append(f"{row.id}: a loss above {_plain(row.drift_margin)} {row.unit} counts as drift")
        lines.extend(_how(row.id, tier, at) for tier, at in row.tiers.items() if at.bounded)
    yield from _section("Intervals and bounds", lines)


def _how(name: str, tier: str, at: RowAtTier) -> str:
    bounded = at.bounded
    assert bounded is not None  # noqa: S101 - chosen by the caller
    parts = [
        f"bound {bounded.bound}" if bounded.bound is not None else "no bound",
        f"confidence {_plain(bounded.confidence)}",
        bounded.reason or bounded.rests_on,
        f"margin {at.margin}" if at.margin else None,
    ]
    return f"{name} at Tier {tier}: {', '.join(part for part in parts if part)}"


def _provenance(predicate: Predicate) -> Iterator[str]:
    protocol, judgement, evidence = predicate.protocol, predicate.assessment, predicate.evidence
    yield from _section(
        "Digests",
        [
            f"agent {predicate.agent.digest}",
            f"evidence {evidence.digest}",
            f"profile {judgement.profile.digest}",
            f"assessment {judgement.digest}",
            f"issuer's key {predicate.issuer.key_id}",
        ],
    )
    yield from _section(
        "Components",
        [
            f"{part.role}: {part.name} {part.version or ''} {part.digest or '(not pinned to its bytes)'}"
            for part in predicate.agent.components
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
    yield from _section(
        "Protocol", [f"{name}: {'not stated' if value is None else value}" for name, value in stated]
    )
    counts = f"{counted(evidence.harness_errors, 'harness error')}, "
    counts += f"{counted(evidence.novel_fault_runs, 'run')} under held-out faults"
    yield from _section(
        "Judgement",
        [
            f"made for Tier {judgement.required_tier}: {judgement.status.replace('_', ' ')}",
            f"binding: {', '.join(judgement.binding) or 'none'}",
            f"by {judgement.tool.name} {judgement.tool.version}",
            f"agent's lineage: {predicate.agent.lineage}",
            f"beside the rows: {counts}",
            f"profile of reliability: {predicate.profile_of_reliability.tasks:,} tasks, for drift",
        ],
    )


def _entry(label: str, text: str) -> Iterator[str]:
    yield from fold(text, first=f"{label:<{_LABEL}}", rest=_INDENT)


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    yield f"{title}:" if listed else f"{title}: none stated"
    for item in listed:
        yield from fold(item, first="  ", rest="    ")


def _mark(status: str | None) -> str:
    return _MARKS[status][0 if unicode() else 1]


def show_verification(result: Verification, *, verbose: bool, dated: bool) -> Iterator[str]:
    """Print a verification: the claim, the steps that were made, the verdict, and what was not checked."""
    if result.claim is not None:
        yield from _claim(result.claim)
    for step in result.steps:
        if verbose or step.status != "skipped":
            text = f"{_STEPS[step.status]} {step.number:>2} {step.id:<10} {_one_line(step.detail)}"
            yield from fold(text, rest=" " * 16)
    yield ""
    yield from show_verdict(result, dated=dated)
    yield ""
    yield "Not checked:"
    for item in result.not_checked:
        yield from fold(item, first="  ", rest="    ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _claim(claim: Claim) -> Iterator[str]:
    agent, issuer = claim.agent, claim.issuer
    yield from fold(
        f"{quoted(agent.name)} {words.one_line(agent.version)}, it is claimed: {words.one_line(claim.claim)}"
    )
    yield from fold(f"domains: {', '.join(map(quoted, claim.domains)) or 'none'}")
    known_as = f" (calls itself {quoted(issuer.stated_name)})"
    same = issuer.stated_name == issuer.name
    yield from fold(f"issued by {quoted(issuer.name)}{'' if same else known_as}")
    yield f"valid {claim.not_before} to {claim.not_after}"
    tiers = claim.readings
    yield from fold(wording.readings(tiers["table"], tiers["bounded"], decides=claim.decides))
    for item in claim.challenges:
        if item.severity == "serious":
            told = wording.challenge(
                words.one_line(item.code), item.state, words.one_line(item.message), item.answered_by
            )
            yield from fold(told, rest="    ")
    yield ""


def show_verdict(result: Verification, *, dated: bool) -> Iterator[str]:
    """Print the verdict, and below it that nobody asked whether the passport was revoked, where it is so."""
    yield from fold(verdict_of(result, dated=dated))
    status = result.steps[STEPS.index("status")]
    if result.deciding is None and status.status == "skipped":
        reason = "no registry or status file given" if status.code == NOT_ASKED else _one_line(status.detail)
        yield from fold(f"not checked: revocation ({reason})")


def verdict_of(result: Verification, *, dated: bool) -> str:
    """Return the verdict in words, with the step that decides it, and (`dated`) the time it speaks of."""
    time = f", as of {words.utc(result.at)}" if dated else ""
    if result.deciding is not None:
        step = result.deciding
        return f"REJECTED at step {step.number} ({step.id}){time}: {_one_line(step.detail)} [{step.code}]"
    contested = next((step for step in result.steps if step.code == "passport.contested"), None)
    if result.verdict == "unverifiable" and contested is not None:
        return f"CONTESTED{time}: {_one_line(contested.detail)}; your policy does not accept that"
    if result.verdict == "unverifiable":
        return f"UNVERIFIABLE{time}: nothing is wrong, but something that is required could not be checked"
    profile = result.claim.profile if result.claim else None
    if profile is None or profile.known:
        return f"VERIFIED{time}: what was checked holds, under your trust policy"
    return (
        f"VERIFIED{time}, by profile {quoted(profile.id)} ({words.short(profile.digest)}…), which does not"
        " come with certkit and is not listed in your policy: what was checked holds"
    )
