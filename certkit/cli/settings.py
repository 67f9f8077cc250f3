"""The settings that a team keeps in a file, as defaults of commands.

A flag counts before a ``CERTKIT_…`` variable, that before ``certkit.toml`` (or ``[tool.certkit]`` in
``pyproject.toml``) of the folder in which certkit runs, that before the default. A file that lies beside
a ``bundle.json`` is not read: evidence that was handed over must not choose how it is judged.

    profile = "./house-rule.toml"
    require_tier = 2
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from certkit import files, toml
from certkit.errors import InputError, UsageError


class Setting(NamedTuple):
    """A setting: its type, default and variable, and the options of commands that it sets."""

    kind: type
    default: Any
    variable: str
    sets: tuple[tuple[str, ...], ...]


SETTINGS: Final = {
    "profile": Setting(str, "hb-eval-2026", "CERTKIT_PROFILE", (("assess", "profile"), ("plan", "profile"))),
    "require_tier": Setting(int, 1, "CERTKIT_REQUIRE_TIER", (("assess", "require_tier"),)),
    "seed": Setting(int, 1, "CERTKIT_SEED", (("simulate", "seed"), ("demo", "seed"))),
}


def load(folder: Path) -> tuple[dict[str, Any], str | None]:
    """Return the settings of the file in `folder`, and its name; none where there is no file.

    Raises `UsageError` ``config.invalid`` where the file is not TOML or holds what is not a setting.
    """
    if (folder / "bundle.json").exists():
        return {}, None
    for name, keys in (("certkit.toml", ()), ("pyproject.toml", ("tool", "certkit"))):
        path = folder / name
        if path.is_file():
            table = _read(path)
            for key in keys:
                table = table.get(key, {})
            if table or not keys:
                return _checked(table, name), name
    return {}, None


def _read(path: Path) -> dict[str, Any]:
    try:
        text = files.read(path, limit=1 << 20).decode()
        return toml.loads(text, code="config.invalid", where=path.name)
    except UnicodeDecodeError:
        raise UsageError("config.invalid", "not UTF-8", where=path.name) from None
    except InputError as error:
        # A settings file is part of the command line, and its faults have the same exit code.
        raise UsageError(error.code, error.message, where=path.name) from None


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
    return table


def default_map(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return settings as defaults of the command tree."""
    tree: dict[str, Any] = {}
    for key, value in chosen.items():
        for *commands, option in SETTINGS[key].sets:
            place = tree
            for command in commands:
                place = place.setdefault(command, {})
            place[option] = value
    return tree


def in_force(folder: Path) -> list[tuple[str, Any, str]]:
    """Return every setting with its value and where that comes from: a variable, the file or the default."""
    chosen, name = load(folder)
    rows: list[tuple[str, Any, str]] = []
    for key, setting in SETTINGS.items():
        if setting.variable in os.environ:
            rows.append((key, os.environ[setting.variable], setting.variable))
        elif key in chosen:
            rows.append((key, chosen[key], str(name)))
        else:
            rows.append((key, setting.default, "default"))
    return rows
