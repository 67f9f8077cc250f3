"""The first place where two documents differ, by its path and in plain words.

    difference(signed, computed, "the summary gives")
    # "criteria[3].status: the passport says met, the summary gives not_met"

Everything is compared for equality but bounds and probabilities, since C libraries differ in the last digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from certkit.assessment.metric import INEXACT
from certkit.ground import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.assessment import Assessment

Path = tuple[str | int, ...]

TOLERANCE: Final = 1e-8
"""How far a bound or a probability may differ between machines."""
_SHOWN: Final = 100
_NOTHING: Final = object()


def difference(
    signed: Any, computed: Any, source: str, *, close: Callable[[Path], bool] = lambda _: False
) -> str | None:
    """Return the first difference in words, None where there is none.

    Args:
        signed: what the passport says, as a struct or JSON values.
        computed: what was computed now.
        source: what computed it, with its verb: ``the summary gives``.
        close: tells where numbers may differ by `TOLERANCE`.
    """
    stated, actual = msgspec.json.encode(signed), msgspec.json.encode(computed)
    if stated == actual:
        return None
    place = _first(msgspec.json.decode(stated), msgspec.json.decode(actual), (), close)
    if place is None:
        return None
    return _told(place, source)


def _told(place: tuple[Path, Any, Any], source: str) -> str:
    path, stated, actual = place
    return f"{path_text(path)}: the passport says {_text(stated)}, {source} {_text(actual)}"


def form_difference(document: Any, struct: Any) -> str | None:
    """Return the first place where JSON values are not what their struct is written as, None where none is.

    A member that was left out for its default, say. An integer beyond 2^53 − 1 is text in JSON.
    """
    written = msgspec.json.decode(msgspec.json.encode(struct))  # several times as fast as `to_builtins`
    if document == written:
        return None
    place = _first(document, written, (), lambda _: False)
    return None if place is None else _told(place, "certkit writes")


def judgement_difference(signed: Assessment, judged: Assessment) -> str | None:
    """Return the first place where a signed assessment is not what its summary gives, None where none is."""
    inexact: set[Path] = {
        ("criteria", place) for place, row in enumerate(judged.criteria) if row.metric in INEXACT
    }
    metrics = {row.id: row.metric for row in judged.criteria}
    inexact |= {("core", place) for place, row in enumerate(judged.core) if metrics[row.id] in INEXACT}

    def close(path: Path) -> bool:
        name = path[-1]
        return (
            name in {"bound", "error"}
            or "counts" in path
            or (path[:2] in inexact and name in {"value", "margin"})
        )

    # Another release of the same rules judges alike.
    judged = structs.replace(judged, tool=structs.replace(judged.tool, version=signed.tool.version))
    return difference(signed, judged, "the summary gives", close=close)


def path_text(path: Path) -> str:
    """Return a path as people write it: ``criteria[3].status``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "it"


def _first(
    signed: Any, computed: Any, path: Path, close: Callable[[Path], bool]
) -> tuple[Path, Any, Any] | None:
    composed = isinstance(signed, dict | list) and isinstance(computed, dict | list)
    if composed and _bytes(signed) == _bytes(computed):
        return None  # the most of two documents is equal, and this is far faster than to walk it
    if isinstance(signed, dict) and isinstance(computed, dict):
        keys: Any = dict.fromkeys((*computed, *signed))
        pairs = ((key, signed.get(key, _NOTHING), computed.get(key, _NOTHING)) for key in keys)
    elif isinstance(signed, list) and isinstance(computed, list):
        length = max(len(signed), len(computed))
        longer = [side + [_NOTHING] * (length - len(side)) for side in (signed, computed)]
        pairs = ((place, *both) for place, both in enumerate(zip(*longer, strict=True)))
    else:
        return None if _equal(signed, computed, path, close) else (path, signed, computed)
    for key, stated, actual in pairs:
        if (place := _first(stated, actual, (*path, key), close)) is not None:
            return place
    return None


def _bytes(value: Any) -> bytes:
    """Return JSON values as text; for Python True is 1, and for a reader it is not."""
    return msgspec.json.encode(value, order="sorted")


def _equal(signed: Any, computed: Any, path: Path, close: Callable[[Path], bool]) -> bool:
    if isinstance(signed, bool) != isinstance(computed, bool):
        return False  # for Python True is 1
    if isinstance(computed, int) and abs(computed) > canonical.MAX_INTEGER:
        computed = str(computed)  # as JSON has it
    if isinstance(signed, float) and isinstance(computed, float) and close(path):
        return abs(signed - computed) <= TOLERANCE
    return bool(signed == computed)


def _text(value: Any) -> str:
    if value is _NOTHING or value is None:
        return "nothing"
    if isinstance(value, dict | list):
        value = canonical.line(value).decode().strip()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
