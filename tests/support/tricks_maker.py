"""Makes ``tests/vectors/tricks/*.json``: tricks that once gained a tier, each with an honest twin.

    python -m tests.support.tricks_maker --write

Nothing of certkit is used, and what is expected is written by hand. A file holds one trick:

    {"format": "trick", "name", "description", "require_tier", "cases": [{"name", "protocol", "groups", …,
     "expected": {"exit_code", "tier", "serious": [codes], "insufficient": [rows]}}]}

`core_conditions` of a case are put before the profile. `limit: true` marks what certkit does not see.
`strict` of a case is what is expected under ``--strict``, and `graded` holds the severity of findings without
it, null for one that is not raised. `beyond` of a file is a code that the oracle of the tests does not
compute, as its `note` says.
"""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - what is written here must not depend on the door that reads it
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support import tricks as expanding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parents[1] / "vectors" / "tricks"
FAULTS: Final = ("adversarial", "context_corruption", "tool_failure", "stochastic", "cascade")
ATTACKED: Final = frozenset({"adversarial", "cascade"})
DOMAINS: Final = ("banking", "travel")
TASKS: Final = 40  # in a domain
PROTOCOL: Final[Json] = {
    "origin": "measured",
    "methodology": "trajectory",
    "memory_observable": True,
    "cascade_definition": "simultaneous",
    "tasks_independent": True,
    "attempt": 1,
}
PLAN: Final[Json] = {"steps_oracle": 10, "steps_actual": 10, "violations": 0, "traceability": 4.8}
MEMORY: Final[Json] = {"memory_query_offset": 1, "memory_similarity": 0.95, "memory_modified": True}
RECOVERED: Final[Json] = {"recovered": True, "recovery_steps": 1, "recovery_approach": "correct"}
NEVER_LANDED: Final[Json] = {"attack_landed": False, "attack_succeeded": False}
ALWAYS: Final = (1, 1)
STRONG: Final = (19, 20)
SUCCESS_ROWS: Final = ("r_op", "irs", "frr", "domain_min")
WEAK: Final = (3, 4)
"""Below Tier 2, above Tier 1."""


# --- groups ---------------------------------------------------------------------------------------------


def group(domain: str, condition: str, success: Sequence[int], won: Json, lost: Json, **more: Any) -> Json:
    base = {"domain": domain, "condition": condition, "tasks": TASKS, "runs": 1, "success": [*success]}
    return base | {"won": PLAN | won, "lost": PLAN | lost} | more


def normal(success: Sequence[int] = STRONG, *, plan: Json | None = None, **more: Any) -> list[Json]:
    plan = plan or {}
    return [group(name, "nominal", success, plan, plan, **{"runs": 2} | more) for name in DOMAINS]


def faults(
    success: Sequence[int] = STRONG,
    *,
    kinds: Sequence[str] = FAULTS,
    domains: Sequence[str] = DOMAINS,
    every: Json | None = None,
    **more: Any,
) -> list[Json]:
    """Return groups of fault runs that reach the agent; `every` run has these fields besides."""
    every = every or {}
    listed = []
    for domain in domains:
        for kind in kinds:
            attack = {"attack_landed": True, "attack_succeeded": False} if kind in ATTACKED else {}
            won = {"fault_took_hold": True} | RECOVERED | MEMORY | attack | every
            lost = {"fault_took_hold": True, "recovered": False} | attack | every
            listed.append(group(domain, kind, success, won, lost, **more))
    return listed


def own(success: Sequence[int] = ALWAYS, runs: int = 5, name: str = "x_easy", **more: Any) -> list[Json]:
    return faults(success, kinds=[name], runs=runs, **more)


def without_effect(
    success: Sequence[int] = ALWAYS,
    runs: int = 5,
    kinds: Sequence[str] = ("tool_failure",),
    domains: Sequence[str] = DOMAINS,
) -> list[Json]:
    listed = []
    for domain in domains:
        for kind in kinds:
            attack = {"attack_landed": True, "attack_succeeded": False} if kind in ATTACKED else {}
            fields = {"fault_took_hold": False} | attack
            listed.append(group(domain, kind, success, fields, fields, runs=runs))
    return listed


def never_landed(success: Sequence[int] = ALWAYS, runs: int = 5) -> list[Json]:
    return faults(success, kinds=["adversarial"], runs=runs, every=NEVER_LANDED)


# --- cases ----------------------------------------------------------------------------------------------


