"""The parts of a statement that repeat a bundle's manifest: agent, protocol, origin and declared period.

`claim` states them, and a verification with the bundle at hand compares them (`checks`), so that an issuer
cannot drop the mark of simulated evidence, or an attempt, without the records being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from certkit.document import fill
from certkit.passport import statement as st
from certkit.passport import terms

if TYPE_CHECKING:
    from certkit.evidence.bundle.manifest import Facts, Manifest


class Declared(Struct, frozen=True, kw_only=True):
    """What a manifest declares; `periods` are those of pooled bundles, by their digests."""

    origin: terms.Origin
    agent: st.Agent
    protocol: st.Protocol
    periods: dict[str, st.Dates]


def declared(facts: Facts, parts: tuple[Facts, ...] = ()) -> Declared:
    """Return what the manifest of a bundle declares, or that of several pooled, which are `parts`."""
    return Declared(
        origin=facts.manifest.protocol.origin,
        agent=agent(facts),
        protocol=protocol(facts.manifest),
        periods={part.digest: period(part.manifest) for part in (facts, *parts)},
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
