"""Vectors of passports that need more than the file: evidence, a log, certificates, trusted roots."""

from __future__ import annotations

import base64
import hashlib
import json  # noqa: TID251 - the vectors must not depend on the door that reads them
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric import utils

from tests.support import log_maker
from tests.support.passport_parts import (
    ATTACKER,
    BUNDLES,
    LAB,
    P256_ORDER,
    PROFILE_DIGEST,
    UNTRUSTED,
    Json,
    case,
    compact,
    digest,
    edited,
    encode,
    good,
    pretty,
    set_envelope,
    set_signature,
    stated,
    statement,
    trust,
)
from tests.support.virtual_sigstore import Sigstore, fixed_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.virtual_sigstore import Signer


def evidence() -> Iterator[Json]:
    files, asked, twin = BUNDLES["plain"], trust(require=["evidence"]), "the evidence it rests on"
    yield case(twin, good(), policy=asked, bundle=files)
    wrong = ("subject", "passport.other-evidence", 1)
    swapped = "swapped evidence: another sealed bundle"
    yield case(swapped, good(), wrong, asked, twin, bundle=BUNDLES["better"])
    changed = {**files, "records/runs.jsonl": files["records/runs.jsonl"].replace("success", "failure", 1)}
    broken = ("evidence", "bundle.file-changed", 7)
    yield case("swapped evidence: a changed file", good(), broken, asked, twin, bundle=changed)
    without = {"bundle.json": files["bundle.json"]}
    missing = ("evidence", "bundle.file-missing", 7)
    yield case("swapped evidence: a file taken away", good(), missing, asked, twin, bundle=without)

    def another(document: Json) -> None:
        document["predicate"]["facts"]["agent"]["digest"] = digest("agent")
        document["subject"][0]["digest"]["sha256"] = digest("agent").removeprefix("sha256:")

    subject = ("subject", "passport.other-agent", 1)
    named = "wrong subject: evidence of another agent"
    yield case(named, stated(another), subject, asked, twin, bundle=files)


def statuses() -> Iterator[Json]:
    """Yield passports with what a log says of them, as of its checkpoint."""
    old, new = good(), good(supersedes=identity(good()))
    log = log_maker.Log("Example/courier", LAB)
    for document, at in ((old, "2026-02-01T00:00:00Z"), (new, "2026-02-20T00:00:00Z")):
        claims = claims_of(document)
        log.add("passport", claims, at, stored=pretty(document).encode())
    log.add("revoke", {"passport_id": identity(new), "reason": "key-compromise"}, "2026-02-28T00:00:00Z")
    time = "2026-02-28T12:00:00Z"
    asked = trust(require=["status"], logs=[log_maker.vkey()])
    current, twin = log.status(0, time, size=1), "the status of a passport that stands"
    yield case(twin, old, policy=asked, status=current)
    superseded = ("status", "passport.superseded", 6)
    revoked = ("status", "passport.revoked", 6)
    yield case(
        "replay of an older passport: a later one supersedes it",
        old,
        superseded,
        asked,
        twin,
        status=log.status(0, time),
    )
    yield case("revoked", new, revoked, asked, twin, status=log.status(1, time))
    open_ended = ("unverifiable", None, 4)
    yield case(
        "status list rollback: an older status than is known",
        old,
        open_ended,
        asked,
        twin,
        status=current,
        seen=log.checkpoint(),
    )
    fresh = "the same checkpoint as is known"
    yield case(fresh, old, policy=asked, status=current, seen=log.checkpoint(1))
    yield case(
        "status list rollback: a status that is too old",
        old,
        open_ended,
        asked,
        twin,
        status=log.status(0, "2026-02-01T00:00:00Z", size=1),
    )
    mismatch = ("status", "registry.status", 6)
    yield case(
        "status list rollback: the log's word about an earlier entry",
        new,
        mismatch,
        asked,
        twin,
        status=spliced(log.status(1, time), log.status(1, time, size=2)),
    )
    yield case(
        "the status of another passport", old, mismatch, asked, twin, status=log.status(1, time, size=2)
    )
    for name, lineage, submitter in (
        ("status list rollback: a passport that a stranger logged", "Example/courier", ATTACKER),
        ("status list rollback: a passport that was logged under another lineage", "Example/decoy", LAB),
    ):
        decoy = log_maker.Log(lineage, submitter)
        decoy.add("passport", claims_of(old), "2026-02-28T00:00:00Z", stored=pretty(old).encode())
        expected = open_ended if submitter is ATTACKER else mismatch
        yield case(name, old, expected, asked, twin, status=decoy.status(0, time))
    registered = trust(require=["registry"], logs=[log_maker.vkey()])
    proven = "the proof that a log holds it"
    yield case(proven, old, policy=registered, proof=log.proof(0))
    yield case(
        "signature stripping: the proof of another passport's entry",
        old,
        ("registry", "passport.registry", 7),
        registered,
        proven,
        proof=log.proof(1),
    )


def other_entries() -> Iterator[Json]:
    """Yield proofs of entries that register nothing."""
    registered = trust(require=["registry"], logs=[log_maker.vkey()])
    proven, wrong = "the proof that a log holds it", ("registry", "passport.registry", 7)
    log = log_maker.Log("Example/courier", LAB)
    log.entries.append(b"no entry")
    log.add("passport", claims_of(good()), "yesterday", stored=b"")
    log.add("passport", claims_of(good()), "2026-02-01T00:00:00", stored=b"")
    for name, index in (("is none", 0), ("has no time", 1), ("has a time without an offset", 2)):
        yield case(f"the logged entry {name}", good(), wrong, registered, proven, proof=log.proof(index))


def spliced(file: str, earlier: str) -> str:
    return json.dumps({**json.loads(file), "word": json.loads(earlier)["word"]}, indent=1, ensure_ascii=False)


