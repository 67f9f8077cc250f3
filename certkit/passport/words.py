"""What exports and screens say of a passport in the same words: tiers, times, what it is not."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

from certkit.ground import wording
from certkit.ground.text import visible

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.passport.statement import Commitments, Predicate

SPECIMEN: Final = "SPECIMEN"

NOTICE: Final = (
    "A copy of the claim of an agent passport, and no evidence. To know whether the passport is genuine and "
    "still stands, verify the passport itself, which its id names."
)
IS_NOT: Final = (
    "a statement that the agent is safe, or fit for another use, domain or version than those named",
    "evidence: that is the bundle, from which 'certkit verify --bundle --replay' computes the claim again",
    "proof that it still stands: whether it was revoked or superseded is the registry's to say",
)

_LONGEST: Final = 120


def above(predicate: Predicate) -> tuple[str, ...]:
    """Return what stands above the claim: the tier by each reading, and every serious challenge."""
    judgement = predicate.assessment
    return (
        wording.readings(judgement.table.tier, judgement.bounded.tier, decides=judgement.profile.reading),
        *(
            wording.challenge(one_line(item.code), item.state, one_line(item.message), item.answered_by or ())
            for item in predicate.challenges
            if item.severity == "serious"
        ),
    )


def utc(moment: datetime) -> str:
    """Return an aware time as RFC 3339 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def day(moment: datetime) -> str:
    """Return an aware time as its date in UTC where a day begins with it, else as `utc` does."""
    return utc(moment).removesuffix("T00:00:00Z")


def one_line(text: str) -> str:
    """Return foreign text on one line, of bounded length, with nothing in it that a reader cannot see."""
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def short(digest: str) -> str:
    """Return the beginning of a digest, for where the whole of it does not fit."""
    return digest[: len("sha256:") + 12]


def commitments(stated: Commitments) -> str:
    """Return success and commitment integrity in one line; they move no tier."""
    successes, tasks, matched, probes = (
        sum(getattr(cell, name) for cell in stated.cells)
        for name in ("successes", "tasks", "matched", "probes")
    )
    core = stated.core or "unmeasured"
    if stated.raters:
        core += f" by the ratings of {wording.many(stated.raters, 'rater')}"
    return f"success {successes:,}/{tasks:,}, held {matched:,}/{probes:,}, core {core}; {stated.seed} tasks"
