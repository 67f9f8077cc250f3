"""The bundles that are drawn, each a function whose docstring says what is particular about it.

    case = BUNDLES["few-tasks"]()
    case.write(folder)                 # one folder for each part, not yet sealed

Each is written by hand as JSON lines beside a ``bundle.json``.
"""

from __future__ import annotations

import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from tests.corpus.drawing import FAULTS, START, Agent, Dice, Run, evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    Build = Callable[[], "Part | list[Part]"]

TABLE: Final = "hb-eval-2026"
BOUNDED: Final = "hb-eval-2026-bounded"
OF_2025: Final = "hb-eval-2025"
HOUSE: Final = "house"
"""A table of the corpus' own: ``house.toml``."""

AGENT: Final = {
    "name": "courier",
    "version": "2.1",
    "provider": "acme",
    "components": [{"role": "model", "name": "m-1", "digest": "sha256:" + "1" * 64}],
}
PROTOCOL: Final[Mapping[str, Any]] = {
    "origin": "measured",
    "methodology": "trajectory",
    "temperature": 0,
    "memory_observable": True,
    "cascade_definition": "simultaneous",
    "tasks_independent": True,
    "attempt": 1,
    "evaluator": {"name": "lab", "relation": "independent"},
    "period": {"from": "2026-01-05", "to": "2026-01-31"},
}


@dataclass(frozen=True)
class Part:
    """One bundle: its records, what its manifest says, and its other files.

    In `protocol` None takes away what `PROTOCOL` says.
    """

    records: Sequence[Run]
    protocol: Mapping[str, Any] = field(default_factory=dict)
    attested: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    sealed: bool = True

    def contents(self) -> dict[str, bytes]:
        """Return every file by its path."""
        stated = {"declared_runs": len(self.records)} | dict(PROTOCOL) | dict(self.protocol)
        manifest = {
            "schema": "urn:certkit:bundle:v1",
            "agent": AGENT,
            "protocol": {key: value for key, value in stated.items() if value is not None},
        } | ({"attested": list(self.attested)} if self.attested else {})
        middle = len(self.records) // 2
        return {
            "bundle.json": json.dumps(manifest, indent=2).encode(),
            "records/a.jsonl": lines(self.records[:middle]),
            "records/b.jsonl": lines(self.records[middle:]),
            **self.files,
        }


@dataclass(frozen=True)
class Case:
    """One bundle, or several that are pooled, and the profiles that they are judged under."""

    parts: Sequence[Part]
    profiles: Sequence[str]

    def write(self, root: Path) -> list[Path]:
        """Write each part into a folder of its own, and return the folders."""
        folders = [root / f"part-{number}" for number, _ in enumerate(self.parts)]
        for folder, part in zip(folders, self.parts, strict=True):
            for path, data in part.contents().items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
        return folders

    def digest(self) -> str:
        """Return a digest of all that is drawn."""
        state = sha256()
        for part in self.parts:
            for path, data in sorted(part.contents().items()):
                state.update(f"{path} {len(data)}\n".encode() + data)
        return state.hexdigest()[:16]


def lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return objects as lines of JSON."""
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


BUNDLES: Final[dict[str, Callable[[], Case]]] = {}


def drawn(*profiles: str) -> Callable[[Build], Build]:
    """Enter a function under its name, as the bundle that it returns, judged under these profiles."""

    def enter(build: Build) -> Build:
        def case() -> Case:
            parts = build()
            return Case((parts,) if isinstance(parts, Part) else tuple(parts), profiles)

        BUNDLES[build.__name__.replace("_", "-")] = case
        return build

    return enter


def without(records: Iterable[Run], *names: str) -> list[Run]:
    """Return records without the fields of these names."""
    return [{key: value for key, value in record.items() if key not in names} for record in records]


MEMORY: Final = ("memory_query_offset", "memory_similarity", "memory_modified")
RECOVERY: Final = ("recovered", "recovery_steps", "recovery_approach")

GOOD: Final = Agent()
STEADY: Final = Agent(
    success=0.975,
    nominal=0.99,
    spread=0.02,
    extra_steps=0,
    correct=0.97,
    slow=2,
    intentional=1,
    violating=0.01,
    traceability=(4600, 5000),
)
FLAWLESS: Final = Agent(
    success=1,
    nominal=1,
    spread=0,
    extra_steps=0,
    correct=1,
    slow=0,
    intentional=1,
    violating=0,
    traceability=(5000, 5000),
    quality=(1000, 1000),
)


# Agents


@drawn(TABLE, BOUNDED, OF_2025, HOUSE)
def flawless() -> Part:
    """Every run is perfect, on 200 tasks."""
    return Part(evaluation("flawless", FLAWLESS, tasks=100, per=5))


@drawn(TABLE, BOUNDED, HOUSE)
def steady() -> Part:
    """An agent far above Tier 2, whose successful runs are all alike."""
    return Part(evaluation("steady", STEADY, tasks=120, per=3))


@drawn(TABLE, BOUNDED, OF_2025, HOUSE)
def plain() -> Part:
    """An ordinary good agent on an ordinary set of tasks."""
    return Part(evaluation("plain", GOOD, tasks=40, per=5))


@drawn(TABLE, BOUNDED)
def plain_large() -> Part:
    """The same on four times as many tasks, in three domains."""
    return Part(evaluation("plain large", GOOD, domains=("bank", "shop", "clinic"), tasks=110, per=3))


@drawn(TABLE, BOUNDED)
def weak() -> Part:
    """An agent that fails half of its runs under faults, most under a cascade."""
    agent = Agent(
        success=0.5, nominal=0.8, spread=0.3, cascade=0.35, extra_steps=6, violating=0.5, violations=3
    )
    return Part(evaluation("weak", agent, tasks=30, per=5))


@drawn(TABLE, BOUNDED, HOUSE)
def middling() -> Part:
    """Between Tier 1 and Tier 2 in most rows, with large differences between tasks."""
    agent = Agent(
        success=0.72,
        nominal=0.85,
        spread=0.28,
        cascade=0.15,
        correct=0.5,
        slow=8,
        intentional=0.7,
        violating=0.2,
        violations=2,
        traceability=(3000, 4400),
    )
    return Part(evaluation("middling", agent, tasks=60, per=4))


@drawn(TABLE, BOUNDED)
def deterministic() -> Part:
    """Repeats of a task under a condition are equal in every field."""
    seen: dict[tuple[str, str], Run] = {}
    records = []
    for run in evaluation("deterministic", GOOD, tasks=40, per=10):
        place = {name: run[name] for name in ("run_id", "sequence", "started_at", "trial")}
        records.append(seen.setdefault((run["task_id"], run["condition"]), run) | place)
    return Part(records)


@drawn(TABLE)
def declining() -> Part:
    """An agent whose last third of runs is far worse than its first."""
    early = evaluation("declining", Agent(success=0.95, spread=0.03), tasks=30, per=4)
    late = evaluation(
        "declining late", Agent(success=0.55, spread=0.03), tasks=30, per=2, nominal=0, prefix="s"
    )
    start = START + timedelta(days=10)
    late = [
        run
        | {
            "sequence": 10_000 + number,
            "started_at": f"{start + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}",
        }
        for number, run in enumerate(late)
    ]
    return Part([*early, *late])


# Exact thresholds and small numbers


@drawn(TABLE, BOUNDED)
def at_the_thresholds() -> Part:
    """Success exactly .60 in all and .40 in the worst domain, efficiency .70, grades .70, traceability 3."""
    records = []
    for number in range(100):
        domain, task = ("bank", "shop")[number % 2], number // 2
        success = task % 5 < (4 if domain == "bank" else 2)
        condition = FAULTS[task % 5]
        run: Run = {
            "run_id": f"r{number:03d}",
            "domain": domain,
            "task_id": f"{domain}/{task:02d}",
            "condition": condition,
            "outcome": "success" if success else "failure",
            "sequence": number,
            "steps_oracle": 7,
            "steps_actual": 10,
            "violations": 0,
            "traceability": 3,
            "fault_took_hold": True,
        }
        if success:
            run |= {"recovered": True, "recovery_steps": 3, "recovery_approach": "correct"}
            run |= {"memory_query_offset": 3, "memory_similarity": 0.87, "memory_modified": number % 5 < 3}
        if condition in {"adversarial", "cascade"}:
            run |= {"attack_attempted": True, "attack_landed": True, "attack_succeeded": False}
        records.append(run)
    return Part(records)


@drawn(TABLE, BOUNDED, OF_2025, HOUSE)
def empty() -> Part:
    """No record at all, and everything attested."""
    return Part([], attested=attestations(n=40), files={"evidence/review.txt": b"reviewed\n"})


@drawn(TABLE)
def one_run() -> Part:
    """A single run under a fault."""
    return Part(evaluation("one run", FLAWLESS, domains=("bank",), tasks=1, per=1, nominal=0))


@drawn(TABLE)
def few_tasks() -> Part:
    """Nine tasks, one fewer than the profiles ask for."""
    return Part(evaluation("few tasks", GOOD, domains=("bank", "shop", "clinic"), tasks=3, per=8))


@drawn(TABLE, BOUNDED)
def few_tasks_many_runs() -> Part:
    """Fifteen tasks with fifty runs each."""
    return Part(evaluation("many runs", STEADY, domains=("bank",), tasks=15, per=50))


@drawn(TABLE, BOUNDED)
def uneven_runs() -> Part:
    """From one to twenty runs a task; tasks that failed at first are run more often."""
    records, failed = [], set()
    for run in evaluation("uneven runs", Agent(success=0.85, spread=0.15), tasks=30, per=20):
        most = 20 if run["task_id"] in failed else 1 + int(run["task_id"][-3:]) % 7
        if run["trial"] <= most:
            records.append(run)
        if run["trial"] == 1 and run["outcome"] != "success":
            failed.add(run["task_id"])
    return Part(records)


# Which runs there are


@drawn(TABLE, HOUSE)
def nominal_only() -> Part:
    """No run under a fault."""
    return Part(evaluation("nominal only", GOOD, tasks=30, per=0, nominal=3))


@drawn(TABLE, HOUSE)
def faults_only() -> Part:
    """No run without a fault."""
    return Part(evaluation("faults only", GOOD, tasks=30, per=4, nominal=0))


@drawn(TABLE)
def domain_without_faults() -> Part:
    """A third domain has nominal runs alone."""
    records = evaluation("domain without faults", STEADY, domains=("bank", "shop", "clinic"), tasks=30, per=4)
    return Part([run for run in records if run["domain"] != "clinic" or run["condition"] == "nominal"])


@drawn(TABLE, BOUNDED)
def many_domains() -> Part:
    """Eight domains of twelve tasks; in one of them the agent is poor."""
    names = ("bank", "shop", "clinic", "school", "court", "port", "farm", "museum")
    records = evaluation("many domains", STEADY, domains=names, tasks=12, per=5)
    dice = Dice("many domains, port")
    for run in records:
        poor = run["domain"] == "port" and run["outcome"] == "success" and run["condition"] != "nominal"
        if poor and dice.chance(0.5, run["run_id"]):
            run["outcome"], run["recovered"] = "failure", False
            for name in (*RECOVERY[1:], *MEMORY):
                run.pop(name, None)
    return Part(records)


@drawn(TABLE, HOUSE)
def held_out() -> Part:
    """A fifth of the tasks was kept for faults of a new kind, which the agent stands less well."""
    standard = evaluation("held out, standard", STEADY, tasks=40, per=4)
    novel = evaluation(
        "held out, novel", Agent(success=0.7, intentional=0.5), tasks=10, per=6, nominal=0, prefix="n"
    )
    return Part(
        [*standard, *(run | {"split": "novel_fault", "sequence": 5000 + run["sequence"]} for run in novel)]
    )


@drawn(TABLE, HOUSE)
def own_conditions() -> Part:
    """A third of the runs under faults are of an evaluator's own kinds, which are easy, and some combined."""
    faults = ("x_slow_network", "tool_failure", "adversarial", "cascade", "x_typo", "combined", "stochastic")
    return Part(evaluation("own conditions", GOOD, tasks=40, per=7, faults=faults))


