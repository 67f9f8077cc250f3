"""The manifest of pooled bundles, made from those of each.

`differences` compares the fields of the protocol that must be equal before runs may be pooled. What bundles
state differently otherwise is not stated for the whole, and the difference is reported as a conflict. Of an
attested measurement the latest value counts, or the lowest where none is later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.evidence.bundle.manifest import Attested, Manifest, Period, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CLASS: Final = ("methodology", "success_rule", "judge", "cascade_definition", "memory_observable")
"""Fields of the protocol that must be equal in all bundles: the protocol class."""


def differences(left: Protocol, right: Protocol) -> Iterator[tuple[str, str, str]]:
    """Yield each field of the protocol class that differs, with both values in words."""
    for field in CLASS:
        first, second = getattr(left, field), getattr(right, field)
        if first != second:
            yield field, _words(first), _words(second)


def _words(value: Any) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{name} {share:g}" for name, share in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    if (name := getattr(value, "name", None)) is None:
        return repr(value)
    if hasattr(value, "relation"):
        return f"{name} ({value.relation or 'relation not stated'})"
    independent = "independent" if value.independent else "not independent"
    return f"{name} ({value.family}, {independent})" if value.family else f"{name} ({independent})"


def manifest(manifests: Sequence[Manifest], *, ordered: bool) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of bundles of one agent and one protocol class, and the conflicts among them.

    `ordered`: they are in the order of time.
    """
    attested, conflicts = _attested([item.attested for item in manifests], ordered=ordered)
    protocols = [item.protocol for item in manifests]
    stated = {name: [getattr(item, name) for item in protocols] for name in Protocol.model_fields}
    differing = [name for name, values in stated.items() if any(value != values[0] for value in values)]
    conflicts += [
        _conflict(name.replace("_", " "), list(enumerate(stated[name], 1)))
        for name in ("temperature", "evaluator", "declared_mix")
        if name in differing
    ]
    declared = stated["declared_runs"]
    protocol = protocols[0].model_copy(
        update=dict.fromkeys(differing)
        | {
            "origin": "simulated" if "simulated" in stated["origin"] else "measured",
            "declared_runs": None if None in declared else sum(declared),
            "attempt": max((number for number in stated["attempt"] if number is not None), default=None),
            "period": _period(stated["period"]),
        }
    )
    pooled = Manifest(
        schema=manifests[0].schema_, agent=manifests[0].agent, protocol=protocol, attested=tuple(attested)
    )
    return pooled, tuple(conflicts)


def _conflict(what: str, stated: Sequence[tuple[int, Any]]) -> str:
    return f"{what}: " + "; ".join(f"{_words(value)} in bundle {number}" for number, value in stated)


def _period(periods: Sequence[Period | None]) -> Period | None:
    """Return the period over all bundles; a start or end that a bundle does not state is left out."""
    known = [item for item in periods if item is not None]
    if len(known) < len(periods):
        return None
    starts = [(start, item.from_) for item in known if (start := item.span[0]) is not None]
    ends = [(end, item.to) for item in known if (end := item.span[1]) is not None]
    return Period.model_validate(
        {
            "from": min(starts)[1] if len(starts) == len(periods) else None,
            "to": max(ends)[1] if len(ends) == len(periods) else None,
        }
    )


def _attested(stated: Sequence[Sequence[Attested]], *, ordered: bool) -> tuple[list[Attested], list[str]]:
    """Return each attested measurement once, and the conflicts."""
    by_id: dict[str, list[tuple[int, Attested]]] = {}
    for number, items in enumerate(stated, 1):
        for item in items:
            by_id.setdefault(item.id, []).append((number, item))
    conflicts = [
        _conflict(f"attested {name}", [(number, item.value) for number, item in items])
        for name, items in by_id.items()
        if any(item.value != items[0][1].value for _, item in items)
    ]
    kept = [
        items[-1][1] if ordered else min((item for _, item in items), key=lambda item: float(item.value))
        for items in by_id.values()
    ]
    return kept, conflicts
