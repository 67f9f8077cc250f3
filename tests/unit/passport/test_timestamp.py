"""RFC 3161 timestamps beside a key's signature: what they prove, and what they do not."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import envelope, timestamp
from certkit.passport import verify as verification
from tests.support import passport_parts as maker
from tests.support.certificates import statement
from tests.support.sigstore_service import Service
from tests.support.stamping import AT, INSTANCE, LATER, OTHER, ROOT
from tests.support.stamping import policy as stamping_policy
from tests.support.virtual_sigstore import b64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.trust import Trust
    from tests.support.virtual_sigstore import Json

SECOND = timedelta(seconds=1)
PAYLOAD = maker.compact(statement())
SIGNATURE = maker.signed(maker.IN_TOTO, PAYLOAD, maker.LAB)
DIGEST = hashlib.sha256(SIGNATURE).digest()
TOKEN = INSTANCE.timestamp(DIGEST)
GOOD = maker.passport(PAYLOAD)


def stamped(*tokens: bytes) -> Json:
    data = {"rfc3161Timestamps": [{"signedTimestamp": b64(token)} for token in tokens]}
    return maker.edited(lambda d: d["verificationMaterial"].update(timestampVerificationData=data), GOOD)


def policy(*arguments: Any, **window: Any) -> Trust:
    return structs.replace(stamping_policy(*arguments, **window), accept_specimens=True)


TRUST = policy(ROOT)


def verify(bundle: Json, trust: Trust = TRUST, at: datetime = LATER) -> tuple[str, int, str | None]:
    found = verification.verify(canonical.line(bundle), trust=trust, at=at)
    return (found.verdict, int(found.exit_code), found.step("validity").code)


VERIFIED = ("verified", 0, None)
UNKNOWN = ("unverifiable", 4, "passport.unavailable")


def test_a_required_timestamp_is_found_and_its_time_is_told() -> None:
    found = verification.verify(canonical.line(stamped(TOKEN)), trust=TRUST, at=LATER)
    assert found.verdict == "verified"
    assert "signed at 2026-02-01T00:03:00Z or before" in found.step("validity").detail
    assert not any(item.startswith("signing time") for item in found.not_checked)


@pytest.mark.parametrize(
    ("name", "bundle", "trust"),
    [
        ("stripped", GOOD, TRUST),
        ("by an authority of another root", stamped(OTHER.timestamp(DIGEST)), TRUST),
        ("no root to check by", stamped(TOKEN), policy(None)),
        ("the authority had ended", stamped(TOKEN), policy(INSTANCE.trusted_root(tsa=AT - SECOND))),
        ("over something else", stamped(INSTANCE.timestamp(bytes(32))), TRUST),
        ("not granted", stamped(INSTANCE.timestamp(DIGEST, status=2)), TRUST),
        ("not a token", stamped(b"token"), TRUST),
        ("empty", stamped(b""), TRUST),
        ("cut off", stamped(TOKEN[:-9]), TRUST),
        ("behind too many others", stamped(*[b"token"] * 32, TOKEN), TRUST),
    ],
)
def test_a_time_that_nobody_trusted_proves_is_a_claim(name: str, bundle: Json, trust: Trust) -> None:
    assert name
    assert verify(stamped(TOKEN)) == VERIFIED
    assert verify(bundle, trust) == UNKNOWN
    relaxed = policy(trust.trusted_root, required=False)
    found = verification.verify(canonical.line(bundle), trust=relaxed, at=LATER)
    assert found.verdict == "verified"
    assert any(item.startswith("signing time: it is the issuer's word") for item in found.not_checked)


def test_one_good_timestamp_is_enough_and_the_earliest_counts() -> None:
    later = INSTANCE.timestamp(DIGEST, AT + timedelta(hours=1))
    found = verification.verify(
        canonical.line(stamped(later, OTHER.timestamp(DIGEST), b"token", TOKEN)), trust=TRUST, at=LATER
    )
    assert found.verdict == "verified"
    assert "00:03:00Z" in found.step("validity").detail


def test_a_proven_time_replaces_the_claimed_one_in_the_window_of_the_key() -> None:
    outside = ("rejected", 6, "passport.key-window")
    until, after = "2026-02-01T00:03:00Z", "2026-02-01T00:02:59Z"
    assert verify(GOOD, policy(ROOT, required=False, not_after=after))[0] == "unverifiable"  # its own word
    assert verify(stamped(TOKEN), policy(ROOT, not_after=until)) == VERIFIED
    assert verify(stamped(TOKEN), policy(ROOT, not_after=after)) == outside
    assert verify(stamped(TOKEN), policy(ROOT, not_before="2026-02-01T00:03:01Z")) == outside


def test_no_run_is_later_than_the_proven_time_however_late_the_validity_begins() -> None:
    """The stated period ends at 00:01 of February 15th, and the issuer's word for the signing is 23:58."""
    payload = maker.compact(maker.statement(kind="late"))
    digest = hashlib.sha256(maker.signed(maker.IN_TOTO, payload, maker.LAB)).digest()
    last = datetime(2026, 2, 15, 0, 1, tzinfo=UTC)

    def found(proven: datetime) -> tuple[str, int, str | None]:
        data = {"rfc3161Timestamps": [{"signedTimestamp": b64(INSTANCE.timestamp(digest, proven))}]}
        material = maker.edited(
            lambda d: d["verificationMaterial"].update(timestampVerificationData=data),
            maker.passport(payload),
        )
        return verify(material)

    within = last - timedelta(minutes=5)  # what two clocks may differ by
    assert found(within) == VERIFIED
    assert found(within - SECOND) == ("rejected", 6, "passport.period-in-future")


def test_a_time_that_is_still_to_come_is_not_believed() -> None:
    skew = timedelta(minutes=5)
    late = stamped(INSTANCE.timestamp(DIGEST, LATER + skew))
    assert verify(late) == VERIFIED
    assert verify(late, at=LATER - SECOND) == ("rejected", 6, "passport.not-yet-valid")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Service(INSTANCE) as running:
        yield running


def test_a_timestamp_is_asked_for_and_attached(service: Service) -> None:
    payload = maker.compact(statement())
    document: Any = envelope.seal(
        payload, maker.LAB, timestamp=lambda signature: timestamp.ask(service.tsa, signature)
    )
    assert verify(document) == VERIFIED
    assert service.asked == ["/tsa"]


@pytest.mark.parametrize("other", [b"no certificate", b"version"])
def test_an_authority_that_is_no_certificate_is_the_policys_fault(other: bytes) -> None:
    root = canonical.loads(canonical.line(ROOT))
    certificates = root["timestampAuthorities"][0]["certChain"]["certificates"]
    good = base64.b64decode(certificates[0]["rawBytes"])
    version = good.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07", 1)
    certificates[0]["rawBytes"] = b64(version if other == b"version" else other)
    with pytest.raises(CertkitError, match="a timestamp authority cannot be used") as caught:
        timestamp.seen([TOKEN], SIGNATURE, root)
    assert (caught.value.code, caught.value.exit_code) == ("trust.root", 3)
    assert verify(stamped(TOKEN), policy(root)) == ("rejected", 6, "trust.root")
