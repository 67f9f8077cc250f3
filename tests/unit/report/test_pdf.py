"""The PDF: same input, same bytes; one font family; tags; the attached bytes are the given ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit import report
from certkit.ground import canonical, files
from certkit.ground.document import to_builtins
from certkit.report import page as drawing
from tests.support import bundles, kept
from tests.support.drawing import (
    READERS,
    alternatives,
    begun,
    filled,
    hostile,
    judged,
    needs_pdf,
    passport,
    strong,
    tool,
    written,
)
from tests.support.extremes import GOOD
from tests.support.running import certkit

if TYPE_CHECKING:
    from tests.support.demonstration import Demonstration

pytestmark = needs_pdf
ROOT = Path(__file__).parents[3]
EPOCH = "1760000000"
HAZARDS = 2  # a page takes a quarter of a second
ARGUED = tuple(f"{goal} is " for goal in ("G1", "G2", "G3", "G4", "G5", "G6"))

Drawn = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Has ``case.pdf`` drawn into a folder once for all workers, where a program is here that reads it."""

    def once(name: str, draw: Callable[[Path], object]) -> Path:
        if not any(map(shutil.which, READERS)):
            pytest.skip(f"not one is installed: {', '.join(READERS)}")
        return kept.once(tmp_path_factory, name, draw) / "case.pdf"

    return once


@pytest.fixture(scope="module")
def made(drawn: Drawn) -> Path:
    """The PDF of a specimen with its passport."""

    def draw(folder: Path) -> None:
        evaluation = judged(strong(), tier=2, origin="simulated")
        view = report.view(evaluation, passport=passport(evaluation))
        written(folder / "case.pdf", drawing.pdf(view))

    return drawn("specimen", draw)


@pytest.fixture(scope="module")
def evil(drawn: Drawn) -> Path:
    """The PDF of a hostile context."""
    return drawn(
        "hostile", lambda folder: written(folder / "case.pdf", drawing.pdf(hostile(hazards=HAZARDS)))
    )


@pytest.fixture(scope="module")
def foreign(drawn: Drawn) -> Path:
    """The PDF of few runs of an agent whose name the font lacks, beside its HTML."""

    def draw(folder: Path) -> None:
        manifest = bundles.MANIFEST | {"agent": {"name": "代理 🤖 بوت", "version": "1"}}
        root = bundles.write(folder / "bundle", {"a.jsonl": bundles.lines(GOOD[:20])}, manifest)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(report, "pdf", drawing.pdf)
            patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
            assert certkit("report", root, "-o", folder / "case.pdf").code == 0

    return drawn("foreign", draw)


@pytest.fixture(scope="module")
def demo(demonstration: Demonstration, drawn: Drawn) -> Path:
    """The PDF of the demonstration, which has a full context; nothing is attached."""

    def draw(folder: Path) -> None:
        markup = (demonstration.folder / "safety-case.html").read_text(encoding="utf-8")
        view = structs.replace(report.view(judged(strong())), attachments=())
        written(folder / "case.pdf", drawing.pdf(view, markup))

    return drawn("demonstration-pdf", draw)


@pytest.fixture(scope="module")
def prose() -> tuple[bytes, bytes]:
    """A report with rows of long prose: its HTML, and the PDF of its pages before the results."""
    return begun()


