"""The text of reports without appendices, in ``report-*.txt``; `test_golden` says how it is written anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from certkit import report
from certkit.assessment.bundles import assess_bundles
from tests.support import bundles
from tests.support.drawing import Page
from tests.support.extremes import GOOD, failed

FOLDER = Path(__file__).parent
SETS = {
    "weak": [failed(record) if i % 3 else record for i, record in enumerate(GOOD[:60])],
    "missing": [bundles.run(i, condition=("nominal", "stochastic")[i % 2]) for i in range(8)],
}


@pytest.mark.parametrize("name", SETS)
def test_a_report_says_what_it_said(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = bundles.of(tmp_path / "bundle", SETS[name])
    whole = re.sub('<span class="kept">(.*?)</span>', r"\1", report.html(report.view(assess_bundles(root))))
    text = Page(whole).lines
    text = re.sub(r"sha256:[0-9a-f]{16,}", "sha256:…", text)
    text = re.sub(r"(?m)^certkit \d+\.\d+\.\d+", "certkit X", text)
    text = text[: text.rindex("\nA Profile\n") + 1]
    path = FOLDER / f"report-{name}.txt"
    if request.config.getoption("--rewrite-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
