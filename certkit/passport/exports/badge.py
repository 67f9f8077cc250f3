"""A passport's claim as an SVG badge, which says in its text and its title that it is no evidence.

A picture goes stale and is copied, so it bears the end of validity, the beginning of the passport's id, and
the time that it was made for where that was not the present. Words say all that colours say; contrast is at
least 7:1 (WCAG 2.2, AAA). Nothing outside is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.passport.exports import words

if TYPE_CHECKING:
    from certkit.passport.exports.source import Source

MEDIA_TYPE: Final = "image/svg+xml"

DARK: Final = "#24292f"
COLOURS: Final = {"claim": "#0a3f73", words.SPECIMEN: "#5c3a00", words.UNVERIFIED: "#7a1212"}
INK: Final = "#ffffff"

_CHARACTER: Final = 6.4
"""Width in px of an average character of the sans-serif fonts at 11 px, rounded up."""
_PAD: Final = 8
_NAME: Final = 32


def write(source: Source, **_: Any) -> tuple[str, str]:
    """Return the media type and the SVG."""
    left, right = "agent passport", _claim(source)
    asked = f"as of {source.as_of}" if source.as_of else ""
    below = f"no evidence: verify {words.short(source.passport_id)}, ends {_end(source)}"
    below += f"; {asked}" if asked else ""
    first = _width(left)
    width = max(first + _width(right), _width(below))
    colour = COLOURS["claim"]
    for mark in (words.SPECIMEN, words.UNVERIFIED):
        if mark in right:
            colour = COLOURS[mark]
    title = f"{left}: {right}. No evidence. Ends {_end(source)}."
    title += f" Claim {asked}." if asked else ""
    return MEDIA_TYPE, _SVG.format(
        width=width,
        first=first,
        rest=width - first,
        title=_escape(title),
        about=_escape(f"{words.NOTICE} Passport {source.passport_id}."),
        dark=DARK,
        colour=colour,
        ink=INK,
        left=_text(left, 0, first, 14),
        right=_text(right, first, width - first, 14),
        below=_text(below, 0, width, 34),
    )


def _claim(source: Source) -> str:
    judgement = source.predicate.assessment
    table, bounded = ((text, name) for name, text, _ in words.readings(judgement))
    marks = [
        *([words.UNVERIFIED] if source.verification is None else []),
        *([words.SPECIMEN] if source.is_specimen else []),
    ]
    name = words.one_line(judgement.profile.id)
    name = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    decides, beside = (table, bounded) if judgement.profile.reading == "table" else (bounded, table)
    return " ".join([*marks, f"{decides[0]} by {decides[1]}, {beside[0]} by {beside[1]} reading, {name}"])


def _end(source: Source) -> str:
    return words.utc(source.predicate.validity.not_after)[: len("2026-01-31")]


def _width(text: str) -> int:
    return round(len(text) * _CHARACTER) + 2 * _PAD


def _text(text: str, left: int, width: int, baseline: int) -> str:
    # textLength makes the text fit whatever font the reader's machine has.
    middle, length = left + width / 2, min(round(len(text) * _CHARACTER), width - 2 * _PAD)
    return f'<text x="{middle:g}" y="{baseline}" textLength="{length}">{_escape(text)}</text>'


def _escape(text: str) -> str:
    from markupsafe import escape  # noqa: PLC0415 - this format alone

    return str(escape(text))


_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="40" viewBox="0 0 {width} 40"\
 role="img" aria-label="{title}">
<title>{title}</title>
<desc>{about}</desc>
<rect width="{width}" height="40" fill="{dark}"/>
<rect x="{first}" width="{rest}" height="20" fill="{colour}"/>
<g fill="{ink}" font-family="Verdana,'DejaVu Sans',Arial,sans-serif" font-size="11" text-anchor="middle">
{left}
{right}
{below}
</g>
</svg>
"""
