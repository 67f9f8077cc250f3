"""RFC 3161 timestamps beside a key's signature: what they prove, and what they do not."""

from __future__ import annotations

import base64
import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import sealed, timestamp, verification
from tests.support import passport_parts as maker
from tests.support.sigstore_service import Service
from tests.support.stamping import (
    AT,
    DIGEST,
    GOOD,
    INSTANCE,
    LATER,
    OTHER,
    ROOT,
    SIGNATURE,
    TOKEN,
    policy,
    stamped,
)
from tests.support.virtual_sigstore import b64

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.passport.trust import Trust
    from tests.support.virtual_sigstore import Json

SECOND = timedelta(seconds=1)


TRUST = policy(ROOT)


def verify(bundle: Json, trust: Trust = TRUST, at: datetime = LATER) -> tuple[str, int, str | None]:
    found = verification.verify(canonical.line(bundle), trust=trust, at=at)
    return (found.verdict, int(found.exit_code), found.steps[5].code)


VERIFIED = ("verified", 0, None)
UNKNOWN = ("unverifiable", 4, "passport.unavailable")


def test_a_required_timestamp_is_found_and_its_time_is_told() -> None:
    found = verification.verify(canonical.line(stamped(TOKEN)), trust=TRUST, at=LATER)
    assert found.verdict == "verified"
    assert "signed at 2026-02-01T00:03:00Z or before" in found.steps[5].detail
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


def test_every_changed_byte_of_a_token_makes_it_count_for_nothing_or_leaves_the_time() -> None:
    # What is not signed (the status' padding, the certificates' order) may change; the time may not.
    told = set()
    for place in range(len(TOKEN)):
        changed = bytearray(TOKEN)
        changed[place] ^= 1
        told.add(timestamp.seen([bytes(changed)], SIGNATURE, ROOT))
    assert told == {(AT,), ()}


def test_one_good_timestamp_is_enough_and_the_earliest_counts() -> None:
    later = INSTANCE.timestamp(DIGEST, AT + timedelta(hours=1))
    found = verification.verify(
        canonical.line(stamped(later, OTHER.timestamp(DIGEST), b"token", TOKEN)), trust=TRUST, at=LATER
    )
    assert found.verdict == "verified"
    assert "00:03:00Z" in found.steps[5].detail


def test_a_proven_time_replaces_the_claimed_one_in_the_window_of_the_key() -> None:
    outside = ("rejected", 6, "passport.key-window")
    until, after = "2026-02-01T00:03:00Z", "2026-02-01T00:02:59Z"
    assert verify(GOOD, policy(ROOT, required=False, not_after=after))[0] == "unverifiable"  # its own word
    assert verify(stamped(TOKEN), policy(ROOT, not_after=until)) == VERIFIED
    assert verify(stamped(TOKEN), policy(ROOT, not_after=after)) == outside
    assert verify(stamped(TOKEN), policy(ROOT, not_before="2026-02-01T00:03:01Z")) == outside


def test_a_time_that_is_still_to_come_is_not_believed() -> None:
    skew = timedelta(minutes=5)
    late = stamped(INSTANCE.timestamp(DIGEST, LATER + skew))
    assert verify(late) == VERIFIED
    assert verify(late, at=LATER - SECOND) == ("rejected", 6, "passport.not-yet-valid")


def test_a_key_based_passport_loads_the_timestamp_library_only_with_a_timestamp(tmp_path: Path) -> None:
    program = """
import sys
from datetime import datetime
from pathlib import Path
from certkit.passport.trust import parse
from certkit.passport.verification import verify
trust = parse(Path("trust.json").read_bytes(), "trust.json")
found = verify(Path(sys.argv[1]).read_bytes(), trust=trust, at=datetime.fromisoformat(sys.argv[2]))
print(found.verdict, *sorted({"sigstore", "rfc3161_client", "pydantic", "requests"} & sys.modules.keys()))
"""
    (tmp_path / "trust.json").write_bytes(policy(ROOT, required=False).to_json())
    for name, document, loaded in (("plain", GOOD, []), ("stamped", stamped(TOKEN), ["rfc3161_client"])):
        (tmp_path / name).write_bytes(canonical.line(document))
        done = subprocess.run(
            [sys.executable, "-c", program, name, str(LATER)],
            cwd=tmp_path,
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout.split() == ["verified", *loaded]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Service(INSTANCE) as running:
        yield running


def test_a_timestamp_is_asked_for_and_attached(service: Service) -> None:
    payload = maker.compact(maker.statement())
    document: Any = sealed.seal(
        payload, maker.LAB, timestamp=lambda signature: timestamp.ask(service.tsa, signature)
    )
    assert verify(document) == VERIFIED
    assert service.asked == ["/tsa"]


@pytest.mark.parametrize("spoilt", ["broken", "digest", "large"])
def test_an_answer_that_is_no_timestamp_of_this_signature_is_told(service: Service, spoilt: str) -> None:
    service.spoilt = spoilt
    with pytest.raises(CertkitError) as caught:
        timestamp.ask(service.tsa, SIGNATURE)
    assert (caught.value.code, caught.value.exit_code) == ("timestamp.failed", 4)


def test_only_the_web_is_asked() -> None:
    for url in ("file:///etc/hostname", "ftp://127.0.0.1/", "tsa.example.com"):
        with pytest.raises(CertkitError) as caught:
            timestamp.ask(url, SIGNATURE)
        assert caught.value.code == "usage.option"


def test_an_authority_that_nobody_can_reach_is_told() -> None:
    with Service(INSTANCE) as gone:
        url = gone.tsa
    with pytest.raises(CertkitError) as caught:
        timestamp.ask(url, SIGNATURE)
    assert caught.value.code == "timestamp.failed"


def test_a_certificate_in_a_token_that_is_none_makes_the_token_count_for_nobody() -> None:
    version, none = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07"
    assert TOKEN.count(version) == 1
    assert timestamp.seen([TOKEN], SIGNATURE, ROOT) == (AT,)
    assert timestamp.seen([TOKEN.replace(version, none)], SIGNATURE, ROOT) == ()


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
