"""What a statement repeats of its manifest, and how it differs from a claim that was computed again.

With the manifest at hand, agent, protocol, origin, declared periods and the digest of ``integrity/`` are
written again and compared, so that an issuer cannot drop the mark of simulated evidence, or an attempt,
without the records being read. After a replay (`claim`), the first row in which the claim
differs, or which it leaves out, is named. The digest of the assessment is not compared: its floating point
numbers may differ in the last bit between machines, the decimals of a statement do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, structs

from certkit.ground import canonical
from certkit.ground.document import fill
from certkit.passport import statement as st
from certkit.passport.payload import difference
from certkit.passport.statement import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.bundle.manifest import Facts, Manifest
    from certkit.ground.canonical import Digest
    from certkit.passport.statement import Statement

_FIRST: Final = ("criteria", "assessment", "profile_of_reliability", "scope", "integrity")
"""What a reader wants named where it differs; the rest follows from it or from the records."""


class Opened(Struct, frozen=True, kw_only=True):
    """A bundle whose files have the digests of its manifest, or several pooled, which are `parts`.

    Of several bundles the digest is that of their accumulation, whatever the order they were given in.
    `context` is the digest of the ``context.json`` that answers to challenges are compared with.
    """

    facts: Facts
    parts: tuple[Facts, ...] = ()
    context: Digest | None = None


def replay_difference(statement: Statement, recomputed: Statement) -> str | None:
    """Return the first place where the claim differs from what was recomputed, None where none does."""
    stated, again = statement.predicate.assessment, plain(recomputed.predicate)
    again["assessment"] |= {"digest": stated.digest, "tool": plain(stated.tool)}
    ordered = {name: again.pop(name) for name in _FIRST if name in again} | again
    return difference(plain(statement.predicate), ordered, "the evidence gives")


def manifest_difference(statement: Statement, opened: Opened) -> str | None:
    """Return the first place where a claim does not repeat the manifest of its evidence, else None."""
    predicate = statement.predicate
    told = restated(predicate, opened.facts, opened.parts)
    return difference(plain(predicate), plain(told), "the manifest says")


def restated(predicate: st.Predicate, facts: Facts, parts: Iterable[Facts] = ()) -> st.Predicate:
    """Return a claim as the manifest of its bundle has it, or those of several pooled, which are `parts`."""
    evidence, scope, integrity = predicate.evidence, predicate.scope, integrity_digest(facts)
    periods: dict[str, st.Dates] = {part.digest: period(part.manifest) for part in (facts, *parts)}

    def dated(digest: str, dates: st.Dates) -> st.Dates:
        told = periods.get(digest, st.Dates())
        return structs.replace(told, first_run=dates.first_run, last_run=dates.last_run)

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
        integrity=predicate.integrity
        and integrity
        and structs.replace(predicate.integrity, digest=integrity),
    )


def integrity_digest(facts: Facts) -> Digest | None:
    """Return the digest of the files under ``integrity/`` by path, None where there are none."""
    listed = {
        item.path: item.sha256 for item in facts.manifest.files or () if item.path.startswith("integrity/")
    }
    return canonical.digest(canonical.canonical(listed)) if listed else None


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
        temperature=canonical.decimal(told.temperature),
        judge=told.judge and msgspec.convert(told.judge, st.Judge, from_attributes=True),
        evaluator=told.evaluator and msgspec.convert(told.evaluator, st.Evaluator, from_attributes=True),
    )


def period(manifest: Manifest) -> st.Dates:
    """Return the declared period."""
    told = manifest.protocol.period
    return st.Dates(declared_from=told.from_, declared_to=told.to) if told else st.Dates()
