"""The client protocol of sigstore-conformance, and what is refused under it."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import client
from tests.support import passport_parts as maker
from tests.support.plain_bundles import AT, DATA, INSTANCE, SIGNER, WHERE, WHO, plain
from tests.support.virtual_sigstore import b64, compact, pae

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.virtual_sigstore import Json

SIGNED = AT + timedelta(minutes=1)
OTHER = "passport.other-evidence"
DIGEST = hashlib.sha256(DATA).hexdigest()
STATEMENT = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [
        {"name": "other", "digest": {"sha512": "0"}},
        {"name": "notes", "digest": {"sha256": DIGEST}},
    ],
    "predicateType": "https://example.com/predicate",
    "predicate": {},
}
IDENTITY = ("--certificate-identity", WHO, "--certificate-oidc-issuer", WHERE)


def attested(key: maker.Key, statement: Any = STATEMENT) -> Json:
    payload = compact(statement)
    return maker.passport(payload, key, signature=maker.signed(maker.IN_TOTO, payload, key))


def run(folder: Path, bundle: Json | bytes, *options: str, artifact: str | None = None) -> tuple[int, Any]:
    (folder / "bundle.json").write_bytes(bundle if isinstance(bundle, bytes) else compact(bundle))
    (folder / "notes.txt").write_bytes(DATA)
    (folder / "root.json").write_bytes(compact(INSTANCE.trusted_root()))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    about = artifact or str(folder / "notes.txt")
    code, document = client.run("--bundle", str(folder / "bundle.json"), *options, about)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    return code, document.get("error", {}).get("code")


@pytest.fixture
def root(tmp_path: Path) -> tuple[str, ...]:
    return (*IDENTITY, "--trusted-root", str(tmp_path / "root.json"))


def with_key(folder: Path, key: maker.Key) -> tuple[str, str]:
    (folder / "key.pem").write_text(maker.pem(key))
    return ("--key", str(folder / "key.pem"))


@pytest.mark.parametrize(
    "bundle", [SIGNER.sign(DATA), SIGNER.attest(compact(STATEMENT))], ids=["plain", "dsse"]
)
def test_a_certificate_signs_a_file_or_an_attestation_of_it(
    tmp_path: Path, root: tuple[str, ...], bundle: Json
) -> None:
    for artifact in (None, f"sha256:{DIGEST}", f"sha256:{DIGEST.upper()}"):
        assert run(tmp_path, bundle, *root, artifact=artifact) == (0, None)
    assert run(tmp_path, bundle, *root, artifact="sha256:" + "0" * 64)[0] == 1
    assert run(tmp_path, bundle, *root, artifact=str(tmp_path / "root.json"))[0] == 1
    other = ("--certificate-identity", "b@example.com", *root[2:])
    assert run(tmp_path, bundle, *other) == (1, "passport.untrusted-issuer")
    assert run(tmp_path, bundle, *IDENTITY)[0] == 1  # not under the root of the public instance
    assert run(tmp_path, bundle, *with_key(tmp_path, SIGNER.key)) == (1, "passport.certificate")


@pytest.mark.parametrize("who", ["ca", "ct", "log", "tsa"])
def test_whoever_had_left_office_before_the_signing_no_longer_counts(tmp_path: Path, who: str) -> None:
    ended = tmp_path / "ended.json"
    for late, expected in ((timedelta(0), 0), (timedelta(seconds=1), 1)):
        ended.write_bytes(compact(INSTANCE.trusted_root(**{who: SIGNED - late})))
        assert run(tmp_path, SIGNER.sign(DATA), *IDENTITY, "--trusted-root", str(ended))[0] == expected


@pytest.mark.parametrize("key", [maker.LAB, maker.P256, maker.P384], ids=["ed25519", "p256", "p384"])
def test_a_key_signs_a_file_or_an_attestation_of_it(tmp_path: Path, key: maker.Key) -> None:
    trusted = with_key(tmp_path, key)
    for bundle in (
        plain(key),
        attested(key),
        plain(key, algorithm="SHA2_256", digest=b64(bytes.fromhex(DIGEST))),
    ):
        assert run(tmp_path, bundle, *trusted) == (0, None)
        assert run(tmp_path, bundle, *trusted, artifact=str(tmp_path / "root.json"))[0] == 1
    for bundle in (plain(maker.ATTACKER), plain(key, data=b"else"), attested(maker.ATTACKER)):
        assert run(tmp_path, bundle, *trusted) == (1, "dsse.signature")
    wrong = plain(key, algorithm="SHA2_256", digest=b64(bytes(32)))
    assert run(tmp_path, wrong, *trusted) == (1, OTHER)


@pytest.mark.parametrize("digest", ["text", 7, ["algorithm"], True])
def test_a_digest_that_is_no_object_is_refused(tmp_path: Path, digest: object) -> None:
    bundle = plain(maker.LAB)
    bundle["messageSignature"]["messageDigest"] = digest
    assert run(tmp_path, bundle, *with_key(tmp_path, maker.LAB)) == (1, "passport.form")


def test_a_digest_is_enough_where_the_key_signs_digests(tmp_path: Path) -> None:
    digest = f"sha256:{DIGEST}"
    assert run(tmp_path, plain(maker.P256), *with_key(tmp_path, maker.P256), artifact=digest) == (0, None)
    trusted = with_key(tmp_path, maker.LAB)
    assert run(tmp_path, plain(maker.LAB), *trusted, artifact=digest) == (2, "usage.option")
    assert run(tmp_path, attested(maker.LAB), *trusted, artifact=digest) == (0, None)


@pytest.mark.parametrize(
    "statement",
    [
        {**STATEMENT, "subject": []},
        {**STATEMENT, "subject": [{"digest": {"sha512": DIGEST}}]},
        {**STATEMENT, "subject": [{"name": DIGEST}]},
        {**STATEMENT, "subject": DIGEST},
        {"predicate": STATEMENT},
        [],
    ],
)
def test_an_attestation_of_something_else_is_refused(tmp_path: Path, statement: Any) -> None:
    trusted = with_key(tmp_path, maker.LAB)
    assert run(tmp_path, attested(maker.LAB), *trusted) == (0, None)
    assert run(tmp_path, attested(maker.LAB, statement), *trusted) == (1, OTHER)


def test_another_payload_type_is_refused(tmp_path: Path) -> None:
    payload, trusted = compact(STATEMENT), with_key(tmp_path, maker.LAB)
    assert pae(payload)
    foreign = maker.passport(
        payload, kind="text/plain", signature=maker.signed("text/plain", payload, maker.LAB)
    )
    assert run(tmp_path, foreign, *trusted) == (1, "dsse.payload-type")


@pytest.mark.parametrize(
    "bundle",
    [
        b"",
        b"[]",
        b"{}",
        b'{"verificationMaterial": {"certificate": {}}}',
        compact({**SIGNER.sign(DATA), "messageSignature": {}}),
        compact({**SIGNER.sign(DATA), "messageSignature": []}),
        compact({**SIGNER.sign(DATA), "mediaType": "application/json"}),
        compact(
            {**SIGNER.sign(DATA), "verificationMaterial": {"x509CertificateChain": {"certificates": []}}}
        ),
        compact(plain(maker.LAB)),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, root: tuple[str, ...], bundle: bytes) -> None:
    assert run(tmp_path, SIGNER.sign(DATA), *root) == (0, None)
    assert run(tmp_path, bundle, *root)[0] == 1


def test_bundles_before_v03_have_their_certificate_first_in_a_chain(
    tmp_path: Path, root: tuple[str, ...]
) -> None:
    bundle = SIGNER.sign(DATA)
    leaf = bundle["verificationMaterial"].pop("certificate")
    bundle["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"
    bundle["verificationMaterial"]["x509CertificateChain"] = {"certificates": [leaf]}
    assert run(tmp_path, bundle, *root) == (0, None)
    own = base64.b64encode(INSTANCE.fulcio.chain[0]).decode()
    bundle["verificationMaterial"]["x509CertificateChain"] = {"certificates": [{"rawBytes": own}, leaf]}
    assert run(tmp_path, bundle, *root)[0] == 1


@pytest.mark.parametrize(
    "options",
    [(), IDENTITY[:2], IDENTITY[2:], (*IDENTITY, "--key", "key.pem"), (*IDENTITY[:2], "--key", "k")],
)
def test_whose_signature_is_expected_is_said_once(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert run(tmp_path, SIGNER.sign(DATA), *options) == (2, "usage.option")


def test_a_file_that_is_not_there_is_told(tmp_path: Path, root: tuple[str, ...]) -> None:
    for name in ("missing.txt", "sha256:00", DIGEST):
        assert run(tmp_path, SIGNER.sign(DATA), *root, artifact=name) == (2, "file.missing")


def test_a_digest_is_never_a_file_that_bears_it_as_its_name(
    tmp_path: Path, root: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "sha256:" + "0" * 64
    (tmp_path / name).write_bytes(DATA)
    assert run(tmp_path, SIGNER.sign(DATA), *root, artifact=name) == (1, "passport.certificate")
    assert run(tmp_path, SIGNER.attest(compact(STATEMENT)), *root, artifact=name) == (
        1,
        OTHER,
    )
    assert run(tmp_path, SIGNER.sign(DATA), *root, artifact=f"./{name}") == (0, None)
