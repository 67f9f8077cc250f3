"""What somebody logged whom the policy does not know, or for another log, binds nobody else."""

from __future__ import annotations

import base64
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import InputError, MismatchError
from certkit.passport import keys, verification
from certkit.passport.trust import Trust, TrustedKey
from certkit.registry.admission import inspect
from certkit.registry.entry import PAYLOAD_TYPE, Note, UnverifiedEntry, timestamp
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.status import write
from certkit.registry.writing import note
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, log_entry
from tests.support.standings import DAY, copied, drafted, ended, offline, slip, standing, stored

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.opening import Passport
    from certkit.registry.entry import Claims

FAR = "9998-01-01T00:00:00Z"
NEWER = Ed25519PrivateKey.from_private_bytes(b"\x0b" * 32)


def said(date: str, key: PrivateKey = STRANGER, *, origin: str, named: PrivateKey | None = None) -> bytes:
    """A note of a date by a key, which may name another as its submitter."""
    data = drafted("note", "lab/other", Note(text="x"), key, issued_at=date, log=origin)
    if named is None:
        return data
    old, new_ = (keys.key_id(one.public_key()).encode() for one in (key, named))
    document = canonical.loads(data)
    payload = base64.b64decode(document["payload"]).replace(old, new_)
    return canonical.canonical(document | {"payload": base64.b64encode(payload).decode()})


def noted(folder: Path, days: int = 0, *, rules: Trust | None = None) -> int:
    with Registry.open(folder, heads=heads(folder)) as registry:
        return note(registry, None, "mine", hand=hand(days=days, rules=rules)).index


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[UnverifiedEntry]:
    """The entries whose signature was verified, as they come."""
    found: list[UnverifiedEntry] = []
    verify = UnverifiedEntry.verify

    def counting(one: UnverifiedEntry, key: PublicKey) -> None:
        found.append(one)
        verify(one, key)

    monkeypatch.setattr(UnverifiedEntry, "verify", counting)
    return found


# Dates


def test_what_nobody_trusted_signed_for_this_log_dates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    slip(
        folder,
        said(FAR, origin=vkey.name),
        said(FAR, origin=vkey.name, named=KEY),
        said(FAR, KEY, origin="certkit.other/x"),
    )
    assert log(folder, issue(1)).index == 3
    assert noted(folder) == 4
    assert ended(folder, 3) == 5


def test_no_more_signatures_are_verified_than_may_bind(
    tmp_path: Path, verified: list[UnverifiedEntry]
) -> None:
    folder = tmp_path / "r"
    new(folder)
    for number in range(20):
        noted(folder, number)
    assert verified == []
    with pytest.raises(MismatchError):
        noted(folder, 1)
    assert len(verified) == 1


def test_each_turn_goes_by_its_own_policy(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    slip(folder, said(FAR, origin=vkey.name))
    both = policy().with_issuer("Lab", TrustedKey(pem=keys.public_pem(STRANGER.public_key())))
    with Registry.open(folder, heads=heads(folder)) as registry:
        for rules, binds in ((policy(), False), (both, True), (policy(), False)):
            if binds:
                with pytest.raises(MismatchError, match=f"an entry of {FAR}"):
                    note(registry, None, "mine", hand=hand(rules=rules))
            else:
                note(registry, None, "mine", hand=hand(rules=rules))


@pytest.mark.parametrize("date", ["9999-99-99T99:99:99Z", "-" * 20, "Z9999999999999999999"])
def test_a_date_that_is_none_dates_nothing(tmp_path: Path, date: str) -> None:
    """Written as entries are, in what is no entry: for an audit, and for everybody else."""
    folder = tmp_path / "r"
    vkey = new(folder)
    plain = drafted("note", "lab/other", Note(text="x"), KEY, log=vkey.name)
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
    assert log(folder, issue(1)).index == 1
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert log_entry(registry, "x", Note(text="x"), submitter=KEY, log_key=LOG_KEY, at=NOW).index == 2
    assert {one.code for one in inspect(folder, trust=policy(vkey), at=NOW).findings} == {"registry.entry"}


def test_without_a_policy_every_date_binds_and_the_hint_says_what_helps(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    slip(folder, said(FAR, origin=vkey.name))
    with Registry.open(folder, heads=heads(folder)) as registry:
        with pytest.raises(MismatchError) as caught:
            registry.rotate(old=LOG_KEY, new=NEWER, at=NOW)
        assert (caught.value.code, "by a trust policy" in str(caught.value.hint)) == ("registry.time", True)
        assert registry.rotate(old=LOG_KEY, new=NEWER, at=NOW, trust=policy(vkey))[0].index == 1


def test_a_change_of_keys_that_holds_dates_what_comes_after(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    with Registry.open(folder, heads=heads(folder)) as registry:
        registry.rotate(old=LOG_KEY, new=NEWER, at=NOW + DAY, trust=policy(vkey))
        with pytest.raises(MismatchError, match=f"an entry of {timestamp(NOW + DAY)}"):
            log(folder, issue(1), log_key=NEWER)
    false = drafted("key", vkey.name, registry_change(folder), STRANGER, issued_at=FAR, log=vkey.name)
    slip(folder, false, log_key=NEWER)
    assert log(folder, issue(1, days=1), days=1, log_key=NEWER).index == 2


def registry_change(folder: Path) -> Claims:
    with Registry.open(folder) as registry:
        return registry.logged(0).found.claims  # type: ignore[return-value]


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
            "another lineage": lambda: copied(other, 0, STRANGER, subject="evil/decoy", log=vkey.name),
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
        assert registry.logged(2).found.entry.subject == "-/courier"
    assert standing(folder, one, trust).code == "passport.revoked"
    assert offline(status(folder, 0), one, require).code == "passport.revoked"


def status(folder: Path, index: int) -> bytes:
    return write(folder, index, key=LOG_KEY, heads=heads(folder), at=NOW)


def test_an_id_means_the_passport_that_counts(tmp_path: Path) -> None:
    """A stranger's may begin like it."""
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, one := issue(1))
    beginning = one.passport_id.removeprefix("sha256:")[:8]
    data = stored(folder, 0)
    document = canonical.loads(data)
    payload = base64.b64decode(document["payload"])
    other = beginning + "0" * 56
    payload = payload.replace(one.passport_id.encode(), f"sha256:{other}".encode())
    slip(folder, canonical.canonical(document | {"payload": base64.b64encode(payload).decode()}))
    assert ended(folder, beginning) == 2
    assert standing(folder, one, policy(vkey)).code == "passport.revoked"


# What the keeper of the log puts into it


def test_a_log_that_holds_an_entry_twice_goes_on_and_is_unsound(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([stored(folder, 0)], turn.signer)
    assert log(folder, issue(2)).index == 2
    report = inspect(folder, trust=policy(vkey), at=datetime(2027, 1, 1, tzinfo=UTC))
    assert ("registry.chain", "entry 1") in {(one.code, one.where) for one in report.findings}


def junk(folder: Path) -> None:
    """Have the keeper of the log put bytes into it that are no entry."""
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([b"no entry"], turn.signer)


def test_what_is_no_entry_is_found_and_stops_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    junk(folder)
    assert log(folder, issue(2)).index == 2
    found = [(one.code, one.where) for one in inspect(folder, trust=policy(vkey)).findings]
    assert found == [("registry.entry", "entry 1")]
    with reading(folder) as whole, pytest.raises(InputError) as caught:
        whole.listed()
    assert (caught.value.code, caught.value.where) == ("registry.entry", "entry 1")
