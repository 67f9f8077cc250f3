"""What was logged along with a passport, in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certkit.cli import output

if TYPE_CHECKING:
    from certkit.registry.admission import Admitted


def document(logged: Admitted | None) -> dict[str, Any]:
    """Return with which earlier passport one was compared when it was logged, and what that gave."""
    found = logged.following if logged else None
    drift = found.drift if found else None
    return {"earlier": found.earlier if found else None, "drift": drift.result if drift else None}


def show(logged: Admitted) -> None:
    """Print it."""
    found = logged.following
    if found.drift is not None:
        output.wrapped(f"against passport {output.brief(found.earlier)}: {found.drift.result}", rest="  ")
    elif found.reason is not None:
        output.wrapped(f"not compared with the passport before it: {found.reason}", rest="  ")
