"""The published JSON Schemas of the documents that ``certkit registry`` makes; see `certkit.cli.schemas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

import msgspec

from certkit.assessment.drift.document import DriftDocument
from certkit.document import schema_of
from certkit.errors import CODES
from certkit.registry.entry import CLAIMS, Claims, Entry, Reason, Type
from certkit.registry.standing import Standing
from certkit.schema import (
    COUNT,
    DIGEST,
    FLAG,
    HASH,
    SHARE,
    SOME,
    TEXT,
    TIER,
    TIME,
    Schema,
    closed,
    document,
    listed,
    or_null,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIFT: Final = schema_of(DriftDocument)
STANDING: Final = schema_of(Standing)
_HEAD_OF_SCHEMA: Final = {"$schema", "$id", "$defs", "title", "description"}
_PATH: Final[Schema] = {**TEXT, "description": "a path as it was given"}
_VKEY: Final[Schema] = {**TEXT, "description": "C2SP verifier key"}
_HEAD: Final[dict[str, Schema]] = {"origin": TEXT, "size": COUNT, "root": HASH}
_TOLD: Final[dict[str, Schema]] = {
    "lineage": TEXT,
    **_HEAD,
    "signatures": {"enum": ["checked", "not checked"], "description": "of the entries, under a trust policy"},
    "left_out": {**listed(COUNT), "description": "entries that do not count under the policy"},
}
_STATUS: Final[Schema] = {"enum": ["current", "expired", "revoked", "superseded", "upcoming"]}
_REASON: Final[Schema] = or_null({"enum": list(get_args(Reason))})
_ENDED: Final[dict[str, Schema]] = {
    "status": {**or_null(_STATUS), "description": "of the passport that a passport entry logs"},
    "ended_by": {**or_null(COUNT), "description": "the entry that ended it"},
    "reason": _REASON,
}
_CODE: Final[Schema] = {"enum": list(CODES)}

_WITNESSES: Final[Schema] = listed(closed(vkey=_VKEY, time=TIME))
_WRITTEN: Final[dict[str, Schema]] = {"index": COUNT, "new": {**FLAG, "description": "false: it was there"}}
FOLLOWING: Final[dict[str, Schema]] = {
    "earlier": {
        **or_null(DIGEST),
        "description": "what it was compared with when it was logged",
    },
    "drift": {**or_null(DRIFT["properties"]["result"]), "description": "what that gave"},
}
ROWS: Final[dict[str, tuple[str, dict[str, Schema]]]] = {
    "registry-init": ("A new registry.", {"origin": TEXT, "vkey": _VKEY}),
    "registry-append": ("A logged passport.", {**_WRITTEN, "proof": _PATH, **FOLLOWING}),
    "registry-revoke": (
        "A logged revocation.",
        {
            **_WRITTEN,
            "passport_id": DIGEST,
            "also": {
                **listed(closed(passport_id=DIGEST, index=COUNT)),
                "description": "passports on the same evidence, each with the entry that revokes it",
            },
        },
    ),
    "registry-note": ("Logged words.", _WRITTEN),
    "registry-proof": (
        "A proof that an entry is in the log.",
        {"index": COUNT, "proof": {**TEXT, "description": "C2SP tlog-proof"}},
    ),
    "registry-checkpoint": (
        "The head of the log.",
        {**_HEAD, "vkey": _VKEY, "note": {**TEXT, "description": "signed"}},
    ),
    "registry-cosign": (
        "The witnesses of a checkpoint.",
        {
            **_HEAD,
            "added": _WITNESSES,
            "cosigned": {**_WITNESSES, "description": "all that are known"},
            "required": {**or_null(COUNT), "description": "null where the policy did not say who is known"},
            "ignored": {**listed(TEXT), "description": "names of unknown keys"},
        },
    ),
    "registry-export": (
        "A public tree that was written.",
        {"origin": TEXT, "size": COUNT, "before": or_null(COUNT), "written": COUNT},
    ),
    "registry-rotation": ("A new key of the log.", {"vkey": _VKEY, "size": COUNT}),
    "registry-audit": (
        "What an audit found.",
        {
            "result": {"enum": ["sound", "unsound"]},
            **_HEAD,
            "passports": COUNT,
            "total": {**COUNT, "description": "all findings; `findings` lists the first ones"},
            "findings": listed(closed(code=_CODE, where=TEXT, message=TEXT)),
            "notes": listed(TEXT),
            "not_shown": listed(TEXT),
        },
    ),
    "registry-search": (
        "The passports of a log that a search asked for, signatures not checked.",
        {
            "origin": TEXT,
            "passports": listed(
                closed(
                    index=COUNT,
                    passport_id=DIGEST,
                    lineage=TEXT,
                    agent=DIGEST,
                    profile=DIGEST,
                    tier=COUNT,
                    not_before=TIME,
                    not_after=TIME,
                    attempt=COUNT,
                    status=_STATUS,
                    ended_by=or_null(COUNT),
                    reason=_REASON,
                    limit={
                        **or_null(closed(value=SHARE, confidence=SHARE, k=or_null(COUNT))),
                        "description": "the lower limit of r_op, where the passports are sorted by standing",
                    },
                    label={
                        **or_null(TEXT),
                        "description": "why it comes after those in force, where they are sorted",
                    },
                )
            ),
        },
    ),
    "status": (
        "A passport's status for offline use, with the log's signed word on it.",
        {
            "says": TEXT,
            "checkpoint": TEXT,
            "word": TEXT,
            "entries": listed(closed(index=COUNT, entry=TEXT)),
        },
    ),
}


def larger() -> Iterator[tuple[str, Schema]]:
    """Yield the schemas that are more than a row."""
    yield "registry-list", _list_of_entries()
    yield "registry-show", _one_entry()
    yield "registry-history", _history()


def _entry() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """Return the properties of an entry as it is shown, and what they refer to."""
    (_, *claims), definitions = msgspec.json.schema_components(
        (Entry, *CLAIMS.values()), ref_template="#/$defs/{name}"
    )
    body = dict(definitions.pop("Entry")["properties"])
    del body["v"]
    return {"index": COUNT, "leaf": HASH, **body, "claims": {"anyOf": claims}}, definitions


def _list_of_entries() -> Schema:
    entry, definitions = _entry()
    about = "The entries of a log, oldest first; who signed them was not checked."
    made = document(
        "urn:certkit:registry-list:v1", about, origin=TEXT, entries=listed(closed(**entry, **_ENDED))
    )
    return {**made, "$defs": definitions}


def _one_entry() -> Schema:
    entry, definitions = _entry()
    about = "One entry of a log of that size, all of it read; who signed it was not checked."
    made = document("urn:certkit:registry-show:v1", about, size=COUNT, **entry, **_ENDED)
    return {**made, "$defs": definitions}


def _history() -> Schema:
    (_, *claims), definitions = msgspec.json.schema_components(
        (Claims, *CLAIMS.values()), ref_template="#/$defs/{name}"
    )
    row = closed(
        index=COUNT,
        issued_at=TIME,
        passport_id=DIGEST,
        agent=DIGEST,
        profile=DIGEST,
        tier=TIER,
        attempt=SOME,
        not_before=TIME,
        not_after=TIME,
        r_op={**or_null(SHARE), "description": "null where it was not measured, or the passport is not here"},
        drift={**or_null({"enum": ["DRIFTED", "IDENTITY_CHANGED"]}), "description": "what is logged of it"},
        status=_STATUS,
        ended_by={**or_null(COUNT), "description": "the entry that ended it"},
        reason=_REASON,
    )
    event = closed(index=COUNT, issued_at=TIME, type={"enum": list(get_args(Type))}, claims={"anyOf": claims})
    standing = {name: part for name, part in STANDING.items() if name not in _HEAD_OF_SCHEMA}
    definitions |= STANDING.get("$defs", {})
    made = document(
        "urn:certkit:registry-history:v1",
        "A lineage: its passports, oldest first, and what else the log says of it.",
        **_TOLD,
        standing=standing,
        passports=listed(row),
        events=listed(event),
    )
    return {**made, "$defs": definitions}
