"""The first difference between two values of JSON: what was claimed, and what was computed again.

    difference({"tier": 2}, {"tier": 1}, "the evidence gives")     # "tier: claimed 2, the evidence gives 1"

Every comparison of a statement ends here: with itself, its profile, its manifest and its evidence.
"""

from __future__ import annotations

from typing import Any, Final

_NAMES: Final = ("id", "metric", "code", "role", "name", "domain", "condition")
_SHOWN: Final = 100


def difference(claimed: Any, computed: Any, source: str, path: tuple[str, ...] = ()) -> str | None:
    """Return the first place where values differ, None where they are equal; `source` says what computed."""
    if claimed == computed:
        return None
    if isinstance(claimed, dict) and isinstance(computed, dict):
        for key in (*computed, *(key for key in claimed if key not in computed)):
            parts = claimed.get(key, "nothing"), computed.get(key, "nothing")
            if inner := difference(*parts, source, (*path, key)):
                return inner
        return None
    if isinstance(claimed, list) and isinstance(computed, list):
        for number, parts in enumerate(zip(claimed, computed, strict=False), start=1):
            if inner := difference(*parts, source, (*path, _name(parts[1], number))):
                return inner
        claimed, computed = f"{len(claimed)} rows", f"{len(computed)}"
    shown = [
        text if len(text := str(item)) <= _SHOWN else text[:_SHOWN] + "…" for item in (claimed, computed)
    ]
    return f"{' '.join(path)}: claimed {shown[0]}, {source} {shown[1]}"


def _name(row: Any, number: int) -> str:
    """Return the names that tell a row from others, or its number from 1."""
    names = [str(row[key]) for key in _NAMES if key in row] if isinstance(row, dict) else []
    return "/".join(dict.fromkeys(names)) or str(number)
