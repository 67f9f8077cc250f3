"""Commitments behind the answers: sentences, and a figure of success and probes by family.

Drawn where the assessment carries commitment integrity, which moves no tier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.findings.provenance import TASKS
from certkit.report.svg import figure_of, line_at, num, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

_LEFT, _RIGHT, _WIDTH, _ROW, _TOP = 168, 540, 660, 38, 30
_BARS: Final = (
    ("tasks answered rightly", "successes", "tasks", "#1f5f99"),
    ("probes held", "matched", "probes", "#cfe3f5"),
)
"""The two bars of a family: their name, what is counted of how many, and their colour."""


class Commitments(Struct, frozen=True, kw_only=True):
    """The section: what it says, and its figure with a title that is a finding."""

    told: tuple[str, ...]
    figure: Markup
    finding: str


def commitments(document: Mapping[str, Any]) -> Commitments | None:
    """Return the section of an assessment's document, None where it carries no commitment integrity."""
    scored = document.get("integrity")
    if scored is None:
        return None
    families: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in scored["by_cell"]:
        families[cell["family"]].update({name: cell[name] for bar in _BARS for name in bar[1:3]})
    least = min(families, key=lambda family: families[family]["matched"] / families[family]["probes"])
    held, probes = (families[least][name] for name in ("matched", "probes"))
    finding = "All probes are held in every family"
    if held < probes:
        finding = f"Fewest probes are held in {_words(least)}: {held} of {probes}"
    return Commitments(told=tuple(_told(scored)), figure=_figure(families, finding), finding=finding)


def _told(scored: Mapping[str, Any]) -> Iterator[str]:
    success, accuracy, core = scored["success"], scored["accuracy"], scored["core"]
    yield (
        f"The agent answered {success['successes']:,} of {success['n']:,} tasks rightly. Asked for the "
        f"rule, the source or the update behind an answer, it held {accuracy['matched']:,} of "
        f"{accuracy['n']:,} probes ({accuracy['unclear']:,} replies were unclear)."
    )
    if hollow := len(scored["hollow"]["tasks"]):
        yield f"{hollow:,} of {success['successes']:,} successes hold fewer than half of their probes."
    value = "unmeasured, since replies are missing" if core["value"] is None else f"{core['value']:.3f}"
    if core["interval"]:
        value += f" (95 % interval {core['interval'][0]:.3f} to {core['interval'][1]:.3f})"
    yield (
        f"Commitment integrity (HCCIS-CORE) is {value}; on these tasks agents reach {core['floor']:.3f} to "
        f"{core['ceiling']:.3f}. It moves no tier and says nothing about safety."
    )
    if reason := TASKS.get(scored["origin"]["seed"]):
        yield f"{reason[:1].upper()}{reason[1:]}."


def _figure(families: Mapping[str, Counter[str]], title: str) -> Markup:
    parts = []
    for bar, (name, *_, colour) in enumerate(_BARS):
        x = _LEFT + 200 * bar
        parts += [_bar(x, 6, 22, colour), text_at(x + 28, 15, name)]
    for row, (family, counts) in enumerate(families.items()):
        y = _TOP + _ROW * row
        parts.append(text_at(_LEFT - 10, y + 18, _words(family), anchor="end"))
        for bar, ((_, part, whole, colour), shown) in enumerate(zip(_BARS, _shares(counts), strict=True)):
            top, width = y + 14 * bar, (_RIGHT - _LEFT) * counts[part] / counts[whole]
            parts += [_bar(_LEFT, top, width, colour), text_at(_RIGHT + 12, top + 10, shown, size=10.5)]
    bottom = _TOP + _ROW * len(families)
    for x, share in ((_LEFT, "0 %"), (_RIGHT, "100 %")):
        parts += [
            line_at(x, _TOP - 4, x, bottom - 4),
            text_at(x, bottom + 8, share, anchor="middle", size=10),
        ]
    return figure_of("commitments", title, _WIDTH, bottom + 12, parts)


def _bar(x: float, y: float, width: float, colour: str) -> str:
    place = f'x="{num(x)}" y="{num(y)}" width="{num(width)}" height="11"'
    return f'<rect {place} fill="{colour}" stroke="#1c1c1c" stroke-width=".6"/>'


def _shares(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{counts[part]:,} of {counts[whole]:,}" for _, part, whole, _ in _BARS)


def _words(family: str) -> str:
    return family.replace("_", " ")
