"""What is said to commands of a registry: lineages, times, places and keys; what they write and refuse."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from certkit.registry.log import KEY_FILE
from certkit.tlog.note import Signer, write_note
from tests.support.lineages import clustered, issue
from tests.support.registries import contents
from tests.support.running import certkit
from tests.support.two_passports import DAY, NAME, STRANGER, TRUST, ending, log, narrow, passport_ids, place  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

# Words


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "time",
    ["0001-01-01", "0001-01-01T00:00:00+05:00", "1969-12-31", "9999-12-31T23:59:59-05:00", "9999-01-01"],
)
def test_a_time_outside_the_calendar_is_refused(time: str) -> None:
    for words in (("history", "registry", NAME), ("list", "registry", "--status", "current")):
        done = certkit("registry", *words, "--at", time)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"error: {time!r} is not a time from 1970 to 9998\nhint: a date, ")


@pytest.mark.usefixtures("place")
def test_the_first_and_the_last_time_are_taken() -> None:
    for time in ("1970-01-01", "9998-12-31T23:59:59Z"):
        assert certkit("registry", "history", "registry", NAME, "--at", time).code == 5


@pytest.mark.usefixtures("place")
def test_no_entry_is_dated_ahead_and_so_bars_those_after_it() -> None:
    done = certkit("registry", "note", "registry", "x", "--key", "key.pem", *TRUST, "--at", "9998-12-31")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "error: --at: 9998-12-31T00:00:00+00:00 is to come\nhint: what is signed is dated now or before\n"
    )
    assert ending("note", "registry", "x", "--at", DAY).code == 0


@pytest.mark.usefixtures("place")
def test_the_dates_of_a_list_are_those_of_the_entries_and_a_status_is_as_of_a_time() -> None:
    done = certkit("registry", "list", "registry", "--at", "2020-01-01", "--json")
    stands = [row["status"] for row in done.document["entries"]]
    assert stands == ["superseded", "upcoming", None]
    found = certkit("registry", "list", "registry", "--status", "current", "--at", DAY).out
    (row,) = [line for line in found.splitlines() if line.startswith("     ")]
    assert row.split()[1] == DAY, "its validity begins on 2026-03-01"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "TEXT has not 1 to 2,048 characters"),
        (" \n", "TEXT has not"),
        ("x" * 2049, "TEXT has not"),
        ("\udcff", "not text in UTF-8"),
    ],
    ids=["none", "blank", "long", "bytes"],
)
def test_what_cannot_be_said_is_refused_before_anything_is_written(text: str, found: str) -> None:
    before = certkit("registry", "list", "registry").out
    done = ending("note", "registry", text)
    assert done.code == 2
    assert found in done.err
    assert "`" not in done.err
    assert certkit("registry", "list", "registry").out == before


@pytest.mark.usefixtures("place")
def test_words_that_no_entry_has_room_for_say_how_much_is_too_much() -> None:
    text = "€" * 1000
    done = ending("note", "registry", text)
    assert done.code == 3
    over = int(re.search(r"say it in ([0-9,]+) bytes less", done.err)[1].replace(",", ""))  # type: ignore[index]
    assert ending("note", "registry", text[: -(over // 3) + 1]).code == 3
    assert ending("note", "registry", text[: -(over // 3) - 1]).code == 0


@pytest.mark.usefixtures("place")
def test_a_list_tells_what_each_entry_says() -> None:
    assert ending("note", "registry", "all quiet").code == 0
    assert ending("revoke", "registry", "1", "--reason", "key-compromise").code == 0
    lines = narrow(certkit("registry", "list", "registry")).splitlines()
    rows = {line.split()[2]: below.strip() for line, below in pairwise(lines) if line[5:6].isdigit()}
    assert rows["drift"].startswith("DRIFTED: r_op")
    assert (rows["revoke"], rows["note"]) == ("key-compromise", "all quiet")
    assert "the log itself" in next(line for line in lines if " note " in line)


@pytest.mark.usefixtures("place")
def test_what_an_entry_shows_of_the_one_before_it_is_called_so() -> None:
    shown = narrow(certkit("registry", "list", "registry", 1)).splitlines()
    labels = [line[:15].strip() for line in shown if not line.startswith(" ")]
    assert len(labels) == len(set(labels))
    assert {"index", "leaf", "file size", "prev index"} <= set(labels)


@pytest.mark.usefixtures("place")
def test_what_is_missing_is_named() -> None:
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    for command in (("append", "{}", "first.json"), ("revoke", "{}", "0", "--reason", "key-compromise")):
        for folder in ("none", "public"):
            words = (*(word.format(folder) for word in command), "--key", "key.pem", *TRUST)
            done = certkit("registry", *words, "--json")
            assert (done.code, done.document["error"]["code"]) == (3, "registry.missing")
    hints = {
        folder: certkit("registry", "prove", folder, 0, "--json").document["error"]["hint"]
        for folder in ("none", "public")
    }
    assert "init" in hints["none"]
    assert "'certkit registry audit'" in hints["public"]
    assert "init" not in hints["public"]
    key = certkit("registry", "note", "registry", "x", "--key", "key.pem", *TRUST, "--log-key", "none.pem")
    assert key.code == 3


def test_a_log_key_that_is_kept_elsewhere_is_asked_for(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "registry" / KEY_FILE).rename(place / "log.pem")
    done = certkit("registry", "note", "registry", "x", "--key", "key.pem", *TRUST)
    assert done.code == 3
    assert done.err.endswith("hint: name the log's private key: --log-key FILE\n")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("option", ["--log", "--witness"])
@pytest.mark.parametrize("text", ["", "none", "a+00000000+AAAA"])
def test_a_bad_verifier_key_makes_no_policy(option: str, text: str) -> None:
    done = certkit("trust", "add", *TRUST, option, text, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "trust.invalid")


def test_a_malformed_checkpoint_is_named(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "letter.txt").write_text("Dear Sir")
    (place / "unsigned").write_bytes(
        write_note("certkit.x/1\n0\nAAAA\n", [Signer("certkit.x/1", STRANGER).sign("x\n")])
    )
    for name, code in (("letter.txt", 3), ("unsigned", 7)):
        done = certkit("registry", "audit", "registry", *TRUST, "--since", name)
        assert done.code == code
        assert done.err.startswith(f"error: {name}: ")


@pytest.mark.usefixtures("place")
def test_memory_that_cannot_be_asked_is_no_sound_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTKIT_HEADS", "public.pem")
    done = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "registry.heads")
    monkeypatch.setenv("CERTKIT_HEADS", "registry")
    done = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert done.code in {2, 3}
    assert done.document["schema"] == "urn:certkit:error:v1"


# What is written


@pytest.mark.parametrize(
    "words",
    [
        ("checkpoint", "registry", "-o", "registry/registry.db"),
        ("prove", "registry", 0, "-o", "registry/log-key.pem"),
        ("status", "registry", 0, "-o", "registry/registry.db"),
    ],
)
def test_nothing_of_a_registry_is_overwritten(place: Path, words: tuple[object, ...]) -> None:  # noqa: F811
    before = contents(place / "registry")
    done = certkit("registry", *words, "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "file.exists")
    assert contents(place / "registry") == before


@pytest.mark.parametrize("case", ["rollback", "other key", "no key"])
def test_a_change_of_keys_that_is_refused_leaves_no_key(place: Path, case: str) -> None:  # noqa: F811
    key = place / "registry" / KEY_FILE
    if case == "rollback":
        shutil.copytree(place / "registry", place / "before")
        assert ending("note", "registry", "one more").code == 0
        shutil.rmtree(place / "registry")
        (place / "before").rename(place / "registry")
    elif case == "other key":
        key.write_bytes((place / "key.pem").read_bytes())
    else:
        key.unlink()
    before = contents(place / "registry")
    assert certkit("registry", "rotate-key", "registry").code in {2, 3, 7}
    assert contents(place / "registry") == before


# Drift


def test_what_drifted_is_not_forgotten_by_issuing_again(place: Path) -> None:  # noqa: F811 - a fixture
    again = issue(2, summary=clustered(600), days=1, supersedes=passport_ids(place / "registry")[-1])
    (place / "again.json").write_bytes(again.to_json())
    assert log("again.json", "--at", "2026-03-03").code == 0
    done = certkit("registry", "history", "registry", NAME, "--json")
    assert [row["drift"] for row in done.document["passports"]][1] == "DRIFTED"
    assert done.code == 5


def test_a_passport_on_other_evidence_that_shows_no_loss_ends_the_drift(place: Path) -> None:  # noqa: F811
    (place / "third.json").write_bytes(issue(3, summary=clustered(900)).to_json())
    assert log("third.json").code == 0
    done = certkit("registry", "history", "registry", NAME, "--json")
    assert [row["drift"] for row in done.document["passports"]] == [None, "DRIFTED", None]
    assert done.code == 0
    assert ending("revoke", "registry", "1", "--replaced-by", "3").code == 0
    by = f" by {passport_ids(place / 'registry')[-1][7:19]}"
    listed, told = certkit("registry", "list", "registry"), certkit("registry", "history", "registry", NAME)
    assert narrow(listed).splitlines()[-1].endswith(by)
    assert narrow(told).splitlines()[-1].endswith(by)


# Attempts


def test_a_refused_attempt_says_how_it_is_declared(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "third.json").write_bytes(issue(3, summary=clustered(900), attempt=2).to_json())
    refused = log("third.json", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (7, "registry.attempt")
    assert refused.document["error"]["hint"].endswith("certkit bundle seal BUNDLE --attempt 3")
    assert certkit("simulate", "-o", "bundle", "--runs", 300, "--domains", 2, "-q").code == 0
    before = certkit("bundle", "check", "bundle", "--json").document["digest"]
    sealed = certkit("bundle", "seal", "bundle", "--attempt", 3, "--json").document["digest"]
    assert sealed == certkit("bundle", "check", "bundle", "--json").document["digest"] != before
    assert '"attempt": 3' in (place / "bundle" / "bundle.json").read_text()
    assert certkit("bundle", "seal", "bundle", "--json").document["digest"] == sealed, "it stays"
    for wrong in ("0", "x", "1000001"):
        assert certkit("bundle", "seal", "bundle", "--attempt", wrong).code == 2


def test_what_followed_from_a_passport_is_told_to_programs_too(place: Path) -> None:  # noqa: F811 - a fixture
    again = certkit(
        *("registry", "append", "registry", "second.json", "--key", "key.pem", *TRUST, "--at", DAY, "--json")
    ).document
    assert (again["new"], again["earlier"], again["drift"]) == (False, None, None)
    (place / "third.json").write_bytes(issue(3, summary=clustered(300)).to_json())
    ids = passport_ids(place / "registry")
    told = log("third.json", "--json").document
    assert (told["earlier"], told["drift"]) == (ids[1], "DRIFTED")
