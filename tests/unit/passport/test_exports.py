"""Exports say what the passport says, to whoever reads them with other people's libraries."""

from __future__ import annotations

import base64
import hashlib
import json  # noqa: TID251 - a second reading, without our own door
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import jwt
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from jsonschema import Draft202012Validator
from jwt.algorithms import ECAlgorithm, OKPAlgorithm
from msgspec import structs

from certkit import workflow
from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.passport import exports, keys, words
from certkit.passport.claim import from_bundle
from certkit.passport.exports import shown, signed
from certkit.passport.verification import verify
from tests.support.making import KEY, NOW, issued, of_bundle, sealed_bundle, trust
from tests.support.sources import AT, CARD, source

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.opening import Verification

P256 = keys.generate("p256")
STRANGER = keys.generate("ed25519")


def made(format: exports.Format, of: Verification, **more: Any) -> str:  # noqa: A002 - as in the package
    if format in exports.SIGNED:
        more = {"key": KEY, **more}
    if format == "a2a":
        more = {"card": CARD, **more}
    found = exports.export(format, of, **more)
    assert found.passport_id == of.passport_id
    return found.content


def refused(attempt: Any) -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        attempt()
    return caught.value


def unsigned(segment: str) -> dict[str, Any]:
    """Return what a base64url segment of a JWS holds, read without our own code."""
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    return found


def result(of: Verification) -> dict[str, Any]:
    """Return the statement of a verification result."""
    envelope = json.loads(made("in-toto-svr", of))
    found: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    return found


# What an export is made of


@pytest.mark.parametrize("format", exports.FORMATS)
def test_every_export_names_the_passport_by_the_digest_of_its_payload(format: exports.Format) -> None:  # noqa: A002
    of = source()
    digest = hashlib.sha256(issued().payload).hexdigest()
    text = made(format, of)
    if format == "vc+jwt":
        text = str(unsigned(text.split(".")[1]))
    if format == "in-toto-svr":
        text = str(result(of))
    if format == "a2a":
        text = str(unsigned(json.loads(text)["signatures"][0]["protected"]))
    assert (digest[:12] if format == "badge" else digest) in text


@pytest.mark.parametrize("format", exports.FORMATS)
def test_the_same_passport_gives_the_same_bytes(format: exports.Format) -> None:  # noqa: A002
    assert made(format, source()) == made(format, source())  # an Ed25519 signature is deterministic


@pytest.mark.parametrize("format", exports.FORMATS)
def test_a_passport_that_does_not_verify_is_not_exported(format: exports.Format) -> None:  # noqa: A002
    data = issued().to_json()
    for given, policy, at, code, words_ in (
        (data, trust(STRANGER), AT, 8, "step 3 (signature)"),
        (data, trust(), NOW + timedelta(days=91), 6, "step 6 (validity)"),
        (data, trust(require=("replay",)), AT, 4, "unverifiable"),
        (data, trust(require=("timestamp",)), AT, 4, "unverifiable"),
        (data, trust(min_tier=9), AT, 8, "step 11 (policy)"),
        (b"{}", trust(), AT, 3, "step 1 (parse)"),
    ):
        verification = verify(given, trust=policy, at=at)
        error = refused(partial(made, format, verification))
        assert (error.code, int(error.exit_code)) == ("export.unverified", code)
        assert words_ in error.message


def test_a_specimen_is_named_so_in_every_format() -> None:
    of, real = source(origin="simulated"), source()
    for name in ("markdown", "badge"):
        assert words.SPECIMEN in made(name, of)
        assert words.SPECIMEN not in made(name, real)
    properties, genuine = (result(one)["predicate"]["properties"] for one in (of, real))
    assert set(properties) & set(genuine) == set(), (
        "a policy that asks for a property would accept a specimen"
    )
    assert all(item.startswith("CERTKIT_SPECIMEN_") for item in properties)
    types = [unsigned(made("vc+jwt", one).split(".")[1])["type"][1] for one in (of, real)]
    assert types == ["AgentPassportSpecimen", "AgentPassport"]
    (signature,) = json.loads(made("a2a", of))["signatures"]
    assert unsigned(signature["protected"])["urn:certkit:agent-passport:v1"]["claim"].startswith("specimen")


@pytest.mark.parametrize(
    ("format", "more"),
    [
        ("in-toto-svr", {"key": None}),
        ("vc+jwt", {"key": None}),
        ("a2a", {"key": None}),
        ("a2a", {"card": None}),
        ("markdown", {"key": KEY}),
        ("badge", {"card": CARD}),
    ],
)
def test_options_that_do_not_go_together(format: Any, more: dict[str, Any]) -> None:  # noqa: A002
    assert refused(lambda: made(format, source(), **more)).code == "usage.option"


