"""What the vectors of passports are made of: keys, a small statement, envelopes, policies, cases.

Nothing of certkit is used: the statement is written by hand and the encoding that is signed is put together
here.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import json  # noqa: TID251 - the vectors must not depend on the door that reads them
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if TYPE_CHECKING:
    from collections.abc import Callable


IN_TOTO: Final = "application/vnd.in-toto+json"


AT: Final = "2026-03-01T12:00:00Z"


# The order of the group of P-256, SEC 2 version 2.0, section 2.4.2.
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


Key = Ed25519PrivateKey | ec.EllipticCurvePrivateKey


Json = dict[str, Any]


LAB: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


SECOND: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32, 64)))


ATTACKER: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(64, 96)))


P256: Final = ec.derive_private_key(0x1234567890ABCDEF, ec.SECP256R1())


P384: Final = ec.derive_private_key(0x1234567890ABCDEF, ec.SECP384R1())


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def spki(key: Key) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def pem(key: Key) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def key_id(key: Key) -> str:
    return "sha256:" + hashlib.sha256(spki(key)).hexdigest()


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signed(kind: str, payload: bytes, key: Key, *, algorithm: hashes.HashAlgorithm | None = None) -> bytes:
    message = f"DSSEv1 {len(kind.encode())} {kind} {len(payload)} ".encode() + payload
    if isinstance(key, Ed25519PrivateKey):
        return key.sign(message)
    usual = hashes.SHA384() if key.curve.name == "secp384r1" else hashes.SHA256()
    return key.sign(message, ec.ECDSA(algorithm or usual, deterministic_signing=True))


SALT: Final = bytes(range(32))


def tasks(*successes: int) -> list[list[object]]:
    """The rows of tasks with four adversarial runs and a nominal success each, sorted by their tags."""
    tags = sorted(hmac.new(SALT, f"task {n}".encode(), hashlib.sha256).digest()[:9] for n in range(4))
    names = [base64.urlsafe_b64encode(tag).decode() for tag in tags]
    return [[name, 0, [good, 4, 1, 1]] for name, good in zip(names, successes, strict=True)]


def limitations(bundles: int = 0) -> list[str]:
    """What the small statement must say of its limits, over one bundle or over several."""
    rests = "the records of one evaluation"
    if bundles:
        rests = f"the pooled records of {bundles} evaluations, which the issuer chose"
    return [
        f"rests on {rests}; what happens in operation is not observed",
        "the table reading decides: thresholds are compared with point estimates, not with bounds",
    ]


TRIGGERS: Final = [
    {"event": "component_change"},
    {
        "event": "metric_beyond_threshold",
        "metric": "r_op",
        "operator": ">",
        "threshold": "0.600000",
    },
    {"event": "intervention_rate_above", "threshold": "0.050000"},
]


def statement(key: Key = LAB, **changes: Any) -> Json:
    """Return a small statement that `key` issues; `changes` replace parts of its predicate."""
    agent, evidence, profile = digest("agent"), digest("evidence"), digest("profile")
    predicate = {
        "name": "Agent passport of courier 1.0",
        "claim": "meets the Tier 1 evidence thresholds of profile house-rule",
        "origin": "measured",
        "issuer": {"name": "Example Lab", "key_id": key_id(key), "relation_to_developer": "independent"},
        "agent": {
            "name": "courier",
            "version": "1.0",
            "provider": "Example",
            "lineage": "Example/courier",
            "digest": agent,
            "components": [{"role": "model", "name": "m", "digest": digest("model"), "pinned": True}],
        },
        "evidence": {
            "digest": evidence,
            "records": 20,
            "nominal_runs": 4,
            "fault_runs": 16,
            "harness_errors": 0,
            "novel_fault_runs": 0,
        },
        "protocol": {
            "methodology": "trajectory",
            "temperature": "0.000000",
            "declared_runs": 20,
            "attempt": 1,
            "evaluator": {"name": "Example Lab", "relation": "independent"},
        },
        "assessment": {
            "digest": digest("assessment"),
            "required_tier": 1,
            "profile": {"id": "house-rule", "digest": profile, "reading": "table"},
            "tool": {"name": "certkit", "version": "0.1.0"},
            "tier": 1,
            "status": "met",
            "table": {"tier": 1},
            "bounded": {"tier": 0},
            "binding": [],
        },
        "criteria": [
            {
                "id": "r_op",
                "metric": "r_op",
                "unit": "fraction",
                "state": "measured",
                "value": "0.750000",
                "n": 16,
                "counts": {"successes": 12},
                "provisional": False,
                "drift_margin": "0.050000",
                "tiers": {
                    "1": {
                        "operator": ">",
                        "threshold": "0.600000",
                        "table": "met",
                        "margin": "0.150000",
                    }
                },
            }
        ],
        "profile_of_reliability": {
            "salt": hashlib.sha256(SALT).hexdigest()[:16],
            "tasks": 4,
            "domains": ["banking"],
            "cells": [
                {"domain": "banking", "condition": "adversarial", "runs": 16, "successes": 12},
                {"domain": "banking", "condition": "nominal", "runs": 4, "successes": 4},
            ],
            "columns": [
                {"metric": "success", "condition": "adversarial", "scale": 1, "y": 12, "n": 16},
                {"metric": "success", "condition": "nominal", "scale": 1, "y": 4, "n": 4},
            ],
            "rows": tasks(4, 4, 3, 1),
        },
        "scope": {
            "domains": ["banking"],
            "fault_mix": {"adversarial": 16, "nominal": 4},
            "dates": {"first_run": "2026-01-05T08:00:00Z", "last_run": "2026-01-06T08:00:00Z"},
            "exclusions": ["agents, versions, components, domains and conditions other than those named"],
        },
        "limitations": limitations(),
        "known_failure_modes": [{"domain": "banking", "condition": "adversarial", "failures": 4, "runs": 16}],
        "challenges": [
            {"code": code, "severity": "warning", "message": message}
            for code, message in (
                ("few-fault-runs", "banking (16)"),
                ("narrow-fault-mix", "adversarial (16)"),
            )
        ],
        "validity": {
            "not_before": "2026-02-01T00:00:00Z",
            "not_after": "2026-05-02T00:00:00Z",
            "retest_triggers": copy.deepcopy(TRIGGERS),
        },
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": "courier", "digest": {"sha256": agent.removeprefix("sha256:")}},
            {"name": "evidence bundle", "digest": {"sha256": evidence.removeprefix("sha256:")}},
        ],
        "predicateType": "urn:certkit:agent-passport:v1",
        "predicate": predicate | changes,
    }


def passport(payload: bytes, key: Key = LAB, *, kind: str = IN_TOTO, signature: bytes | None = None) -> Json:
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "publicKey": {"hint": encode(bytes.fromhex(key_id(key).removeprefix("sha256:")))},
            "tlogEntries": [],
        },
        "dsseEnvelope": {
            "payload": encode(payload),
            "payloadType": kind,
            "signatures": [{"sig": encode(signature or signed(kind, payload, key))}],
        },
    }


def trust(*keys: Key, **more: Any) -> Json:
    issuers = [{"name": f"issuer {n}", "keys": [{"pem": pem(key)}]} for n, key in enumerate(keys or (LAB,))]
    return {"schema": "urn:certkit:trust:v1", "issuers": issuers, **more}


def window(start: str | None, end: str | None) -> Json:
    key = {"pem": pem(LAB), "not_before": start, "not_after": end}
    return {"schema": "urn:certkit:trust:v1", "issuers": [{"name": "issuer 0", "keys": [key]}]}


SPECIMEN: Final[dict[str, Any]] = {
    "origin": "simulated",
    "name": "SPECIMEN (simulated evidence): Agent passport of courier 1.0",
    "claim": "specimen, from simulated evidence: meets the Tier 1 evidence thresholds of profile house-rule",
}


def good(key: Key = LAB, **changes: Any) -> Json:
    return passport(compact(statement(key, **changes)), key)


def edited(change: Callable[[Json], object], base: Json | None = None) -> Json:
    document = copy.deepcopy(base or good())
    change(document)
    return document


def stated(change: Callable[[Json], object]) -> Json:
    """Return a passport whose statement was changed before it was signed."""
    document = statement()
    change(document)
    return passport(compact(document))


def case(
    name: str,
    file: Json | str | list[Json],
    expected: tuple[str, str | None, int] | None = None,
    /,
    policy: Json | None = None,
    twin: str = "Ed25519",
    **more: Any,
) -> Json:
    """Return one case; `expected` is the failing step, its code and the exit code; None: verified.

    `twin` names an accepted case that differs in nothing but the fault.
    """
    parts = file if isinstance(file, list) else [{"text": file if isinstance(file, str) else pretty(file)}]
    verdict = "verified" if expected is None else "rejected"
    step, code, exit_code = expected or (None, None, 0)
    if step == "unverifiable":
        verdict, step = "unverifiable", None
    return {
        "name": name,
        "file": parts,
        "trust": policy or trust(),
        "at": AT,
        **more,
        **({} if expected is None else {"twin": twin}),
        "expected": {"verdict": verdict, "step": step, "code": code, "exit_code": exit_code},
    }


def pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def set_signature(data: bytes) -> Callable[[Json], object]:
    return lambda document: document["dsseEnvelope"]["signatures"][0].update(sig=encode(data))


def set_material(**material: Any) -> Callable[[Json], object]:
    return lambda document: document.update(verificationMaterial={"tlogEntries": [], **material})


def set_envelope(**fields: Any) -> Callable[[Json], object]:
    return lambda document: document["dsseEnvelope"].update(fields)


def both_readings(document: Json) -> None:
    """Add the bounded reading, by which no tier is attained."""
    predicate = document["predicate"]
    predicate["criteria"][0]["tiers"]["1"]["bounded"] = {
        "status": "insufficient",
        "confidence": "0.950000",
        "method": "beta",
        "clusters": 4,
        "reason": "4 clusters",
    }


def accumulated(document: Json) -> None:
    """Let the evidence be that of two bundles."""
    evidence = document["predicate"]["evidence"]
    document["predicate"]["limitations"] = limitations(2)
    evidence["bundles"] = [
        {
            "digest": digest(name),
            "dates": {"first_run": f"2026-01-{day}T08:00:00Z", "last_run": f"2026-01-{day}T08:00:00Z"},
        }
        for name, day in (("first", "05"), ("second", "06"))
    ]
    rename(document)


def rename(document: Json) -> None:
    """Give accumulated evidence the digest of its bundles."""
    evidence = document["predicate"]["evidence"]
    listed = [one["digest"] for one in evidence["bundles"]]
    found = compact({"schema": "urn:certkit:accumulation:v1", "bundles": listed})
    evidence["digest"] = "sha256:" + hashlib.sha256(found).hexdigest()
    document["subject"][1]["digest"]["sha256"] = hashlib.sha256(found).hexdigest()


def pooled(change: Callable[[list[Json]], object], *, renamed: bool = False) -> Json:
    """Return a passport over two bundles, whose parts were changed before it was signed."""

    def made(document: Json) -> None:
        accumulated(document)
        change(document["predicate"]["evidence"]["bundles"])
        if renamed:
            rename(document)

    return stated(made)


UNTRUSTED: Final = ("signature", "passport.untrusted-issuer", 8)


def hint(key: Key) -> Callable[[Json], object]:
    return set_material(publicKey={"hint": encode(bytes.fromhex(key_id(key).removeprefix("sha256:")))})
