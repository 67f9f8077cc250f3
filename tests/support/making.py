"""Passports for tests: issued from a summary made by hand, or from a small bundle on disk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from certkit import assessment, canonical, evidence, passport, workflow
from certkit.passport import keys
from tests.support import build, bundles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from certkit.evidence.summary.summary import Summary
    from certkit.passport.keys import PrivateKey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = keys.generate("ed25519")
ISSUER = passport.Issuer(name="Example Lab", relation_to_evaluator="same")


def issued(summary: Summary | None = None, *, key: PrivateKey = KEY, **facts: Any) -> passport.Passport:
    """Return a passport of the strong agent, or of the agent of `summary`, issued at `NOW` for 90 days."""
    if summary is None:
        summary, judged = _strong(canonical.line(facts))
    else:
        judged = build.judged(summary, **facts)
    return passport.issue(
        judged,
        summary,
        issuer=ISSUER,
        key=key,
        not_before=NOW,
        not_after=NOW + passport.VALIDITY,
    )


@cache
def _strong(facts: bytes) -> tuple[Summary, assessment.Assessment]:
    """Judge the strong agent under facts in JSON once: most of what a test of passports costs."""
    summary = build.strong()
    return summary, build.judged(summary, **canonical.loads(facts))


def trust(key: PrivateKey = KEY, **more: Any) -> passport.Trust:
    trusted = passport.TrustedKey(pem=keys.public_pem(key.public_key()))
    issuer = passport.TrustedIssuer(name="Example Lab", keys=(trusted,))
    return passport.Trust(issuers=(issuer,), **more)


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
    bundles.of(root, runs() if records is None else records)
    evidence.seal(root)
    return root


def of_bundle(root: Path, *, key: PrivateKey = KEY, profile: str = "hb-eval-2026") -> passport.Passport:
    bundle = evidence.open_bundle(root)
    summary = evidence.summarise(bundle)
    judged = assessment.assess(summary, bundle.facts, workflow.load_profile(profile))
    return passport.issue(
        judged, summary, issuer=ISSUER, key=key, not_before=NOW, not_after=NOW + timedelta(days=30)
    )
