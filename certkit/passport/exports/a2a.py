"""A2A agent card (Agent2Agent protocol 0.3 and 1.0) that names a passport, with a signature over the card.

The card gets an extension entry, ``capabilities.extensions[].uri = urn:certkit:agent-passport:v1``, and a
signature (specification 1.0, section 8.4: JWS, the payload detached, over the card without ``signatures`` in
RFC 8785 form) whose protected header carries the passport's id too. A signature that is there already stays,
and so must hold over the same card.

Readers differ on whether the signature covers members that are empty or have their default: the card is
signed as it stands, so leave such members out. All values added here are texts, since readers differ on
numbers as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit import canonical
from certkit.errors import InputError
from certkit.passport import keys
from certkit.passport.exports import jose, words
from certkit.passport.statement import PREDICATE_TYPE

if TYPE_CHECKING:
    from certkit.passport.exports.source import Source
    from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/json"


def write(source: Source, *, key: PrivateKey, card: Any, **_: Any) -> tuple[str, str]:
    """Return the media type and the card; raises `InputError` ``export.card``."""
    _check(card, source)
    entry, capabilities = _extension(source), card["capabilities"]
    extensions = capabilities.get("extensions", [])
    others = [
        item for item in extensions if not (isinstance(item, dict) and item.get("uri") == PREDICATE_TYPE)
    ]
    body = {name: value for name, value in card.items() if name != "signatures"}
    if extensions != [*others, entry]:
        if card.get("signatures"):
            raise InputError(
                "export.card",
                "the card is signed already, and naming the passport in it would break that",
                where="signatures",
                hint="take 'signatures' out, and have the card signed again with the passport in it",
            )
        body["capabilities"] = {**capabilities, "extensions": [*others, entry]}
    header = {"typ": "JOSE", "kid": keys.key_id(key.public_key()), PREDICATE_TYPE: source.passport_id}
    signed = jose.sign(header, canonical.canonical(body), key)
    signature = {"protected": signed.protected, "signature": signed.signature}
    return MEDIA_TYPE, canonical.pretty({**body, "signatures": [*card.get("signatures", []), signature]})


def _check(card: Any, source: Source) -> None:
    """Refuse what is no card, or not this agent's."""
    agent = source.predicate.agent
    whole = isinstance(card, dict) and isinstance(card.get("capabilities"), dict)
    lists = (card.get("signatures", []), card["capabilities"].get("extensions", [])) if whole else (None,)
    if not all(isinstance(part, list) for part in lists):
        hint = "expected an object with name, version and capabilities; signatures and extensions are lists"
        raise InputError("export.card", "not an agent card", hint=hint)
    if (card.get("name"), card.get("version")) != (agent.name, agent.version):
        named = words.one_line(f"{card.get('name')} {card.get('version')}")
        raise InputError(
            "export.card",
            f"the card is of {named!r}, the passport of {words.one_line(f'{agent.name} {agent.version}')!r}",
            hint="the card's name and version are those of the agent in the passport",
        )


def _extension(source: Source) -> dict[str, Any]:
    predicate, judgement = source.predicate, source.predicate.assessment
    return {
        "uri": PREDICATE_TYPE,
        "description": words.NOTICE,
        "params": {
            "passport_id": source.passport_id,
            "agent_digest": predicate.agent.digest,
            "claim": predicate.claim,
            "origin": predicate.origin,
            "profile_digest": judgement.profile.digest,
            "not_before": words.utc(predicate.validity.not_before),
            "not_after": words.utc(predicate.validity.not_after),
        },
    }
