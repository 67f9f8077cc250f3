"""What commands that read a registry show and refuse: signatures, entries of strangers, odd words."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.cli.context import heads_path
from certkit.passport import keys
from certkit.passport.trust import parse
from certkit.registry.entry import Drift, Logged, Revocation, read, write
from certkit.registry.log import KEY_FILE, load_log_key
from certkit.registry.reader import history, reading
from certkit.registry.registry import Registry
from certkit.registry.state import Policy
from certkit.tlog.note import Signature, parse_note, write_note
from certkit.tlog.tree import leaf_hash
from tests.support.lineages import clustered, issue
from tests.support.registries import log_entry
from tests.support.running import Done, certkit
from tests.support.signers import Signer
from tests.support.two_passports import DAY, NAME, STRANGER, TRUST, ending, log, narrow, passport_ids, place  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey

THEN = datetime(2026, 3, 2, tzinfo=UTC)

READING = (
    ("list", "{}"),
    ("list", "{}", "--status", "current"),
    ("list", "{}", "0"),
    ("prove", "{}", "0"),
    ("checkpoint", "{}"),
    ("checkpoint", "{}", "--vkey"),
    ("history", "{}", NAME),
)


def told(*more: object, folder: str = "registry") -> Done:
    return certkit("registry", "history", folder, NAME, "--at", DAY, *more)


def broken(note: bytes) -> bytes:
    """The same note with one bit of its signature turned."""
    found = parse_note(note)
    (line,) = found.signatures
    value = bytes([line.value[0] ^ 1, *line.value[1:]])
    return write_note(found.text, [Signature(line.name, line.key_id, value)])


def forge(
    folder: Path, claims: Any, *, submitter: PrivateKey = STRANGER, pose: PrivateKey | None = None
) -> int:
    """Log an entry past all rules, as whoever keeps the log can; it may pose as another's."""
    with pytest.MonkeyPatch.context() as patch:
        if pose is not None:
            name = keys.key_id(pose.public_key())
            patch.setattr("certkit.registry.writing.keys.key_id", lambda _key: name)
        with Registry.open(folder, heads=folder.parent / "heads.db") as registry:
            done = log_entry(
                registry,
                *(f"-/{NAME}", claims),
                submitter=submitter,
                log_key=load_log_key(folder / KEY_FILE),
                at=THEN,
            )
    return done.index


def revocation(folder: Path) -> Revocation:
    return Revocation(passport_id=passport_ids(folder)[-1], reason="evidence-false")


# Who signed


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_nothing_is_shown_of_a_registry_whose_checkpoint_nobody_signed(
    place: Path,  # noqa: F811 - a fixture
    words: tuple[str, ...],
) -> None:
    line = ["registry", *(word.format("registry") for word in words)]
    assert certkit(*line).code in {0, 4, 5}
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        (note,) = connection.execute("SELECT note FROM checkpoint").fetchone()
        connection.execute("UPDATE checkpoint SET note = ?", (broken(note),))
        connection.commit()
    done = certkit(*line)
    assert (done.code, done.out) == (7, "")
    assert "does not verify" in done.err


def test_a_checkpoint_that_cannot_be_read_is_a_finding_of_an_audit(place: Path) -> None:  # noqa: F811
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        connection.execute("UPDATE checkpoint SET note = ?", (b"Dear Sir",))
        connection.commit()
    done = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert (done.code, done.document["result"]) == (7, "unsound")
    assert "registry.checkpoint" in {one["code"] for one in done.document["findings"]}


def test_a_list_is_of_the_entries_that_were_signed(place: Path) -> None:  # noqa: F811 - a fixture
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    here, there = certkit("registry", "list", "registry"), certkit("registry", "list", "public")
    assert (here.code, here.out) == (0, there.out)
    assert "3 entries, signatures not checked" in " ".join(narrow(here).split())
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        connection.execute("UPDATE leaf SET entry = (SELECT entry FROM leaf WHERE idx = 2) WHERE idx = 1")
        connection.commit()
    done = certkit("registry", "list", "registry", "--json")
    assert (done.code, done.document["error"]["code"]) == (7, "registry.inconsistent")


def test_what_is_told_says_first_whether_signatures_were_checked(place: Path) -> None:  # noqa: F811
    text = told().out
    assert "signatures not checked (--trust FILE)\n" in "".join(text.partition("\n\n")[:2])
    assert told("--json").document["signatures"] == "not checked"
    text = told(*TRUST).out
    assert "under your trust policy; entries that do not count: none\n" in "".join(text.partition("\n\n")[:2])
    document = told(*TRUST, "--json").document
    assert (document["signatures"], document["left_out"]) == ("checked", [])
    assert certkit("registry", "export", "registry", "public", "--passports", "-q").code == 0
    checkpoint = place / "public" / "checkpoint"
    assert told(*TRUST, folder="public").out == text
    checkpoint.write_bytes(broken(checkpoint.read_bytes()))
    assert "signatures not checked" in told(folder="public").out
    assert told(*TRUST, folder="public").code == 7