def test_another_process_with_another_hash_seed_writes_the_same_bytes(prose: tuple[bytes, bytes]) -> None:
    """All of the HTML with its figures, and the PDF's first pages: a page takes a quarter of a second."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    code = "import sys; from tests.support import drawing; sys.stdout.buffer.write(b''.join(drawing.begun()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    markup, pdf = prose
    assert markup.count(b"<svg") > 3
    assert pdf.startswith(b"%PDF-")
    assert done.stdout == markup + pdf


def test_another_date_is_another_document() -> None:
    evaluation = judged(strong())
    dated = report.view(evaluation, generated_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC))
    assert report.html(dated) != report.html(report.view(evaluation))
    assert "2026-05-04 03:02:01+00:00" in report.html(dated)


def test_attached_files_are_the_given_bytes(made: Path, tmp_path: Path) -> None:
    evaluation = judged(strong(), tier=2, origin="simulated")
    tool("pdfdetach", "-saveall", "-o", tmp_path, made)
    assert canonical.loads((tmp_path / "facts.json").read_bytes()) == to_builtins(evaluation.facts)
    assert (tmp_path / "passport.json").read_bytes() == passport(evaluation).data
    assert (tmp_path / "assessment.json").read_bytes() == canonical.pretty(evaluation.to_dict()).encode()
    assert canonical.digest((tmp_path / "profile.json").read_bytes()) == evaluation.profile.digest


def test_only_the_packaged_family_is_used_and_it_is_embedded(made: Path) -> None:
    rows = [line.split() for line in tool("pdffonts", made).splitlines()[2:]]
    assert rows
    for cells in rows:
        assert "Source-Sans-Pro" in cells[0]
        assert cells[-5:-2] == ["yes", "yes", "yes"]  # embedded, a subset, with a map to Unicode


def test_a_name_that_the_font_lacks_falls_back_on_no_system_font(foreign: Path) -> None:
    fonts = tool("pdffonts", foreign).splitlines()[2:]
    assert all("Source-Sans-Pro" in line for line in fonts)
    assert "\\u4ee3\\u7406" in tool("pdftotext", foreign, "-")
    assert "代理" in foreign.with_suffix(".html").read_text(encoding="utf-8")


def test_it_is_tagged_titled_and_sound(made: Path) -> None:
    info = dict(line.split(":", 1) for line in tool("pdfinfo", made).splitlines() if ":" in line)
    assert info["Tagged"].strip() == "yes"
    assert info["Title"].strip() == 'Evidence report: "courier 1.0"'
    assert info["Page size"].strip().endswith("(A4)")
    assert "No syntax or stream encoding errors found" in tool("qpdf", "--check", made)


def test_the_catalogue_names_each_attached_file_once_with_its_relationship(
    made: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.pdf"
    tool("qpdf", "--qdf", "--object-streams=disable", made, plain)
    data = plain.read_bytes()
    listed = data.split(b"/AF [")[1].split(b"]")[0].split(b"R")
    named = [item.strip() for item in listed if item.strip()]
    assert len(named) == len(set(named)) == 5
    for relationship in (b"/Source", b"/Supplement", b"/Data"):
        assert b"/AFRelationship " + relationship in data
    assert b"/Lang (en)" in data
    assert b"pdfaid" in data


def test_every_figure_in_the_structure_tree_has_words_in_its_place(evil: Path) -> None:
    said = alternatives(evil)
    assert None not in said
    told = "\n".join(filter(None, said))
    for start in ("Forest plot at ", "Events of each hazard: ", "Posterior of ", *ARGUED):
        assert f"\nu:{start}" in told, start


def test_a_hostile_context_is_text_in_a_pdf_that_is_whole(evil: Path, tmp_path: Path) -> None:
    assert "No syntax or stream encoding errors found" in tool("qpdf", "--check", evil)
    text = tool("pdftotext", evil, "-")
    assert "<script>alert(1)</script>" in text
    assert "\\u202eevil\\u0007" in text
    assert len(re.findall(r"(?<!harm is\s)catastrophic", text)) == HAZARDS  # none is cut in two
    assert sum(line.count("w") for line in text.splitlines() if set(line.strip()) == {"w"}) >= 200
    tool("pdfdetach", "-saveall", "-o", tmp_path, evil)
    given = hostile(hazards=HAZARDS).case.given
    assert given is not None
    assert (tmp_path / "context.json").read_bytes() == given.data
    plain = tmp_path / "plain.pdf"
    tool("qpdf", "--qdf", "--object-streams=disable", evil, plain)
    assert not re.search(rb"/(JavaScript|JS|Launch|URI)\b", plain.read_bytes())


def test_page_one_is_one_page_whatever_names_are_on_it(drawn: Drawn) -> None:
    view = hostile(owner="W" * 200)
    beginning, behind, _ = drawing.html(view).partition('<h2 id="use"')  # 40 pages take ten seconds more
    assert behind
    file = drawn("names", lambda folder: written(folder / "case.pdf", drawing.pdf(view, beginning)))
    text = tool("pdftotext", file, "-").split("\f")
    assert "2 At a glance" in text[1]
    assert max(line.count("W") for line in "".join(text[:1]).splitlines()) <= 80


def test_every_page_of_a_specimen_says_so(made: Path) -> None:
    pages = tool("pdftotext", "-layout", made, "-").rstrip("\f").split("\f")
    assert len(pages) > 5
    assert [number for number, text in enumerate(pages) if "SPECIMEN" not in text] == []


def test_no_word_lies_beyond_the_margins_of_its_page(made: Path, evil: Path, foreign: Path) -> None:
    """What a printer cuts off nobody reads. The longest words of the results table are those of gaps."""
    style = files.packaged("templates", "safety_case", "style.css").read_text(encoding="utf-8")
    [sides] = re.findall(r"@page \{[^}]*?margin: [0-9.]+mm ([0-9.]+)mm", style)
    least = float(sides) * 72 / 25.4 - 0.5
    beyond = []
    for file in (made, evil, foreign):
        for page in re.findall(r"<page .*?</page>", tool("pdftotext", "-bbox", file, "-"), re.DOTALL):
            [width] = re.findall(r'<page width="([0-9.]+)"', page)
            words = re.findall(r'xMin="([0-9.]+)".*?xMax="([0-9.]+)".*?>(.*?)</word>', page)
            beyond += [
                word
                for left, right, word in words
                if float(left) < least or float(right) > float(width) - least
            ]
    assert beyond == []


def test_no_page_is_nearly_empty(made: Path, foreign: Path) -> None:
    for file in (made, foreign):
        assert min(filled(file)) > 0.25, filled(file)


def test_the_demonstration_has_16_to_20_pages_and_none_is_half_empty(demo: Path) -> None:
    pages = tool("pdftotext", demo, "-").rstrip("\f").split("\f")
    assert 16 <= len(pages) <= 20
    assert "2 At a glance" in pages[1]
    assert "What this is not." in pages[0]
    *shares, _ = filled(demo)
    assert min(shares) > 0.5, shares


def test_a_margin_stands_on_one_line_with_its_unit(demo: Path) -> None:
    text = tool("pdftotext", "-layout", demo, "-").replace("\u00a0", " ")
    for unit in ("points", "of 1", "per run"):
        assert re.search(rf" [+−][\d.]+ {unit}  ", text), unit


def test_without_a_context_the_register_of_nodes_is_in_html_alone(foreign: Path) -> None:
    assert "Register of nodes" in foreign.with_suffix(".html").read_text(encoding="utf-8")
    assert "Register of nodes" not in tool("pdftotext", foreign, "-")


def test_bookmarks_lead_to_the_sections(made: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.pdf"
    tool("qpdf", "--qdf", "--object-streams=disable", made, plain)
    assert b"/Outlines" in plain.read_bytes()


def test_weasyprint_is_loaded_for_a_pdf_alone() -> None:
    code = (
        "import sys; import certkit.report, certkit.cli.main;"
        "print([m for m in ('weasyprint', 'jinja2', 'fontTools', 'jsonschema') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_rows_of_long_prose_leave_no_page_half_empty(prose: tuple[bytes, bytes], tmp_path: Path) -> None:
    shares = filled(written(tmp_path / "case.pdf", prose[1]))
    assert shares[2] > 0.7
