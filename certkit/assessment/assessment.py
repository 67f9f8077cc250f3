"""The assessment: rows, tiers, verdict and findings, as one document that a passport signs.

Sentences are not part of it. A row or a finding names a code and its numbers; `certkit.assessment.words`
makes the sentence. Counts are integers, exact values have six decimals, bounds and probabilities nine.
"""

# Annotations are not postponed here: msgspec would compile each of them when it first reads such a struct.

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from certkit._version import __version__
from certkit.assessment.metric import Reason
from certkit.assessment.profile import Operator, Reading
from certkit.ground.document import Count, Part, Positive, TierKey, read_part
from certkit.ground.errors import Exit

Number = float | bool | None


class Status(StrEnum):
    """The result of a criterion."""

    MET = "met"
    NOT_MET = "not_met"
    INSUFFICIENT = "insufficient"
    NOT_TESTED = "not_tested"
    NOT_APPLICABLE = "not_applicable"


class TierStatus(StrEnum):
    """The result of a tier."""

    MET = "met"
    CONTESTED = "contested"
    NOT_MET = "not_met"
    INSUFFICIENT = "insufficient"


class Severity(StrEnum):
    """How much a finding should trouble a reader."""

    SERIOUS = "serious"
    WARNING = "warning"
    INFO = "info"


class FindingState(StrEnum):
    """What became of a serious finding."""

    OPEN = "open"
    ANSWERED = "answered"


_EXIT = {
    TierStatus.MET: Exit.OK,
    TierStatus.CONTESTED: Exit.INSUFFICIENT,
    TierStatus.NOT_MET: Exit.NEGATIVE,
    TierStatus.INSUFFICIENT: Exit.INSUFFICIENT,
}


class Answer(Part, frozen=True, kw_only=True):
    """An answer to a serious finding, as the issuer states it.

    Attributes:
        code: the finding.
        by: who answered.
        agreed_by: the independent reviewer who agrees.
    """

    code: str
    by: str
    agreed_by: str


class Question(Part, frozen=True, kw_only=True):
    """What else a verdict depends on.

    Attributes:
        required_tier: the tier whose status decides the exit code.
        strict: whether provisional rows decide.
        answers: answers to serious findings that count.
    """

    required_tier: Annotated[int, Meta(ge=1, le=9)] = 1
    strict: bool = False
    answers: tuple[Answer, ...] = ()


class Bounded(Part, frozen=True, kw_only=True):
    """A row with confidence limits.

    Attributes:
        status: whether the limit keeps the threshold; a row that averages do not meet is never met.
        bound: the limit that the truth passes with the confidence; null where none is taken.
        confidence: the tier's, raised for a later attempt.
        k: the tasks that carry the row, the fewest where it has parts.
        n: their runs.
        reason: why the row cannot be judged so, or what it rests on instead of a limit.
    """

    status: Status
    bound: float | None = None
    confidence: float
    k: Count | None = None
    n: Count | None = None
    reason: Reason | None = None


class Row(Part, frozen=True, kw_only=True):
    """A criterion at a tier, judged.

    Attributes:
        id: the row of the profile.
        metric: what is compared.
        tier: at which tier.
        operator: how, null where the tier does not specify the row.
        threshold: with what.
        value: the value on all runs.
        status: by averages.
        margin: by how much the value passes; positive passes, 0 under a strict operator does not.
        k: tasks that carry the value, the fewest where it has parts; null where no task does.
        reason: why the row is not judged.
        provisional: whether its paper calls it provisional: then it decides no tier, unless asked to.
        bounded: with confidence limits; null where the row has none.
    """

    id: str
    metric: str
    tier: Positive
    operator: Operator | None = None
    threshold: Number = None
    value: Number = None
    status: Status
    margin: float | None = None
    k: Count | None = None
    reason: Reason | None = None
    provisional: bool = False
    bounded: Bounded | None = None

    def deciding(self, reading: Reading) -> Status | None:
        """Return the status under a reading, None where the reading has none of this row."""
        if reading == "table":
            return self.status
        return None if self.bounded is None else self.bounded.status


