"""Every table states the widths of its columns; without them the layout measures every cell, slowly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from certkit import report
from certkit.ground import canonical, files
from certkit.report.context import read_context
from tests.support.drawing import Page, judged, page, passport, runs, strong, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONDITIONS = ("nominal", "stochastic", "adversarial", "cascade", "x_a", "x_b", "x_c", "x_d", "x_e")


def _signed() -> Page:
    made = judged(strong(), tier=2, origin="simulated")
    return page(made, passport(made))


def _wide() -> Page:
    return page(judged(summary(run for condition in CONDITIONS for run in runs("bank", condition, 20, 15))))


PAGES: dict[str, Callable[[], Page]] = {
    "signed": _signed,
    "2025": lambda: page(judged(strong(), "hb-eval-2025")),
    "many conditions": _wide,
    "empty": lambda: page(judged(summary([]))),
}


def _tables(seen: Page) -> Iterator[tuple[list[int], set[int]]]:
    """Yield the widths that each table states, and how many cells its rows have."""
    widths: list[int] = []
    rows: list[int] = []
    for tag, attributes in [*seen.elements, ("table", {})]:
        if tag == "table":
            if rows:
                yield widths, set(rows)
            widths, rows = [], []
        elif tag == "col":
            widths.append(int(re.fullmatch(r"width:(\d+)%", attributes["style"] or "")[1]))  # type: ignore[index]
        elif tag == "tr":
            rows.append(0)
        elif tag in {"th", "td"}:
            rows[-1] += 1


@pytest.mark.parametrize("name", PAGES)
def test_every_column_of_every_table_has_a_width_and_they_add_up(name: str) -> None:
    tables = list(_tables(PAGES[name]()))
    assert len(tables) > 10
    for widths, cells in tables:
        assert sum(widths) == 100
        assert min(widths) > 0
        assert cells == {len(widths)}


def test_prose_in_a_cell_is_cut() -> None:
    made = judged(strong(), evaluator=None)
    said = canonical.line(
        {
            "schema": "urn:certkit:context:v1",
            "monitoring": [{"id": "I-1", "measure": "x" * 400, "limit": "y" * 300}],
        }
    )
    context = read_context(said, where="context.json")
    text = Page(report.html(report.view(made, context=context))).text
    assert "x" * 300 + "… (cut; whole in the attached files)" in text
    assert "y" * 300 + " " in text


def test_the_style_lays_out_every_table_by_its_widths() -> None:
    style = files.packaged("templates", "safety_case", "style.css").read_text(encoding="utf-8")
    assert re.search(r"(?m)^table \{ table-layout: fixed;", style)
    assert "table-layout: auto" not in report.html(report.view(judged(strong())))


def test_the_first_figure_is_a_table_too_for_screens_that_are_too_narrow_for_it() -> None:
    """The table holds what the figure's title says, and the style shows one of the two."""
    evaluation = judged(strong(adversarial=150), tier=2)
    markup = report.html(report.view(evaluation))
    table = Page(markup[markup.index('<div class="listed">') : markup.index('<div class="plotted">')]).text
    [title] = re.findall(r"<title>Forest plot at Tier 2[^:]*: ([^<]*)</title>", markup)
    for part in title.split("; "):
        assert part.replace("\u00a0", " ").rpartition(" ")[2] in table.replace("\u00a0", " "), part
    style = files.packaged("templates", "safety_case", "style.css").read_text(encoding="utf-8")
    narrow = style[style.index("@media screen and (max-width: 640px)") :]
    assert ".listed { display: none; }" in style
    assert ".listed { display: block;" in narrow
    assert ".plotted { display: none; }" in narrow


def test_no_page_of_a_specimen_has_strokes_behind_its_text() -> None:
    style = files.packaged("templates", "safety_case", "style.css").read_text(encoding="utf-8")
    pages = re.findall(r"(?sm)^@page[^{]*\{((?:[^{}]|\{[^{}]*\})*)\}", style)
    assert len(pages) == 4
    assert not any("gradient" in rule for rule in pages)
