"""A passport inside a PDF: one is taken out, whatever else the PDF holds; nothing of the PDF is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit import report
from certkit.ground.errors import CertkitError
from certkit.passport import pdf
from certkit.passport.passport import read_passport
from certkit.passport.verify import verify
from certkit.report import page as drawing
from tests.support.drawing import needs_pdf, tool
from tests.support.passports import KEY, NOW, evaluation, issued, trust
from tests.support.pdfs import PAGES, PASSPORT, attaching, bomb, code, document, draws, stream
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

OTHER = issued(evaluation(origin="simulated")).to_json()
PROOF = b"c2sp.org/tlog-proof@v1\n"


# --- what is taken out


def test_the_attached_bytes_are_returned_as_they_are() -> None:
    assert pdf.take(attaching(("passport.json", PASSPORT))).passport == PASSPORT


def test_other_attached_files_do_not_matter() -> None:
    files = (("assessment.json", b'{"schema": "x"}'), ("passport.json", PASSPORT), ("big", bytes(9 << 20)))
    assert pdf.take(attaching(*files)).passport == PASSPORT


def test_what_is_no_pdf_is_returned_untouched() -> None:
    for data in (PASSPORT, b"", b" %PDF-1.7", b"hello"):
        assert pdf.take(data) == pdf.Taken(passport=data)


def test_an_attached_proof_comes_along() -> None:
    files = (("passport.json", PASSPORT), ("passport.json.tlog-proof", PROOF))
    assert pdf.take(attaching(*files)) == pdf.Taken(passport=PASSPORT, proof=PROOF, in_pdf=True)
    assert code(attaching(*files, ("copy", PROOF + b"2"))) == "pdf.several"


# --- one passport, by content


def test_no_passport_is_refused() -> None:
    for data in (
        b"%PDF-",
        b"%PDF-1.7\n" + b"(" * 100_000,
        attaching(),
        attaching(("assessment.json", b"{}")),
        attaching(("passport.json", b'{"mediaType": "text/plain"}')),
        attaching(("passport.json", b"not JSON")),
        attaching(("passport.json", PASSPORT + b" " * (4 << 20))),
        attaching(("passport.json", PASSPORT), o11=stream(b"", packed=b"not deflate")),
        document({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: PAGES}),
    ):
        assert code(data) == "pdf.no-passport"


def test_more_than_one_passport_is_refused_wherever_it_hides() -> None:
    for name in ("passport.json", "copy.json"):
        assert code(attaching(("passport.json", PASSPORT), (name, OTHER))) == "pdf.several"
    assert code(attaching(("passport.json", PASSPORT), o50=stream(OTHER))) == "pdf.several"
    assert pdf.take(attaching(("passport.json", PASSPORT), ("copy.json", PASSPORT))).passport == PASSPORT


# --- hostile files


def test_what_unpacks_to_more_than_a_safety_case_is_refused() -> None:
    assert code(attaching(("a", b""), **{f"o{n}": bomb(4 << 20) for n in range(100, 117)})) == "pdf.too-large"
    assert code(b"%PDF-1.7\n" + b"stream\n" * 10_000) == "pdf.too-large"
    assert code(b"%PDF-1.7\n" + bytes(pdf.MAX_PDF)) == "pdf.too-large"
    # Each stream begins inside the one before it, and all read on through empty blocks: much to read.
    nested = b"\0\x09\0\xf6\xffstream\n\x78\x01" * 100 + b"\0\0\0\xff\xff" * 1_000_000
    assert code(b"%PDF-1.7\n" + nested) == "pdf.too-large"


def test_damage_never_breaks_the_reader_nor_gives_another_passport() -> None:
    whole = attaching(("passport.json", PASSPORT), ("passport.json.tlog-proof", PROOF))
    positions, values = draws("where", 1000, len(whole)), draws("what", 1000, 255)
    outcomes = set()
    for position, value in zip(positions, values, strict=True):
        damaged = bytearray(whole)
        damaged[position] ^= value + 1
        outcomes.add(_outcome(bytes(damaged)))
    for length in draws("cut", 200, len(whole)):
        outcomes.add(_outcome(whole[:length]))
    assert "verified" in outcomes  # damage to what is not read
    assert "pdf.no-passport" in outcomes


def _outcome(data: bytes) -> str:
    """Return what becomes of a damaged PDF; what is verified is the passport that was signed."""
    try:
        taken = pdf.take(data)
    except CertkitError as error:
        return error.code
    found = verify(taken.passport, trust=trust(), at=NOW)
    if found.verdict == "verified":
        assert found.passport_id == issued_id()
    return found.verdict


def issued_id() -> str:
    return read_passport(PASSPORT).passport_id


# --- on the command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    (tmp_path / "passport.json").write_bytes(PASSPORT)
    (tmp_path / "case.pdf").write_bytes(attaching(("passport.json", PASSPORT)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_verify_says_that_the_pages_are_not_signed() -> None:
    options = ("--trust", "trust.json", "--at", "2026-03-02", "--json")
    of_json = certkit("verify", "passport.json", *options).document
    of_pdf = certkit("verify", "case.pdf", *options).document
    first, *rest = of_pdf.pop("not_checked")
    assert first.startswith("the pages of the PDF: nobody signed them")
    assert of_pdf["passport_id"] == issued_id()
    assert rest == of_json.pop("not_checked")
    assert of_pdf == of_json
    text = certkit("verify", "case.pdf", *options[:-1])
    assert "Not checked: the pages of the PDF, " in " ".join(text.out.split())
    assert issued_id() in text.out
    assert max(len(line) for line in text.out.splitlines() if "sha256:" not in line) <= 80


@pytest.mark.usefixtures("folder")
def test_show_and_drift_take_the_passport_out() -> None:
    at = ("--at", "2026-03-02")
    for arguments in (("show", "{}"), ("show", "{}", "-f", "markdown", "--trust", "trust.json")):
        shown = [
            certkit(*(part.format(name) for part in arguments), *at) for name in ("passport.json", "case.pdf")
        ]
        assert [done.code for done in shown] == [0, 0]
        lines = [line for line in shown[1].out.splitlines() if not line.startswith("Taken out of a PDF")]
        assert [line.replace("the pages of the PDF, ", "") for line in lines] == shown[0].out.splitlines()
    of_two = certkit("drift", "case.pdf", "passport.json", "--json").document
    old, new = of_two["sides"]
    assert old == new
    assert old["passport_id"] == issued_id()


def test_a_proof_beside_the_pdf_counts_before_the_attached_one(folder: Path) -> None:
    from certkit.api.passport_files import taken  # noqa: PLC0415 - for this test only

    files = (("passport.json", PASSPORT), ("passport.json.tlog-proof", PROOF))
    (folder / "case.pdf").write_bytes(attaching(*files))
    assert taken(folder / "case.pdf").proof == PROOF
    (folder / "case.pdf.tlog-proof").write_bytes(b"fresher\n")
    assert taken(folder / "case.pdf").proof == b"fresher\n"


def test_every_command_refuses_a_pdf_without_a_passport(folder: Path) -> None:
    (folder / "empty.pdf").write_bytes(attaching())
    (folder / "key.pem").write_bytes(b"")
    for arguments in (
        ("verify", "empty.pdf", "--trust", "trust.json"),
        ("show", "empty.pdf"),
        ("drift", "empty.pdf", "passport.json"),
        ("show", "empty.pdf", "-f", "markdown", "--trust", "trust.json"),
    ):
        done = certkit(*arguments, "--json")
        assert (done.code, done.document["error"]["code"]) == (3, "pdf.no-passport")
        assert done.document["error"]["where"] == "empty.pdf"


def test_a_pdf_is_logged_as_the_passport_in_it(folder: Path) -> None:
    from certkit.passport import keys  # noqa: PLC0415 - for this test only

    keys.write_private(folder / "key.pem", KEY, passphrase=None)
    made = certkit("registry", "init", "registry", "--name", "lab", "--json").document
    assert certkit("trust", "add", "--trust", "trust.json", "--log", made["vkey"]).code == 0
    options = ("--key", "key.pem", "--trust", "trust.json")
    at = ("--at", "2026-03-02")
    logged = [
        certkit("registry", "append", "registry", name, *options, *at, "--json")
        for name in ("case.pdf", "passport.json")
    ]
    assert [(done.code, done.document["index"], done.document["new"]) for done in logged] == [
        (0, 0, True),
        (0, 0, False),
    ]
    assert (folder / "case.pdf.tlog-proof").read_bytes().startswith(b"c2sp.org/tlog-proof@v1\n")
    done = certkit("verify", "case.pdf", "--trust", "trust.json", *at, "--json")
    assert {step["id"]: step["status"] for step in done.document["steps"]}["registry"] == "passed"


# --- what certkit draws


@pytest.fixture(scope="module")
def drawn() -> bytes:
    passport = report.IssuedPassport.of(read_passport(PASSPORT))
    view = report.view(evaluation(), passport=passport)
    head, pages, _ = report.html(view).partition("<main>")
    return drawing.pdf(view, f"{head}{pages}A page.")  # what is attached to it does not depend on the pages


@needs_pdf
def test_a_report_gives_back_the_passport_that_it_was_drawn_of(drawn: bytes, tmp_path: Path) -> None:
    assert pdf.take(drawn).passport == PASSPORT
    (tmp_path / "case.pdf").write_bytes(drawn)
    assert f"passport {issued_id()}" in tool("pdfinfo", tmp_path / "case.pdf")


@needs_pdf
def test_damage_to_a_report_gives_no_other_passport(drawn: bytes) -> None:
    for position in draws("report", 12, len(drawn)):
        damaged = bytearray(drawn)
        damaged[position] ^= 0x55
        _outcome(bytes(damaged))
