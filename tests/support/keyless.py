"""Passports signed without a key: good, and altered in what certificate or log say."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec

from tests.support import passport_parts as maker
from tests.support.virtual_sigstore import Sigstore, b64, compact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.virtual_sigstore import Json, Signer


AT = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
SIGNED = AT + timedelta(minutes=1)
SECOND = timedelta(seconds=1)
WHO, WHERE = "a@example.com", "https://accounts.example.com"
INSTANCE = Sigstore.new(AT)
OTHER = Sigstore.new(AT)
SIGNER = INSTANCE.signer(WHO, WHERE)


def signed(signer: Signer = SIGNER, **changes: Any) -> Json:
    return signer.attest(compact(maker.statement(signer.key, **changes)))


GOOD = signed()


def edited(change: Callable[[Json], object], base: Json = GOOD) -> Json:
    document = copy.deepcopy(base)
    change(document)
    return document


def material(**changes: Any) -> Json:
    return edited(lambda d: d["verificationMaterial"].update(changes))


def proof(**changes: Any) -> Json:
    return edited(lambda d: d["verificationMaterial"]["tlogEntries"][0]["inclusionProof"].update(changes))


GOOD_PROOF = GOOD["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]
CHECKPOINT = GOOD_PROOF["checkpoint"]["envelope"]
FLIPPED = (
    bytes([base64.b64decode(GOOD_PROOF["hashes"][0])[0] ^ 1]) + base64.b64decode(GOOD_PROOF["hashes"][0])[1:]
)


CERTIFICATES: dict[str, Signer] = {
    "expired when it was used": SIGNER.at(timedelta(minutes=11)),
    "used before it began": SIGNER.at(timedelta(minutes=-1)),
    "missing time": SIGNER.at(None),
    "not promised to a CT log": INSTANCE.signer(WHO, WHERE, logged=False),
    "two OIDC issuers": INSTANCE.signer(WHO, WHERE, second_issuer="https://evil.example.com"),
    "another instance of the same names": OTHER.signer(WHO, WHERE),
    "promised to another CT log": replace(INSTANCE, ct=OTHER.ct).signer(WHO, WHERE),
    "by another authority": replace(INSTANCE, fulcio=OTHER.fulcio).signer(WHO, WHERE),
    "logged elsewhere": replace(INSTANCE, log=OTHER.log).signer(WHO, WHERE),
    "timestamped elsewhere": replace(INSTANCE, tsa=OTHER.tsa).signer(WHO, WHERE),
    "the holder of the certificate has another key": replace(
        SIGNER, key=ec.generate_private_key(ec.SECP256R1())
    ),
}


SWAPPED = signed()["verificationMaterial"]
ENTRIES: dict[str, Json] = {
    "a hash of the proof is changed": proof(hashes=[b64(FLIPPED), *GOOD_PROOF["hashes"][1:]]),
    "a hash of the proof is missing": proof(hashes=GOOD_PROOF["hashes"][1:]),
    "a proof for another place": proof(logIndex="1"),
    "a proof for another tree": proof(treeSize="3"),
    "another root": proof(rootHash=b64(bytes(32))),
    "no proof": edited(lambda d: d["verificationMaterial"]["tlogEntries"][0].pop("inclusionProof")),
    "no checkpoint": edited(
        lambda d: d["verificationMaterial"]["tlogEntries"][0]["inclusionProof"].pop("checkpoint")
    ),
    "a checkpoint of another size": proof(checkpoint={"envelope": CHECKPOINT.replace("\n5\n", "\n6\n")}),
    "a checkpoint of another origin": proof(checkpoint={"envelope": CHECKPOINT.replace("log.", "gol.", 1)}),
    "a checkpoint nobody signed": proof(checkpoint={"envelope": CHECKPOINT.split("\n\n")[0] + "\n\n"}),
    "the entry of another signature": material(tlogEntries=SWAPPED["tlogEntries"]),
    "log entry stripped": material(tlogEntries=[]),
    "two log entries": material(tlogEntries=GOOD["verificationMaterial"]["tlogEntries"] * 2),
    "timestamp stripped": material(timestampVerificationData={}),
    "a time that is the log's word": edited(
        lambda d: (
            d["verificationMaterial"].pop("timestampVerificationData"),
            d["verificationMaterial"]["tlogEntries"][0].update(integratedTime=str(int(SIGNED.timestamp()))),
        )
    ),
    "a promise that is none": edited(
        lambda d: d["verificationMaterial"]["tlogEntries"][0].update(
            integratedTime=str(int(SIGNED.timestamp())),
            inclusionPromise={"signedEntryTimestamp": b64(bytes(70))},
        )
    ),
    "an impossible time": edited(
        lambda d: d["verificationMaterial"]["tlogEntries"][0].update(
            integratedTime="9" * 40, inclusionPromise={"signedEntryTimestamp": ""}
        )
    ),
    "a certificate that is none": material(certificate={"rawBytes": b64(b"certificate")}),
    "one tier more": edited(
        lambda d: d["dsseEnvelope"].update(
            payload=b64(base64.b64decode(d["dsseEnvelope"]["payload"]).replace(b'"tier":1', b'"tier":3'))
        )
    ),
    "another signature": edited(lambda d: d["dsseEnvelope"]["signatures"][0].update(sig=b64(bytes(70)))),
}
