"""From a manifest to the facts that are judged and signed: no paths, no prose, no salt."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from certkit.bundle.facts import Facts, IntegrityFacts, read_facts
from certkit.ground import canonical
from certkit.ground.document import to_builtins

if TYPE_CHECKING:
    from certkit.bundle.manifest import Manifest, Protocol

_CASCADES: Final = {"simultaneous", "sequential"}


def facts_of(
    manifest: Manifest,
    *,
    agent_digest: str,
    digest: str,
    sealed: bool,
    integrity: IntegrityFacts | None = None,
    bundles: tuple[str, ...] = (),
    plan: str | None = None,
) -> Facts:
    """Return the facts of a manifest.

    Args:
        manifest: as it was read; of several bundles, the one that holds for all.
        agent_digest: of the canonical agent object.
        digest: of the bundle, or of several pooled.
        sealed: whether every file is listed.
        integrity: counts of commitment integrity.
        bundles: the digests of pooled bundles, in the order of time.
        plan: digest of the plan that is enclosed.
    """
    agent = manifest.agent
    period = manifest.protocol.period
    imported = manifest.imported
    notes: Counter[str] = Counter()
    for note in imported.notes if imported else ():
        notes[note.kind] += note.count
    value = {
        "agent": {
            "name": agent.name,
            "version": agent.version,
            "provider": agent.provider,
            "digest": agent_digest,
            "components": [
                {"role": part.role, "name": part.name, "version": part.version, "digest": part.digest}
                for part in agent.components
            ],
        },
        "protocol": _protocol(manifest.protocol, plan),
        "period": None if period is None else {"from": period.from_, "to": period.to},
        "attested": [{"id": item.id, "value": item.value, "n": item.n} for item in manifest.attested],
        "imported": None if imported is None else {"format": imported.format, "notes": dict(notes)},
        "digest": digest,
        "sealed": sealed,
        "integrity": None if integrity is None else to_builtins(integrity),
        "bundles": list(bundles),
    }
    return read_facts(value)


def _protocol(protocol: Protocol, plan: str | None) -> dict[str, object]:
    """Return the protocol without prose: a definition in words is `other`, a rule in words is its digest.

    A plan that the manifest names and the bundle does not enclose is stated, and no more.
    """
    stated: dict[str, object] = protocol.model_dump(
        mode="json", exclude={"period", "plan_seed", "task_salt", "embedding"}, exclude_none=True
    )
    if stated.get("cascade_definition", "sequential") not in _CASCADES:
        stated["cascade_definition"] = "other"
    if (rule := stated.pop("success_rule", None)) is not None:
        stated["success_rule"] = canonical.digest(str(rule).encode())
    if (named := stated.get("plan")) is not None and named != plan:
        stated["plan_stated"] = stated.pop("plan")
    return stated
