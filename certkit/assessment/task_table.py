"""The task table: every task in integers, so that drift needs no raw evidence; a part of the passport.

`certkit.assessment.tasks` makes it of a summary. This module loads no numpy, since `verify` reads it.
"""

from typing import Annotated

from msgspec import Meta, Struct

from certkit.ground.canonical import MAX_INTEGER

_END = r"$(?!\n)"  # in Python a bare $ also matches before a final newline
_Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Text = Annotated[str, Meta(min_length=1, max_length=20_000)]
_Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{12}" + _END)]


class _Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the table; what has no value is left out."""


class Cell(_Part, frozen=True, kw_only=True):
    """The runs of a domain under a condition, and the successes among them, over all tasks."""

    domain: _Text
    condition: _Text
    runs: _Count
    successes: _Count


class Column(_Part, frozen=True, kw_only=True):
    """A pair of integers that every task has: y / scale is the sum of n values; here over all tasks.

    `condition` is given for successes, which are told apart by it.
    """

    metric: _Text
    condition: _Text | None = None
    scale: Annotated[int, Meta(ge=1, le=1_000_000)]
    y: _Count
    n: _Count


class Task(Struct, frozen=True, array_like=True):
    """A task in a domain: its tag, the place of the domain, and y and n of every column in turn."""

    tag: _Tag
    domain: _Count
    sums: tuple[_Count, ...]


class TaskTable(_Part, frozen=True, kw_only=True):
    """Every task in integers: what a later passport is compared with, without raw evidence.

    `salt` names the salt of the tags: the first 8 bytes of its SHA-256, null where there was none. `tasks`
    counts all tasks; of more than 1,000 the rows are those with the smallest tags.
    """

    salt: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}" + _END)] | None = None
    tasks: _Count
    domains: tuple[_Text, ...]
    cells: tuple[Cell, ...]
    columns: tuple[Column, ...]
    rows: tuple[Task, ...]
