"""``certkit issue --keyless`` and ``--timestamp`` against a Sigstore behind HTTP on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sigstore.errors import TUFError
from sigstore.models import ClientTrustConfig

from certkit.ground import canonical
from certkit.ground.errors import UnavailableError
from certkit.passport.keyless import Keyless
from tests.support.documents import certkit
from tests.support.passports import sealed_bundle
from tests.support.running import edit
from tests.support.sigstore_service import Service, token
from tests.support.virtual_sigstore import Sigstore, compact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AT = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
WHO, WHERE = "a@example.com", "https://accounts.example.com"
TOKEN = token(iss=WHERE, sub=WHO)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Service(Sigstore.new(AT), at=AT + timedelta(minutes=1)) as running:
        yield running


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return sealed_bundle(tmp_path / "bundle")


def issue(bundle: Path, *options: str) -> tuple[int, dict[str, Any]]:
    out = bundle.parent / "issued"
    base = ("issue", str(bundle), "--issuer", "Example Lab", "-o", str(out), "--valid-from", "2026-02-01")
    return certkit(*base, "--json", *options)


def keyless(service: Service, folder: Path, bearer: str = TOKEN) -> tuple[str, ...]:
    (folder / "token").write_text(bearer + "\n")
    (folder / "config.json").write_bytes(service.config())
    return (
        "--keyless",
        "--identity-token-file",
        str(folder / "token"),
        "--trust-config",
        str(folder / "config.json"),
    )


def code_of(answer: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    return (answer[0], answer[1]["error"]["code"])


def test_a_keyless_passport_is_issued_and_verified(service: Service, bundle: Path, tmp_path: Path) -> None:
    exit_code, document = issue(bundle, *keyless(service, tmp_path))
    assert exit_code == 0
    assert service.asked == ["/api/v2/signingCert", "/tsa", "/api/v2/log/entries"]
    assert not (tmp_path / "issued" / "public-key.pem").exists()
    policy, root = tmp_path / "trust.json", tmp_path / "root.json"
    root.write_bytes(compact(service.instance.trusted_root()))
    to = ("--trust", str(policy), "--json")
    named = ("--issuer", "Lab", "--identity", WHO, "--oidc-issuer", WHERE)
    assert certkit("trust", "add", *to, *named, "--trusted-root", str(root))[0] == 0
    edit(policy, require=["timestamp"])
    verify = ("verify", document["passport"], *to, "--at", "2026-03-01")
    exit_code, found = certkit(*verify)
    assert (exit_code, found["passport_id"]) == (0, document["passport_id"])
    assert found["claim"]["issuer"]["name"] == "Lab"
    other = ("--issuer", "Lab", "--identity", "b@example.com", "--oidc-issuer", WHERE)
    stranger = ("--trust", str(tmp_path / "other.json"), "--json")
    certkit("trust", "add", *stranger, *other, "--trusted-root", str(root))
    assert certkit("verify", document["passport"], *stranger, "--at", "2026-03-01")[0] == 8


def test_a_key_based_passport_is_timestamped_where_that_is_asked(
    service: Service, bundle: Path, tmp_path: Path
) -> None:
    key, public = str(tmp_path / "key.pem"), str(tmp_path / "public.pem")
    certkit("keys", "generate", "-o", key, "--public", public, "--json")
    exit_code, document = issue(bundle, "--key", key, "--timestamp", service.tsa)
    assert (exit_code, service.asked) == (0, ["/tsa"])
    policy, root = tmp_path / "trust.json", tmp_path / "root.json"
    root.write_bytes(compact(service.instance.trusted_root()))
    to = ("--trust", str(policy), "--json")
    certkit("trust", "add", *to, "--issuer", "Lab", "--key", public)
    edit(policy, require=["timestamp"])
    verify = ("verify", document["passport"], *to, "--at", "2026-03-01")
    assert certkit(*verify)[0] == 4  # nobody is trusted to tell the time yet
    certkit("trust", "add", *to, "--trusted-root", str(root))
    assert certkit(*verify)[0] == 0


def test_without_being_asked_nothing_reaches_the_network(
    service: Service, bundle: Path, tmp_path: Path
) -> None:
    key = str(tmp_path / "key.pem")
    certkit("keys", "generate", "-o", key, "--public", str(tmp_path / "public.pem"), "--json")
    assert issue(bundle, "--key", key)[0] == 0
    assert service.asked == []


@pytest.mark.parametrize(
    ("bearer", "code"),
    [
        ("token", "keyless.token"),
        (token(iss=WHERE, sub=WHO, exp=1_577_836_801), "keyless.token"),
        (token(iss=WHERE, sub=WHO, aud="somebody else"), "keyless.token"),
    ],
)
def test_a_token_that_is_none_leaves_nothing_behind(
    service: Service, bundle: Path, tmp_path: Path, bearer: str, code: str
) -> None:
    assert code_of(issue(bundle, *keyless(service, tmp_path, bearer))) == (2, code)
    assert service.asked == []
    assert not (tmp_path / "issued").exists()


def test_an_instance_that_fails_leaves_nothing_behind(service: Service, bundle: Path, tmp_path: Path) -> None:
    service.spoilt = "broken"
    assert code_of(issue(bundle, *keyless(service, tmp_path))) == (4, "keyless.failed")
    assert not (tmp_path / "issued").exists()


def test_nobody_signed_in_is_told_before_anything_is_asked(
    bundle: Path, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "BUILDKITE", "SIGSTORE_ID_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sigstore.oidc.detect_credential", lambda: None)  # it would look for a cloud's server
    config = tmp_path / "config.json"
    config.write_bytes(service.config())
    assert code_of(issue(bundle, "--keyless", "--trust-config", str(config))) == (2, "keyless.token")


def test_a_configuration_of_another_form_is_refused_and_never_leads_into_the_public_log(
    bundle: Path, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def public() -> None:
        raise AssertionError

    monkeypatch.setattr("sigstore.models.ClientTrustConfig.production", public)
    options = keyless(service, tmp_path)
    for data in (b"{}", b"", b"\xff", compact({**canonical.loads(service.config()), "trustedRoot": {}})):
        (tmp_path / "config.json").write_bytes(data)
        assert code_of(issue(bundle, *options)) == (3, "trust.root")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--key", "key.pem", "--keyless"),
        ("--keyless", "--timestamp", "https://tsa.example.com"),
        ("--keyless", "--registry", "registry"),
        ("--key", "key.pem", "--identity-token-file", "token"),
        ("--key", "key.pem", "--trust-config", "config.json"),
    ],
)
def test_options_that_contradict_are_refused(bundle: Path, options: tuple[str, ...]) -> None:
    assert code_of(issue(bundle, *options)) == (2, "usage.option")


def test_without_a_configuration_the_public_instance_is_asked(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def public() -> ClientTrustConfig:
        asked.append("public")
        return ClientTrustConfig.from_json(service.config().decode())

    monkeypatch.setattr("sigstore.models.ClientTrustConfig.production", public)
    signer = Keyless.sign_in(TOKEN, None)
    assert asked == ["public"]
    assert signer.named.matches(WHO, WHERE)
    assert service.asked == ["/api/v2/signingCert"]


def test_a_public_instance_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable() -> None:
        raise TUFError("no answer")

    monkeypatch.setattr("sigstore.models.ClientTrustConfig.production", unreachable)
    with pytest.raises(UnavailableError, match="cannot be reached") as caught:
        Keyless.sign_in(TOKEN, None)
    assert (caught.value.code, caught.value.exit_code) == ("keyless.failed", 4)