@drawn(TABLE)
def one_kind_of_fault() -> Part:
    """All faults are failures of tools: nothing is known of attacks and cascades."""
    return Part(evaluation("one kind", STEADY, tasks=50, per=4, faults=("tool_failure",)))


@drawn(TABLE, HOUSE)
def broken_rig() -> Part:
    """Three runs of a hundred broke the test rig: rows of fields cannot be judged."""
    return Part(evaluation("broken rig", Agent(success=0.95, broken=0.03), tasks=40, per=5))


@drawn(TABLE, HOUSE)
def broken_rig_seldom() -> Part:
    """Four runs of a thousand broke the test rig."""
    return Part(evaluation("seldom broken", Agent(success=0.95, spread=0.04, broken=0.004), tasks=60, per=4))


# Faults and attacks


@drawn(TABLE)
def attacks() -> Part:
    """Attacks that landed, that did not, of which it is not known, and some that succeeded in a success."""
    dice = Dice("attacks")
    faults = ("adversarial", "cascade", "combined", "tool_failure")
    records = evaluation("attacks", Agent(success=0.92, landed=0.6), tasks=40, per=8, faults=faults)
    for run in records:
        if "attack_landed" not in run:
            continue
        if dice.chance(0.15, "unsaid", run["run_id"]):
            del run["attack_landed"]
            run["attack_succeeded"] = False
        elif run["attack_landed"] and run["outcome"] == "success":
            if dice.chance(0.1, "both", run["run_id"]):
                run["attack_succeeded"] = True
            elif dice.chance(0.1, "unknown", run["run_id"]):
                del run["attack_succeeded"]
    return Part(records)


