"""Figures and status marks as hand-made SVG.

Every number is rounded before it is written, so that the same input gives the same bytes; every figure
has a ``<title>``, which becomes its alternative text. Shapes show the status, colours repeat it:
the shapes survive grey print and colour blindness. Marks are drawn, since a font may lack the glyph.

No text of the evidence enters a figure; labels are the identifiers of criteria.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape
from msgspec import Struct

from certkit.assessment import Status
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONTESTED: Final = "contested"
"""The status of a tier whose criteria are met while a serious challenge is open."""
WORDS: Final[dict[str, str]] = {
    Status.MET: "met",
    CONTESTED: "contested",
    Status.NOT_MET: "not met",
    Status.INSUFFICIENT: "insufficient evidence",
    Status.NOT_TESTED: "not tested",
    Status.NOT_APPLICABLE: "not specified",
}
COLOURS: Final[dict[str, str]] = {
    Status.MET: "#00695c",
    CONTESTED: "#b3261e",
    Status.NOT_MET: "#b3261e",
    Status.INSUFFICIENT: "#7a5900",
    Status.NOT_TESTED: "#5f6368",
    Status.NOT_APPLICABLE: "#9aa0a6",
}
_INK, _SOFT, _LINE, _SHADE = "#1c1c1c", "#5f6368", "#c4c7c5", "#cfe3f5"

# Drawn in a 12 × 12 box: a tick, a cross, a broken ring, an empty ring, a dash.
_SHAPES: Final[dict[str, str]] = {
    CONTESTED: '<path d="M6 .3 11.7 6 6 11.7 .3 6Z" fill="{c}"/>'
    '<path d="M6 3V6.8M6 8V9.2" stroke="#fff" stroke-width="1.5"/>',
    Status.MET: '<circle cx="6" cy="6" r="6" fill="{c}"/>'
    '<path d="M3 6.3 5.2 8.5 9.2 3.9" fill="none" stroke="#fff" stroke-width="1.6"/>',
    Status.NOT_MET: '<rect x="0" y="0" width="12" height="12" fill="{c}"/>'
    '<path d="M3.2 3.2 8.8 8.8M8.8 3.2 3.2 8.8" fill="none" stroke="#fff" stroke-width="1.6"/>',
    Status.INSUFFICIENT: '<path d="M6 .8 11.4 11.2H.6Z" fill="#fff" stroke="{c}" stroke-width="1.4"/>'
    '<path d="M6 4.4V8M6 9V10.2" stroke="{c}" stroke-width="1.4"/>',
    Status.NOT_TESTED: '<circle cx="6" cy="6" r="5.2" fill="#fff" stroke="{c}" stroke-width="1.4"/>',
    Status.NOT_APPLICABLE: '<path d="M2 6H10" stroke="{c}" stroke-width="1.4"/>',
}


STATES: Final[dict[str, tuple[str, str]]] = {
    "refuted": ("#b3261e", _SHAPES[Status.NOT_MET]),
    "undeveloped": (
        "#5f6368",
        '<path d="M6 .8 11.2 6 6 11.2 .8 6Z" fill="#fff" stroke="{c}" stroke-width="1.4"/>',
    ),
    "challenged": ("#7a5900", _SHAPES[Status.INSUFFICIENT]),
    "asserted": (
        "#1f5f99",
        (
            '<circle cx="6" cy="6" r="5.3" fill="#fff" stroke="{c}" stroke-width="1.4"/>'
            '<path d="M6 .7A5.3 5.3 0 0 0 6 11.3Z" fill="{c}"/>'
        ),
    ),
    "supported": ("#00695c", _SHAPES[Status.MET]),
}
"""State of a node of the argument → its colour and its shape in a 12 × 12 box."""


def state_mark(state: str) -> Markup:
    """Return the mark of a node's state with its word."""
    colour, shape = STATES[state]
    return Markup(  # noqa: S704 - built from constants
        f'<svg class="mark" viewBox="0 0 12 12" width="9" height="9" role="img">'
        f"<title>{state}</title>{shape.format(c=colour)}</svg>\u00a0{state}"
    )


