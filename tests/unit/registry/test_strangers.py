"""What somebody logged whom the policy does not know, or for another log, binds nobody else."""

from __future__ import annotations

import base64
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import InputError, MismatchError
from certkit.passport import keys
from certkit.passport import verify as verification
from certkit.passport.trust import TrustedIssuer, TrustedKey
from certkit.registry.audit import inspect
from certkit.registry.entry import PAYLOAD_TYPE, read, timestamp
from certkit.registry.reader import reading
from certkit.registry.status import write
from certkit.registry.writer import Registry, revoke, supersede
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, log_entry, notice
from tests.support.standings import DAY, copied, drafted, ended, offline, slip, standing, stored

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.passport import Passport
    from certkit.passport.trust import Trust
    from certkit.tlog.note import VerifierKey


@pytest.mark.parametrize("date", ["9999-99-99T99:99:99Z", "-" * 20, "Z9999999999999999999"])
def test_a_date_that_is_none_dates_nothing(tmp_path: Path, date: str) -> None:
    """Written as entries are, in what is no entry: for an audit, and for everybody else."""
    folder = tmp_path / "r"
    vkey = new(folder)
    plain = drafted("plan", "lab/other", notice("x"), KEY, log=vkey.name)
    payload = base64.b64decode(canonical.loads(plain)["payload"])
    payload = payload.replace(timestamp(NOW + DAY).encode(), date.encode())
    junk = canonical.canonical(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": "AAAA"}],
        }
    )
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([junk], turn.signer)
        turn.index.rebuild()
    assert log(folder, issue(1)).index == 1
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert log_entry(registry, "x", notice("x"), submitter=KEY, log_key=LOG_KEY, at=NOW).index == 2
    assert {one.code for one in inspect(folder, trust=policy(vkey), at=NOW).findings} == {"registry.entry"}


# Which entry is a passport's own


def decoyed(folder: Path, how: str) -> tuple[Trust, Passport]:
    """A log whose first entry logs a passport as no verifier believes it."""
    one = issue(1)
    if how == "replayed":
        other = folder.with_name("other")
        Registry.init(other, "other", LOG_KEY, at=NOW)
        log(other, one)
        entry = stored(other, 0)
    else:
        other = folder.with_name("copy")
        vkey = new(other)
        log(other, one)
        entry = {
            "another lineage": lambda: copied(
                other, 0, STRANGER, subject="evil/decoy", issued_at=timestamp(NOW), log=vkey.name
            ),
            "the lineage": lambda: copied(other, 0, STRANGER, issued_at=timestamp(NOW), log=vkey.name),
            "another log": lambda: copied(other, 0, KEY, issued_at=timestamp(NOW), log="certkit.x/y"),
        }[how]()
    vkey = new(folder)
    shutil.copytree(other / "blobs", folder / "blobs", dirs_exist_ok=True)
    slip(folder, entry)
    return policy(vkey), one


HOW = ("another lineage", "the lineage", "another log", "replayed")


