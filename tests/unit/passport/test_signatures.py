"""Signatures at the edge of validity, through the functions that verify a passport.

Wycheproof's vectors (github.com/C2SP/wycheproof, testvectors_v1) are read where somebody has put them: the
folder that the variable WYCHEPROOF names, ../shared/vectors/wycheproof, or build/vectors. The same classes of
faults are made here by hand as well, so that they are tried on every machine: integers of ECDSA out of range,
its second solution, DER that is not the shortest, Ed25519's S beyond the order, keys and points of small
order. The arithmetic of Ed25519 is that of RFC 8032, section 6, written out.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import envelope as sealed
from certkit.passport import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
MESSAGE: Final = b"DSSEv1 1 a 1 b"


# Wycheproof

PUBLISHED: Final = {
    "ed25519_test": {"valid": 88, "invalid": 63},
    "ecdsa_secp256r1_sha256_test": {"valid": 174, "invalid": 310},
    "ecdsa_secp384r1_sha384_test": {"valid": 194, "invalid": 310},
}
"""Results by kind at commit dac1dd47, counted with: jq -r '.testGroups[].tests[].result' | sort | uniq -c"""


def wycheproof(name: str) -> dict[str, Any]:
    folders = [
        os.environ.get("WYCHEPROOF"),
        ROOT.parent / "shared/vectors/wycheproof",
        ROOT / "build/vectors",
    ]
    for folder in folders:
        if folder and (path := Path(folder) / f"{name}.json").is_file():
            document: dict[str, Any] = canonical.loads(path.read_bytes())
            return document
    pytest.skip(
        "Wycheproof's vectors are no part of the project: 'make vectors' brings them to build/vectors"
    )


def accepts(pem: str, message: bytes, signature: bytes) -> bool:
    """Tell whether a verifier who trusts this key accepts the signature."""
    try:
        key = keys.parse_public(pem.encode(), where="test")
    except CertkitError:
        return False
    return sealed.is_signature(signature, message, key)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_vector_of_wycheproof_ends_as_it_must(name: str) -> None:
    document = wycheproof(name)
    ends: Counter[tuple[str, bool]] = Counter()
    wrong = []
    for group in document["testGroups"]:
        for one in group["tests"]:
            accepted = accepts(group["publicKeyPem"], bytes.fromhex(one["msg"]), bytes.fromhex(one["sig"]))
            ends[one["result"], accepted] += 1
            if one["result"] != "acceptable" and accepted != (one["result"] == "valid"):
                wrong.append((one["tcId"], one["comment"]))
    assert wrong == []
    assert sum(ends.values()) == document["numberOfTests"]
    assert all(ends[kind, kind == "valid"] >= count for kind, count in PUBLISHED[name].items())


# ECDSA by hand. Orders: SEC 2 version 2.0, sections 2.4.2 and 2.5.1.

CURVES: Final[dict[str, tuple[ec.EllipticCurvePrivateKey, hashes.HashAlgorithm, int]]] = {
    "P-256": (
        ec.derive_private_key(7, ec.SECP256R1()),
        hashes.SHA256(),
        0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    ),
    "P-384": (
        ec.derive_private_key(7, ec.SECP384R1()),
        hashes.SHA384(),
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
    ),
}


def tlv(tag: int, body: bytes, *, long: bool = False) -> bytes:
    size = bytes([len(body)])
    return bytes([tag]) + (b"\x81" + size if long or len(body) > 127 else size) + body


def integer(value: int, *, pad: int = 0) -> bytes:
    return tlv(2, bytes(pad) + value.to_bytes(value.bit_length() // 8 + 1, signed=True))


def der(*parts: bytes, long: bool = False) -> bytes:
    return tlv(0x30, b"".join(parts), long=long)


def ecdsa_cases(name: str) -> Iterator[tuple[str, bytes, bool]]:
    """Yield what is tried on a curve, and whether it is a signature."""
    key, algorithm, order = CURVES[name]
    good = key.sign(MESSAGE, ec.ECDSA(algorithm, deterministic_signing=True))
    r, s = utils.decode_dss_signature(good)
    yield "the signature", good, True
    yield "the signature, written here", der(integer(r), integer(s)), True
    yield "(r, n − s), the other solution", der(integer(r), integer(order - s)), True
    for what, value in (("0", 0), ("n", order), ("n + 1", order + 1), ("−1", -1)):
        yield f"r = {what}", der(integer(value), integer(s)), False
        yield f"s = {what}", der(integer(r), integer(value)), False
        yield f"r and s = {what}", der(integer(value), integer(value)), False
    yield "r + n", der(integer(r + order), integer(s)), False
    yield "s + n", der(integer(r), integer(s + order)), False
    yield "−r", der(integer(-r), integer(s)), False
    yield "r and s exchanged", der(integer(s), integer(r)), False
    yield "an integer with a needless zero", der(integer(r, pad=1), integer(s)), False
    if len(integer(r)) + len(integer(s)) < 128:
        yield "a length in the long form", der(integer(r), integer(s), long=True), False
    yield "a third integer", der(integer(r), integer(s), integer(1)), False
    yield "one integer", der(integer(r)), False
    yield "bytes after the end", good + b"\x00", False
    yield "bytes inside the end", der(integer(r), integer(s), b"\x05\x00"), False
    yield "cut short", good[:-1], False
    yield "an indefinite length", b"\x30\x80" + integer(r) + integer(s) + b"\x00\x00", False
    yield "raw r and s", b"".join(n.to_bytes(key.key_size // 8) for n in (r, s)), False
    yield "nothing", b"", False


@pytest.mark.parametrize("name", CURVES)
def test_ecdsa_accepts_its_two_solutions_in_shortest_form_and_nothing_else(name: str) -> None:
    public = keys.public_pem(CURVES[name][0].public_key())
    ends = {what: accepts(public, MESSAGE, signature) for what, signature, _ in ecdsa_cases(name)}
    assert ends == {what: expected for what, _, expected in ecdsa_cases(name)}


def test_a_key_verifies_with_its_own_curve_and_hash_alone() -> None:
    for name, (key, algorithm, _) in CURVES.items():
        for other in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512()):
            signature = key.sign(MESSAGE, ec.ECDSA(other))
            expected = other.name == algorithm.name
            assert accepts(keys.public_pem(key.public_key()), MESSAGE, signature) is expected, (name, other)


@pytest.mark.parametrize("point", ["off the curve", "at infinity", "with a coordinate beyond the field"])
def test_a_point_that_is_no_key_is_never_one(point: str) -> None:
    prefix = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
    field = 2**256 - 2**224 + 2**192 + 2**96 - 1
    body = {
        "off the curve": b"\x04" + (1).to_bytes(32) + (1).to_bytes(32),
        "at infinity": b"\x04" + bytes(64),
        "with a coordinate beyond the field": b"\x04" + (field + 5).to_bytes(32) + (1).to_bytes(32),
    }[point]
    pem = f"-----BEGIN PUBLIC KEY-----\n{sealed.encode(prefix + body)}\n-----END PUBLIC KEY-----\n"
    assert not accepts(pem, MESSAGE, der(integer(1), integer(1)))


# Ed25519 by hand, RFC 8032.

P: Final = 2**255 - 19
L: Final = 2**252 + 27742317777372353535851937790883648493
D: Final = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def add(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    k = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P
    return x, (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P


def times(scalar: int, point: Point) -> Point:
    total = (0, 1)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def recovered(y: int, *, odd: int) -> Point:
    """Return the point with this y, RFC 8032 section 5.1.3."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0
    return (x if x & 1 == odd else P - x, y)


