"""Marks and figures as hand-made SVG: a figure is a list of parts, `Plot` gives them axes.

Every number is rounded before it is written, so that the same input gives the same bytes; every figure
has a ``<title>``, which becomes its alternative text. Shapes show the status, colours repeat it:
the shapes survive grey print and colour blindness. Marks are drawn, since a font may lack the glyph. Colours
are those of light paper; the style sheet changes them by their value where a screen is dark.

Texts are escaped where they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log, log1p, log10, sqrt
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape
from msgspec import Struct

from certkit.assessment.assessment import Status
from certkit.ground.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTESTED: Final = "contested"
"""The status of a tier whose criteria are met while a serious finding is open."""
INK, SOFT, LINE, BLUE = "#1c1c1c", "#5f6368", "#c4c7c5", "#1f5f99"
_GOOD, _BAD, _OPEN, _SHADE = "#00695c", "#b3261e", "#7a5900", "#cfe3f5"

_TICK: Final = (
    '<circle cx="6" cy="6" r="6" fill="{c}"/>'
    '<path d="M3 6.3 5.2 8.5 9.2 3.9" fill="none" stroke="#fff" stroke-width="1.6"/>'
)
_CROSS: Final = (
    '<rect x="0" y="0" width="12" height="12" fill="{c}"/>'
    '<path d="M3.2 3.2 8.8 8.8M8.8 3.2 3.2 8.8" fill="none" stroke="#fff" stroke-width="1.6"/>'
)
_TRIANGLE: Final = (
    '<path d="M6 .8 11.4 11.2H.6Z" fill="#fff" stroke="{c}" stroke-width="1.4"/>'
    '<path d="M6 4.4V8M6 9V10.2" stroke="{c}" stroke-width="1.4"/>'
)
_DIAMOND: Final = (
    '<path d="M6 .3 11.7 6 6 11.7 .3 6Z" fill="{c}"/>'
    '<path d="M6 3V6.8M6 8V9.2" stroke="#fff" stroke-width="1.5"/>'
)
_HALF: Final = (
    '<circle cx="6" cy="6" r="5.3" fill="#fff" stroke="{c}" stroke-width="1.4"/>'
    '<path d="M6 .7A5.3 5.3 0 0 0 6 11.3Z" fill="{c}"/>'
)
_MARKS: Final[dict[str, tuple[str, str, str]]] = {
    Status.MET: ("met", _GOOD, _TICK),
    CONTESTED: ("contested", _BAD, _DIAMOND),
    Status.NOT_MET: ("not met", _BAD, _CROSS),
    Status.INSUFFICIENT: ("insufficient evidence", _OPEN, _TRIANGLE),
    Status.NOT_TESTED: (
        "not tested",
        SOFT,
        '<circle cx="6" cy="6" r="5.2" fill="#fff" stroke="{c}" stroke-width="1.4"/>',
    ),
    Status.NOT_APPLICABLE: ("not specified", SOFT, '<path d="M2 6H10" stroke="{c}" stroke-width="1.4"/>'),
    "refuted": ("refuted", _BAD, _CROSS),
    "undeveloped": (
        "undeveloped",
        SOFT,
        '<path d="M6 .8 11.2 6 6 11.2 .8 6Z" fill="#fff" stroke="{c}" stroke-width="1.4"/>',
    ),
    "challenged": ("questioned", _OPEN, _TRIANGLE),
    "asserted": ("asserted", BLUE, _HALF),
    "supported": ("supported", _GOOD, _TICK),
}
"""Status of a criterion or tier, or state of a node → its word, colour, and shape in a 12 × 12 box."""


def word(status: str) -> str:
    """Return the word of a status or state."""
    return _MARKS[status][0]


def colour(status: str) -> str:
    """Return the colour of a status or state."""
    return _MARKS[status][1]


def _shape(status: str) -> str:
    return _MARKS[status][2].format(c=colour(status))


def mark(status: str, said: str = "") -> Markup:
    """Return the mark of a status or state, titled with its word, or with what is said beside it."""
    return Markup(  # noqa: S704 - built from constants, or escaped
        f'<svg class="mark" viewBox="0 0 12 12" width="9" height="9" role="img">'
        f"<title>{escape(said or word(status))}</title>{_shape(status)}</svg>"
    )


def judged(status: str, said: str = "") -> Markup:
    """Return the mark of a status or state with its word, or with what is said in its place."""
    said = said or word(status)
    return mark(status, said) + Markup('\u00a0<span class="word">{}</span>').format(said)


def num(number: float) -> str:
    """Return a coordinate with at most one decimal, so that bytes do not depend on the machine."""
    return f"{number:.1f}".rstrip("0").rstrip(".")


def text_at(
    x: float, y: float, text: str, *, anchor: str = "start", size: float = 11, fill: str = INK
) -> str:
    """Return a line of text at a point."""
    return (
        f'<text x="{num(x)}" y="{num(y)}" font-size="{num(size)}" text-anchor="{anchor}" fill="{fill}">'
        f"{escape(visible(text))}</text>"
    )


def line_at(x1: float, y1: float, x2: float, y2: float, *, stroke: str = LINE, width: float = 1) -> str:
    """Return a straight line between two points."""
    return (
        f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" stroke="{stroke}"'
        f' stroke-width="{num(width)}"/>'
    )


def path(d: str, *, stroke: str = INK, width: float = 1, dash: str = "", fill: str = "none") -> str:
    """Return a path."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{d}" fill="{fill}" stroke="{stroke}" stroke-width="{num(width)}"{dashed}/>'


