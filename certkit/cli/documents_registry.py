"""The documents that ``certkit registry`` prints with ``--json``; see `certkit.cli.documents`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from certkit.document import BESIDE, Count, Digest, Document, GivenPath, Hash, Part, Share, Text, Tier
from certkit.registry.entry import Claims, DriftResult, Entry, Reason
from certkit.registry.standing import Limit
from certkit.registry.standing import Standing as LineageStanding
from certkit.registry.state import Standing

Vkey = Annotated[Text, Meta(description="C2SP verifier key")]
Moment = Annotated[Text, Meta(extra_json_schema={"format": "date-time"})]
EndedBy = Annotated[Count | None, Meta(description="the entry that ended it")]


class Head(Part, frozen=True, kw_only=True):
    """The state of a log."""

    origin: Text
    size: Count
    root: Hash


class Written(Part, frozen=True, kw_only=True):
    """An entry that was written, or that was there."""

    index: Count
    new: Annotated[bool, Meta(description="false: it was there")]


class Following(Part, frozen=True, kw_only=True):
    """What was logged along with a passport."""

    earlier: Annotated[Digest | None, Meta(description="what it was compared with when it was logged")]
    drift: Annotated[DriftResult | None, Meta(description="what that gave")]


class Issued(Document, frozen=True, kw_only=True, tag="urn:certkit:issued:v1"):
    """What certkit issue and certkit demo print."""

    passport: GivenPath
    passport_id: Digest
    tier: Tier
    index: Annotated[Count | None, Meta(description="the entry in the registry, null where not logged")]
    following: Annotated[Following, BESIDE]
    pdf_missing: Annotated[Text | None, Meta(description="why there is no PDF")]


class RegistryAppend(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-append:v1"):
    """A logged passport."""

    proof: GivenPath
    following: Annotated[Following, BESIDE]


class AlsoRevoked(Part, frozen=True, kw_only=True):
    """A passport on the same evidence, with the entry that revokes it."""

    passport_id: Digest
    index: Count


class RegistryRevoke(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-revoke:v1"):
    """A logged revocation."""

    passport_id: Digest
    also: Sequence[AlsoRevoked]


class RegistryNote(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-note:v1"):
    """Logged words."""


class RegistryProof(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-proof:v1"):
    """A proof that an entry is in the log."""

    index: Count
    proof: Annotated[Text, Meta(description="C2SP tlog-proof")]


class RegistryCheckpoint(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-checkpoint:v1"):
    """The head of a log, new, handed over to another key, or as it stands."""

    vkey: Vkey
    note: Annotated[Text, Meta(description="signed")]


class Cosigner(Part, frozen=True, kw_only=True):
    """A witness, and the time that it states."""

    vkey: Vkey
    time: Moment


class RegistryCosign(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-cosign:v1"):
    """The witnesses of a checkpoint."""

    added: Sequence[Cosigner]
    cosigned: Annotated[Sequence[Cosigner], Meta(description="all that are known")]
    required: Annotated[Count | None, Meta(description="null where the policy did not say who is known")]
    ignored: Annotated[Sequence[Text], Meta(description="names of unknown keys")]


class RegistryExport(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-export:v1"):
    """A public tree that was written."""

    origin: Text
    size: Count
    before: Count | None
    written: Count


class ListedEntry(Part, frozen=True, kw_only=True):
    """An entry of a log, and what became of the passport that it logs; null for entries of other types."""

    index: Count
    leaf: Hash
    entry: Annotated[Entry, BESIDE]
    status: Standing | None = None
    ended_by: EndedBy = None
    reason: Reason | None = None
    limit: Annotated[Limit | None, Meta(description="of r_op, where passports are sorted")] = None
    label: Annotated[Text | None, Meta(description="why a sorted passport comes after those in force")] = None


class RegistryList(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-list:v1"):
    """The entries of a log that were asked for; who signed them was not checked."""

    origin: Text
    size: Annotated[Count, Meta(description="all entries of the log")]
    entries: Sequence[ListedEntry]


class HistoryRow(Part, frozen=True, kw_only=True):
    """A passport of a lineage, and what became of it."""

    index: Count
    issued_at: Moment
    claims: Annotated[Claims, BESIDE]
    r_op: Annotated[
        Share | None, Meta(description="null where it was not measured, or the passport is not here")
    ]
    drift: Annotated[DriftResult | None, Meta(description="what is logged of it")]
    status: Standing
    ended_by: EndedBy
    reason: Reason | None


class RegistryHistory(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-history:v1"):
    """A lineage: its passports, oldest first, and what else the log says of it."""

    lineage: Text
    signatures: Annotated[
        Literal["checked", "not checked"], Meta(description="of the entries, under a trust policy")
    ]
    left_out: Annotated[Sequence[Count], Meta(description="entries that do not count under the policy")]
    standing: LineageStanding
    passports: Sequence[HistoryRow]
    events: Sequence[ListedEntry]
