"""Where the schemas and templates are: inside the installed package, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path


def root() -> Path:
    """Return the folder that holds ``schemas/`` and ``templates/``."""
    package = Path(__file__).parent
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent


def path(*parts: str) -> Path:
    """Return the path of a packaged file, such as ``path("schemas", "record.v1.schema.json")``."""
    return root().joinpath(*parts)
