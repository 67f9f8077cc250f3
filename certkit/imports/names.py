"""What the names of columns and values in a row tell: the agent, its version, a total.

The words stand in templates/import-words.toml.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from certkit.ground import canonical, toml

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTS: Final = toml.packaged("templates", "import-words.toml")
"""Words by which a column and its texts are known; the file says what each list is for."""

MAX_COLUMNS: Final = 10_000
"""Columns of a table, and distinct ones of all rows that fill no field."""

MAX_NAME: Final = 1000
"""Characters of a name that are looked at, and that the name of a column may have."""

MAX_TOTAL: Final = 80
"""Characters of a text that may call a row a total."""


def paths(
    row: dict[str, Any], lead: tuple[str, ...] = (), *, lists: bool = False
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths of a row with their plain values and nulls, with `lists` also what else they end in."""
    for name, value in row.items():
        if isinstance(value, dict) and len(lead) < canonical.MAX_DEPTH:
            yield from paths(value, (*lead, name), lists=lists)
        elif lists or not isinstance(value, list | dict):
            yield (*lead, name), value


@lru_cache(1024)
def versions(held: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    """Return which paths of a row tell the agent's version, or its model beside another name of it."""
    named = sorted((rank, len(path), path) for path in held if (rank := agent_rank(path)) is not None)
    models = [path for *place, path in named[1:] if is_model(path[-1]) and place != [*named[0][:2]]]
    agents = [path for path in held if agent_rank(path) is not None]
    beside = {(*path[:-1], "version") for path in agents}
    parents = {(), *agents, *(path[:-1] for path in agents)}
    told = [path for path in held if agent_rank(path, "_version") is not None]
    told += [path for path in held if (*path[:-1], path[-1].casefold()) in beside]
    words = LISTS["agents"]["versions"].split()
    told += [path for path in held if path[:-1] in parents and plain_name(path[-1][:MAX_NAME]) in words]
    return sorted(told, key=len) + models


def is_model(column: str) -> bool:
    """Tell whether a column, perhaps a dotted path, tells the agent's model."""
    return plain_name(column.rpartition(".")[2][:MAX_NAME]) in LISTS["agents"]["models"].split()


def plain_name(name: str) -> str:
    """Return a name in lower case, its words joined by underscores."""
    return re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", "_", name).casefold().strip("_")


def short(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path of which no name is longer than is looked at: what is remembered of names is limited."""
    return tuple(name[:MAX_NAME] for name in path)


def agent_rank(path: tuple[str, ...], suffix: str = "") -> int | None:
    """Return the place among the names of agents of a path's last part or last two before `suffix`.

    None without; what lies below a name with a word for raters is of a rater, not of the agent.
    """
    return _agent_rank(short(path), suffix)


@lru_cache(1024)
def _agent_rank(path: tuple[str, ...], suffix: str) -> int | None:
    names = list(map(plain_name, path))
    above = {word.removesuffix("s") for word in "_".join(names[:-1]).split("_")}
    if not above.isdisjoint(LISTS["agents"]["raters"].split()):
        return None
    known = {f"{name}{suffix}": rank for rank, name in enumerate(LISTS["agents"]["names"].split())}
    return known.get(names[-1], known.get("_".join(names[-2:])))


def preferred(path: tuple[str, ...]) -> bool:
    """Tell whether a name of agents counts before others that are nested as deep."""
    return len(path) > 1 and plain_name(path[-2][:MAX_NAME]) in LISTS["agents"]["preferred"].split()


def sums_up(text: str) -> bool:
    """Tell whether a text is a name of rows that sum up others."""
    if len(text) > MAX_TOTAL:
        return False
    return re.sub(r"[\W\d_]+\Z", "", re.sub(r"\An ?=", "total", text.casefold())) in LISTS["totals"]["texts"]
