"""What several manifests, and several sets of ratings, say together.

`differences` names what two evaluations must have in common before their runs may be counted together.
Everything else that differs is told as a conflict, and what is kept is what speaks least for the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.errors import InputError
from certkit.evidence.bundle.manifest import Attested, Evaluator, Manifest, Period, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from certkit.evidence.bundle.calibration import Calibration

CLASS: Final = ("methodology", "success_rule", "judge", "cascade_definition", "memory_observable")
"""The protocol class: what must be the same in all bundles."""

_RELATIONS: Final = ("same", "affiliated", None, "independent")
"""How an evaluator may stand to the developer, the closest first."""

MAX_NAME: Final = 512
Stated = list[tuple[int, Any]]
"""The number of a bundle, from 1, and what it states."""


def differences(one: Protocol, other: Protocol) -> Iterator[tuple[str, str, str]]:
    """Yield each field of the protocol class that differs, with both values in words."""
    for field in CLASS:
        first, second = getattr(one, field), getattr(other, field)
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


def manifest(found: Sequence[Manifest], *, ordered: bool) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of bundles of one agent and one protocol class, and the conflicts among them.

    `ordered` tells whether they stand in the order of their time.
    """
    first, conflicts = found[0].protocol, list[str]()
    protocols = [one.protocol for one in found]
    attested, apart = _attested([one.attested for one in found], ordered=ordered)
    conflicts += apart
    for name in ("temperature", "evaluator", "declared_mix"):
        stated: Stated = [(number, getattr(one, name)) for number, one in enumerate(protocols, 1)]
        if any(value != stated[0][1] for _, value in stated):
            conflicts.append(f"{name.replace('_', ' ')}: {_listed(stated, _STATED[name])}")
    temperatures = [one.temperature for one in protocols if one.temperature is not None]
    mixes = [one.declared_mix for one in protocols]
    declared = [one.declared_runs for one in protocols]
    protocol = first.model_copy(
        update={
            "origin": "simulated" if any(one.origin == "simulated" for one in protocols) else "measured",
            "temperature": max(temperatures) if len(temperatures) == len(protocols) else None,
            "tasks_independent": True if all(one.tasks_independent for one in protocols) else None,
            "declared_runs": None if None in declared else sum(n for n in declared if n is not None),
            "declared_mix": first.declared_mix if all(mix == first.declared_mix for mix in mixes) else None,
            "attempt": max((one.attempt for one in protocols if one.attempt is not None), default=None),
            "evaluator": _evaluator([one.evaluator for one in protocols]),
            "period": _period([one.period for one in protocols]),
            "task_salt": first.task_salt if len({one.task_salt for one in protocols}) == 1 else None,
        }
    )
    pooled = Manifest(
        schema=found[0].schema_, agent=found[0].agent, protocol=protocol, attested=tuple(attested)
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


def _evaluator(found: Sequence[Evaluator | None]) -> Evaluator | None:
    """Return all evaluators as one, who stands as close to the developer as the closest of them."""
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    names = " and ".join(dict.fromkeys(one.name for one in known))
    closest = min((one.relation for one in known), key=_RELATIONS.index)
    return Evaluator(name=names if len(names) <= MAX_NAME else names[: MAX_NAME - 1] + "…", relation=closest)


def _period(found: Sequence[Period | None]) -> Period | None:
    """Return the whole period, with no end where one of its parts has none."""
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    starts = [(start, one.from_) for one in known if (start := one.span[0]) is not None]
    ends = [(end, one.to) for one in known if (end := one.span[1]) is not None]
    return Period.model_validate(
        {
            "from": min(starts)[1] if len(starts) == len(found) else None,
            "to": max(ends)[1] if len(ends) == len(found) else None,
        }
    )


def _attested(found: Sequence[Sequence[Attested]], *, ordered: bool) -> tuple[list[Attested], list[str]]:
    """Return each attested measurement once, the latest or else the worst, and the conflicts."""
    by_id: dict[str, list[tuple[int, Attested]]] = {}
    for number, items in enumerate(found, 1):
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


def calibration(found: Sequence[tuple[str, Calibration | None]]) -> Calibration | None:
    """Return the ratings of all bundles, each with its place; what two bundles both hold counts once.

    Raises `InputError` ``calibration.repeated`` or ``calibration.differs`` where bundles contradict.
    """
    known = [(where, one) for where, one in found if one is not None]
    if len(known) < 2:  # noqa: PLR2004 - nothing to pool
        return known[0][1] if known else None
    table = _Ratings()
    for where, one in known:
        table.add(where, one)
    return table.calibration()


class _Ratings:
    """Ratings by item and rater, with the bundle in which each was first met."""

    def __init__(self) -> None:
        self.scores: dict[tuple[str, str], tuple[int, str]] = {}
        self.stated: dict[str, dict[str, tuple[Any, str]]] = {"reference": {}, "kind": {}, "domain": {}}

    def add(self, where: str, one: Calibration) -> None:
        from certkit.evidence.bundle.calibration import ABSENT  # noqa: PLC0415 - most bundles hold no ratings

        for rater in one.raters:
            self._state("kind", rater.name, rater.kind, where)
        for name, domain, reference in zip(one.items, one.domains, one.reference.tolist(), strict=True):
            if domain is not None:
                self._state("domain", name, domain, where)
            if reference != ABSENT:
                self._state("reference", name, reference, where)
        for item, number, score in zip(
            one.item.tolist(), one.rater.tolist(), one.score.tolist(), strict=True
        ):
            key = (one.items[item], one.raters[number].name)
            first = self.scores.setdefault(key, (score, where))
            if first[0] != score:
                raise InputError(
                    "calibration.repeated",
                    f"{key[1]!r} scores item {key[0]!r} in another way than in {first[1]}",
                    where=where,
                )

    def _state(self, field: str, owner: str, value: Any, where: str) -> None:
        first = self.stated[field].setdefault(owner, (value, where))
        if first[0] != value:
            raise InputError(
                "calibration.differs", f"the {field} of {owner!r} is not as in {first[1]}", where=where
            )

    def calibration(self) -> Calibration:
        import numpy as np  # noqa: PLC0415 - heavy

        from certkit.evidence.bundle.calibration import ABSENT, Calibration, Rater  # noqa: PLC0415 - as above

        items = sorted({item for item, _ in self.scores})
        raters = sorted({rater for _, rater in self.scores})
        item_of = {name: number for number, name in enumerate(items)}
        rater_of = {name: number for number, name in enumerate(raters)}
        keys = sorted(self.scores)
        reference, domain = self.stated["reference"], self.stated["domain"]
        return Calibration(
            items=tuple(items),
            domains=tuple(domain[name][0] if name in domain else None for name in items),
            reference=np.array(
                [reference[name][0] if name in reference else ABSENT for name in items], np.int64
            ),
            raters=tuple(Rater(name=name, kind=self.stated["kind"][name][0]) for name in raters),
            item=np.array([item_of[item] for item, _ in keys], np.int64),
            rater=np.array([rater_of[rater] for _, rater in keys], np.int64),
            score=np.array([self.scores[key][0] for key in keys], np.int64),
        )
