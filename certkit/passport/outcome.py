"""The result of a verification: eleven steps, one verdict, one exit code.

Text, JSON and exit code are all taken from `Verification`. A step that failed is never outweighed; one
that was skipped is never counted as passed.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from certkit.document import Document, Part, Time
from certkit.errors import CertkitError, Exit
from certkit.passport.statement import Agent, Challenge, Statement

StepId = Literal[
    "parse",
    "envelope",
    "signature",
    "types",
    "subject",
    "validity",
    "registry",
    "status",
    "evidence",
    "replay",
    "policy",
]
STEPS: Final[tuple[StepId, ...]] = get_args(StepId)
"""The ids of the steps, in order; the first has number 1."""

UNTRUSTED: Final = "passport.untrusted-issuer"

_EXITS: Final[dict[StepId, Exit]] = {
    "parse": Exit.MALFORMED,
    "envelope": Exit.MALFORMED,
    "signature": Exit.NEGATIVE,
    "types": Exit.NEGATIVE,
    "subject": Exit.NEGATIVE,
    "validity": Exit.ENDED,
    "registry": Exit.MISMATCH,
    "status": Exit.ENDED,
    "evidence": Exit.MISMATCH,
    "replay": Exit.MISMATCH,
    "policy": Exit.UNTRUSTED,
}


class Step(Struct, frozen=True, kw_only=True):
    """A step: whether it passed, and in words the result or why it was not taken."""

    number: int
    id: StepId
    status: Literal["passed", "failed", "skipped"]
    code: str | None
    detail: str

    @property
    def exit_code(self) -> Exit:
        """The exit code of a verification that this step rejects."""
        return Exit.UNTRUSTED if self.code == UNTRUSTED else _EXITS[self.id]


def passed(name: StepId, detail: str) -> Step:
    """Return a step that passed."""
    return Step(number=STEPS.index(name) + 1, id=name, status="passed", code=None, detail=detail)


def failed(name: StepId, error: CertkitError) -> Step:
    """Return a step that failed."""
    return structs.replace(passed(name, str(error)), status="failed", code=error.code)


def skipped(name: StepId, code: str, detail: str) -> Step:
    """Return a step that was not taken."""
    return structs.replace(passed(name, detail), status="skipped", code=code)


class Profile(Struct, frozen=True, kw_only=True):
    """The profile that the claim was judged by; `known` tells who knows it by its digest, null for nobody."""

    id: str
    digest: str
    reading: str
    known: Literal["certkit", "policy"] | None


class SignedBy(Struct, frozen=True, kw_only=True):
    """The issuer who signed, by the name in the verifier's policy and by the name that the issuer states."""

    name: str
    stated_name: str
    key_id: str


class Claim(Part, frozen=True, kw_only=True):
    """The claim of a passport whose signature holds. The verdict tells whether it is accepted."""

    claim: str
    agent: Agent
    tier: int
    readings: dict[str, int]
    decides: str
    profile: Profile
    domains: tuple[str, ...]
    origin: str
    issuer: SignedBy
    not_before: Time
    not_after: Time
    challenges: tuple[Challenge, ...]


class Verification(Struct, frozen=True, kw_only=True):
    """The result of `certkit.passport.verify`.

    `claim` and `statement` are None unless the signature held and the payload is a passport.
    `at` is the time of verification, and `not_checked` says in words what was not verified.
    """

    at: datetime
    passport_id: str | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    steps: tuple[Step, ...]
    not_checked: tuple[str, ...]
    claim: Claim | None
    statement: Statement | None

    @property
    def deciding(self) -> Step | None:
        """The first step that failed, None where none did."""
        return next((step for step in self.steps if step.status == "failed"), None)

    @property
    def exit_code(self) -> Exit:
        """0 verified; that of the first failed step where rejected; 4 unverifiable."""
        if self.deciding is not None:
            return self.deciding.exit_code
        return Exit.OK if self.verdict == "verified" else Exit.INSUFFICIENT

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit verify --json`` prints."""
        return VerificationDocument(
            at=self.at.replace(microsecond=0),
            passport_id=self.passport_id,
            verdict=self.verdict,
            exit_code=int(self.exit_code),
            steps=self.steps,
            not_checked=self.not_checked,
            claim=self.claim or UNSET,
        ).to_dict()


class VerificationDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:verification:v1"):
    """The verification of a passport, as certkit verify prints it."""

    at: Annotated[Time, Meta(description="the time that it speaks of")]
    passport_id: Annotated[str, Meta(description="SHA-256 of the payload")] | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    exit_code: int
    steps: Annotated[tuple[Step, ...], Meta(min_length=len(STEPS), max_length=len(STEPS))]
    not_checked: tuple[str, ...]
    claim: Annotated[Claim, Meta(description="present only where the signature held")] | UnsetType = UNSET
