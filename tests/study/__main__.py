"""The command: see the package."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.study.page import QUICK, SECTIONS, SEED, limits_table, outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.study.draws import Cell


def _ticker(name: str) -> Callable[[str], None]:
    def tick(words: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{name}: {words}")
            sys.stderr.flush()

    return tick


def main(arguments: list[str]) -> int:
    """Run the study; return 1 where a promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.study", description="The simulation study.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of all draws (default {SEED})")
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument("--write", action="store_true", help="write the page, its figures and its results")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only or options.seed != SEED):
        parser.error("--write takes the whole study with its own seed")
    cells: dict[str, list[Cell]] = {}
    for name, section in SECTIONS.items():
        if options.only not in {None, name}:
            continue
        draws = section.draws // QUICK if options.quick else section.draws
        sys.stderr.write(f"{name}: {f'{draws:,} draws' if draws else 'exact'}\n")
        cells[name] = section.run(options.seed, draws, _ticker(name))
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        for block, make in section.tables.items():
            print(f"{block}\n\n{make(cells[name])}", flush=True)
    print(f"promises\n\n{limits_table(cells)}", end="")
    if options.write:
        for path, text in outputs(cells).items():
            path.write_text(text, encoding="utf-8")
            sys.stderr.write(f"written: {path.name}\n")
    kept = all(limit.holds for name in cells for limit in SECTIONS[name].limits(cells[name]))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
