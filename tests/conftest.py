"""Options and fixtures of the whole suite."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from certkit import report
from tests.support import demonstration as demonstrating
from tests.support import kept, undrawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.demonstration import Demonstration

ROOT = Path(__file__).parents[1]

# The same examples in every run: what fails here fails everywhere, and again. No time is asserted.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write tests/golden from what is printed now"
    )


_OUTSIDE = pytest.MonkeyPatch()
_STATE = tempfile.TemporaryDirectory()


def pytest_configure() -> None:
    """Let nothing in this process reach the network, from here on: loopback and UNIX sockets alone connect.

    Programs that tests run are not held back by this, but by `.ci/without-network` around the whole run.
    """
    for name in ("connect", "connect_ex"):
        _OUTSIDE.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    _OUTSIDE.setattr(socket, "getaddrinfo", _looked_up(socket.getaddrinfo))
    # A PDF takes seconds; tests of the drawing itself call `report.page.pdf`.
    _OUTSIDE.setattr(report, "pdf", undrawn.pdf)
    # What this user's own programs remember of logs is neither read nor changed.
    _OUTSIDE.setenv("XDG_STATE_HOME", _STATE.name)
    _OUTSIDE.setenv("XDG_CONFIG_HOME", _STATE.name)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves, which it would look through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure() -> None:
    _OUTSIDE.undo()
    _STATE.cleanup()


def _guarded(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not is_local(address[0]):
            # No Exception: what is tested must not be able to catch it.
            pytest.fail(f"a test reached for the network: {address[0]} port {address[1]}")
        return connect(self, address)

    return guarded


def _looked_up(look_up: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(host: str | bytes | None, *arguments: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name and name.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "this name exists nowhere, RFC 6761")
        if name and not is_local(name):
            pytest.fail(f"a test looked up a name: {name}")
        return look_up(host, *arguments, **named)

    return guarded


def is_local(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A variable of the person who runs the tests must not change what they say, nor they what it names.

    They run where no settings file stands, so that none is looked through at every command either.
    """
    monkeypatch.chdir(ROOT / "tests")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    for name in [*os.environ]:
        if name.startswith("CERTKIT_") and name != "CERTKIT_SLOW":
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """The demonstration, which is made once and only read."""
    return demonstrating.read(kept.once(tmp_path_factory, "demonstration", demonstrating.make))


@pytest.fixture
def shared() -> Path:
    """The folder of inputs that are no part of the project, or a skipped test where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is not here: published vectors and real logs are no part of the project")
    return folder
