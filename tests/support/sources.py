"""A verified passport to export, and an agent card to export it into."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from certkit import passport
from tests.support.making import KEY, NOW, issued, trust

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


def source(key: Any = KEY, *, origin: str = "measured", **policy: Any) -> passport.Verification:
    data = issued(key=key, origin=origin).to_json()
    return passport.verify(data, trust=trust(key, accept_specimens=True, **policy), at=AT)
