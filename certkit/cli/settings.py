"""The settings of a team.

A flag counts before a ``CERTKIT_…`` variable, that before ``certkit.toml`` (or ``[tool.certkit]`` in
``pyproject.toml``) of the folder in which certkit runs, that before the default. Such a file may choose among
the packaged profiles; a profile from a file is named on the command line or by the variable, since whoever
hands over evidence may hand over a settings file with it. One beside a ``bundle.json`` is not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from certkit.ground import files, toml
from certkit.ground.errors import InputError, UsageError


class Setting(NamedTuple):
    """A setting: its type, and the commands whose option of its name it sets."""

    kind: type
    sets: tuple[str, ...]


SETTINGS: Final = {
    "profile": Setting(str, ("assess", "plan")),
    "require_tier": Setting(int, ("assess",)),
    "seed": Setting(int, ("simulate", "demo")),
}


def from_file(folder: Path) -> tuple[dict[str, Any], str | None]:
    """Return the settings of the file in `folder`, and its name; none where there is no file.

    Raises:
        UsageError: ``config.invalid`` where the file is not TOML or holds what is not a setting.
    """
    for name, keys in (("certkit.toml", ()), ("pyproject.toml", ("tool", "certkit"))):
        path = folder / name
        if path.is_file() and not (folder / "bundle.json").exists():
            try:
                text = files.read(path, limit=1 << 20).decode(errors="replace")
                table: Any = toml.loads(text, code="config.invalid", where=name)
            except InputError as error:  # a part of the command line: its faults have that exit code
                raise UsageError(error.code, error.message, where=name) from None
            for key in keys:
                table = table.get(key, {}) if isinstance(table, dict) else table
            if table or not keys:
                return _checked(table, name), name
    return {}, None


def _checked(table: Any, name: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise UsageError("config.invalid", "[tool.certkit] is not a table", where=name)
    for key, value in table.items():
        if key not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError("config.invalid", f"unknown setting {key!r}", where=name, hint=f"known: {known}")
        kind = SETTINGS[key].kind
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a number" if kind is int else "a text"
            raise UsageError("config.invalid", f"{key}: expected {wanted}, found {value!r}", where=name)
        if key == "profile" and ("/" in str(value) or str(value).endswith(".toml")):
            told = f"profile: {value!r} is a file, and a settings file names packaged profiles alone"
            raise UsageError("config.invalid", told, where=name, hint="name the file with --profile")
    return table
