"""Evidence from runs, without a disk: facts, summaries, and what is judged of them.

judged(GOOD, tier=3).assessment.verdict.tier
judged(runs(20, 14))                      # twenty runs under a fault, fourteen good, of ten tasks
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import gammaln

from certkit.assessment.assessment import Answer, Question
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.profile_file import load_profile
from certkit.bundle.manifest import Manifest
from certkit.bundle.manifest_facts import facts_of
from certkit.record.columns import Columns
from certkit.record.faults import Faults
from certkit.record.reader import RecordReader
from certkit.summary.finish import finish
from certkit.summary.reduce import reduce
from certkit.summary.summary import Traces
from tests.support import bundles
from tests.support.extremes import GOOD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from certkit.assessment.assessment import Finding, Row
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts, IntegrityFacts
    from certkit.summary.summary import Summary
    from tests.support.bundles import Run

__all__ = ["GOOD"]

DIGEST: Final = "sha256:" + "0" * 64
AGENT: Final[dict[str, Any]] = {
    "name": "courier",
    "version": "1.0",
    "components": [{"role": "model", "name": "m", "digest": "sha256:" + "1" * 64}],
}
PROTOCOL: Final[dict[str, Any]] = {
    "origin": "measured",
    "methodology": "trajectory",
    "temperature": 0,
    "judge": {"name": "j", "independent": True},
    "memory_observable": True,
    "cascade_definition": "simultaneous",
    "tasks_independent": True,
    "attempt": 1,
    "evaluator": {"name": "lab", "relation": "independent"},
    "period": {"from": "2026-01-01", "to": "2026-01-31"},
}


def facts(
    *,
    sealed: bool = True,
    agent: Mapping[str, Any] | None = None,
    attested: Iterable[Mapping[str, Any]] = (),
    imported: Mapping[str, Any] | None = None,
    integrity: IntegrityFacts | None = None,
    **protocol: Any,
) -> Facts:
    """Facts of a well-documented bundle; keyword arguments replace protocol facts, None leaves one out."""
    stated = {key: value for key, value in {**PROTOCOL, **protocol}.items() if value is not None}
    document = {
        "schema": "urn:certkit:bundle:v1",
        "agent": AGENT if agent is None else agent,
        "protocol": stated,
        "attested": tuple(attested),
        "imported": imported,
    }
    manifest = Manifest.model_validate(document, strict=False)
    return facts_of(manifest, agent_digest=DIGEST, digest=DIGEST, sealed=sealed, integrity=integrity)


def profile(name: str = "hb-eval-2026") -> Profile:
    return load_profile(name)


def summary(records: Sequence[Run], *, observable: bool = True, **options: Any) -> Summary:
    """The summary of records, which are read as those of a bundle are."""
    columns = RecordReader().read(bundles.lines(records)) if records else Columns.of_records(())
    assert not isinstance(columns, Faults), columns
    partial = reduce(columns, None)
    # No trace is enclosed here, unless the options say so.
    traces = Traces(named=partial.count("traced"), bare=partial.count("derived"))
    given: dict[str, Any] = {"memory_observable": observable, "traces": traces, **options}
    return finish(partial, **given)


def judged(
    evidence: Sequence[Run] | Summary,
    table: str | Profile = "hb-eval-2026",
    *,
    tier: int = 1,
    strict: bool = False,
    answers: Iterable[Answer] = (),
    **stated: Any,
) -> Evaluation:
    """Judge records or a summary; `stated` is as `facts` takes it."""
    known = facts(**stated)
    if isinstance(evidence, list):
        evidence = summary(evidence, observable=known.protocol.memory_observable is True)
    question = Question(required_tier=tier, strict=strict, answers=tuple(answers))
    return evaluate(evidence, known, load_profile(table) if isinstance(table, str) else table, question)  # type: ignore[arg-type]


def runs(
    n: int,
    good: int,
    condition: str = "stochastic",
    *,
    domain: str = "a",
    tasks: int = 10,
    name: str = "",
    **fields: Any,
) -> list[Run]:
    """`n` runs of so many tasks of which the first `good` succeed."""
    return [
        bundles.run(
            f"{name}{domain}-{condition}-{i}",
            domain=domain,
            task_id=f"{name}{domain}/{i % tasks}",
            condition=condition,
            outcome="success" if i < good else "failure",
            **fields,
        )
        for i in range(n)
    ]


def row(evaluation: Evaluation, name: str, tier: int = 1) -> Row:
    return next(item for item in evaluation.assessment.criteria if (item.id, item.tier) == (name, tier))


def lost(evaluation: Evaluation) -> set[tuple[str, int]]:
    """The rows that are specified and that averages do not meet."""
    rows = evaluation.assessment.criteria
    return {(row.id, row.tier) for row in rows if row.status not in {"met", "not_applicable"}}


def finding(evaluation: Evaluation, code: str) -> Finding | None:
    return next((item for item in evaluation.assessment.findings if item.code == code), None)


def codes(evaluation: Evaluation) -> set[str]:
    return {item.code for item in evaluation.assessment.findings}


def binomial_tail(s: int, n: int, tau: float) -> float:
    """P(θ > τ) for Beta(1 + s, 1 + n - s) by the binomial identity P(Bin(n + 1, τ) ≤ s), term by term."""
    k = np.arange(s + 1)
    choices = gammaln(n + 2) - gammaln(k + 1) - gammaln(n + 2 - k)
    return float(np.exp(choices + k * log(tau) + (n + 1 - k) * log(1 - tau)).sum())
