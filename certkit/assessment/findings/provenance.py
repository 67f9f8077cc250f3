"""Findings about who was evaluated, how and by whom: what the manifest says and what it leaves out.

Those about commitment integrity are warnings, so that none contests a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.findings.findings import finding
from certkit.assessment.kinds import CASCADE, KINDS
from certkit.assessment.metrics.metric import State, names, percent
from certkit.assessment.statistics.posterior import corrected
from certkit.bundle.manifest import UNVERSIONED
from certkit.ground.text import judges_itself
from certkit.ground.wording import many
from certkit.record.record import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.integrity.document import IntegrityDocument
    from certkit.assessment.metrics.series import View
    from certkit.assessment.profile import Profile
    from certkit.bundle.manifest import Facts, Manifest


MOST_HOLLOW: Final = 10
"""Percent of successes that may be hollow before it is a finding."""
TASKS: Final = {
    "public": "the tasks are of a public seed, which an agent may have been trained on",
    "withheld": "the seed of the tasks is withheld: nobody can check yet that they are generated",
    "own": "the tasks are of the evaluator's own, and no generator gives them",
}
"""What is to be said of tasks, by the class of their seed; nothing of a stated one."""


def provenance(view: View, facts: Facts, profile: Profile) -> Iterator[Finding]:
    """Yield the findings that the manifest gives rise to."""
    yield from _bundle(facts)
    yield from _agent(facts.manifest)
    yield from _missing(view)
    yield from _protocol(view, profile)
    yield from _import(facts.manifest)
    yield from _period(view)
    yield from _traces(view)


def _traces(view: View) -> Iterator[Finding]:
    traces = view.summary.traces
    if traces.bare or traces.enclosed < traces.named:
        bare = f"; {many(traces.bare)} marked as derived could not be derived again"
        message = f"traces: {traces.enclosed:,} of {traces.named:,} enclosed, each of one run"
        yield finding("traces-not-enclosed", message + (bare if traces.bare else ""))
    if traces.differ:
        share = f"{traces.differ:,} of {traces.enclosed:,}"
        yield finding("derived-differs", f"{share} enclosed traces show other values than their records")


def _bundle(facts: Facts) -> Iterator[Finding]:
    if facts.manifest.protocol.origin == "simulated":
        yield finding("simulated-origin", "the evidence is simulated: it says nothing about a real agent")
    if not facts.sealed:
        yield finding("unsealed", "the bundle is not sealed: its files can change without being noticed")
    if facts.unread:
        yield finding("unread-parts", f"listed and hashed, but not read: {names(facts.unread)}")


def _agent(manifest: Manifest) -> Iterator[Finding]:
    agent = manifest.agent
    if agent.version == UNVERSIONED:
        yield finding("unversioned-agent", "the agent has no version: a later one cannot be told from it")
    if not agent.components:
        yield finding(
            "components-not-listed", "the agent's components (model, prompt, tools …) are not listed"
        )
    loose = [f"{part.role} {part.name}" for part in agent.components if part.digest is None]
    if loose:
        yield finding(
            "unpinned-components",
            f"{len(loose)} of {len(agent.components)} components are not pinned by a digest: {names(loose)}",
        )


def _missing(view: View) -> Iterator[Finding]:
    """Name the protocol facts that are left out and would bear on this evidence."""
    protocol, total = view.manifest.protocol, view.total
    judged = total.ti_n > 0 or total.composite_checked > 0
    facts = (
        ("methodology", protocol.methodology, True),
        ("temperature", protocol.temperature, True),
        ("judge", protocol.judge, judged),
        ("memory_observable", protocol.memory_observable, view.fault.irs_recoveries > 0),
        ("cascade_definition", protocol.cascade_definition, view.condition(Condition.CASCADE).runs > 0),
        ("evaluator", protocol.evaluator, True),
        ("period", protocol.period, True),
        ("start times of runs", view.summary.times.timed or None, total.runs > 0),
    )
    missing = [name for name, value, bears in facts if bears and value is None]
    if missing:
        yield finding("protocol-not-stated", f"facts about the evaluation are missing: {', '.join(missing)}")


def _protocol(view: View, profile: Profile) -> Iterator[Finding]:
    protocol = view.manifest.protocol
    evaluator, judge = protocol.evaluator, protocol.judge
    if evaluator is not None and evaluator.relation != "independent":
        relation = {"same": "is the developer", "affiliated": "is affiliated with the developer", None: None}
        stands = relation[evaluator.relation] or "does not state their relation to the developer"
        yield finding("evaluator-not-independent", f"the evaluator, {evaluator.name}, {stands}")
    if judge is not None and judges_itself(judge, view.manifest.agent.components):
        yield finding("judge-not-independent", f"the judge, {judge.name}, is not independent of the agent")
    if protocol.temperature:
        yield finding(
            "temperature-not-zero", f"the runs were made at temperature {protocol.temperature:g}, not 0"
        )
    yield from _attempt(protocol.attempt, profile)
    if protocol.declared_runs is None and profile.stopping == "declared":
        yield finding(
            "undeclared-runs",
            "how many runs were planned is not declared: stopping when the result looks good makes false"
            " passes likely",
        )
    if protocol.success_rule is not None:
        yield finding("success-reading", f"success was read as: {protocol.success_rule}")
    cascades = view.condition(Condition.CASCADE).runs
    needed = any(KINDS.get(row.metric) == CASCADE for row in profile.criteria)
    if needed and cascades and protocol.cascade_definition not in {None, "simultaneous"}:
        yield finding(
            "cascade-definition",
            f"{many(cascades, 'cascade run')} defined as {protocol.cascade_definition!r};"
            " the source means adversarial injection and context corruption at once",
        )


def _attempt(attempt: int | None, profile: Profile) -> Iterator[Finding]:
    if attempt is None:
        yield finding(
            "undeclared-attempt",
            "nothing says whether this agent was evaluated before: bounds take this as the first time",
        )
    elif attempt > 1:
        raised = ", ".join(
            f"Tier {tier}: {percent(float(corrected(profile.confidence(tier), attempt)))}"
            for tier in profile.tier_numbers
        )
        yield finding(
            "repeated-attempt",
            f"this is attempt {attempt:,}: the best of several looks better than the agent is; bounds ask"
            f" for more confidence ({raised})",
        )


def _import(manifest: Manifest) -> Iterator[Finding]:
    notes = manifest.imported.notes if manifest.imported else ()
    for note in notes:
        if note.kind in {"guessed", "odd", "refused"}:
            detail = f": {note.detail}" if note.detail else ""
            lead = {"refused": "left out: ", "guessed": "the import guessed "}.get(note.kind, "")
            yield finding(f"import-{note.kind}", f"{lead}{note.what} ({note.count:,}){detail}")


def _period(view: View) -> Iterator[Finding]:
    """Compare the declared period with the first and last start time."""
    period, times = view.manifest.protocol.period, view.summary.times
    start, end = period.span if period else (None, None)
    early = start is not None and times.first is not None and times.first < start
    late = end is not None and times.last is not None and times.last > end
    if early or late:
        side = "before and after" if early and late else "before" if early else "after"
        yield finding("outside-period", f"runs started {side} the declared period")


def commitments(scored: IntegrityDocument | None) -> Iterator[Finding]:
    """Yield the findings that commitment integrity gives rise to; none where a bundle holds no replies."""
    if scored is None:
        return
    hollow, successes = len(scored.hollow.tasks), scored.success.successes
    if hollow * 100 > MOST_HOLLOW * successes:
        yield finding(
            "integrity-hollow",
            f"the agent succeeds without holding its commitments: {hollow:,} of {successes:,} successes"
            " hold fewer than half of the probes",
        )
    if scored.state is not State.MEASURED:
        missing = scored.success.unanswered + scored.accuracy.unanswered
        asked = scored.success.n + scored.accuracy.n
        yield finding(
            "integrity-partial", f"{missing:,} of {asked:,} questions about commitments have no reply"
        )
    if people := scored.raters.people:
        yield finding(
            "integrity-rated", f"commitment integrity rests on the ratings of {many(people, 'rater')}"
        )
    if reason := TASKS.get(scored.seed):
        yield finding("integrity-tasks", reason)
