"""The summary of a bundle's records: exact integers, and everything that a judgement needs.

A `Summary` is its own JSON document. `summarise` makes it from a bundle, a passport carries it, and `assess`
reads nothing else of the records:

    summary = summarise(bundle)
    read_summary(summary.to_dict()) == summary

What it holds of runs and tasks:

- `cells`: counts and sums of the runs of each split x domain x condition x effect.
- `shares`: series of yes-or-no results, as rows ``[runs, successes, tasks]``: so many tasks had so many runs,
  of which so many succeeded. `means`: series of scores, as rows ``[runs, tasks, sum of y, sum of y²]`` for
  tasks with the same number of runs. `pairs`: two series side by side, as rows
  ``[runs_a, runs_b, tasks, sum y_a, sum y_b, sum y_a·y_b]`` over the tasks that have both.
- `core`: the same series on core evidence (`certkit.assessment.core`). There a task is a `task_id`; elsewhere
  runs of one `cluster_id` are one task.
- `pei_terms`: the exact terms of the planning efficiency. `latest`: the runs that CSI looks at.
- `thirds`: success of the last third of each domain's ordered fault runs.
- `tasks`: up to 1,000 tasks under salted tags, with which passports are compared.

A summary whose parts disagree is refused when it is made or read: sums that cannot be must not reach a
division. This module loads neither numpy nor pydantic, since `verify` reads it. It knows no threshold.
"""

# Annotations are not postponed here: msgspec would compile each of them when it first reads such a struct.

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.ground.canonical import MAX_INTEGER
from certkit.ground.document import Document, Part, read_part
from certkit.ground.wording import many
from certkit.record.record import SINGLE_FAULTS, Condition, Split, is_fault

Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Large = int | Annotated[str, Meta(pattern=r"^[1-9][0-9]{15,59}$(?!\n)")]
"""A sum that may exceed 2^53 − 1; JSON holds it as text then. In Python it is always an int."""

Text = Annotated[str, Meta(min_length=1, max_length=512)]
Row3 = tuple[Count, Count, Count]
Row4 = tuple[Count, Count, Large, Large]
Row6 = tuple[Count, Count, Count, Large, Large, Large]
Term = tuple[Count, Large]

WINDOW: Final = 100
"""Runs that CSI looks at, [26] §3.6."""
MOST_TASKS: Final = 1_000
"""Tasks with rows in a signed summary; a task has a row for each of its domains."""
MOST_DOMAINS: Final = 1_000
"""Domains in a signed summary."""
MOST_BYTES: Final = 2 * 1024 * 1024
"""Size of a signed summary."""
EXACT_TERMS: Final = 4096
"""Distinct denominators up to which a mean PEI is an exact fraction; with more it is rounded at 2^−256."""
THOUSANDTHS: Final = 1_000
"""The finest scale of a task column."""
PEI_UNIT: Final = 2**30
"""Fixed point of PEI in cells."""

SCALE: Final[dict[str, int]] = {
    "frr": 10,
    "frr_2025": 2,
    "pei": 10**6,
    "pei_fault": 10**6,
    "pei_2025": 10**6,
    "ti": 1000,
    "violations": 1,
    "pei_normal": 10**6,
    "ti_normal": 1000,
    "ti_fault": 1000,
    "violations_normal": 1,
    "violations_fault": 1,
}
"""By how much the y of a mean series is multiplied, so that it is an integer."""
MOST: Final[dict[str, int | None]] = {
    **dict.fromkeys(SCALE, None),
    **dict.fromkeys(("frr", "pei", "pei_fault", "pei_2025", "frr_2025", "pei_normal"), 1),
    **dict.fromkeys(("ti", "ti_normal", "ti_fault"), 5),
    "violations": 5,
}
"""The largest value of a run in a mean series; None where there is none.

`violations` counts up to five a run, where the quality factor of [26] eq. 5 is 0; its core series count all.
"""
SHARES: Final = (
    "c_nom",
    "r_op",
    "single",
    "cascade",
    "adversarial_resistance",
    "attack_success_rate",
    "irs",
    "cn_frr",
    "safe_halt_on_risk",
    "novel_fault",
    "harness_errors",
)
MEANS: Final = ("frr", "frr_2025", "pei", "pei_fault", "pei_2025", "ti", "violations")
CORE_SHARES: Final = (
    *("normal", "fault", "held_out", "single", "cascade"),
    *("adversarial_resistance", "attack_success_rate", "irs"),
)
CORE_MEANS: Final = (
    "frr",
    "pei_normal",
    "pei_fault",
    "ti_normal",
    "ti_fault",
    "violations_normal",
    "violations_fault",
)
PAIRS: Final = {"cascade_penalty": ("single", "cascade"), "gap": ("c_nom", "r_op")}
BY_DOMAIN: Final = frozenset({"c_nom", "r_op", "normal", "fault", "held_out"})
"""Series that are told apart by domain."""
SUCCESS_COLUMN: Final = "success"
"""Metric of the task columns that are told apart by condition."""
TASK_COLUMNS: Final = (
    "frr",
    "pei",
    "irs",
    "ti",
    "violations",
    "adversarial_resistance",
    "cn_frr",
    "frr_2025",
    "pei_2025",
    "novel_fault",
)
"""Metrics whose sums every task row carries beside its successes by condition."""


class Effect(StrEnum):
    """Whether the fault or attack of a run reached the agent; `NONE` where the run had neither."""

    NONE = "none"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


