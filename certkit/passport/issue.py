"""Issuing: an evaluation becomes a signed passport.

    passport = issue(evaluation, issuer="Lab", key=key, not_before=now, not_after=now + VALIDITY)
    passport.passport_id                  # "sha256:…" of the payload, whatever the file looks like
    passport.to_json()                    # the bytes of passport.json

An unsealed bundle is refused, since its bytes could change under the signature. Simulated evidence gives a
specimen. The same evaluation, key and dates give the same payload.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from certkit.assessment.assess import RULES, assess
from certkit.ground import canonical
from certkit.ground.document import to_builtins
from certkit.ground.errors import InputError, UsageError
from certkit.passport import envelope, keys
from certkit.passport.keys import PrivateKey
from certkit.passport.passport import (
    MAX_VALIDITY,
    Issuer,
    Passport,
    Predicate,
    Statement,
    Validity,
    late_run,
    read_passport,
    read_statement,
    refuse_large,
    signed_summary,
    subject_of,
    triggers_of,
    write_statement,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.assessment.evaluation import Evaluation
    from certkit.bundle.facts import Relation
    from certkit.passport.keyless import Keyless

VALIDITY: Final = timedelta(days=90)
"""How long a passport is valid unless told otherwise."""
MAX_NAME: Final = 512


def issue(
    evaluation: Evaluation,
    *,
    issuer: str,
    key: PrivateKey | Keyless,
    not_before: datetime,
    not_after: datetime,
    relation_to_evaluator: Relation | None = None,
    relation_to_developer: Relation | None = None,
    supersedes: str | None = None,
    context: str | None = None,
    timestamp: Callable[[bytes], bytes] | None = None,
    now: datetime | None = None,
) -> Passport:
    """Return the signed passport of an evaluation.

    Args:
        evaluation: what was judged, with all its task rows or the 1,000 that are signed.
        issuer: the issuer's name.
        key: the private key, or somebody who signed in.
        not_before: begin of validity, aware; cut to whole seconds.
        not_after: end of validity, at most 366 days later.
        relation_to_evaluator: the issuer's, to who ran the evaluation.
        relation_to_developer: the issuer's, to the agent's developer.
        supersedes: the id of the passport that this one replaces.
        context: digest of the ``context.json`` with the answers of the question.
        timestamp: makes the RFC 3161 token of a key's signature, as `certkit.passport.timestamp.ask` does.
        now: the time of issuing, where it is known; no run may be later.

    Raises:
        UsageError: ``bundle.unsealed``, ``passport.validity``, ``usage.option`` or ``key.unsupported``.
        InputError: ``passport.too-large`` or ``passport.period-in-future``.
    """
    facts = evaluation.facts
    if not facts.sealed:
        raise UsageError(
            "bundle.unsealed",
            "the evidence is not sealed, so its bytes could change under the signature",
            hint="certkit bundle seal BUNDLE",
        )
    if not 1 <= len(issuer.strip()) <= MAX_NAME:
        raise UsageError("usage.option", f"the issuer's name has 1 to {MAX_NAME} characters")
    if supersedes is not None and not canonical.is_digest(supersedes):
        raise UsageError("usage.option", f"{supersedes!r} is not the id of a passport")
    start, end = _whole(not_before), _whole(not_after)
    if not timedelta(0) <= end - start <= MAX_VALIDITY:
        raise UsageError(
            "passport.validity", f"it ends before it begins, or is longer than {MAX_VALIDITY.days} days"
        )
    summary = signed_summary(evaluation.summary, evaluation.profile)
    refuse_large(to_builtins(summary))
    if late := late_run(facts, summary, min(now or start, start)):
        raise InputError(
            "passport.period-in-future",
            late,
            hint="--valid-from may not be before the last run; the records' clock or the period may be wrong",
        )
    key_id = keys.key_id(key.public_key()) if isinstance(key, PrivateKey) else key.key_id
    assessment = assess(summary, facts, evaluation.profile, evaluation.question)
    statement = Statement(
        subject=subject_of(facts),
        predicate=Predicate(
            rules=RULES,
            issuer=Issuer(
                name=issuer,
                key_id=key_id,
                relation_to_evaluator=relation_to_evaluator,
                relation_to_developer=relation_to_developer,
            ),
            facts=facts,
            summary=summary,
            profile=evaluation.profile,
            question=evaluation.question,
            assessment=assessment,
            validity=Validity(not_before=start, not_after=end, retest_triggers=triggers_of(assessment)),
            supersedes=supersedes,
            context=context,
        ),
    )
    payload = write_statement(statement)
    read_statement(payload)  # a verifier must accept what leaves here
    bundle = (
        envelope.seal(payload, key, timestamp=timestamp) if isinstance(key, PrivateKey) else key.seal(payload)
    )
    document = canonical.pretty(bundle).encode()
    if len(document) > canonical.MAX_BYTES:
        raise InputError(
            "passport.too-large",
            f"{len(document):,} bytes, and verifiers accept {canonical.MAX_BYTES:,}",
            hint="the evidence names too many domains or conditions for one passport",
        )
    passport = read_passport(document)
    if passport.payload != payload:
        raise AssertionError("the signer sealed another payload")
    return passport


def _whole(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise UsageError("passport.validity", "a time without an offset")
    return time.astimezone(UTC).replace(microsecond=0)
