"""The worlds that certkit has: tasks with tools, checkers and oracles, drawn from a seed or public."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from certkit.ground.errors import InputError
from certkit.trial.worlds.agentdojo import Dojo
from certkit.trial.worlds.bfcl import Bfcl
from certkit.trial.worlds.logistics import Logistics
from certkit.trial.worlds.robotics import Robotics

if TYPE_CHECKING:
    from certkit.trial.worlds.world import World, WorldTask

WORLDS: Final[dict[str, World]] = {world.name: world for world in (Robotics(), Logistics(), Bfcl(), Dojo())}
"""By their names, which are their domains."""


@cache
def instance_of(task: str) -> WorldTask[Any]:
    """Return the task of an id, which is its world's name and a name in that world.

    Raises:
        InputError: ``trial.world`` where no world has such a task.
        UnavailableError: ``trial.extra`` where the package that holds it is not installed.
    """
    world, _, name = task.partition("/")
    instance = WORLDS[world].find(name) if world in WORLDS else None
    if instance is None:
        raise InputError(
            "trial.world", f"no world has a task {task[:80]!r}", hint=f"worlds: {', '.join(WORLDS)}"
        )
    return instance