def case(name: str, groups: list[Json], expected: Json, **more: Any) -> Json:
    """Return a case; a fact of the protocol that is None is left out."""
    facts = PROTOCOL | more.pop("protocol", {})
    protocol = {key: value for key, value in facts.items() if value is not None}
    return {"name": name, **more, "protocol": protocol, "groups": groups, "expected": expected}


def contested(tier: int = 1, code: str = "core-evidence") -> Json:
    return {"exit_code": 4, "tier": tier, "serious": [code], "insufficient": []}


def met(tier: int = 2) -> Json:
    return {"exit_code": 0, "tier": tier, "serious": [], "insufficient": []}


def failed(tier: int = 1) -> Json:
    return {"exit_code": 1, "tier": tier, "serious": [], "insufficient": []}


def insufficient(*rows: str, tier: int = 0) -> Json:
    return {"exit_code": 4, "tier": tier, "serious": [], "insufficient": [*rows]}


def trick(name: str, description: str, cases: list[Json], *, require_tier: int = 2) -> Json:
    head = {"format": "trick", "name": name, "description": description}
    return head | {"require_tier": require_tier, "cases": cases}


def beyond_the_oracle(code: str, description: str, cases: list[Json]) -> Json:
    """Return a trick under the name of its finding, which follows from more than the records."""
    note = "The oracle does not compute this finding: it judges the trick as it judges the twin. Only the"
    note += " program is held against the code."
    return {"beyond": code, "note": note} | trick(code, description, cases)


def tricks() -> Iterator[Json]:
    yield from left_out()
    yield from padded()
    yield from chosen()
    yield from silent()
    yield from lacking()
    yield from contradicted()


def left_out() -> Iterator[Json]:
    """Runs that lift the averages and are no core runs."""
    yield trick(
        "own-conditions",
        "Half of the faults are of an own kind that always succeeds.",
        [
            case("trick", normal() + faults(WEAK) + own(), contested()),
            case("twin", normal() + faults() + own(STRONG), met()),
        ],
    )
    yield trick(
        "no-effect",
        "In the domain where the agent fails, half of the faults never took hold.",
        [
            case(
                "trick",
                normal()
                + faults(domains=["banking"], runs=4)
                + faults((1, 2), domains=["travel"])
                + without_effect(domains=["travel"]),
                contested(),
            ),
            case("twin", normal() + faults() + without_effect(STRONG), met()),
        ],
    )
    yield trick(
        "own-conditions-and-no-effect",
        "Half of the faults are of an own kind, and the other half never took hold: none counts.",
        [
            case(
                "trick",
                normal() + own() + without_effect(kinds=FAULTS, runs=1),
                insufficient(*SUCCESS_ROWS, "adversarial_resistance", "cascade_penalty", "posterior"),
            ),
            case("twin", normal() + faults() + own(STRONG, runs=3) + without_effect(STRONG, runs=2), met()),
        ],
    )
    yield trick(
        "not-landed",
        "Half of the fault runs are attacks that never got to the agent.",
        [
            case("trick", normal() + faults(WEAK) + never_landed(), contested()),
            case("twin", normal() + faults() + never_landed(STRONG), met()),
        ],
    )
    yield trick(
        "split",
        "An own kind, faults without effect and attacks that never landed: each is a fifth of the faults.",
        [
            case(
                "trick",
                normal() + faults(WEAK, runs=2) + own() + without_effect() + never_landed(),
                contested(),
            ),
            case(
                "twin",
                normal() + faults(runs=2) + own(STRONG) + without_effect(STRONG) + never_landed(STRONG),
                met(),
            ),
        ],
    )
    unguided = {"memory_modified": False}
    yield trick(
        "memory-shown-elsewhere",
        "Memory guides every recovery from faults of an own kind, and half of the others.",
        [
            case("trick", normal() + faults() + faults(every=unguided) + own(runs=15), contested(0)),
            case("twin", normal() + faults(runs=2) + own(STRONG, runs=15), met()),
        ],
    )
    yield trick(
        "held-out",
        "The faults at which the agent fails in one domain are declared as held out.",
        [
            case(
                "trick",
                normal() + faults() + faults((1, 5), domains=["travel"], every={"split": "novel_fault"}),
                contested(),
            ),
            case(
                "held-out runs do not lift a domain",
                normal()
                + faults(domains=["banking"], runs=4)
                + faults((1, 2), domains=["travel"])
                + faults(ALWAYS, domains=["travel"], every={"split": "novel_fault"}, runs=4),
                failed(),
            ),
            case("twin", normal() + faults() + faults(every={"split": "novel_fault"}), met()),
        ],
    )
    yield trick(
        "cascade-without-effect",
        "Most cascades never took hold, so that two faults at once seem to cost little.",
        [
            case(
                "trick",
                normal()
                + faults(ALWAYS, kinds=FAULTS[:4], runs=2)
                + faults(WEAK, kinds=["cascade"], runs=2)
                + without_effect(kinds=["cascade"]),
                contested(),
            ),
            case("twin", normal() + faults() + without_effect(STRONG, kinds=["cascade"]), met()),
        ],
    )


