"""in-toto Simple Verification Result: that a verifier has verified a passport, and with what result.

The predicate is https://in-toto.io/attestation/svr/v0.2 of in-toto/attestation: ``verifier`` with its
``policies``, ``timeCreated``, and ``properties`` that passed. The subjects are the agent and the passport.
Without a key it is the bare statement, which proves nothing; with one, a DSSE envelope.

A consumer compares properties as texts, so a specimen has none that a real passport has: ``CERTKIT_TIER_2``
becomes ``CERTKIT_SPECIMEN_TIER_2``. As in SLSA, a tier stands for those below it, which are not repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit import canonical
from certkit._version import __version__
from certkit.errors import UsageError
from certkit.passport import dsse, sealed
from certkit.passport.exports import words
from certkit.passport.statement import STATEMENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports.source import Source
    from certkit.passport.keys import PrivateKey

PREDICATE_TYPE: Final = "https://in-toto.io/attestation/svr/v0.2"
VERIFIER: Final = f"pkg:pypi/certkit@{__version__}"
"""Who verified, where the caller does not say: the program, by its package URL."""

SIGNED: Final = "application/vnd.in-toto.svr+dsse"

_STEPS: Final = {
    "registry": "REGISTERED",
    "status": "STATUS_CURRENT",
    "evidence": "EVIDENCE_UNCHANGED",
    "replay": "REPLAYED",
}
"""The steps that are made on demand, and the property of a passport that passed them."""


def write(source: Source, *, key: PrivateKey | None, verifier: str | None, **_: Any) -> tuple[str, str]:
    """Return the media type and the text of the result; see the package for the arguments."""
    document = _statement(source, verifier or VERIFIER)
    if key is None:
        return sealed.PAYLOAD_TYPE, canonical.pretty(document)
    envelope = dsse.sign(sealed.PAYLOAD_TYPE, canonical.canonical(document), key)
    return SIGNED, canonical.pretty(envelope)


def _statement(source: Source, verifier: str) -> dict[str, Any]:
    if ":" not in verifier or not verifier.isprintable() or " " in verifier:
        raise UsageError("usage.option", f"--verifier: {words.one_line(verifier)!r} is not a URI")
    agent, profile = source.predicate.agent, source.predicate.assessment.profile
    assert source.trust is not None  # noqa: S101 - only a verified passport gets here
    policy = canonical.digest(canonical.canonical(source.trust.to_dict()))
    return {
        "_type": STATEMENT_TYPE,
        "subject": [_resource(agent.name, agent.digest), _resource("agent passport", source.passport_id)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "verifier": {
                "id": verifier,
                "policies": [
                    _resource(f"profile {profile.id}", profile.digest),
                    _resource("trust policy (canonical JSON)", policy),
                ],
            },
            "timeCreated": words.utc(source.made),
            "properties": list(_properties(source)),
        },
    }


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}


def _properties(source: Source) -> Iterator[str]:
    judgement = source.predicate.assessment
    prefix = "CERTKIT_SPECIMEN" if source.is_specimen else "CERTKIT"
    yield f"{prefix}_PASSPORT_VERIFIED"
    if judgement.tier:
        yield f"{prefix}_TIER_{judgement.tier}"
    for name, attained in (("TABLE", judgement.table), ("BOUNDED", judgement.bounded)):
        if attained.tier:
            yield f"{prefix}_{name}_TIER_{attained.tier}"
    for step in source.verification.steps if source.verification else ():
        if step.status == "passed" and step.id in _STEPS:
            yield f"{prefix}_{_STEPS[step.id]}"
    if source.at != source.made:
        yield f"{prefix}_VERIFIED_AS_OF_{words.utc(source.at)}"
    yield f"{prefix}_VALID_UNTIL_{words.utc(source.predicate.validity.not_after)}"