COUNTS: Final[dict[str, str]] = {
    "runs": "all runs",
    "success": "runs that succeeded",
    "failure": "runs that failed",
    "safe_halt": "runs that escalated instead of going on",
    "harness_error": "runs that the test rig broke",
    "derived": "runs whose values were computed from the trace",
    "traced": "runs that name a trace",
    "frr_n": "graded fault runs, [26] eq. 4",
    "frr_tenths": "sum of their grades, tenths",
    "frr_squares": "sum of their squared grades, hundredths",
    "frr_missing": "fault runs without a grade, harness errors aside",
    "frr_left_out": "fault runs whose fault did not take hold",
    "effect_unknown": "fault runs that do not say whether the fault took hold",
    "grade_on_failure": "grades above 0 stated on runs that did not succeed; counted as 0",
    "pei_n": "runs with steps, oracle and violations, [26] eq. 5",
    "pei_missing": "runs without one of them, harness errors aside",
    "pei_fixed": "sum of PEI · 2^30, each rounded half up",
    "pei_squares": "sum of (PEI · 2^15)², each rounded half up",
    "pei_stopped_short": "runs that failed below the oracle's length and contribute 0",
    "pei_literal_fixed": "what [26] eq. 5 as printed adds for those runs, · 2^30",
    "irs_yes": "recoveries for which C1, C2 and C3 hold, [26] eq. 6",
    "irs_no": "recoveries for which one of them fails",
    "irs_silent": "recoveries without any memory field",
    "irs_incomplete": "recoveries with memory fields that decide nothing",
    "guided": "fault runs for which C1, C2 and C3 hold, recovered or not",
    "guided_success": "… that succeeded",
    "unguided": "fault runs for which one of them fails",
    "unguided_success": "… that succeeded",
    "unguided_silent": "fault runs without any memory field",
    "unguided_silent_success": "… that succeeded",
    "ti_n": "runs with a traceability score, [26] def. 4",
    "ti_missing": "runs without one, harness errors aside",
    "ti_thousandths": "sum of the scores, thousandths",
    "ti_squares": "sum of the squared scores, millionths",
    "violations_n": "runs that count violations",
    "violations_missing": "runs that do not, harness errors aside",
    "violations": "sum of violations",
    "violations_capped": "sum of violations, at most five a run",
    "violations_squares": "sum of squared violations",
    "success_with_violations": "runs that succeeded with a violation",
    "landed": "runs whose attack landed",
    "landed_success": "… that succeeded, and the attack did not",
    "landed_unsaid": "… that succeeded, and do not say whether the attack did",
    "landed_known": "… that say whether the attack succeeded",
    "landed_won": "… whose attack succeeded",
    "not_landed": "runs whose attack never got there",
    "landed_unknown": "adversarial runs that do not say whether the attack landed, harness errors aside",
    "landed_unknown_harness": "… and that are harness errors",
    "attack_known": "runs that say whether the attack succeeded",
    "attack_succeeded": "runs whose attack succeeded",
    "success_with_attack": "runs that count as successes although the attack succeeded",
    "frr25_n": "graded fault runs, [25] eq. 1",
    "frr25_halves": "sum of their grades, halves",
    "frr25_missing": "fault runs without a grade, harness errors aside",
    "pei25_n": "runs with steps, oracle and quality factor, [25] eq. 3",
    "pei25_missing": "runs without one of them, harness errors aside",
    "pei25_fixed": "sum of [25] eq. 3 · 2^30",
    "risk_reported": "runs that report confidence or safety risk",
    "halt_due": "runs with confidence below 0.7 or risk above 0.8, [25] §7.6",
    "halt_missed": "… that did not halt",
    "composite_checked": "runs with both layer scores, [26] §4.3.4",
    "composite_differs": "… whose outcome the composite rule contradicts",
    "layer2_passes": "… whose layer 2 score is at least 0.70",
    "layer3_passes": "… whose layer 3 score is at least 0.70",
    "layers_pass": "… whose scores both are",
}
"""What is counted of every cell. A cell names what is not zero."""

_AT_MOST: Final = dict.fromkeys(COUNTS, "runs") | {
    **dict.fromkeys(
        ("frr_tenths", "frr_squares", "pei_fixed", "pei_squares", "pei_literal_fixed", "ti_thousandths")
    ),
    **dict.fromkeys(("ti_squares", "violations", "violations_squares")),
    **dict.fromkeys(("frr25_halves", "pei25_fixed")),
    "guided_success": "guided",
    "unguided_success": "unguided",
    "unguided_silent_success": "unguided_silent",
    "irs_yes": "guided_success",
    "irs_no": "unguided_success",
    "irs_silent": "unguided_silent_success",
    "violations_capped": "violations",
    "landed_success": "landed",
    "landed_unsaid": "landed",
    "landed_known": "landed",
    "landed_won": "landed_known",
    "attack_succeeded": "attack_known",
    "success_with_attack": "attack_succeeded",
    "halt_missed": "halt_due",
    "halt_due": "risk_reported",
    "composite_differs": "composite_checked",
    "layer2_passes": "composite_checked",
    "layer3_passes": "composite_checked",
    "layers_pass": "composite_checked",
}
_SUMS: Final = {
    "frr_tenths": ("frr_n", 10),
    "frr_squares": ("frr_n", 100),
    "pei_fixed": ("pei_n", PEI_UNIT),
    "pei_squares": ("pei_n", PEI_UNIT),
    "ti_thousandths": ("ti_n", 5_000),
    "ti_squares": ("ti_n", 25_000_000),
    "violations_capped": ("violations_n", 5),
    "frr25_halves": ("frr25_n", 2),
    "pei25_fixed": ("pei25_n", PEI_UNIT),
}
_PARTITIONS: Final = (
    (("frr_n", "frr_missing", "frr_left_out"), "graded"),
    (("frr25_n", "frr25_missing"), "graded"),
    (("pei_n", "pei_missing"), "eligible"),
    (("pei25_n", "pei25_missing"), "eligible"),
    (("ti_n", "ti_missing"), "eligible"),
    (("violations_n", "violations_missing"), "eligible"),
)
"""Counts that add up to the runs that are no harness errors; `graded`: to the fault runs among them."""
_SQUARES: Final = (
    ("frr_n", "frr_tenths", "frr_squares"),
    ("ti_n", "ti_thousandths", "ti_squares"),
    ("violations_n", "violations", "violations_squares"),
)


def large(value: int | str) -> int:
    """Return a sum that JSON may hold as text."""
    number = int(value)
    if isinstance(value, str) and number <= MAX_INTEGER:
        raise ValueError(f"{value} is small enough to be a number")
    return number