def figure_of(name: str, title: str, width: int, height: int, parts: Iterable[str]) -> Markup:
    """Return a figure of its parts; the title becomes its alternative text."""
    return Markup(  # noqa: S704 - texts are escaped where they are written
        f'<svg id="figure-{name}" class="figure" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="Source Sans Pro, Source Sans 3, sans-serif" role="img">'
        f"<title>{escape(visible(title))}</title>{''.join(parts)}</svg>"
    )


_WIDTH: Final = 660
_LEFT, _RIGHT, _ROW, _TOP, _APART = 158, 528, 25, 26, 11


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
    text: str

    def x(self, at: float) -> float:
        """Return where a value stands, the worst end left and the best right."""
        share = min(max((at - self.low) / (self.high - self.low), 0.0), 1.0)
        return _LEFT + (_RIGHT - _LEFT) * (share if self.higher else 1 - share)


def forest(tracks: Sequence[Track], *, title: str) -> Markup:
    """Return the forest plot: value, interval and tier thresholds of each criterion, better to the right."""
    parts = [
        text_at(_LEFT, 12, "worse", size=10, fill=SOFT),
        text_at(_RIGHT, 12, "better", anchor="end", size=10, fill=SOFT),
    ]
    for number, track in enumerate(tracks):
        parts += _track(track, _TOP + _ROW * number + _ROW / 2)
    return figure_of("forest", title, _WIDTH, _TOP + _ROW * len(tracks) + 4, parts)


def _track(track: Track, y: float) -> list[str]:
    ink = colour(track.status)
    parts = [text_at(_LEFT - 10, y + 4, track.label, anchor="end"), line_at(_LEFT, y, _RIGHT, y)]
    for at, label in _joined([(track.x(threshold), tier) for tier, threshold in track.thresholds]):
        parts += [
            line_at(at, y - 6, at, y + 6, stroke=SOFT),
            text_at(at, y - 7, label, anchor="middle", size=9.5, fill=SOFT),
        ]
    if track.value is not None:
        if track.interval is not None:
            low, high = sorted(map(track.x, track.interval))
            parts.append(line_at(low, y, high, y, stroke=ink, width=3))
        parts.append(point(track.status, track.x(track.value), y))
    parts.append(text_at(_RIGHT + 14, y + 4, track.text, fill=ink, size=10.5))
    return parts


