"""The built packages work where nothing else is installed; slow, and needs the package index."""

from __future__ import annotations

import os

import pytest

from tests import wheel


@pytest.mark.skipif(
    os.environ.get("CERTKIT_SLOW") != "1" or os.environ.get("CERTKIT_NO_NETWORK") == "1",
    reason="builds and installs packages, which takes a minute and the package index; set CERTKIT_SLOW=1",
)
def test_wheel_and_source_distribution_run_the_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    assert wheel.main() == 0, capsys.readouterr().err
    assert capsys.readouterr().out.count("the demonstration runs") == 2