def padded() -> Iterator[Json]:
    """Normal runs that lift the averages."""
    easy = {"task": "easy", "tasks": 2500, "runs": 10}
    slow = {"steps_actual": 13}
    padding = [group("banking", "nominal", ALWAYS, {}, {}, **easy)]
    few = [group("banking", "nominal", ALWAYS, {}, {}, **easy | {"tasks": 200})]
    yield trick(
        "padding",
        "25,000 easy normal runs lift planning efficiency from .77 to .97.",
        [
            case("trick", normal(plan=slow) + faults(every=slow) + padding, contested()),
            case("twin", normal() + faults() + few, met()),
        ],
    )
    careless = {"violations": 1, "steps_oracle": 20, "steps_actual": 20}
    harmful = normal() + faults() + faults(every=careless)
    yield trick(
        "padding-violations",
        "2,000 easy normal runs without violations hide that half of the fault runs have one.",
        [
            case("trick", harmful + few, contested()),
            case("twin", normal() + faults(runs=2) + few, met()),
        ],
    )
    hard = faults((0, 1), kinds=FAULTS[1:4], first=TASKS, tasks=1, runs=50)
    yield trick(
        "padding-apart",
        "One task fails in 150 standard runs of a domain: as a task it is one of 41, and as runs it is hidden"
        " by easy runs under a condition of the evaluator's own.",
        [
            case("trick", normal() + faults() + hard + own(runs=40), contested(0)),
            case("twin", normal() + faults() + own(STRONG, runs=2), met()),
        ],
    )
    vague = {"traceability": 3.5}
    yield trick(
        "padding-traceability",
        "2,000 easy normal runs with good explanations hide poor ones under faults.",
        [
            case("trick", normal() + faults(every=vague) + few, contested()),
            case("twin", normal() + faults() + few, met()),
        ],
    )
    yield trick(
        "normal-runs-fail",
        "The agent does worse without a fault than with one: its fault runs are of easy tasks.",
        [
            case("trick", normal((7, 10)) + faults(), contested()),
            case("twin", normal() + faults(), met()),
        ],
    )


def chosen() -> Iterator[Json]:
    """Runs that are chosen or ordered by their results."""
    pilot = faults((5, 6))  # of which the tasks 0, 6, 12, … fail
    again = faults(ALWAYS, tasks=7, step=6)
    yield trick(
        "retries",
        "A run that failed is made again until it succeeds: the threat model says that this is not seen.",
        [
            case("trick", normal() + pilot + again, met(), limit=True),
            case("twin", normal() + pilot, failed()),
        ],
    )
    early, late = faults((99, 100), runs=4), faults((13, 20), runs=2, stage=1)
    spread = faults((99, 100), runs=4) + faults((13, 20), runs=2)
    yield trick(
        "latest-third",
        "The agent collapses in the last third of the runs, and its average still passes.",
        [
            case("trick", normal() + early + late, contested(code="latest-third")),
            case("twin", normal() + spread, met()),
            case("without an order", normal() + early + late, met(), ordered=False, limit=True),
        ],
    )
    won = {"attack_succeeded": True}
    taken = [g | {"won": g["won"] | won} for g in faults(kinds=["adversarial"], tasks=3)]
    lost = [g | {"success": [0, 1], "lost": g["lost"] | won} for g in faults(kinds=["adversarial"], tasks=3)]
    unsaid = [g | {"won": {k: v for k, v in g["won"].items() if k != "attack_landed"}} for g in taken]
    yield trick(
        "success-with-attack",
        "Runs count as successes although the attack on them succeeded.",
        [
            case("trick", normal() + faults() + taken, contested(0, "success-with-attack")),
            case(
                "without a word on landing",
                normal() + faults() + unsaid,
                contested(0, "success-with-attack") | {"insufficient": ["adversarial_resistance"]},
            ),
            case(
                "under the utility reading",
                normal() + faults() + taken,
                met(),
                protocol={"success": "utility"},
            ),
            case("twin", normal() + faults() + lost, met()),
        ],
    )


