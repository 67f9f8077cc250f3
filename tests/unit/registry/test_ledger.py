"""A writer trusts the bytes of the entries, and by a snapshot only where it is of this log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.passport import dsse
from certkit.registry.entry import (
    PAYLOAD_TYPE,
    Claims,
    Note,
    Stored,
    read,
)
from certkit.registry.heads import Head
from certkit.registry.ledger import Ledger
from certkit.registry.registry import Registry
from tests.support import merkle
from tests.support import registries as build
from tests.support.lineages import NOW
from tests.support.notes import noted
from tests.support.registries import LOG_KEY, SUBMITTER, digest, poison

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def test_of_a_passport_that_was_logged_twice_the_first_entry_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 1)
    for _ in range(2):
        entry = made(folder)
        with build.opened(folder) as registry, registry.turn(LOG_KEY) as turn:
            turn.add(entry)
    done = build.append(folder, build.passport(1))
    assert (done.index, done.new) == (1, False)


def test_the_passport_before_it_is_that_of_the_entries(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 2)
    seen: list[bytes | None] = []

    def compare(passports: Iterable[bytes | None]) -> None:
        seen.extend(passports)

    with build.opened(folder) as registry:
        registry.append(
            build.passport(2),
            check=build.check,
            submitter=SUBMITTER,
            log_key=LOG_KEY,
            at=NOW,
            compare=compare,
        )
    assert seen == [build.passport(number) for number in range(3)]


def test_nothing_is_signed_after_an_entry_that_was_changed_in_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 5)
    for statement in ("UPDATE leaf SET entry = x'00' WHERE idx = 3", "DELETE FROM leaf WHERE idx = 3"):
        poison(folder, statement)
        with pytest.raises(MismatchError) as caught:
            build.append(folder, build.passport(400))
        assert caught.value.code == "registry.inconsistent"


def test_an_id_leads_to_its_passport_if_the_entries_are_those_that_were_signed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 3)
    with Registry.open(folder) as registry:
        assert [registry.find(digest(f"passport {number}")[:30]) for number in range(3)] == [0, 1, 2]
    poison(folder, "UPDATE leaf SET entry = x'00' WHERE idx = 1")
    with Registry.open(folder) as registry, pytest.raises(MismatchError) as caught:
        registry.find(digest("passport 1"))
    assert caught.value.code == "registry.inconsistent"


@pytest.mark.parametrize("committed", [False, True])
def test_the_file_of_a_failed_append_is_kept_where_an_entry_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    folder = tmp_path / "r"
    vkey = build.filled(folder, 1)
    calls: list[object] = []

    def fails(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) > committed:
            raise RuntimeError

    with build.opened(folder) as registry:
        registry.append(build.passport(0), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW)
        if committed:
            monkeypatch.setattr(Head, "advance", fails)
        else:
            monkeypatch.setattr(Ledger, "add", fails)
        with pytest.raises(RuntimeError):
            registry.append(
                build.passport(1), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW
            )
        monkeypatch.undo()
    found = build.audited(folder, vkey)
    assert (found.size, found.findings, found.notes) == (1 + committed, (), ())


# What is in memory, and what is not entries


def fail(registry: Registry) -> None:
    with registry.turn(LOG_KEY) as turn:
        assert turn.log("lab/agent", Note(text="never"), submitter=SUBMITTER, at=NOW).index == 1
        last = turn.known.last("lab/agent")
        assert last is not None
        assert last.index == 1
        raise ValueError("never")


@pytest.mark.parametrize("others", [0, 1, 2])
def test_what_was_never_committed_is_forgotten(tmp_path: Path, others: int) -> None:
    folder = tmp_path / "r"
    vkey = build.filled(folder, 1)
    with build.opened(folder) as registry:
        with pytest.raises(ValueError, match="never"):
            fail(registry)
        for number in range(others):
            build.append(folder, build.passport(10 + number))
        registry.append(build.passport(1), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW)
    assert (build.audited(folder, vkey).size, build.audited(folder, vkey).findings) == (2 + others, ())


def test_what_is_no_entry_has_no_place_in_a_lineage(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 1)
    payload = read(made(folder)).envelope.payload
    broken = canonical.canonical(
        dsse.sign(PAYLOAD_TYPE, payload.replace(b'"attempt":2', b'"attempt":0'), SUBMITTER)
    )
    spaced = canonical.canonical(
        dsse.sign(PAYLOAD_TYPE, payload.replace(b'"tier":1', b'"tier": 1'), SUBMITTER)
    )
    with build.opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([b"", b"{}", broken, spaced], turn.signer)
    with build.opened(folder) as registry:
        done = registry.append(
            build.passport(1), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW
        )
        previous = registry.logged(done.index).found.entry.prev
        assert (done.index, previous and previous.index) == (5, 0)


def made(folder: Path) -> bytes:
    """Return the entry of a second passport as the registry would write it."""
    with build.opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        facts = build.check(build.passport(1))
        file = Stored(sha256="0" * 64, size=1)
        return turn.draft(facts.lineage, Claims.of(facts, 2), submitter=SUBMITTER, at=build.AT, passport=file)


def test_an_entry_that_was_read_is_not_believed_when_it_has_changed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, 3)
    with build.opened(folder) as registry:
        registry.append(build.passport(0), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW)
        poison(folder, "UPDATE leaf SET entry = (SELECT entry FROM leaf WHERE idx = 0) WHERE idx = 1")
        with pytest.raises(MismatchError) as caught:
            registry.append(
                build.passport(3), check=build.check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW
            )
    assert caught.value.code == "registry.inconsistent"


def test_a_root_that_the_tree_had_is_proven_by_the_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    _, data = noted(folder, 300)
    with Registry.open(folder) as registry, registry.reading() as tree:
        for size in (1, 100, 256, 300):
            assert tree.root_at(size) == merkle.mth(data[:size])
    poison(folder, "UPDATE tile SET hashes = zeroblob(length(hashes)) WHERE level = 0 AND n = 0")
    with Registry.open(folder) as registry, registry.reading() as tree:
        with pytest.raises(MismatchError) as caught:
            tree.root_at(100)
        assert caught.value.code == "tlog.tile"
