"""Makes ``passport/*.json`` and ``forged/*.json``: passports, with the step and codes that they must end in.

    python -m tests.support.passport_maker --write

Nothing of certkit is used: the statement is written by hand, the encoding that is signed is put together
here, and the keys and ECDSA's nonces (RFC 6979) are fixed, so that the files are the same on every machine.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import utils

from tests.support import passport_contested, passport_forged
from tests.support.passport_parts import (
    ATTACKER,
    IN_TOTO,
    LAB,
    P256,
    P256_ORDER,
    P384,
    SECOND,
    SPECIMEN,
    UNTRUSTED,
    Json,
    accumulated,
    both_readings,
    case,
    compact,
    digest,
    edited,
    encode,
    good,
    hint,
    key_id,
    passport,
    pem,
    pooled,
    pretty,
    set_envelope,
    set_material,
    set_signature,
    signed,
    spki,
    stated,
    statement,
    trust,
    window,
)
from tests.support.passport_threats import evidence, keyless, other_entries, roots, statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FOLDER: Final = Path(__file__).parents[1] / "vectors"


def accepted() -> Iterator[Json]:
    yield case("Ed25519", good())
    yield case("ECDSA P-256", good(P256), policy=trust(P256))
    yield case("ECDSA P-384", good(P384), policy=trust(P384))
    yield case("one line, no white space", compact(good()).decode())
    url = base64.urlsafe_b64encode
    document = edited(
        lambda d: d["dsseEnvelope"].update(
            payload=url(compact(statement())).decode(),
            signatures=[{"sig": url(signed(IN_TOTO, compact(statement()), LAB)).decode()}],
        )
    )
    yield case("URL-safe base64", document)
    yield case(
        "a keyid, which is ignored",
        edited(lambda d: d["dsseEnvelope"]["signatures"][0].update(keyid=key_id(ATTACKER))),
    )
    yield case(
        "log entries beside a key, which are not read",
        edited(lambda d: d["verificationMaterial"].update(tlogEntries=[{"logIndex": "1"}])),
    )
    yield case("no hint: every trusted key is tried", edited(set_material(publicKey={})))
    yield case(
        "payload in another layout is another passport, and as good", passport(pretty(statement()).encode())
    )
    yield case(
        "a key that is not known in the statement, as in-toto asks",
        stated(lambda d: d["predicate"].update(later="more")),
    )
    yield case("both readings", stated(both_readings), policy=trust(reading="bounded"))
    yield case("two bundles, accumulated", stated(accumulated))
    yield case("the agent asked for", good(), agent=digest("agent"))
    yield case("a domain that was evaluated", good(), domain="banking")
    yield case("its tier asked for", good(), policy=trust(profiles=[digest("profile")]), require_tier=1)
    yield case(
        "a specimen, where the policy accepts them",
        good(**SPECIMEN),
        policy=trust(accept_specimens=True),
    )


def malleable() -> Iterator[Json]:
    payload = compact(statement(P256))
    r, s = utils.decode_dss_signature(signed(IN_TOTO, payload, P256))
    twin = utils.encode_dss_signature(r, P256_ORDER - s)
    yield case(
        "ECDSA (r, n−s): another file, the same passport",
        passport(payload, P256, signature=twin),
        policy=trust(P256),
        passport_id="sha256:" + hashlib.sha256(payload).hexdigest(),
    )
    yield case(
        "ECDSA (r, s): the same passport",
        passport(payload, P256),
        policy=trust(P256),
        passport_id="sha256:" + hashlib.sha256(payload).hexdigest(),
    )


def confusion() -> Iterator[Json]:
    payload = compact(statement(P256))
    wrong = ("signature", "dsse.signature", 1)
    mac = hmac.new(pem(P256).encode(), payload, "sha256").digest()
    raw = b"".join(n.to_bytes(32, "big") for n in utils.decode_dss_signature(signed(IN_TOTO, payload, P256)))
    trusted = trust(P256)
    yield case(
        "algorithm confusion: HMAC with the public key",
        passport(payload, P256, signature=mac),
        wrong,
        trusted,
        twin="ECDSA P-256",
    )
    yield case(
        "algorithm confusion: Ed25519 under a P-256 key's hint",
        passport(payload, P256, signature=signed(IN_TOTO, payload, ATTACKER)),
        wrong,
        trusted,
        twin="ECDSA P-256",
    )
    yield case(
        "algorithm confusion: raw r and s",
        passport(payload, P256, signature=raw),
        wrong,
        trusted,
        twin="ECDSA P-256",
    )
    weak = signed(IN_TOTO, compact(statement(P384)), P384, algorithm=hashes.SHA256())
    yield case(
        "algorithm confusion: P-384 with SHA-256",
        passport(compact(statement(P384)), P384, signature=weak),
        wrong,
        trust(P384),
        twin="ECDSA P-384",
    )
    yield case(
        "hint confusion: the hint names another trusted key", edited(hint(SECOND)), wrong, trust(LAB, SECOND)
    )
    yield case("hint confusion: an attacker hints at a trusted key", edited(hint(LAB), good(ATTACKER)), wrong)
    yield case("hint confusion: a hint that no trusted key has", edited(hint(ATTACKER)), UNTRUSTED)
    yield case(
        "no hint, and no trusted key signed", edited(set_material(publicKey={}), good(ATTACKER)), UNTRUSTED
    )
    yield case("an issuer that nobody trusts", good(ATTACKER), UNTRUSTED)
    yield case("a policy without issuers", good(), UNTRUSTED, {"schema": "urn:certkit:trust:v1"})
    yield case(
        "embedded attacker key: raw bytes",
        edited(set_material(publicKey={"rawBytes": encode(spki(ATTACKER))}), good(ATTACKER)),
        ("parse", "passport.form", 3),
    )
    yield case(
        "embedded attacker key: a certificate",
        edited(set_material(certificate={"rawBytes": encode(spki(ATTACKER))}), good(ATTACKER)),
        UNTRUSTED,
    )
    yield case(
        "a trusted key signs as another issuer's key",
        passport(compact(statement(SECOND)), LAB),
        ("types", "passport.statement", 1),
        trust(LAB, SECOND),
    )


def stripped() -> Iterator[Json]:
    form, many = ("envelope", "dsse.form", 3), ("envelope", "dsse.signatures", 3)
    one = {"sig": encode(signed(IN_TOTO, compact(statement()), LAB))}
    yield case("signature stripping: no signature", edited(set_envelope(signatures=[])), many)
    yield case(
        "signature stripping: an empty one", edited(set_signature(b"")), ("signature", "dsse.signature", 1)
    )
    yield case("two signatures", edited(set_envelope(signatures=[one, one])), many)
    yield case("signatures is no list", edited(set_envelope(signatures=one)), many)
    yield case("a signature with a certificate", edited(set_envelope(signatures=[{**one, "cert": ""}])), form)
    yield case("an envelope that says more", edited(set_envelope(more=1)), form)
    yield case("an envelope that is a list", edited(lambda d: d.update(dsseEnvelope=[])), form)
    yield case(
        "timestamp stripped where the policy requires one",
        good(),
        ("unverifiable", None, 4),
        trust(require=["timestamp"]),
    )
    yield case(
        "log proof stripped where the policy requires one",
        good(),
        ("unverifiable", None, 4),
        trust(require=["registry"]),
    )
    for name in ("status", "evidence", "replay"):
        yield case(
            f"{name} required and not to be had", good(), ("unverifiable", None, 4), trust(require=[name])
        )


def payload_types() -> Iterator[Json]:
    other, payload = "application/json", compact(statement())
    yield case(
        "payloadType confusion: another type, signed so",
        passport(payload, kind=other),
        ("envelope", "dsse.payload-type", 3),
    )
    yield case(
        "payloadType confusion: relabelled",
        edited(set_envelope(payloadType=other)),
        ("envelope", "dsse.payload-type", 3),
    )
    yield case(
        "payloadType confusion: a signature over another type",
        passport(payload, signature=signed(other, payload, LAB)),
        ("signature", "dsse.signature", 1),
    )
    yield case(
        "payloadType with a Cyrillic letter",
        edited(set_envelope(payloadType=IN_TOTO.replace("o", "\N{CYRILLIC SMALL LETTER O}"))),
        ("envelope", "dsse.payload-type", 3),
    )
    types = ("types", "passport.types", 1)
    yield case(
        "another predicate type",
        stated(lambda d: d.update(predicateType="https://slsa.dev/provenance/v1")),
        types,
    )
    yield case(
        "another statement type", stated(lambda d: d.update(_type="https://in-toto.io/Statement/v0.1")), types
    )
    yield case("a payload that is a list", passport(b"[]"), types)


def json_faults() -> Iterator[Json]:
    text = pretty(good())
    doubled = text.replace('"payloadType"', '"payload": "",\n  "payloadType"', 1)
    yield case("duplicate keys in the envelope", doubled, ("parse", "json.duplicate-key", 3))
    yield case(
        "duplicate keys in the file", '{"mediaType": "x",' + text[1:], ("parse", "json.duplicate-key", 3)
    )
    inner = compact(statement()).decode()
    yield case(
        "duplicate keys in the payload",
        passport(inner.replace('"origin":', '"origin":"simulated","origin":', 1).encode()),
        ("types", "json.duplicate-key", 1),
    )
    deep = "[" * 100_000 + "]" * 100_000
    parts: list[Json] = [
        {"text": '{"a":'},
        {"text": "[", "times": 100_000},
        {"text": "]", "times": 100_000},
        {"text": "}"},
    ]
    yield case("deep JSON", parts, ("parse", "json.too-deep", 3))
    yield case(
        "deep JSON in the payload",
        passport(f'{{"a":{deep[99_930:100_070]}}}'.encode()),
        ("types", "json.too-deep", 1),
    )
    yield case(
        "huge JSON", [{"text": text}, {"text": " ", "times": 4 * 1024 * 1024}], ("parse", "json.too-large", 3)
    )
    yield case("NaN", '{"mediaType": NaN}', ("parse", "json.number", 3))
    yield case("a lone surrogate", '{"mediaType": "\\ud800"}', ("parse", "json.encoding", 3))
    yield case("a byte order mark", "\ufeff" + text, ("parse", "json.encoding", 3))
    yield case("no bytes at all", "", ("parse", "json.syntax", 3))
    yield case("two documents", text + text, ("parse", "json.syntax", 3))
    form = ("parse", "passport.form", 3)
    yield case("a file that is a list", "[]", form)
    yield case("an unknown key in the file", edited(lambda d: d.update(more=1)), form)
    yield case("another media type", edited(lambda d: d.update(mediaType="application/json")), form)
    beside = {"rawBytes": encode(spki(ATTACKER))}
    yield case(
        "a key and a certificate",
        edited(lambda d: d["verificationMaterial"].update(certificate=beside)),
        form,
    )
    yield case("a log entry that is no object", edited(set_material(publicKey={}, tlogEntries=[1])), form)
    yield case("a hint that is no text", edited(set_material(publicKey={"hint": 1})), form)
    yield case("tlogEntries is no list", edited(set_material(publicKey={}, tlogEntries={})), form)


def base64_faults() -> Iterator[Json]:
    payload = compact(statement())
    padded = payload + b" " * (-len(payload) % 3 + 1)  # one byte over: two marks of padding
    text = encode(padded)
    assert text.endswith("==")
    base = passport(padded)
    wrong = ("envelope", "dsse.base64", 3)
    stray = text[:-3] + chr(ord(text[-3]) + 1) + "=="
    signature = base["dsseEnvelope"]["signatures"][0]["sig"]
    for name, changed in (
        ("no padding", text.rstrip("=")),
        ("too much padding", text + "="),
        ("white space", text[:40] + "\n" + text[40:]),
        ("stray bits", stray),
        ("something after the padding", text + "AAAA"),
        ("a letter that is no base64", "é" + text[1:]),
    ):
        yield case(f"non-canonical base64: {name}", edited(set_envelope(payload=changed), base), wrong)
    yield case("its good twin", base)
    mixed = "-" + signature[1:].replace("/", "+", 1) + "+"
    yield case(
        "non-canonical base64: both alphabets in one text",
        edited(lambda d: d["dsseEnvelope"]["signatures"][0].update(sig=mixed[:84] + "+-=="), base),
        wrong,
    )
    yield case("a payload that is no text", edited(set_envelope(payload=1), base), wrong)


def tampered() -> Iterator[Json]:
    wrong = ("signature", "dsse.signature", 1)
    payload = compact(statement())
    better = payload.replace(b'"tier":1', b'"tier":3')
    assert better != payload
    yield case("one tier more", edited(set_envelope(payload=encode(better))), wrong)
    yield case("a space after the payload", edited(set_envelope(payload=encode(payload + b" "))), wrong)
    flipped = bytearray(signed(IN_TOTO, payload, LAB))
    flipped[0] ^= 1
    yield case("one bit of the signature", edited(set_signature(bytes(flipped))), wrong)
    bad = ("types", "passport.statement", 1)
    yield case(
        "a subject that is another agent",
        stated(lambda d: d["subject"][0]["digest"].update(sha256="0" * 64)),
        bad,
    )
    yield case("subjects in another order", stated(lambda d: d["subject"].reverse()), bad)
    yield case(
        "a tier that no reading gives", stated(lambda d: d["predicate"]["assessment"].update(tier=2)), bad
    )
    yield case(
        "a decimal that is a number", stated(lambda d: d["predicate"]["criteria"][0].update(value=0.75)), bad
    )
    yield case(
        "a count that is negative", stated(lambda d: d["predicate"]["evidence"].update(records=-1)), bad
    )
    yield case("no validity", stated(lambda d: d["predicate"].pop("validity")), bad)
    yield case(
        "a validity that ends before it begins",
        stated(lambda d: d["predicate"]["validity"].update(not_after="2026-01-31T00:00:00Z")),
        bad,
    )
    yield case(
        "a time without offset",
        stated(lambda d: d["predicate"]["validity"].update(not_after="2026-05-02T00:00:00")),
        bad,
    )


def row(predicate: Json) -> Json:
    found: Json = predicate["criteria"][0]["tiers"]["1"]
    return found


def disagreeing() -> Iterator[Json]:
    """Yield statements that a trusted issuer signed and that do not add up."""
    bad = ("types", "passport.statement", 1)

    def told(name: str, change: Callable[[Json], object]) -> Json:
        return case(name, stated(lambda document: change(document["predicate"])), bad)

    def raised(predicate: Json) -> None:
        predicate["assessment"] |= {"tier": 3, "table": {"tier": 3}}
        predicate["claim"] = "meets the Tier 3 evidence thresholds of profile house-rule"

    yield told("a tier that its rows do not carry", raised)
    yield told("a claim of safety", lambda p: p.update(claim="certified safe"))
    yield told("a claim of another tier", lambda p: p.update(claim=p["claim"].replace("Tier 1", "Tier 2")))
    yield told("measured evidence that is called a specimen", lambda p: p.update(claim=SPECIMEN["claim"]))
    yield told("a specimen that does not say so", lambda p: p.update(origin="simulated"))
    yield told("another name", lambda p: p.update(name="CERTIFIED SAFE"))
    yield told("no criteria", lambda p: p.update(criteria=[]))
    yield told("a criterion twice", lambda p: p.update(criteria=p["criteria"] * 2))
    yield told("a criterion at no tier", lambda p: p["criteria"][0].update(tiers={}))
    yield told("a met row whose value fails", lambda p: p["criteria"][0].update(value="0.500000"))
    yield told("a rate that its integers do not give", lambda p: p["criteria"][0].update(value="0.900000"))
    yield told("a met row without a value", lambda p: p["criteria"][0].pop("value"))
    yield told(
        "an unmet row that its value meets", lambda p: p["criteria"][0]["tiers"]["1"].update(table="not_met")
    )
    yield told("a row that binds and is met", lambda p: p["assessment"].update(binding=["r_op"]))
    yield told("a status that is not the tier's", lambda p: p["assessment"].update(status="insufficient"))
    yield told("a required tier that no row has", lambda p: p["assessment"].update(required_tier=2))
    yield told("a domain that was not evaluated", lambda p: p["scope"].update(domains=["moon"]))
    yield told("another mix of faults", lambda p: p["scope"].update(fault_mix={}))
    yield told("runs that nobody counted", lambda p: p["evidence"].update(fault_runs=17))
    yield told("a validity of ages", lambda p: p["validity"].update(not_after="9999-01-01T00:00:00Z"))
    yield told("nothing that ends it sooner", lambda p: p["validity"].update(retest_triggers=[]))
    yield case("a subject of another name", stated(lambda d: d["subject"][0].update(name="GPT-9")), bad)

    def by_bounds(predicate: Json) -> None:
        both_readings({"predicate": predicate})
        found = predicate["criteria"][0]["tiers"]["1"]["bounded"]
        found.update(status="met", bound="0.500000")
        predicate["assessment"]["bounded"] = {"tier": 1}

    yield told("a row that is met by bounds and whose bound fails", by_bounds)
    yield told("a tier that has no number", lambda p: p["criteria"][0].update(tiers={"x": row(p)}))

    def beyond(predicate: Json) -> None:
        predicate["assessment"]["tier"] = 2
        predicate["claim"] = predicate["claim"].replace("Tier 1", "Tier 2")

    yield told("a tier beyond that of the reading", beyond)

    def unfound(predicate: Json) -> None:
        row(predicate).update(operator="is", threshold=True)
        predicate["criteria"][0]["value"] = False

    yield told("a truth that is met and was not found", unfound)

    def untrue(predicate: Json) -> None:
        by_bounds(predicate)
        row(predicate).update(operator="is", threshold=True)
        predicate["criteria"][0]["value"] = True
        row(predicate)["bounded"]["bound"] = False

    yield told("a truth that is met by bounds and was not found", untrue)
    yield told("a tier by bounds that no row has", lambda p: p["assessment"].update(bounded={"tier": 1}))


def miscounted() -> Iterator[Json]:
    """Yield statements whose counts are not of the runs that they count, whoever signed them."""
    changes: dict[str, Callable[[Json], object]] = {
        "a domain twice": lambda p: p["scope"].update(domains=["banking", "banking"]),
        "more runs than records": lambda p: p["evidence"].update(records=19),
        "more failures than runs": lambda p: p["known_failure_modes"][0].update(failures=17),
        "failures where nothing ran": lambda p: p["known_failure_modes"][0].update(domain="moon"),
        "a rate where nothing ran": lambda p: p["profile_of_reliability"]["cells"][0].update(domain="moon"),
    }
    for name, change in changes.items():
        document = statement()
        change(document["predicate"])
        yield case(name, passport(compact(document)), ("types", "passport.statement", 1))


def apart() -> Iterator[Json]:
    """Yield accumulations whose bundles are not the parts of the whole."""
    bad = ("types", "passport.statement", 1)
    twin = "two bundles, accumulated"
    for name, file in (
        ("a bundle twice", pooled(lambda b: b[1].update(digest=b[0]["digest"]), renamed=True)),
        ("a bundle exchanged", pooled(lambda b: b[1].update(digest=digest("third")))),
        ("bundles in another order", pooled(lambda b: b.reverse())),
        ("a single bundle, listed", pooled(lambda b: b.pop(), renamed=True)),
    ):
        yield case(f"accumulation: {name}", file, bad, twin=twin)


def times() -> Iterator[Json]:
    expired, early = ("validity", "passport.expired", 6), ("validity", "passport.not-yet-valid", 6)
    expected: tuple[str, str | None, int] | None
    for name, at, expected in (
        ("the last second of validity", "2026-05-02T00:00:00Z", None),
        ("expired by a second", "2026-05-02T00:00:01Z", expired),
        ("expired by a year", "2027-05-02T00:00:00Z", expired),
        ("clock skew: the verifier is five minutes behind", "2026-01-31T23:55:00Z", None),
        ("clock skew: the verifier is further behind", "2026-01-31T23:54:59Z", early),
        ("an offset that is not UTC, before the end", "2026-05-02T01:00:00+02:00", None),
        ("an offset that is not UTC, after the end", "2026-05-01T23:00:00-02:00", expired),
    ):
        yield case(name, good(), expected) | {"at": at}
    outside = ("validity", "passport.key-window", 6)
    for name, start, end, expected in (
        ("inside its key's window", "2026-02-01T00:00:00Z", "2026-03-01T12:00:00Z", None),
        ("a key that will be retired", None, "2026-03-15T00:00:00Z", None),
        (
            "key outside its window: retired by now, and nothing proves when it signed",
            None,
            "2026-02-15T00:00:00Z",
            ("unverifiable", None, 4),
        ),
        ("key outside its window: not yet trusted", "2026-02-01T00:00:01Z", None, outside),
        ("key outside its window: no more trusted", None, "2026-01-31T23:59:59Z", outside),
    ):
        yield case(name, good(), expected, window(start, end))


def policies() -> Iterator[Json]:
    refused = ("policy", "passport.policy", 8)
    yield case(
        "wrong subject: another agent is in use",
        good(),
        ("subject", "passport.other-agent", 1),
        agent=digest("other"),
    )
    yield case("a specimen", good(**SPECIMEN), refused)
    yield case("an older profile", good(), refused, trust(profiles=[digest("newer profile")]))
    yield case(
        "its profile among the accepted", good(), policy=trust(profiles=[digest("x"), digest("profile")])
    )
    yield case("a tier below the policy's", good(), refused, trust(min_tier=2))
    yield case("a tier below the caller's", good(), refused, require_tier=2)
    by_bounds = trust(reading="bounded", min_tier=1)
    yield case("a tier by bounds below the policy's", good(), refused, by_bounds)
    yield case(
        "the table reading", good(), policy=trust(reading="table", min_tier=1, profiles=[digest("profile")])
    )
    yield case("a tier of a profile that nobody knows", good(), ("unverifiable", None, 4), require_tier=1)
    yield case("a domain that was not evaluated", good(), refused, domain="surgery")
    yield case("a domain that the policy demands", good(), refused, trust(domains=["banking", "surgery"]))
    both = ("signature", "dsse.signature", 1)
    yield case(
        "the first failing step decides",
        edited(set_signature(bytes(64)), good(**SPECIMEN)),
        both,
    ) | {"at": "2027-05-02T00:00:00Z"}


GROUPS: Final[dict[str, tuple[Callable[[], Iterator[Json]], ...]]] = {
    "accepted": (accepted, malleable),
    "confusion": (confusion, stripped, payload_types),
    "malformed": (json_faults, base64_faults),
    "tampered": (tampered, disagreeing, miscounted, apart),
    "time-and-policy": (times, policies),
    "evidence": (evidence,),
    "status": (statuses, other_entries),
    "keyless": (keyless,),
}
FORGED: Final[dict[str, tuple[Callable[[], Iterator[Json]], ...]]] = {
    "itself": (passport_forged.itself,),
    "keys-and-profiles": (passport_forged.keys,),
    "evidence": (passport_forged.evidence,),
}


CONTESTED: Final[dict[str, tuple[Callable[[], Iterator[Json]], ...]]] = {
    "passports": (passport_contested.passports,)
}


def files() -> dict[str, str]:
    """Return the text of every file of vectors, by its path."""
    apart = {
        "passport/trusted-root.json": {"format": "trusted-root", "cases": [*roots()]},
        "contested/answers.json": passport_contested.assessments(),
    }
    return {path: pretty(document) + "\n" for path, document in apart.items()} | {
        f"{folder}/{name}.json": pretty(
            {"format": "passport", "cases": [one for make in makers for one in make()]}
        )
        + "\n"
        for folder, groups in (("passport", GROUPS), ("forged", FORGED), ("contested", CONTESTED))
        for name, makers in groups.items()
    }


if __name__ == "__main__" and "--write" in sys.argv:
    for name, text in files().items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
