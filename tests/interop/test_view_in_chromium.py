"""``certkit view`` in a real Chromium: what a person clicks, and what the page asks of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import bundles
from tests.support.bundles import run
from tests.support.drawing import EVIL
from tests.support.importing import DATA, conversation
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.browser import Browser

PHONE, DESK = 390, 1440
PICK = """((id, name) => {
  const select = document.getElementById(id);
  select.value = [...select.options].find((option) => option.text === name).value;
  select.dispatchEvent(new Event("input", {bubbles: true}));
})"""
SETTLE = "new Promise((done) => setTimeout(done, 50))"


def page_of(root: Path) -> Path:
    out = root.parent / f"{root.name}.html"
    done = certkit("view", root, "-o", out)
    assert done.code == 0, done.err
    return out


def click(browser: Browser, selector: str, place: int = 0) -> None:
    browser.run(f"document.querySelectorAll({selector!r})[{place}].click()")
    browser.run(SETTLE)


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(f"[...document.querySelectorAll({selector!r})].map((e) => e.innerText)")
    return found


def only_the_page(browser: Browser, page: Path) -> None:
    assert [address for address in browser.requests if not address.startswith("data:")] == [page.as_uri()]
    assert browser.complaints == []


@pytest.fixture(scope="module")
def agentdojo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a published log where it is here, else of the project's own example."""
    logs = DATA.parents[2] / "shared" / "evidence" / "agentdojo"
    log = logs / "agentdojo-claude-3-5-sonnet-20240620.jsonl.gz"
    if not log.is_file():
        pytest.skip("../shared is not here: real logs are no part of the project")
    root = tmp_path_factory.mktemp("view") / "agentdojo"
    assert certkit("import", log, "-o", root, "-q").code == 0
    return page_of(root)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 768, DESK])
def test_failures_of_a_domain_are_found_and_read(
    browser: Browser, agentdojo: Path, width: int, *, dark: bool
) -> None:
    assert agentdojo.stat().st_size <= 3_000_000
    browser.screen(width, dark=dark)
    browser.open(agentdojo)
    assert texts(browser, "#count") == ["194 of 194 runs"]
    browser.run(f"{PICK}('domain', 'slack')")
    browser.run(f"{PICK}('outcome', 'did not succeed')")
    assert texts(browser, "#count") == ["21 of 194 runs"]
    assert {text.split()[0] for text in texts(browser, "#list small")} == {"failure"}
    click(browser, "#list a")
    assert browser.run("document.querySelector('#run').getBoundingClientRect().height > 300")
    assert texts(browser, "#run .turn b")[:3] == ["1 system", "2 user", "3 assistant"]
    assert "You are an AI language model" in texts(browser, "#run .said")[0]
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run("document.querySelector('#run').scrollWidth <= innerWidth")
    light = browser.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert light is not dark
    only_the_page(browser, agentdojo)


def test_the_numbers_of_the_grid_are_those_of_the_list(browser: Browser, agentdojo: Path) -> None:
    browser.screen(DESK)
    browser.open(agentdojo)
    cells = texts(browser, ".grid button")
    assert len(cells) == 8
    for place, cell in enumerate(cells):
        successes, runs = map(int, cell.split("/"))
        click(browser, ".grid button", place)
        assert texts(browser, "#count") == [f"{runs} of 194 runs"]
        assert (
            len([text for text in texts(browser, "#list small") if text.startswith("success")]) == successes
        )
        click(browser, ".grid button", place)
    assert texts(browser, "#count") == ["194 of 194 runs"]


def test_search_reads_ids_and_transcripts(browser: Browser, tmp_path: Path) -> None:
    page = page_of(conversation(tmp_path, [{"role": "assistant", "content": "Where is my ORDER?"}]))
    browser.screen(DESK)
    browser.open(page)
    for word, count in (("my order", 2), ("no such words", 0), ("", 2)):
        browser.run(
            f"(document.getElementById('word').value = {word!r},"
            " document.getElementById('word').dispatchEvent(new Event('input', {bubbles: true})))"
        )
        assert texts(browser, "#count") == [f"{count} of 2 runs"]
    only_the_page(browser, page)


def test_on_a_phone_a_run_covers_the_list_and_back_leads_to_it(browser: Browser, tmp_path: Path) -> None:
    page = page_of(conversation(tmp_path, [{"role": "assistant", "content": "Hello"}]))
    browser.screen(PHONE, 844)
    browser.open(page)
    covers = "document.elementFromPoint(195, 800).closest('#run') !== null"
    assert not browser.run(covers)
    click(browser, "#list a")
    assert browser.run(covers)
    assert browser.run("document.activeElement.id") == "run"
    click(browser, "#run .close")
    assert not browser.run(covers)
    assert browser.run("document.activeElement.hash") == "#run-0"


def test_hostile_evidence_is_text(browser: Browser, tmp_path: Path) -> None:
    names = [EVIL, "\u202egnp.exe", "שלום", "x" * 512]
    records = [run(name, domain=name, task_id=name, outcome="failure") for name in names]
    page = page_of(bundles.of(tmp_path / "evil", records))
    browser.screen(PHONE)
    browser.open(page)
    ids = texts(browser, "#list bdi")
    assert {name.replace("\u202e", "\\u202e") for name in names[:3]} <= set(ids)
    assert f"{'x' * 160}… (cut; 512 characters)" in ids
    for place in range(len(names)):
        click(browser, "#list a", place)
        assert browser.run("document.querySelector('#run').scrollWidth <= innerWidth")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run("document.querySelectorAll('script, img').length") == 2
    only_the_page(browser, page)


def test_a_hostile_transcript_of_ten_megabytes_is_cut(browser: Browser, tmp_path: Path) -> None:
    root = conversation(
        tmp_path, [{"role": EVIL, "content": EVIL * 100_000}, {"role": "assistant", "content": "שלום"}]
    )
    page = page_of(root)
    browser.screen(DESK)
    browser.open(page)
    click(browser, "#list a")
    assert texts(browser, "#run .said")[0].startswith(EVIL)
    assert f"… cut; the turn has {len(EVIL) * 100_000:,} characters" in texts(browser, "#run .turn")[0]
    click(browser, ".unfold")
    assert browser.run("getComputedStyle(document.querySelectorAll('.said')[1]).direction") == "rtl"
    only_the_page(browser, page)


def test_a_long_list_is_drawn_piece_by_piece(browser: Browser, tmp_path: Path) -> None:
    records = [run(i, task_id=f"d/{i // 3}", outcome="failure") for i in range(2_500)]
    page = page_of(bundles.of(tmp_path / "many", records))
    browser.screen(DESK)
    browser.open(page)
    assert texts(browser, "#count") == ["2,500 of 2,500 runs"]
    assert len(texts(browser, "#list a")) == 200
    click(browser, ".more")
    assert len(texts(browser, "#list a")) == 400
    assert len(texts(browser, "#list h3")) == 134, "a task that goes on has no second head"
    only_the_page(browser, page)
