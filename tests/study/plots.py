"""Line charts as hand-made SVG, legible in grey: lines differ by mark and dash before colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WIDTH, _LEFT, _RIGHT, _TOP, _FOOT = 700, 68, 500, 44, 58
_HEIGHT: Final = 278
"""Height of the plane of a chart; `_FOOT` is below it, for ticks and words."""

_PANEL, _GAP = 112, 34
_INK, _SOFT, _GRID = "#1c1c1c", "#5f6368", "#e3e3e3"
_LEADING: Final = 15
_FONT: Final = "Source Sans Pro, Source Sans 3, Helvetica, Arial, sans-serif"


class Style(NamedTuple):
    """How a line is drawn: colour, dashes, and the mark at its points (none where "")."""

    colour: str
    dash: str
    mark: str


TABLE: Final = Style("#b3261e", "7 4", "square")
BOUNDED: Final = Style("#00594f", "", "circle")
THIRD: Final = Style("#1f5f99", "2 3", "triangle")
FOURTH: Final = Style("#7a5900", "9 3 2 3", "diamond")


class Line(NamedTuple):
    """A named line through points (x, y)."""

    label: str
    points: Sequence[tuple[float, float]]
    style: Style


class Axis(NamedTuple):
    """An axis: its words, its ticks in order (the first and last are its ends), and how a tick is written."""

    words: str
    ticks: Sequence[float]
    written: str = "{:g}"

    def place(self, value: float) -> float:
        """Return where a value stands between the ends, 0 to 1."""
        low, high = self.ticks[0], self.ticks[-1]
        return (value - low) / (high - low)


class _Plane(NamedTuple):
    """Where points of two axes stand on the page, between the heights `top` and `base`."""

    x: Axis
    y: Axis
    top: float
    base: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (_RIGHT - _LEFT) * self.x.place(x),
            self.base - (self.base - self.top) * self.y.place(y),
        )


def chart(
    title: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Line],
    *,
    nominal: float | None = None,
    note: str = "nominal",
) -> str:
    """Return a chart; each line is named at its right end. `nominal` is a level drawn across."""
    plane = _Plane(x, y, _TOP, _TOP + _HEIGHT)
    parts, labels = _grid(plane), []
    if nominal is not None:
        _, level = plane.at(x.ticks[0], nominal)
        parts.append(_across(level, _INK))
        labels.append((level, note, _INK, ""))
    for line in lines:
        parts += _drawn(plane, line)
        labels.append((plane.at(*line.points[-1])[1], line.label, line.style.colour, line.style.mark))
    parts += [*_foot(plane), *_side(plane.top, plane.base, y.words), *_labels(labels, plane.base)]
    return _page(title, plane.base + _FOOT, parts)


def panels(title: str, x: Axis, y: Axis, lines: Sequence[Line], *, nominal: float) -> str:
    """Return one plane above the other, a line in each, for lines that would hide each other."""
    parts: list[str] = []
    base = float(_TOP)
    for number, line in enumerate(lines):
        top = _TOP + number * (_PANEL + _GAP)
        base = top + _PANEL
        plane = _Plane(x, y, top, base)
        parts += _grid(plane)
        parts.append(_across(plane.at(x.ticks[0], nominal)[1], _INK))
        parts += _drawn(plane, line)
        parts.append(_text(_RIGHT + 15, (top + base) / 2, line.label, fill=line.style.colour))
    parts += [*_foot(plane), *_side(_TOP, base, y.words)]
    return _page(title, base + _FOOT, parts)


def _page(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {_WIDTH} {_n(height)}" width="{_WIDTH}" height="{_n(height)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}" role="img">'
    name = f"<title>{escape(title)}</title>"
    ground = f'<rect width="{_WIDTH}" height="{_n(height)}" fill="#fff"/>'
    return "".join([head, name, ground, _text(12, 22, title, size=14.5, weight="600"), *parts, "</svg>\n"])


def _grid(plane: _Plane) -> list[str]:
    parts = []
    for tick in plane.y.ticks:
        _, py = plane.at(plane.x.ticks[0], tick)
        parts.append(_across(py, _GRID))
        parts.append(_text(_LEFT - 8, py + 4, plane.y.written.format(tick), anchor="end", fill=_SOFT))
    return [*parts, _across(plane.base, _INK)]


def _across(y: float, colour: str) -> str:
    return f'<path d="M{_LEFT} {_n(y)}H{_RIGHT}" stroke="{colour}"/>'


def _foot(plane: _Plane) -> list[str]:
    parts = [_text((_LEFT + _RIGHT) / 2, plane.base + 42, plane.x.words, anchor="middle")]
    for tick in plane.x.ticks:
        px, _ = plane.at(tick, plane.y.ticks[0])
        parts.append(f'<path d="M{_n(px)} {_n(plane.base)}v5" stroke="{_SOFT}"/>')
        parts.append(_text(px, plane.base + 19, plane.x.written.format(tick), anchor="middle", fill=_SOFT))
    return parts


def _side(top: float, base: float, words: str) -> list[str]:
    middle = (top + base) / 2
    return [f'<g transform="rotate(-90 16 {_n(middle)})">{_text(16, middle, words, anchor="middle")}</g>']


def _drawn(plane: _Plane, line: Line) -> list[str]:
    points = [plane.at(*point) for point in line.points]
    colour, dash, mark = line.style
    path = "L".join(f"{_n(px)} {_n(py)}" for px, py in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    width = 2 if mark else 1.4
    drawn = f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
    return [drawn, *(_MARKS[mark](px, py, colour) for px, py in points if mark)]


def _labels(labels: list[tuple[float, str, str, str]], base: float) -> list[str]:
    """Name the lines at their right ends, moved apart where they meet."""
    parts = []
    below = float("-inf")
    order = sorted(labels)
    # A pile that would leave the foot of the chart starts higher.
    for number, (level, label, colour, mark) in enumerate(order):
        room = base + 10 - _LEADING * (len(order) - 1 - number)
        here = max(min(level, room), below + _LEADING)
        below = here
        parts.append(f'<path d="M{_RIGHT + 2} {_n(level)}L{_RIGHT + 12} {_n(here)}" stroke="{colour}"/>')
        if mark:
            parts.append(_MARKS[mark](_RIGHT + 18, here, colour))
        parts.append(_text(_RIGHT + 27 if mark else _RIGHT + 15, here + 4, label, fill=colour))
    return parts


_MARKS: Final[dict[str, Callable[[float, float, str], str]]] = {
    "circle": lambda x, y, c: f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4" fill="{c}"/>',
    "square": lambda x, y, c: (
        f'<rect x="{_n(x - 4)}" y="{_n(y - 4)}" width="8" height="8" fill="#fff" stroke="{c}"'
        ' stroke-width="1.8"/>'
    ),
    "triangle": lambda x, y, c: f'<path d="M{_n(x)} {_n(y - 5)}l5 8.5h-10Z" fill="{c}"/>',
    "diamond": lambda x, y, c: (
        f'<path d="M{_n(x)} {_n(y - 5.5)}l5.5 5.5l-5.5 5.5l-5.5 -5.5Z" fill="#fff" stroke="{c}"'
        ' stroke-width="1.8"/>'
    ),
}


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: float = 12.5,
    fill: str = _INK,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" font-weight="{weight}" text-anchor="{anchor}"'
        f' fill="{fill}">{escape(text)}</text>'
    )


def _n(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")