# in-toto Simple Verification Result


def test_a_simple_verification_result_has_the_published_form() -> None:
    found = result(source())
    agent = canonical.loads(issued().payload)["subject"][0]["digest"]["sha256"]
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://in-toto.io/attestation/svr/v0.2"
    assert found.keys() == {"_type", "subject", "predicateType", "predicate"}
    assert [item["digest"]["sha256"] for item in found["subject"]] == [
        agent,
        hashlib.sha256(issued().payload).hexdigest(),
    ]
    predicate = found["predicate"]
    assert predicate.keys() == {"verifier", "timeCreated", "properties"}
    assert predicate["timeCreated"] == "2026-03-02T12:00:00Z"
    profile = canonical.loads(issued().payload)["predicate"]["assessment"]["profile"]
    assert predicate["verifier"] == {
        "id": signed.VERIFIER,
        "policies": [
            {
                "name": "profile hb-eval-2026",
                "digest": {"sha256": profile["digest"].removeprefix("sha256:")},
            }
        ],
    }
    assert predicate["properties"] == [
        "CERTKIT_PASSPORT_VERIFIED",
        "CERTKIT_TIER_3",
        "CERTKIT_TABLE_TIER_3",
        *(
            f"CERTKIT_PASSED_{name}"
            for name in ("PARSE", "ENVELOPE", "SIGNATURE", "TYPES", "SUBJECT", "VALIDITY", "POLICY")
        ),
        "CERTKIT_VALID_UNTIL_2026-05-30T12:00:00Z",
    ]


def stating(of: Verification, **parts: Any) -> Verification:
    """Return a verification of a statement with other parts."""
    assert of.statement is not None
    predicate = structs.replace(of.statement.predicate, **parts)
    return structs.replace(of, statement=structs.replace(of.statement, predicate=predicate))


def test_a_tier_that_is_not_attained_is_no_property() -> None:
    of = source()
    assert of.statement is not None
    none = stating(of, assessment=structs.replace(of.statement.predicate.assessment, tier=0))
    properties = result(none)["predicate"]["properties"]
    assert not [item for item in properties if re.match(r"CERTKIT_TIER_", item)]


def test_every_step_that_was_made_on_demand_is_a_property(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    opened, replay = from_bundle(root, workflow.load_profile, progress=SILENT)
    checks: dict[str, Any] = {"evidence": opened, "replay": replay}
    found = verify(of_bundle(root).to_json(), trust=trust(), at=AT, **checks)
    properties = result(found)["predicate"]["properties"]
    assert {"CERTKIT_PASSED_EVIDENCE", "CERTKIT_PASSED_REPLAY"} <= {*properties}


@pytest.mark.parametrize("key", [KEY, P256], ids=["ed25519", "p256"])
def test_a_signed_result_is_a_dsse_envelope_over_canonical_json(key: Any) -> None:
    found = exports.export("in-toto-svr", source(), key=key)
    assert found.media_type == "application/vnd.in-toto.svr+dsse"
    envelope = json.loads(found.content)
    payload = base64.b64decode(envelope["payload"])
    assert canonical.canonical(json.loads(payload)) == payload
    kind = b"application/vnd.in-toto+json"
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    check(key.public_key(), base64.b64decode(envelope["signatures"][0]["sig"]), message)


def check(public: Any, signature: bytes, message: bytes) -> None:
    """Verify with bare `cryptography`; raises `InvalidSignature`."""
    if isinstance(public, Ed25519PublicKey):
        public.verify(signature, message)
    else:
        public.verify(signature, message, ec.ECDSA(hashes.SHA256()))


# W3C Verifiable Credential as a JWT

NO_CLOCK: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}


def test_a_credential_ends_with_the_passport_and_is_dated_by_its_verification() -> None:
    content = made("vc+jwt", source(), key=KEY)
    claims = jwt.decode(content, key=KEY.public_key(), algorithms=["EdDSA"], options=NO_CLOCK)
    whole = [datetime.fromtimestamp(claims[name], UTC) for name in ("nbf", "iat", "exp")]
    assert whole == [NOW, AT, NOW + timedelta(days=90)]
    assert claims["verifiedAsOf"] == "2026-03-02T12:00:00Z"