def point(status: str, x: float, y: float) -> str:
    """Return the mark of a status at a point of a figure."""
    return f'<g transform="translate({num(x - 6)} {num(y - 6)})">{_shape(status)}</g>'


def _joined(ticks: list[tuple[float, int]]) -> list[tuple[float, str]]:
    """Return ticks with labels, the labels of ticks too close to be told apart written as one."""
    joined: list[tuple[float, str]] = []
    for at, tier in sorted(ticks):
        if joined and at - joined[-1][0] < _APART:
            joined[-1] = (joined[-1][0], f"{joined[-1][1]},{tier}")
        else:
            joined.append((at, str(tier)))
    return joined


class Plot:
    """A figure with axes: `x` and `y` are the ends of its scales, x from left to right and y upwards."""

    right: Final = 636.0

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, left: float, top: float, base: float
    ) -> None:
        self.scale, self.height, self.left, self.top, self.base = x, y, left, top, base
        self.parts = [line_at(left, base, self.right, base, stroke=INK)]

    def x(self, at: float) -> float:
        """Return where a value stands from the left."""
        low, high = self.scale
        return self.left + (self.right - self.left) * (at - low) / (high - low)

    def y(self, at: float) -> float:
        """Return where a value stands from above."""
        low, high = self.height
        return self.base - (self.base - self.top) * (at - low) / (high - low)

    def below(self, ticks: Iterable[tuple[float, str]], caption: str) -> None:
        """Draw ticks below the axis, and what it shows."""
        for at, label in ticks:
            self.parts += [
                line_at(self.x(at), self.base, self.x(at), self.base + 4, stroke=INK),
                text_at(self.x(at), self.base + 16, label, anchor="middle", size=10),
            ]
        self.parts.append(text_at((self.left + self.right) / 2, self.base + 32, caption, anchor="middle"))

    def upright(self, at: float, y: float, label: str) -> None:
        """Draw a dashed line down to the axis, its label beside its upper end."""
        x = self.x(at)
        left = x > (self.left + self.right) / 2
        anchor, shift = ("end", -5) if left else ("start", 5)
        self.parts += [
            path(f"M{num(x)} {num(y - 8)}V{num(self.base)}", dash="4 3"),
            text_at(x + shift, y, label, anchor=anchor, size=10.5),
        ]

    def through(self, points: Iterable[tuple[float, float]]) -> str:
        """Return the path through points."""
        return "M" + "L".join(f"{num(self.x(x))} {num(self.y(y))}" for x, y in points)

    def drawn(self, name: str, title: str) -> Markup:
        """Return the figure."""
        return figure_of(name, title, _WIDTH, int(self.base) + 40, self.parts)


_POINTS: Final = 161


def posterior(successes: int, n: int, tau: Sequence[tuple[int, float]], *, title: str) -> Markup:
    """Return the density of θ ~ Beta(1 + s, 1 + n − s) with each tier's τ; heights relative to its peak."""
    a, b = 1 + successes, 1 + n - successes
    mean = a / (a + b)
    spread = 5 * sqrt(mean * (1 - mean) / (a + b + 1))
    low = max(0.0, min([mean - spread, *(at for _, at in tau)]) - 0.02)
    high = min(1.0, max([mean + spread, *(at for _, at in tau)]) + 0.02)
    plot = Plot((low, high), (0, 1), left=24, top=52, base=130)
    points = _density(successes, n - successes, low, high)
    area = plot.through([(low, 0), *points, (high, 0)])
    plot.parts.append(f'<path d="{area}Z" fill="{_SHADE}"/>')
    plot.parts.append(path(plot.through(points), stroke=BLUE, width=1.5))
    plot.below(
        [(step / 20, f"{step / 20:.2f}") for step in range(21) if low <= step / 20 <= high],
        "success rate under faults, θ",
    )
    for number, (tier, at) in enumerate(tau):
        plot.upright(at, 12 + 14 * (number % 3), f"Tier {tier}: τ = {at:g}")
    return plot.drawn("posterior", title)


