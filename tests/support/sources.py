"""A verified passport to export, and an agent card to export it into."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from certkit.passport.verification import verify
from tests.support.making import KEY, NOW, issued, trust

if TYPE_CHECKING:
    from certkit.passport.opening import Verification

AT = NOW + timedelta(days=1)
CARD: dict[str, Any] = {
    "name": "courier",
    "description": "Carries things.",
    "version": "1.0",
    "supportedInterfaces": [
        {"url": "https://a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "c", "name": "Carry", "description": "Carries.", "tags": ["carry"]}],
}


def source(key: Any = KEY, *, origin: str = "measured", **policy: Any) -> Verification:
    data = issued(key=key, origin=origin).to_json()
    return verify(data, trust=trust(key, accept_specimens=True, **policy), at=AT)
