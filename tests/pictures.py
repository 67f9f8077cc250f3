"""Draws the pictures of the documentation, docs/pictures: two screens as SVG, page 1 of a safety case as PNG.

    python -m tests.pictures            # exits with 1 and names the screens that differ
    python -m tests.pictures --write    # writes all; the PNG only where Chromium is

They show what `certkit demo` makes, with fixed keys and a fixed date. The same program draws the same
screens.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from rich.console import Console
from rich.text import Text

from certkit import report
from certkit.cli.main import run
from certkit.ground import files
from tests import console
from tests.support.demonstration import demonstrate

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = console.ROOT / "docs" / "pictures"
SCREENS: Final = {
    "assess": "certkit assess bundle -p trial-rig",
    "verify": "certkit verify passport.json --trust trust.json \\\n"
    "    --bundle bundle --replay --registry registry \\\n    --at 2026-03-02",
}
"""The file's name and the command whose screen it shows, in the folder of the demonstration."""
REPORT: Final = "safety-case"
_WIDTH: Final = 84
_FONT_FACE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


@contextlib.contextmanager
def demonstration() -> Iterator[Path]:
    """Make the demonstration and yield its folder for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        with mock.patch.object(report, "pdf_missing", return_value="not wanted here"):
            assert demonstrate(out).code == 0
        yield out


def screen(command: str, folder: Path) -> str:
    """Return the coloured screen of a command that runs in `folder`, as SVG without foreign fonts."""
    words = command.replace("\\\n", "").split()[1:]
    _, lines = console.run_here(lambda: run(words), folder, FORCE_COLOR="1")
    drawn = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True)
    drawn.print(Text.from_ansi(f"$ {command}\n" + "\n".join(lines)))
    svg = drawn.export_svg(title="certkit", unique_id="screen")
    return _FONT_FACE.sub("", svg).replace("Fira Code, monospace", "Menlo, Consolas, monospace")


def screens(folder: Path) -> dict[Path, str]:
    """Return the SVG of every screen by its file."""
    return {FOLDER / f"{name}.svg": screen(command, folder) for name, command in SCREENS.items()}


def differing(folder: Path) -> list[Path]:
    """Return the files of screens that are not what the program shows in the folder of the demonstration."""
    return [
        path
        for path, svg in screens(folder).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != svg
    ]


def page_1(folder: Path) -> bool:
    """Draw page 1 of the safety case in Chromium; return whether Chromium is here."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return False
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,1100")
    picture = f"--screenshot={FOLDER / REPORT}.png"
    page = (folder / f"{REPORT}.html").as_uri()
    subprocess.run([chromium, *options, picture, page], check=True, capture_output=True, timeout=120)
    return True


def main(arguments: list[str]) -> int:
    """Write or compare; return the exit code."""
    if "--write" not in arguments:
        with demonstration() as folder:
            wrong = differing(folder)
        for path in wrong:
            print(f"differs: {path.relative_to(console.ROOT)}")
        return 1 if wrong else 0
    FOLDER.mkdir(exist_ok=True)
    with demonstration() as folder:
        for path, svg in screens(folder).items():
            files.write(path, svg.encode())
        if not page_1(folder):
            print(f"not drawn: {REPORT}.png, since Chromium is not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
