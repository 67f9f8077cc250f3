"""The runner of Sigstore's conformance suite, on a suite made here: it tells right from wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import conformance
from tests.support import passport_parts as maker
from tests.support.plain_bundles import DATA, INSTANCE, SIGNER, WHERE, WHO, plain
from tests.support.virtual_sigstore import compact

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.virtual_sigstore import Json


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a suite of five cases, all of which end as they must."""
    folder = tmp_path / conformance.CASES
    case(folder, "good", SIGNER.sign(DATA))
    case(folder, "other-artifact_fail", SIGNER.sign(DATA), artifact=b"else")
    case(folder, "other-identity_fail", SIGNER.sign(DATA), identity=b"b@example.com")
    (folder / "a.txt").write_bytes(DATA)
    key = {"key.pub": maker.pem(maker.P256).encode()}
    case(folder, "key", plain(maker.P256), **key)
    case(folder, "other-key_fail", plain(maker.ATTACKER), **key)
    return tmp_path


def case(folder: Path, name: str, bundle: Json, **files: bytes) -> None:
    (folder / name).mkdir(parents=True)
    given: dict[str, Any] = {
        "bundle.sigstore.json": compact(bundle),
        "trusted_root.json": compact(INSTANCE.trusted_root()),
        "identity": f"{WHO}\n".encode(),
        "issuer": f"{WHERE}\n".encode(),
        **files,
    }
    for file, data in given.items():
        (folder / name / file).write_bytes(data)


def test_a_suite_that_ends_as_it_must_is_told_case_by_case(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conformance.main([str(suite)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok    good: verified",
        "ok    key: verified",
        "ok    other-artifact_fail: passport.certificate",
        "ok    other-identity_fail: passport.untrusted-issuer",
        "ok    other-key_fail: dsse.signature",
        "5 of 5 cases end as they must, with a file and with its digest",
    ]


@pytest.mark.parametrize("name", ["good", "other-artifact_fail"])
def test_a_case_that_ends_otherwise_is_named_and_fails(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wrong = name.removesuffix("_fail") if name.endswith("_fail") else f"{name}_fail"
    folder = suite / conformance.CASES
    (folder / name).rename(folder / wrong)
    assert conformance.main([str(suite)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "4 of 5 cases end as they must, with a file and with its digest",
        f"{wrong}: no reason is known",
    ]
    monkeypatch.setitem(conformance.OPEN, wrong, "for a reason")
    assert conformance.main([str(suite)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{wrong}: for a reason"


def test_a_folder_that_is_no_suite_or_an_empty_one_does_not_pass(tmp_path: Path) -> None:
    assert conformance.main([str(tmp_path)]) == 2
    (tmp_path / conformance.CASES).mkdir(parents=True)
    assert conformance.main([str(tmp_path)]) == 1
