"""Makes the vectors of passports, with the step and code that each must end in.

    python -m tests.support.passport_maker --write

``passport/`` has the threats of whoever has no trusted key, ``forged/`` what a trusted issuer signs and must
not, ``contested/`` serious findings and their answers. Nothing of certkit is used: the statements are data
(`tests.support.passport_statements`), the encoding that is signed is put together here, and the keys and
ECDSA's nonces (RFC 6979) are fixed, so that the files are the same on every machine.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import utils

from tests.support.passport_parts import (
    ATTACKER,
    BUNDLES,
    IN_TOTO,
    LAB,
    P256,
    P256_ORDER,
    P384,
    PROFILE,
    PROFILE_DIGEST,
    SECOND,
    UNTRUSTED,
    Json,
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
    predicated,
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
    yield case("the reading by bounds", good(), policy=trust(reading="bounded"))
    yield case("two bundles, pooled", good(kind="pooled"))
    yield case("the agent asked for", good(), agent=statement()["predicate"]["facts"]["agent"]["digest"])
    yield case("a domain that was evaluated", good(), domain="banking")
    yield case("its tier asked for", good(), policy=trust(profiles=[PROFILE_DIGEST]), require_tier=1)
    accepting = trust(accept_specimens=True)
    yield case("a specimen, where the policy accepts them", good(kind="specimen"), policy=accepting)


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


BAD: Final = ("types", "passport.statement", 1)
DIFFERS: Final = ("judgement", "passport.judgement-differs", 1)
LATE: Final = ("types", "passport.period-in-future", 1)


def triggers(predicate: Json) -> list[Json]:
    """Return what asks for a new test, which follows from the rows of the tier."""
    found: list[Json] = predicate["validity"]["retest_triggers"]
    return found


def judged() -> Iterator[Json]:
    """Yield passports whose trusted issuer edited the assessment, or what it follows from."""

    def row(predicate: Json) -> Json:
        found: Json = predicate["assessment"]["criteria"][0]
        return found

    def repeated(predicate: Json) -> None:
        predicate["assessment"]["criteria"].append(row(predicate))
        triggers(predicate).insert(1, triggers(predicate)[1])

    def fewer_failures(predicate: Json) -> None:
        predicate["summary"] = statement(kind="better")["predicate"]["summary"]

    def easier(predicate: Json) -> None:
        predicate["profile"]["criteria"][0]["tiers"]["1"] = 0.25

    changes: dict[str, Callable[[Json], object]] = {
        "a tier more": lambda p: (p["assessment"]["verdict"].update(tier=2), triggers(p).pop(1)),
        "a bound that nobody computed": lambda p: row(p)["bounded"].update(status="met", bound=0.6),
        "a row left out": lambda p: (p["assessment"]["criteria"].pop(), triggers(p).pop(1)),
        "a row twice": repeated,
        "a finding left out": lambda p: p["assessment"]["findings"].pop(0),
        "the summary of other records": fewer_failures,
        "an easier profile": easier,
        "another question": lambda p: p["question"].update(required_tier=2),
        "an attempt that is not told": lambda p: p["facts"]["protocol"].pop("attempt"),
    }
    for name, change in changes.items():
        yield case(f"judgement: {name}", predicated(change), DIFFERS)
    yield case(
        "judgement: a specimen that is called measured",
        predicated(lambda p: p["facts"]["protocol"].update(origin="measured"), "specimen"),
        DIFFERS,
    )


def misstated() -> Iterator[Json]:
    """Yield passports of a trusted issuer whose parts disagree, or that have another form."""

    def renamed(predicate: Json) -> None:
        predicate["profile"]["id"] = "hb-eval-2026"

    def cell(predicate: Json) -> Json:
        found: Json = predicate["summary"]["cells"][0]["counts"]
        return found

    def dated(predicate: Json, last: int) -> None:
        predicate["summary"]["times"] |= {"timed": 20, "first": last, "last": last}

    begun = 1_769_904_000_000_000  # 2026-02-01, in microseconds
    changes: dict[str, tuple[Callable[[Json], object], tuple[str, str, int]]] = {
        "an unknown member": (lambda p: p.update(later="more"), BAD),
        "an unknown member of the facts": (lambda p: p["facts"].update(later="more"), BAD),
        "an unknown member of the summary": (lambda p: p["summary"].update(later="more"), BAD),
        "an unknown count": (lambda p: cell(p).update(later=1), BAD),
        "an unknown member of a row": (lambda p: p["assessment"]["criteria"][0].update(later="more"), BAD),
        "a claim of safety": (lambda p: p.update(claim="certified safe"), BAD),
        "no assessment": (lambda p: p.pop("assessment"), BAD),
        "no validity": (lambda p: p.pop("validity"), BAD),
        "a value that is text": (lambda p: p["assessment"]["criteria"][0].update(value="0.75"), BAD),
        "more successes than runs": (lambda p: cell(p).update(success=17), BAD),
        "successes that its tasks do not have": (lambda p: cell(p).update(success=13, failure=3), BAD),
        "a task row left out": (lambda p: p["summary"]["tasks"]["rows"].pop(), BAD),
        "a packaged profile with another table": (renamed, BAD),
        "nothing that ends it sooner": (lambda p: p["validity"].update(retest_triggers=[]), BAD),
        "a validity of ages": (lambda p: p["validity"].update(not_after="9999-01-01T00:00:00Z"), BAD),
        "a validity that ends before it begins": (
            lambda p: p["validity"].update(not_after="2026-01-31T00:00:00Z"),
            BAD,
        ),
        "a time without offset": (lambda p: p["validity"].update(not_after="2026-05-02T00:00:00"), BAD),
        "a run within five minutes after the signing": (
            lambda p: dated(p, begun + 300_000_000),
            DIFFERS,  # the time is allowed, and the warning that no run has one is false now
        ),
        "a run after the signing": (lambda p: dated(p, begun + 300_000_001), LATE),
        "runs of the year 2096": (lambda p: dated(p, begun + 2_209_000_000_000_000), LATE),
        "a period that ends after the signing": (
            lambda p: p["facts"].update(period={"from": "2026-01-05", "to": "2027-01-09"}),
            LATE,
        ),
        "a period that ends on a day of no month": (
            lambda p: p["facts"].update(period={"from": "2026-01-05", "to": "2026-02-30"}),
            BAD,
        ),
    }
    for name, (change, expected) in changes.items():
        yield case(name, predicated(change), expected)
    subjects: dict[str, Callable[[Json], object]] = {
        "a subject that is another agent": lambda d: d["subject"][0]["digest"].update(sha256="0" * 64),
        "a subject of another name": lambda d: d["subject"][0].update(name="GPT-9"),
        "subjects in another order": lambda d: d["subject"].reverse(),
        "an unknown member beside the predicate": lambda d: d.update(later="more"),
    }
    for name, change in subjects.items():
        yield case(name, stated(change), BAD)
    bundles: dict[str, Callable[[list[str]], object]] = {
        "a bundle twice": lambda b: b.__setitem__(1, b[0]),
        "a bundle exchanged": lambda b: b.__setitem__(1, digest("third")),
        "bundles in another order": lambda b: b.reverse(),
        "a single bundle, listed": lambda b: b.pop(),
    }
    for name, part in bundles.items():
        file = predicated(lambda p, part=part: part(p["facts"]["bundles"]), "pooled")  # type: ignore[misc]
        yield case(f"pooled: {name}", file, BAD, twin="two bundles, pooled")
    rules = predicated(lambda p: p.update(rules="certkit.rules/0", facts="unread"))
    yield case("judged by other rules", rules, ("unverifiable", None, 4))


def unlike_their_evidence() -> Iterator[Json]:
    """Yield passports of a trusted issuer that state something else than their bundle."""
    files, twin = BUNDLES["plain"], "what the bundle gives"
    yield case(twin, good(), bundle=files, replay=True)

    def repeated(predicate: Json) -> None:
        """Take the summary and the judgement of other records."""
        theirs = statement(kind="better")["predicate"]
        predicate |= {name: theirs[name] for name in ("summary", "assessment")}

    def kinder(predicate: Json) -> None:
        predicate["facts"]["protocol"]["evaluator"] = {"name": "Other Lab", "relation": "independent"}

    differs = ("replay", "passport.replay-differs", 7)
    yield case(
        "figures of other records", predicated(repeated), differs, twin=twin, bundle=files, replay=True
    )
    differs = ("evidence", "passport.manifest-differs", 7)
    yield case("another evaluator", predicated(kinder), differs, twin=twin, bundle=files)


def contested() -> Iterator[Json]:
    """Yield contested and answered passports under policies that accept them and that do not."""
    unclear = ("unverifiable", None, 4)
    taken, answered = "contested, and the policy accepts that", "answered"
    yield case(taken, good(kind="contested"), policy=trust(accept_contested=True))
    yield case(answered, good(kind="answered"))
    nothing = ("policy", "passport.policy", 8)
    asked = trust(min_tier=1, profiles=[PROFILE_DIGEST])
    yield case("contested", good(kind="contested"), unclear, asked, twin=taken)
    refusing = trust(accept_answered=False)
    yield case(
        "answered, and the policy accepts no answer", good(kind="answered"), unclear, refusing, answered
    )
    strict = trust(accept_contested=True, min_tier=2)
    yield case("contested, and a higher tier is asked for", good(kind="contested"), nothing, strict, taken)

    def forged(
        name: str, change: Callable[[Json], object], kind: str = "answered", expected: Any = BAD
    ) -> Json:
        return case(name, predicated(change, kind), expected, twin=answered)

    def answer(predicate: Json) -> Json:
        found: Json = predicate["question"]["answers"][0]
        return found

    yield forged("answered in no context", lambda p: p.pop("context"))
    yield forged("answered by nobody", lambda p: answer(p).update(by=" "))
    yield forged("agreed by nobody", lambda p: answer(p).update(agreed_by=""))
    yield forged("an answer to a finding that is none", lambda p: answer(p).update(code="few-fault-runs"))
    met = statement()["predicate"]

    def cleared(predicate: Json) -> None:
        predicate["assessment"]["verdict"], predicate["validity"] = (
            met["assessment"]["verdict"],
            met["validity"],
        )

    yield forged("contested, and stated to be met", cleared, "contested", DIFFERS)
    yield forged(
        "contested, and the finding called a warning",
        lambda p: p["assessment"]["findings"][0].update(severity="warning"),
        "contested",
        DIFFERS,
    )


def answers() -> Json:
    """Return a bundle, its profile, and the contexts that answer its finding or do not."""

    def answer(**more: Any) -> Json:
        """Return an answer to the finding, agreed by a reviewer who is independent."""
        return {
            "challenge": "success-with-attack",
            "state": "answered",
            "reason": "The attacker's goal was one that the task allows.",
            "by": "ana",
            "agreed_by": "ravi",
            "evidence": [{"digest": digest("plans"), "where": "plans.txt"}],
        } | more

    files = BUNDLES["contested"]
    evidence = digest(files["bundle.json"])

    def context(
        *answers: Json, relation: str = "independent", date: str | None = "2026-02-01", **about: Any
    ) -> Json:
        """Return a context.json, bound to the evidence and the profile."""
        return {
            "schema": "urn:certkit:context:v1",
            "about": {"bundles": [evidence], "profile": PROFILE_DIGEST, "tier": 1} | about,
            "owner": "ana",
            "people": [
                {"id": "ana", "name": "Ana", "relation": "same"},
                {"id": "ravi", "name": "Ravi", "relation": relation},
            ],
            "reviewers": [{"person": "ravi", "date": date}],
            "answers": list(answers),
        }

    nowhere = [{"digest": digest("other plans"), "where": "plans.txt"}]
    cases = (
        ("contested", None, 4, "open"),
        ("answered", context(answer()), 0, "answered"),
        ("agreed by the developer's own reviewer", context(answer(), relation="same"), 4, "open"),
        ("agreed by a reviewer without a date", context(answer(), date=None), 4, "open"),
        ("agreed by nobody", context(answer(agreed_by=None)), 4, "open"),
        ("agreed by who answered", context(answer(agreed_by="ana")), 3, None),
        ("without evidence", context(answer(evidence=[])), 4, "open"),
        ("of evidence that lies nowhere", context(answer(evidence=nowhere)), 4, "open"),
        ("merely accepted", context(answer(state="accepted", until="2027-01-01")), 3, None),
        ("of another bundle", context(answer(), bundles=[digest("earlier evidence")]), 4, "open"),
        ("of another profile", context(answer(), profile=digest("profile")), 4, "open"),
        ("of another tier", context(answer(), tier=2), 4, "open"),
        ("of another finding", context(answer(challenge="latest-third")), 4, "open"),
    )
    listed = [
        {"name": name, "context": given, "expected": {"exit_code": exit_code, "state": state}}
        for name, given, exit_code, state in cases
    ]
    beside = {"plans.txt": "plans"}
    return {"format": "answers", "bundle": files, "beside": beside, "profile": PROFILE, "cases": listed}


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
    late, twin = "key outside its window: a run after its end, within the tolerance of clocks", "a late run"
    yield case(twin, good(kind="late"))
    yield case(late, good(kind="late"), outside, window(None, "2026-02-15T00:00:00Z"), twin)


def policies() -> Iterator[Json]:
    refused = ("policy", "passport.policy", 8)
    yield case(
        "wrong subject: another agent is in use",
        good(),
        ("subject", "passport.other-agent", 1),
        agent=digest("other"),
    )
    yield case("a specimen", good(kind="specimen"), refused)
    yield case("an older profile", good(), refused, trust(profiles=[digest("newer profile")]))
    yield case("its profile among the accepted", good(), policy=trust(profiles=[digest("x"), PROFILE_DIGEST]))
    yield case("a tier below the policy's", good(), refused, trust(min_tier=2))
    yield case("a tier below the caller's", good(), refused, require_tier=2)
    by_bounds = trust(reading="bounded", min_tier=1)
    yield case("a tier by bounds below the policy's", good(), refused, by_bounds)
    yield case(
        "the table reading", good(), policy=trust(reading="table", min_tier=1, profiles=[PROFILE_DIGEST])
    )
    yield case("a tier of a profile that nobody knows", good(), ("unverifiable", None, 4), require_tier=1)
    yield case("a domain that was not evaluated", good(), refused, domain="surgery")
    other = good(issuer=statement()["predicate"]["issuer"] | {"name": "issuer 1"})
    named = "the name of another issuer, which the passport gives itself"
    yield case(named, other, refused, trust(LAB, SECOND), issuer="issuer 1")
    yield case("a domain that the policy demands", good(), refused, trust(domains=["banking", "surgery"]))
    both = ("signature", "dsse.signature", 1)
    yield case(
        "the first failing step decides",
        edited(set_signature(bytes(64)), good(kind="specimen")),
        both,
    ) | {"at": "2027-05-02T00:00:00Z"}


GROUPS: Final[dict[str, tuple[Callable[[], Iterator[Json]], ...]]] = {
    "passport/accepted": (accepted, malleable),
    "passport/confusion": (confusion, stripped, payload_types),
    "passport/malformed": (json_faults, base64_faults),
    "passport/tampered": (tampered,),
    "passport/time-and-policy": (times, policies),
    "passport/evidence": (evidence,),
    "passport/status": (statuses, other_entries),
    "passport/keyless": (keyless,),
    "forged/judgement": (judged,),
    "forged/statement": (misstated,),
    "forged/evidence": (unlike_their_evidence,),
    "contested/passports": (contested,),
}


def files() -> dict[str, str]:
    """Return the text of every file of vectors, by its path."""
    documents: dict[str, Json] = {
        name: {"format": "passport", "cases": [found for make in makers for found in make()]}
        for name, makers in GROUPS.items()
    }
    documents["passport/trusted-root"] = {"format": "trusted-root", "cases": [*roots()]}
    documents["contested/answers"] = answers()
    return {f"{name}.json": pretty(document) + "\n" for name, document in documents.items()}


if __name__ == "__main__" and "--write" in sys.argv:
    for name, text in files().items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
