"""Benchmark: what certkit adds to a signature, as shares of bare `cryptography` in the same run.

    python -m tests.bench_signing

Signs and verifies DSSE envelopes of one payload. On the bare side the same key object, loaded before, signs
and verifies the same bytes, the pre-authentication encoding of that payload, made before; on certkit's side
stands all that makes an envelope of a payload, or gives the payload of an envelope: the encoding that is
signed, base64 written and strictly read, the form of the envelope. Both sides take turns, a few dozen calls
each, and what is printed is the median of the turns' ratios: whatever else slows the machine slows both.
Exits with 1 where a share is below `LIMIT`.

Below it, for information, what a whole verification of a passport costs: eleven steps over a statement with
its rows, nearly all of it strict JSON.
"""

from __future__ import annotations

import statistics
import sys
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.passport.verify import verify
from tests.support.signers import ALGORITHMS, signed_payload

if TYPE_CHECKING:
    from collections.abc import Callable

PAYLOAD, CALLS, TURNS = 32_768, 50, 41
"""Bytes of the payload that is signed, about those of a passport; calls in a turn, and turns."""

LIMIT = 0.5
"""Least share of bare cryptography's rate."""

KIND = "application/vnd.in-toto+json"


def shares() -> bool:
    """Print the shares of both key types; tell whether all of them reach the limit."""
    payload = bytes(range(256)) * (PAYLOAD // 256)
    message = dsse.pae(KIND, payload)
    worst = 1.0
    for name in ALGORITHMS:
        key = keys.generate(name)
        public, envelope = key.public_key(), dsse.sign(KIND, payload, key)
        scheme = () if isinstance(key, Ed25519PrivateKey) else (ec.ECDSA(hashes.SHA256()),)
        sign: Callable[..., bytes] = key.sign
        check: Callable[..., None] = public.verify
        for what, ours, bare in (
            ("sign", partial(dsse.sign, KIND, payload, key), partial(sign, message, *scheme)),
            (
                "verify",
                partial(signed_payload, envelope, public),
                partial(check, sign(message, *scheme), message, *scheme),
            ),
        ):
            rate, peer, share = compare(ours, bare)
            worst = min(worst, share)
            print(
                f"{name} {what}: {share:.2f} of bare cryptography, limit {LIMIT:.2f}"
                f" ({rate:,.0f}/s to {peer:,.0f}/s; {PAYLOAD:,} bytes; median of {TURNS} turns)"
            )
    return worst >= LIMIT


def compare(ours: Callable[[], object], bare: Callable[[], object]) -> tuple[float, float, float]:
    """Return the median rates per second of two calls that take turns, and the median of their ratios."""
    found = []
    for turn in range(TURNS + 1):
        pair = rate(ours), rate(bare)
        if turn:  # the first one warms both
            found.append(pair)
    rates, peers = zip(*found, strict=True)
    ratios = [one / other for one, other in found]
    return statistics.median(rates), statistics.median(peers), statistics.median(ratios)


def rate(call: Callable[[], object], calls: int = CALLS) -> float:
    """Return how often per second a call is made."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return calls / (time.perf_counter() - start)


def whole() -> None:
    """Print what all steps of a verification cost, beside the signature alone."""
    from tests.support import passports  # noqa: PLC0415 - the other benchmarks measure memory beside it

    for name in ALGORITHMS:
        key = keys.generate(name)
        found, trust = passports.issued(key=key), passports.trust(key)
        data, at = found.to_json(), passports.NOW + timedelta(days=1)
        call = partial(verify, data, trust=trust, at=at)
        speed = statistics.median(rate(call) for _ in range(9))
        print(f"{name}: {speed:,.0f} whole verifications/s of a passport of {len(data):,} bytes")


def main() -> None:
    """Run the command line."""
    good = shares()
    whole()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
