"""Facts of which no member is absent."""

from __future__ import annotations

from certkit.bundle.facts import (
    AgentFacts,
    AttestedFacts,
    ComponentFacts,
    EvaluatorFacts,
    Facts,
    ImportFacts,
    IntegrityCell,
    IntegrityFacts,
    JudgeFacts,
    PeriodFacts,
    ProtocolFacts,
)

DIGESTS = [f"sha256:{digit * 64}" for digit in "123456789"]
FACTS = Facts(
    agent=AgentFacts(
        name="courier",
        version="1.0",
        provider="Example",
        digest=DIGESTS[0],
        components=(ComponentFacts(role="model", name="m", version="2", digest=DIGESTS[1]),),
    ),
    protocol=ProtocolFacts(
        origin="measured",
        methodology="trajectory",
        temperature=0.5,
        judge=JudgeFacts(name="j", family="f", independent=True),
        memory_observable=True,
        cascade_definition="sequential",
        success="strict",
        success_rule=DIGESTS[2],
        tasks_independent=True,
        public_tasks=("a",),
        declared_runs=100,
        declared_mix={"nominal": 1.0},
        attempt=2,
        evaluator=EvaluatorFacts(name="Lab", relation="same"),
        plan=DIGESTS[3],
        plan_stated=DIGESTS[4],
    ),
    period=PeriodFacts(start="2026-01-01", end="2026-01-31"),
    attested=(AttestedFacts(id="transparency_index", value=0.9, n=40),),
    imported=ImportFacts(format="records", notes={"odd": 3}),
    digest=DIGESTS[5],
    sealed=True,
    integrity=IntegrityFacts(
        digest=DIGESTS[6],
        seed="stated",
        cells=(IntegrityCell(family="f", variant="v", tasks=4, successes=3, probes=8, matched=5),),
        core=0.25,
        hollow=1,
        successes=3,
        unanswered=2,
        asked=12,
        raters=2,
    ),
    bundles=(DIGESTS[7], DIGESTS[8]),
)
