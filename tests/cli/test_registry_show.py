"""What commands that read a registry show and refuse: signatures, entries of strangers, odd words."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from certkit.cli.context import heads_path
from certkit.passport import keys
from certkit.registry.entry import Revocation
from certkit.registry.reader import reading
from certkit.registry.writer import Registry, load_log_key
from certkit.tlog.note import Signature, parse_note, write_note
from tests.support.lineages import clustered, issue
from tests.support.registries import log_entry
from tests.support.running import Done, certkit, edit
from tests.support.signers import Signer
from tests.support.two_passports import (  # noqa: F401 - a fixture
    DAY,
    NAME,
    STRANGER,
    TRUST,
    checkpoint,
    ending,
    log,
    log_key,
    narrow,
    passport_ids,
    place,
)

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey

THEN = datetime(2026, 3, 2, tzinfo=UTC)

READING = (
    ("show", "{}"),
    ("show", "{}", "0"),
    ("show", "{}", NAME),
    ("prove", "{}", "0"),
)


def told(*more: object, folder: str = "registry") -> Done:
    return certkit("registry", "show", folder, NAME, "--at", DAY, *more)


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
            patch.setattr("certkit.registry.writer.keys.key_id", lambda _key: name)
        with Registry.open(folder, heads=folder.parent / "heads.db") as registry:
            done = log_entry(
                registry,
                *(f"-/{NAME}", claims),
                submitter=submitter,
                log_key=load_log_key(log_key(folder)),
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
    assert certkit(*line).code == 0
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


def test_what_is_shown_are_the_entries_that_were_signed(place: Path) -> None:  # noqa: F811 - a fixture
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    here, there = (certkit("registry", "show", folder) for folder in ("registry", "public"))
    assert (here.code, there.code) == (0, 0)
    assert here.out.splitlines()[3:] == there.out.splitlines()[4:]
    assert "2 entries" in narrow(here)
    assert "the checkpoint's signature is not checked" in there.out
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        connection.execute("UPDATE leaf SET entry = (SELECT entry FROM leaf WHERE idx = 0) WHERE idx = 1")
        connection.commit()
    done = certkit("registry", "show", "registry", "--json")
    assert (done.code, done.document["error"]["code"]) == (7, "registry.inconsistent")


def test_a_history_is_a_table_of_facts_over_time(place: Path) -> None:  # noqa: F811 - a fixture
    text = narrow(told())
    ids = passport_ids(place / "registry")
    assert f"against {ids[0][7:19]}: DRIFTED; " in text
    assert f"superseded by entry 1 by passport {ids[1][7:19]}" in text
    document = told("--json").document
    assert [row["status"] for row in document["history"]] == ["superseded", "current"]
    assert [row["drift"] and row["drift"]["result"] for row in document["history"]] == [None, "DRIFTED"]
    (line,) = [line for line in text.splitlines() if ids[1][7:19] in line and line.startswith("    1")]
    limit = document["history"][1]["limit"]
    assert line.split()[5:7] == [f"{limit['value']:.4f}", str(limit["k"])]
    assert line.split()[-2:] == ["2", "current"]
    late = told("--json", "--at", "2027-01-01").document
    assert [row["status"] for row in late["history"]] == ["superseded", "expired"]
    early = told("--json", "--at", "2020-01-01").document
    assert [row["status"] for row in early["history"]] == ["superseded", "upcoming"]


def test_a_revocation_is_on_every_screen_and_in_every_document(place: Path) -> None:  # noqa: F811 - a fixture
    latest = passport_ids(place / "registry")[-1]
    said = ending("revoke", "registry", latest[7:19], "--reason", "key-compromise")
    assert said.out == f"{latest[7:19]} revoked, by entry 2\n", "12 digits name it"
    assert "revoked        -/courier" in narrow(certkit("registry", "show", "registry", "--at", DAY))
    for name in (latest[7:19], "1"):
        words = ("registry", "show", "registry", name, "--at", DAY)
        assert "\nrevoked by entry 2: key-compromise\n" in narrow(certkit(*words))
        rows = certkit(*words, "--json").document["entries"]
        assert [(row["index"], row["type"], row["status"], row["reason"]) for row in rows] == [
            (1, "passport", "revoked", "key-compromise"),
            (2, "revoke", None, None),
        ]
    assert "revoked by entry 2: key-compromise" in narrow(told())
    assert told("--json").document["history"][1]["ended"]["reason"] == "key-compromise"
    show = ("show", "second.json", "--trust", "trust.json", "--registry", "registry", "--at", DAY)
    screen = narrow(certkit(*show))
    assert "revoked by entry 2" in screen
    steps = certkit(*show, "--json").document["verification"]["steps"]
    assert {step["id"]: step["code"] for step in steps}["status"] == "passport.revoked"


@pytest.mark.usefixtures("place")
def test_what_expires_soon_is_listed() -> None:
    def soon(days: str) -> list[int]:
        done = certkit("registry", "show", "registry", "--expiring", days, "--at", DAY, "--json")
        return [row["index"] for row in done.document["entries"]]

    assert (soon("90"), soon("90d"), soon("30")) == ([1], [1], []), "the first was superseded"
    for wrong in ("0", "-3", "P30D"):
        assert certkit("registry", "show", "registry", "--expiring", wrong).code == 2


@pytest.mark.usefixtures("place")
def test_what_an_entry_shows_of_the_one_before_it_is_called_so() -> None:
    lines = narrow(certkit("registry", "show", "registry", 1)).splitlines()
    labels = [line[:15].strip() for line in lines[5:] if not line.startswith(" ")]
    assert len(labels) == len(set(labels))
    assert {"index", "leaf", "file size", "prev index"} <= set(labels)


def test_what_is_told_says_first_whether_signatures_were_checked(place: Path) -> None:  # noqa: F811
    text = told().out
    assert "signatures not checked (--trust FILE checks them)\n" in "".join(text.partition("\n\n")[:2])
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
    assert [row["status"] for row in believed["history"]] == ["superseded", "revoked"]
    checked = told(*TRUST, "--json").document
    assert [row["status"] for row in checked["history"]] == ["superseded", "current"]
    assert checked["left_out"] == [index]
    assert f"; entries that do not count: {index}\n" in told(*TRUST).out
    forge(place / "registry", revocation(place / "registry"))
    assert f"; entries that do not count: {index}, {index + 1}\n" in told(*TRUST).out


def test_another_issuers_revocation_does_not_count_and_its_own_does(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    added = certkit("trust", "add", *TRUST, "--issuer", "Other", "--key", "other.pem", "-q")
    assert added.code == 0
    index = forge(place / "registry", revocation(place / "registry"))
    document = told(*TRUST, "--json").document
    assert [row["status"] for row in document["history"]] == ["superseded", "current"]
    assert document["left_out"] == [index]
    assert ending("revoke", "registry", 1, "--reason", "evidence-false", *TRUST).code == 0
    assert told(*TRUST, "--json").document["history"][1]["status"] == "revoked"
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    bare = told(*TRUST, "--json", folder="public").document
    assert [row["status"] for row in bare["history"]] == ["superseded", "revoked"]
    assert bare["left_out"] == [index], "without its file a passport is of whoever submitted it"


def test_a_passport_of_an_unknown_issuer_does_not_count(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "other.pem").write_text(keys.public_pem(STRANGER.public_key()))
    policy = (place / "trust.json").read_bytes()
    certkit("trust", "add", *TRUST, "--issuer", "Other", "--key", "other.pem", "-q")
    (place / "third.json").write_bytes(issue(3, summary=clustered(999), key=STRANGER).to_json())
    assert log("third.json").code == 0
    assert len(told(*TRUST, "--json").document["history"]) == 3
    (place / "trust.json").write_bytes(policy)
    document = told(*TRUST, "--json").document
    assert len(document["history"]) == 2
    assert document["left_out"] == [2]


def test_a_false_signature_in_a_known_name_does_not_count(place: Path) -> None:  # noqa: F811 - a fixture
    from tests.support.lineages import KEY  # noqa: PLC0415 - one test poses as it

    forge(place / "registry", revocation(place / "registry"), pose=KEY)
    assert [row["status"] for row in told("--json").document["history"]] == ["superseded", "revoked"]
    assert len(told(*TRUST, "--json").document["left_out"]) == 1


@pytest.mark.parametrize("command", ["show", "audit"])
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
    with reading(place / "other") as elsewhere:
        foreign = [data for _, data, _ in elsewhere.entries()]
    folder = place / "registry"
    with (
        Registry.open(folder, heads=heads_path()) as registry,
        registry.turn(load_log_key(log_key(folder))) as turn,
    ):
        registry._log.extend(foreign, turn.signer)
        turn.index.rebuild()
    document = told(*TRUST, "--json").document
    assert len(document["history"]) == 2
    assert document["left_out"] == [2]


def test_only_the_logs_present_key_tells_how_things_stand(place: Path) -> None:  # noqa: F811 - a fixture
    shutil.copytree(place / "registry", place / "before")
    vkey = certkit("registry", "rotate-key", "registry").out.strip()
    assert certkit("trust", "add", *TRUST, "--log", vkey, "-q").code == 0
    assert told(*TRUST).code == 0
    done = told(*TRUST, "--json", folder="before")
    assert (done.code, done.document["error"]["code"]) == (8, "registry.untrusted-log")


def test_a_policy_that_asks_for_witnesses_is_obeyed(place: Path) -> None:  # noqa: F811 - a fixture
    witness = Signer("w.example", STRANGER)
    added = certkit("trust", "add", *TRUST, "--witness", witness.witness_vkey, "-q")
    assert added.code == 0
    edit(place / "trust.json", witnesses={"k": 1, "keys": [str(witness.witness_vkey)]})
    done = told(*TRUST, "--json")
    assert (done.code, done.document["error"]["code"]) == (7, "registry.witnesses")
    text = parse_note(checkpoint(place / "registry")).text
    (place / "cosigned").write_bytes(write_note(text, [witness.cosign(text, int(THEN.timestamp()))]))
    assert certkit("registry", "cosign", "registry", "cosigned", *TRUST, "-q").code == 0
    assert told(*TRUST).code == 0


@pytest.mark.parametrize("time", [0, 2**40, 2**62])
def test_a_witness_of_no_time_or_of_one_to_come_vouches_for_nothing(place: Path, time: int) -> None:  # noqa: F811
    witness = Signer("w.example", STRANGER)
    edit(place / "trust.json", witnesses={"k": 1, "keys": [str(witness.witness_vkey)]})
    text = parse_note(checkpoint(place / "registry")).text
    line = witness.cosign(text, time).line
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection:
        row = (2, str(witness.witness_vkey), line.encode())
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
    vkey = certkit("registry", "show", "registry", "--json").document["vkey"]
    made = ("trust", "add", "--trust", "foreign.json", "--issuer", "Other", "--key", "other.pem", "-q")
    assert certkit(*made, "--log", vkey).code == 0
    done = told("--trust", "foreign.json", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "registry.unknown")


def test_the_verifier_key_is_printed_again(place: Path) -> None:  # noqa: F811 - a fixture
    (known,) = certkit("trust", "show", *TRUST, "--json").document["policy"]["logs"]
    assert certkit("registry", "show", "registry").err == f"hint: the log's verifier key: {known}\n"
    changed = certkit("registry", "rotate-key", "registry").out.strip()
    assert certkit("registry", "show", "registry", "--json").document["vkey"] == changed != known
    assert place.is_dir()


def test_a_passport_that_shows_no_loss_is_compared_with_the_one_before(place: Path) -> None:  # noqa: F811
    (place / "third.json").write_bytes(issue(3, summary=clustered(900)).to_json())
    assert log("third.json").code == 0
    rows = told("--json").document["history"]
    assert [row["drift"] and row["drift"]["result"] for row in rows][:2] == [None, "DRIFTED"]
    assert rows[2]["drift"]["result"] != "DRIFTED"
    assert ending("revoke", "registry", "1", "--replaced-by", "2").code == 0
    _, second, third = (passport_id[7:19] for passport_id in passport_ids(place / "registry"))
    assert narrow(told()).splitlines()[-1].endswith(f" supersede {second} by {third}")


def test_a_lineage_without_a_provider_is_named_behind_two_dashes(place: Path) -> None:  # noqa: F811
    assert place.exists()
    done = certkit("registry", "show", "registry", f"-/{NAME}", "--at", DAY)
    assert done.code == 2
    hint = f"hint: a name that begins with - comes last, after --: certkit registry show … -- -/{NAME}\n"
    assert hint in done.err
    assert certkit("registry", "show", "registry", "--at", DAY, "--", f"-/{NAME}").out == told().out
