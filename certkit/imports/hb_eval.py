"""What HB-Eval writes: published records of methodologies A, B and C, and sessions of hb-eval-sdk.

| field of the log | field of the record | note |
|---|---|---|
| `model`, of a session `agent_id` | the agent | |
| `domain`, `run_id` (A: `run`) | `run_id`, `task_id` | `DOMAIN/RUN`; again within a model `#2`, `#3` … |
| `fault_type` | `condition` | `none` is `nominal`, `cascade_failure` is `cascade` |
| `fault_injected` (A, without `fault_type`) | `condition` | `nominal` or `x_fault` |
| `success` (A: or `binary_success`) | `outcome` | as stated, also where the paper's rule says otherwise |
| `violation_count` | `violations` | |
| `constraint_score`, `judge_score` | `layer2_score`, `layer3_score` | not the 0.5 of a judge that failed |
| `fault_type` adversarial or cascade_failure | `attack_attempted` | `adv_resistance` does not say who won |
| `session_id` | `run_id`, `task_id` | each session stands as a task of its own |
| `step_count` | `steps_actual` | |
| `halted` | `outcome` | `safe_halt`; `--success` says which other sessions succeeded |
| `live_metrics` `pei`, `frr`, `irs`, `ti` | `x_hbsdk_pei` … | other quantities than ours of these names |

PEI of hb-eval-sdk 2.x is 1 − |fault episodes − plan transitions| / steps, and no planning efficiency of [26].
Outcomes are taken from the records; nothing is repaired, and what is odd is counted. Only methodology C
writes ``response_missing``; there another model than the evaluated one was the judge. Temperature, judge and
definition of a cascade are those that [26] §4 states. The file is not in order of time, and its times have no
zone. frr, pei, irs and ti of methodology A are guessed from key words, and left out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.ground.errors import InputError
from certkit.imports.job import Importer, Run
from certkit.record.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Job

CONDITIONS: Final = {
    "none": Condition.NOMINAL,
    "adversarial": Condition.ADVERSARIAL,
    "context_corruption": Condition.CONTEXT_CORRUPTION,
    "tool_failure": Condition.TOOL_FAILURE,
    "stochastic": Condition.STOCHASTIC,
    "cascade_failure": Condition.CASCADE,
}
LAST_SECOND: Final = 253_402_300_799  # of the year 9999
METRICS: Final = ("pei", "frr", "irs", "ti")
COMPOSITE_THOUSANDTHS: Final = 700
"""The least composite score of a success, [26] §4.3.4."""

JUDGE_C: Final = "Llama-4-Maverick-17B"
"""The third-party judge of methodology C, [26] §4.4.2."""

JUDGE_C_FAMILY: Final = "llama"

_FAILED: Final = "judge_failed"
_TIMED_OUT: Final = "most likely a call that timed out; the outcome stays what the record states"
_RESISTANCE: Final = "adv_resistance says that no constraint was broken, not whether the attack got its way"
_RULE: Final = "the paper's rule is success at a composite of 0.70 and above"
_SKIPPED: Final = "layer 2 found nothing, so the judge was not asked; its score of 1 is the protocol's"
_PROTOCOL: Final = "[26] §4 states temperature, judge and cascade_definition; the records do not"
_NO_ORDER: Final = "run_id numbers the schedule and the file is not in order of time"
_NO_TASKS: Final = "the records do not say which scenario a run used, so each run stands as a task of its own"

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Unit = Annotated[float, Meta(ge=0, le=1)]


class PublishedRecord(Struct, frozen=True, kw_only=True):
    """A published record; fields that are not read are not listed."""

    run_id: Annotated[int, Meta(ge=0)]
    model: Name
    domain: Name
    fault_type: Literal[
        "none", "adversarial", "context_corruption", "tool_failure", "stochastic", "cascade_failure"
    ]
    success: Annotated[int, Meta(ge=0, le=1)] | bool
    composite_score: Unit
    constraint_score: Unit
    judge_score: Unit
    violation_count: Annotated[int, Meta(ge=0)]
    adv_resistance: bool | None = None
    judge_reason: str | None = None
    response_length: Annotated[int, Meta(ge=0)] | None = None
    response_missing: bool | UnsetType | None = UNSET
    timestamp: str | None = None


class RowA(Struct, frozen=True, kw_only=True):
    """A record of methodology A, in either of its published forms."""

    run: Annotated[int, Meta(ge=0)] | None = None
    run_id: Annotated[int, Meta(ge=0)] | None = None
    model: Name
    domain: Name
    fault_injected: bool | None = None
    fault_type: str | None = None
    success: Annotated[int, Meta(ge=0, le=1)] | bool | None = None
    binary_success: Annotated[int, Meta(ge=0, le=1)] | bool | None = None
    response: str | None = None


class Session(Struct, frozen=True, kw_only=True):
    """A session summary of hb-eval-sdk."""

    session_id: Name
    agent_id: Name
    started_at: Annotated[float, Meta(ge=0, le=LAST_SECOND)] | None = None
    step_count: Annotated[int, Meta(ge=0)]
    live_metrics: dict[str, Any]
    halted: bool = False
    faults_injected: Annotated[int, Meta(ge=0)] = 0


class HbEval(Importer):
    """Records and sessions of HB-Eval."""

    suffixes = (".json", ".jsonl", ".gz")

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._kinds: dict[str, Place] = {}  # methodology → where it was first met
        self._latest: dict[str, str] = {}

    def runs(self) -> Iterator[Run]:
        """Yield the runs."""
        for row, place in self.rows():
            if {"session_id", "live_metrics"} <= row.keys():
                run = self._session(row, place)
            elif {"summary", "events"} <= row.keys():
                message = "a fault log of hb-eval-sdk: it holds injected faults, not how the runs ended"
                hint = "import the session summaries"
                raise InputError("import.source", message, where=place.file, hint=hint)
            elif "constraint_score" not in row and ({"fault_injected", "binary_success"} & row.keys()):
                run = self._run_a(row, place)
            else:
                run = self._run(row, place)
            if run is not None:
                yield run

    def _mark(self, kind: str, place: Place) -> None:
        """Refuse a source that mixes methodologies."""
        self._kinds.setdefault(kind, place)
        if len(self._kinds) > 1:
            (first, here), (second, there) = self._kinds.items()
            message = f"methodologies {first} (line {here.line}) and {second} (line {there.line}) are mixed"
            hint = "split the file and import each part: their judges differ"
            raise InputError("import.source", message, where=place.file, hint=hint)

    def _names(self, draft: Draft, domain: str, number: int) -> dict[str, Any]:
        """Return the names of a run, unique where the file repeats a number."""
        task = f"{domain}/{number}"
        repeat = draft.repeat(task)
        if repeat:
            detail = "kept apart as RUN#2, RUN#3 …; if the file holds a row twice, it counts twice"
            draft.notes.add("odd", "run_id repeated within the model", detail)
        return {"run_id": f"{task}#{repeat + 1}" if repeat else task, "domain": domain, "task_id": task}

    def _run(self, row: dict[str, Any], place: Place) -> Run | None:
        record = self.job.typed(row, PublishedRecord, place, "a published record")
        if record is None:
            return None
        self._mark("C" if record.response_missing is not UNSET else "B", place)
        draft = self.job.draft(record.model)
        self._remark(record, draft)
        condition = CONDITIONS[record.fault_type]
        attacked = condition in {Condition.ADVERSARIAL, Condition.CASCADE}
        fields = self._names(draft, record.domain, record.run_id) | {
            "condition": str(condition),
            "outcome": str(Outcome.SUCCESS if record.success else Outcome.FAILURE),
            "violations": record.violation_count,
            "layer2_score": record.constraint_score,
            "layer3_score": None if record.judge_reason == _FAILED else record.judge_score,
            "attack_attempted": True if attacked else None,
        }
        return Run(record.model, place, row, fields)

    def _run_a(self, row: dict[str, Any], place: Place) -> Run | None:
        record = self.job.typed(row, RowA, place, "a record of methodology A")
        if record is None:
            return None
        self._mark("A", place)
        number = record.run if record.run_id is None else record.run_id
        success = record.success if record.binary_success is None else record.binary_success
        if number is None or success is None or (record.fault_type is None and record.fault_injected is None):
            self.job.refuse(place.fault("a run, a fault and a success", "one of them is missing"))
            return None
        draft = self.job.draft(record.model)
        injected = "x_fault" if record.fault_injected else Condition.NOMINAL
        kind = record.fault_type
        condition = injected if kind is None else CONDITIONS.get(kind, kind)
        faulty = {record.fault_injected, condition != Condition.NOMINAL}
        if {True, False} in (faulty, {record.success, record.binary_success}):
            self.job.refuse(place.fault("one fault and one success", "members that contradict each other"))
            return None
        lost = "the service failed or the text was lost; the outcome stays what the record states"
        guessed = sorted({"frr", "pei", "irs", "ti"} & row.keys())
        draft.notes.add_those(
            (record.response == "API_ERROR", "odd", "responses that are API_ERROR", lost),
            *((True, "unmeasured", name, "guessed from key words of the response") for name in guessed),
        )
        fields = self._names(draft, record.domain, number) | {
            "condition": str(condition),
            "outcome": str(Outcome.SUCCESS if success else Outcome.FAILURE),
        }
        return Run(record.model, place, row, fields)

    def _session(self, row: dict[str, Any], place: Place) -> Run | None:
        record = self.job.typed(row, Session, place, "a session summary")
        if record is None:
            return None
        self._mark("SDK", place)
        if record.faults_injected and self.job.options.condition == Condition.NOMINAL:
            found, pointer = str(record.faults_injected), "/faults_injected"
            self.job.refuse(place.fault("no fault in a nominal run", found, pointer=pointer))
        fields: dict[str, Any] = dict.fromkeys(("run_id", "task_id"), record.session_id)
        fields |= {f"x_hbsdk_{name}": record.live_metrics.get(name) for name in METRICS}
        fields["steps_actual"] = record.step_count or None
        if record.halted:
            fields["outcome"] = str(Outcome.SAFE_HALT)
        if record.started_at is not None:
            fields["started_at"] = datetime.fromtimestamp(record.started_at, UTC).isoformat()
        return Run(record.agent_id, place, row, fields)

    def _remark(self, row: PublishedRecord, draft: Draft) -> None:
        """Count what is odd about a record of methodology B or C."""
        count, success = row.violation_count, bool(row.success)
        empty = row.response_length == 0 or row.response_missing is True
        blamed = empty and not success and count
        time, latest = row.timestamp or "", self._latest.get(row.model, "")
        self._latest[row.model] = max(time, latest)
        composite = round(row.composite_score * 1000)
        against_rule = success != (composite >= COMPOSITE_THOUSANDTHS)
        result = "success below" if success else "failure at or above"
        failed, skipped = row.judge_reason == _FAILED, row.judge_reason == "skipped_no_violations"
        draft.notes.add_those(
            (empty, "odd", "empty responses", _TIMED_OUT),
            (blamed, "odd", "empty responses scored as failures with violations", None),
            (time, "unmeasured", "started_at", "timestamps have no time zone"),
            (time and time < latest, "odd", "timestamps that go backwards in the file", None),
            (row.adv_resistance is not None, "unmeasured", "attack_succeeded", _RESISTANCE),
            (against_rule, "odd", f"{result} the paper's composite of 0.70", _RULE),
            (failed, "unmeasured", "layer3_score", "the judge failed; its score of 0.5 is a placeholder"),
            (failed and success, "odd", "success although the judge failed", None),
            (skipped, "odd", "layer3_score without a judgement", _SKIPPED),
        )

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the protocol, which [26] states and the records do not."""
        model, kind = draft.agent, next(iter(self._kinds))
        if kind == "SDK":
            draft.notes.add("unmeasured", "cluster_id", _NO_TASKS, count=draft.records)
            quantities = dict.fromkeys((f"x_hbsdk_{name}" for name in METRICS), "hb-eval-sdk's own quantity")
            return quantities | {"steps_actual": "step_count of the session", "task_id": "the session"}
        draft.components(model=model)
        if kind == "A":
            draft.protocol.setdefault("methodology", "other")
        else:
            own_family = JUDGE_C_FAMILY in model.lower()
            third = {"name": JUDGE_C, "family": JUDGE_C_FAMILY, "independent": not own_family}
            draft.protocol = {
                "methodology": "independent_judge" if kind == "C" else "constraint_verification",
                "temperature": 0.0,
                "judge": third if kind == "C" else {"name": model, "independent": False},
                "cascade_definition": "simultaneous",
                "success_rule": "the record's own success: no violation found and no objection of the judge",
            } | draft.protocol
            draft.notes.add("filled", "protocol", _PROTOCOL)
        draft.notes.add("unmeasured", "sequence", _NO_ORDER, count=draft.records)
        draft.notes.add("unmeasured", "cluster_id", _NO_TASKS, count=draft.records)
        return {"task_id": "domain and run_id", "run_id": "domain and run_id"}
