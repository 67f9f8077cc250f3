"""Passports for tests, of two agents: the courier, and the specimen.

The courier is a strong agent whose simulated records are said to be measured; no bundle holds them. The
specimen is a small simulated bundle on disk, which a verifier can replay; its passports can be edited and
signed again by the same key.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from certkit.assessment.assessment import Question
from certkit.assessment.bundles import assess_bundles, bundle_facts
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.profile_file import load_profile
from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.passport import envelope, keys
from certkit.passport.evidence import BundleEvidence
from certkit.passport.exports import View
from certkit.passport.issue import VALIDITY, issue
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.verify import verify
from certkit.simulation.simulate import simulate
from certkit.summary.summarise import summarise
from tests.support import bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.passport.verify import Verification
    from certkit.summary.summary import Summary

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
KEY = keys.generate("ed25519")
ISSUER = "Example Lab"


@cache
def read() -> tuple[Facts, Summary]:
    """Return facts and summary of a Tier 2 agent called courier, simulated and said to be measured."""
    with tempfile.TemporaryDirectory() as folder:
        simulate(Path(folder) / "b", seed=3, runs=300, domains=2, tier_target=2, agent="courier")
        bundle = open_bundle(Path(folder) / "b")
        summary = summarise(bundle)
        facts = bundle_facts(bundle, summary)
    protocol = structs.replace(facts.protocol, origin="measured", attempt=1, evaluator=None)
    return structs.replace(facts, protocol=protocol), summary


def evaluation(
    summary: Summary | None = None,
    *,
    profile: str = "hb-eval-2026",
    tier: int = 1,
    strict: bool = False,
    digest: str | None = None,
    agent_digest: str | None = None,
    sealed: bool = True,
    **protocol: Any,
) -> Evaluation:
    """Return the evaluation of the strong agent, or of a summary under its facts; members may differ."""
    facts, own = read()
    facts = structs.replace(
        facts,
        sealed=sealed,
        digest=digest or facts.digest,
        agent=structs.replace(facts.agent, digest=agent_digest or facts.agent.digest),
        protocol=structs.replace(facts.protocol, **protocol),
    )
    question = Question(required_tier=tier, strict=strict)
    return evaluate(own if summary is None else summary, facts, load_profile(profile), question)


def issued(judged: Evaluation | None = None, *, key: PrivateKey = KEY, **more: Any) -> Passport:
    """Return a passport of the strong agent, or of another evaluation, issued at `NOW` for 90 days."""
    given = {
        "issuer": ISSUER,
        "relation_to_evaluator": "same",
        "not_before": NOW,
        "not_after": NOW + VALIDITY,
        **more,
    }
    return issue(_strong() if judged is None else judged, key=key, **given)


@cache
def _strong() -> Evaluation:
    return evaluation()


def trust(key: PrivateKey = KEY, **more: Any) -> Trust:
    """Return a policy that trusts one key under the name `ISSUER`."""
    trusted = TrustedKey(pem=keys.public_pem(key.public_key()))
    return Trust(issuers=(TrustedIssuer(name=ISSUER, keys=(trusted,)),), **more)


def runs(successes: int = 12) -> list[bundles.Run]:
    """Return twenty runs in one domain: four nominal, sixteen adversarial, `successes` of these good."""
    nominal = [bundles.run(f"n{i}", task_id=f"d/{i}", sequence=i) for i in range(4)]
    return nominal + [
        bundles.run(
            f"f{i}",
            task_id=f"d/{i % 4}",
            condition="adversarial",
            sequence=4 + i,
            outcome="success" if i < successes else "failure",
            violations=i % 3,
        )
        for i in range(16)
    ]


def sealed_bundle(root: Path, records: Iterable[bundles.Run] | None = None) -> Path:
    """Write a small bundle and seal it."""
    bundles.of(root, runs() if records is None else records)
    seal(root)
    return root


def of_bundle(
    root: Path, *, key: PrivateKey = KEY, profile: str = "hb-eval-2026", now: datetime = NOW
) -> Passport:
    """Return a passport of a bundle on disk."""
    judged = assess_bundles(root, profile)
    return issue(judged, issuer=ISSUER, key=key, not_before=now, not_after=now + timedelta(days=30))


# The specimen


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


def specimen(profile: Profile | None = None, question: Question | None = None) -> Evaluation:
    """Return the evaluation of the simulated bundle."""
    if profile is None and question is None:
        return _evaluated()
    facts, summary = evidence().held
    return evaluate(summary, facts, profile or load_profile("hb-eval-2026"), question)


@cache
def _evaluated() -> Evaluation:
    facts, summary = evidence().held
    return evaluate(summary, facts, load_profile("hb-eval-2026"))


def held(judged: Evaluation | None = None) -> Held:
    """Return the evidence of an evaluation without its folder."""
    judged = judged or specimen()
    return Held(judged.facts, judged.summary)


def specimen_passport(judged: Evaluation | None = None, *, key: PrivateKey = KEY, **more: Any) -> Passport:
    """Return a passport, issued at `NOW` for 90 days; by default of the simulated bundle."""
    if judged is None and key is KEY and not more:
        return _specimen()
    return issued(judged or specimen(), key=key, **{"relation_to_evaluator": None, **more})


@cache
def _specimen() -> Passport:
    return issued(specimen(), relation_to_evaluator=None)


def document(judged: Evaluation | None = None) -> dict[str, Any]:
    """Return the statement of a passport as JSON values."""
    value: dict[str, Any] = canonical.loads(specimen_passport(judged).payload)
    return value


def signed(statement: Any, key: PrivateKey = KEY) -> bytes:
    """Return a statement in JSON values as a passport."""
    return canonical.line(envelope.seal(canonical.line(statement), key))


def edited(change: Callable[[dict[str, Any]], object], judged: Evaluation | None = None) -> bytes:
    """Return a passport whose issuer changed its predicate and signed it again."""
    statement = document(judged)
    change(statement["predicate"])
    return signed(statement)


def lenient(key: PrivateKey = KEY, **more: Any) -> Trust:
    """Return a policy that trusts one key, and takes specimens unless told otherwise."""
    return trust(key, **{"accept_specimens": True, **more})


def verified(data: bytes | None = None, **more: Any) -> Verification:
    """Return the verification of a passport a day after it was issued."""
    given = {"trust": lenient(), "at": LATER, **more}
    return verify(specimen_passport().to_json() if data is None else data, **given)


def measured(**changes: Any) -> Any:
    """Return the evaluation as if its evidence were measured."""
    judged = specimen()
    protocol = structs.replace(judged.facts.protocol, origin="measured")
    facts = structs.replace(judged.facts, protocol=protocol, **changes)
    return evaluate(judged.summary, facts, judged.profile)


def viewed(judged: Any = None, *, checked: bool = True) -> View:
    """Return what exports show of a passport, verified or not."""
    passport = specimen_passport(judged or measured())
    statement = passport.unverified_statement()
    return View(
        evaluation=statement.predicate.evaluation,
        passport_id=passport.passport_id,
        issuer=statement.predicate.issuer.name,
        validity=statement.predicate.validity,
        verification=verified(passport.to_json()) if checked else None,
    )
