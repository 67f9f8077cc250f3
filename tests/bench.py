"""Benchmarks: what reading evidence costs, as ratios to a peer that is measured in the same run.

    python -m tests.bench                    # 1,000,000 records, median of 3
    python -m tests.bench --records 10000000 --repeat 1

Prints the machine, the CPU time of reading and reducing a bundle as a multiple of the CPU time that
`orjson` takes to parse the same lines one by one, the wall time, and the largest memory. Start-up is the
CPU time of ``certkit --help`` and of ``certkit verify`` against that of their imports. Judging is the CPU
time of an assessment after its evidence was read, and the wall time of ``certkit assess`` from start to end,
both of `ASSESSED` records. Signing and verifying are `bench_signing`'s. Nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import numpy as np
import orjson

from certkit.assessment.bundles import assess_bundles, bundle_facts
from certkit.assessment.evaluation import evaluate
from certkit.assessment.profile_file import load_profile
from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.summary.summarise import summarise
from tests import bench_signing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOMAINS = ("banking", "healthcare", "logistics", "robotics", "travel")
CONDITIONS = ("adversarial", "context_corruption", "tool_failure", "stochastic", "cascade")
ASSESSED = 14_000
"""Records of the assessment that is timed."""

ASSESS_CPU, ASSESS_WALL = 1.5, 4.0
"""Limits, seconds: judging what was read, and ``certkit assess`` from start to end."""

VERIFY: Final = 0.06
"""Seconds that ``verify`` of a passport of five domains may take beyond 1.2 × its imports."""

FINDINGS = 0.10
"""Share of the CPU time of an assessment that findings may add."""

EPOCH = np.datetime64("2026-01-01T00:00:00")


def records(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield `count` fully populated records of about 500 bytes, one line each."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        domain = rng.integers(len(DOMAINS), size=size).tolist()
        task = rng.integers(200, size=size).tolist()
        condition = rng.integers(len(CONDITIONS), size=size).tolist()
        fault = (rng.random(size) < 0.8).tolist()
        success = (rng.random(size) < 0.85).tolist()
        steps = rng.integers(5, 12, size=size).tolist()
        similarity = rng.integers(850, 999, size=size).tolist()
        score = rng.integers(300, 500, size=size).tolist()
        for i in range(size):
            number = start + i
            name = DOMAINS[domain[i]]
            record: dict[str, object] = {
                "run_id": f"run-{number:08d}",
                "domain": name,
                "task_id": f"{name}/task-{task[i]:03d}",
                "cluster_id": f"{name}/family-{task[i] // 5:02d}",
                "condition": CONDITIONS[condition[i]] if fault[i] else "nominal",
                "outcome": "success" if success[i] else "failure",
                "sequence": number,
                "started_at": f"{EPOCH + np.timedelta64(number, 's')}Z",
                "trial": 0,
                "steps_actual": steps[i],
                "steps_oracle": 5,
                "violations": 0 if success[i] else 1,
                "traceability": score[i] / 100,
                "measured": "derived",
                "human_checked": number % 5 == 0,
                "x_model_revision": "2026-01-01",
            }
            if fault[i]:
                record |= {
                    "fault_step": 3,
                    "fault_took_hold": True,
                    "recovered": success[i],
                    "memory_query_offset": 1,
                    "memory_similarity": similarity[i] / 1000,
                    "memory_modified": True,
                }
                if success[i]:
                    record |= {"recovery_steps": 1, "recovery_approach": "correct"}
            yield orjson.dumps(record) + b"\n"


def make(root: Path, count: int) -> int:
    """Write a sealed bundle of `count` records; return the bytes of its record file."""
    (root / "records").mkdir(parents=True)
    manifest = {
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "benchmark", "version": "1"},
        "protocol": {"origin": "simulated"},
    }
    (root / "bundle.json").write_text(canonical.pretty(manifest))
    path = root / "records" / "runs.jsonl"
    with path.open("wb") as stream:
        stream.writelines(records(count))
    seal(root)
    return path.stat().st_size


def cpu() -> float:
    """Return the CPU seconds of this process and of its ended children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def measure_orjson(root: Path) -> None:
    """Print the CPU seconds that `orjson` takes for the lines of a bundle, a million at a time."""
    total = 0.0
    with (root / "records" / "runs.jsonl").open("rb") as stream:
        while lines := stream.readlines(512 * 2**20):
            start = time.process_time()
            for line in lines:
                orjson.loads(line)
            total += time.process_time() - start
    print(total)


