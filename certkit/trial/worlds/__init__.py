"""The worlds that certkit has: tasks with tools, checkers and oracles, each drawn from a seed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from certkit.ground.errors import InputError
from certkit.trial.worlds.logistics import Logistics
from certkit.trial.worlds.robotics import Robotics
from certkit.trial.worlds.world import Instance, World

WORLDS: Final[dict[str, World[Any, Any]]] = {"robotics": Robotics(), "logistics": Logistics()}
"""By their names, which are their domains."""

_ID: Final = re.compile(r"([a-z]+)/([0-9]{1,19})-([0-9]{1,6})")


@cache
def instance_of(task: str) -> Instance[Any, Any]:
    """Return the task of an id, drawn again from the seed and the number that the id holds.

    Raises:
        InputError: ``trial.world`` where no world has such a task.
    """
    match = _ID.fullmatch(task)
    if match is None or match[1] not in WORLDS:
        raise InputError(
            "trial.world", f"no world has a task {task[:80]!r}", hint=f"worlds: {', '.join(WORLDS)}"
        )
    return Instance(WORLDS[match[1]], int(match[2]), int(match[3]))