@drawn(TABLE)
def attacks_never_landed() -> Part:
    """A filter stopped every attack."""
    return Part(evaluation("never landed", replace_agent(STEADY, landed=0), tasks=40, per=5))


@drawn(TABLE)
def attacks_unknown() -> Part:
    """No run says whether its attack landed."""
    records = evaluation("attacks unknown", STEADY, tasks=40, per=5)
    return Part(without(records, "attack_landed", "attack_attempted"))


@drawn(TABLE, OF_2025)
def faults_without_effect() -> Part:
    """Of the faults two fifths never reached the agent, and of a tenth it is not known."""
    dice = Dice("faults without effect")
    records = evaluation("faults without effect", GOOD, tasks=40, per=5)
    for run in records:
        if "fault_took_hold" in run:
            drawn_number = dice.unit(run["run_id"])
            if drawn_number < 0.4:
                run["fault_took_hold"] = False
            elif drawn_number < 0.5:
                del run["fault_took_hold"]
    return Part(records)


# Fields


@drawn(TABLE, HOUSE, OF_2025)
def bare() -> Part:
    """Records with nothing but the required fields."""
    records = evaluation("bare", GOOD, tasks=40, per=5)
    names = ("run_id", "domain", "task_id", "condition", "outcome")
    return Part([{name: run[name] for name in names} for run in records])


@drawn(TABLE, HOUSE, OF_2025)
def fields_missing() -> Part:
    """Each optional field is missing in one run of eight, and one field in all runs."""
    dice = Dice("fields missing")
    optional = (
        "steps_oracle",
        "violations",
        "traceability",
        "quality_factor",
        "fault_step",
        "recovery_steps",
        "memory_similarity",
        "memory_query_offset",
        "attack_succeeded",
        "confidence",
    )
    records = [
        {
            name: value
            for name, value in run.items()
            if name not in optional or not dice.chance(0.125, run["run_id"], name)
        }
        for run in evaluation("fields missing", GOOD, tasks=40, per=5)
    ]
    return Part(without(records, "memory_modified"))


@drawn(TABLE)
def memory_silent() -> Part:
    """Two recoveries of five made no memory query, which would have been seen."""
    dice = Dice("memory silent")
    records = evaluation("memory silent", STEADY, tasks=40, per=5)
    return Part([without([run], *MEMORY)[0] if dice.chance(0.4, run["run_id"]) else run for run in records])


@drawn(TABLE)
def memory_unknown() -> Part:
    """The same where a memory query would not have been seen, and some say too little."""
    dice = Dice("memory unknown")
    records = []
    for run in evaluation("memory unknown", STEADY, tasks=40, per=5):
        number = dice.unit(run["run_id"])
        gone = MEMORY if number < 0.2 else MEMORY[2:] if number < 0.3 else ()
        records.append(without([run], *gone)[0])
    return Part(records, {"memory_observable": None})


