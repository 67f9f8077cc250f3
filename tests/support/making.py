"""Passports for tests: issued from a summary made by hand, or from a small bundle on disk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from certkit import workflow
from certkit.assessment.assessing import assess
from certkit.bundle.folder import open_bundle, seal
from certkit.ground import canonical
from certkit.passport import keys
from certkit.passport.issuing import VALIDITY, Issuer, issue
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.summary.summarise import summarise
from tests.support import build, bundles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from certkit.assessment.result import Assessment
    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Passport
    from certkit.summary.summary import Summary

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = keys.generate("ed25519")
ISSUER = Issuer(name="Example Lab", relation_to_evaluator="same")


def issued(summary: Summary | None = None, *, key: PrivateKey = KEY, **facts: Any) -> Passport:
    """Return a passport of the strong agent, or of the agent of `summary`, issued at `NOW` for 90 days."""
    if summary is None:
        summary, judged = _strong(canonical.line(facts))
    else:
        judged = build.judged(summary, **facts)
    return issue(
        judged,
        summary,
        issuer=ISSUER,
        key=key,
        not_before=NOW,
        not_after=NOW + VALIDITY,
    )


@cache
def _strong(facts: bytes) -> tuple[Summary, Assessment]:
    """Judge the strong agent under facts in JSON once: most of what a test of passports costs."""
    summary = build.strong()
    return summary, build.judged(summary, **canonical.loads(facts))


def trust(key: PrivateKey = KEY, **more: Any) -> Trust:
    trusted = TrustedKey(pem=keys.public_pem(key.public_key()))
    issuer = TrustedIssuer(name="Example Lab", keys=(trusted,))
    return Trust(issuers=(issuer,), **more)


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
    seal(root)
    return root


def of_bundle(
    root: Path, *, key: PrivateKey = KEY, profile: str = "hb-eval-2026", now: datetime = NOW
) -> Passport:
    bundle = open_bundle(root)
    summary = summarise(bundle)
    judged = assess(summary, bundle.facts, workflow.load_profile(profile))
    return issue(judged, summary, issuer=ISSUER, key=key, not_before=now, not_after=now + timedelta(days=30))
