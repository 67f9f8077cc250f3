"""Settings from a file: their order of precedence, what is refused, and what is never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.assessment.profile_file import profile_text
from certkit.cli.main import main
from certkit.ground import canonical

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CERTKIT_PROFILE", "CERTKIT_REQUIRE_TIER", "CERTKIT_SEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", "init", "evidence", "--agent", "a", "--version", "1", "-q"]) == 0
    return tmp_path


def profile_of(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    capsys.readouterr()
    main(["assess", "evidence", "--json", *options])
    document = canonical.loads(capsys.readouterr().out.encode())
    return str(document["profile"]["id"])


def test_a_flag_counts_before_the_environment_before_the_file_before_the_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile_of(capsys) == "hb-eval-2026"
    (folder / "certkit.toml").write_text('profile = "hb-eval-2025"\n')
    assert profile_of(capsys) == "hb-eval-2025"
    monkeypatch.setenv("CERTKIT_PROFILE", "hb-eval-2026")
    assert profile_of(capsys) == "hb-eval-2026"
    assert profile_of(capsys, "-p", "hb-eval-2025") == "hb-eval-2025"


def test_pyproject_may_hold_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text('[tool.certkit]\nprofile = "hb-eval-2025"\n')
    assert profile_of(capsys) == "hb-eval-2025"


def test_settings_from_a_file_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "certkit.toml").write_text('profile = "hb-eval-2025"\n')
    main(["assess", "evidence"])
    assert "note: profile from certkit.toml" in capsys.readouterr().err


def test_evidence_does_not_choose_how_it_is_judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "evidence" / "certkit.toml").write_text('profile = "hb-eval-2025"\n')
    monkeypatch.chdir(folder / "evidence")
    capsys.readouterr()
    main(["assess", ".", "--json"])
    assert canonical.loads(capsys.readouterr().out.encode())["profile"]["id"] == "hb-eval-2026"


def test_a_settings_file_names_no_profile_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = profile_text("hb-eval-2026")
    (folder / "lax.toml").write_text(table.replace('id = "hb-eval-2026"', 'id = "lax"'))
    (folder / "certkit.toml").write_text('profile = "lax.toml"\n')
    capsys.readouterr()
    assert main(["assess", "evidence", "-q"]) == 2
    assert "names packaged profiles alone" in " ".join(capsys.readouterr().err.split())
    (folder / "certkit.toml").unlink()
    assert profile_of(capsys, "-p", "lax.toml") == "lax"
    monkeypatch.setenv("CERTKIT_PROFILE", "./lax.toml")
    assert profile_of(capsys) == "lax"


@pytest.mark.parametrize(
    "text", ["x = 1", "profile = 1", "require_tier = true", "profile", "[tool]\n", 'seed = "many"']
)
def test_what_is_not_a_setting_is_refused(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "certkit.toml").write_text(text)
    capsys.readouterr()
    assert main(["assess", "evidence", "--json"]) == 2
    assert canonical.loads(capsys.readouterr().out.encode())["error"]["code"] == "config.invalid"
    assert main(["assess", "--help"]) == 0


def test_a_pyproject_whose_tool_is_no_table_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pyproject.toml").write_text("tool = 5\n")
    capsys.readouterr()
    assert main(["assess", "evidence", "--json"]) == 2
    assert canonical.loads(capsys.readouterr().out.encode())["error"]["code"] == "config.invalid"