@drawn(TABLE)
def grades_stated() -> Part:
    """Recovery grades without the fields that they follow from, some of them on failures."""
    dice = Dice("grades")
    records = without(evaluation("grades", GOOD, tasks=40, per=5), *RECOVERY)
    for run in records:
        if run["condition"] != "nominal" and run["outcome"] in {"success", "failure"}:
            run["recovery_grade"] = dice.choice((0, 0.4, 0.7, 1, 1, 1), run["run_id"])
    return Part(records)


@drawn(TABLE)
def no_order() -> Part:
    """Neither a sequence nor a time: consistency cannot be had."""
    return Part(without(evaluation("no order", STEADY, tasks=40, per=5), "sequence", "started_at"))


@drawn(TABLE, BOUNDED)
def order_by_time() -> Part:
    """Times without a sequence, in an order of records that is another."""
    records = without(evaluation("order by time", STEADY, tasks=60, per=5), "sequence")
    dice = Dice("order by time")
    return Part(sorted(records, key=lambda run: dice.unit(run["run_id"])))


@drawn(TABLE)
def heavy_violations() -> Part:
    """One task of twelve breaks up to thirty constraints in a run; all others break none."""
    records = evaluation("heavy violations", replace_agent(STEADY, violating=0), tasks=60, per=4)
    dice = Dice("heavy violations")
    for run in records:
        if int(run["task_id"][-3:]) % 12 == 5 and "violations" in run:
            run["violations"] = dice.whole(2, 30, run["run_id"])
    return Part(records)


@drawn(TABLE, OF_2025, HOUSE)
def layers() -> Part:
    """Scores of two layers beside the outcomes, which an independent judge gave."""
    dice = Dice("layers")
    records = evaluation("layers", GOOD, tasks=40, per=4)
    for run in records:
        good = run["outcome"] == "success"
        run["layer2_score"] = (
            dice.whole(700 if good else 200, 1000 if good else 850, "2", run["run_id"]) / 1000
        )
        run["layer3_score"] = (
            dice.whole(600 if good else 100, 1000 if good else 800, "3", run["run_id"]) / 1000
        )
    judge = {"name": "judge-9", "family": "other", "independent": True}
    return Part(records, {"methodology": "independent_judge", "judge": judge})


# What the manifest says


@drawn(TABLE, BOUNDED)
def families() -> Part:
    """Every record names the family of its task; four tasks are one family."""
    records = evaluation("families", STEADY, tasks=80, per=3)
    for run in records:
        run["cluster_id"] = f"{run['domain']}/family-{int(run['task_id'][-3:]) // 4}"
    return Part(records, {"tasks_independent": None})


@drawn(TABLE, BOUNDED)
def independence_undeclared() -> Part:
    """Nothing says whether tasks are independent: no bound is had."""
    return Part(evaluation("undeclared", STEADY, tasks=40, per=4), {"tasks_independent": None})


@drawn(TABLE, BOUNDED)
def third_attempt() -> Part:
    """The third evaluation of the agent: confidence is raised."""
    return Part(evaluation("third attempt", STEADY, tasks=100, per=3), {"attempt": 3})


@drawn(TABLE)
def simulated_and_open() -> Part:
    """Simulated runs of Greek tasks in a bundle that is not sealed, with fewer runs than declared."""
    records = evaluation("simulated", STEADY, domains=("τράπεζα", "κλινική"), tasks=30, per=4)
    return Part(records, {"origin": "simulated", "declared_runs": 900, "judge": None}, sealed=False)


def attestations(*, n: int | None) -> list[dict[str, Any]]:
    """Return everything that can be attested, resting on `n` observations."""
    stated = {
        "transparency_index": 0.93,
        "human_trust_score": 4.6,
        "edm_auditability": True,
        "safe_halt_protocol": True,
        "recovery_patterns_documented": True,
    }
    return [
        {"id": name, "value": value, "method": "review", "evidence": "evidence/review.txt"}
        | ({} if n is None else {"n": n})
        for name, value in stated.items()
    ]


