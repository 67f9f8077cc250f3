"""What of a statement follows from its other parts.

    statement = rebuilt(predicate)        # what follows from the rest is written anew
    challenges(predicate)                 # the challenges that its own fields give rise to

`claim` issues a statement as it is rebuilt here, and `payload` rebuilds it and compares the whole, so that no
issuer leaves out what speaks against the claim. A signature says who made a claim, not that it adds up.

Whether the integers are true, and which challenges the records give rise to, only a replay tells.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from certkit.assessment.findings.findings import (
    FAULT_RUNS,
    HARNESS_SHARE,
    KIND_SHARE,
    KINDS,
    RUNS_PER_SECOND,
    SEVERITY,
    STATED,
    Severity,
    graded,
)
from certkit.ground import wording
from certkit.ground.canonical import decimal
from certkit.ground.text import judges_itself, lineage, span
from certkit.passport import statement as st
from certkit.passport.bounds import KINDS as METRICS
from certkit.passport.bounds import Kind
from certkit.passport.statement import CLOCK_SKEW, NOMINAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.assessment.task_table import Cell

SPECIMEN: Final = "SPECIMEN (simulated evidence)"
FAILURE_MODES: Final = 10
"""How many failing cells a passport names, worst first."""

INTERVENTION_RATE: Final = "0.050000"
_IN_OPERATION: Final = ("r_op", "frr")
_JUDGED: Final = {"met", "not_met"}


def rebuilt(predicate: st.Predicate) -> st.Statement:
    """Return the statement with every part that follows from others written anew."""
    agent, cells = predicate.agent, predicate.profile_of_reliability.cells
    criteria = _criteria(predicate)
    judgement = _judgement(predicate)
    mix = Counter[str]()
    for cell in cells:
        mix[cell.condition] += cell.runs
    evidence = structs.replace(
        predicate.evidence, nominal_runs=mix[NOMINAL], fault_runs=mix.total() - mix[NOMINAL]
    )
    if evidence.bundles:
        from certkit.bundle.identity import accumulation_digest  # noqa: PLC0415 - most rest on one

        digest = accumulation_digest([part.digest for part in evidence.bundles])
        evidence = structs.replace(evidence, digest=digest)
    title = f"Agent passport of {agent.name} {agent.version}"
    parts = tuple(structs.replace(part, pinned=part.digest is not None) for part in agent.components)
    return st.Statement(
        type_=st.STATEMENT_TYPE,
        predicate_type=st.PREDICATE_TYPE,
        subject=(_subject(agent.name, agent.digest), _subject("evidence bundle", evidence.digest)),
        predicate=structs.replace(
            predicate,
            agent=structs.replace(agent, lineage=lineage(agent.provider, agent.name), components=parts),
            name=f"{SPECIMEN}: {title}" if predicate.origin == "simulated" else title,
            claim=_sentence(judgement, predicate.origin, predicate.challenges),
            evidence=evidence,
            assessment=judgement,
            criteria=criteria,
            scope=structs.replace(
                predicate.scope,
                domains=tuple(sorted({cell.domain for cell in cells})),
                fault_mix=dict(sorted(mix.items())),
                exclusions=tuple(_exclusions(evidence, criteria)),
            ),
            limitations=tuple(_limitations(agent, evidence, judgement.profile, criteria)),
            known_failure_modes=_failure_modes(cells),
            validity=structs.replace(
                predicate.validity, retest_triggers=tuple(_triggers(judgement.tier, criteria))
            ),
        ),
    )


def last_run(predicate: st.Predicate) -> datetime | None:
    """Return the last start in any bundle, or end of a declared period whose runs bear no times; or None."""
    dates = [predicate.scope.dates, *(bundle.dates for bundle in predicate.evidence.bundles or ())]
    ends = [period.last_run or span(period.declared_to, None)[0] for period in dates]
    return max((end for end in ends if end is not None), default=None)


def late(predicate: st.Predicate, signed: datetime) -> str | None:
    """Return how runs are later than a time of signing, None where they are not."""
    last = last_run(predicate)
    if last is None or last - signed <= CLOCK_SKEW:
        return None
    return f"rests on runs until {last.isoformat()}, and is signed for {signed.isoformat()}"


def _subject(name: str, digest: str) -> st.Subject:
    return st.Subject(name=name, digest=st.Sha256(sha256=digest.removeprefix("sha256:")))


def _sentence(judgement: st.Judgement, origin: str, challenges: Iterable[st.Challenge]) -> str:
    """Return the claim in words, the only words in which a passport may make it."""
    serious = [item for item in challenges if item.severity == "serious"]
    answered = [item for item in serious if item.state == "answered"]
    profile = judgement.profile.id
    shown = f"meets the evidence thresholds of no tier of profile {profile}"
    if judgement.tier:
        shown = wording.qualified(
            f"meets the Tier {judgement.tier} evidence thresholds of profile {profile}",
            [item.code for item in serious if item.state == "open"],
            len(answered),
            list(dict.fromkeys(name for item in answered for name in item.answered_by or ())),
        )
    return f"specimen, from simulated evidence: {shown}" if origin == "simulated" else shown


def _criteria(predicate: st.Predicate) -> tuple[st.CriterionClaim, ...]:
    """Return the rows with the counts that the task table gives, and the rates of those.

    The fault runs of a statement are those that `frr` grades, leaves out or misses, and harness errors. Of
    the adversarial runs every one was hit, was not, or does not say. No trace tells an outcome.
    """
    table = predicate.profile_of_reliability
    faults = [cell for cell in table.cells if cell.condition != NOMINAL]
    successes, runs = sum(cell.successes for cell in faults), sum(cell.runs for cell in faults)
    attacked = sum(cell.runs for cell in faults if cell.condition == "adversarial")
    graded = next((column.n for column in table.columns if column.metric == "frr"), None)
    rows = []
    for row in predicate.criteria:
        n, counts, value = row.n, row.counts, row.value
        if row.metric == "r_op" and row.state == "measured":
            n, counts = runs, counts | {"successes": successes}
        if row.metric == "frr":
            n = n if graded is None else graded
            missing = {} if row.state != "measured" or "missing" not in counts else {"missing": 0}
            counts = counts | missing
            others = counts.get("missing", 0) + counts.get("harness_errors", 0)
            counts = counts | {"left_out": runs - (n or 0) - others}
        if row.metric == "adversarial_resistance":
            said = counts.get("landed", 0) + counts.get("not_landed", 0)
            counts = counts | {"runs": attacked, "landed_unknown": attacked - said}
        if isinstance(value, str) and "successes" in counts:
            value = decimal(Fraction(counts["successes"], n)) if n else None
        evidence = row.evidence
        if evidence is not None:
            told = evidence.derived if METRICS.get(row.metric, Kind()).open_ended else 0
            level = wording.weakest(told, evidence.traced, predicate.evidence.records)
            evidence = structs.replace(evidence, level=level, derived=told)
        rows.append(structs.replace(row, n=n, counts=counts, value=value, evidence=evidence))
    return tuple(rows)


def _judgement(predicate: st.Predicate) -> st.Judgement:
    """Return the judgement with tiers, status and binding rows from the status of each row at each tier."""
    judgement = predicate.assessment
    reading = judgement.profile.reading
    statuses = {name: _statuses(predicate, name) for name in ("table", "bounded")}
    table, bounded = (
        max((tier for tier, status in by_tier.items() if status == "met"), default=0)
        for by_tier in statuses.values()
    )
    tier = table if reading == "table" else bounded
    status = statuses[reading].get(judgement.required_tier, "insufficient")
    serious = [item for item in predicate.challenges if item.severity == "serious"]
    if status == "met" and any(item.state == "open" for item in serious):
        status = "contested"
    following = str(tier + 1)
    unmet = tuple(
        row.id
        for row in predicate.criteria
        if following in row.tiers and _status(row.tiers[following], reading) != "met"
    )
    return structs.replace(
        judgement,
        tier=tier,
        status=status,
        table=st.Attained(tier=table),
        bounded=st.Attained(tier=bounded),
        binding=judgement.binding if sorted(judgement.binding) == sorted(unmet) else unmet,
    )


def _statuses(predicate: st.Predicate, reading: str) -> dict[int, Any]:
    """Return the status of every tier: it is met where all rows of it and of the tiers below are met."""
    by_tier: dict[int, set[str]] = {}
    for criterion in predicate.criteria:
        for tier, row in criterion.tiers.items():
            by_tier.setdefault(int(tier), set()).add(_status(row, reading))
    result: dict[int, str] = {}
    so_far: set[str] = set()
    for number in sorted(by_tier):
        so_far |= by_tier[number]
        unmet = "not_met" if "not_met" in so_far else "insufficient"
        result[number] = "met" if so_far == {"met"} and predicate.evidence.records else unmet
    return result


def _status(row: st.RowAtTier, reading: str) -> str:
    if reading == "table" or row.table == "not_tested":
        return row.table
    return "insufficient" if row.bounded is None else row.bounded.status


def _limitations(
    agent: st.Agent, evidence: st.Evidence, profile: st.Profile, criteria: Iterable[st.CriterionClaim]
) -> Iterator[str]:
    """Yield what the claim does not rest on, or rests on only in part."""
    rests = "the records of one evaluation"
    if evidence.bundles:
        rests = f"the pooled records of {len(evidence.bundles)} evaluations, which the issuer chose"
    yield f"rests on {rests}; what happens in operation is not observed"
    if profile.reading == "table":
        yield "the table reading decides: thresholds are compared with point estimates, not with bounds"
    if not agent.components:
        yield "the agent's components are not listed"
    for row in criteria:
        if row.state != "measured" or any(tier.table not in _JUDGED for tier in row.tiers.values()):
            yield f"{row.id}: {row.reason or 'not fully measured'}"


def _failure_modes(cells: Iterable[Cell]) -> tuple[st.FailureMode, ...]:
    """Return the domains and faults in which the agent failed, the worst ones first."""
    failed = [cell for cell in cells if cell.condition != NOMINAL and cell.successes < cell.runs]
    worst = sorted(
        failed, key=lambda cell: (Fraction(cell.successes, cell.runs), cell.domain, cell.condition)
    )
    return tuple(
        st.FailureMode(
            domain=cell.domain,
            condition=cell.condition,
            failures=cell.runs - cell.successes,
            runs=cell.runs,
        )
        for cell in worst[:FAILURE_MODES]
    )


def _exclusions(evidence: st.Evidence, criteria: Iterable[st.CriterionClaim]) -> Iterator[str]:
    """Yield the runs that no criterion counts, and what the claim does not speak of."""
    if evidence.novel_fault_runs:
        yield f"{evidence.novel_fault_runs} runs under held-out faults are not in the criteria"
    if left_out := _left_out(criteria)[0]:
        yield f"{left_out} fault runs whose fault did not take hold are not graded"
    yield "agents, versions, components, domains and conditions other than those named"


def _left_out(criteria: Iterable[st.CriterionClaim]) -> tuple[int, int]:
    """Return the fault runs whose fault did not take hold, and all that could be graded."""
    row = next((row for row in criteria if row.metric == "frr"), None)
    if row is None:
        return 0, 0
    left_out = row.counts.get("left_out", 0)
    return left_out, left_out + (row.n or 0) + row.counts.get("missing", 0)


def _triggers(tier: int, criteria: Iterable[st.CriterionClaim]) -> Iterator[st.Trigger]:
    """Yield what ends the claim of a tier before its date."""
    yield st.Trigger(event="component_change")
    for row in criteria:
        at = row.tiers.get(str(tier))
        if row.metric in _IN_OPERATION and at is not None and isinstance(at.threshold, str):
            yield st.Trigger(
                event="metric_beyond_threshold",
                metric=row.metric,
                operator=at.operator,
                threshold=at.threshold,
            )
    yield st.Trigger(event="intervention_rate_above", threshold=INTERVENTION_RATE)


def challenges(predicate: st.Predicate) -> dict[str, str]:
    """Return the codes of the challenges that the rest of a statement gives rise to, with their severity."""
    evidence, ran = predicate.evidence, predicate.evidence.records > 0
    faults, mix, lost = Counter[str](), Counter[str](), 0
    for cell in predicate.profile_of_reliability.cells:
        faulty = cell.runs if cell.condition != NOMINAL else 0
        faults[cell.domain] += faulty
        mix[cell.condition] += faulty
        lost += cell.runs - cell.successes if cell.condition == "adversarial" else 0
    custom = sum(runs for name, runs in mix.items() if name.startswith("x_"))
    least = KIND_SHARE * faults.total()
    kinds = {name for name, runs in mix.items() if not name.startswith("x_") and runs >= least}
    left_out, gradable = _left_out(predicate.criteria)
    attacked = [row for row in predicate.criteria if row.metric == "adversarial_resistance"]
    attacks, attempts = attacked[0].counts if attacked else {}, mix["adversarial"]
    landed, missed, unsaid = (attacks.get(name, 0) for name in ("landed", "not_landed", "landed_unknown"))
    few = [*faults.values(), *(row.n or 0 for row in attacked)]
    follows = _declared(predicate) | {
        "no-records": not ran,
        "no-fault-runs": ran and not evidence.fault_runs,
        "no-nominal-runs": ran and not evidence.nominal_runs,
        "held-out-runs": evidence.records > evidence.nominal_runs + evidence.fault_runs,
        "harness-errors": HARNESS_SHARE * (evidence.nominal_runs + evidence.fault_runs)
        < evidence.harness_errors,
        "narrow-fault-mix": faults.total() > 0 and len(kinds - {NOMINAL}) < KINDS,
        "undeclared-independence": wording.UNDECLARED in _reasons(predicate),
        "nominal-only-domain": ran and 0 in faults.values(),
        "few-fault-runs": ran and any(0 < runs < FAULT_RUNS for runs in few),
        "failures-elsewhere": _fails_without_faults(predicate),
        "no-attack-landed": not landed and any(missed or (attempts and not row.n) for row in attacked),
        "attack-landed-unknown": unsaid > 0,
        "success-with-attack": any((row.n or 0) - row.counts.get("successes", 0) > lost for row in attacked),
        "implausible-pace": _too_fast(predicate),
        "repeats-as-independent": predicate.assessment.profile.reading == "table" and _repeated(predicate),
    }
    severities: dict[str, str] = {code: SEVERITY[code] for code, holds in follows.items() if holds}
    for code, part, whole in (
        ("faults-left-out", left_out, gradable),
        ("own-conditions-dominate", custom, faults.total()),
        ("attacks-left-out", missed if landed else 0, attempts),
    ):
        severity = graded(Fraction(part, whole)) if whole else Severity.INFO
        if part and (severity is not Severity.INFO or code in STATED):
            severities[code] = severity
    return severities


def _declared(predicate: st.Predicate) -> dict[str, bool]:
    """Tell which challenges what is declared gives rise to."""
    protocol, integrity, records = predicate.protocol, predicate.integrity, predicate.evidence.records
    evaluator, judge, declared = protocol.evaluator, protocol.judge, protocol.declared_runs
    cascade = protocol.cascade_definition if predicate.scope.fault_mix.get("cascade") else "simultaneous"
    penalised = any("cascade" in METRICS.get(row.metric, Kind()).series for row in predicate.criteria)
    return {
        "evaluator-not-independent": evaluator is not None and evaluator.relation != "independent",
        "judge-not-independent": judge is not None and judges_itself(judge, predicate.agent.components),
        "temperature-not-zero": protocol.temperature is not None and Fraction(protocol.temperature) != 0,
        "protocol-not-stated": None in (protocol.methodology, protocol.temperature, evaluator, cascade),
        "undeclared-attempt": protocol.attempt is None,
        "repeated-attempt": (protocol.attempt or 1) > 1,
        "undeclared-runs": declared is None and predicate.assessment.profile.stopping is None,
        "declared-runs-differ": records > 0 and declared not in {None, records},
        "cascade-definition": penalised and cascade not in {None, "simultaneous"},
        "unversioned-agent": predicate.agent.version == "unversioned",
        "unpinned-components": any(part.digest is None for part in predicate.agent.components),
        "integrity-tasks": integrity is not None and integrity.seed != "stated",
        "integrity-rated": integrity is not None and bool(integrity.raters),
        "integrity-partial": integrity is not None and integrity.core is None,
    }


def _fails_without_faults(predicate: st.Predicate) -> bool:
    """Tell whether success with the nominal runs, of all or of a domain, misses the attained tier."""
    runs, good = Counter[str](), Counter[str]()
    for cell in predicate.profile_of_reliability.cells:
        runs[cell.domain] += cell.runs
        good[cell.domain] += cell.successes
    least = min((Fraction(good[name], runs[name]) for name in runs), default=Fraction(0))
    rates = {"r_op": Fraction(good.total(), runs.total() or 1), "domain_min": least}
    asked = (
        (rates[criterion.metric], Fraction(row.threshold), row.operator)
        for criterion in predicate.criteria
        if criterion.metric in rates
        for tier, row in criterion.tiers.items()
        if row.operator in {">", ">="} and int(tier) <= predicate.assessment.tier
    )
    return any(rate < tau or (rate == tau and operator == ">") for rate, tau, operator in asked)


def _too_fast(predicate: st.Predicate) -> bool:
    """Tell whether more records are stated than the declared period can hold; a date is a whole day."""
    dates = predicate.scope.dates
    start, end = span(dates.declared_from, dates.declared_to)
    if start is None or end is None:
        return False
    lasted = (end - start) // timedelta(microseconds=1)
    return predicate.evidence.records * 10**6 > RUNS_PER_SECOND * max(lasted, 10**6)


def _reasons(predicate: st.Predicate) -> set[str | None]:
    """Return why rows were not judged by bounds."""
    rows = (row for criterion in predicate.criteria for row in criterion.tiers.values())
    return {row.bounded.reason for row in rows if row.bounded is not None}


def _repeated(predicate: st.Predicate) -> bool:
    """Tell whether the tasks contradict a posterior that the table reading attains."""
    rows = (
        (int(tier), row)
        for criterion in predicate.criteria
        if METRICS.get(criterion.metric, Kind()).chance
        for tier, row in criterion.tiers.items()
    )
    return any(
        tier <= predicate.assessment.table.tier
        and row.table == "met"
        and row.bounded is not None
        and row.bounded.status == "not_met"
        for tier, row in rows
    )
