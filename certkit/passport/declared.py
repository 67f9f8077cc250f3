"""The parts of a statement that repeat a bundle's manifest: agent, protocol, origin and declared periods.

`claim` states them, and a verification with the bundle at hand writes them again and compares (`checks`), so
that an issuer cannot drop the mark of simulated evidence, or an attempt, without the records being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from certkit.document import fill
from certkit.passport import statement as st
from certkit.passport import terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.evidence.bundle.manifest import Facts, Manifest


def restated(predicate: st.Predicate, facts: Facts, parts: Iterable[Facts] = ()) -> st.Predicate:
    """Return a claim as the manifest of its bundle has it, or those of several pooled, which are `parts`."""
    evidence, scope = predicate.evidence, predicate.scope
    periods: dict[str, st.Dates] = {part.digest: period(part.manifest) for part in (facts, *parts)}

    def dated(digest: str, dates: st.Dates) -> st.Dates:
        told = periods.get(digest, st.Dates())
        return st.Dates(
            first_run=dates.first_run,
            last_run=dates.last_run,
            declared_from=told.declared_from,
            declared_to=told.declared_to,
        )

    bundles = evidence.bundles and tuple(
        structs.replace(part, dates=dated(part.digest, part.dates)) for part in evidence.bundles
    )
    return structs.replace(
        predicate,
        origin=facts.manifest.protocol.origin,
        agent=agent(facts),
        protocol=protocol(facts.manifest),
        evidence=structs.replace(evidence, bundles=bundles),
        scope=structs.replace(scope, dates=dated(evidence.digest, scope.dates)),
    )


def agent(facts: Facts) -> st.Agent:
    """Return the agent as a statement names it."""
    named = facts.manifest.agent
    components = (fill(st.Component, part, pinned=part.digest is not None) for part in named.components)
    return fill(st.Agent, named, digest=facts.agent_digest, components=tuple(components))


def protocol(manifest: Manifest) -> st.Protocol:
    """Return how the evidence was gathered, as a statement repeats it."""
    told = manifest.protocol
    return fill(
        st.Protocol,
        told,
        temperature=terms.decimal(told.temperature),
        judge=told.judge and msgspec.convert(told.judge, st.Judge, from_attributes=True),
        evaluator=told.evaluator and msgspec.convert(told.evaluator, st.Evaluator, from_attributes=True),
    )


def period(manifest: Manifest) -> st.Dates:
    """Return the declared period."""
    told = manifest.protocol.period
    return st.Dates(declared_from=told.from_, declared_to=told.to) if told else st.Dates()
