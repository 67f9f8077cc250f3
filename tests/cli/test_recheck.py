"""``certkit recheck`` on the command line: exit codes, one document, 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

SUM = 'schema = "urn:certkit:claims:v1"\nid = "mine"\n[[claims]]\nid = "total"\nkind = "aggregate"\n'
SUM += 'where = "Table 1"\nparts = [2, 3]\nhow = "sum"\nprinted = {}\n'
OPEN = '[[claims]]\nid = "width"\nkind = "interval"\nwhere = "Table 2"\nrate = "36 %"\nhalf = "±3 %"\n'


@pytest.mark.parametrize(
    ("text", "code", "state"),
    [
        (SUM.format(5), 0, "consistent"),
        (SUM.format(6), 1, "impossible"),
        (SUM.format(5) + OPEN, 4, "undecidable"),
        (SUM.format(6) + OPEN, 1, "impossible"),
    ],
)
def test_the_worst_claim_decides_the_exit_code(tmp_path: Path, text: str, code: int, state: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    done = certkit("recheck", path)
    assert (done.code, done.err) == (code, "")
    assert done.out.splitlines()[2].split()[1] == state
    as_json = certkit("recheck", path, "--json")
    assert (as_json.code, as_json.err) == (code, "")
    document = as_json.document
    assert (document["schema"], document["exit_code"]) == ("urn:certkit:recheck:v1", code)
    assert document["claims"][0]["state"] == state
    assert sum(document["counts"].values()) == len(document["claims"])
    assert certkit("recheck", path, "--quiet") == type(done)(code, "", "")
    assert [item.name for item in tmp_path.iterdir()] == ["claims.toml"]


def test_the_packaged_claims_fit_a_terminal() -> None:
    done = certkit("recheck", "hb-eval-papers")
    assert (done.code, done.err) == (1, "")
    assert max(map(len, done.out.splitlines())) <= 80
    states = [claim["state"] for claim in certkit("recheck", "hb-eval-papers", "--json").document["claims"]]
    order = ["impossible", "inconsistent", "undecidable", "consistent"]
    assert states == sorted(states, key=order.index)
    assert set(states) == set(order)


@pytest.mark.parametrize(
    ("content", "code", "error"),
    [
        (b"id = ", 3, "recheck.invalid"),
        (b"\xff", 3, "recheck.invalid"),
        (b'id = "x"', 3, "recheck.invalid"),
        (None, 3, "file.missing"),
    ],
)
def test_a_malformed_or_missing_file(tmp_path: Path, content: bytes | None, code: int, error: str) -> None:
    path = tmp_path / "claims.toml"
    if content is not None:
        path.write_bytes(content)
    done = certkit("recheck", path, "--json")
    assert (done.code, done.err) == (code, "")
    assert done.document["error"]["code"] == error
    assert certkit("recheck", path).err.startswith(f"error: {path}")


def test_an_unknown_name_is_a_wrong_command_line() -> None:
    done = certkit("recheck", "nonsense")
    assert (done.code, done.out) == (2, "")
    assert "packaged: hb-eval-2025, hb-eval-papers, neurostate" in done.err


def test_text_of_a_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(SUM.format(6).replace("Table 1", "\\u001b[2J"), encoding="utf-8")
    assert "\x1b" not in certkit("recheck", path).out
