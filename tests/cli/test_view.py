"""``certkit view``: one page that holds runs and transcripts as text, and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import re
import webbrowser
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from tests.support import bundles
from tests.support.bundles import run
from tests.support.drawing import EVIL, Page
from tests.support.importing import conversation
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


def markup_of(root: Path, *options: object) -> str:
    out = root.parent / "page.html"
    done = certkit("view", root, "-o", out, "--force", *options)
    assert (done.code, done.err) == (0, "")
    return out.read_text(encoding="utf-8")


def data_of(markup: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', markup, re.DOTALL)
    assert found
    data: dict[str, Any] = canonical.loads(found[1].encode())
    return data


def test_a_page_is_written_once_and_always_with_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = certkit("view", bundle, "-o", out)
    first = out.read_bytes()
    none = "The bundle encloses no traces, so there are no transcripts."
    assert (done.code, done.out) == (0, f"written: {out}, 3 runs, 0 transcripts\n{none}\n")
    assert first.decode().count("no transcripts") == 1
    again = certkit("view", bundle, "-o", out)
    assert (again.code, "exists" in again.err) == (2, True)
    document = certkit("view", bundle, "-o", out, "--force", "--json").document
    assert document["left_out"] == [none]
    assert (document["runs"], document["listed"], document["transcripts"]) == (3, 3, 0)
    assert out.read_bytes() == first
    inside = certkit("view", bundle, "-o", bundle / "page.html")
    assert (inside.code, (bundle / "page.html").exists()) == (2, False)


def test_the_page_says_what_assess_says(bundle: Path) -> None:
    text = Page(markup_of(bundle)).text
    screen = " ".join(certkit("assess", bundle).out.split())
    for sentence in re.findall(
        r"(50\.0 % of normal runs[^.]*\.\d[^.]*|Open questions: \d+, \w+ serious)", screen
    ):
        assert sentence in text
    assert "Open questions: " in text


def test_a_cell_of_the_grid_filters_by_the_names_of_the_list(bundle: Path) -> None:
    markup = markup_of(bundle)
    data = data_of(markup)
    buttons = re.findall(r'data-domain="(\d)" data-condition="(\d)">(\d/\d)<', markup)
    named = {(data["domains"][int(d)], data["conditions"][int(c)]): text for d, c, text in buttons}
    assert named == {("d", "nominal"): "1/2", ("e", "adversarial"): "1/1"}


def test_a_page_allows_one_script_and_no_address(bundle: Path) -> None:
    markup = markup_of(bundle)
    seen = Page(markup)
    policy = next(attrs["content"] for tag, attrs in seen.elements if "http-equiv" in attrs) or ""
    [script] = re.findall(r"<script>(.*?)</script>", markup, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in unescape(policy)
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert seen.values("src") == []
    assert [link for link in seen.values("href") if not link.startswith("#")] == ["data:,"]
    assert seen.unclosed == []


@pytest.mark.parametrize("name", [EVIL, "\u202egnp.exe\u202c", "</script><!--<script>"])
def test_no_name_and_no_transcript_becomes_an_element(name: str, tmp_path: Path) -> None:
    manifest = bundles.MANIFEST | {"agent": {"name": name, "version": name}}
    records = [run(name, domain=name, task_id=name, outcome="failure"), run(1, condition="x_own")]
    root = bundles.write(tmp_path / "evil", {"a.jsonl": bundles.lines(records)}, manifest)
    markup = markup_of(root)
    assert [tag for tag, _ in Page(markup).elements].count("script") == 2
    assert not {tag for tag, _ in Page(markup).elements} & {"img", "iframe", "object", "base"}
    assert "\u202e" not in markup
    shown = name.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
    assert [row[0] for row in data_of(markup)["runs"]] == [shown, "1"]
    messages = [{"role": name, "content": name}, {"role": "assistant"}]
    said = data_of(markup_of(conversation(tmp_path, messages)))
    assert said["texts"] == [shown, ""]


def test_a_page_is_opened_where_it_is_asked_for(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def no_browser(address: str) -> bool:
        opened.append(address)
        return False

    monkeypatch.setattr(webbrowser, "open", no_browser)
    out = bundle.parent / "page.html"
    assert certkit("view", bundle, "-o", out).code == 0
    assert opened == []
    done = certkit("view", bundle, "-o", out, "--force", "--open")
    assert (done.code, opened) == (0, [out.resolve().as_uri()])
    assert f"hint: no browser was found; open {out} in one\n" in done.err


def test_a_bad_record_leaves_no_page(bad: Path, tmp_path: Path) -> None:
    done = certkit("view", bad, "-o", tmp_path / "page.html")
    assert (done.code, (tmp_path / "page.html").exists()) == (3, False)


def test_simulated_evidence_is_marked_as_a_specimen(tmp_path: Path) -> None:
    assert certkit("simulate", "-o", tmp_path / "b", "--runs", 300, "--seed", 1, "-q").code == 0
    assert "SPECIMEN – simulated evidence" in Page(markup_of(tmp_path / "b")).text
