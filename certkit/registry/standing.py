"""The standing of a lineage: facts in natural units about its latest passport and what became of it.

    with reading(folder, heads=heads) as log:
        standing = standing_of(log, log.history("lab/agent"), at=now)
        print(standing.sentence)
        ranked(log, log.listed()[1].values(), timestamp(now))    # those in force first, by their limit

`Query` says which passports are looked for. There is no score: nobody can act on a digit that mixes quality
with age. What a passport states is read from its file; who signed that is for the caller's trust policy. The
log's size and root stand beside the facts, so that anyone can recompute them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from certkit.assessment.drift.document import Result
from certkit.ground.document import Count, Digest, Hash, Part, Positive, Share, Text, Tier, Time
from certkit.ground.errors import CertkitError
from certkit.ground.wording import many
from certkit.passport import opening
from certkit.passport.checks import HowEnded
from certkit.passport.statement import NOMINAL
from certkit.registry.drifts import Line, compared
from certkit.registry.entry import Reason, begins, moment, timestamp
from certkit.registry.state import PassportStanding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.passport.statement import Predicate
    from certkit.registry.reader import History, Reader
    from certkit.registry.state import Issued


class Limit(Part, frozen=True, kw_only=True):
    """The lower confidence limit of r_op on `k` tasks, at the tier attained or else at the lowest."""

    value: Share
    confidence: Share
    k: Count | None


class Stated(Part, frozen=True, kw_only=True):
    """What a passport's file says of itself, as far as a standing repeats it.

    `r_op` is the rate of success over all fault runs, null where there is none.
    """

    profile: Text
    reading: Literal["table", "bounded"]
    verdict: Text
    r_op: Share | None
    limit: Limit | None
    last_run: Time | None


class Fall(Part, frozen=True, kw_only=True):
    """What comparing with an `earlier` passport gave: the row that lost most, in its unit, and the trend."""

    earlier: Digest
    result: Result
    row: Text | None
    loss: float | None
    trend_loss: float | None
    trend_p: Share | None


class Ended(Part, frozen=True, kw_only=True):
    """What ended the passport; of several `revocations` the one for the gravest `reason`."""

    how: HowEnded
    reason: Reason | None
    at: Time
    revocations: Count


class Standing(Part, frozen=True, kw_only=True):
    """A lineage as of a log of `size` entries, by its latest passport.

    `stated` is null where the passport's file is not here. `attempt` counts distinct evidence under the
    profile, and `passports` those that were logged since `first`.
    """

    passport_id: Digest
    tier: Tier
    status: PassportStanding
    stated: Stated | None
    not_after: Time
    attempt: Positive
    passports: Positive
    first: Time
    drift: Fall | None
    ended: Ended | None
    size: Count
    root: Hash
    at: Time

    @property
    def sentence(self) -> str:
        """The standing in words."""
        return "; ".join(filter(None, self._parts()))

    def _parts(self) -> Iterable[str]:
        stated = self.stated
        tier = f"Tier {self.tier}" if self.tier else "no tier"
        if stated is None:
            yield f"{tier}; the passport's file is not here"
        else:
            verdict = stated.verdict.replace("_", " ")
            yield f"{tier} by the {stated.reading} reading of {stated.profile}, {verdict}"
            if (limit := stated.limit) is not None:
                tasks = "" if limit.k is None else f" on {many(limit.k, 'task')}"
                yield f"r_op at least {limit.value:.3f} with {limit.confidence:.4g} confidence{tasks}"
            if stated.last_run is not None:
                yield f"last run {many((self.at - stated.last_run).days, 'day')} ago"
        left = (self.not_after - self.at).days
        yield (f"valid for {many(left, 'more day')}" if left >= 0 else f"expired {many(-left, 'day')} ago")
        yield f"attempt {self.attempt}, {many(self.passports, 'passport')} since {self.first:%Y-%m-%d}"
        if self.drift is not None:
            yield from self._fall(self.drift)
        if (ended := self.ended) is not None:
            why = f" ({ended.reason})" if ended.reason else ""
            more = f", {ended.revocations} revocations" if ended.revocations > 1 else ""
            yield f"{ended.how} on {ended.at:%Y-%m-%d}{why}{more}"

    def _fall(self, fall: Fall) -> Iterable[str]:
        most = "" if fall.row is None or fall.loss is None else f", {fall.row} {_lost(fall.loss)}"
        yield f"against passport {fall.earlier[7:19]}: {fall.result}{most}"
        if fall.trend_loss is not None and fall.trend_p is not None:
            yield f"trend of r_op: {_lost(fall.trend_loss)} (p {fall.trend_p:.2g})"


def _lost(loss: float) -> str:
    return f"{'gained' if loss < 0 else 'lost'} {abs(loss):.3f}"


def _rate(predicate: Predicate) -> float | None:
    faults = [cell for cell in predicate.profile_of_reliability.cells if cell.condition != NOMINAL]
    runs = sum(cell.runs for cell in faults)
    return sum(cell.successes for cell in faults) / runs if runs else None


def _limit(predicate: Predicate) -> Limit | None:
    tiers = next((row.tiers for row in predicate.criteria if row.metric == "r_op"), {})
    key = str(predicate.assessment.tier) if predicate.assessment.tier else min(tiers, default="")
    bounded = tiers[key].bounded if key in tiers else None
    if bounded is None or bounded.bound is None or isinstance(bounded.bound, bool):
        return None
    return Limit(value=float(bounded.bound), confidence=float(bounded.confidence), k=bounded.k)


def standing_of(log: Reader, history: History, *, at: datetime) -> Standing:
    """Return the standing of a lineage while its log is open; `at` is for validity and ages.

    Of passports whose file is not here, or cannot be read, nothing is compared.
    """
    latest, head = history.passports[-1], log.head.checkpoint
    ending = latest.ending
    dates = {logged.index: logged.found.entry.issued_at for logged in history.entries}
    return Standing(
        passport_id=latest.claims.passport_id,
        tier=latest.claims.tier,
        status=latest.standing(timestamp(at)),
        stated=stated_in(log, latest),
        not_after=moment(latest.claims.not_after),
        attempt=latest.claims.attempt,
        passports=len(history.passports),
        first=moment(history.passports[0].issued_at),
        drift=_fall(log, history.passports),
        ended=None
        if ending is None
        else Ended(
            how=ending.how,
            reason=ending.reason,
            at=moment(dates[ending.index]),
            revocations=len(latest.reasons),
        ),
        size=head.size,
        root=head.root.hex(),
        at=at.astimezone(UTC),
    )


def stated_in(log: Reader, issued: Issued) -> Stated | None:
    """Return what a logged passport's file says, None where it is not here or cannot be read."""
    data = log.passport(issued.file.sha256)
    if data is None:
        return None
    try:
        predicate = opening.parse(data).unverified_statement().predicate
    except CertkitError:
        return None
    judged = predicate.assessment
    return Stated(
        profile=judged.profile.id,
        reading=judged.profile.reading,
        verdict=judged.status,
        r_op=_rate(predicate),
        limit=_limit(predicate),
        last_run=predicate.scope.dates.last_run,
    )


