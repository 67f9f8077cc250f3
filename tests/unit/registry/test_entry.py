"""What an entry of each type may claim, and how large it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.registry.entry import CLAIMS, HARD_LIMIT, LIMIT, PAYLOAD_TYPE, Entry, Type, read, readable, write
from certkit.tlog import tiles
from tests.support.registries import SUBMITTER, digest

if TYPE_CHECKING:
    from collections.abc import Callable

ONE, OTHER = digest("one"), digest("other")
CLAIMED: dict[str, dict[str, Any]] = {
    "supersede": {"passport_id": ONE, "by": OTHER},
    "revoke": {"passport_id": ONE, "reason": "key-compromise", "detail": None},
    "key": {"old": "a+00000000+AA==", "new": "b+00000000+AA=="},
    "plan": {"plan": ONE, "lineage": "lab/agent"},
}


def made(kind: str, claims: dict[str, Any], **more: Any) -> bytes:
    entry: dict[str, Any] = {
        "v": 1,
        "type": kind,
        "subject": "lab/agent",
        "passport": None,
        "claims": claims,
        "prev": None,
        "issued_at": "2026-03-01T00:00:00Z",
        "submitter": keys.key_id(SUBMITTER.public_key()),
        "log": "certkit.test/y",
    } | more
    return canonical.canonical(dsse.sign(PAYLOAD_TYPE, canonical.canonical(entry), SUBMITTER))


def refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read(data)
    assert caught.value.code == "registry.entry"


def test_every_type_has_claims() -> None:
    assert set(CLAIMS) == set(get_args(Type)) == {"passport", *CLAIMED}


@pytest.mark.parametrize("kind", CLAIMED)
def test_the_claims_of_a_type(kind: str) -> None:
    claims = CLAIMED[kind]
    found = read(made(kind, claims))
    assert (found.body.type, found.body.claims) == (kind, claims)
    assert isinstance(found.claims, CLAIMS[found.body.type])
    assert found.passport is None
    assert found.passport_id == claims.get("passport_id")
    for other in CLAIMED:
        if other != kind:
            refused(made(other, claims))
    refused(made(kind, claims | {"more": 1}))
    refused(made(kind, {}))
    for name, value in claims.items():
        if value is not None:
            refused(made(kind, {key: kept for key, kept in claims.items() if key != name}))
            refused(made(kind, claims | {name: None}))
        refused(made(kind, claims | {name: ""}))
        refused(made(kind, claims | {name: 1}))


def test_reasons_are_a_closed_list() -> None:
    refused(made("revoke", CLAIMED["revoke"] | {"reason": "displeasure"}))


def test_a_plan_is_of_the_lineage_that_its_entry_is_about() -> None:
    refused(made("plan", CLAIMED["plan"], subject="lab/other"))


def test_only_the_entry_of_a_passport_names_a_file() -> None:
    stored = {"sha256": "0" * 64, "size": 1}
    for kind, claims in CLAIMED.items():
        refused(made(kind, claims, passport=stored))


def test_an_entry_that_is_read_fits_into_a_bundle() -> None:
    assert tiles.MAX_ENTRY == HARD_LIMIT == 65_535
    data = made("plan", CLAIMED["plan"])
    refused(data + b" " * (HARD_LIMIT - len(data) + 1))


def test_an_entry_is_written_up_to_the_limit() -> None:
    def entry(length: int) -> Entry:
        return Entry(
            type="revoke",
            subject="s",
            passport=None,
            claims=CLAIMED["revoke"] | {"detail": "x" * 2000, "more": "y" * length},
            prev=None,
            issued_at="2026-03-01T00:00:00Z",
            submitter=ONE,
            log="certkit.test/x",
        )

    def size(length: int) -> int:
        payload = canonical.canonical(msgspec.to_builtins(entry(length)))
        return len(canonical.canonical(dsse.sign(PAYLOAD_TYPE, payload, SUBMITTER)))

    fitting = max(length for length in range(1024) if size(length) <= LIMIT)
    assert size(fitting) >= LIMIT - 3
    for length, message in ((fitting, "unknown field"), (fitting + 1, "limit 4,096")):
        with pytest.raises(InputError, match=message) as caught:
            write(entry(length), SUBMITTER)
        assert caught.value.code == "registry.entry"


def sealed(payload: bytes, change: Callable[[bytes], bytes] = bytes) -> bytes:
    return change(canonical.canonical(dsse.sign(PAYLOAD_TYPE, payload, SUBMITTER)))


def test_bytes_that_are_not_canonical_are_no_entry() -> None:
    payload = read(made("revoke", CLAIMED["revoke"] | {"detail": "x" * 40})).envelope.payload
    members = [canonical.canonical({name: one})[1:-1] for name, one in canonical.loads(payload).items()]
    ways = {
        "an escape": sealed(payload.replace(b'"passport_id":"s', b'"passport_id":"\\u0073')),
        "other places": sealed(b"{%b}" % b",".join(reversed(members))),
        "spaces": sealed(payload.replace(b'":', b'": ')),
        "spaces around": sealed(payload, lambda data: data.replace(b'":', b'": ')),
        "an escape around": sealed(payload, lambda data: data.replace(b'"payload"', b'"pa\\u0079load"')),
        "a key id": sealed(payload, lambda data: data.replace(b'{"sig"', b'{"keyid":"","sig"')),
    }
    for name, data in ways.items():
        assert readable(data) is None, name
    for data in (b"", b"{}", sealed(b""), sealed(payload[:-1]), sealed(payload.replace(b'"v":1', b'"v":2'))):
        refused(data)


def test_a_time_that_there_is_not_is_refused() -> None:
    for time in ("2026-02-30T00:00:00", "2026-03-01T24:61:00", "2026-03-01T00:00:61", "0000-01-01T00:00:00"):
        refused(made("plan", CLAIMED["plan"], issued_at=f"{time}Z"))