def identity(document: Json) -> str:
    return "sha256:" + hashlib.sha256(base64.b64decode(document["dsseEnvelope"]["payload"])).hexdigest()


def claims_of(document: Json) -> Json:
    predicate = json.loads(base64.b64decode(document["dsseEnvelope"]["payload"]))["predicate"]
    return {
        "passport_id": identity(document),
        "agent": predicate["facts"]["agent"]["digest"],
        "evidence": predicate["facts"]["digest"],
        "tier": 1,
        "profile": PROFILE_DIGEST,
        "not_before": predicate["validity"]["not_before"],
        "not_after": predicate["validity"]["not_after"],
        "supersedes": predicate.get("supersedes"),
        "attempt": 1,
    }


SIGNED: Final = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)


WHO, WHERE = "a@example.com", "https://accounts.example.com"


def keyless() -> Iterator[Json]:
    """Yield passports that a certificate signed, by a Sigstore instance of our own."""
    ours, theirs = Sigstore.fixed(SIGNED, 1), Sigstore.fixed(SIGNED, 2)
    signer = ours.signer(WHO, WHERE, key=fixed_key(11))

    def made(signer: Signer, at: timedelta | None = timedelta(minutes=1), **changes: Any) -> Json:
        return signer.at(at).attest(compact(statement(signer.key, **changes)))

    def policy(identity: str = WHO, issuer: str = WHERE, root: Json | None = None) -> Json:
        named = {"name": "Lab", "identities": [{"identity": identity, "issuer": issuer}]}
        return {
            "schema": "urn:certkit:trust:v1",
            "issuers": [named],
            "trusted_root": root or ours.trusted_root(),
            "require": ["timestamp"],
        }

    bundle, twin = made(signer), "keyless"
    refused = ("signature", "passport.certificate", 1)

    def bad(name: str, file: Json, expected: tuple[str, str | None, int] = refused, **more: Any) -> Json:
        return case(name, file, expected, **{"policy": policy(), "twin": twin, **more})

    def cut(**material: Any) -> Json:
        return edited(lambda d: d["verificationMaterial"].update(material), bundle)

    yield case(twin, bundle, policy=policy())
    yield bad("signature stripping: the timestamp", cut(timestampVerificationData={}))
    yield bad("signature stripping: the log's entry", cut(tlogEntries=[]))
    other = made(signer, context=digest("another"))["verificationMaterial"]
    yield bad(
        "signature stripping: the log's entry of another signature", cut(tlogEntries=other["tlogEntries"])
    )
    swapped = cut(timestampVerificationData=other["timestampVerificationData"])
    yield bad("signature stripping: the timestamp of another signature", swapped)
    yield bad(
        "embedded attacker key: a certificate by an authority of the same names",
        made(theirs.signer(WHO, WHERE, key=fixed_key(12))),
    )
    yield bad(
        "embedded attacker key: another certificate around the signature",
        cut(
            certificate=made(ours.signer(WHO, WHERE, key=fixed_key(13)))["verificationMaterial"][
                "certificate"
            ]
        ),
    )
    yield bad("wrong subject of a certificate", bundle, UNTRUSTED, policy=policy("b@example.com"))
    yield bad(
        "wrong provider of an identity", bundle, UNTRUSTED, policy=policy(issuer="https://evil.example.com")
    )
    yield bad("a certificate, and a policy that trusts keys", bundle, UNTRUSTED, policy=trust())
    yield bad("key outside its window: a certificate that had ended", made(signer, timedelta(minutes=11)))
    yield bad("key outside its window: a certificate that had not begun", made(signer, timedelta(minutes=-1)))
    ended = ("validity", "passport.root-window", 6)
    for who in ("ca", "log", "ct"):
        yield bad(
            f"key outside its window: the {who} had left office",
            bundle,
            ended,
            policy=policy(root=ours.trusted_root(**{who: SIGNED})),
        )
    early = ("validity", "passport.not-yet-valid", 6)
    yield bad("clock skew: signed further ahead of the verifier", bundle, early) | {
        "at": "2026-01-31T23:54:59Z"
    }
    near = case("clock skew: signed within five minutes ahead", bundle, policy=policy())
    yield near | {"at": "2026-01-31T23:57:00Z"}
    r, s = utils.decode_dss_signature(base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"]))
    again = set_signature(utils.encode_dss_signature(r, P256_ORDER - s))
    yield bad(
        "ECDSA (r, n−s): not what the log and the timestamp saw",
        edited(again, bundle),
    )
    better = base64.b64decode(bundle["dsseEnvelope"]["payload"]).replace(b'"tier":1', b'"tier":3')
    yield bad("one tier more under a certificate", edited(set_envelope(payload=encode(better)), bundle))


def roots() -> Iterator[Json]:
    """Yield trusted roots that are offered to a policy which holds one, and how that ends."""
    instance = Sigstore.fixed(SIGNED, 1)
    day = timedelta(days=1)
    for who in ("ca", "log", "ct", "tsa"):
        ended = instance.trusted_root(**{who: SIGNED})
        for name, held, offered, code in (
            (f"a newer root, in which the {who} left office", instance.trusted_root(), ended, None),
            (f"the same root, in which the {who} left office", ended, ended, None),
            (
                f"trusted-root rollback: the {who} is back in office",
                ended,
                instance.trusted_root(),
                "trust.rollback",
            ),
            (
                f"trusted-root rollback: the {who} stays longer",
                ended,
                instance.trusted_root(**{who: SIGNED + day}),
                "trust.rollback",
            ),
        ):
            exit_code = 0 if code is None else 8
            yield {
                "name": name,
                "held": held,
                "offered": offered,
                "expected": {"code": code, "exit_code": exit_code},
            }
