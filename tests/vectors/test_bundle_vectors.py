"""Language-neutral cases of bundles: ``bundle/*.json``, each ``{"format": "bundle", "cases": […]}``.

A case builds a folder and says what opening it and reading its records must give:

- `before`: operations on the empty folder; left out: one valid record in ``records/a.jsonl``;
- `manifest`: the content of ``bundle.json``; left out: the smallest valid one; null: none is written;
- `seal`: whether the bundle is then sealed; `after`: operations that follow;
- `open`: what is opened, relative to the bundle (left out: the bundle itself);
- `expected`: null, or the code of the error; `names`: texts that the error's message must contain;
- `sealed`: what an accepted bundle must say of itself;
- `case_sensitive`, `linux`: the case can be built only on such a file system or operating system.

Operations: ``write`` (`text` or `base64`), ``append``, ``truncate`` (`size`), ``flip`` (the lowest bit of the
byte `at`), ``delete``, ``rename`` and ``link`` (`to`), ``folder``, ``pipe``, ``socket``, each on a `path`
relative to the bundle (`path_base64` for bytes that are no UTF-8); ``edit`` (`value`) and ``remove`` on a
`pointer` into the manifest.
"""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.ground.errors import CODES, CertkitError
from certkit.summary.summarise import summarise
from tests.support.documents import certkit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "bundle"
RECORD = '{"run_id":"1","domain":"d","task_id":"d/1","condition":"nominal","outcome":"success"}\n'
DEFAULT = [{"op": "write", "path": "records/a.jsonl", "text": RECORD}]
MANIFEST = {
    "schema": "urn:certkit:bundle:v1",
    "agent": {"name": "a", "version": "1"},
    "protocol": {"origin": "measured"},
}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.json")):
        document = canonical.loads(path.read_bytes())
        assert document["format"] == "bundle"
        yield from ((path.stem, case) for case in document["cases"])


CASES = [pytest.param(case, id=f"{theme}: {case['name']}") for theme, case in cases()]


def _place(root: Path, operation: dict[str, Any]) -> Path:
    if "path_base64" in operation:
        return root / os.fsdecode(base64.b64decode(operation["path_base64"], validate=True))
    return root / str(operation["path"])


def _bind(path: Path) -> None:
    # The address of a socket is at most about 100 bytes long, the test's folder may be longer.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _write(path: Path, operation: dict[str, Any]) -> None:
    data = base64.b64decode(operation["base64"]) if "base64" in operation else operation["text"].encode()
    path.write_bytes(data)


def _append(path: Path, text: str) -> None:
    path.write_bytes(path.read_bytes() + text.encode())


def _change_manifest(root: Path, operation: dict[str, Any]) -> None:
    document = canonical.loads((root / "bundle.json").read_bytes())
    *way, last = operation["pointer"].split("/")[1:]
    node: Any = document
    for key in way:
        node = node[int(key)] if isinstance(node, list) else node[key]
    if operation["op"] == "remove":
        del node[int(last) if isinstance(node, list) else last]
    elif isinstance(node, dict):
        node[last] = operation["value"]
    else:
        node[int(last) : int(last) + 1] = [operation["value"]]
    (root / "bundle.json").write_bytes(canonical.pretty(document).encode())


def apply(root: Path, operation: dict[str, Any]) -> None:
    kind = operation["op"]
    if kind in {"edit", "remove"}:
        _change_manifest(root, operation)
        return
    path = _place(root, operation)
    path.parent.mkdir(parents=True, exist_ok=True)
    ways: dict[str, Callable[[], object]] = {
        "write": lambda: _write(path, operation),
        "append": lambda: _append(path, operation["text"]),
        "truncate": lambda: os.truncate(path, operation["size"]),
        "flip": lambda: _flip(path, operation["at"]),
        "delete": path.unlink,
        "rename": lambda: path.rename(root / operation["to"]),
        "link": lambda: path.symlink_to(operation["to"]),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "socket": lambda: _bind(path),
    }
    ways[kind]()


