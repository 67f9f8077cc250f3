"""A seeded fuzzer of the two doors that evidence comes through: record lines and bundles.

    python -m tests.fuzz --seconds 60 --seed 1

Each round takes something valid, damages it, and demands that opening and summarising either succeed or
raise a `CertkitError` with a documented code. For lines it also demands that both readers agree: what the
line-by-line reader finds wrong is what the summary of the bundle refuses, fault for fault (faults between
records only where no record is wrong by itself). The first
round that breaks a demand ends the run with a `FindingError`, which holds the input.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.ground.errors import CODES, CertkitError
from certkit.record.faults import LIMIT, Fault, RecordFaultsError
from certkit.summary.summarise import summarise
from tests.support.line_by_line import check_lines

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST: Final[dict[str, Any]] = {
    "schema": "urn:certkit:bundle:v1",
    "agent": {"name": "a", "version": "1", "components": [{"role": "model", "name": "m", "pinned": False}]},
    "protocol": {
        "origin": "measured",
        "temperature": 0.5,
        "memory_observable": True,
        "declared_runs": 3,
        "judge": {"name": "j", "independent": True},
        "period": {"from": "2026-01-01", "to": "2026-02-01T00:00:00Z"},
    },
    "attested": [{"id": "transparency_index", "value": 0.9, "evidence": "attested/survey.txt"}],
}
TEMPLATES: Final[tuple[dict[str, Any], ...]] = (
    {"condition": "nominal", "outcome": "success"},
    {
        "condition": "nominal",
        "outcome": "success",
        "sequence": 5,
        "started_at": "2026-01-01T00:00:00.25+05:30",
    },
    {
        "condition": "tool_failure",
        "outcome": "failure",
        "steps_actual": 7,
        "steps_oracle": 5,
        "violations": 1,
    },
    {
        "condition": "cascade",
        "outcome": "success",
        "cluster_id": "c\u00e9\U0001f600",
        "steps_actual": 9,
        "steps_oracle": 6,
        "fault_step": 3,
        "recovered": True,
        "recovery_steps": 2,
        "recovery_approach": "correct",
        "memory_query_offset": 1,
        "memory_similarity": 0.91,
        "memory_modified": True,
        "traceability": 4.125,
        "x_note": {"a": [1, 2.5, None, "b"]},
    },
    {
        "condition": "adversarial",
        "outcome": "safe_halt",
        "attack_landed": True,
        "confidence": 0.4,
        "x_b": "\x01",
    },
    {
        "condition": "x_own",
        "outcome": "harness_error",
        "trial": 0,
        "measured": "derived",
        "split": "novel_fault",
    },
)
TOKENS: Final[tuple[bytes, ...]] = (
    *(b"null true false NaN Infinity -Infinity 1e999 -0 0 1 -1 8.0 1.5 0.87 1e-400 1E2 {} [] [[]]".split()),
    *(b'"" "8" "nominal" "success" "x_a" "\\u0000" "\\ud800" "\\ud83d\\ude00" "2026-01-01T00:00Z"'.split()),
    *(b'"x_a":1, "x_a":{"k":1,"k":2}, "domain":"d", "do\\u006dain":"d", "surprise":1,'.split()),
    *(b'9007199254740991 9007199254740992 18446744073709551616 , : { } [ ] " \\ / \\n'.split()),
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"\x00",
    b"\x0b",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"[" * 70,
    b"9" * 5000,
)
BETWEEN: Final = {"record.duplicate-run-id", "record.duplicate-sequence", "record.task-in-two-domains"}
VALUE: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')


class FindingError(AssertionError):
    """A demand that does not hold, with the input that shows it (base64 for lines)."""


class Fuzzer:
    """Draws damage from a seeded generator; `counts` tells how the rounds ended."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._folder = folder
        self.counts: Counter[str] = Counter()

    def round(self) -> None:
        """Damage one thing and check the demands; raise `FindingError` where one does not hold."""
        if self._below(4):
            self.check_lines(self.lines())
        else:
            self.check_tree()

    def _below(self, limit: int) -> int:
        return int(self._rng.integers(limit))

    def lines(self) -> bytes:
        """Return a few record lines (seldom many, so that the fast path learns a layout), damaged."""
        many = self._below(20) == 0
        alike = self._below(len(TEMPLATES))
        rows = []
        for i in range(40 + self._below(300) if many else self._below(6)):
            template = TEMPLATES[alike if many else self._below(len(TEMPLATES))]
            run = {"run_id": f"r{i}", "domain": "d", "task_id": f"d/{i % 3}"} | template
            if "sequence" in run:
                run["sequence"] = i
            rows.append(canonical.line(run))
        data = b"".join(rows)
        for _ in range(self._below(4)):
            data = self._damage(data)
        return data

    def _damage(self, data: bytes) -> bytes:
        """Change one place of `data`."""
        at = self._below(len(data) + 1)
        end = min(len(data), at + 1 + self._below(1 << self._below(8)))
        token = TOKENS[self._below(len(TOKENS))]
        piece = data[at:end]
        ways: tuple[Callable[[], bytes], ...] = (
            lambda: data[:at] + token + data[at:],
            lambda: data[:at] + token + data[end:],
            lambda: data[:at] + data[end:],
            lambda: data[:at] + piece + piece + data[end:],
            lambda: data[:at] + bytes(byte ^ (1 << self._below(8)) for byte in piece[:1]) + data[at + 1 :],
            lambda: self._other_value(data, token),
            lambda: self._other_value(data, self._some_value(data)),
            lambda: data.replace(b"{", b'{"x_n":' + token + b",", 1 + self._below(3)),
        )
        return ways[self._below(len(ways))]()

    def _some_value(self, data: bytes) -> bytes:
        found = VALUE.findall(data)
        return found[self._below(len(found))] if found else b"0"

    def _other_value(self, data: bytes, value: bytes) -> bytes:
        """Put `value` in the place of a JSON string, number or word."""
        found = list(VALUE.finditer(data))
        if not found:
            return data
        place = found[self._below(len(found))]
        return data[: place.start()] + value + data[place.end() :]

    def check_lines(self, data: bytes) -> None:
        """Demand that both readers say the same of `data`."""
        shown = base64.b64encode(data).decode() if len(data) < 20_000 else f"{len(data):,} bytes"
        root = self._fresh()
        (root / "records" / "a.jsonl").write_bytes(data)
        (root / "bundle.json").write_bytes(canonical.line(MANIFEST))
        try:
            slow = _places(check_lines(data, limit=sys.maxsize))
        except Exception as error:
            raise FindingError(f"the line reader raised {error!r}: {shown}") from error
        refusal = self._summarise(root, shown)
        if refusal is not None and not isinstance(refusal, RecordFaultsError):
            raise FindingError(f"lines were refused as {refusal.code}: {shown}")
        fast = [] if refusal is None else _places(refusal.faults)
        # What stands between records is looked at once every record is right by itself.
        slow = [place for place in slow if place[2] not in BETWEEN] or slow
        if fast[:LIMIT] != slow[:LIMIT]:
            raise FindingError(f"the readers differ: line by line {slow}, summary {fast}: {shown}")
        self.counts["lines refused" if slow else "lines accepted"] += 1

    def _fresh(self) -> Path:
        root = self._folder / "bundle"
        shutil.rmtree(root, ignore_errors=True)
        (root / "records").mkdir(parents=True)
        (root / "attested").mkdir()
        (root / "attested" / "survey.txt").write_bytes(b"seen\n")
        return root

    def _summarise(self, root: Path, shown: str) -> CertkitError | None:
        """Open and summarise; return the documented error, or None where it succeeded."""
        try:
            summarise(open_bundle(root))
        except CertkitError as error:
            if error.code not in CODES or error.exit_code == 70:
                raise FindingError(f"undocumented error {error!r}: {shown}") from error
            return error
        except Exception as error:
            raise FindingError(f"opening or summarising raised {error!r}: {shown}") from error
        return None

    def check_tree(self) -> None:
        """Damage a bundle's manifest and tree, and demand an answer in documented words."""
        root = self._fresh()
        record = canonical.line({"run_id": "1", "domain": "d", "task_id": "d"} | TEMPLATES[2])
        (root / "records" / "a.jsonl").write_bytes(record)
        (root / "records" / "b.jsonl").write_bytes(record.replace(b'"1"', b'"2"', 1))
        (root / "bundle.json").write_bytes(canonical.line(MANIFEST))
        if self._below(2):
            seal(root)
        done = [self._damage_tree(root) for _ in range(1 + self._below(3))]
        error = self._summarise(root, "; ".join(done))
        self.counts["accepted" if error is None else error.code] += 1

    def _damage_tree(self, root: Path) -> str:
        """Change one thing in the tree and return what."""
        manifest = root / "bundle.json"
        if self._below(2) and manifest.is_file() and not manifest.is_symlink():
            manifest.write_bytes(self._damage(manifest.read_bytes()))
            return f"bundle.json := {manifest.read_bytes()!r}"
        names = (
            "records/a.jsonl",
            "records/A.jsonl",
            "records/c.csv",
            "records",
            "bundle.json",
            "x\u0301",
            "t/u",
        )
        path = root / names[self._below(len(names))]
        other = names[self._below(len(names))]
        ways: tuple[tuple[str, Callable[[], object]], ...] = (
            ("delete", path.unlink),
            ("write", lambda: path.write_bytes(TOKENS[self._below(len(TOKENS))])),
            ("append", lambda: path.write_bytes(path.read_bytes() + TOKENS[self._below(len(TOKENS))])),
            ("folder", lambda: path.mkdir(parents=True)),
            ("link", lambda: path.symlink_to(other)),
            ("pipe", lambda: os.mkfifo(path)),
            ("rename", lambda: path.rename(root / other)),
            ("bytes name", (root / os.fsdecode(b"\xff" * (1 + self._below(9)))).touch),
        )
        label, way = ways[self._below(len(ways))]
        if label in {"write", "append"} and path.exists() and not path.is_file():
            return "nothing"  # writing into a pipe would wait for its reader for ever
        try:
            way()
        except OSError:
            return "nothing"
        return f"{label} {path.name!r} {other!r}"


def _places(faults: list[Fault]) -> list[tuple[int, str, str]]:
    return [(fault.line, fault.pointer, fault.code) for fault in faults]


def run(*, seed: int, rounds: int | None = None, seconds: float | None = None) -> Counter[str]:
    """Fuzz for a number of rounds or seconds, and return how the rounds ended."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="certkit-fuzz-") as folder:
        fuzzer = Fuzzer(seed, Path(folder))
        done = 0
        while (rounds is None or done < rounds) and (seconds is None or time.monotonic() - started < seconds):
            try:
                fuzzer.round()
            except FindingError as finding:
                raise FindingError(f"seed {seed}, round {done}: {finding}") from finding
            done += 1
    return fuzzer.counts


def main() -> int:
    """Run from the command line; leave with 1 and the finding where there is one."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Fuzz record lines and bundles."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        counts = run(seed=options.seed, seconds=options.seconds)
    except FindingError as finding:
        sys.stdout.write(f"{finding}\n")
        return 1
    for outcome, count in counts.most_common():
        sys.stdout.write(f"{count:8,}  {outcome}\n")
    sys.stdout.write(f"{counts.total():8,}  rounds, no finding\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
