"""Passports for tests: of a small simulated bundle, issued, edited and signed again by the same key."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from certkit.assessment.evaluation import evaluate
from certkit.assessment.profile_file import load_profile
from certkit.ground import canonical
from certkit.passport import envelope
from certkit.passport.evidence import BundleEvidence
from certkit.passport.exports import View
from certkit.passport.verify import verify
from certkit.simulation.simulate import simulate
from tests.support import making
from tests.support.making import KEY, NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.assessment import Question
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.passport.trust import Trust
    from certkit.passport.verify import Verification
    from certkit.summary.summary import Summary

__all__ = ["KEY", "NOW"]

LATER = NOW + timedelta(days=1)


class Held:
    """A bundle that was read once."""

    def __init__(self, facts: Facts, summary: Summary) -> None:
        self.held = facts, summary

    def facts(self, core_conditions: tuple[str, ...]) -> Facts:
        assert core_conditions == self.held[1].core_conditions
        return self.held[0]

    def summary(self, core_conditions: tuple[str, ...]) -> Summary:
        assert core_conditions == self.held[1].core_conditions
        return self.held[1]


@cache
def bundle() -> Path:
    """Return a sealed simulated bundle that every test of the session reads."""
    folder = Path(tempfile.mkdtemp(prefix="certkit-")) / "bundle"
    simulate(folder, seed=3, runs=100, domains=2, tier_target=1)
    return folder


@cache
def evidence() -> Held:
    """Return the simulated bundle, read once."""
    read = BundleEvidence([bundle()])
    return Held(read.facts(), read.summary())


def evaluation(profile: Profile | None = None, question: Question | None = None) -> Evaluation:
    """Return the evaluation of the simulated bundle."""
    facts, summary = evidence().held
    return evaluate(summary, facts, profile or load_profile("hb-eval-2026"), question)


def held(judged: Evaluation | None = None) -> Held:
    """Return the evidence of an evaluation without its folder."""
    judged = judged or evaluation()
    return Held(judged.facts, judged.summary)


def issued(judged: Evaluation | None = None, *, key: PrivateKey = KEY, **more: Any) -> Passport:
    """Return a passport, issued at `NOW` for 90 days; by default of the simulated bundle."""
    return making.issued(judged or evaluation(), key=key, **{"relation_to_evaluator": None, **more})


def document(judged: Evaluation | None = None) -> dict[str, Any]:
    """Return the statement of a passport as JSON values."""
    value: dict[str, Any] = canonical.loads(issued(judged).payload)
    return value


def signed(statement: Any, key: PrivateKey = KEY) -> bytes:
    """Return a statement in JSON values as a passport."""
    return canonical.line(envelope.seal(canonical.line(statement), key))


def edited(change: Callable[[dict[str, Any]], object], judged: Evaluation | None = None) -> bytes:
    """Return a passport whose issuer changed its predicate and signed it again."""
    statement = document(judged)
    change(statement["predicate"])
    return signed(statement)


def trust(key: PrivateKey = KEY, **more: Any) -> Trust:
    """Return a policy that trusts one key, and takes specimens unless told otherwise."""
    return making.trust(key, **{"accept_specimens": True, **more})


def verified(data: bytes | None = None, **more: Any) -> Verification:
    """Return the verification of a passport a day after it was issued."""
    given = {"trust": trust(), "at": LATER, **more}
    return verify(issued().to_json() if data is None else data, **given)


def measured(**changes: Any) -> Any:
    """Return the evaluation as if its evidence were measured."""
    judged = evaluation()
    protocol = structs.replace(judged.facts.protocol, origin="measured")
    facts = structs.replace(judged.facts, protocol=protocol, **changes)
    return evaluate(judged.summary, facts, judged.profile)


def viewed(judged: Any = None, *, checked: bool = True) -> View:
    """Return what exports show of a passport, verified or not."""
    passport = issued(judged or measured())
    statement = passport.unverified_statement()
    return View(
        evaluation=statement.predicate.evaluation,
        passport_id=passport.passport_id,
        issuer=statement.predicate.issuer.name,
        validity=statement.predicate.validity,
        verification=verified(passport.to_json()) if checked else None,
    )
