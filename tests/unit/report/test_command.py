"""``certkit report``, as people and scripts run it."""

from __future__ import annotations

import subprocess
import sys
import zlib
from datetime import timedelta
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit import report
from certkit.assessment.bundles import assess_bundles
from certkit.bundle.writer import seal
from certkit.passport.issue import issue
from tests.support import bundles
from tests.support.drawing import DAY, needs_pdf
from tests.support.extremes import GOOD, failed
from tests.support.running import certkit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType


class NoPango(MetaPathFinder):
    """Makes importing weasyprint fail as it does where Pango is not installed."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's name
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's name
    ) -> ModuleSpec | None:
        if fullname == "weasyprint":
            raise OSError("cannot load library 'libpango-1.0-0': no such file\nsecond line")
        return None


@pytest.fixture
def no_pango(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name == "weasyprint" or name.startswith("weasyprint."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoPango(), *sys.meta_path])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = bundles.of(tmp_path / "bundle", GOOD[:120])
    seal(root)
    return root


@pytest.mark.usefixtures("no_pango")
def test_without_pango_the_html_is_written_and_the_lines_to_install_it_are_printed(
    bundle: Path, tmp_path: Path
) -> None:
    done = certkit("report", bundle, "-o", tmp_path / "case.pdf")
    assert done.code == 0
    assert (tmp_path / "case.html").is_file()
    assert not (tmp_path / "case.pdf").exists()
    assert "PDF not made: Pango cannot be loaded" in done.err
    assert "apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0" in done.err
    assert "brew install pango" in done.err
    assert "second line" not in done.err


@pytest.mark.usefixtures("no_pango")
def test_without_pango_the_document_says_why(bundle: Path, tmp_path: Path) -> None:
    document = certkit("report", bundle, "-o", tmp_path / "case.pdf", "--json").document
    assert document["pdf"] is None
    assert "Pango" in document["pdf_missing"]
    assert document["html"] == str(tmp_path / "case.html")


def test_a_summary_is_printed_and_no_file_is_called_a_dash(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = certkit("report", bundle, "--format", "summary", "-o", "-")
    assert certkit("report", bundle, "--format", "summary") == done
    unnamed = certkit("report", bundle)
    assert (unnamed.code, unnamed.err) == (2, "error: no file is named\nhint: -o safety-case.pdf\n")
    assert (done.code, done.out.startswith("## ")) == (0, True)
    assert certkit("assess", bundle, "-o", "-").code == 2
    assert not (tmp_path / "-").exists()


def test_a_python_without_weasyprint_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    assert report.pdf_missing() == "the Python package weasyprint is not installed"


@needs_pdf
def test_to_load_pango_starts_no_other_program() -> None:
    watched = (
        "import os, sys; sys.addaudithook(lambda event, _: event == 'subprocess.Popen' and os._exit(3));"
        "from certkit import report; sys.exit(report.pdf_missing())"
    )
    assert subprocess.run([sys.executable, "-c", watched], check=False).returncode == 0


def test_an_html_report_makes_no_pdf(bundle: Path, tmp_path: Path) -> None:
    done = certkit("report", bundle, "-o", tmp_path / "case.html")
    assert (done.code, done.err) == (0, "")
    assert not (tmp_path / "case.pdf").exists()


def test_a_report_is_no_verdict(tmp_path: Path) -> None:
    weak = bundles.of(tmp_path / "weak", [failed(record) for record in GOOD[:60]])
    assert certkit("assess", weak).code == 1
    assert certkit("report", weak, "-o", tmp_path / "case.html").code == 0


@pytest.fixture
def passport(bundle: Path, tmp_path: Path) -> Path:
    signed = issue(
        assess_bundles(bundle),
        issuer="Lab",
        key=Ed25519PrivateKey.generate(),
        not_before=DAY,
        not_after=DAY + timedelta(days=1),
    )
    (tmp_path / "passport.json").write_bytes(signed.document)
    return tmp_path / "passport.json"


def test_a_passport_is_drawn_without_its_evidence_as_with_it(
    passport: Path, bundle: Path, tmp_path: Path
) -> None:
    for name, more in (("alone", ()), ("again", ("--bundle", bundle))):
        done = certkit("report", passport, *more, "-o", tmp_path / f"{name}.html")
        assert done.code == 0, done.err
    assert (tmp_path / "alone.html").read_bytes() == (tmp_path / "again.html").read_bytes()


def test_a_report_of_a_passport_judges_its_evidence_again(
    passport: Path, bundle: Path, tmp_path: Path
) -> None:
    done = certkit("report", passport, "--bundle", bundle, "-o", tmp_path / "case.html")
    assert done.code == 0, done.err
    assert "passport.json" in (tmp_path / "case.html").read_text(encoding="utf-8")


def test_a_passport_is_taken_out_of_a_pdf_and_what_is_none_is_named(
    passport: Path, bundle: Path, tmp_path: Path
) -> None:
    given, out = tmp_path / "given.pdf", tmp_path / "case.html"
    given.write_bytes(b"%PDF-1.7\nstream\n" + zlib.compress(passport.read_bytes()))
    assert certkit("report", given, "--bundle", bundle, "-o", out).code == 0
    given.write_bytes(b"\xff")
    for command in (("report", given, "--bundle", bundle, "-o", out, "--force"), ("show", given)):
        assert f"error: {given}: not UTF-8" in certkit(*command).err


def test_a_passport_whose_evidence_was_changed_is_refused_and_nothing_is_written(
    passport: Path, bundle: Path, tmp_path: Path
) -> None:
    records = bundle / "records" / "a.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"success"', b'"failure"', 1))
    (bundle / "bundle.json").write_text(
        (bundle / "bundle.json").read_text(encoding="utf-8"), encoding="utf-8"
    )
    seal(bundle)
    done = certkit("report", passport, "--bundle", bundle, "-o", tmp_path / "case.html")
    assert done.code == 7
    assert (
        "report.passport-differs"
        in certkit("report", passport, "--bundle", bundle, "-o", tmp_path / "case.html", "--json").out
    )
    assert not (tmp_path / "case.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("BUNDLE", "-o", "case.txt"), 2),
        (("BUNDLE", "--bundle", "BUNDLE", "-o", "case.html"), 2),
        (("PASSPORT", "--strict", "-o", "case.html"), 2),
        (("PASSPORT", "--bundle", "BUNDLE", "--require-tier", "2", "-o", "case.html"), 2),
        (("nowhere.json", "-o", "case.html"), 3),
        (("BUNDLE/bundle.json", "-o", "case.html"), 3),
        (("BUNDLE/bundle.json", "--bundle", "BUNDLE", "-o", "case.html"), 3),
        (("BUNDLE", "--require-tier", "4", "-o", "case.html"), 2),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(  # noqa: PLR0917 - one per fixture
    arguments: tuple[str, ...],
    code: int,
    passport: Path,
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    named = [part.replace("BUNDLE", str(bundle)).replace("PASSPORT", str(passport)) for part in arguments]
    done = certkit("report", *named)
    assert done.code == code, done.err
    assert not list(tmp_path.glob("case.*"))


@pytest.mark.parametrize("text", ["yesterday", "1e99", "9" * 30])
def test_a_date_that_is_none_is_refused(
    text: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert certkit("report", bundle, "-o", tmp_path / "case.html").code == 2


@needs_pdf
def test_an_empty_date_counts_as_absent(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")  # which fontTools would read as a number
    done = certkit("report", bundle, "-o", tmp_path / "case.pdf")
    assert (done.code, (tmp_path / "case.pdf").exists()) == (0, True), done.err


def test_no_clock_is_read(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    certkit("report", bundle, "-o", tmp_path / "case.html")
    assert "date not recorded" in (tmp_path / "case.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("pipeline", ["claude-3-5-sonnet-20240620", "gpt-4o-mini-2024-07-18"])
def test_a_real_log_gives_a_report_that_claims_no_tier(pipeline: str, shared: Path, tmp_path: Path) -> None:
    log = shared / "evidence" / "agentdojo" / f"agentdojo-{pipeline}.jsonl.gz"
    assert certkit("import", "agentdojo", log, "-o", tmp_path / "b").code == 0
    assert certkit("report", tmp_path / "b", "-o", tmp_path / "case.html").code == 0
    text = (tmp_path / "case.html").read_text(encoding="utf-8")
    assert "That does not show Tier 1: " in text
    assert "not recorded" in text
