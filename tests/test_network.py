"""No test reaches the network, and what tries to is told whatever it catches.

Continuous integration runs the tests where there is no network at all, see `.ci/without-network`; then the
programs that tests run cannot reach it either.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import subprocess
import sys
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

OUTSIDE = "192.0.2.1"  # RFC 5737: an address for examples, where nobody is


def connect() -> None:
    with socket.socket() as found:
        found.connect((OUTSIDE, 80))


def connect_quietly() -> None:
    with socket.socket() as found:
        found.connect_ex((OUTSIDE, 80))


def connect_to_an_ipv6_address() -> None:
    with socket.socket(socket.AF_INET6) as found:
        found.connect(("2001:db8::1", 80))


def create_a_connection() -> None:
    socket.create_connection((OUTSIDE, 443), timeout=1)


def connect_with_tls() -> None:
    with (
        socket.socket() as plain,
        ssl.create_default_context().wrap_socket(plain, server_hostname="example.com") as found,
    ):
        found.connect((OUTSIDE, 443))


def look_up() -> None:
    socket.create_connection(("example.com", 443), timeout=1)


def open_a_page() -> None:
    urllib.request.urlopen(f"http://{OUTSIDE}/", timeout=1)


def open_from_a_loop() -> None:
    async def reach() -> None:
        await asyncio.open_connection(OUTSIDE, 80)

    asyncio.run(reach())


@pytest.mark.parametrize(
    "reach",
    [
        connect,
        connect_quietly,
        connect_to_an_ipv6_address,
        create_a_connection,
        connect_with_tls,
        look_up,
        open_a_page,
        open_from_a_loop,
    ],
)
def test_whoever_reaches_for_the_network_fails(reach: Callable[[], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"network|name"), suppress(Exception):
        reach()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_can_be_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((host, port)) as found:
            assert found.getpeername() == ("127.0.0.1", port)


def test_a_name_that_exists_nowhere_is_not_looked_up() -> None:
    with pytest.raises(socket.gaierror):
        socket.create_connection(("certkit.invalid", 80), timeout=1)


@pytest.mark.skipif(
    os.environ.get("CERTKIT_NO_NETWORK") != "1",
    reason="the network is not cut off here; '.ci/run' does it where the system lets it",
)
def test_where_the_network_is_cut_off_no_program_reaches_it() -> None:
    reach = f"import socket; print(socket.socket().connect_ex(({OUTSIDE!r}, 80)))"
    done = subprocess.run(
        [sys.executable, "-c", reach], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) == errno.ENETUNREACH
