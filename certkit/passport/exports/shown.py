"""The formats that are not signed: a Markdown table and an SVG badge, which says that it is no evidence.

Text that the passport brings along stands in code spans of the table, where it can format, link and mention
nothing. A picture goes stale and is copied, so the badge bears the end of validity, the beginning of the
passport's id, and the time that it was made for where that was not the present. Words say all that colours
say; contrast is at least 7:1 (WCAG 2.2, AAA). Nothing outside is loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from markupsafe import escape

from certkit.passport import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports import Source

_DOMAINS: Final = 12
DARK: Final = "#24292f"
COLOURS: Final = {"claim": "#0a3f73", words.SPECIMEN: "#5c3a00", words.UNVERIFIED: "#7a1212"}
INK: Final = "#ffffff"

_CHARACTER: Final = 6.4
"""Width in px of an average character of the sans-serif fonts at 11 px, rounded up."""
_PAD: Final = 8
_NAME: Final = 32


def markdown(source: Source, **_: Any) -> tuple[str, str]:
    """Return the media type and the text."""
    predicate = source.predicate
    head = f"**Agent passport of {_code(predicate.agent.name)} {_code(predicate.agent.version)}**"
    rows = "\n".join(_row(name, value) for name, value in _rows(source))
    notes = "\n".join(f"- {item}" for item in words.IS_NOT)
    return (
        "text/markdown",
        f"{_banner(source)}{head}\n\n| | |\n| --- | --- |\n{rows}\n\nWhat this is not:\n\n{notes}\n",
    )


def _row(name: str, value: str) -> str:
    escaped = value.replace("|", "\\|")  # a bar ends a cell even inside a code span
    return f"| {name} | {escaped} |"


def _banner(source: Source) -> str:
    text = ""
    if source.verification is None:
        text += (
            f"> **{words.UNVERIFIED}: nobody checked the signature. Nothing below is shown to be true.**\n\n"
        )
    if source.is_specimen:
        text += (
            f"> **{words.SPECIMEN}: the evidence is simulated. This says nothing about a real agent.**\n\n"
        )
    return text


def _rows(source: Source) -> Iterator[tuple[str, str]]:
    predicate, judgement = source.predicate, source.predicate.assessment
    yield "Claim", _code(predicate.claim)
    for name, attained, decides in words.readings(judgement):
        yield f"{name.capitalize()} reading", f"**{attained}**, decides" if decides else attained
    yield "Profile", _code(judgement.profile.id)
    yield "", _code(judgement.profile.digest)
    yield "Domains", _domains(predicate.scope.domains)
    evidence = predicate.evidence
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    yield "Evidence", f"{predicate.origin}, {evidence.records:,} records: {runs}"
    yield "", _code(evidence.digest)
    yield "Agent", _code(predicate.agent.digest)
    yield "Valid", f"{words.utc(predicate.validity.not_before)} to {words.utc(predicate.validity.not_after)}"
    yield "Issuer", _issuer(source)
    yield (
        "Stated in it",
        (
            f"{len(predicate.limitations)} limitations, "
            f"{len(predicate.known_failure_modes)} known failure modes, "
            f"{len(predicate.challenges)} open challenges"
        ),
    )
    yield "Passport", _code(source.passport_id)
    if source.verification is None:
        asked = f", as of {words.utc(source.at)}" if source.as_of else ""
        yield "Verified", f"no: **{words.UNVERIFIED}**{asked}"
    else:
        steps = source.verification.steps
        time = f"{'as of ' if source.as_of else ''}{words.utc(source.at)}"
        yield "Verified", f"{time}: {', '.join(step.id for step in steps if step.status == 'passed')}"
        yield "Not checked", ", ".join(step.id for step in steps if step.status == "skipped") or "–"


def _issuer(source: Source) -> str:
    stated = _code(source.predicate.issuer.name)
    claim = source.verification.claim if source.verification else None
    if claim is None:
        return f"{stated}, by its own word"
    known = _code(claim.issuer.name)
    return known if known == stated else f"{known}, which calls itself {stated}"


def _domains(names: tuple[str, ...]) -> str:
    shown = ", ".join(_code(name) for name in names[:_DOMAINS]) or "none"
    return shown if len(names) <= _DOMAINS else f"{shown} and {len(names) - _DOMAINS} more"


def _code(text: str) -> str:
    """Return foreign text as a code span."""
    shown = words.one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def badge(source: Source, **_: Any) -> tuple[str, str]:
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
    return "image/svg+xml", _SVG.format(
        width=width,
        first=first,
        rest=width - first,
        title=escape(title),
        about=escape(f"{words.NOTICE} Passport {source.passport_id}."),
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
    return f'<text x="{middle:g}" y="{baseline}" textLength="{length}">{escape(text)}</text>'


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
