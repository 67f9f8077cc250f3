"""A2A agent card (Agent2Agent protocol 0.3 and 1.0) that names a passport, with a signature over the card.

The card gets an extension entry, ``capabilities.extensions[].uri = urn:certkit:agent-passport:v1``, and a
signature (specification 1.0, section 8.4: JWS, the payload detached, over the card without ``signatures`` in
RFC 8785 form) whose protected header carries the passport's id too. A signature that is there already stays,
and so must hold over the same card.

Readers differ on whether the signature covers members that are empty or have their default, so a card with
such a member is refused rather than signed in a form that only some of them verify. All values added here are
texts, since readers differ on numbers as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit import canonical
from certkit.errors import InputError
from certkit.passport import keys
from certkit.passport.exports import jose, words
from certkit.passport.statement import PREDICATE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports.source import Source
    from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/json"

_FALSE_BY_DEFAULT: Final = frozenset({"required", "pkceRequired"})


def write(source: Source, key: PrivateKey, card: Any) -> tuple[str, str]:
    """Return the media type and the card; raises `InputError` ``export.card``."""
    signatures = _check(card, source)
    named = _named(card, source)
    if signatures and named != card:
        raise _refused(
            "the card is signed already, and naming the passport in it would break that",
            "take 'signatures' out, and have the card signed again with the passport in it",
            "signatures",
        )
    body = {name: value for name, value in named.items() if name != "signatures"}
    header = {"typ": "JOSE", "kid": keys.key_id(key.public_key()), PREDICATE_TYPE: source.passport_id}
    signed = jose.sign(header, canonical.canonical(body), key)
    signatures = [*signatures, {"protected": signed.protected, "signature": signed.signature}]
    return MEDIA_TYPE, canonical.pretty({**body, "signatures": signatures})


def _check(card: Any, source: Source) -> list[Any]:
    """Refuse what is no card, or not this agent's, or is read in several ways; return its signatures."""
    if not isinstance(card, dict) or not isinstance(card.get("capabilities"), dict):
        raise _refused("not an agent card", "expected an object with name, version and capabilities")
    agent = source.predicate.agent
    for name, expected in (("name", agent.name), ("version", agent.version)):
        if card.get(name) != expected:
            named = words.one_line(str(card.get(name)))
            raise _refused(
                f"the card is of {named!r}, the passport of {words.one_line(expected)!r}",
                "the card's name and version are those of the agent in the passport",
                name,
            )
    signatures = card.get("signatures", [])
    extensions = card["capabilities"].get("extensions", [])
    if not isinstance(signatures, list) or not isinstance(extensions, list):
        raise _refused("not an agent card", "signatures and capabilities.extensions are lists")
    bare = {name: value for name, value in card.items() if name != "signatures"}
    bare["capabilities"] = {**card["capabilities"], "extensions": extensions or [{"uri": PREDICATE_TYPE}]}
    if doubtful := next(_doubtful(bare, ""), None):
        raise _refused(
            "empty, null or false by default: readers differ on whether a signature covers it",
            "leave it out of the card or fill it in",
            doubtful,
        )
    return signatures


def _doubtful(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of members that are empty, null, or false by their default."""
    if value is None or value in ("", [], {}):
        yield path
    elif isinstance(value, dict):
        for name, item in value.items():
            inner = f"{path}.{name}".lstrip(".")
            if item is False and name in _FALSE_BY_DEFAULT:
                yield inner
            yield from _doubtful(item, inner)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _doubtful(item, f"{path}[{place}]")


def _named(card: dict[str, Any], source: Source) -> dict[str, Any]:
    """Return the card with the one extension entry that names the passport."""
    entry, extensions = _extension(source), card["capabilities"].get("extensions", [])
    ours = [item for item in extensions if isinstance(item, dict) and item.get("uri") == PREDICATE_TYPE]
    if ours == [entry]:
        return card
    listed = [*(item for item in extensions if item not in ours), entry]
    return {**card, "capabilities": {**card["capabilities"], "extensions": listed}}


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


def _refused(message: str, hint: str, where: str | None = None) -> InputError:
    return InputError("export.card", message, where=where, hint=hint)
