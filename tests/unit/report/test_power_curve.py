"""The drawing of a plan's curve: points where their numbers are, round ticks, a file of its own."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from certkit.report.svg import power

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(points: list[tuple[int, float, float]], title: str = "Power") -> ET.Element:
    return ET.fromstring(  # noqa: S314 - our own text
        power(points, planned=points[0][0], wanted=0.8, driver="irs", title=title)
    )


def test_a_point_stands_where_its_numbers_are() -> None:
    figure = drawn([(250, 0.5, 0.25), (500, 0.9, 0.8), (1000, 1.0, 1.0)])
    paths = [item.get("d") or "" for item in figure.iter(f"{SPACE}path")]
    curves = [[(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)] for path in paths]
    together, driver = (curve for curve in curves if len(curve) == 3)
    lines = [
        {name: float(item.get(name) or "") for name in ("x1", "x2", "y1", "y2")}
        for item in figure.iter(f"{SPACE}line")
    ]
    left, right = lines[0]["x1"], lines[0]["x2"]
    base, top = max(line["y1"] for line in lines), min(line["y1"] for line in lines)
    assert [(x - left) / (right - left) for x, _ in together] == pytest.approx([0.25, 0.5, 1], abs=1e-3)
    assert [(base - y) / (base - top) for _, y in together] == pytest.approx([0.25, 0.8, 1], abs=1e-3)
    assert [(base - y) / (base - top) for _, y in driver] == pytest.approx([0.5, 0.9, 1], abs=1e-3)


@pytest.mark.parametrize("most", [1, 7, 8, 99, 1160, 2785, 9_999_999, 20_000_000])
def test_ticks_are_round_and_few(most: int) -> None:
    texts = [item.text or "" for item in drawn([(most, 1.0, 1.0)]).iter(f"{SPACE}text")]
    ticks = [int(text.replace(",", "")) for text in texts if re.fullmatch(r"[\d,]+", text)]
    step = ticks[1]
    assert ticks == [step * place for place in range(len(ticks))]
    assert re.fullmatch("[125]0*", str(step))
    assert ticks[-1] <= most < ticks[-1] + step
    assert 2 <= len(ticks) <= 8


def test_a_title_cannot_leave_its_element() -> None:
    assert drawn([(10, 1.0, 1.0)], "</title><script>")[0].text == "</title><script>"
