"""What the machine does to us: full disks, limits, read-only folders, kills in the middle."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.summary.summarise import summarise
from tests.support import bundles
from tests.support.bundles import lines, run

# Commands run as a program, with the limits of the operating system really in force.
START = "import sys; from certkit.cli.main import run; run(sys.argv[1:])"


def limited(kind: int, amount: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command line with a limit of the operating system."""

    def limit() -> None:
        # Without this the signal would end the process where Python can report an error.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (amount, amount))

    return subprocess.run(
        [sys.executable, "-c", START, *map(str, arguments)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_a_file_that_cannot_grow_leaves_the_sealed_state_as_it_was(tmp_path: Path, limit: int) -> None:
    root = bundles.write(tmp_path / "b", {f"{i:03}.jsonl": lines([run(i)]) for i in range(40)})
    before = contents(root)
    done = limited(resource.RLIMIT_FSIZE, limit, "bundle", "seal", root)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {root}/bundle.json: file too large")
    assert contents(root) == before
    assert not open_bundle(root).facts.sealed


def test_a_full_disk_leaves_no_simulation(tmp_path: Path) -> None:
    done = limited(resource.RLIMIT_FSIZE, 10_000, "simulate", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "file too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_assessment_and_keeps_the_old(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(1)])
    out = tmp_path / "out.json"
    out.write_bytes(b"the one before")
    done = limited(resource.RLIMIT_FSIZE, 500, "assess", root, "-o", out)
    assert done.returncode == 2
    assert out.read_bytes() == b"the one before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "out.json"]


def test_too_few_descriptors_are_said(tmp_path: Path) -> None:
    root = bundles.write(tmp_path / "b", {f"{i:03}.jsonl": lines([run(i)]) for i in range(40)})
    # Hashing opens one file at a time per thread; many files need no more descriptors than few.
    done = limited(resource.RLIMIT_NOFILE, 24, "bundle", "seal", root)
    assert (done.returncode, done.stderr) == (0, "")


def test_reading_stays_within_an_address_space_far_below_the_file(tmp_path: Path) -> None:
    """Reading 300 MB may not need 300 MB more than reading nothing does."""
    root = bundles.write(tmp_path / "b", {})
    row = bundles.line(run("r", x_filler="f" * 100_000))
    with (root / "records" / "a.jsonl").open("wb") as stream:
        for i in range(3000):
            stream.write(row.replace(b'"r"', b'"%d"' % i, 1))
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "import certkit\n"
        "root = Path(sys.argv[1])\n"
        "bundle = certkit.open_bundle(root)\n"
        "from certkit.summary.summarise import summarise\n"
        "pages = int(Path('/proc/self/statm').read_text().split()[0])\n"
        "limit = pages * resource.getpagesize() + 200 * 2**20\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "print(summarise(bundle).records)\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux tells a process its address space")
    done = subprocess.run(
        [sys.executable, "-c", code, root], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.stdout, done.returncode) == ("3000\n", 0), done.stderr[-300:]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into read-only folders")
@pytest.mark.parametrize("command", ["seal", "assess", "simulate"])
def test_a_read_only_folder_is_said_and_left_alone(tmp_path: Path, command: str) -> None:
    root = bundles.of(tmp_path / "b", [run(1)])
    before = contents(root)
    root.chmod(0o555)
    arguments = {
        "seal": ("bundle", "seal", root),
        "assess": ("assess", root, "-o", root / "out.json"),
        "simulate": ("simulate", "-o", root / "new"),
    }[command]
    try:
        done = limited(resource.RLIMIT_CORE, 0, *arguments)
    finally:
        root.chmod(0o755)
    assert done.returncode == 2
    assert "permission denied" in done.stderr
    assert contents(root) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["records/a.jsonl", "bundle.json", "records"])
def test_what_may_not_be_read_is_said(tmp_path: Path, name: str) -> None:
    root = bundles.of(tmp_path / "b", [run(1)])
    (root / name).chmod(0o000)
    try:
        done = limited(resource.RLIMIT_CORE, 0, "assess", root, "--json")
    finally:
        (root / name).chmod(0o755)
    assert done.returncode == 3
    assert '"file.unreadable"' in done.stdout


def test_a_kill_while_sealing_leaves_a_bundle_that_opens(tmp_path: Path) -> None:
    """Whenever the kill comes, the manifest is the old one or the new one."""
    root = bundles.write(tmp_path / "b", {f"{i:03}.jsonl": lines([run(i)]) for i in range(20)})
    old = (root / "bundle.json").read_bytes()
    seal(root)
    new = (root / "bundle.json").read_bytes()
    # The child tells of every flush and rename, and is killed at one of them.
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import certkit\n"
        "left = int(sys.argv[2])\n"
        "def stop(real):\n"
        "    def call(*a):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return real(*a)\n"
        "    return call\n"
        "for name in ('fsync', 'replace', 'fchmod'): setattr(os, name, stop(getattr(os, name)))\n"
        "certkit.seal(Path(sys.argv[1]))\n"
    )
    seen = []
    for left in range(5):
        (root / "bundle.json").write_bytes(old)
        done = subprocess.run([sys.executable, "-c", code, root, str(left)], check=False)
        found = (root / "bundle.json").read_bytes()
        assert found in {old, new}
        seen.append((done.returncode, found == new))
        for path in root.glob(".*"):
            path.unlink()  # what a kill leaves behind is beside the bundle's files, and named as temporary
        assert summarise(open_bundle(root)).records == 20
    # fchmod, fsync, replace, fsync of the folder: killed at each, and then not at all.
    killed = -signal.SIGKILL
    assert seen == [(killed, False), (killed, False), (killed, False), (killed, True), (0, True)]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_an_import_that_is_ended_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out"
    rows = (f"{i},a,d,d/{i},nominal,success\n" for i in range(100_000))
    log.write_text("run_id,agent,domain,task_id,condition,outcome\n" + "".join(rows))
    out.mkdir()
    # Whoever runs the tests by `nohup` ignores SIGHUP, and so would the program.
    start = f"import signal; signal.signal({int(ending)}, signal.SIG_DFL); {START}"
    command = [sys.executable, "-c", start, "import", str(log), "-o", str(out / "bundle"), "-q"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as importing:
        # Not at once: a signal that comes before mkdtemp returns the folder's name leaves it there, empty.
        while not [*out.glob(".*/*")]:
            assert importing.poll() is None
            time.sleep(0.01)
        importing.send_signal(ending)
        assert importing.wait() == 130
    assert [*out.iterdir()] == []