def test_a_strangers_revocation_counts_only_where_nobody_looks(place: Path) -> None:  # noqa: F811 - a fixture
    index = forge(place / "registry", revocation(place / "registry"))
    believed = told("--json").document
    assert [row["status"] for row in believed["passports"]] == ["superseded", "revoked"]
    checked = told(*TRUST, "--json").document
    assert [row["status"] for row in checked["passports"]] == ["superseded", "current"]
    assert (checked["left_out"], len(checked["events"])) == ([index], 1)
    assert f"; entries that do not count: {index}\n" in told(*TRUST).out
    forge(place / "registry", revocation(place / "registry"))
    assert f"; entries that do not count: {index}, {index + 1}\n" in told(*TRUST).out


def test_a_revocation_counts_wherever_it_stands(place: Path) -> None:  # noqa: F811 - a fixture
    assert ending("revoke", "registry", 1, "--reason", "evidence-false", *TRUST).code == 0
    policy = parse((place / "trust.json").read_bytes(), "trust.json")
    with reading(place / "registry") as opened:
        found, origin = opened.history(NAME), opened.head.checkpoint.origin
        for entries in (found.entries, found.entries[::-1]):
            kept = history(NAME, entries, Policy(origin, policy, opened.passport))
            assert kept.left_out == ()
            assert sorted(how.ending.how for how in kept.passports if how.ending) == ["revoked", "superseded"]


def test_without_its_file_a_passport_is_of_everybody_who_submitted_it(place: Path) -> None:  # noqa: F811
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    certkit("trust", "add", *TRUST, "--issuer", "Other", "--key", "other.pem", "-q")
    policy = parse((place / "trust.json").read_bytes(), "trust.json")
    index = forge(place / "registry", revocation(place / "registry"))
    assert ending("revoke", "registry", 1, "--reason", "key-compromise", *TRUST).code == 0
    with reading(place / "registry") as opened:
        found, origin = opened.history(NAME), opened.head.checkpoint.origin
        theirs = structs.replace(found.entries[1].found.entry, submitter=keys.key_id(STRANGER.public_key()))
        data = write(theirs, STRANGER)
        twice = (Logged(99, leaf_hash(data), read(data)), *found.entries)
        assert history(NAME, twice, Policy(origin, policy, opened.passport)).left_out == (index,)
        assert history(NAME, twice, Policy(origin, policy)).left_out == ()


def test_a_strangers_drift_is_none(place: Path) -> None:  # noqa: F811 - a fixture
    later, earlier = passport_ids(place / "registry")
    entry = Drift(passport_id=later, earlier=earlier, result="DRIFTED", rows=(), document=later)
    forge(place / "registry", entry)
    assert [row["drift"] for row in told("--json").document["passports"]] == ["DRIFTED", "DRIFTED"]
    checked = told(*TRUST, "--json").document["passports"]
    assert [row["drift"] for row in checked] == [None, "DRIFTED"]


