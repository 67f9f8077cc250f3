"""Whatever comes from evidence is text, and visible."""

from __future__ import annotations

import pytest

from certkit import report
from certkit.report.page import printable
from tests.support.drawing import EVIL, Page, hostile, judged, page, runs, strong, summary

DIGEST = "sha256:" + "a" * 64
AGENTS = {
    "markup": {"name": EVIL, "version": EVIL, "provider": EVIL},
    "digest in a name": {"name": f"{DIGEST} onload=alert(1) {EVIL}", "version": DIGEST},
    "long": {"name": "A" * 512, "version": "\u4e2d" * 512},
}


@pytest.mark.parametrize("name", AGENTS)
def test_no_evidence_becomes_an_element_or_an_attribute(name: str) -> None:
    agent = AGENTS[name] | {"components": [{"role": "model", "name": EVIL, "version": EVIL}]}
    imported = {"format": EVIL, "notes": {"odd": 1}}
    evaluator = {"name": EVIL, "relation": "same"}
    evil = summary(runs(EVIL, "adversarial", 20, 3))
    seen = page(judged(evil, agent=agent, imported=imported, evaluator=evaluator))
    plain = page(judged(strong(), imported={"format": "f", "notes": {"odd": 1}}))
    assert not {tag for tag, _ in seen.elements} & {
        "script",
        "img",
        "iframe",
        "object",
        "link",
        "base",
        "form",
    }
    assert not [attribute for _, attrs in seen.elements for attribute in attrs if attribute.startswith("on")]
    assert {tag for tag, _ in seen.elements} <= {tag for tag, _ in plain.elements} | {"b"}
    assert seen.unclosed == []
    assert " 49 " not in seen.text
    assert AGENTS[name]["name"][:40].split()[0] in seen.text


def test_a_name_is_quoted_where_a_verdict_could_stand() -> None:
    view = report.view(judged(strong(), agent={"name": f"**Supported** {'by all ' * 20}", "version": "1"}))
    assert "<h1>&#34;**Supported** by all" in report.html(view)
    heading = report.export(view, "summary").decode().splitlines()[0]
    assert heading.startswith('## "\\*\\*Supported\\*\\* by all')
    assert heading.endswith('…"')
    assert view.argument.claim.text.startswith('"**Supported**')


@pytest.mark.parametrize(
    "character", ["\u202e", "\u200b", "\x00", "\x1b", "\u2066", "\u00ad", "\ufeff", "\x85"]
)
def test_what_cannot_be_seen_is_made_visible(character: str) -> None:
    assert printable(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_very_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 5_000).startswith("x" * 700)
    assert "cut" in printable("x" * 5_000)
    assert printable("x" * 700) == "x" * 700


def test_a_page_fetches_nothing_and_every_link_has_its_target() -> None:
    markup = report.html(report.view(judged(strong())))
    seen = Page(markup)
    assert seen.values("src") == []
    assert "url(" not in markup
    assert "@import" not in markup
    targets = seen.values("id")
    assert len(targets) == len(set(targets))
    links = seen.values("href")
    assert links
    assert {link.removeprefix("#") for link in links} <= set(targets)
    assert all(link.startswith("#") for link in links)


def test_a_hostile_context_with_200_hazards_is_text_and_the_page_is_whole() -> None:
    view = hostile()
    seen = Page(report.html(view))
    assert not {tag for tag, _ in seen.elements} & {"script", "img"}
    assert "\\u202eevil\\u0007" in seen.text
    assert "160 more rows are in the attached files." in seen.text
    assert seen.unclosed == []
    assert len([node for node in view.argument.nodes if node.id.startswith("G2.")]) == 200
