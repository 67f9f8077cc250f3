"""Worlds whose tasks are published: they are read from a package that the user installs.

The package is imported when the first task is asked for. Its tasks are a fixed list, from which a plan draws
by its seed. What is public may be in a model's training data, and a bundle of such a trial says so.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from certkit.ground.errors import InputError, UnavailableError
from certkit.ground.wording import many
from certkit.probes.generate import SeededDraw

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.trial.worlds.world import WorldTask


class PublicWorld:
    """A world of public tasks; a subclass says what its package is and makes the tasks.

    Attributes:
        name: of the world, and its domain.
        package: the distribution that holds the tasks.
        adapter: changes with anything that this certkit makes of them.
        install: the command that installs the package.
    """

    name: str
    package: str
    adapter: str
    install: str
    public: bool = True

    @property
    def version(self) -> str:
        """The package's version and the adapter's.

        Raises:
            UnavailableError: ``trial.extra`` where the package is not installed.
        """
        try:
            return f"{version(self.package)}-{self.adapter}"
        except PackageNotFoundError:
            raise self._missing() from None

    def _missing(self) -> UnavailableError:
        message = f"the tasks of {self.name} come from {self.package}, which is not installed"
        return UnavailableError("trial.extra", message, hint=self.install)

    def module(self, name: str) -> Any:
        """Return a module of the package.

        Raises:
            UnavailableError: ``trial.extra`` where it, or something that it needs, is not installed.
        """
        try:
            return import_module(name)
        except ImportError:
            raise self._missing() from None

    def load(self) -> Mapping[str, WorldTask[Any]]:
        """Read all tasks, by their names."""
        raise NotImplementedError

    @cached_property
    def tasks(self) -> Mapping[str, WorldTask[Any]]:
        """All tasks, by their names."""
        return self.load()

    def draw(self, seed: int, count: int) -> Iterator[WorldTask[Any]]:
        """Yield tasks in drawn order.

        Raises:
            InputError: ``trial.world`` where there are fewer.
        """
        if count > len(self.tasks):
            raise InputError("trial.world", f"{self.name} has {many(len(self.tasks), 'task')}, not {count:,}")
        for name in SeededDraw(str(seed), f"tasks/{self.name}").some("task", [*self.tasks], count):
            yield self.tasks[name]

    def find(self, name: str) -> WorldTask[Any] | None:
        """Return the task of a name."""
        return self.tasks.get(name)
