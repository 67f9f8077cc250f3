"""Names of a package that are loaded when they are asked for, so that nobody pays for what is not used.

    __getattr__ = lazy(__name__, {"judging": ("assess",), "named": ("load_profile", "profile_text")})

The table says for each module of the package which of its names the package offers. The same imports stand
under ``TYPE_CHECKING`` for readers and type checkers; `tests/test_layers.py` holds the two together. Two
packages offer names so: certkit, the Python API, and `certkit.workflow`, the tasks of commands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def lazy(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that offers `names`, by the modules that define them."""
    homes = {name: module for module, offered in names.items() for name in offered}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