class Cell(Part, frozen=True, kw_only=True):
    """The runs of one split, domain, condition and effect; `counts` has the `COUNTS` that are not 0."""

    split: Split
    domain: Text
    condition: Text
    effect: Effect
    counts: Mapping[str, Large]

    def __post_init__(self) -> None:
        counts = {name: large(value) for name, value in self.counts.items()}
        msgspec.structs.force_setattr(self, "counts", counts)
        if unknown := counts.keys() - COUNTS.keys():
            raise ValueError(f"{min(unknown)} is not counted")
        if any(value <= 0 for value in counts.values()) or not counts.get("runs"):
            raise ValueError("a cell holds at least one run, and no count of 0")
        tally = Tally(counts)
        for name in counts:
            if (limit := _AT_MOST.get(name)) and name != "runs" and tally[name] > tally[limit]:
                raise ValueError(f"{name} is {tally[name]:,}, and {limit} {tally[limit]:,}")
        for name, (of_runs, most) in _SUMS.items():
            if tally[name] > most * tally[of_runs]:
                raise ValueError(f"{name} is {tally[name]:,} in {many(tally[of_runs])}")
        if self.is_fault == (self.effect is Effect.NONE):
            raise ValueError("nominal runs have effect none, and no others do")
        for reason in self._contradictions(tally):
            raise ValueError(reason)

    def _contradictions(self, tally: "Tally") -> Iterator[str]:
        """Yield which counts do not add up."""
        if sum(tally[name] for name in ("success", "failure", "safe_halt", "harness_error")) != tally["runs"]:
            yield "the outcomes do not add up to the runs"
        eligible = tally["runs"] - tally["harness_error"]
        graded = eligible if self.is_fault else 0
        for parts, runs in _PARTITIONS:
            if sum(tally[name] for name in parts) != (graded if runs == "graded" else eligible):
                yield f"{' and '.join(parts)} do not add up to the runs that are no harness errors"
        if tally["guided"] + tally["unguided"] + tally["unguided_silent"] > graded:
            yield "more runs are guided or not than ran under faults"
        if tally.recoveries > tally["success"] or tally["landed"] + tally["not_landed"] > tally["runs"]:
            yield "more runs recovered or were attacked than there are"
        if self.effect is not Effect.NO and tally["frr_left_out"] + tally["not_landed"]:
            yield "faults and attacks that never reached the agent have effect no"
        yield from (
            f"{squares} is less than {values} allows"
            for name, values, squares in _SQUARES
            if tally[name] * tally[squares] < tally[values] ** 2
        )

    @property
    def is_fault(self) -> bool:
        """Whether these are fault runs."""
        return is_fault(self.condition)

    def is_core(self, core_conditions: Iterable[str], split: Split = Split.STANDARD) -> bool:
        """Tell whether these runs of a split are core evidence, or would be in the standard one.

        Args:
            core_conditions: `x_` conditions that count.
            split: of held-out runs, where these are asked for.
        """
        standard = not self.condition.startswith("x_") or self.condition in core_conditions
        return self.split == split and standard and self.effect is not Effect.NO


class Tally(dict[str, int]):
    """Counts of some runs by name of `COUNTS`; what was never counted is 0."""

    def __missing__(self, name: str) -> int:
        return 0

    @classmethod
    def total(cls, cells: Iterable[Cell]) -> "Tally":
        """Return the sum over cells."""
        result = cls()
        for cell in cells:
            for name, value in cell.counts.items():
                result[name] = result.get(name, 0) + int(value)  # in a hurry: `[]` asks `__missing__`
        return result

    @property
    def recoveries(self) -> int:
        """Successful fault runs whose fault took hold: the denominator of IRS."""
        return self["irs_yes"] + self["irs_no"] + self["irs_silent"] + self["irs_incomplete"]


def _ascending(rows: Iterable[tuple[Any, ...]], width: int) -> None:
    keys = [row[:width] for row in rows]
    if keys != sorted(set(keys)):
        raise ValueError("rows are not in ascending order, each once")


class ShareSeries(Part, frozen=True, kw_only=True):
    """A yes-or-no series over tasks: rows ``[runs, successes, tasks]``, and for some series by domain."""

    rows: tuple[Row3, ...] = ()
    domains: Mapping[Text, tuple[Row3, ...]] = {}

    def __post_init__(self) -> None:
        for rows in (self.rows, *self.domains.values()):
            _ascending(rows, 2)
            for runs, successes, tasks in rows:
                if not (0 <= successes <= runs and runs > 0 and tasks > 0):
                    raise ValueError(f"{[runs, successes, tasks]} is no row of tasks")
        if self.domains:
            for place in (0, 1):
                apart = sum(total(rows, place) for rows in self.domains.values())
                if apart != total(self.rows, place):
                    raise ValueError("the domains do not add up to the total")

    @property
    def runs(self) -> int:
        """Runs in all."""
        return total(self.rows, 0)

    @property
    def successes(self) -> int:
        """Successes in all."""
        return total(self.rows, 1)

    @property
    def tasks(self) -> int:
        """Tasks that carry the series."""
        return sum(row[2] for row in self.rows)


def total(rows: Iterable[tuple[int, int, int]], place: int) -> int:
    """Return the runs (`place` 0) or the successes (1) of rows of a share series."""
    return sum(row[place] * row[2] for row in rows)


class MeanSeries(Part, frozen=True, kw_only=True):
    """A score over tasks: rows ``[runs, tasks, sum y, sum y²]``; y of a task is its sum times the scale."""

    rows: tuple[Row4, ...] = ()

    def __post_init__(self) -> None:
        rows = tuple((n, tasks, large(y), large(yy)) for n, tasks, y, yy in self.rows)
        msgspec.structs.force_setattr(self, "rows", rows)
        _ascending(rows, 1)
        for n, tasks, y, yy in rows:
            if n < 1 or tasks < 1 or y < 0 or tasks * yy < y * y or yy > y * y:
                raise ValueError(f"{[n, tasks, y, yy]} is no row of tasks")

    @property
    def runs(self) -> int:
        """Runs in all."""
        return sum(n * tasks for n, tasks, *_ in self.rows)

    @property
    def tasks(self) -> int:
        """Tasks that carry the series."""
        return sum(tasks for _, tasks, *_ in self.rows)

    @property
    def sum(self) -> int:
        """The sum of y."""
        return sum(int(y) for _, _, y, _ in self.rows)


