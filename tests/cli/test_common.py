"""What all commands have in common: refusals, the version, bugs, interruptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit._version import __version__
from certkit.api import judging
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_missing_folder_is_three_everywhere(tmp_path: Path) -> None:
    for command in (["assess"], ["bundle", "seal"], ["bundle", "check"]):
        done = certkit(*command, tmp_path / "none", "--json")
        assert done.code == 3
        assert done.document["error"]["code"] == "file.missing"
        text = certkit(*command, tmp_path / "none")
        assert (text.code, text.out) == (3, "")
        assert text.err.splitlines()[0] == f"error: {tmp_path}/none: not found"
        assert not (tmp_path / "none").exists()


def test_a_folder_without_a_manifest_says_what_would_make_one(tmp_path: Path) -> None:
    done = certkit("assess", tmp_path)
    assert done.code == 3
    assert f"hint: for a bundle that has no bundle.json yet: certkit bundle init {tmp_path} " in done.err
    assert "no bundle.json" in certkit("runs", tmp_path).err


def test_an_output_that_cannot_be_written_is_said(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = certkit("assess", bundle, "-o", tmp_path / "file" / "out.json", "--json")
    assert done.code == 2
    assert done.document["error"]["code"] == "file.unwritable"


def test_the_version_is_told() -> None:
    done = certkit("--version")
    assert (done.code, done.out, done.err) == (0, f"certkit {__version__}\n", "")


def test_without_a_command_the_help_is_shown() -> None:
    for arguments in ([], ["bundle"], ["profile"]):
        done = certkit(*arguments)
        assert done.code == 2
        assert "Usage: certkit" in done.out + done.err


def test_a_bug_is_seventy_without_a_traceback_unless_asked_for(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(judging, "evaluate", broken)
    done = certkit("assess", bundle)
    assert (done.code, done.out) == (70, "")
    assert done.err.startswith("error: certkit failed with ZeroDivisionError: oops")
    assert "Traceback" not in done.err
    assert "Traceback" in certkit("assess", bundle, "-v").err
    as_json = certkit("assess", bundle, "--json")
    assert (as_json.code, as_json.document["error"]["code"]) == (70, "internal.bug")


def test_an_interruption_is_no_bug(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "evaluate", interrupted)
    done = certkit("assess", bundle)
    assert (done.code, done.out) == (130, "")
    assert "Traceback" not in done.err
