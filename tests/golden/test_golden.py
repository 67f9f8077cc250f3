"""Screens as they stand in ``*.txt``: a change of what people see is meant, or is a mistake.

    python -m pytest tests/golden --rewrite-golden

writes them anew; look at the difference before it is kept. What they say is tested elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import bundles
from tests.support.extremes import GOOD, failed, full
from tests.support.running import certkit

FOLDER = Path(__file__).parent
WEAK = [failed(record) if i % 3 else record for i, record in enumerate(GOOD[:60])]
MISSING = [bundles.run(i, condition=("nominal", "stochastic")[i % 2]) for i in range(8)]
BAD = [bundles.run(1, trial="8"), bundles.run(2, surprise=None, domain=""), full(3, fault_step=9)]
LOG = "bundle/records/a.jsonl"
SCREENS = {
    "assess-good": (GOOD, ("assess", "BUNDLE", "--require-tier", "3")),
    "assess-weak": (WEAK, ("assess", "BUNDLE", "-v")),
    "assess-missing": (MISSING, ("assess", "BUNDLE")),
    "assess-empty": ([], ("assess", "BUNDLE")),
    "assess-log": (
        [bundles.run(i, task_id=f"d/{i % 20}") for i in range(40)],
        ("assess", LOG, "--agent", "a"),
    ),
    "runs": (WEAK, ("runs", "BUNDLE", "--failed")),
    "assess-2025": (WEAK, ("assess", "BUNDLE", "-p", "hb-eval-2025")),
    "bundle-check": (WEAK, ("bundle", "check", "BUNDLE")),
    "bad-records": (BAD, ("bundle", "check", "BUNDLE")),
    "profile-show": ([], ("profile", "show", "hb-eval-2026")),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, arguments = SCREENS[name]
    monkeypatch.chdir(tmp_path)  # long names of folders would fold lines
    root = bundles.of(Path("bundle"), records)
    done = certkit(*(root if argument == "BUNDLE" else argument for argument in arguments))
    shown = f"{done.out}{done.err}[{done.code:d}]\n"
    # Digests depend on the profiles' text and are tested where they are made.
    shown = re.sub("sha256:[0-9a-f]{64}", "sha256:…", shown)
    path = FOLDER / f"{name}.txt"
    if request.config.getoption("--rewrite-golden"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")
