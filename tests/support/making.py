"""Passports for tests: of a simulated agent that is said to be measured, or of a small bundle on disk."""

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
from certkit.passport import keys
from certkit.passport.issue import VALIDITY, issue
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.simulation.simulate import simulate
from certkit.summary.summarise import summarise
from tests.support import bundles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.bundle.facts import Facts
    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.summary.summary import Summary

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = keys.generate("ed25519")
ISSUER = "Example Lab"


@cache
def read() -> tuple[Facts, Summary]:
    """Return facts and summary of a Tier 2 agent called courier, simulated and said to be measured."""
    with tempfile.TemporaryDirectory() as folder:
        simulate(Path(folder) / "b", seed=3, runs=300, domains=2, tier_target=2, agent="courier")
        bundle = open_bundle(Path(folder) / "b")
        facts, summary = bundle_facts(bundle), summarise(bundle)
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
