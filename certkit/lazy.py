"""Names of a package that are loaded when they are asked for, so that nobody pays for what is not used.

    __getattr__ = lazy(__name__, {"trust": ("Trust", "parse as parse_trust"), "verification": ("verify",)})

The table says for each module of the package which of its names the package offers, as an import would. The
same imports stand under ``TYPE_CHECKING`` for readers and type checkers; `tests/test_layers.py` holds the two
together. Code inside certkit may import from a module or ask the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def lazy(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that offers `names`, by the modules that define them."""
    homes = {
        name.rpartition(" as ")[2]: (module, name.partition(" as ")[0])
        for module, offered in names.items()
        for name in offered
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        return getattr(import_module(f"{package}.{module}"), attribute)

    return load