def _fall(log: Reader, passports: Sequence[Issued]) -> Fall | None:
    """Return what the last of some passports lost against an earlier one, None where there is none."""
    line, latest = Line(), passports[-1]
    for issued in passports:
        line.add(issued.claims.evidence, issued.file.sha256)
    files = [*line.before(latest.claims.evidence), latest.file.sha256]
    told = compared(log.passport(file) for file in files if file)
    if told is None:
        return None
    earlier, drift = told
    lost = [row for row in drift.behaviour if row.difference is not None]
    worst = max(lost, key=lambda row: row.difference or 0.0, default=None)
    return Fall(
        earlier=earlier,
        result=drift.result,
        row=None if worst is None else worst.name,
        loss=None if worst is None else worst.difference,
        trend_loss=drift.trend.loss if drift.trend else None,
        trend_p=drift.trend.probability if drift.trend else None,
    )


class Query(NamedTuple):
    """Which passports are looked for; None asks nothing.

    `agent` is a lineage, a part of one, or a digest or its first digits; `profile` is likewise a digest.
    Passports in force are `expiring` that are not valid after a time, as entries write it.
    """

    agent: str | None = None
    tier: int | None = None
    profile: str | None = None
    status: str | None = None
    expiring: str | None = None

    def takes(self, issued: Issued, now: str) -> bool:
        """Tell whether a passport is one of those that are looked for, at a time as entries write it."""
        claims, standing = issued.claims, issued.standing(now)
        return (
            (self.agent is None or self.agent in issued.lineage or begins(claims.agent, self.agent))
            and self.tier in {None, claims.tier}
            and (self.profile is None or begins(claims.profile, self.profile))
            and self.status in {None, standing}
            and (self.expiring is None or (standing == "current" and claims.not_after <= self.expiring))
        )


def ranked(log: Reader, passports: Iterable[Issued], now: str) -> list[tuple[Issued, Stated | None, str]]:
    """Return passports with what they state: those in force by their limit, the highest first; then others.

    The others have a label: how they stand, ``contested``, ``drifted``, or ``not here`` where the file is
    missing. The label of a passport in force is empty.
    """
    rows = []
    for issued in passports:
        said, standing = stated_in(log, issued), issued.standing(now)
        rows.append((issued, said, _label(issued, said, standing)))

    def place(row: tuple[Issued, Stated | None, str]) -> tuple[bool, float, int]:
        limit = row[1].limit.value if row[1] is not None and row[1].limit is not None else -1.0
        return bool(row[2]), -limit, row[0].index

    return sorted(rows, key=place)


def _label(issued: Issued, said: Stated | None, standing: str) -> str:
    if standing != "current":
        return standing
    if said is None:
        return "not here"
    if said.verdict == "contested":
        return "contested"
    return "drifted" if issued.drift == "DRIFTED" else ""