def measure_certkit(root: Path) -> None:
    """Print CPU seconds, wall seconds and peak memory (bytes) of opening and summarising a bundle."""
    before = cpu()
    start = time.perf_counter()
    bundle = open_bundle(root, defer_records=True)
    summary = summarise(bundle)
    wall = time.perf_counter() - start
    used = cpu() - before
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(used, wall, peak * unit, summary.records)


def measure_assess(root: Path) -> None:
    """Print the CPU seconds of judging a summary, imports included, and the records that it rests on."""
    bundle = open_bundle(root, defer_records=True)
    summary = summarise(bundle)
    facts = bundle_facts(bundle, summary)
    profile = load_profile("hb-eval-2026")
    start = time.process_time()
    evaluate(summary, facts, profile).to_dict()
    print(time.process_time() - start, summary.records)


ONLY_FOR_FINDINGS: Final = (
    "certkit.summary.reduce.run_hashes",
    "certkit.summary.finish._equal_runs",
    "certkit.assessment.assess.findings",
)
"""Functions that nothing else needs, where they are called."""


def measure_findings(root: Path) -> None:
    """Print the CPU seconds of reading and judging a bundle, and those in functions only findings need."""
    spent = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            nonlocal spent
            start = time.process_time()
            result = function(*values, **named)
            spent += time.process_time() - start
            return result

        return call

    with ExitStack() as patched:
        for place in ONLY_FOR_FINDINGS:
            patched.enter_context(mock.patch(place, timed(pkgutil.resolve_name(place))))
        start = time.process_time()
        assess_bundles(root, "hb-eval-2026").to_dict()
        print(time.process_time() - start, spent)


def findings(root: Path, repeat: int) -> None:
    """Print what findings add to the CPU time of an assessment, the records read included.

    Both are measured in the same process, so that a slower moment of the machine changes their ratio little.
    """
    used = [run("findings", root) for _ in range(repeat)]
    shares = [100 * spent / (whole - spent) for whole, spent in used]
    print(
        f"findings: {statistics.median(shares):.1f} % more CPU time ({min(shares):.1f} to {max(shares):.1f};"
        f" limit {FINDINGS:.0%}; {repeat} runs), {used[0][1]:.2f} of {used[0][0]:.2f} CPU s in the first"
    )


def run(what: str, root: Path) -> list[float]:
    """Run one measurement in a process of its own and return what it printed."""
    command = [sys.executable, "-m", "tests.bench", "--measure", what, "--bundle", str(root)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(item) for item in output.split()]


def wall(commands: dict[str, list[str]], repeat: int) -> dict[str, float]:
    """Return the median wall seconds of commands that are run in turn."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def program() -> list[str]:
    """Return the command that starts certkit."""
    found = shutil.which("certkit", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "certkit"]


def judging(repeat: int) -> None:
    """Print what an assessment costs beside its limits."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "bundle"
        make(root, ASSESSED)
        used = statistics.median(run("assess", root)[0] for _ in range(repeat))
        found = wall({"assess": [*program(), "assess", str(root), "--exit-zero"]}, repeat)["assess"]
    print(
        f"assessing {ASSESSED:,} records: {used:.2f} CPU s after reading (limit {ASSESS_CPU:g}); "
        f"certkit assess {found:.2f} s wall (limit {ASSESS_WALL:g}; medians of {repeat})"
    )


