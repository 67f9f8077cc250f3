"""The trust policy: read strictly, written as it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jsonschema import Draft202012Validator

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import keys
from certkit.passport import trust as passport_trust
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.trust import parse as parse_trust
from tests.support import schemas
from tests.support.passports import KEY, NOW, trust
from tests.support.running import certkit
from tests.support.virtual_sigstore import Sigstore

if TYPE_CHECKING:
    from pathlib import Path

PEM = keys.public_pem(KEY.public_key())
RSA = (
    rsa.generate_private_key(65537, 2048)
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)
FULL: dict[str, Any] = {
    "schema": "urn:certkit:trust:v1",
    "issuers": [
        {
            "name": "Lab",
            "keys": [{"pem": PEM, "not_before": "2026-01-01T00:00:00Z", "not_after": None}],
            "identities": [{"identity": "a@example.com", "issuer": "https://example.com"}],
        }
    ],
    "logs": ["example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"],
    "witnesses": {"k": 0, "keys": []},
    "require": ["registry", "status", "timestamp", "evidence", "replay"],
    "profiles": [canonical.digest(b"")],
    "min_tier": 2,
    "reading": "bounded",
    "domains": ["banking"],
    "accept_specimens": True,
    "accept_contested": True,
    "accept_answered": False,
    "count_provisional": True,
    "max_status_age": "P7D",
    "trusted_root": Sigstore.new(NOW).trusted_root(),
}


def parsed(document: Any) -> Trust:
    return parse_trust(canonical.line(document), "trust.json")


def test_every_documented_key_is_read_and_written_as_it_was() -> None:
    assert parsed(FULL).to_dict() == FULL
    Draft202012Validator.check_schema(schemas.trust_schema())
    Draft202012Validator(schemas.trust_schema()).validate(FULL)


def test_what_is_left_out_demands_nothing_and_accepts_no_specimen() -> None:
    policy = parsed({"schema": "urn:certkit:trust:v1"})
    assert policy.candidates() == ()
    assert policy.require == ()
    assert policy.accept_specimens is False
    assert parsed(canonical.loads(policy.to_json())) == policy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "urn:certkit:trust:v2"}, "schema"),
        ({"requires": []}, "requires"),
        ({"require": ["registy"]}, "registy"),
        ({"accept_specimens": 1}, "accept_specimens"),
        ({"profiles": ["sha256:00"]}, "profiles"),
        ({"profiles": [canonical.digest(b"") + "\n"]}, "profiles"),
        ({"logs": ["nonsense"]}, "logs"),
        ({"logs": [FULL["logs"][0].replace("530d903a", "530d903b")]}, "530d903a"),
        ({"min_tier": -1}, "min_tier"),
        ({"max_status_age": "7 days"}, "max_status_age"),
        ({"max_status_age": "P0D"}, "max_status_age"),
        ({"witnesses": {"k": 1, "keys": []}}, "1 of 0"),
        ({"issuers": [{"name": "L", "keys": [{"pem": "x"}]}]}, "not a single public key in PEM"),
        ({"issuers": [{"name": "L", "keys": [{"pem": RSA}]}]}, "a key of an unsupported type"),
        ({"issuers": [{"name": "L", "keys": [{"pem": PEM}, {"pem": PEM}]}]}, "twice"),
        (
            {"issuers": [{"name": "L", "keys": [{"pem": PEM, "not_after": "2026-01-01T00:00:00"}]}]},
            "not_after",
        ),
        (
            {
                "issuers": [
                    {
                        "name": "L",
                        "keys": [
                            {"pem": PEM, "not_before": "2026-01-02T00:00:00Z"}
                            | {"not_after": "2026-01-01T00:00:00Z"}
                        ],
                    }
                ]
            },
            "its window ends before it begins",
        ),
    ],
)
def test_a_wrong_policy_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CertkitError) as caught:
        parsed(FULL | change)
    assert (caught.value.code, caught.value.exit_code) == ("trust.invalid", 3)
    assert words in str(caught.value)


def test_a_policy_that_is_no_object_is_refused() -> None:
    with pytest.raises(CertkitError) as caught:
        parsed([])
    assert caught.value.code == "trust.invalid"


def test_a_key_is_added_to_the_issuer_of_that_name() -> None:
    second = keys.generate("p256")
    added = TrustedKey(pem=keys.public_pem(second.public_key()))
    policy = trust().with_issuer("Example Lab", added).with_issuer("Other", added)
    assert [(issuer.name, len(issuer.keys)) for issuer in policy.issuers] == [
        ("Example Lab", 2),
        ("Other", 1),
    ]


def lab(*held: TrustedKey, name: str = "Lab") -> TrustedIssuer:
    return TrustedIssuer(name=name, keys=held)


def key(**window: Any) -> TrustedKey:
    return TrustedKey(pem=keys.public_pem(keys.generate("ed25519").public_key()), **window)


def test_a_key_that_is_added_takes_the_place_of_none() -> None:
    one, other, third = key(), key(), key()
    policy = Trust(issuers=(lab(one), lab(name="Else"), lab(other)))
    for changed, held in (
        (policy.with_issuer("Lab", third), ((one, third), (), (other,))),
        (policy.with_issuer("New", third), ((one,), (), (other,), (third,))),
    ):
        assert tuple(issuer.keys for issuer in changed.issuers) == held


def test_a_quorum_that_cannot_be_had_makes_no_policy(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(Trust(issuers=(lab(key()),), witnesses=passport_trust.Witnesses(k=2)).to_json())
    assert certkit("trust", "show", "--trust", path).code == 3
