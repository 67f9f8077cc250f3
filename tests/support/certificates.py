"""Passports signed without a key, with the statement of a simulated bundle."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.support import keyless, passports
from tests.support import passport_parts as maker
from tests.support.keyless import AT, SIGNER
from tests.support.virtual_sigstore import compact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.virtual_sigstore import Json, Signer

START = AT - timedelta(seconds=30)
"""The beginning of the validity, a whole minute."""


def statement(key: Any = maker.LAB, **changes: Any) -> Json:
    """Return the statement that `key` issues from `START`; `changes` replace parts of its predicate."""
    made: Json = passports.document()
    made["predicate"]["issuer"]["key_id"] = maker.key_id(key)
    made["predicate"]["validity"] |= {
        "not_before": f"{START:%Y-%m-%dT%H:%M:%SZ}",
        "not_after": f"{START + timedelta(days=90):%Y-%m-%dT%H:%M:%SZ}",
    }
    made["predicate"] |= changes
    return made


def signed(signer: Signer = SIGNER, **changes: Any) -> Json:
    return signer.attest(compact(statement(signer.key, **changes)))


GOOD = signed()


def edited(change: Callable[[Json], object], base: Json = GOOD) -> Json:
    return keyless.edited(change, base)


def material(**changes: Any) -> Json:
    return edited(lambda d: d["verificationMaterial"].update(changes))