def mark(status: str) -> Markup:
    """Return the mark of a status, 12 units square, titled with its word."""
    shape = _SHAPES[status].format(c=COLOURS[status])
    return Markup(  # noqa: S704 - built from constants
        f'<svg class="mark" viewBox="0 0 12 12" width="9" height="9" role="img">'
        f"<title>{WORDS[status]}</title>{shape}</svg>"
    )


def judged(status: str) -> Markup:
    """Return the mark of a status with its word."""
    return mark(status) + Markup("\u00a0") + Markup('<span class="word">{}</span>').format(WORDS[status])


class Track(Struct, frozen=True, kw_only=True):
    """One row of the forest plot, on its own scale from `low` to `high`; `higher`: more is better."""

    label: str
    status: Status
    value: float | None
    interval: tuple[float, float] | None
    thresholds: tuple[tuple[int, float], ...]
    low: float
    high: float
    higher: bool
    shown: str

    def place(self, at: float) -> float:
        """Return where a value stands, 0 the worst end and 1 the best."""
        share = min(max((at - self.low) / (self.high - self.low), 0.0), 1.0)
        return share if self.higher else 1 - share


def num(number: float) -> str:
    """Return a coordinate with at most one decimal, so that bytes do not depend on the machine."""
    return f"{number:.1f}".rstrip("0").rstrip(".")


def text_at(
    x: float, y: float, text: str, *, anchor: str = "start", size: float = 11, fill: str = _INK
) -> str:
    """Return a line of text at a point."""
    return (
        f'<text x="{num(x)}" y="{num(y)}" font-size="{num(size)}" text-anchor="{anchor}" fill="{fill}">'
        f"{escape(visible(text))}</text>"
    )


def line_at(x1: float, y1: float, x2: float, y2: float, *, stroke: str = _LINE, width: float = 1) -> str:
    """Return a straight line between two points."""
    return (
        f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" stroke="{stroke}"'
        f' stroke-width="{num(width)}"/>'
    )


def figure_of(name: str, title: str, width: int, height: int, parts: Iterable[str]) -> Markup:
    """Return a figure of its parts; the title becomes its alternative text."""
    return Markup(  # noqa: S704 - texts are escaped where they are written
        f'<svg id="figure-{name}" class="figure" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="Source Sans Pro, Source Sans 3, sans-serif" role="img">'
        f"<title>{escape(visible(title))}</title>{''.join(parts)}</svg>"
    )


_WIDTH: Final = 660
_LEFT, _RIGHT, _ROW, _TOP = 158, 528, 25, 26


def forest(tracks: Sequence[Track], *, title: str) -> Markup:
    """Return the forest plot: value, interval and tier thresholds of each criterion, better to the right."""
    parts = [
        text_at(_LEFT, 12, "worse", size=10, fill=_SOFT),
        text_at(_RIGHT, 12, "better", anchor="end", size=10, fill=_SOFT),
    ]
    for number, track in enumerate(tracks):
        parts += _track(track, _TOP + _ROW * number + _ROW / 2)
    return figure_of("forest", title, _WIDTH, _TOP + _ROW * len(tracks) + 4, parts)


