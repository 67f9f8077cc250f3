"""Issuing: an assessment becomes a signed passport.

    passport = issue(assessment, summary, issuer=Issuer(name="Lab"), key=key,
                     not_before=now, not_after=now + timedelta(days=90))
    passport.passport_id                  # "sha256:…" of the payload, whatever the file looks like
    passport.to_json()                    # the bytes of passport.json

An unsealed bundle is refused, since its bytes could change under the signature. Evidence that is simulated
gives a specimen, which says so in its name. The same assessment, key type and dates give the same payload.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.document import fill
from certkit.ground.errors import InputError, UsageError
from certkit.passport import keys, sealed
from certkit.passport import statement as st
from certkit.passport.derived import late
from certkit.passport.keys import PrivateKey
from certkit.passport.opening import Passport, parse
from certkit.passport.payload import read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.assessment.result import Assessment
    from certkit.ground.canonical import Digest
    from certkit.passport.keyless import Keyless
    from certkit.passport.statement import Relation
    from certkit.summary.summary import Summary

VALIDITY: Final = timedelta(days=90)
"""How long a passport is valid unless told otherwise."""

MAX_NAME: Final = 512


class Issuer(Struct, frozen=True, kw_only=True):
    """Who issues, and their relation to the evaluator and to the agent's developer, where they state it."""

    name: str
    relation_to_evaluator: Relation | None = None
    relation_to_developer: Relation | None = None


def issue(
    assessment: Assessment,
    summary: Summary,
    *,
    issuer: Issuer,
    key: PrivateKey | Keyless,
    not_before: datetime,
    not_after: datetime,
    supersedes: Digest | None = None,
    timestamp: Callable[[bytes], bytes] | None = None,
    now: datetime | None = None,
) -> Passport:
    """Return the signed passport of an assessment made from `summary`.

    Times are aware and are cut to whole seconds. No run may be later than the beginning of the validity, nor
    than `now`, where that is given. `supersedes` is the id of the passport that this one
    replaces. `timestamp` makes the RFC 3161 token of a key's signature, as `certkit.passport.timestamp.ask`
    does; other signers see to it themselves. Raises `UsageError` ``bundle.unsealed``, ``passport.validity``,
    ``usage.option`` or ``key.unsupported``, and `InputError` ``passport.too-large`` or
    ``passport.period-in-future``.
    """
    if not assessment.facts.sealed:
        raise UsageError(
            "bundle.unsealed",
            "the evidence is not sealed, so a passport could not say what it rests on",
            hint="certkit bundle seal BUNDLE",
        )
    if not 1 <= len(issuer.name.strip()) <= MAX_NAME:
        raise UsageError("usage.option", f"the issuer's name has 1 to {MAX_NAME} characters")
    if supersedes is not None and not canonical.is_digest(supersedes):
        raise UsageError("usage.option", f"{supersedes!r} is not the id of a passport")
    from certkit.passport.claim import state  # noqa: PLC0415 - verification needs none of it

    key_id = keys.key_id(key.public_key()) if isinstance(key, PrivateKey) else key.key_id
    statement = state(
        assessment,
        summary,
        issuer=fill(st.Issuer, issuer, key_id=key_id),
        validity=(_whole(not_before), _whole(not_after)),
        supersedes=supersedes,
    )
    if future := late(statement.predicate, min(now or not_before, not_before)):
        raise InputError(
            "passport.period-in-future",
            future,
            hint="--valid-from may not be before the last run; the records' clock or the period may be wrong",
        )
    payload = write(statement)
    bundle = (
        sealed.seal(payload, key, timestamp=timestamp) if isinstance(key, PrivateKey) else key.seal(payload)
    )
    document = canonical.pretty(bundle).encode()
    if len(document) > canonical.MAX_BYTES:
        raise InputError(
            "passport.too-large",
            f"{len(document):,} bytes, and verifiers accept {canonical.MAX_BYTES:,}",
            hint="the evidence names too many domains or conditions for one passport",
        )
    read(payload)  # what leaves here must be what a verifier accepts
    passport = parse(document)
    if passport.payload != payload:
        raise AssertionError("the signer sealed another payload")
    return passport


def _whole(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise UsageError("passport.validity", "a time without an offset")
    return time.astimezone(UTC).replace(microsecond=0)
