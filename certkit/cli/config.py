"""Settings that a team keeps in a file, and ``certkit config show``.

A flag counts before a ``CERTKIT_…`` variable, that before ``certkit.toml`` (or ``[tool.certkit]`` in
``pyproject.toml``) of the folder in which certkit runs, that before the default. A file that lies beside
a ``bundle.json`` is not read: evidence that was handed over must not choose how it is judged.

    profile = "./house-rule.toml"
    require_tier = 2
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import typer

from certkit.cli import output
from certkit.cli.options import Json
from certkit.errors import UsageError

app = typer.Typer(help="The settings in force.", no_args_is_help=True, rich_markup_mode=None)

# setting → (type, default, environment variable, the commands and options that it sets)
SETTINGS: Final[dict[str, tuple[type, Any, str, tuple[tuple[str, ...], ...]]]] = {
    "profile": (str, "hb-eval-2026", "CERTKIT_PROFILE", (("assess", "profile"), ("plan", "profile"))),
    "require_tier": (int, 1, "CERTKIT_REQUIRE_TIER", (("assess", "require_tier"),)),
    "jobs": (
        int,
        None,
        "CERTKIT_JOBS",
        (("assess", "jobs"), ("bundle", "validate", "jobs"), ("bundle", "show", "jobs")),
    ),
    "seed": (int, 1, "CERTKIT_SEED", (("simulate", "seed"), ("demo", "seed"))),
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
    from certkit import files, toml  # noqa: PLC0415 - only where there is a file
    from certkit.errors import InputError  # noqa: PLC0415 - the same

    try:
        text = files.read(path, limit=1 << 20).decode()
        return toml.loads(text, code="config.invalid", where=path.name)
    except UnicodeDecodeError:
        raise UsageError("config.invalid", "not UTF-8", where=path.name) from None
    except InputError as error:
        # A settings file is part of the command line, and its faults leave with the same code.
        raise UsageError(error.code, error.message, where=path.name) from None


def _checked(table: Any, name: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise UsageError("config.invalid", "[tool.certkit] is not a table", where=name)
    for key, value in table.items():
        if key not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError("config.invalid", f"unknown setting {key!r}", where=name, hint=f"known: {known}")
        kind = SETTINGS[key][0]
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a number" if kind is int else "a text"
            raise UsageError("config.invalid", f"{key}: expected {wanted}, found {value!r}", where=name)
    return table


def default_map(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as defaults of the command tree."""
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        for *commands, option in SETTINGS[key][3]:
            place = tree
            for command in commands:
                place = place.setdefault(command, {})
            place[option] = value
    return tree


@app.command("show")
def show(json: Json = False) -> None:
    """Show every setting and where its value comes from: environment, file or default.

    Example: certkit config show
    """
    settings, name = load(Path.cwd())
    rows: list[tuple[str, Any, str]] = []
    for key, (_, default, variable, _) in SETTINGS.items():
        if variable in os.environ:
            rows.append((key, os.environ[variable], variable))
        elif key in settings:
            rows.append((key, settings[key], str(name)))
        else:
            rows.append((key, default, "default"))
    if json:
        document = [{"name": key, "value": value, "source": source} for key, value, source in rows]
        output.document({"schema": "urn:certkit:config:v1", "settings": document})
        return
    for key, value, source in rows:
        output.say(f"{key:<14}{'one per core' if value is None else value!s:<24}{source}")