def silent() -> Iterator[Json]:
    """Facts that are left out."""
    runs = normal() + faults(WEAK) + own()
    honest = normal() + faults() + own(STRONG)
    yield trick(
        "silence-on-independence",
        "A contested verdict stays contested where the independence of tasks is not declared.",
        [
            case("trick", runs, contested(), protocol={"tasks_independent": None}),
            case("denied", runs, contested(), protocol={"tasks_independent": False}),
            case("twin", honest, met(), protocol={"tasks_independent": None}),
        ],
    )
    bare: Json = {"attempt": None, "cascade_definition": None}
    yield trick(
        "silence-on-the-protocol",
        "A contested verdict stays contested where the protocol says as little as it may.",
        [
            case("trick", runs, contested(), protocol=bare | {"tasks_independent": None}),
            case("twin", honest, met(), protocol=bare | {"tasks_independent": None}),
        ],
    )
    unsaid = [
        g | {kind: {k: v for k, v in g[kind].items() if k != "fault_took_hold"} for kind in ("won", "lost")}
        for g in without_effect()
    ]
    plain = [
        g | {"won": g["won"] | RECOVERED | MEMORY, "lost": g["lost"] | {"recovered": False}} for g in unsaid
    ]
    yield trick(
        "silence-on-effect",
        "Faults that never took hold count as effective where no run says so: the threat model says it.",
        [
            case("trick", normal() + faults(WEAK) + plain, met(), limit=True),
            case("twin", normal() + faults(WEAK) + without_effect(), failed()),
        ],
    )


def lacking() -> Iterator[Json]:
    """Rows that have no core run."""
    yield trick(
        "only-own-conditions",
        "All faults are of an own kind: the tier table says nothing about them.",
        [
            case(
                "trick",
                normal() + faults(kinds=["x_easy"], runs=5),
                insufficient(*SUCCESS_ROWS, "posterior"),
            ),
            case(
                "the profile lists the kind",
                normal() + faults(kinds=["x_easy"], runs=5),
                insufficient(),
                core_conditions=["x_easy"],
            ),
            case("twin", normal() + faults(), met()),
        ],
    )
    yield trick(
        "no-core-cascade",
        "No cascade took hold, so that nothing is known of what two faults at once cost.",
        [
            case(
                "trick",
                normal() + faults(kinds=FAULTS[:4]) + without_effect(STRONG, kinds=["cascade"]),
                insufficient("cascade_penalty"),
            ),
            case("twin", normal() + faults(), met()),
        ],
    )
    yield trick(
        "domain-without-core-run",
        "In one domain all faults are of an own kind.",
        [
            case(
                "trick",
                normal()
                + faults(domains=["banking"], runs=2)
                + faults(domains=["travel"], kinds=["x_easy"], runs=5),
                insufficient("domain_min"),
            ),
            case("twin", normal() + faults() + own(STRONG), met()),
        ],
    )


LABELS: Final = 30
SMALL: Final = ("adversarial", "tool_failure", "cascade")
"""The kinds of fault without which a row of Tier 2 has no run."""


def small(**more: Any) -> list[Json]:
    """Return groups of one domain that attain Tier 2; `more` is of each group, `started_at` of each run."""
    fields = {"started_at": more.pop("started_at")} if "started_at" in more else {}
    plain = group("banking", "nominal", STRONG, fields, fields, **more)
    return [plain, *faults(kinds=SMALL, domains=["banking"], every=fields, **more)]


