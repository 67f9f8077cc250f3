"""The safety case as a page in a real Chromium: nothing sticks out of its place, on a phone as on a desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.browser import Browser
    from tests.support.demonstration import Demonstration

PHONE = 390
OUTSIDE = """[...document.querySelectorAll("td, th, .box, .node:not(.strategy)")]
  .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.innerText)"""
SCROLLED = """[...document.querySelectorAll(".scroll")]
  .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.ariaLabel)"""
RAILS = """[...document.querySelectorAll(".rail")].map((rail) => {
  const ends = rail.getBoundingClientRect();
  const goals = [...rail.nextElementSibling.children].map((goal) => goal.getBoundingClientRect());
  const [first, last] = [goals[0], goals.at(-1)].map((goal) => goal.left + goal.width / 2);
  return Math.max(Math.abs(ends.left - first), Math.abs(ends.right - last));
})"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 768, 1100, 1440])
def test_what_is_on_the_page_stays_in_its_place(
    browser: Browser, demonstration: Demonstration, width: int, *, dark: bool
) -> None:
    page = demonstration.folder / "safety-case.html"
    browser.screen(width, dark=dark)
    browser.open(page)
    assert browser.requests == [page.as_uri()]
    assert browser.complaints == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run(OUTSIDE) == []
    rails = browser.run(RAILS)
    assert len(rails) == 6
    assert max(rails) <= 2
    if width > PHONE:  # tables of seven columns and more may need it between a phone and a desk
        assert [name for name in browser.run(SCROLLED) if not name.startswith("Tier ")] == []