class CoreRow(Part, frozen=True, kw_only=True):
    """A row whose value differs on core evidence.

    Attributes:
        id: the row.
        tier: at which tier.
        value: on core evidence; null where it has none.
        error: one standard error over tasks, in the metric's unit.
        n: the core runs.
        state: `lost`: met on all runs, and missed by more than one standard error or by more than the row's
            margin; `insufficient`: no core run; `differs`: another value, and no loss.
    """

    id: str
    tier: Positive
    value: float | None = None
    error: float | None = None
    n: Count = 0
    state: Literal["lost", "insufficient", "differs"]


class Tier(Part, frozen=True, kw_only=True):
    """One tier: its rows by status, and the status of the tier with those below it.

    Attributes:
        status: of the tier.
        met: rows that decide and are met.
        not_met: rows that decide and are measured and fail.
        insufficient: rows that decide and cannot be judged.
        not_tested: rows that decide and have no evidence.
        provisional: rows that do not decide and are not met.
        left_out: optional rows that no run is there for.
    """

    status: TierStatus
    met: tuple[str, ...] = ()
    not_met: tuple[str, ...] = ()
    insufficient: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()
    provisional: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class Attained(Part, frozen=True, kw_only=True):
    """The tier whose rows a reading meets, 0 for none."""

    tier: Count


class Verdict(Part, frozen=True, kw_only=True):
    """The highest tier that stands, the status of the tier asked for, and why.

    Attributes:
        tier: the highest tier that stands under the deciding reading; a contested tier does not.
        tier_strict: the same with provisional rows counted.
        required_tier: the tier asked for.
        status: its status.
        decides: the reading that decides.
        table: the tier whose rows averages meet, findings aside.
        bounded: the tier whose rows confidence limits meet, findings aside.
        binding: rows of the next tier that are neither met nor not applicable, the worst first.
    """

    tier: Count
    tier_strict: Count
    required_tier: Positive
    status: TierStatus
    decides: Reading
    table: Attained
    bounded: Attained
    binding: tuple[str, ...]

    @property
    def goal(self) -> int:
        """The tier that advice is about: the required one while it does not stand, else the next."""
        return max(self.tier + 1, self.required_tier)

    @property
    def exit_code(self) -> Exit:
        """0: the required tier stands; 1: a measured row fails; 4: evidence is missing, or contested."""
        return _EXIT[self.status]


class Finding(Part, frozen=True, kw_only=True):
    """One thing that a reader should know.

    Attributes:
        code: of ``templates/findings.toml``, where its sentence stands.
        severity: how grave it is.
        counts: the numbers and names that it compares.
        tier: a serious one contests this tier and those above it.
        state: of a serious one.
    """

    code: str
    severity: Severity
    counts: Mapping[str, int | float | str | tuple[str, ...]] = {}
    tier: Positive | UnsetType = UNSET
    state: FindingState | UnsetType = UNSET

    @property
    def is_open(self) -> bool:
        """Whether it contests a tier."""
        return self.state is FindingState.OPEN


class Tool(Part, frozen=True, kw_only=True):
    """The program that judged."""

    name: Literal["certkit"] = "certkit"
    version: str = __version__


class Assessment(Part, frozen=True, kw_only=True):
    """The judgement of a summary under a profile.

    Attributes:
        tool: the program that judged.
        criteria: every criterion at every tier, in the profile's order.
        core: rows whose value differs on core evidence.
        tiers: every tier by its number.
        verdict: what follows.
        findings: the gravest first.
    """

    tool: Tool = Tool()
    criteria: tuple[Row, ...]
    core: tuple[CoreRow, ...] = ()
    tiers: Mapping[TierKey, Tier]
    verdict: Verdict
    findings: tuple[Finding, ...] = ()

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The serious findings, open and answered."""
        return tuple(item for item in self.findings if item.severity is Severity.SERIOUS)


def read_assessment(value: Any, *, where: str | None = None) -> Assessment:
    """Return the assessment in JSON values.

    Raises:
        InputError: ``assessment.invalid`` naming the first fault.
    """
    return read_part(Assessment, value, "assessment.invalid", where)