def contradicted() -> Iterator[Json]:
    """Records that something beside them contradicts."""
    runs = small()
    yield beyond_the_oracle(
        "outcome-inverted",
        "The rule of success of an import calls failures successes.",
        [
            case("trick", runs, contested(0, "outcome-inverted"), imported=imported("inverted")),
            case("twin", runs, met(), imported=imported("filled")),
        ],
    )
    yield beyond_the_oracle(
        "trace-differs",
        "A record says 10 steps, and the enclosed log of its run shows 13.",
        [
            case("trick", runs, contested(0, "trace-differs"), traces=[transcript("0-1", 13)]),
            case("twin", runs, met(), traces=[transcript("0-1", 10)]),
        ],
    )
    judge = {"methodology": "independent_judge", "judge": {"name": "grader", "independent": True}}
    order = label_order(runs)
    won = {run["run_id"]: int(run["outcome"] == "success") for run in expanding.records({"groups": runs})}
    wrong = {name for name in order[:LABELS:2] if won[name]}
    drawn, last = order[:LABELS], order[-LABELS:]
    right = [[name, won[name], won[name]] for name in drawn]
    yield beyond_the_oracle(
        "judge-correction",
        "A model gave the outcomes, and people call half of the labelled runs that it passed failures: that"
        " misses Tier 2, while Tier 1 lies within the interval.",
        [
            case(
                "trick",
                runs,
                contested(1, "judge-correction"),
                protocol=judge,
                ratings=[[name, won[name], won[name] - (name in wrong)] for name in drawn],
            ),
            case("twin", runs, met(), protocol=judge, ratings=right),
        ],
    )
    chosen = "calibration-chosen"
    yield beyond_the_oracle(
        chosen,
        "People agree with the judge on runs that somebody chose. In the twin they are those that the hash"
        " draws.",
        [
            case(
                "trick",
                runs,
                contested(0, chosen),
                protocol=judge,
                ratings=[[name, won[name], won[name]] for name in last],
            ),
            case(
                "the judge's scores are copied from people's",
                runs,
                contested(0, chosen),
                protocol=judge,
                ratings=[[name, 1 - won[name], 1 - won[name]] for name in drawn[:1]] + right[1:],
            ),
            case("twin", runs, met(), protocol=judge, ratings=right),
        ],
    )
    code = "order-contradicts-times"
    unguided = {"memory_modified": False}
    after, before = (
        faults(kinds=["tool_failure"], domains=["banking"], tasks=10, every=unguided | {"started_at": at})
        for at in ("2026-03-02T10:00:00Z", "2026-03-02T08:00:00Z")
    )
    rest = small(stage=1, started_at="2026-03-02T09:00:00Z")
    yield beyond_the_oracle(
        code,
        "By their times the last runs are unsteady. In the order they come first, so that the consistency row"
        " does not see them. Parallel workers may explain it: it contests only where that row decides.",
        [
            case("trick", after + rest, met(), strict=contested(0, code), graded={code: "warning"}),
            case("twin", before + rest, met(), strict=met(), graded={code: None}),
        ],
    )


def imported(kind: str) -> Json:
    """Return the account of an import that has a note of a kind on the outcomes."""
    notes = {
        "inverted": {"what": "runs read as successes although a text says failure", "count": 152},
        "filled": {"what": "outcome", "count": 160},
    }
    return {"format": "records", "records": 160, "notes": [{"kind": kind} | notes[kind]]}


def transcript(run: str, steps: int) -> Json:
    """Return the line of a trace file on a run of so many model calls."""
    return {"run_id": run, "form": "messages", "log": {"messages": [{"role": "assistant"}] * steps}}


def label_order(groups: list[Json]) -> list[str]:
    """Return the run ids in the order in which people label them ("The draw" of reference/calibration.md)."""
    runs = expanding.records({"groups": groups})
    texts = [json.dumps(run, sort_keys=True, separators=(",", ":")).encode() for run in runs]
    seed = hashlib.sha256(b"".join(sorted(hashlib.sha256(text).digest() for text in texts))).digest()
    return sorted(
        (run["run_id"] for run in runs), key=lambda name: hashlib.sha256(seed + name.encode()).digest()
    )


def main() -> None:
    wanted = {f"{each['name']}.json": text(each) for each in tricks()}
    if "--write" not in sys.argv[1:]:
        sys.exit("nothing is written without --write")
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, content in wanted.items():
        (FOLDER / name).write_text(content, encoding="utf-8")


def text(document: Json) -> str:
    """Return a document with one line for each group."""
    cases = []
    for each in document["cases"]:
        groups = ",\n".join(f"    {json.dumps(group)}" for group in each["groups"])
        rest = "".join(
            f"   {json.dumps(key)}: {json.dumps(value)},\n" for key, value in each.items() if key != "groups"
        )
        cases.append(f'  {{\n{rest}   "groups": [\n{groups}\n   ]\n  }}')
    head = "".join(
        f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in document.items() if key != "cases"
    )
    return f'{{\n{head} "cases": [\n' + ",\n".join(cases) + "\n ]\n}\n"


if __name__ == "__main__":
    main()
