"""A verified passport to export."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from certkit.passport.verify import verify
from tests.support.passports import KEY, NOW, evaluation, issued, trust

if TYPE_CHECKING:
    from certkit.passport.verify import Verification

AT = NOW + timedelta(days=1)


def source(key: Any = KEY, *, origin: str = "measured", **policy: Any) -> Verification:
    data = issued(evaluation(origin=origin), key=key).to_json()
    return verify(data, trust=trust(key, accept_specimens=True, **policy), at=AT)
