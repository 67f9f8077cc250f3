"""What starting the program loads: help and completion must not pay for what they do not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.running import HEAVY, loaded


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("bundle", "--help")])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments) & set(HEAVY) == set()


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, certkit; certkit.CertkitError; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & set(HEAVY) == set()


def test_the_package_names_what_it_promises() -> None:
    import certkit  # noqa: PLC0415 - after the tests that look at a fresh interpreter

    for name in certkit.__all__:
        assert getattr(certkit, name) is not None
    assert dir(certkit) == sorted(certkit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'surprise'"):
        certkit.surprise  # noqa: B018 - looked up, which is the test
