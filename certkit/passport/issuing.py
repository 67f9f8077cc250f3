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

from certkit import canonical
from certkit.errors import InputError, UsageError
from certkit.passport import keys, sealed
from certkit.passport import statement as st
from certkit.passport.derived import last_run
from certkit.passport.keys import PrivateKey
from certkit.passport.opening import Passport, parse
from certkit.passport.payload import read, write
from certkit.passport.terms import CLOCK_SKEW, MAX_VALIDITY

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.assessment.result import Assessment
    from certkit.canonical import Digest
    from certkit.evidence.summary.summary import Summary
    from certkit.passport.keyless import Keyless
    from certkit.passport.terms import Relation

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

    signer = st.Issuer(
        name=issuer.name,
        key_id=keys.key_id(key.public_key()) if isinstance(key, PrivateKey) else key.key_id,
        relation_to_evaluator=issuer.relation_to_evaluator,
        relation_to_developer=issuer.relation_to_developer,
    )
    period = _period(not_before, not_after)
    statement = state(assessment, summary, issuer=signer, validity=period, supersedes=supersedes)
    _refuse_future(statement.predicate, now or not_before)
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


def _refuse_future(predicate: st.Predicate, now: datetime) -> None:
    """Raise `InputError` where a run is later than the signing, or than the beginning of the validity."""
    last, signed = last_run(predicate), min(now, predicate.validity.not_before)
    if last is not None and last - signed > CLOCK_SKEW:
        raise InputError(
            "passport.period-in-future",
            f"the runs last until {last:%Y-%m-%dT%H:%M:%SZ}, and the passport would be signed for"
            f" {signed:%Y-%m-%dT%H:%M:%SZ}",
            hint="--valid-from may not be before the last run; the records' clock or the period may be wrong",
        )


def _period(not_before: datetime, not_after: datetime) -> tuple[datetime, datetime]:
    if not_before.tzinfo is None or not_after.tzinfo is None:
        raise UsageError("passport.validity", "a time without an offset")
    start, end = (time.astimezone(UTC).replace(microsecond=0) for time in (not_before, not_after))
    if end <= start:
        raise UsageError("passport.validity", f"ends at {end:%Y-%m-%d}, not after {start:%Y-%m-%d}")
    if end - start > MAX_VALIDITY:
        raise UsageError(
            "passport.validity", f"{(end - start).days:,} days, at most {MAX_VALIDITY.days} are meaningful"
        )
    return start, end
