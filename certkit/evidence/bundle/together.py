"""The manifest and the ratings of pooled bundles, made from those of each.

`differences` compares the fields of the protocol that must be equal before runs may be pooled. Where other
fields differ, the difference is reported as a conflict, and the value least favourable to the agent is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from certkit.errors import InputError
from certkit.evidence.bundle.calibration import ABSENT, OUTCOME, Calibration, Ratings, of_variables
from certkit.evidence.bundle.manifest import Attested, Evaluator, Manifest, Period, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CLASS: Final = ("methodology", "success_rule", "judge", "cascade_definition", "memory_observable")
"""Fields of the protocol that must be equal in all bundles: the protocol class."""

_RELATIONS: Final = ("same", "affiliated", None, "independent")
"""Relations of an evaluator to the developer, the closest first."""

MAX_NAME: Final = 512
Stated = list[tuple[int, Any]]
"""The number of a bundle, from 1, and the value that it states."""


def differences(left: Protocol, right: Protocol) -> Iterator[tuple[str, str, str]]:
    """Yield each field of the protocol class that differs, with both values in words."""
    for field in CLASS:
        first, second = getattr(left, field), getattr(right, field)
        if first != second:
            yield field, _words(first), _words(second)


def _words(value: object) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, bool):
        return str(value).lower()
    name, family = getattr(value, "name", None), getattr(value, "family", None)
    if name is None:
        return repr(value)
    independent = "independent" if getattr(value, "independent", False) else "not independent"
    return f"{name} ({family}, {independent})" if family else f"{name} ({independent})"


def manifest(manifests: Sequence[Manifest], *, ordered: bool) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of bundles of one agent and one protocol class, and the conflicts among them.

    `ordered`: they are in the order of time.
    """
    protocols = [item.protocol for item in manifests]
    first = protocols[0]
    attested, conflicts = _attested([item.attested for item in manifests], ordered=ordered)
    for name in ("temperature", "evaluator", "declared_mix"):
        stated: Stated = [(number, getattr(item, name)) for number, item in enumerate(protocols, 1)]
        if any(value != stated[0][1] for _, value in stated):
            conflicts.append(f"{name.replace('_', ' ')}: {_listed(stated, _STATED[name])}")
    temperatures = [item.temperature for item in protocols if item.temperature is not None]
    mixes = [item.declared_mix for item in protocols]
    declared = [item.declared_runs for item in protocols]
    protocol = first.model_copy(
        update={
            "origin": "simulated" if any(item.origin == "simulated" for item in protocols) else "measured",
            "temperature": max(temperatures) if len(temperatures) == len(protocols) else None,
            "tasks_independent": True if all(one.tasks_independent for one in protocols) else None,
            "declared_runs": None if None in declared else sum(n for n in declared if n is not None),
            "declared_mix": first.declared_mix if all(mix == first.declared_mix for mix in mixes) else None,
            "attempt": max((item.attempt for item in protocols if item.attempt is not None), default=None),
            "evaluator": _evaluator([item.evaluator for item in protocols]),
            "period": _period([item.period for item in protocols]),
            "task_salt": first.task_salt if len({item.task_salt for item in protocols}) == 1 else None,
        }
    )
    pooled = Manifest(
        schema=manifests[0].schema_, agent=manifests[0].agent, protocol=protocol, attested=tuple(attested)
    )
    return pooled, tuple(conflicts)


def _mix(value: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:g}" for name, share in value.items())


def _by(value: Evaluator) -> str:
    return f"{value.name} ({value.relation or 'relation not stated'})"


_STATED: Final[dict[str, Callable[[Any], str]]] = {
    "temperature": lambda value: f"{value:g}",
    "evaluator": _by,
    "declared_mix": _mix,
}


def _listed(stated: Stated, shown: Callable[[Any], str]) -> str:
    return "; ".join(
        f"{'not stated' if value is None else shown(value)} in bundle {number}" for number, value in stated
    )


def _evaluator(evaluators: Sequence[Evaluator | None]) -> Evaluator | None:
    """Return all evaluators under a joined name, with the closest relation to the developer."""
    known = [item for item in evaluators if item is not None]
    if len(known) < len(evaluators):
        return None
    names = " and ".join(dict.fromkeys(item.name for item in known))
    closest = min((item.relation for item in known), key=_RELATIONS.index)
    return Evaluator(name=names if len(names) <= MAX_NAME else names[: MAX_NAME - 1] + "…", relation=closest)


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
    """Return each attested measurement once, the latest or else the lowest, and the conflicts."""
    by_id: dict[str, list[tuple[int, Attested]]] = {}
    for number, items in enumerate(stated, 1):
        for item in items:
            by_id.setdefault(item.id, []).append((number, item))
    conflicts = [
        f"attested {name}: {_listed([(number, item.value) for number, item in items], _value)}"
        for name, items in by_id.items()
        if any(item.value != items[0][1].value for _, item in items)
    ]
    kept = [
        items[-1][1] if ordered else min((item for _, item in items), key=lambda item: float(item.value))
        for items in by_id.values()
    ]
    return kept, conflicts


def _value(value: float | bool) -> str:  # noqa: FBT001 - what is attested is a number or a truth
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def calibration(parts: Sequence[tuple[str, Calibration | None]]) -> Calibration | None:
    """Return the ratings of all bundles, given with their places; a rating in two bundles counts once.

    Raises `InputError` ``calibration.repeated`` or ``calibration.differs`` where bundles contradict.
    """
    known = [(where, ratings) for where, ratings in parts if ratings is not None]
    if len(known) < 2:  # noqa: PLR2004 - nothing to pool
        return known[0][1] if known else None
    pooled: dict[str, Ratings] = {}
    for where, found in known:
        for variable, ratings in {OUTCOME: found, **found.others}.items():
            _add_ratings(pooled.setdefault(variable, Ratings()), ratings, where)
    condition_of = {
        item: condition
        for _, ratings in known
        for item, condition in zip(ratings.items, ratings.conditions, strict=False)
        if condition is not None
    }
    made = of_variables(pooled, None)
    if made is None:
        return None
    return structs.replace(
        made,
        conditions=tuple(condition_of.get(item) for item in made.items),
        drawn=all(ratings.drawn for _, ratings in known),
    )


def _add_ratings(pooled: Ratings, ratings: Calibration, where: str) -> None:
    if not ratings.items:
        return
    if pooled.scale_of(ratings.scale) != ratings.scale:
        raise InputError("calibration.differs", "a variable has other bounds than before", where=where)
    references = ratings.reference.tolist()
    stated: list[tuple[str, str, Any]] = [("kind", rater.name, rater.kind) for rater in ratings.raters]
    stated += [("domain", *pair) for pair in zip(ratings.items, ratings.domains, strict=True) if pair[1]]
    stated += [
        ("reference", *pair) for pair in zip(ratings.items, references, strict=True) if pair[1] != ABSENT
    ]
    for field, owner, value in stated:
        if first := pooled.state(field, owner, value, where):
            raise InputError(
                "calibration.differs", f"the {field} of {owner!r} differs from that in {first}", where=where
            )
    scores = zip(ratings.item.tolist(), ratings.rater.tolist(), ratings.score.tolist(), strict=True)
    for number, rater_number, score in scores:
        item, rater = ratings.items[number], ratings.raters[rater_number].name
        earlier = pooled.rate(item, rater, score, where)
        if earlier and earlier[0] != score:
            raise InputError(
                "calibration.repeated",
                f"the score of item {item!r} by {rater!r} differs from that in {earlier[1]}",
                where=where,
            )
