"""What a report costs: `python -m tests.bench_report [LOG]`, seconds, pages and memory of ``certkit report``.

Every command runs alone, three times: its processor time is that of the fastest turn, since whatever else
the machine does only adds to it, and its memory the largest that the system counts. Beyond five examples
(LOG is a log of AgentDojo, left out where none is given) the demonstration's pages are laid out four and
seven times over in one document, some 50 and 100 pages: a report prints at most forty rows of a table, so
that none has so many. Prints the least filled page of each too, with pdftotext, without which nothing is
measured. Nothing here is asserted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from certkit.bundle.writer import seal
from tests.support import bundles
from tests.support.drawing import filled
from tests.support.running import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

DRAWN = (
    "import sys, pathlib, datetime; from certkit import report\n"
    "from certkit.assessment.assessment import Question\n"
    "from certkit.assessment.bundles import assess_bundles\n"
    "judged = assess_bundles(sys.argv[1], question=Question(required_tier=2))\n"
    "view = report.view(judged, today=datetime.date(2026, 2, 3))\n"
    "head, rest = report.html(view).split('<main>'); body, foot = rest.split('</main>')\n"
    "page = head + '<main>' + body * int(sys.argv[2]) + '</main>' + foot\n"
    "pathlib.Path(sys.argv[3]).write_bytes(report.pdf(view, page))"
)


TURNS = 3


def measured(command: list[str | Path]) -> tuple[float, float]:
    """Run a command `TURNS` times; return the least of its processor seconds and its largest memory in MB."""
    seconds, memory = [], []
    for _ in range(TURNS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, command
        seconds.append(used.ru_utime + used.ru_stime)
        memory.append(used.ru_maxrss / 1024)
    return min(seconds), max(memory)


def drawn(what: str, folder: Path, arguments: Sequence[str | Path]) -> float:
    """Draw a report as HTML and as PDF, and print what each costs; return the seconds of the HTML."""
    html, _ = measured([PROGRAM, "report", *arguments, "-o", folder / "x.html", "--force"])
    pdf, memory = measured([PROGRAM, "report", *arguments, "-o", folder / "x.pdf", "--force"])
    told(what, folder / "x.pdf", pdf, pdf - html, memory)
    for file in folder.glob("x.*"):
        file.unlink()
    return html


def told(what: str, file: Path, seconds: float, beyond: float, memory: float) -> None:
    """Print a line of results."""
    shares = filled(file)
    each = beyond / len(shares)
    print(
        f"{what:<28} {len(shares):>4} pages {seconds:>6.1f} s, beyond the HTML {each:.2f} s a page,"
        f" {memory:>5.0f} MB, least filled page {min(shares):.0%}"
    )


def main() -> None:
    if shutil.which("pdftotext") is None:
        print("reports: not measured, since pdftotext is not installed")
        return
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        made = root / "demo"
        subprocess.check_call([PROGRAM, "demo", "-o", made, "--quiet"])
        bundle = made / "bundle"
        context: list[str | Path] = [
            "--context",
            made / "context.json",
            "-p",
            "trial-rig",
            "--require-tier",
            "1",
        ]
        drawn("demonstration", root, [bundle, *context])
        html = drawn("demonstration, no context", root, [bundle])
        if len(sys.argv) > 1:
            subprocess.check_call(
                [PROGRAM, "import", "agentdojo", sys.argv[1], "-o", root / "log", "--quiet"]
            )
            drawn("AgentDojo", root, [root / "log"])
        empty = bundles.of(root / "empty", [])
        seal(empty)
        drawn("no record", root, [empty])
        wide = root / "wide"
        subprocess.check_call(
            [PROGRAM, "simulate", "-o", wide, "--runs", "4000", "--domains", "40", "--quiet"]
        )
        drawn("40 domains", root, [wide])
        for times in (1, 4, 7):
            file = root / f"{times}.pdf"
            seconds, memory = measured([sys.executable, "-c", DRAWN, bundle, str(times), file])
            told(f"demonstration × {times}", file, seconds, seconds - html, memory)


if __name__ == "__main__":
    main()
