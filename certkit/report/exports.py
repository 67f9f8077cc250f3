"""A report's findings as files for other programs: ``certkit report --format``.

| format | what | for |
|---|---|---|
| junit | a case for each criterion of the tier asked for, one for open questions | test reports of CI |
| sarif | SARIF 2.1.0: criteria that are not met, open questions | code scanning |
| summary | page 1 in Markdown, with the criteria that have evidence and the first failing runs | a CI job |

An export is no verdict: a criterion without evidence is skipped in JUnit, never passed. Texts are cut, and
lists end, where a test report or the page of a job would become too long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from certkit._version import __version__
from certkit.assessment.assessment import Status
from certkit.assessment.words import reason_text
from certkit.ground import canonical
from certkit.ground.document import State
from certkit.ground.text import quoted, visible
from certkit.report import answer, results, words
from certkit.report.argument.challenges import ChallengeStatus, Class
from certkit.report.figures import word
from certkit.report.words import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.assessment import Row
    from certkit.report.argument.case import UseCase
    from certkit.report.view import ReportView


MOST_ROWS: Final = 20
"""Criteria of a summary."""
MOST_RUNS: Final = 10
"""Failing runs of a summary."""
MOST_TEXT: Final = 2000
"""Characters of a message."""


def export(view: ReportView, kind: str) -> bytes:
    """Return a report in one of the formats of `EXPORTS`."""
    return EXPORTS[kind](view).encode()


def _message(text: str) -> str:
    """Return text for a message of a test report."""
    return cut(visible(text).replace("\u00a0", " "), MOST_TEXT)


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return " ".join(re.sub(r"[\\|\[\]`*~]|\b_|_\b", r"\\\g<0>", visible(text)).replace("<", "&lt;").split())


def _judged(case: UseCase) -> Iterator[tuple[Row, Status, str]]:
    """Yield the criteria of the tier asked for with their status and what was found."""
    left_out = case.evaluation.assessment.tiers[str(case.tier)].left_out
    rows = [(row, row.status) for row in results.rows(case.evaluation, case.tier) if row.id in left_out]
    for row, status in [*results.judged_rows(case.evaluation, case.tier), *rows]:
        bounded = row.bounded if case.evaluation.profile.reading == "bounded" else None
        why = row.reason or (bounded and bounded.reason)
        reason = f"; {reason_text(why)}" if why else ""
        if bounded is not None and bounded.bound is not None:
            reason += f"; confidence limit {results.bound(row)}"
        state = case.evaluation.metrics[row.metric].state
        value = {State.PARTIAL: "partial", State.UNMEASURED: "nothing"}.get(state) or results.measured(row)
        yield row, status, f"asked {results.asked(row)}, found {value}{reason}"


def _junit(view: ReportView) -> str:
    case, argument = view.case, view.argument
    name = f"Tier {case.tier} of {case.evaluation.profile.name}"
    cases = []
    for row, status, text in _judged(case):
        called = f"{words.capital(results.title(row))} ({row.id})"
        made = ET.Element("testcase", classname=name, name=called)
        if status is Status.NOT_MET:
            ET.SubElement(made, "failure", message=_message(text), type=status)
        elif status is not Status.MET:
            ET.SubElement(made, "skipped", message=_message(text))
        cases.append(made)
    made = ET.Element("testcase", classname="questions", name="None is serious and open, and none upheld")
    against = [
        f"{item.code}: {item.text}"
        for item in argument.challenges
        if item.state is ChallengeStatus.SUSTAINED
        or (item.kind is Class.SERIOUS and item.state is ChallengeStatus.OPEN)
    ]
    if against:
        ET.SubElement(made, "failure", message=_message("; ".join(against)), type="challenged")
    cases.append(made)
    who = f"{quoted(case.agent)}, {name}{', SPECIMEN: simulated evidence' * case.specimen}"
    suite = ET.Element("testsuite", name=visible(who), tests=str(len(cases)), errors="0")
    for outcome, tag in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(outcome, str(sum(item.find(tag) is not None for item in cases)))
    suite.extend(cases)
    top = ET.Element("testsuites")
    top.append(suite)
    ET.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


_LEVELS: Final = {Class.SERIOUS: "error", Class.BLANK: "note"}


def _sarif(view: ReportView) -> str:
    case, argument = view.case, view.argument
    lines = [
        (f"criterion/{row.id}", "error" if status is Status.NOT_MET else "warning", text)
        for row, status, text in _judged(case)
        if status is not Status.MET
    ]
    lines += [
        (f"challenge/{item.code}", _LEVELS.get(item.kind, "warning"), item.text) for item in argument.opened
    ]
    place = {"physicalLocation": {"artifactLocation": {"uri": "bundle.json"}}}
    driver = {
        "name": "certkit",
        "version": __version__,
        "rules": [{"id": rule} for rule in dict.fromkeys(rule for rule, _, _ in lines)],
    }
    run = {
        "tool": {"driver": driver},
        "results": [
            {"ruleId": rule, "level": level, "message": {"text": _message(text)}, "locations": [place]}
            for rule, level, text in lines
        ],
    }
    return canonical.pretty(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    )


def _summary(view: ReportView) -> str:
    case, argument = view.case, view.argument
    boxes = answer.boxes(case, argument)
    lines = [
        f"## {_cell(quoted(case.agent))}",
        "**SPECIMEN: simulated evidence, says nothing about a real agent.**" if case.specimen else "",
        _cell(answer.paragraph(case)),
        "",
        _cell(f"By profile {case.evaluation.profile.name}."),
        *map(_cell, answer.readings(case, argument)),
        "",
        *_criteria(case),
        *_failed(view),
        "| | | |",
        "|---|---|---|",
        *(f"| {box.head} | {_cell(box.word)} | {_cell(box.line)} |" for box in boxes),
        "",
        "What speaks against it:",
        "",
        *(f"- {_cell(line)}" for line in answer.against(case, argument)),
        "",
        "What would change it:",
        "",
        *(f"- {_cell(line)}" for line in answer.changes(case)),
        "",
        "Sections are those of the report, which `certkit report BUNDLE -o report.html` writes.",
    ]
    return "\n".join(lines) + "\n"


def _criteria(case: UseCase) -> Iterator[str]:
    """Yield a table of the criteria of the tier asked for, the worst first, and what has no evidence."""
    rows = [
        row for row in results.rows(case.evaluation, case.tier) if row.status is not Status.NOT_APPLICABLE
    ]
    judged = [row for row in rows if row.status is not Status.NOT_TESTED]
    if judged:
        yield f"| criterion | value | asked for Tier {case.tier} | on averages | with confidence limits |"
        yield "|---|---|---|---|---|"
    for row in judged[:MOST_ROWS]:
        limit = results.bound(row)
        value = (
            "partial" if case.evaluation.metrics[row.metric].state is State.PARTIAL else results.measured(row)
        )
        sure = "–" if row.bounded is None else f"{word(row.bounded.status)}{f' ({limit})' if limit else ''}"
        name = f"{words.capital(results.title(row))} ({row.id})"
        cells = (name, value, results.asked(row), word(row.status), sure)
        yield f"| {' | '.join(map(_cell, cells))} |"
    if len(judged) > MOST_ROWS:
        yield f"\n{len(judged) - MOST_ROWS} more criteria are in the report."
    if hidden := [row.id for row in rows if row not in judged]:
        yield f"\nNo evidence: {_cell(', '.join(hidden[:MOST_ROWS]))}."
    yield ""


def _failed(view: ReportView) -> Iterator[str]:
    """Yield the first failing runs."""
    if view.failed:
        yield "First failing runs (`certkit runs BUNDLE RUN` prints one with its transcript):"
        yield ""
        for run in view.failed[:MOST_RUNS]:
            ended = f"{run.outcome}, {run.condition}".replace("_", " ")
            yield f"- {_cell(words.called(run.run_id))}: {_cell(ended)}"
        yield ""


EXPORTS: Final[dict[str, Callable[[ReportView], str]]] = {
    "junit": _junit,
    "sarif": _sarif,
    "summary": _summary,
}
"""Format → what writes it."""
