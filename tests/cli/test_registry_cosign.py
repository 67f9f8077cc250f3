"""Witnesses, as the command line takes their cosignatures in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground import canonical
from tests.support.one_passport import append, place  # noqa: F401 - a fixture is used by its name
from tests.support.registries import contents
from tests.support.running import certkit
from tests.support.signers import Signer
from tests.support.two_passports import checkpoint

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = (
    Signer(f"w{seed}.example", Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)) for seed in (7, 8)
)
AT = 1_767_225_600  # 2026-01-01


@pytest.fixture
def logged(place: Path) -> Path:  # noqa: F811 - the same
    """The folder with one passport logged, and a policy that asks for two witnesses."""
    assert certkit(*append(place)).code == 0
    trust = canonical.loads((place / "trust.json").read_bytes())
    trust["witnesses"] = {"k": 2, "keys": [str(one.witness_vkey) for one in (ONE, TWO)]}
    (place / "trust.json").write_bytes(canonical.canonical(trust))
    return place


def lines(folder: Path, witness: Signer, time: int = AT) -> Path:
    text = checkpoint(folder / "registry").decode().partition("\n\n")[0] + "\n"
    path = folder / witness.name
    path.write_text(witness.cosign(text, time).line)
    return path


def cosign(folder: Path, *files: Path, more: tuple[object, ...] = ()) -> tuple[object, ...]:
    policy = ("--trust", folder / "trust.json")
    return ("registry", "cosign", folder / "registry", *files, *(more or policy))


def revoking(folder: Path) -> tuple[object, ...]:
    key = ("--reason", "issued-in-error", "--key", folder / "key.pem", "--trust", folder / "trust.json")
    return ("registry", "revoke", folder / "registry", 0, *key)


def test_a_quorum_is_gathered_and_an_audit_counts_it(logged: Path) -> None:
    audit = ("registry", "audit", logged / "registry", "--trust", logged / "trust.json")
    assert "registry.witnesses" in certkit(*audit).out
    first = certkit(*cosign(logged, lines(logged, ONE)))
    assert (first.code, first.err) == (0, "")
    assert first.out == (
        "cosigned by w7.example at 2026-01-01T00:00:00Z\n"
        "checkpoint over 1 entry: 1 cosignature, and the policy asks for 2\n"
    )
    second = certkit(*cosign(logged, lines(logged, ONE), lines(logged, TWO)))
    assert second.out.splitlines()[-1] == "checkpoint over 1 entry: 2 cosignatures, and the policy asks for 2"
    assert certkit(*audit).code == 0
    shown = checkpoint(logged / "registry").decode()
    assert [line.split()[1] for line in shown.splitlines()[-2:]] == ["w7.example", "w8.example"]
    again = certkit(*cosign(logged, lines(logged, TWO)), "--json").document
    assert (again["size"], len(again["cosigned"]), again["required"]) == (1, 2, 2)


def test_a_line_of_nobody_known_is_passed_over(logged: Path) -> None:
    stranger = Signer("other.example", Ed25519PrivateKey.from_private_bytes(b"\x09" * 32))
    both = lines(logged, ONE)
    both.write_text(both.read_text() + lines(logged, stranger).read_text())
    done = certkit(*cosign(logged, both))
    assert (done.code, done.out.splitlines()[1:]) == (
        0,
        [
            "checkpoint over 1 entry: 1 cosignature, and the policy asks for 2",
        ],
    )


@pytest.mark.parametrize(
    ("case", "code", "exit_code"),
    [
        ("unknown", "tlog.unsigned", 7),
        ("future", "registry.cosignature", 7),
        ("older", "tlog.signature", 7),
        ("missing", "file.missing", 3),
        ("nothing", "usage.option", 2),
    ],
)
def test_refusals_leave_nothing(logged: Path, case: str, code: str, exit_code: int) -> None:
    stranger = Signer("other.example", Ed25519PrivateKey.from_private_bytes(b"\x09" * 32))
    old = lines(logged, TWO)
    words: tuple[object, ...] = {
        "unknown": lambda: cosign(logged, lines(logged, stranger)),
        "future": lambda: cosign(logged, lines(logged, ONE, 2**40)),
        "older": lambda: cosign(logged, old),
        "missing": lambda: cosign(logged, logged / "none"),
        "nothing": lambda: cosign(logged),
    }[case]()
    if case == "older":
        assert certkit(*revoking(logged)).code == 0
    before = contents(logged / "registry")
    done = certkit(*words, "--json")
    assert (done.code, done.document["error"]["code"]) == (exit_code, code)
    assert contents(logged / "registry") == before
