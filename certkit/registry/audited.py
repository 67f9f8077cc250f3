"""What an audit has verified so far, and what it reports: findings, and the limits of any look at files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from certkit.document import Count, Document, ErrorCode, Hash, Part, Text, fill
from certkit.errors import Exit
from certkit.registry.rules import Rest
from certkit.registry.state import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from certkit.passport.keys import PublicKey
    from certkit.registry.entry import Claims, Logged
    from certkit.registry.state import Issued

NOT_SHOWN: Final = (
    (
        "whether a later state was undone by putting older files back: that takes a checkpoint remembered"
        " elsewhere, or a witness"
    ),
    "whether the log's key was used to sign a shorter or different log after this one: likewise",
    "whether others are shown a different log under the same key: likewise",
    "whether a passport was issued and never submitted",
)
NO_WITNESS: Final = (
    "anything that whoever holds the log's key may do by themselves: your policy asks for no witness, so only"
    " checkpoints that somebody remembers stand against the next three"
)
NO_PASSPORTS: Final = (
    "whether the passports say what the entries repeat, drifted as the entries tell, and were ended by their"
    " issuers: this tree holds none"
)


def unshown(k: int, witnessed: int | None, *, passports: bool) -> tuple[str, ...]:
    """Return what an audit could not see.

    `k` witnesses were asked for and vouch up to the time `witnessed` (seconds since 1970; None: they do
    not); `passports` says whether these were there.
    """
    more = () if passports else (NO_PASSPORTS,)
    if witnessed is None:
        return (*(() if k else (NO_WITNESS,)), *NOT_SHOWN, *more)
    time = datetime.fromtimestamp(witnessed, UTC).isoformat().replace("+00:00", "Z")
    who = "1 witness vouches" if k == 1 else f"{k} witnesses vouch"
    return (
        f"whether anything was undone or shown otherwise after {time}: up to then {who} that nothing was",
        NOT_SHOWN[-1],
        *more,
    )


class Finding(Struct, frozen=True):
    """Something that does not hold: what, where, and in words. `exit_code` is what it amounts to."""

    code: str
    where: str
    message: str
    exit_code: Exit = Exit.MISMATCH


class AuditFinding(Part, frozen=True, kw_only=True):
    """A finding of an audit."""

    code: ErrorCode
    where: Text
    message: Text


class AuditDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-audit:v1"):
    """What an audit found."""

    result: Literal["sound", "unsound"]
    origin: Text
    size: Count
    root: Hash
    passports: Count
    total: Annotated[Count, Meta(description="all findings; `findings` lists the first ones")]
    findings: Sequence[AuditFinding]
    notes: Sequence[Text]
    not_shown: Sequence[Text]


class Audit(Struct, frozen=True, kw_only=True):
    """What an audit found. `root` is made from the entries, whatever the checkpoint says.

    `total` counts findings, of which `findings` lists the first ones; `notes` tells what is unusual and
    harmless.
    """

    origin: str
    size: int
    root: str
    passports: int
    total: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    exit_code: Exit
    not_shown: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``certkit registry audit --json`` prints."""
        findings = [fill(AuditFinding, finding) for finding in self.findings]
        result = "unsound" if self.total else "sound"
        return fill(AuditDocument, self, result=result, findings=findings).to_dict()


class Verified(Policy):
    """The policy of an audit, which verifies signatures itself: of what it has verified, everything counts.

    `names` are the policy's names for keys, by id. `facts` are the issuer of each passport that verified, and
    what that rests on.
    """

    def __init__(self, origin: str, names: Mapping[str, str]) -> None:
        super().__init__(origin)
        self._known = names
        self.facts: dict[str, tuple[str | None, Rest]] = {}

    def name(self, logged: Logged) -> str:
        """Return the policy's name for who submitted an entry."""
        submitter = logged.found.entry.submitter
        return self._known.get(submitter, submitter)

    def signed(self, logged: Logged, by: Mapping[str, PublicKey] | None = None) -> bool:
        """See `Policy`."""
        return by is None or logged.found.entry.submitter in by

    def issuer(self, logged: Logged) -> str | None:
        """See `Policy`."""
        verified = self.facts.get(str(logged.found.passport_id))
        return (verified and verified[0]) or self.name(logged)

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """See `Policy`."""
        return self.name(logged) in issuers

    def rest(self, issued: Issued) -> Rest:
        """See `Policy`."""
        return self.evidence(issued.claims)

    def evidence(self, claims: Claims) -> Rest:
        """Return what a passport rests on: as it says itself where it verified, or else as its entry does."""
        verified = self.facts.get(claims.passport_id)
        return Rest(frozenset({claims.evidence})) if verified is None else verified[1]