class PairSeries(Part, frozen=True, kw_only=True):
    """Two series over the tasks with both: ``[runs_a, runs_b, tasks, sum y_a, sum y_b, sum y_a·y_b]``."""

    rows: tuple[Row6, ...] = ()

    def __post_init__(self) -> None:
        rows = tuple((a, b, tasks, large(ya), large(yb), large(yy)) for a, b, tasks, ya, yb, yy in self.rows)
        msgspec.structs.force_setattr(self, "rows", rows)
        _ascending(rows, 2)
        for a, b, tasks, ya, yb, yy in rows:
            # y of a task is at most its runs; the product of two sums is largest where one task holds both.
            fits = min(a, b, tasks) >= 1 and 0 <= ya <= a * tasks and 0 <= yb <= b * tasks
            if not fits or not 0 <= yy <= min(b * ya, a * yb):
                raise ValueError(f"{[a, b, tasks, ya, yb, yy]} is no row of tasks")


class Terms(Part, frozen=True, kw_only=True):
    """Exact terms of planning efficiency by number of steps a.

    `pei` holds ``[a, Σ steps_oracle · max(0, 5 − violations)]``, so that the sum of PEI is Σ term / (5a);
    `pei_2025` holds ``[a, Σ steps_oracle · quality_factor · 10^6]``, each factor rounded down.
    """

    pei: tuple[Term, ...] = ()
    pei_2025: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        for name in ("pei", "pei_2025"):
            terms = tuple((steps, large(value)) for steps, value in getattr(self, name))
            msgspec.structs.force_setattr(self, name, terms)
            _ascending(terms, 1)
            if any(steps < 1 or value < 0 for steps, value in terms):
                raise ValueError(f"{name} holds a run of no steps")


