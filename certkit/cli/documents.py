"""The documents that commands print with ``--json``, as structs from which the published schemas are made.

    emit(BundleSeal(digest=digest, files=3), screen)

Those of ``certkit registry`` stand in `certkit.cli.documents_registry`; a document that names a type of
another room stands beside the command that prints it, so that verifying a passport loads no evidence.
`tests/generate.py` finds every `Document` of the package and writes its schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from certkit.document import Count, Digest, Document, ErrorCode, GivenPath, Part, Text
from certkit.passport.terms import Reading

PdfMissing = Annotated[Text | None, Meta(description="why there is no PDF")]


class ReportedFault(Part, frozen=True, kw_only=True):
    """Something that is wrong with a line of evidence."""

    file: Text
    line: Count
    pointer: Text
    code: ErrorCode
    expected: Text
    found: Text
    hint: Annotated[Text, Meta(description="how to correct it")] | UnsetType = UNSET


class Failure(Part, frozen=True, kw_only=True):
    """What went wrong."""

    code: ErrorCode
    message: Text
    where: (
        Annotated[Text, Meta(description="the file, line or pointer that the error is about")] | UnsetType
    ) = UNSET
    hint: Annotated[Text, Meta(description="what to do about it")] | UnsetType = UNSET
    total: Annotated[Count, Meta(description="all faults; `faults` lists the first ones")] | UnsetType = UNSET
    faults: Sequence[ReportedFault] | UnsetType = UNSET


class Error(Document, frozen=True, kw_only=True, tag="urn:certkit:error:v1"):
    """What --json prints on standard output where a command fails."""

    error: Failure


class BundleInit(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-init:v1"):
    """What certkit bundle init prints."""

    bundle: GivenPath


class BundleSeal(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-seal:v1"):
    """What certkit bundle seal prints."""

    digest: Digest
    files: Count


class Simulation(Document, frozen=True, kw_only=True, tag="urn:certkit:simulation:v1"):
    """What certkit simulate prints."""

    bundle: GivenPath
    seed: Count
    records: Count


class ListedProfile(Part, frozen=True, kw_only=True):
    """A packaged profile."""

    id: Text
    title: Text | None
    reading: Reading
    digest: Digest


class Profiles(Document, frozen=True, kw_only=True, tag="urn:certkit:profiles:v1"):
    """The packaged profiles."""

    profiles: Sequence[ListedProfile]


class ProfileLint(Document, frozen=True, kw_only=True, tag="urn:certkit:profile-lint:v1"):
    """Faults of a profile; none: an empty list."""

    profile: Text
    faults: Sequence[Text]


class Show(Document, frozen=True, kw_only=True, tag="urn:certkit:show:v1"):
    """What a passport says; without a trust policy its signature is not checked."""

    passport_id: Digest | None
    verification: Annotated[
        Mapping[str, Any] | None, Meta(description="as urn:certkit:verification:v1; null: not checked")
    ]
    statement: Annotated[
        Mapping[str, Any] | None, Meta(description="as urn:certkit:passport:v1 says of the payload")
    ]


class Report(Document, frozen=True, kw_only=True, tag="urn:certkit:report:v1"):
    """What certkit report wrote."""

    html: GivenPath | None
    pdf: GivenPath | None
    pdf_missing: PdfMissing
    export: GivenPath | None


class TrustShow(Document, frozen=True, kw_only=True, tag="urn:certkit:trust-show:v1"):
    """A trust policy, and what is odd about it; an empty list where nothing is."""

    path: GivenPath
    policy: Annotated[Mapping[str, Any], Meta(description="as urn:certkit:trust:v1")]
    odd: Sequence[Text]
    cautions: Annotated[
        Sequence[Text], Meta(description="what the policy lets pass that a careful verifier would not")
    ]


class Key(Document, frozen=True, kw_only=True, tag="urn:certkit:key:v1"):
    """A public key; of one that was made, whether it is encrypted, and the key that it replaces."""

    id: Annotated[Digest, Meta(description="SHA-256 of the public key, SPKI in DER")]
    algorithm: Text
    pem: Annotated[Text, Meta(description="the public key")]
    encrypted: bool | UnsetType = UNSET
    replaces: Digest | UnsetType = UNSET


class Check(Part, frozen=True):
    """One thing looked at: ``ok``, ``missing`` (something optional cannot be done) or ``failed``."""

    name: Text
    state: Literal["ok", "missing", "failed"]
    found: Text
    hint: tuple[Text, ...] = ()


class InForce(Part, frozen=True, kw_only=True):
    """A setting, with where its value comes from."""

    name: Text
    value: str | int | None
    source: Text


class Doctor(Document, frozen=True, kw_only=True, tag="urn:certkit:doctor:v1"):
    """What this machine has and lacks."""

    certkit: Text
    ok: bool
    checks: Sequence[Check]
    settings: Annotated[Sequence[InForce], Meta(description="every setting, with where its value comes from")]