BASE: Final = recovered(4 * pow(5, -1, P) % P, odd=0)


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def hashed(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def test_the_arithmetic_here_is_that_of_ed25519() -> None:
    secret = bytes(range(32))
    digest = hashlib.sha512(secret).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
    public = encoded(times(scalar, BASE))
    key = Ed25519PrivateKey.from_private_bytes(secret)
    assert public == key.public_key().public_bytes_raw()
    r = hashed(digest[32:], MESSAGE) % L
    point = encoded(times(r, BASE))
    s = (r + hashed(point, public, MESSAGE) * scalar) % L
    assert point + s.to_bytes(32, "little") == key.sign(MESSAGE)


def test_ed25519_accepts_one_signature_and_no_other_writing_of_it() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, good = keys.public_pem(key.public_key()), key.sign(MESSAGE)
    point, s = good[:32], int.from_bytes(good[32:], "little")
    assert accepts(public, MESSAGE, good)
    beyond = [s + k * L for k in range(1, 16) if s + k * L < 2**256]
    assert len(beyond) > 5
    others = {f"S + {k}·L": point + value.to_bytes(32, "little") for k, value in enumerate(beyond, 1)}
    others |= {
        "S = 0": point + bytes(32),
        "S = L": point + L.to_bytes(32, "little"),
        "S = L + 1": point + (L + 1).to_bytes(32, "little"),
        "all ones": point + b"\xff" * 32,
        "R and S exchanged": good[32:] + point,
        "R negated": bytes([*point[:31], point[31] ^ 0x80]) + good[32:],
        "a byte more": good + b"\x00",
        "a byte less": good[:-1],
        "nothing": b"",
        "64 zeros": bytes(64),
    }
    assert {what for what, signature in others.items() if accepts(public, MESSAGE, signature)} == set()


def small_points() -> list[Point]:
    """Return the eight points whose order divides 8."""
    y = next(
        y
        for y in range(2, 50)
        if is_point(y)
        and times(8 * L, recovered(y, odd=0)) == (0, 1)
        and times(4 * L, recovered(y, odd=0)) != (0, 1)
    )
    generator = times(L, recovered(y, odd=0))
    return [times(k, generator) for k in range(8)]


def is_point(y: int) -> bool:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    return pow(square, (P - 1) // 2, P) == 1


@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_a_key_of_small_order_is_never_trusted(order: int) -> None:
    """With S = 0 a signature holds where R = −h·A: one of eight R fits, and no secret is needed."""
    found = [point for point in small_points() if order_of(point) == order]
    assert len(found) == {1: 1, 2: 1, 4: 2, 8: 4}[order]
    forged = [encoded(other) + bytes(32) for other in small_points()]
    messages = [bytes([n]) for n in range(32)]
    for point in found:
        bare = Ed25519PublicKey.from_public_bytes(encoded(point))
        assert any(sealed.is_signature(one, text, bare) for one in forged for text in messages)
        assert not any(accepts(pem_of(encoded(point)), text, one) for one in forged for text in messages)
        with pytest.raises(CertkitError) as caught:
            keys.parse_public(pem_of(encoded(point)).encode(), where="test")
        assert caught.value.code == "key.unsupported"


def pem_of(public: bytes) -> str:
    spki = bytes.fromhex("302a300506032b6570032100") + public
    return f"-----BEGIN PUBLIC KEY-----\n{sealed.encode(spki)}\n-----END PUBLIC KEY-----\n"


def test_a_key_of_small_order_is_known_however_it_is_written() -> None:
    small = {point[1] for point in small_points()}
    for y in [*small, *(y + P for y in small if y + P < 2**255)]:
        for sign in (0, 1):
            written = (y | sign << 255).to_bytes(32, "little")
            with pytest.raises(CertkitError):
                keys.parse_public(pem_of(written).encode(), where="test")
    usual = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    assert keys.parse_public(keys.public_pem(usual).encode(), where="test") == usual


def order_of(point: Point) -> int:
    return next(k for k in (1, 2, 4, 8) if times(k, point) == (0, 1))