@pytest.mark.parametrize(("key", "alg"), [(KEY, "EdDSA"), (P256, "ES256")], ids=["ed25519", "p256"])
def test_a_credential_is_verified_by_pyjwt_and_by_bare_cryptography(key: Any, alg: str) -> None:
    of = source(key)
    found = exports.export("vc+jwt", of, key=key)
    assert found.media_type == "application/vc+jwt"
    header = jwt.get_unverified_header(found.content)
    assert (header["alg"], header["typ"], header["cty"]) == (alg, "vc+jwt", "vc")
    claims = jwt.decode(found.content, key=key.public_key(), algorithms=[alg], options=NO_CLOCK)
    assert claims["credentialSubject"]["passportId"] == of.passport_id
    protected, payload, signature = found.content.split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    assert len(raw) == 64
    if alg == "ES256":
        raw = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    check(key.public_key(), raw, f"{protected}.{payload}".encode())
    with pytest.raises(InvalidSignature):
        check(key.public_key(), raw, f"{protected}.{payload}x".encode())
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(
            found.content,
            key=keys.generate("p256" if alg == "ES256" else "ed25519").public_key(),
            algorithms=[alg],
        )


def test_a_credential_has_the_form_of_the_data_model() -> None:
    claims = unsigned(made("vc+jwt", source()).split(".")[1])
    assert claims["@context"][0] == "https://www.w3.org/ns/credentials/v2"
    assert claims["type"][0] == "VerifiableCredential"
    assert {"vc", "vp"} & claims.keys() == set()  # VC-JOSE-COSE forbids them
    for name in ("id", "issuer", "credentialSubject"):
        assert re.match(r"urn:", claims[name] if name == "id" else claims[name]["id"])
    assert claims["validFrom"] == "2026-03-01T12:00:00Z"
    assert claims["validUntil"] == "2026-05-30T12:00:00Z"
    subject = claims["credentialSubject"]
    assert (subject["tier"], subject["tierByTable"], subject["tierByBounds"]) == (3, 3, 0)
    assert subject["claim"] == "meets the Tier 3 evidence thresholds of profile hb-eval-2026"
    assert claims["description"] == words.NOTICE


def test_a_credential_speaks_in_the_name_of_its_key_alone() -> None:
    claims = unsigned(made("vc+jwt", source(), key=STRANGER).split(".")[1])
    public = STRANGER.public_key()
    assert claims["issuer"] == {"id": signed.thumbprint(public), "keyId": keys.key_id(public)}
    assert claims["credentialSubject"]["passportIssuer"] == "Example Lab"