def _track(track: Track, y: float) -> list[str]:
    def x(at: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * track.place(at)

    colour = COLOURS[track.status]
    parts = [text_at(_LEFT - 10, y + 4, track.label, anchor="end"), line_at(_LEFT, y, _RIGHT, y)]
    for at, label in _joined([(x(threshold), tier) for tier, threshold in track.thresholds]):
        parts += [
            line_at(at, y - 6, at, y + 6, stroke=_SOFT),
            text_at(at, y - 7.5, label, anchor="middle", size=8, fill=_SOFT),
        ]
    if track.value is not None:
        if track.interval is not None:
            low, high = sorted(x(end) for end in track.interval)
            parts.append(line_at(low, y, high, y, stroke=colour, width=3))
        parts.append(_point(track.status, x(track.value), y, colour))
    parts.append(text_at(_RIGHT + 14, y + 4, track.shown, fill=colour, size=10.5))
    return parts


def _joined(ticks: list[tuple[float, int]], *, least: float = 9) -> list[tuple[float, str]]:
    """Return ticks with labels, the labels of ticks too close to be told apart written as one."""
    joined: list[tuple[float, str]] = []
    for at, tier in sorted(ticks):
        if joined and at - joined[-1][0] < least:
            joined[-1] = (joined[-1][0], f"{joined[-1][1]},{tier}")
        else:
            joined.append((at, str(tier)))
    return joined


def _point(status: Status, x: float, y: float, colour: str) -> str:
    if status is Status.MET:
        return f'<circle cx="{num(x)}" cy="{num(y)}" r="5" fill="{colour}"/>'
    if status is Status.NOT_MET:
        return f'<rect x="{num(x - 4.5)}" y="{num(y - 4.5)}" width="9" height="9" fill="{colour}"/>'
    if status is Status.NOT_APPLICABLE:
        return (
            f'<circle cx="{num(x)}" cy="{num(y)}" r="4.5" fill="#fff" stroke="{colour}" stroke-width="1.5"/>'
        )
    return (
        f'<path d="M{num(x)} {num(y - 5.5)} {num(x + 5.5)} {num(y + 4.5)}H{num(x - 5.5)}Z" fill="#fff"'
        f' stroke="{colour}" stroke-width="1.5"/>'
    )


_POINTS: Final = 160
_P_LEFT, _P_RIGHT, _P_TOP, _P_BASE = 24, 636, 58, 190


def posterior(successes: int, n: int, tau: Sequence[tuple[int, float]], *, title: str) -> Markup:
    """Return the density of θ ~ Beta(1 + s, 1 + n − s) with each tier's τ; heights relative to its peak."""
    a, b = 1 + successes, 1 + n - successes
    mean = a / (a + b)
    spread = 5 * sqrt(mean * (1 - mean) / (a + b + 1))
    low = max(0.0, min([mean - spread, *(at for _, at in tau)]) - 0.02)
    high = min(1.0, max([mean + spread, *(at for _, at in tau)]) + 0.02)

    def x(at: float) -> float:
        return _P_LEFT + (_P_RIGHT - _P_LEFT) * (at - low) / (high - low)

    peak = successes / n
    outline = [
        f"{num(x(at))} {num(_P_BASE - (_P_BASE - _P_TOP) * height)}"
        for at, height in _curve(successes, n - successes, peak, low, high)
    ]
    area = f"M{num(x(low))} {_P_BASE}L{'L'.join(outline)}L{num(x(high))} {_P_BASE}Z"
    parts = [
        f'<path d="{area}" fill="{_SHADE}"/>',
        f'<path d="M{"L".join(outline)}" fill="none" stroke="#1f5f99" stroke-width="1.5"/>',
        line_at(_P_LEFT, _P_BASE, _P_RIGHT, _P_BASE, stroke=_INK),
    ]
    for step in range(21):
        if low <= (at := step / 20) <= high:
            parts += [
                line_at(x(at), _P_BASE, x(at), _P_BASE + 4, stroke=_INK),
                text_at(x(at), _P_BASE + 16, f"{at:.2f}", anchor="middle", size=10),
            ]
    for number, (tier, at) in enumerate(tau):
        y = 12 + 14 * (number % 3)
        anchor = "end" if x(at) > (_P_LEFT + _P_RIGHT) / 2 else "start"
        shift = -5 if anchor == "end" else 5
        parts += [
            f'<path d="M{num(x(at))} {num(y - 8)}V{_P_BASE}" stroke="{_INK}" stroke-dasharray="4 3"/>',
            text_at(x(at) + shift, y, f"Tier {tier}: τ = {at:g}", anchor=anchor, size=10.5),
        ]
    parts.append(
        text_at((_P_LEFT + _P_RIGHT) / 2, _P_BASE + 32, "success rate under faults, θ", anchor="middle")
    )
    return figure_of("posterior", title, _WIDTH, _P_BASE + 38, parts)


def _curve(s: int, f: int, peak: float, low: float, high: float) -> list[tuple[float, float]]:
    """Return points of the density θ^s (1 − θ)^f, relative to its height at `peak`."""

    def logarithm(at: float) -> float:
        # 0 · log 0 is 0 here: the density is finite at an end whose outcome was never seen.
        left = s * log(at) if s else 0.0
        return left + (f * log(1 - at) if f else 0.0)

    top = logarithm(peak)
    points = []
    for step in range(_POINTS + 1):
        at = low + (high - low) * step / _POINTS
        outside = (at <= 0 and s > 0) or (at >= 1 and f > 0)
        points.append((at, 0.0 if outside else exp(max(logarithm(at) - top, -700.0))))
    return points


_C_LEFT, _C_RIGHT, _C_TOP, _C_BASE = 48, 636, 40, 230
_CURVES: Final = ((2, "#1f5f99", 2.0, ""), (1, _SOFT, 1.5, "5 3"))


def power(
    points: Sequence[tuple[int, float, float]], *, planned: int, wanted: float, driver: str, title: str
) -> str:
    """Return the curve of power as a file of its own.

    A point is the tasks in all, the power of the row `driver`, and that of all rows together.
    """
    most = points[-1][0]

    def x(runs: int) -> float:
        return _C_LEFT + (_C_RIGHT - _C_LEFT) * runs / most

    def y(share: float) -> float:
        return _C_BASE - (_C_BASE - _C_TOP) * share

    parts = [line_at(_C_LEFT, _C_BASE, _C_RIGHT, _C_BASE, stroke=_INK)]
    for step in range(0, 101, 20):
        at = y(step / 100)
        parts += [
            line_at(_C_LEFT, at, _C_RIGHT, at),
            text_at(_C_LEFT - 6, at + 3.5, f"{step} %", anchor="end", size=10),
        ]
    step = _step(most)
    for runs in range(0, most + 1, step):
        parts += [
            line_at(x(runs), _C_BASE, x(runs), _C_BASE + 4, stroke=_INK),
            text_at(x(runs), _C_BASE + 16, f"{runs:,}", anchor="middle", size=10),
        ]
    for place, (column, stroke, width, dashes) in enumerate(_CURVES):
        path = "L".join(f"{num(x(point[0]))} {num(y(point[column]))}" for point in points)
        style = f'fill="none" stroke="{stroke}" stroke-width="{num(width)}"' + (
            f' stroke-dasharray="{dashes}"' if dashes else ""
        )
        label = ("all expected rows together", driver)[place]
        key = _C_LEFT + 230 * place
        parts += [
            f'<path d="M{path}" {style}/><path d="M{key} 14H{key + 26}" {style}/>',
            text_at(key + 32, 18, label),
        ]
    parts += [
        f'<path d="M{num(x(planned))} {_C_TOP - 8}V{_C_BASE}" stroke="{_INK}" stroke-dasharray="4 3"/>',
        f'<path d="M{_C_LEFT} {num(y(wanted))}H{_C_RIGHT}" stroke="{_INK}" stroke-dasharray="4 3"/>',
        text_at(x(planned) + 5, _C_TOP - 2, f"planned: {planned:,}", size=10.5),
        text_at((_C_LEFT + _C_RIGHT) / 2, _C_BASE + 32, "tasks in all", anchor="middle"),
    ]
    figure = figure_of("power", title, _WIDTH, _C_BASE + 40, parts)
    return str(figure).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _step(most: int) -> int:
    """Return a round distance of ticks, so that there are at most seven beyond 0."""
    step = 1
    while most // step > 7:  # noqa: PLR2004 - ticks
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return step
