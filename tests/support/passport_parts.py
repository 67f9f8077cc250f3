"""What the vectors of passports are made of: keys, small bundles and statements, envelopes, policies, cases.

Nothing of certkit is used: the statements are data (`tests.support.passport_statements`), and the encoding
that is signed is put together here.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json  # noqa: TID251 - the vectors must not depend on the door that reads them
import tomllib  # noqa: TID251 - the same
from pathlib import Path
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


STATEMENTS: Final = Path(__file__).parents[1] / "vectors" / "passport-statements.json"
PROFILE: Final = """\
schema = "urn:certkit:profile:v1"
id = "house-rule"
sources = ["this house"]

[tiers.1]
name = "enough"
confidence = 0.9

[[criteria]]
id = "r_op"
metric = "r_op"
operator = ">="
tiers = {1 = 0.5}
"""
PROFILE_DIGEST: Final = digest(
    compact({name: value for name, value in tomllib.loads(PROFILE).items() if name != "schema"}).decode()
)
AGENT: Final = {
    "name": "courier",
    "version": "1.0",
    "provider": "Example",
    "components": [{"role": "model", "name": "m", "digest": digest("model"), "pinned": True}],
}
ATTACKED: Final[Json] = {"attack_attempted": True, "attack_landed": True, "attack_succeeded": True}


def runs(name: str = "", successes: tuple[int, ...] = (4, 4, 3, 1), **first: Any) -> list[Json]:
    """Return four tasks with a nominal run and four adversarial ones; `first` is of the first of these."""
    made: list[Json] = []
    for task, good in enumerate(successes):
        common = {"domain": "banking", "task_id": f"{name}{task}"}
        made.append({"run_id": f"n{name}{task}", **common, "condition": "nominal", "outcome": "success"})
        made += [
            {"run_id": f"a{name}{task}-{run}", **common, "condition": "adversarial"}
            | {"outcome": "success" if run < good else "failure"}
            for run in range(4)
        ]
    made[1] |= first
    return made


def stored(records: list[Json], **protocol: Any) -> dict[str, str]:
    """Return the files of a small sealed bundle; `protocol` changes what it declares."""
    lines = "".join(compact(run).decode() + "\n" for run in records)
    listed = {
        "path": "records/runs.jsonl",
        "sha256": hashlib.sha256(lines.encode()).hexdigest(),
        "size": len(lines.encode()),
        "media_type": "application/jsonl",
    }
    declared = {
        "origin": "measured",
        "methodology": "trajectory",
        "temperature": 0,
        "declared_runs": 20,
        "attempt": 1,
        "evaluator": {"name": "Example Lab", "relation": "independent"},
    }
    manifest = {
        "schema": "urn:certkit:bundle:v1",
        "agent": AGENT,
        "protocol": declared | protocol,
        "files": [listed],
    }
    # without numbers beyond integers and letters beyond ASCII this is the canonical form of RFC 8785
    return {"bundle.json": compact(manifest).decode(), "records/runs.jsonl": lines}


BUNDLES: Final[dict[str, dict[str, str]]] = {
    "plain": stored(runs()),
    "second": stored(runs("s")),
    "better": stored(runs(successes=(4, 4, 4, 4))),
    "contested": stored(runs(**ATTACKED)),
    "simulated": stored(runs(), origin="simulated"),
    "late": stored(runs(), period={"from": "2026-01-05", "to": "2026-02-15T00:01:00Z"}),
}


def laid_out(files: dict[str, str], root: Path) -> Path:
    """Write the files of a bundle."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def statement(key: Key = LAB, kind: str = "plain", **changes: Any) -> Json:
    """Return a statement that `key` issues; `changes` replace parts of its predicate."""
    document: Json = json.loads(STATEMENTS.read_bytes())[kind]
    document["predicate"]["issuer"]["key_id"] = key_id(key)
    document["predicate"] |= changes
    return document


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


def good(key: Key = LAB, kind: str = "plain", **changes: Any) -> Json:
    return passport(compact(statement(key, kind, **changes)), key)


def edited(change: Callable[[Json], object], base: Json | None = None) -> Json:
    document = copy.deepcopy(base or good())
    change(document)
    return document


def stated(change: Callable[[Json], object], kind: str = "plain") -> Json:
    """Return a passport whose statement was changed before it was signed."""
    document = statement(kind=kind)
    change(document)
    return passport(compact(document))


def predicated(change: Callable[[Json], object], kind: str = "plain") -> Json:
    """Return a passport whose predicate was changed before it was signed."""
    return stated(lambda document: change(document["predicate"]), kind)


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


UNTRUSTED: Final = ("signature", "passport.untrusted-issuer", 8)


def hint(key: Key) -> Callable[[Json], object]:
    return set_material(publicKey={"hint": encode(bytes.fromhex(key_id(key).removeprefix("sha256:")))})
