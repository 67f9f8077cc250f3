"""What the score asks of a lineage's history: how old its evidence is, what was lost, what came after it.

found = past(log.history("lab/agent"), log.passport)       # log: certkit.registry.history.reading
score(found, at=now)
"""

from __future__ import annotations

from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from certkit.errors import CertkitError, MismatchError
from certkit.registry.history import moment, r_op, statement
from certkit.registry.score import Latest, Measured, Past, gravest
from certkit.registry.steps import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from certkit.assessment.drift.standing import Standing
    from certkit.assessment.reliability import Moments
    from certkit.passport import statement as st
    from certkit.registry.entry import Stored
    from certkit.registry.history import History, Issued


class _Bundle(NamedTuple):
    """A bundle that a passport rests on: its runs under faults, the good ones of them, and when it began."""

    runs: int
    good: int
    first_run: datetime | None


class _Side(NamedTuple):
    """A passport of the lineage; without its file nothing is known but what the entry says."""

    issued: Issued
    evidence: str
    bundles: Mapping[str, _Bundle]
    standing: Standing | None
    r_op: Moments | None


def past(of: History, passport: Callable[[Stored], bytes | None]) -> Past:
    """Return what the score asks of a lineage; every one of its passports is read.

    Raises `MismatchError` ``registry.blob-missing`` where the latest passport is not here, `NegativeError`
    ``passport.statement`` where its integers contradict each other.
    """
    latest, file = of.passports[-1], passport(of.passports[-1].file)
    if file is None:
        raise MismatchError(
            "registry.blob-missing", f"the file of entry {latest.index} is not here, or has changed"
        )
    found, ending = statement(file), latest.ending
    rate = r_op(found)
    sides = [_side(one, passport(one.file)) for one in of.passports]
    appeared = _appearances(sides)
    # Of what is no older than the latest evidence, a passport on it shows what another one cannot undo.
    recent = [one for one in sides if _is_recent(one, sides[-1], appeared)]
    return Past(
        lineage=of.lineage,
        passports=len(of.passports),
        since=moment(of.passports[0].issued_at),
        appeared=_age(sides[-1], appeared),
        drift=steps(of, [one.standing for one in sides], {one.issued.index for one in recent}),
        revocations=tuple(gravest(reasons) for one in of.passports if (reasons := one.reasons)),
        latest=Latest(
            passport_id=latest.claims.passport_id,
            index=latest.index,
            not_before=found.predicate.validity.not_before,
            not_after=found.predicate.validity.not_after,
            origin=found.predicate.origin,
            attempt=_attempt(sides[-1], sides),
            revoked=ending.reason if ending and ending.how == "revoked" else None,
            r_op=rate,
        ),
        later=tuple(
            Measured(index=one.issued.index, attempt=_attempt(one, sides), r_op=one.r_op)
            for one in recent
            if one is not sides[-1] and one.r_op is not None
        ),
        missing=tuple(one.issued.index for one in sides if one.standing is None),
    )


def _side(issued: Issued, data: bytes | None) -> _Side:
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

    try:
        found = None if data is None else statement(data)
        if found is not None:
            evidence = found.predicate.evidence.digest
            return _Side(issued, evidence, _bundles(found), drift_side(found), r_op(found))
    except CertkitError:
        pass  # integers that contradict each other tell nothing
    evidence = issued.claims.evidence or issued.claims.passport_id
    return _Side(issued, evidence, {evidence: _Bundle(0, 0, None)}, None, None)


def _bundles(found: st.Statement) -> dict[str, _Bundle]:
    evidence = found.predicate.evidence
    if evidence.bundles is None:
        runs = evidence.fault_runs
        return {evidence.digest: _Bundle(runs, runs, found.predicate.scope.dates.first_run)}
    return {
        one.digest: _Bundle(one.fault_runs, one.successes, one.dates.first_run) for one in evidence.bundles
    }


def _appearances(sides: Sequence[_Side]) -> dict[str, datetime]:
    """Return when every bundle of a lineage appeared: with a passport, or its first run if that is earlier.

    With its last run a failing one that is added would make it younger.
    """
    found: dict[str, datetime] = {}
    for one in sides:
        logged = min(moment(one.issued.claims.not_before), moment(one.issued.issued_at))
        for name, bundle in one.bundles.items():
            found[name] = min(found.get(name, logged), logged, bundle.first_run or logged)
    return found


def _is_recent(one: _Side, latest: _Side, appeared: Mapping[str, datetime]) -> bool:
    """Tell whether a passport is on the latest one's evidence, or on a bundle that is no older and not in it.

    Of one time both are, else a failing run that is added, and with it another digest, would let what was
    found in between be forgotten.
    """
    oldest = min(appeared[name] for name in latest.bundles)
    return one.evidence == latest.evidence or any(
        appeared[name] >= oldest for name in one.bundles if name not in latest.bundles
    )


def _age(one: _Side, appeared: Mapping[str, datetime]) -> datetime:
    """Return when the evidence of a passport appeared.

    Of several bundles it is the earliest that the mean over their good runs under faults can be: these are
    taken to lie in the oldest bundles, as far as those have runs. So neither a success that becomes a failure
    nor a further failing run makes the evidence younger, in whatever bundle. Where nothing was good, it is
    when the oldest bundle did.
    """
    bundles = sorted(((appeared[name], it) for name, it in one.bundles.items()), key=itemgetter(0))
    left = total = sum(bundle.good for _, bundle in bundles)
    if not total:
        return bundles[0][0]
    start, seconds = bundles[0][0], 0.0
    for time, bundle in bundles:
        taken = min(left, bundle.runs)
        seconds += (time - start).total_seconds() * taken
        left -= taken
    return datetime.fromtimestamp(start.timestamp() + seconds / total, UTC)


def _attempt(one: _Side, sides: Sequence[_Side]) -> int:
    """Return how much different evidence the lineage holds under a passport's profile."""
    profile = one.issued.claims.profile
    return len({other.evidence for other in sides if other.issued.claims.profile == profile})