def test_thumbprints_are_those_of_the_rfcs() -> None:
    # RFC 8037, appendix A.3: the thumbprint of the Ed25519 key of appendix A.1
    raw = base64.urlsafe_b64decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
    key = Ed25519PublicKey.from_public_bytes(raw)
    assert signed.thumbprint(key).endswith(":kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    # RFC 7638, section 3: the members in the order of their names, computed here without our own door
    listed: Any = ((P256.public_key(), ECAlgorithm), (KEY.public_key(), OKPAlgorithm))
    for public, kind in listed:
        text = json.dumps(kind.to_jwk(public, as_dict=True), sort_keys=True, separators=(",", ":"))
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        assert signed.thumbprint(public).endswith(f":{digest}")


# A2A agent card


def detached(card: dict[str, Any], signature: dict[str, str]) -> str:
    body = {name: value for name, value in card.items() if name != "signatures"}
    payload = base64.urlsafe_b64encode(canonical.canonical(body)).rstrip(b"=").decode()
    return f"{signature['protected']}.{payload}.{signature['signature']}"


@pytest.mark.parametrize(("key", "alg"), [(KEY, "EdDSA"), (P256, "ES256")], ids=["ed25519", "p256"])
def test_an_agent_card_is_signed_with_the_passport_in_it(key: Any, alg: str) -> None:
    of = source()
    card = json.loads(made("a2a", of, key=key))
    (signature,) = card["signatures"]
    assert signature.keys() == {"protected", "signature"}
    assert unsigned(signature["protected"]) == {
        "alg": alg,
        "typ": "JOSE",
        "kid": keys.key_id(key.public_key()),
        "urn:certkit:agent-passport:v1": {
            "passport": of.passport_id,
            "claim": "meets the Tier 3 evidence thresholds of profile hb-eval-2026",
        },
    }
    token = detached(card, signature)
    assert jwt.decode(token, key=key.public_key(), algorithms=[alg])["name"] == "courier"
    assert card == {**CARD, "signatures": [signature]}
    card["name"] = "another"
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(detached(card, signature), key=key.public_key(), algorithms=[alg])


def test_a_second_signature_leaves_the_first_as_it_holds() -> None:
    of = source()
    once = json.loads(made("a2a", of))
    twice = json.loads(made("a2a", of, key=P256, card=once))
    first, second = twice["signatures"]
    assert first == once["signatures"][0]
    jwt.decode(detached(twice, first), key=KEY.public_key(), algorithms=["EdDSA"])
    jwt.decode(detached(twice, second), key=P256.public_key(), algorithms=["ES256"])


@pytest.mark.parametrize(
    "card",
    [
        [],
        {**CARD, "name": "rival"},
        {**CARD, "version": "2.0"},
        {**CARD, "signatures": {}},
    ],
)
def test_a_card_of_another_agent_or_no_card_is_not_signed(card: Any) -> None:
    assert refused(lambda: made("a2a", source(), card=card)).code == "export.card"


# Markdown and badge

HOSTILE = "a|b`c``d\n# x <script> [l](http://e.example) @all \u202e\x1b[2J"


def hostile(of: Verification) -> Verification:
    assert of.statement is not None
    found = of.statement.predicate
    profile = structs.replace(found.assessment.profile, id=HOSTILE)
    return stating(
        of,
        claim=HOSTILE,
        agent=structs.replace(found.agent, name=HOSTILE, version=HOSTILE),
        issuer=structs.replace(found.issuer, name=HOSTILE),
        scope=structs.replace(found.scope, domains=(HOSTILE,) * 20),
        assessment=structs.replace(found.assessment, profile=profile),
    )


def test_markdown_tells_both_readings_validity_and_what_it_is_not() -> None:
    text = made("markdown", source())
    assert "- `Table reading: Tier 3 (decides); bounded reading: no tier.`" in text
    assert "| Valid | 2026-03-01T12:00:00Z to 2026-05-30T12:00:00Z |" in text
    assert "| Not checked | registry, status, evidence, replay |" in text
    for item in words.IS_NOT:
        assert f"- {item}\n" in text


def test_foreign_text_formats_nothing_in_markdown() -> None:
    plain, text = made("markdown", source()), made("markdown", hostile(source()))
    assert len(text.splitlines()) == len(plain.splitlines()), "a name made a line of its own"
    assert re.search("[\x00-\x09\x0b-\x1f\u202e]", text) is None
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # A cell ends at a bar that no backslash escapes (GFM, tables).
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {3}
    # A code span ends at a run of backticks as long as the one that opened it (CommonMark 6.1).
    outside = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    for mark in ("<script>", "@all", "http:", "`"):
        assert mark not in outside


def test_a_badge_says_that_it_is_no_evidence_and_loads_nothing() -> None:
    for of in (source(), hostile(source()), source(origin="simulated")):
        root = ET.fromstring(made("badge", of))  # noqa: S314 - our own text
        space = "{http://www.w3.org/2000/svg}"
        title = root.findtext(f"{space}title") or ""
        shown = [node.text or "" for node in root.iter(f"{space}text")]
        assert "No evidence" in title
        assert any("no evidence" in line for line in shown)
        assert any(words.short(of.passport_id or "") in line for line in shown)
        assert any("Table reading: Tier 3 (decides); bounded reading: no tier" in line for line in shown)
        assert root.get("role") == "img"
        assert {node.tag.removeprefix(space) for node in root.iter()} == {
            "svg",
            "title",
            "desc",
            "rect",
            "g",
            "text",
        }
        names = {name for node in root.iter() for name in node.attrib}
        assert not names & {"href", "style", "src", "{http://www.w3.org/1999/xlink}href"}
        width = int(root.get("width") or 0)
        for node in root.iter(f"{space}text"):
            middle, length = float(node.get("x") or 0), float(node.get("textLength") or 0)
            assert 0 < middle - length / 2 < middle + length / 2 < width


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [shown.DARK, *shown.COLOURS.values()])
def test_the_text_of_a_badge_can_be_read(colour: str) -> None:
    assert (luminance(shown.INK) + 0.05) / (luminance(colour) + 0.05) >= 7


@pytest.mark.parametrize("format", exports.FORMATS)
def test_the_document_of_an_export_has_its_published_form(format: exports.Format) -> None:  # noqa: A002
    more: dict[str, Any] = {"key": KEY} if format in exports.SIGNED else {}
    if format == "a2a":
        more["card"] = CARD
    document = exports.export(format, source(), **more).to_dict()
    published = json.loads(files.packaged("schemas", "export.v1.schema.json").read_bytes())
    Draft202012Validator(published).validate(document)
    assert document["passport_id"] == "sha256:" + hashlib.sha256(issued().payload).hexdigest()
