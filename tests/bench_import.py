"""Benchmark: importing a log against merely decompressing and parsing the same bytes, in the same run.

    python -m tests.bench_import                 # logs of 200 MB, and one of 1 GB for its memory

The logs are real runs from the evidence beside the checkout, repeated under new names:
τ²-bench's retail runs as a results file (gzip), the samples of all Inspect logs as one archive (deflate).

Prints the CPU seconds of the import, without and with its traces, and the speed as a share of bare
decompressing and `orjson`, which takes turns with it: the median of the turns, with the least and the
largest; the limit without traces is `LEAST`. Then the largest memory of importing a log of 1 GB.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import tempfile
import zipfile
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import orjson

from certkit import imports as importers
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions
from tests.bench import cpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST: Final = 0.6
EVIDENCE: Final = Path(__file__).resolve().parents[2] / "shared" / "evidence"
TAU: Final = EVIDENCE / "tau" / "tau2-gpt41-retail.json.gz"
INSPECT: Final = EVIDENCE / "inspect"
KEPT: Final = {"uuid": None, "scores": {"s": {"value": "C"}}}
"""What makes one task of the samples of many."""


def repeated(runs: Sequence[dict[str, Any]], size: int) -> Iterator[tuple[int, bytes]]:
    """Yield runs again and again under new names, numbered, until they have `size` bytes in all."""
    for number in count():
        run = runs[number % len(runs)]
        data = orjson.dumps(run | {"id": f"{number}", "task_id": f"{number}", "epoch": 1})
        yield number, data
        size -= len(data)
        if size <= 0:
            return


def write_tau(path: Path, size: int) -> None:
    """Write a results file of τ²-bench."""
    log = orjson.loads(gzip.decompress(TAU.read_bytes()))
    with gzip.open(path, "wb", compresslevel=6) as stream:
        stream.write(b'{"info": ' + orjson.dumps(log["info"]) + b', "simulations": [')
        for number, data in repeated(log["simulations"], size):
            stream.write(b"," * bool(number) + data)
        stream.write(b"]}")


def inspect_samples() -> Iterator[dict[str, Any]]:
    """Yield the samples of all logs of Inspect that have a score."""
    for path in sorted(INSPECT.iterdir()):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                names = [name for name in file.namelist() if name.startswith("samples/")]
                samples = [orjson.loads(file.read(name)) for name in names]
        else:
            samples = orjson.loads(path.read_bytes()).get("samples") or []
        yield from (sample | KEPT for sample in samples if sample.get("scores") or sample.get("score"))


def write_inspect(path: Path, size: int) -> None:
    """Write an archive of Inspect."""
    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", orjson.dumps(header))
        for number, data in repeated(list(inspect_samples()), size):
            file.writestr(f"samples/{number}_epoch_1.json", data)


def parsed(path: Path) -> None:
    """Decompress and parse a log, a member at a time."""
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                orjson.loads(file.read(name))
    else:
        with gzip.open(path) as stream:
            orjson.loads(stream.read())


def measure(what: str, path: Path) -> None:
    """Print CPU seconds and largest memory (bytes) of one kind of work on a log."""
    # The bundle stays beside the log until the end: for seconds after files were deleted, ext4 takes twenty
    # times as long to create others.
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    before = cpu(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
    if what == "parse":
        parsed(path)
    else:
        options = ImportOptions(condition="nominal", traces=what == "traces")
        importers.run(path, folder / "out", options, SILENT)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    print(cpu() - before[0], usage.ru_utime - before[1], usage.ru_maxrss * unit)


def measured(what: str, path: Path) -> list[float]:
    """Return what `measure` prints in a process of its own."""
    command = [sys.executable, "-m", "tests.bench_import", "--what", what, "--log", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def shares(bare: Sequence[list[float]], ours: Sequence[list[float]], column: int) -> str:
    """Return the speed as a share of the bare one: the median of the turns, the least and the largest."""
    ratios = [peer[column] / our[column] for peer, our in zip(bare, ours, strict=True)]
    return f"{median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


def report(size: int, large: int, turns: int) -> None:
    """Measure and print everything."""
    if not EVIDENCE.is_dir():
        print("imports: not measured, since the evidence is not beside this checkout")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("log.json.gz", write_tau), ("log.eval", write_inspect)):
            path = Path(folder) / name
            write(path, size)
            works = ("parse", "import", "traces")
            rows = [[measured(what, path) for what in works] for _ in range(turns)]
            bare, *imports = zip(*rows, strict=True)
            print(f"{name}, {size:,} bytes, parse: {median(row[0] for row in bare):.2f} CPU s")
            for what, ours in zip(works[1:], imports, strict=True):
                seconds, peak = median(row[0] for row in ours), max(row[2] for row in ours)
                goal = f" of at least {LEAST:.0%}" if what == "import" else ""
                share = f"{shares(bare, ours, 0)}{goal}; of user time {shares(bare, ours, 1)}"
                print(f"{name}, {what}: {seconds:.2f} CPU s, {share}, {peak / 1e6:.0f} MB", flush=True)
            write(path, large)
            peak = measured("traces", path)[2]
            print(f"{name}, {large:,} bytes, traces: memory at most {peak / 1e6:.0f} MB")
            path.unlink()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=200_000_000)
    parser.add_argument("--large", type=int, default=1_000_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--what", choices=("parse", "import", "traces"))
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.what:
        measure(options.what, options.log)
    else:
        report(options.size, options.large, options.turns)


if __name__ == "__main__":
    main()