def cpu_seconds(commands: dict[str, list[str]], repeat: int) -> dict[str, float]:
    """Return the CPU seconds of commands that are run in turn, of each the least."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {name: min(used) for name, used in times.items()}


PREPARED: Final = """
simulate -o a --seed 3 --runs 1000 --domains 5 --tier-target 2
keys generate -o key.pem --public public.pem
issue a -o issued --key key.pem --issuer Lab
trust add --trust trust.json --issuer Lab --key public.pem
"""
"""What makes a passport of five domains; each command finds what those before it left."""


def passport_of_tasks(folder: Path, count: int = ASSESSED) -> Path:
    """Issue a passport of 1,000 tasks in five domains, and return its file."""
    root = folder / "bundle"
    make(root, count)
    lines = [orjson.loads(line) for line in (root / "records" / "runs.jsonl").read_bytes().splitlines()]
    for record in lines:
        del record["cluster_id"]
    (root / "records" / "runs.jsonl").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in lines))
    seal(root)
    for line in (
        "keys generate -o key.pem --public public.pem",
        "issue bundle -o issued --key key.pem --issuer Lab",
    ):
        subprocess.run([*program(), *line.split()], check=True, capture_output=True, cwd=folder)
    return folder / "issued" / "passport.json"


def limits() -> None:
    """Print the time of ``plan``, and the size of a passport of 1,000 tasks in five domains."""
    planned = wall({"plan": [*program(), "plan", "--tier", "3"]}, 3)["plan"]
    print(f"certkit plan --tier 3: {planned:.1f} s wall (limit 10; median of 3)")
    with tempfile.TemporaryDirectory() as folder:
        size = passport_of_tasks(Path(folder)).stat().st_size
    print(f"passport of 1,000 tasks in 5 domains: {size / 1000:.0f} kB (limit 200)")


def against(other: str, repeat: int) -> None:
    """Print the CPU time of ``assess`` of three bundles beside that of another certkit's program."""
    for count in (1_000, ASSESSED, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "bundle"
            make(root, count)
            asked = ["assess", str(root), "--exit-zero"]
            used = cpu_seconds({"this": [*program(), *asked], "other": [other, *asked]}, repeat)
            print(f"assessing {count:,} records: {used['this']:.2f} CPU s, the other {used['other']:.2f}")


def start_up(repeat: int) -> None:
    """Print the CPU time of ``--help`` and of a key-based ``verify`` against that of their imports."""
    certkit, imports = program(), "import typer, cryptography.hazmat.primitives.serialization"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for words in PREPARED.strip().splitlines():
            subprocess.run([*certkit, *words.split(), "-q"], check=True, capture_output=True)
        trust = Path("trust.json")
        trust.write_text(trust.read_text().replace('specimens": false', 'specimens": true'))
        used = cpu_seconds(
            {
                "typer": [sys.executable, "-c", "import typer"],
                "help": [*certkit, "--help"],
                "imports": [sys.executable, "-c", imports],
                "verify": [*certkit, "verify", "issued/passport.json", "--trust", "trust.json"],
            },
            repeat,
        )
    ms = {name: f"{seconds * 1000:.0f} ms" for name, seconds in used.items()}
    print(f"certkit --help: {ms['help']}, {used['help'] / used['typer']:.2f} × import typer ({ms['typer']})")
    share = used["verify"] / (1.2 * used["imports"] + VERIFY)
    print(
        f"certkit verify: {ms['verify']}, its imports {ms['imports']}; "
        f"{share:.2f} of 1.2 × imports + {1000 * VERIFY:.0f} ms (CPU, least of {repeat})"
    )


MEASURES: Final[dict[str, Callable[[Path], None]]] = {
    "orjson": measure_orjson,
    "certkit": measure_certkit,
    "assess": measure_assess,
    "findings": measure_findings,
}


def machine() -> str:
    """Return what this runs on, in one line."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def report(count: int, repeat: int) -> None:
    """Print the whole benchmark."""
    print(f"machine: {machine()}")
    start_up(9)
    signed = bench_signing.shares()
    judging(3)
    limits()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "bundle"
        size = make(root, count)
        print(f"evidence: {count:,} records, {size / count:.0f} bytes each")
        ratios = []
        for number in range(1, repeat + 1):
            (peer,) = run("orjson", root)
            used, wall, memory, read = run("certkit", root)
            if read != count:
                raise SystemExit(f"read {read:.0f} of {count} records")
            ratios.append(used / peer)
            print(
                f"run {number}: certkit {used:.2f} CPU s, orjson {peer:.2f} CPU s, ratio {used / peer:.2f}; "
                f"wall {wall:.2f} s, memory at most {memory / 1e6:.0f} MB"
            )
        print(
            f"reading, checking and reducing: {statistics.median(ratios):.2f} × orjson (median of {repeat})"
        )
        findings(root, repeat)
    sys.exit(0 if signed else 1)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", choices=MEASURES)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--against", metavar="PROGRAM", help="the program `certkit` of another checkout")
    options = parser.parse_args()
    if options.measure:
        MEASURES[options.measure](options.bundle)
    elif options.against:
        against(options.against, options.repeat)
    else:
        report(options.records, options.repeat)


if __name__ == "__main__":
    main()
