"""The one font family of the PDF, loaded by path, and text that it can draw.

A character that the family lacks would be drawn with whatever font the machine has, and the bytes would
differ from machine to machine. In the PDF such a character is written as its escape; the HTML keeps it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FAMILY: Final = "Source Sans Pro"
FACES: Final = {400: "Regular", 600: "Semibold"}
"""Weight → name of the face. No italics: they lack Greek."""


def files() -> dict[int, Path]:
    """Return the files of the faces; empty where the font package is not installed."""
    spec = find_spec("font_source_sans_pro")
    if spec is None or spec.origin is None:
        return {}
    folder = Path(spec.origin).parent / "files"
    paths = {weight: folder / f"SourceSansPro-{name}.ttf" for weight, name in FACES.items()}
    return paths if all(path.is_file() for path in paths.values()) else {}


def faces() -> str:
    """Return the @font-face rules of the family."""
    return "".join(
        f'@font-face{{font-family:"{FAMILY}";font-weight:{weight};src:url("{path.as_uri()}")}}'
        for weight, path in files().items()
    )


@cache
def _drawn() -> frozenset[int]:
    from fontTools.ttLib import TTFont  # noqa: PLC0415 - heavy

    sets = []
    for path in files().values():
        with TTFont(path, lazy=True) as font:
            sets.append(frozenset(font.getBestCmap()))
    return frozenset.intersection(*sets) | {0x09, 0x0A}


def drawable(text: str) -> str:
    r"""Return `text` with every character that the family lacks as ``\u4e2d``."""
    lacking = set(map(ord, set(text))) - _drawn()
    return text.translate({code: f"\\u{code:04x}" for code in lacking})