def _density(s: int, f: int, low: float, high: float) -> list[tuple[float, float]]:
    """Return points of the density θ^s (1 − θ)^f, relative to its peak."""
    peak = _log_density(s, f, s / (s + f))
    places = [low + (high - low) * step / (_POINTS - 1) for step in range(_POINTS)]
    return [(at, exp(_log_density(s, f, at) - peak)) for at in places]


def _log_density(s: int, f: int, at: float) -> float:
    if (s and at <= 0) or (f and at >= 1):
        return -inf
    return (s * log(at) if s else 0.0) + (f * log1p(-at) if f else 0.0)


class ShareBar(Struct, frozen=True, kw_only=True):
    """A share with its upper bound, beside the share that is tolerable; None where there is none."""

    label: str
    share: float | None
    bound: float | None
    tolerable: float | None
    state: str


def bars(rows: Sequence[ShareBar], *, title: str) -> Markup:
    """Return shares with their bounds against what is tolerable, on a logarithmic axis that ends at 100 %."""
    named = [at for row in rows for at in (row.share, row.bound, row.tolerable) if at]
    least = min([-2, *(int(log10(at)) - 1 for at in named)])
    left = min(_LEFT, 18 + 7 * max(len(row.label) for row in rows))  # short names leave a phone room for bars
    plot = Plot((least, 0), (0, 1), left=left, top=_TOP, base=_TOP + _ROW * len(rows))
    for number, row in enumerate(rows):
        y = _TOP + _ROW * (number + 0.5)
        plot.parts += [text_at(left - 10, y + 4, row.label, anchor="end"), line_at(left, y, plot.right, y)]
        low, high = (plot.x(max(log10(at), least)) if at else plot.left for at in (row.share, row.bound))
        if row.bound:
            plot.parts += [line_at(low, y, high, y, stroke=colour(row.state), width=3)]
            plot.parts += [line_at(high, y - 5, high, y + 5, stroke=colour(row.state), width=2)]
        if row.share is not None:
            plot.parts.append(point(row.state, low, y))
        if row.tolerable:
            x = plot.x(log10(row.tolerable))
            plot.parts.append(path(f"M{num(x)} {num(y - 9)}V{num(y + 9)}", width=2, dash="3 2"))
    ticks = ((at, f"{100 * 10**at:.10g} %") for at in range(least, 1))
    plot.below(ticks, "events per run, or per attack")
    return plot.drawn("hazards", title)


class Polyline(Struct, frozen=True, kw_only=True):
    """A line through points; `dash` tells it from others where there is no colour."""

    label: str
    points: Sequence[tuple[float, float]]
    stroke: str = INK
    dash: str = ""


Ticks = Sequence[tuple[float, str]]
"""Values with their labels; the first and the last are the ends of the scale."""


def curves(
    name: str, rows: Sequence[Polyline], across: Ticks, up: Ticks, *, caption: str, title: str
) -> Markup:
    """Return lines over one scale, what each is named above them; `caption` says what the scale below is."""
    scales = ((ticks[0][0], ticks[-1][0]) for ticks in (across, up))
    plot = Plot(*scales, left=60, top=30, base=130)
    for at, label in up:
        y = plot.y(at)
        plot.parts += [line_at(plot.left, y, plot.right, y)]
        plot.parts += [text_at(plot.left - 8, y + 4, label, anchor="end", size=10)]
    for number, row in enumerate(rows):
        x = plot.left + 190 * number
        plot.parts.append(path(f"M{num(x)} 10H{num(x + 26)}", stroke=row.stroke, width=2, dash=row.dash))
        plot.parts.append(text_at(x + 32, 14, row.label, size=10.5))
        plot.parts.append(path(plot.through(row.points), stroke=row.stroke, width=2, dash=row.dash))
    plot.below(across, caption)
    return plot.drawn(name, title)
