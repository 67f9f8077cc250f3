"""The formats that are not signed: a Markdown table and an SVG badge, which says that it is no evidence.

Text that the passport brings along stands in code spans of the table, where it can format, link and mention
nothing. A picture goes stale and is copied, so the badge bears the end of validity and the beginning of the
passport's id. Words say all that colours say; contrast is at least 7:1 (WCAG 2.2, AAA). Nothing outside is
loaded.
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
COLOURS: Final = {"measured": "#0a3f73", "simulated": "#5c3a00"}
INK: Final = "#ffffff"

_CHARACTER: Final = 6.4
"""Width in px of an average character of the sans-serif fonts at 11 px, rounded up."""
_PAD: Final = 8
_NAME: Final = 32


def markdown(source: Source, **_: Any) -> tuple[str, str]:
    """Return the media type and the text."""
    agent = source.predicate.agent
    lines = []
    if source.is_specimen:
        lines += [f"> **{words.SPECIMEN}: simulated evidence, which says nothing about a real agent.**", ""]
    lines += [f"**Agent passport of {_code(agent.name)} {_code(agent.version)}**", ""]
    lines += [f"- {_code(line)}" for line in words.above(source.predicate)]
    lines += ["", "| | |", "| --- | --- |"]
    for name, value in _rows(source):
        escaped = value.replace("|", "\\|")  # a bar ends a cell even inside a code span
        lines.append(f"| {name} | {escaped} |")
    lines += ["", "What this is not:", "", *(f"- {item}" for item in words.IS_NOT), ""]
    return "text/markdown", "\n".join(lines)


def _rows(source: Source) -> Iterator[tuple[str, str]]:
    predicate, verification = source.predicate, source.verification
    profile, evidence, validity = predicate.assessment.profile, predicate.evidence, predicate.validity
    yield "Claim", _code(predicate.claim)
    yield "Profile", f"{_code(profile.id)} {_code(profile.digest)}"
    names = predicate.scope.domains
    more = f" and {len(names) - _DOMAINS} more" if len(names) > _DOMAINS else ""
    yield "Domains", (", ".join(map(_code, names[:_DOMAINS])) or "none") + more
    yield "Evidence", f"{predicate.origin}, {evidence.records:,} records: {_code(evidence.digest)}"
    yield "Agent", _code(predicate.agent.digest)
    yield "Valid", f"{words.utc(validity.not_before)} to {words.utc(validity.not_after)}"
    yield "Issuer", _code(verification.claim.issuer.name if verification.claim else predicate.issuer.name)
    yield "Passport", _code(source.passport_id)
    by_status = {
        status: ", ".join(step.id for step in verification.steps if step.status == status) or "–"
        for status in ("passed", "skipped")
    }
    yield "Verified", f"{words.utc(verification.at)}: {by_status['passed']}"
    yield "Not checked", by_status["skipped"]


def _code(text: str) -> str:
    """Return foreign text as a code span."""
    shown = words.one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def badge(source: Source, **_: Any) -> tuple[str, str]:
    """Return the media type and the SVG."""
    left, right = "agent passport", _claim(source)
    end = f"{source.predicate.validity.not_after:%Y-%m-%d}"
    below = f"no evidence: verify {words.short(source.passport_id)}, ends {end}"
    first = _width(left)
    width = max(first + _width(right), _width(below))
    return "image/svg+xml", _SVG.format(
        width=width,
        first=first,
        rest=width - first,
        title=escape(f"{left}: {right}. No evidence. Ends {end}."),
        about=escape(f"{words.NOTICE} Passport {source.passport_id}."),
        dark=DARK,
        colour=COLOURS[source.predicate.origin],
        ink=INK,
        left=_text(left, 0, first, 14),
        right=_text(right, first, width - first, 14),
        below=_text(below, 0, width, 34),
    )


def _claim(source: Source) -> str:
    mark = f"{words.SPECIMEN} " if source.is_specimen else ""
    name = words.one_line(source.predicate.assessment.profile.id)
    name = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    return f"{mark}{words.above(source.predicate)[0].removesuffix('.')}; {name}"


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
