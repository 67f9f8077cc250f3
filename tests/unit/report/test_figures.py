"""Figures put every number where it belongs; read back from the drawing, not from the code that drew it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from math import comb

import pytest

from certkit.assessment.assessment import Status
from certkit.report import sections
from certkit.report.figures import Track, colour, forest, mark, posterior
from tests.support.drawing import judged, runs, summary

LEFT, RIGHT = 158.0, 528.0


def track(**changes: object) -> Track:
    base: dict[str, object] = {
        "label": "x",
        "status": Status.MET,
        "value": 0.5,
        "interval": None,
        "thresholds": (),
        "low": 0.0,
        "high": 1.0,
        "higher": True,
        "text": "0.5",
    }
    return Track(**{**base, **changes})  # type: ignore[arg-type]


def drawn(*tracks: Track) -> ET.Element:
    return ET.fromstring(forest(tracks, title="t"))  # noqa: S314 - our own drawing


def point(of: Track) -> float:
    """Where the mark of a track's value is centred."""
    mark_at = drawn(of).find("g")
    assert mark_at is not None
    [(x, _)] = re.findall(r"translate\(([\d.]+) ([\d.]+)\)", mark_at.attrib["transform"])
    return float(x) + 6


def share(x: float) -> float:
    return (x - LEFT) / (RIGHT - LEFT)


@pytest.mark.parametrize("value", [0.0, 0.25, 0.8975, 1.0])
@pytest.mark.parametrize("higher", [True, False])
def test_a_point_stands_where_its_value_is_and_better_is_to_the_right(value: float, higher: bool) -> None:  # noqa: FBT001
    assert share(point(track(value=value, higher=higher))) == pytest.approx(
        value if higher else 1 - value, abs=2e-4
    )


def test_a_scale_of_its_own_is_respected() -> None:
    assert share(point(track(value=4.0, low=1.0, high=5.0))) == pytest.approx(0.75, abs=2e-4)


def test_ticks_stand_at_the_thresholds_with_their_tiers() -> None:
    figure = drawn(track(thresholds=((1, 0.6), (2, 0.8), (3, 0.95))))
    labels = {item.text: share(float(item.attrib["x"])) for item in figure.iter("text")}
    assert {name: round(labels[name], 3) for name in ("1", "2", "3")} == {"1": 0.6, "2": 0.8, "3": 0.95}


def test_thresholds_too_close_to_tell_apart_share_a_label() -> None:
    figure = drawn(track(thresholds=((1, 0.95), (2, 0.95), (3, 0.96))))
    assert "1,2,3" in {item.text for item in figure.iter("text")}


def test_what_was_not_measured_has_no_point() -> None:
    figure = drawn(track(value=None, status=Status.NOT_TESTED))
    assert figure.find("g") is None


def test_statuses_differ_in_shape_and_not_in_colour_alone() -> None:
    shapes = {re.sub(r"<title>.*?</title>|#[0-9a-f]{6}", "", mark(status)) for status in Status}
    assert len(shapes) == len(Status)


def test_colours_differ_in_grey_or_come_with_different_shapes() -> None:
    def grey(shade: str) -> float:
        red, green, blue = (int(shade[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    # Dark enough on white to read: at least 4.5 : 1 for what carries a verdict.
    for status in (Status.MET, Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED):
        linear = sum(
            weight
            * (
                (c / 12.92)
                if (c := int(colour(status)[i : i + 2], 16) / 255) <= 0.04045
                else ((c + 0.055) / 1.055) ** 2.4
            )
            for weight, i in ((0.2126, 1), (0.7152, 3), (0.0722, 5))
        )
        assert 1.05 / (linear + 0.05) >= 4.5, status
        assert grey(colour(status)) < 128


@pytest.mark.parametrize(("s", "n"), [(7, 10), (0, 5), (5, 5), (1, 1)])
def test_the_posteriors_outline_is_the_beta_density(s: int, n: int) -> None:
    figure = ET.fromstring(posterior(s, n, [(1, 0.5)], title="t"))  # noqa: S314 - our own drawing
    outline = next(item for item in figure.iter("path") if item.attrib.get("stroke") == "#1f5f99")
    points = [tuple(map(float, pair.split())) for pair in outline.attrib["d"][1:].split("L")]
    axis = {
        float(item.text or ""): float(item.attrib["x"])
        for item in figure.iter("text")
        if re.fullmatch(r"\d\.\d\d", item.text or "")
    }
    (a, x_a), *_, (b, x_b) = sorted(axis.items())

    def density(theta: float) -> float:
        return comb(n, s) * theta**s * (1 - theta) ** (n - s)

    peak = density(s / n)
    base, top = 130.0, 52.0
    for x, y in points[1:-1]:
        theta = a + (x - x_a) / (x_b - x_a) * (b - a)
        assert (base - y) / (base - top) == pytest.approx(density(min(max(theta, 0), 1)) / peak, abs=0.02)


def test_a_posterior_of_a_million_runs_is_drawn_without_overflow() -> None:
    figure = posterior(999_999, 1_000_000, [(1, 0.6), (2, 0.8), (3, 0.95)], title="t")
    assert "nan" not in figure
    assert "inf" not in figure


def test_a_title_cannot_leave_its_element() -> None:
    figure = forest([], title="</title><script>")
    assert "<script>" not in figure


def points(figure: ET.Element, stroke: str, dash: str | None = None) -> list[tuple[float, ...]]:
    """The points of the line of a colour, but for its sample above the axes."""
    lines = [
        item.attrib["d"]
        for item in figure.iter("path")
        if (item.attrib["stroke"], item.attrib.get("stroke-dasharray")) == (stroke, dash)
    ]
    [line] = [d for d in lines if "L" in d]
    return [tuple(map(float, pair.split())) for pair in line[1:].split("L")]


def test_the_run_chart_shows_each_tenth_and_says_how_it_began_and_ended() -> None:
    """Of the latest hundred runs every second one of the last thirty failed."""
    calm = runs("d", "tool_failure", 170, 170)
    late = [
        run
        for one in zip(runs("d", "tool_failure", 15, 15), runs("d", "tool_failure", 15, 0), strict=True)
        for run in one
    ]
    drawing, said = sections.run_chart(judged(summary(calm + late))) or ("", "")
    assert said.startswith("The latest 100 runs in order of sequence: ")
    assert said.endswith("100.0\u00a0% succeeded in the first tenth and 50.0\u00a0% in the last")
    heights = [y for _, y in points(ET.fromstring(drawing), "#1f5f99")]  # noqa: S314 - our own drawing
    failures = [0.5 if place > 6 else 0.0 for place in range(10)]
    assert [(y - heights[0]) / (heights[-1] - heights[0]) * 0.5 for y in heights] == failures


def test_runs_without_an_order_have_no_run_chart() -> None:
    assert sections.run_chart(judged(summary(runs("d", "nominal", 200, 200), ordered=False))) is None