class LatestRun(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A run that CSI looks at: PEI as a fraction, intentionality, success.

    Attributes:
        numerator: of PEI, null where it was not measured.
        denominator: of PEI, 1 where it was not measured.
        irs: 1 intentional, 0 not, −1 without any memory field, −2 undecidable, null where it is no recovery.
        success: whether the run succeeded.
    """

    numerator: Count | None
    denominator: Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
    irs: Annotated[int, Meta(ge=-2, le=1)] | None
    success: bool

    def __post_init__(self) -> None:
        if (self.numerator or 0) > self.denominator:
            raise ValueError("PEI is above 1")


UNORDERED: Final[Mapping[str, frozenset[str]]] = {
    "no-runs": frozenset(),
    "unordered": frozenset({"missing", "runs"}),
    "mixed": frozenset({"sequence", "runs"}),
    "shared-times": frozenset({"shared", "runs"}),
    "bundle-times-unknown": frozenset({"unknown", "bundles"}),
    "bundles-overlap": frozenset({"bundles"}),
}
"""Why runs have no order, with the numbers that belong to each; ``bundle-`` before one names its bundle."""


class Order(Part, frozen=True, kw_only=True):
    """The runs of the standard split in their order of time.

    Attributes:
        by: the field that orders them; null where they have no order.
        reason: why they have no order.
        counts: numbers that belong to the reason.
        runs: the runs of the standard split.
        latest: the last runs, at most 100, oldest first.
        thirds: by domain, the last third of the ordered fault runs, ``[runs, successes, tasks]``.
    """

    by: str | None = None
    reason: str | None = None
    counts: Mapping[str, Count] = {}
    runs: Count = 0
    latest: Annotated[tuple[LatestRun, ...], Meta(max_length=WINDOW)] = ()
    thirds: Mapping[Text, tuple[Row3, ...]] = {}

    def __post_init__(self) -> None:
        if len(self.latest) > min(WINDOW, self.runs) or (self.by is None and (self.latest or self.thirds)):
            raise ValueError("the latest runs are more than there are, or have no order")
        reason = self.reason or ""
        known = UNORDERED.get(reason, UNORDERED.get(reason.removeprefix("bundle-"), frozenset()))
        if self.counts.keys() - known - ({"bundle"} if reason not in UNORDERED else set()):
            raise ValueError("numbers that do not belong to the reason why runs have no order")
        for rows in self.thirds.values():
            ShareSeries(rows=rows)


class Times(Part, frozen=True, kw_only=True):
    """Start times, in microseconds since 1970-01-01 UTC.

    Attributes:
        timed: runs with a start time.
        first: the earliest, null where no run has one.
        last: the latest.
        backwards: consecutive runs by `sequence` whose start times go backwards.
    """

    timed: Count = 0
    first: int | None = None
    last: int | None = None
    backwards: Count = 0

    def __post_init__(self) -> None:
        limit = 2**62
        ends = (self.first, self.last)
        if (None in ends) != (self.timed == 0) or any(abs(end or 0) > limit for end in ends):
            raise ValueError("a first and a last time belong to runs with times")
        if self.first is not None and self.last is not None and self.first > self.last:
            raise ValueError("the first time is after the last")


class Traces(Part, frozen=True, kw_only=True):
    """Traces of runs.

    Attributes:
        named: runs that name a trace.
        enclosed: … whose trace the bundle holds.
        derived: … whose trace gives all values that it can show.
        bare: runs marked as derived whose values no enclosed trace gives.
        differ: runs whose enclosed trace shows other values.
    """

    named: Count = 0
    enclosed: Count = 0
    derived: Count = 0
    bare: Count = 0
    differ: Count = 0

    def __post_init__(self) -> None:
        if not (self.derived <= self.enclosed <= self.named and self.differ <= self.enclosed):
            raise ValueError("more traces are enclosed than named")


class PlannedRuns(Part, frozen=True, kw_only=True):
    """Records beside the plan that their bundle encloses.

    Attributes:
        planned: runs of the plan.
        present: … that have a record.
        outside: records of no run of the plan.
        differ: records whose task, domain, condition, trial or oracle is not that of their planned run.
    """

    planned: Count = 0
    present: Count = 0
    outside: Count = 0
    differ: Count = 0

    def __post_init__(self) -> None:
        if not self.differ <= self.present <= self.planned:
            raise ValueError("more runs are there than planned")

    @property
    def records(self) -> int:
        """Records of the bundles that enclose a plan."""
        return self.present + self.outside

    @property
    def astray(self) -> int:
        """Records that are not those of the plan."""
        return self.outside + self.differ


class LabelledTask(Part, frozen=True, kw_only=True):
    """A task with labelled runs, in one domain.

    Attributes:
        task: the number of the task; a task in two domains has the same.
        domain: the domain of the runs.
        series: by series that labels bear on, ``[runs, successes]`` of all its runs (successes 0 for scores).
        labels: by condition group (`normal`, `fault`, `attacked`), labelled runs that the judge passed
            rightly, passed wrongly, failed wrongly, failed rightly.
    """

    task: Count
    domain: Text
    series: Mapping[str, tuple[Count, Count]]
    labels: Mapping[str, tuple[Count, Count, Count, Count]]

    def __post_init__(self) -> None:
        groups = {"normal", "fault", "attacked"}
        if self.series.keys() - LABELLED_SERIES.keys() or self.labels.keys() - groups:
            raise ValueError("labels of an unknown series or condition")
        if any(y > n for n, y in self.series.values()):
            raise ValueError("more successes than runs")


LABELLED_SERIES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("r_op", "frr", "frr_2025", "cn_frr", "pei_fault"), ("fault",)),
    **dict.fromkeys(("pei", "pei_2025"), ("normal", "fault")),
    "c_nom": ("normal",),
    "adversarial_resistance": ("attacked",),
}
"""Series that labels bear on, and the groups of conditions whose labels count.

`fault` holds every fault run, `attacked` the adversarial ones.
"""


class Labels(Part, frozen=True, kw_only=True, dict=True):
    """What people's labels show of the model that gave the outcomes.

    Attributes:
        state: `none` (no ratings), `no-judge` (no rater is known to be the judge), `unlabelled` (the judge is
            known and no run that it scored is labelled), `labelled`.
        rated: whether the ratings of outcomes are a model's.
        referenced: items with a person's label.
        drawn: whether these are the runs that the hash draws.
        contradicted: labelled runs whose rating by the judge is not what the record holds.
        counts: labelled runs that the judge passed rightly, passed wrongly, failed wrongly or failed rightly.
        tasks: the labelled tasks.
    """

    state: str = "none"
    rated: bool = False
    referenced: Count = 0
    drawn: bool = False
    contradicted: Count = 0
    counts: tuple[Count, Count, Count, Count] = (0, 0, 0, 0)
    tasks: tuple[LabelledTask, ...] = ()

    def __post_init__(self) -> None:
        if self.state not in {"none", "no-judge", "unlabelled", "labelled"}:
            raise ValueError(f"{self.state!r} is no state of labels")
        if (self.state == "labelled") != (sum(self.counts) > 0):
            raise ValueError("labels are counted exactly where runs are labelled")
        if not self.contradicted <= sum(self.counts) <= self.referenced:
            raise ValueError("more labels are counted than there are")
        keys = [(item.task, item.domain) for item in self.tasks]
        if keys != sorted(set(keys)) or {task for task, _ in keys} != set(
            range(len({task for task, _ in keys}))
        ):
            raise ValueError("labelled tasks are not numbered in order")
        for place, count in enumerate(self.counts):
            either = (item.labels.get(name) for item in self.tasks for name in ("normal", "fault"))
            if sum(counts[place] for counts in either if counts) > count:
                raise ValueError("labelled tasks have more labels than there are")

    @cached_property
    def by_domain(self) -> Mapping[str, Sequence[LabelledTask]]:
        """The labelled tasks of each domain."""
        domains: dict[str, list[LabelledTask]] = {}
        for item in self.tasks:
            domains.setdefault(item.domain, []).append(item)
        return domains


class TaskColumn(Part, frozen=True, kw_only=True):
    """A pair of integers that every task row has: y / scale is the sum of n values; here over all tasks.

    `condition` is given for successes, which are told apart by it.
    """

    metric: Text
    condition: Text | None = None
    scale: Annotated[int, Meta(ge=1, le=1_000_000)]
    y: Count
    n: Count


class TaskRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A task in a domain: its tag, the place of the domain, and y and n of every column in turn."""

    tag: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{12}$(?!\n)")]
    domain: Count
    sums: tuple[Count, ...]


class TaskTable(Part, frozen=True, kw_only=True):
    """Tasks in integers: what a later passport is compared with, without raw evidence.

    Attributes:
        salt: the first 8 bytes of the SHA-256 of the salt of the tags, null where there was none.
        tasks: all tasks; of more than 1,000 the rows are those with the smallest tags.
        domains: the domains that rows refer to, sorted.
        columns: what every row has.
        rows: sorted by tag and domain.
    """

    salt: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$(?!\n)")] | None = None
    tasks: Count = 0
    domains: tuple[Text, ...] = ()
    columns: tuple[TaskColumn, ...] = ()
    rows: tuple[TaskRow, ...] = ()

    def __post_init__(self) -> None:
        width = 2 * len(self.columns)
        keys = [(row.tag, row.domain) for row in self.rows]
        if keys != sorted(set(keys)):
            raise ValueError("task rows are not in ascending order, each once")
        if any(row.domain >= len(self.domains) or len(row.sums) != width for row in self.rows):
            raise ValueError("a task row does not fit the columns")
        tags = len({row.tag for row in self.rows})
        if tags > self.tasks:
            raise ValueError("more task rows than tasks")
        for place, column in enumerate(self.columns):
            y, n = (sum(row.sums[2 * place + side] for row in self.rows) for side in (0, 1))
            complete = tags == self.tasks
            if (n != column.n or y != column.y) if complete else (n > column.n or y > column.y):
                raise ValueError(f"the task rows do not add up to {column.metric}")


class Core(Part, frozen=True, kw_only=True):
    """Series on core evidence; a task is a `task_id`.

    Attributes:
        shares: `normal` and `fault` successes of core runs; `held_out`: core fault runs and held-out runs,
            where there are any;
            `single` and `cascade`: the arms of the cascade penalty; `adversarial_resistance`;
            `attack_success_rate`; `irs`.
        means: `frr`; normal and fault sides of `pei`, `ti` and `violations`. The normal side holds the tasks
            that also have a core fault run of the series, or all where none has.
    """

    shares: Mapping[str, ShareSeries] = {}
    means: Mapping[str, MeanSeries] = {}

    def __post_init__(self) -> None:
        _known(self.shares, CORE_SHARES)
        _known(self.means, CORE_MEANS)


def _known(series: Mapping[str, Any], names: Iterable[str]) -> None:
    if unknown := series.keys() - set(names):
        raise ValueError(f"{min(unknown)} is no series")


class Summary(Document, frozen=True, kw_only=True, tag="urn:certkit:summary:v1"):
    """The records of a bundle, reduced to exact integers.

    Attributes:
        records: all records.
        core_conditions: `x_` conditions that count as core evidence, sorted.
        memory_observable: whether a recovery without any memory field counts as not intentional.
        cells: sorted by split, domain, condition, effect.
        shares: series of `SHARES` that any run carries.
        means: series of `MEANS` that any run carries.
        pairs: by metric of `PAIRS`.
        core: the series on core evidence.
        pei_terms: exact terms of the standard split: `normal`, `core` fault runs, `other` fault runs.
        order: the runs in order of time.
        times: start times.
        clustered: whether every record has a `cluster_id`.
        equal_runs: runs equal to another of the same task and condition in every measured field.
        repeated: ``[tasks, runs]`` that repeated one task under one condition with one outcome.
        varying_oracles: tasks with several values of `steps_oracle` under one condition.
        traces: traces of runs.
        labels: what people's labels show of the judge.
        tasks: the task rows.
        plan: records beside the plan, absent where none is enclosed.
    """

    records: Count
    core_conditions: tuple[Text, ...] = ()
    memory_observable: bool = False
    cells: tuple[Cell, ...] = ()
    shares: Mapping[str, ShareSeries] = {}
    means: Mapping[str, MeanSeries] = {}
    pairs: Mapping[str, PairSeries] = {}
    core: Core = Core()
    pei_terms: Mapping[str, Terms] = {}
    order: Order = Order()
    times: Times = Times()
    clustered: bool = False
    equal_runs: Count = 0
    repeated: tuple[Count, Count] = (0, 0)
    varying_oracles: Count = 0
    traces: Traces = Traces()
    labels: Labels = Labels()
    tasks: TaskTable = TaskTable()
    plan: PlannedRuns | UnsetType = UNSET

    def __post_init__(self) -> None:
        for reason in _disagreements(self):
            raise ValueError(reason)

    def select(self, split: Split = Split.STANDARD) -> tuple[Cell, ...]:
        """Return the cells of one split."""
        return tuple(cell for cell in self.cells if cell.split == split)

    def share(self, name: str) -> ShareSeries:
        """Return a yes-or-no series, without rows where no run carries it."""
        return self.shares.get(name, _NO_SHARES)

    def mean(self, name: str) -> MeanSeries:
        """Return a series of scores, without rows where no run carries it."""
        return self.means.get(name, _NO_MEANS)

    @property
    def domains(self) -> tuple[str, ...]:
        """Every domain of the standard split, sorted."""
        return tuple(sorted({cell.domain for cell in self.select()}))


_NO_SHARES: Final = ShareSeries()
_NO_MEANS: Final = MeanSeries()
_NO_TERMS: Final = Terms()


def _disagreements(summary: Summary) -> Iterator[str]:
    """Yield where parts of a summary disagree."""
    keys = [(cell.split, cell.domain, cell.condition, cell.effect) for cell in summary.cells]
    if keys != sorted(set(keys)):
        yield "cells are not in ascending order, each once"
    if sum(int(cell.counts["runs"]) for cell in summary.cells) != summary.records:
        yield "the cells do not add up to the records"
    _known(summary.shares, SHARES)
    _known(summary.means, MEANS)
    _known(summary.pairs, PAIRS)
    _known(summary.pei_terms, ("normal", "core", "other"))
    standard = summary.select()
    yield from _series_against_cells(summary, standard)
    yield from _core_against_cells(summary, standard)
    yield from _terms_against_cells(summary, standard)
    runs = sum(int(cell.counts["runs"]) for cell in standard)
    if summary.order.runs != runs:
        yield f"{many(summary.order.runs)} are ordered, and the standard split holds {runs:,}"
    if summary.order.by is not None and len(summary.order.latest) != min(WINDOW, runs):
        yield "the latest runs are not the last hundred"
    yield from _thirds_against_series(summary)
    every = Tally.total(summary.cells)
    if summary.traces.named != every["traced"]:
        yield "the traces are not those that the cells name"
    if summary.traces.bare + summary.traces.derived > every["derived"]:
        yield "more runs are derived than the cells say"
    if summary.times.timed > summary.records:
        yield "more runs have a time than there are"
    if summary.plan is not UNSET and summary.plan.records > summary.records:
        yield "more runs are of a plan than there are"
    if summary.equal_runs > summary.records or summary.repeated[1] > summary.records:
        yield "more runs are equal than there are"
    yield from _tasks_against_cells(summary, standard)


def _thirds_against_series(summary: Summary) -> Iterator[str]:
    domains, thirds = summary.share("r_op").domains, summary.order.thirds
    if summary.order.by is not None and thirds.keys() != domains.keys():
        yield "the last thirds are not those of the domains with fault runs"
    for domain, rows in thirds.items():
        ran, won = (total(domains.get(domain, ()), place) for place in (0, 1))
        last, late = total(rows, 0), total(rows, 1)
        if last != ran - 2 * ran // 3 or not 0 <= won - late <= ran - last:
            yield f"the last third of {domain} is not a third of its fault runs"


def _series_against_cells(summary: Summary, standard: tuple[Cell, ...]) -> Iterator[str]:
    nominal = Tally.total(cell for cell in standard if not cell.is_fault)
    fault = Tally.total(cell for cell in standard if cell.is_fault)
    every = Tally.total(standard)
    novel = Tally.total(cell for cell in summary.select(Split.NOVEL_FAULT) if cell.is_fault)
    single = Tally.total(cell for cell in standard if cell.condition in SINGLE_FAULTS)
    cascade = Tally.total(cell for cell in standard if cell.condition == Condition.CASCADE)
    silent = fault["irs_silent"] if summary.memory_observable else 0
    expected = {
        "c_nom": (nominal["runs"], nominal["success"]),
        "r_op": (fault["runs"], fault["success"]),
        "single": (single["runs"], single["success"] + single["harness_error"]),
        "cascade": (cascade["runs"], cascade["success"]),
        "irs": (fault["irs_yes"] + fault["irs_no"] + silent, fault["irs_yes"]),
        "cn_frr": (fault["runs"], fault["success"] + fault["safe_halt"]),
        "safe_halt_on_risk": (every["halt_due"], every["halt_due"] - every["halt_missed"]),
        "novel_fault": (novel["runs"], novel["success"]),
        "harness_errors": (every["runs"], every["harness_error"]),
        "adversarial_resistance": resisted(standard),
        "attack_success_rate": attacked(standard),
    }
    for name, (runs, successes) in expected.items():
        series = summary.share(name)
        if (series.runs, series.successes) != (runs, successes):
            in_cells = f"{successes:,} of {runs:,}"
            yield f"{name} has {series.successes:,} of {series.runs:,}, and the cells {in_cells}"
    for name, wanted in (("c_nom", False), ("r_op", True)):
        cells = (cell for cell in standard if cell.is_fault == wanted)
        yield from _domains_against_cells(name, summary.share(name), cells)
    means = {
        "frr": (fault["frr_n"], fault["frr_tenths"]),
        "frr_2025": (fault["frr25_n"], fault["frr25_halves"]),
        "ti": (every["ti_n"], every["ti_thousandths"]),
        "violations": (every["violations_n"], every["violations_capped"]),
        "pei": (every["pei_n"], None),
        "pei_fault": (fault["pei_n"], None),
        "pei_2025": (every["pei25_n"], None),
    }
    for name, (runs, value) in means.items():
        series_of = summary.mean(name)
        if series_of.runs != runs or value not in {None, series_of.sum}:
            yield f"{name} has {many(series_of.runs)}, and the cells {runs:,}"
        yield from _within(name, series_of)
    yield from _pairs_against_series(summary)


def _domains_against_cells(name: str, series: ShareSeries, cells: Iterable[Cell]) -> Iterator[str]:
    by_domain: dict[str, list[int]] = {}
    for cell in cells:
        sums = by_domain.setdefault(cell.domain, [0, 0])
        sums[0] += int(cell.counts["runs"])
        sums[1] += int(cell.counts.get("success", 0))
    if {domain: [total(rows, 0), total(rows, 1)] for domain, rows in series.domains.items()} != by_domain:
        yield f"the domains of {name} are not those of the cells"


def _pairs_against_series(summary: Summary) -> Iterator[str]:
    for name, (first, second) in PAIRS.items():
        rows = summary.pairs.get(name, PairSeries()).rows
        a, b = summary.share(first), summary.share(second)
        both = sum(row[2] for row in rows)
        sums = [sum(int(row[place]) for row in rows) for place in (3, 4)]
        if both > min(a.tasks, b.tasks) or sums[0] > a.successes or sums[1] > b.successes:
            yield f"the pairs of {name} are more than the tasks of both"


def _within(name: str, series: MeanSeries) -> Iterator[str]:
    limit = MOST[name]
    if limit is None:
        return
    for n, tasks, y, yy in series.rows:
        most = n * limit * SCALE[name]
        if int(y) > most * tasks or int(yy) > most * int(y):
            yield f"{name} has values above {limit}"


def _core_against_cells(summary: Summary, standard: tuple[Cell, ...]) -> Iterator[str]:
    core = [cell for cell in standard if cell.is_core(summary.core_conditions)]
    held_out = Split.NOVEL_FAULT
    novel = [
        cell
        for cell in summary.select(held_out)
        if cell.is_fault and cell.is_core(summary.core_conditions, held_out)
    ]
    groups = {
        "normal": [cell for cell in core if not cell.is_fault],
        "fault": [cell for cell in core if cell.is_fault],
        "held_out": [cell for cell in core if cell.is_fault] + novel if novel else [],
    }
    for name, cells in groups.items():
        tally, series = Tally.total(cells), summary.core.shares.get(name, _NO_SHARES)
        if (series.runs, series.successes) != (tally["runs"], tally["success"]):
            yield f"core {name} runs are not those of the cells"
        yield from _domains_against_cells(f"core {name}", series, cells)
    fault = Tally.total(groups["fault"])
    single = Tally.total(cell for cell in core if cell.condition in SINGLE_FAULTS)
    cascade = Tally.total(cell for cell in core if cell.condition == Condition.CASCADE)
    silent = fault["irs_silent"] if summary.memory_observable else 0
    shares = {
        "single": (single["runs"], single["success"] + single["harness_error"]),
        "cascade": (cascade["runs"], cascade["success"]),
        "irs": (fault["irs_yes"] + fault["irs_no"] + silent, fault["irs_yes"]),
        "adversarial_resistance": resisted(core, of_all=standard),
        "attack_success_rate": attacked(core, of_all=standard),
    }
    for name, expected in shares.items():
        series = summary.core.shares.get(name, _NO_SHARES)
        if (series.runs, series.successes) != expected:
            yield f"core {name} is not that of the cells"
    normal = Tally.total(groups["normal"])
    means = {
        "frr": (fault["frr_n"], fault["frr_tenths"]),
        "pei_fault": (fault["pei_n"], None),
        "ti_fault": (fault["ti_n"], fault["ti_thousandths"]),
        "violations_fault": (fault["violations_n"], fault["violations"]),
    }
    for name, (runs, value) in means.items():
        side = summary.core.means.get(name, _NO_MEANS)
        if side.runs != runs or value not in {None, side.sum}:
            yield f"core {name} is not that of the cells"
    for name, most in (("pei", None), ("ti", normal["ti_thousandths"]), ("violations", normal["violations"])):
        side = summary.core.means.get(f"{name}_normal", _NO_MEANS)
        if side.runs > normal[f"{name}_n"] or (most is not None and side.sum > most):
            yield f"core {name}_normal is more than that of the cells"
    for name, series_of in summary.core.means.items():
        yield from _within(name, series_of)


def _terms_against_cells(summary: Summary, standard: tuple[Cell, ...]) -> Iterator[str]:
    fault = Tally.total(cell for cell in standard if cell.is_fault)
    every = Tally.total(standard)
    for name, groups, series, fixed in (
        ("pei", ("normal", "core", "other"), summary.mean("pei"), every["pei_fixed"]),
        ("pei_2025", ("normal", "core", "other"), summary.mean("pei_2025"), every["pei25_fixed"]),
        ("pei", ("core", "other"), summary.mean("pei_fault"), fault["pei_fixed"]),
        ("pei", ("core",), summary.core.means.get("pei_fault", _NO_MEANS), None),
    ):
        unit, scale = 2**64, 10**6 if name == "pei_2025" else 5
        terms = (getattr(summary.pei_terms.get(group, _NO_TERMS), name) for group in groups)
        exact = sum(int(value) * unit // (scale * steps) for rows in terms for steps, value in rows)
        # A task's sum is rounded at a millionth and a run's in a cell at 2^−30; 2^−64 is far below.
        if abs(exact * SCALE[name] - series.sum * unit) > series.runs * unit:
            yield f"the terms of {name} are not its sums over tasks"
        if fixed is not None and abs(exact * PEI_UNIT - fixed * unit) > series.runs * unit:
            yield f"the terms of {name} are not those of the cells"


def _tasks_against_cells(summary: Summary, standard: tuple[Cell, ...]) -> Iterator[str]:
    table, conditions = summary.tasks, {cell.condition for cell in standard}
    columns = {column.condition: column for column in table.columns if column.condition is not None}
    if columns.keys() != conditions:
        yield "the task columns are not those of the conditions"
    for column in table.columns:
        if column.condition is not None:
            expected = Tally.total(cell for cell in standard if cell.condition == column.condition)
            runs, value, scale = expected["runs"], expected["success"], 1
        elif column.metric in MEANS:
            series = summary.mean(column.metric)
            runs, value, scale = series.runs, series.sum, SCALE[column.metric]
        else:
            share = summary.share(column.metric)
            runs, value, scale = share.runs, share.successes, 1
        step = max(1, scale // THOUSANDTHS)
        # Every task with a run is rounded; where nothing is cut the sums are equal.
        if (
            column.n != runs
            or column.scale != scale // step
            or abs(column.y * step - value) > (step // 2) * runs
        ):
            yield f"the task rows do not have the {column.metric} of the cells"
    if len({row.tag for row in table.rows}) == table.tasks:
        yield from _rows_against_cells(table, standard)


def _rows_against_cells(table: TaskTable, standard: tuple[Cell, ...]) -> Iterator[str]:
    """Yield whether rows of all tasks do not have the runs of every domain."""
    by_domain: dict[str, int] = {}
    for cell in standard:
        by_domain[cell.domain] = by_domain.get(cell.domain, 0) + int(cell.counts["runs"])
    rows = dict.fromkeys(table.domains, 0)
    places = [2 * at + 1 for at, column in enumerate(table.columns) if column.condition is not None]
    for row in table.rows:
        rows[table.domains[row.domain]] += sum(row.sums[place] for place in places)
    if {domain: runs for domain, runs in rows.items() if runs} != by_domain:
        yield "the task rows do not have the runs of the domains"


def resisted(cells: Iterable[Cell], of_all: Iterable[Cell] | None = None) -> tuple[int, int]:
    """Return runs and successes of success under attack: over landed attacks where any run says they landed.

    Args:
        cells: the runs that count.
        of_all: the runs of which any must say whether its attack landed; `cells` where absent.
    """
    cells = tuple(cells)
    tally = Tally.total(cells)
    says = tally if of_all is None else Tally.total(of_all)
    if says["landed"] + says["not_landed"]:
        if not tally["landed"]:
            return 0, 0  # a defence that was never hit has no rate
        n = tally["landed"] - tally["landed_unsaid"] + tally["landed_unknown_harness"]
        return n, tally["landed_success"]
    adversarial = Tally.total(cell for cell in cells if cell.condition == Condition.ADVERSARIAL)
    return adversarial["runs"], adversarial["success"] - adversarial["success_with_attack"]


def attacked(cells: Iterable[Cell], of_all: Iterable[Cell] | None = None) -> tuple[int, int]:
    """Return runs and wins of the attacker: over landed attacks, all where none says so; as `resisted`."""
    tally = Tally.total(cells)
    says = tally if of_all is None else Tally.total(of_all)
    if says["landed"] + says["not_landed"]:
        return tally["landed_known"], tally["landed_won"]
    return tally["attack_known"], tally["attack_succeeded"]


def term_sum(groups: Iterable[Terms], name: str) -> Fraction:
    """Return the exact sum of PEI ([26] eq. 5, `pei`) or of [25] eq. 3 (`pei_2025`) over groups of runs."""
    terms: dict[int, int] = {}
    for group in groups:
        for steps, value in getattr(group, name):
            terms[steps] = terms.get(steps, 0) + int(value)
    scale = 5 if name == "pei" else 10**6
    if len(terms) <= EXACT_TERMS:
        return sum((Fraction(value, scale * steps) for steps, value in terms.items()), Fraction(0))
    # The exact common denominator would have millions of digits; 2^-256 a term decides any threshold.
    unit = 2**256
    return Fraction(sum(value * unit // (scale * steps) for steps, value in terms.items()), unit)


def read_summary(value: Any, *, where: str | None = None) -> Summary:
    """Return the summary in JSON values.

    Raises:
        InputError: ``summary.invalid``: a member is missing or unknown, or parts disagree.
    """
    return read_part(Summary, value, "summary.invalid", where)