def test_another_issuers_revocation_does_not_count_and_its_own_does(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    added = certkit("trust", "add", *TRUST, "--issuer", "Other", "--key", "other.pem", "-q")
    assert added.code == 0
    index = forge(place / "registry", revocation(place / "registry"))
    document = told(*TRUST, "--json").document
    assert [row["status"] for row in document["passports"]] == ["superseded", "current"]
    assert document["left_out"] == [index]
    assert ending("revoke", "registry", 1, "--reason", "evidence-false", *TRUST).code == 0
    assert told(*TRUST, "--json").document["passports"][1]["status"] == "revoked"
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    bare = told(*TRUST, "--json", folder="public").document
    assert [row["status"] for row in bare["passports"]] == ["superseded", "revoked"]
    assert bare["left_out"] == [index], "without its file a passport is of whoever submitted it"


def test_a_passport_of_an_unknown_issuer_does_not_count(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    policy = (place / "trust.json").read_bytes()
    certkit("trust", "add", *TRUST, "--issuer", "Other", "--key", "other.pem", "-q")
    (place / "third.json").write_bytes(issue(3, summary=clustered(999), key=STRANGER).to_json())
    assert log("third.json").code == 0
    assert len(told(*TRUST, "--json").document["passports"]) == 3
    (place / "trust.json").write_bytes(policy)
    document = told(*TRUST, "--json").document
    assert len(document["passports"]) == 2
    assert document["left_out"] == [3]


def test_a_false_signature_in_a_known_name_does_not_count(place: Path) -> None:  # noqa: F811 - a fixture
    from tests.support.lineages import KEY  # noqa: PLC0415 - one test poses as it

    forge(place / "registry", revocation(place / "registry"), pose=KEY)
    assert told().code == 5
    done = told(*TRUST, "--json")
    assert (done.code, len(done.document["left_out"])) == (5, 1)


@pytest.mark.parametrize("command", ["history", "audit"])
@pytest.mark.usefixtures("place")
def test_a_log_that_the_policy_does_not_know_is_not_trusted(command: str) -> None:
    other = certkit("registry", "init", "other", "--name", "other").out.strip()
    made = certkit(
        *("trust", "add", "--trust", "foreign.json", "--issuer", "Lab", "--key", "public.pem"),
        *("--log", other, "-q"),
    )
    assert made.code == 0
    name = () if command == "audit" else (NAME,)
    done = certkit("registry", command, "registry", *name, "--trust", "foreign.json", "--json")
    assert (done.code, done.document["error"]["code"]) == (8, "registry.untrusted-log")
    assert "certkit.lab/" in done.document["error"]["message"]


def test_entries_that_were_signed_for_another_log_do_not_count(place: Path) -> None:  # noqa: F811 - a fixture
    assert certkit("registry", "init", "other", "--name", "other", "-q").code == 0
    (place / "third.json").write_bytes(issue(3, summary=clustered(999)).to_json())
    words = ("third.json", "--key", "key.pem", *TRUST, "--at", DAY, "-q")
    assert certkit("registry", "append", "other", *words).code == 0
    assert certkit("registry", "note", "other", "x", *words[1:]).code == 0
    with reading(place / "other") as elsewhere:
        foreign = [data for _, data, _ in elsewhere.entries()]
    folder = place / "registry"
    with (
        Registry.open(folder, heads=heads_path()) as registry,
        registry.turn(load_log_key(folder / KEY_FILE)) as turn,
    ):
        registry._log.extend(foreign, turn.signer)
    document = told(*TRUST, "--json").document
    assert len(document["passports"]) == 2
    assert document["left_out"] == [3]


def test_only_the_logs_present_key_tells_how_things_stand(place: Path) -> None:  # noqa: F811 - a fixture
    shutil.copytree(place / "registry", place / "before")
    vkey = certkit("registry", "rotate-key", "registry").out.strip()
    assert certkit("trust", "add", *TRUST, "--log", vkey, "-q").code == 0
    assert told(*TRUST).code == 5
    done = told(*TRUST, "--json", folder="before")
    assert (done.code, done.document["error"]["code"]) == (8, "registry.untrusted-log")


def test_a_policy_that_asks_for_witnesses_is_obeyed(place: Path) -> None:  # noqa: F811 - a fixture
    witness = Signer("w.example", STRANGER)
    added = certkit("trust", "add", *TRUST, "--witness", witness.witness_vkey, "-q")
    assert (added.code, certkit("trust", "set", *TRUST, "--quorum", 1, "-q").code) == (0, 0)
    done = told(*TRUST, "--json")
    assert (done.code, done.document["error"]["code"]) == (7, "registry.witnesses")
    text = parse_note(certkit("registry", "checkpoint", "registry").out.encode()).text
    (place / "cosigned").write_bytes(write_note(text, [witness.cosign(text, int(THEN.timestamp()))]))
    assert certkit("registry", "cosign", "registry", "cosigned", *TRUST, "-q").code == 0
    assert told(*TRUST).code == 5


@pytest.mark.parametrize("time", [0, 2**40, 2**62])
def test_a_witness_of_no_time_or_of_one_to_come_vouches_for_nothing(place: Path, time: int) -> None:  # noqa: F811
    witness = Signer("w.example", STRANGER)
    certkit("trust", "add", *TRUST, "--witness", witness.witness_vkey, "-q")
    certkit("trust", "set", *TRUST, "--quorum", 1, "-q")
    text = parse_note(certkit("registry", "checkpoint", "registry").out.encode()).text
    line = witness.cosign(text, time).line
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        row = (4, str(witness.witness_vkey), line.encode())
        connection.execute("INSERT INTO cosignature VALUES (?, ?, ?)", row)
        connection.commit()
    assert told(*TRUST, "--json").document["error"]["code"] == "registry.witnesses"
    audit = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert audit.code == 7
    assert "registry.witnesses" in {one["code"] for one in audit.document["findings"]}
    (place / "line").write_text(witness.cosign(text, int(THEN.timestamp())).line)
    taken = certkit("registry", "cosign", "registry", "line", *TRUST)
    assert (taken.code, taken.err) == (0, "")


def test_a_lineage_of_which_nothing_counts_is_unknown(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    vkey = certkit("registry", "checkpoint", "registry", "--vkey").out.strip()
    made = ("trust", "add", "--trust", "foreign.json", "--issuer", "Other", "--key", "other.pem", "-q")
    assert certkit(*made, "--log", vkey).code == 0
    done = told("--trust", "foreign.json", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "registry.unknown")


def test_the_verifier_key_is_printed_again(place: Path) -> None:  # noqa: F811 - a fixture
    (known,) = certkit("trust", "show", *TRUST, "--json").document["policy"]["logs"]
    assert certkit("registry", "checkpoint", "registry", "--vkey").out == f"{known}\n"
    changed = certkit("registry", "rotate-key", "registry").out
    assert certkit("registry", "checkpoint", "registry", "--vkey").out == changed != f"{known}\n"
    assert certkit("registry", "checkpoint", "registry", "--json").document["vkey"] == changed.strip()
    assert place.is_dir()