@pytest.mark.parametrize("how", HOW)
def test_a_passport_is_logged_whatever_else_says_that_it_is(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "r"
    trust, one = decoyed(folder, how)
    done = log(folder, one)
    assert (done.index, done.new) == (1, True)
    assert (log(folder, one).index, log(folder, one).new) == (1, False)
    verdict = verification.verify(
        one.to_json(),
        trust=structs.replace(trust, require=("registry",)),
        at=NOW + DAY,
        proof=done.proof.to_bytes(),
    )
    assert verdict.verdict == "verified"
    assert standing(folder, one, trust).status == "passed"


@pytest.mark.parametrize("how", HOW)
def test_its_status_and_its_end_are_those_of_its_own_entry(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "r"
    trust, one = decoyed(folder, how)
    log(folder, one)
    require = structs.replace(trust, require=("status",))
    assert offline(status(folder, 0), one, require).status == "passed"
    for ident in ("0", "1", one.passport_id):
        assert ended(folder, ident) == 2
    with Registry.open(folder) as registry:
        assert registry.logged(2).entry.body.subject == "-/courier"
    assert standing(folder, one, trust).code == "passport.revoked"
    assert offline(status(folder, 0), one, require).code == "passport.revoked"


def status(folder: Path, index: int) -> bytes:
    return write(folder, index, key=LOG_KEY, heads=heads(folder), at=NOW)


# What the keeper of the log puts into it


def test_a_log_that_holds_an_entry_twice_goes_on_and_is_unsound(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([stored(folder, 0)], turn.signer)
        turn.index.rebuild()
    assert log(folder, issue(2)).index == 2
    report = inspect(folder, trust=policy(vkey), at=datetime(2027, 1, 1, tzinfo=UTC))
    assert ("registry.chain", "entry 1") in {(one.code, one.where) for one in report.findings}


def junk(folder: Path) -> None:
    """Have the keeper of the log put bytes into it that are no entry."""
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([b"no entry"], turn.signer)
        turn.index.rebuild()


def test_what_is_no_entry_is_found_and_stops_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    junk(folder)
    assert log(folder, issue(2)).index == 2
    found = [(one.code, one.where) for one in inspect(folder, trust=policy(vkey)).findings]
    assert found == [("registry.entry", "entry 1")]
    with reading(folder) as whole, pytest.raises(InputError) as caught:
        list(whole.logged())
    assert (caught.value.code, caught.value.where) == ("registry.entry", "entry 1")


# Another issuer whom the policy knows as well

RIVAL = keys.generate("ed25519")


def both(vkey: VerifierKey) -> Trust:
    """A policy that trusts two issuers."""
    pem = keys.public_pem(RIVAL.public_key())
    rival = TrustedIssuer(name="Rival Lab", keys=(TrustedKey(pem=pem),))
    trusted = policy(vkey)
    return structs.replace(trusted, issuers=(*trusted.issuers, rival))


def test_an_issuer_who_logs_anothers_passport_does_not_end_it_by_that(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust, first = both(new(folder)), issue(1)
    log(folder, first, trust=trust, submitter=RIVAL)
    log(folder, issue(2, key=RIVAL, supersedes=first.passport_id), trust=trust, submitter=RIVAL)
    status = write(folder, 0, key=LOG_KEY, heads=heads(folder), at=NOW)
    assert offline(status, first, trust).status == "passed"
    assert standing(folder, first, trust).status == "passed"
    shutil.rmtree(folder / "blobs")  # a published tree has no files
    assert standing(folder, first, trust).status == "passed"


def test_what_an_entry_claims_beyond_its_passport_ends_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust, first, second = both(new(folder)), issue(1), issue(2)
    log(folder, first, trust=trust)
    log(folder, second, trust=trust)
    entry = read(stored(folder, 1))
    assert entry.passport is not None
    claims = structs.replace(entry.passport, supersedes=first.passport_id)
    subject = entry.body.subject
    slip(folder, drafted("passport", subject, claims, RIVAL, passport=entry.body.passport))
    assert standing(folder, first, trust).status == "passed"


def test_what_another_issuer_logs_in_between_keeps_nobody_from_superseding_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust, first = both(vkey), issue(1)
    log(folder, first, trust=trust)
    log(folder, issue(2, key=RIVAL), trust=trust, submitter=RIVAL)
    second = issue(3, supersedes=first.passport_id)
    assert log(folder, second, trust=trust, submitter=RIVAL).index == 2, "whoever submits it"
    assert inspect(folder, trust=trust, at=NOW).findings == ()
    with pytest.raises(MismatchError) as caught:
        log(folder, issue(4, supersedes=first.passport_id), trust=trust)
    assert caught.value.code == "registry.supersedes"
    assert second.passport_id in caught.value.message, "the issuer's own latest is still asked for"


def test_an_audit_finds_a_passport_that_passes_over_its_issuers_latest(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust, first = both(vkey), issue(1)
    for passport in (first, issue(2), issue(3, supersedes=first.passport_id)):
        # A writer that does not look.
        with mock.patch("certkit.registry.writer.Turn.latest", return_value=first.passport_id):
            log(folder, passport, trust=trust)
    found = [(item.code, item.where) for item in inspect(folder, trust=trust, at=NOW).findings]
    assert found == [("registry.chain", "entry 2")]


def test_evidence_that_another_issuer_revoked_as_false_bars_only_that_issuer(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = both(vkey)
    log(folder, issue(1, key=RIVAL), trust=trust, submitter=RIVAL)
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "0", reason="evidence-false", detail=None, hand=hand(submitter=RIVAL, rules=trust))
    assert log(folder, issue(1), trust=trust).index == 2
    assert inspect(folder, trust=trust, at=NOW).findings == ()
    with pytest.raises(MismatchError) as caught:
        log(folder, issue(1, key=RIVAL, days=1), trust=trust, submitter=RIVAL, days=1)
    assert caught.value.code == "registry.evidence-false"


def test_a_passport_that_is_superseded_by_an_entry_gives_way_to_its_issuers_latest(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = both(new(folder))
    for passport, key in ((issue(1), KEY), (issue(2), KEY), (issue(3), KEY), (issue(4, key=RIVAL), RIVAL)):
        log(folder, passport, trust=trust, submitter=key)
    with Registry.open(folder, heads=heads(folder)) as registry:
        with pytest.raises(MismatchError):
            supersede(registry, "0", by="1", hand=hand(rules=trust))
        assert supersede(registry, "0", by="2", hand=hand(rules=trust)).entry.index == 4
