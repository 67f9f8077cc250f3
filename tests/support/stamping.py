"""Passports with RFC 3161 timestamps."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from certkit.ground import canonical
from certkit.passport.trust import Trust
from certkit.passport.trust import parse as parse_trust
from tests.support import passport_parts as maker
from tests.support.virtual_sigstore import Sigstore, b64

if TYPE_CHECKING:
    from tests.support.virtual_sigstore import Json


STARTS = datetime(2026, 2, 1, tzinfo=UTC)  # the beginning of the validity that the maker writes
AT = STARTS + timedelta(minutes=3)
LATER = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSTANCE = Sigstore.new(AT)
OTHER = Sigstore.new(AT)
GOOD = maker.good()
SIGNATURE = maker.signed(maker.IN_TOTO, maker.compact(maker.statement()), maker.LAB)
DIGEST = hashlib.sha256(SIGNATURE).digest()
TOKEN = INSTANCE.timestamp(DIGEST)


def stamped(*tokens: bytes) -> Json:
    data = {"rfc3161Timestamps": [{"signedTimestamp": b64(token)} for token in tokens]}
    return {
        **GOOD,
        "verificationMaterial": {**GOOD["verificationMaterial"], "timestampVerificationData": data},
    }


def policy(root: Json | None, *, required: bool = True, **window: str) -> Trust:
    key = {"pem": maker.pem(maker.LAB), **window}
    document = {
        "schema": "urn:certkit:trust:v1",
        "issuers": [{"name": "Lab", "keys": [key]}],
        "require": ["timestamp"] if required else [],
        "trusted_root": root,
    }
    return parse_trust(canonical.line(document), "trust.json")


ROOT = INSTANCE.trusted_root()