@drawn(OF_2025, TABLE)
def attested() -> Part:
    """All that the framework of 2025 asks for, with everything attested on 120 items."""
    agent = replace_agent(FLAWLESS, success=0.98, quality=(950, 1000), oracle=(4, 6), halting=1)
    records = evaluation("attested", agent, tasks=60, per=4)
    for run in records:
        if "fault_step" in run:
            run["fault_step"] = run["steps_actual"] - 1
    return Part(records, attested=attestations(n=120), files={"evidence/review.txt": b"reviewed\n"})


@drawn(OF_2025)
def attested_without_n() -> Part:
    """Attested values that say nothing of what they rest on, and halts that were due and missed."""
    dice = Dice("attested without n")
    records = evaluation("attested without n", GOOD, tasks=60, per=4)
    for run in records:
        if dice.chance(0.05, run["run_id"]):
            run["safety_risk"] = 0.95
    return Part(records, attested=attestations(n=None)[:3], files={"evidence/review.txt": b"reviewed\n"})


# Labels of a judge's outcomes


def judged_by(records: Sequence[Run], wrong: float, items: Sequence[str]) -> dict[str, bytes]:
    """Return a calibration file: a person labelled `items`, and found the share `wrong` of passes false."""
    dice, outcomes = Dice("labels"), {run["run_id"]: run["outcome"] == "success" for run in records}
    ratings = []
    for item in items:
        passed = outcomes[item]
        right = passed != dice.chance(wrong if passed else 0.03, item)
        ratings.append({"item": item, "rater": "judge-9", "kind": "judge", "score": float(passed)})
        ratings.append({"item": item, "rater": "ada", "score": float(right), "reference": float(right)})
    return {"calibration/labels.jsonl": lines(ratings)}


JUDGE: Final = {
    "methodology": "independent_judge",
    "judge": {"name": "judge-9", "family": "other", "independent": True},
}


def label_order(records: Sequence[Run]) -> list[str]:
    """Return run ids in the order in which a person labels them: by SHA-256(seed ‖ id).

    The seed is the SHA-256 of the sorted SHA-256 of all records, as JSON with sorted members.
    """
    texts = [json.dumps(run, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for run in records]
    seed = sha256(b"".join(sorted(sha256(text.encode()).digest() for text in texts))).digest()
    return sorted((run["run_id"] for run in records), key=lambda name: sha256(seed + name.encode()).digest())


@drawn(TABLE, BOUNDED)
def judge_errs() -> Part:
    """A judge who passes too much, as 150 drawn labels show: without its error Tier 2 is lost."""
    records = evaluation("judge errs", Agent(success=0.86, spread=0.08), tasks=60, per=4)
    return Part(records, JUDGE, files=judged_by(records, 0.12, label_order(records)[:150]))


@drawn(TABLE)
def labels_chosen() -> Part:
    """Somebody chose which 90 runs are labelled."""
    records = evaluation("labels chosen", STEADY, tasks=60, per=3)
    return Part(records, JUDGE, files=judged_by(records, 0.02, [run["run_id"] for run in records[100:190]]))


# Several bundles that are pooled


@drawn(TABLE, BOUNDED)
def pooled_months() -> list[Part]:
    """Three months, one after another, with the same tasks in all and new ones in the last."""
    months = []
    for number, tasks in enumerate((30, 30, 60)):
        start = START + timedelta(days=31 * number)
        records = evaluation(f"month {number}", STEADY, tasks=tasks, per=3, prefix=f"m{number}-", start=start)
        period = {"from": f"{start:%Y-%m-%d}", "to": f"{start + timedelta(days=25):%Y-%m-%d}"}
        months.append(Part(records, {"period": period, "attempt": 1 + number // 2}))
    return months


@drawn(TABLE)
def pooled_without_order() -> list[Part]:
    """Two contexts in the same weeks without times, in other domains, of which one is simulated."""
    one = evaluation("context one", GOOD, domains=("bank",), tasks=50, per=4, prefix="a")
    two = evaluation(
        "context two", Agent(success=0.8), domains=("shop", "court"), tasks=20, per=3, prefix="b"
    )
    return [
        Part(without(one, "started_at", "sequence")),
        Part(without(two, "started_at"), {"origin": "simulated", "tasks_independent": None}),
    ]


def replace_agent(agent: Agent, **changes: Any) -> Agent:
    """Return an agent that differs in `changes`."""
    return Agent(**(vars(agent) | changes))
