"""Benchmark: importing a log against merely decompressing and parsing the same bytes, in the same run.

    python -m tests.bench_import                 # logs of 200 MB, and one of 1 GB for its memory

Prints for a τ²-bench results file (gzip) and an Inspect archive (deflate) the CPU seconds of the import,
without and with its traces, and the speed as a share of bare decompressing and `orjson`, which takes turns
with it: the median of the turns, with the least and the largest. Then the largest memory of importing a log
of 1 GB. The limit is `LEAST`, for imports without traces.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from certkit.evidence import importers
from certkit.evidence.importers import ImportOptions
from certkit.progress import SILENT
from tests.bench import cpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST: Final = 0.6
INFO: Final = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "shop"}, "num_trials": 1}
WORDS: Final = [f"word{number:03d}" for number in range(1000)]


def runs(size: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield runs of about 60 kB with a conversation each, `size` bytes in all."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for number in range(size // 60_000):
        texts = [" ".join(WORDS[i] for i in rng.integers(1000, size=370).tolist()) for _ in range(20)]
        messages = [
            {"role": role, "content": text, "turn_idx": i, "tool_calls": None}
            for i, (role, text) in enumerate(zip(("user", "assistant") * 10, texts, strict=True))
        ]
        yield {"id": f"s{number}", "task_id": str(number), "messages": messages}


def write_tau(path: Path, size: int) -> None:
    """Write a results file of τ²-bench."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b'{"info": ' + orjson.dumps(INFO) + b', "simulations": [')
        for number, run in enumerate(runs(size)):
            stream.write(b"," * bool(number) + orjson.dumps(run | {"reward_info": {"reward": number % 2}}))
        stream.write(b"]}")


def write_inspect(path: Path, size: int) -> None:
    """Write an archive of Inspect."""
    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("header.json", orjson.dumps(header))
        for number, run in enumerate(runs(size)):
            sample = run | {"id": number, "epoch": 1, "scores": {"s": {"value": "C"}}}
            file.writestr(f"samples/{number}_epoch_1.json", orjson.dumps(sample))


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
    with tempfile.TemporaryDirectory() as folder:
        before = cpu(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        if what == "parse":
            parsed(path)
        else:
            options = ImportOptions(condition="nominal", traces=what == "traces")
            importers.run(path, Path(folder) / "out", options, SILENT)
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
                limit = f" of at least {LEAST:.0%}" * (what == "import")
                share = f"{shares(bare, ours, 0)}{limit}; of user time {shares(bare, ours, 1)}"
                print(f"{name}, {what}: {seconds:.2f} CPU s, {share}, {peak / 1e6:.0f} MB", flush=True)
            write(path, large)
            peak = measured("import", path)[2]
            print(f"{name}, {large:,} bytes, import: memory at most {peak / 1e6:.0f} MB")
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
