"""Trusted roots: their form, their windows, and that an older one does not replace a newer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import keyless, trusted_root
from certkit.passport.trust import Trust
from certkit.passport.trust import parse as parse_trust
from tests.support.documents import certkit
from tests.support.virtual_sigstore import Sigstore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.virtual_sigstore import Json

AT = datetime(2026, 2, 1, tzinfo=UTC)
DAY = timedelta(days=1)
INSTANCE = Sigstore.new(AT)
ROOT = INSTANCE.trusted_root()
WHO = ("ca", "ct", "log", "tsa")


def with_root(root: Any) -> Trust:
    return parse_trust(canonical.line({"schema": "urn:certkit:trust:v1", "trusted_root": root}), "trust.json")


def test_a_root_is_kept_as_it_was_written() -> None:
    assert with_root(ROOT).to_dict()["trusted_root"] == ROOT
    assert with_root(None).trusted_root is None


def without(change: Callable[[Json], object]) -> Json:
    document = canonical.loads(canonical.line(ROOT))
    change(document)
    return dict(document)


@pytest.mark.parametrize(
    "root",
    [
        [],
        {},
        {**ROOT, "mediaType": "application/json"},
        {**ROOT, "tlogs": {}},
        without(lambda d: d["tlogs"][0]["publicKey"]["validFor"].pop("start")),
        without(lambda d: d["tlogs"][0]["publicKey"].pop("validFor")),
        without(lambda d: d["ctlogs"][0]["publicKey"].update(rawBytes="")),
        without(lambda d: d["ctlogs"][0]["publicKey"].update(rawBytes="***")),
        without(lambda d: d["certificateAuthorities"][0]["validFor"].update(end="soon")),
        without(lambda d: d["certificateAuthorities"][0]["validFor"].update(end="2026-01-01T00:00:00")),
        without(lambda d: d["timestampAuthorities"][0]["certChain"].update(certificates=[])),
    ],
)
def test_a_root_of_another_form_is_refused_before_it_is_used(root: Any) -> None:
    with pytest.raises(CertkitError) as caught:
        with_root(root)
    assert (caught.value.code, caught.value.exit_code) == ("trust.invalid", 3)


def test_a_window_holds_both_its_ends() -> None:
    root = INSTANCE.trusted_root(log=AT)
    for time, kept in ((AT, 1), (AT + timedelta(microseconds=1), 0), (INSTANCE.start, 1)):
        assert len(trusted_root.within(root, [time])["tlogs"]) == kept
    assert trusted_root.within(root, [INSTANCE.start - DAY])["tlogs"] == []
    assert trusted_root.within(root, [INSTANCE.start, AT + DAY])["tlogs"] == []
    assert trusted_root.within(root, [AT])["ctlogs"] == root["ctlogs"]


@pytest.mark.parametrize("who", WHO)
def test_trusted_root_rollback_is_refused(who: str) -> None:
    ended = with_root(INSTANCE.trusted_root(**{who: AT}))
    for older in (ROOT, INSTANCE.trusted_root(**{who: AT + DAY})):
        with pytest.raises(CertkitError) as caught:
            ended.with_root(older)
        assert (caught.value.code, caught.value.exit_code) == ("trust.rollback", 8)
        assert "2026-02-01" in caught.value.message


@pytest.mark.parametrize("who", WHO)
def test_a_newer_root_replaces_an_older_one(who: str) -> None:
    sooner = INSTANCE.trusted_root(**{who: AT - DAY})
    for older in (ROOT, INSTANCE.trusted_root(**{who: AT}), sooner):
        assert with_root(older).with_root(sooner).trusted_root == sooner
    other = Sigstore.new(AT).trusted_root()
    assert with_root(sooner).with_root(other).trusted_root == other


def test_the_public_root_that_is_installed_is_one(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    root = keyless.public_root()
    trusted_root.check(root, "public")
    assert all(root[kind] for kind in trusted_root.KINDS)
    assert list(tmp_path.iterdir()) == []


def add(folder: Path, *options: str) -> tuple[int, Any]:
    return certkit("trust", "add", "--trust", str(folder / "trust.json"), "--json", *options)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    assert certkit("trust", "add", "--trust", str(tmp_path / "trust.json"), "--json")[0] == 0
    for name, root in (("older", ROOT), ("newer", INSTANCE.trusted_root(ct=AT))):
        (tmp_path / name).write_bytes(canonical.line(root))
    return tmp_path


def test_a_policy_takes_an_identity_and_a_root_and_no_older_one(written: Path) -> None:
    named = ("--issuer", "Lab", "--identity", "a@example.com", "--oidc-issuer", "https://example.com")
    code, document = add(written, *named, "--trusted-root", str(written / "newer"))
    assert code == 0
    assert document["issuers"] == [
        {
            "name": "Lab",
            "keys": [],
            "identities": [{"identity": "a@example.com", "issuer": "https://example.com"}],
        }
    ]
    assert document["trusted_root"] == canonical.loads((written / "newer").read_bytes())
    before = (written / "trust.json").read_bytes()
    code, document = add(written, "--trusted-root", str(written / "older"))
    assert (code, document["error"]["code"]) == (8, "trust.rollback")
    code, document = add(written, *named)
    assert (code, document["error"]["code"]) == (3, "trust.invalid")  # the same identity twice
    assert (written / "trust.json").read_bytes() == before
    assert add(written, "--trusted-root", "public")[1]["trusted_root"] == keyless.public_root()


@pytest.mark.parametrize(
    "options",
    [
        ("--identity", "a@example.com"),
        ("--issuer", "Lab", "--identity", "a@example.com"),
        ("--issuer", "Lab", "--oidc-issuer", "https://example.com"),
        ("--issuer", "L", "--identity", "a", "--oidc-issuer", "b", "--key", "key.pem"),
        ("--issuer", "L", "--identity", "a", "--oidc-issuer", "b", "--not-after", "2026-01-01"),
    ],
)
def test_half_an_identity_is_refused(written: Path, options: tuple[str, ...]) -> None:
    before = (written / "trust.json").read_bytes()
    code, document = add(written, *options)
    assert (code, document["error"]["code"]) == (2, "usage.option")
    assert (written / "trust.json").read_bytes() == before


def test_a_file_that_is_no_root_is_refused(written: Path) -> None:
    for data, code in ((b"{}", "trust.root"), (b"[]", "trust.root"), (b"", "json.syntax")):
        (written / "bad").write_bytes(data)
        assert add(written, "--trusted-root", str(written / "bad"))[1]["error"]["code"] == code


def test_the_policy_shows_who_is_trusted_and_what_is_missing(
    written: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from certkit.cli.main import main  # noqa: PLC0415 - the text, not the document

    add(written, "--issuer", "Lab", "--identity", "a@example.com", "--oidc-issuer", "https://example.com")
    shown = []
    for _ in range(2):
        main(["trust", "show", "--trust", str(written / "trust.json")])
        shown.append(capfdbinary.readouterr().out.decode())
        add(written, "--trusted-root", str(written / "older"))
    assert "signed in as a@example.com" in shown[0]
    assert "no identity counts" in shown[0]
    assert "certificate transparency log (1)" in " ".join(shown[1].split())
    assert max(len(line) for line in shown[1].splitlines()[1:]) <= 80