def build(case: dict[str, Any], home: Path) -> Path:
    """Build the case's bundle under `home` and return what is to be opened; sealing may be refused."""
    if case.get("linux") and sys.platform != "linux":
        pytest.skip("this operating system refuses the name")
    if case.get("case_sensitive"):
        (home / "probe").touch()
        if (home / "PROBE").exists():
            pytest.skip("the file system does not tell upper from lower case")
    root = home / "bundle"
    root.mkdir()
    manifest = case.get("manifest", MANIFEST)
    if manifest is not None:
        (root / "bundle.json").write_bytes(canonical.pretty(manifest).encode())
    for operation in case.get("before", DEFAULT):
        apply(root, operation)
    if case.get("seal"):
        seal(root)
    for operation in case.get("after", ()):
        apply(root, operation)
    return root / str(case.get("open", "."))


@pytest.mark.parametrize("case", CASES)
def test_the_library_accepts_or_refuses_with_the_expected_code(case: dict[str, Any], tmp_path: Path) -> None:
    if case["expected"] is None:
        bundle = open_bundle(build(case, tmp_path))
        summarise(bundle)
        assert bundle.facts.sealed is bool(case.get("sealed"))
        assert canonical.is_digest(bundle.facts.digest)
        return
    with pytest.raises(CertkitError) as caught:
        summarise(open_bundle(build(case, tmp_path)))
    assert caught.value.code == case["expected"]
    assert caught.value.exit_code == 3
    for name in case.get("names", ()):
        assert name in str(caught.value)


@pytest.mark.parametrize("case", CASES)
def test_the_command_line_accepts_or_refuses_with_the_expected_code(
    case: dict[str, Any], tmp_path: Path
) -> None:
    command, root = "check", tmp_path / "bundle"
    try:
        root = build(case, tmp_path)
    except CertkitError:
        # The library refuses to seal already; the command that seals must say the same.
        command = "seal"
    code, document = certkit("bundle", command, str(root), "--json")
    if case["expected"] is None:
        assert code == 0
        return
    assert code == 3
    assert document["schema"] == "urn:certkit:error:v1"
    assert document["error"]["code"] == case["expected"]


@pytest.mark.parametrize("expected", ["bundle.file-changed", "json.duplicate-key", "bundle.not-regular"])
def test_the_installed_program_leaves_with_the_code_and_without_a_traceback(
    expected: str, tmp_path: Path
) -> None:
    case = next(case for _, case in cases() if case["expected"] == expected)
    program = Path(sys.executable).with_name("certkit")
    done = subprocess.run(
        [program, "bundle", "check", build(case, tmp_path), "--json"], capture_output=True, check=False
    )
    assert done.returncode == 3
    assert canonical.loads(done.stdout)["error"]["code"] == expected
    assert b"Traceback" not in done.stderr


def test_a_file_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build({"before": [{"op": "write", "path": f"traces/{i}", "text": ""} for i in range(4)]}, tmp_path)
    # The manifest, the folder and four files are six names.
    monkeypatch.setattr("certkit.bundle.folder.MAX_FILES", 6)
    open_bundle(root)
    monkeypatch.setattr("certkit.bundle.folder.MAX_FILES", 5)
    with pytest.raises(CertkitError) as caught:
        open_bundle(root)
    assert caught.value.code == "bundle.too-many-files"


def test_opening_changes_nothing(tmp_path: Path) -> None:
    root = build({"seal": True}, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    summarise(open_bundle(root))
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_every_bundle_code_has_a_case() -> None:
    covered = {case["expected"] for _, case in cases()}
    # Each has a test of its own: above, where a seal is needed, and in tests/unit/bundle/test_traces.py.
    elsewhere = {"bundle.too-many-files", "bundle.unsealed", "bundle.trace"}
    assert {code for code in CODES if code.startswith("bundle.")} - covered == elsewhere
