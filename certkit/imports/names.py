"""The columns that an import knows without a mapping; they stand in templates/import-names.toml."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from certkit.ground import canonical, toml
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_NAMES: Final = toml.packaged("templates", "import-names.toml")

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    field: tuple(columns) for field, columns in _NAMES["fields"].items()
}
"""Record field → columns that fill it where no column has its own name."""

SINGLE: Final[dict[str, str]] = _NAMES["single"]
"""Record field → the column that fills it where no other does and no value repeats."""

COUNTS: Final = frozenset(_NAMES["summary"]["counts"])
RATES: Final = frozenset(_NAMES["summary"]["rates"])
ATTACKS: Final = re.compile(
    rf"(?<![^\W\d_])({'|'.join(_NAMES['attacks']['words'])})(?![^\W\d_])", re.IGNORECASE
)
"""A whole word by which a name says that the run was attacked; digits and underscores end words."""

_COUNT = re.compile(r"([0-9]{1,9})(\.0|/[0-9]{1,9})?\Z")
_AGENTS: Final[dict[str, list[str]]] = _NAMES["agent"]

_SPARSE: Final = 0.1
"""Share of rows below which a column is mostly blank."""

MAX_COLUMNS: Final = 10_000
"""Columns of a table, and distinct ones of all rows that fill no field."""

MAX_NAME: Final = 1000
"""Characters that the name of a column may have."""


def paths(
    row: dict[str, Any], lead: tuple[str, ...] = (), *, lists: bool = False
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths of a row with their plain values and nulls, with `lists` also what else they end in."""
    for name, value in row.items():
        if isinstance(value, dict) and value and len(lead) < canonical.MAX_DEPTH:
            yield from paths(value, (*lead, name), lists=lists)
        elif lists or not isinstance(value, list | dict):
            yield (*lead, name), value


def folds(filled: Mapping[str, int], rows: int) -> dict[str, str]:
    """Return which columns are told together, as several of an object are blank in most rows.

    Args:
        filled: Column, perhaps a dotted path, and the number of rows that have it.
        rows: The number of all rows.

    Returns:
        Column and what is said in place of it and the others.
    """
    sparse = {name: name.split(".")[0] for name in filled if filled[name] < rows * _SPARSE and "." in name}
    counts = Counter(sparse.values())
    return {
        name: f"{lead}.*: {many(counts[lead], 'column')}, mostly blank"
        for name, lead in sparse.items()
        if counts[lead] > 1
    }


def summary_counts(row: dict[str, Any], claimed: Collection[str]) -> list[str]:
    """Return the columns in which a row counts several runs beside a rate, but for those `claimed`."""
    if not RATES & row.keys():
        return []
    counts = COUNTS & row.keys() - claimed
    return sorted(name for name in counts if (it := _COUNT.match(str(row[name]))) and int(it[1]) > 1)


def agent_columns(columns: Collection[str]) -> list[str]:
    """Return the columns that may name the agent, in the order in which they count."""
    ranks = {name: rank for rank, name in enumerate(_AGENTS["names"])}
    known = [column for column in columns if column.casefold() in ranks]
    return sorted(known, key=lambda column: ranks[column.casefold()])


def version_columns(columns: Collection[str]) -> list[str]:
    """Return the columns that tell the agent's version, or its model beside another name of it."""
    versions = [column for column in columns if column.casefold() in _AGENTS["versions"]]
    return versions + [column for column in agent_columns(columns)[1:] if is_model(column)]


def is_model(column: str) -> bool:
    """Tell whether a column, perhaps a dotted path, tells the agent's model."""
    return column.rpartition(".")[2].casefold() in _AGENTS["models"]
