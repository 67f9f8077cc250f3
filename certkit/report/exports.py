"""A report's findings as files for other programs: ``certkit report --format``.

| format | what | for |
|---|---|---|
| junit | a case for each criterion of the tier asked for, one for open questions | test reports of CI |
| sarif | SARIF 2.1.0: criteria that are not met, open questions | code scanning |
| summary | page 1 in Markdown | the summary of a CI job |

An export is no verdict: a criterion without evidence is skipped in JUnit, never passed.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.assessment import Row
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import UseCase
    from certkit.report.view import ReportView


def export(view: ReportView, kind: str) -> bytes:
    """Return a report in one of the formats of `EXPORTS`."""
    return EXPORTS[kind](view.case, view.argument).encode()


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return " ".join(re.sub(r"[\\|\[\]`*~]|\b_|_\b", r"\\\g<0>", visible(text)).replace("<", "&lt;").split())


def _judged(case: UseCase) -> Iterator[tuple[Row, Status, str]]:
    """Yield the criteria of the tier asked for with their status and what was found."""
    for row, status in results.judged_rows(case.evaluation, case.tier):
        bounded = row.bounded if case.evaluation.profile.reading == "bounded" else None
        why = row.reason or (bounded and bounded.reason)
        reason = f"; {reason_text(why)}" if why else ""
        if bounded is not None and bounded.bound is not None:
            reason += f"; confidence limit {results.bound(row)}"
        state = case.evaluation.metrics[row.metric].state
        value = {State.PARTIAL: "partial", State.UNMEASURED: "nothing"}.get(state) or results.measured(row)
        yield row, status, f"asked {results.asked(row)}, found {value}{reason}"


def _junit(case: UseCase, argument: Argument) -> str:
    name = f"Tier {case.tier} of {case.evaluation.profile.name}"
    cases = []
    for row, status, text in _judged(case):
        called = f"{words.capital(results.title(row))} ({row.id})"
        made = ET.Element("testcase", classname=name, name=called)
        if status is Status.NOT_MET:
            ET.SubElement(made, "failure", message=visible(text), type=status)
        elif status is not Status.MET:
            ET.SubElement(made, "skipped", message=visible(text))
        cases.append(made)
    made = ET.Element("testcase", classname="questions", name="None is serious and open, and none upheld")
    against = [
        f"{item.code}: {item.text}"
        for item in argument.challenges
        if item.state is ChallengeStatus.SUSTAINED
        or (item.kind is Class.SERIOUS and item.state is ChallengeStatus.OPEN)
    ]
    if against:
        ET.SubElement(made, "failure", message=visible("; ".join(against)), type="challenged")
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


def _sarif(case: UseCase, argument: Argument) -> str:
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
            {"ruleId": rule, "level": level, "message": {"text": visible(text)}, "locations": [place]}
            for rule, level, text in lines
        ],
    }
    return canonical.pretty(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    )


def _summary(case: UseCase, argument: Argument) -> str:
    boxes = answer.boxes(case, argument)
    lines = [
        f"## {_cell(quoted(case.agent))}",
        "**SPECIMEN: simulated evidence, says nothing about a real agent.**" if case.specimen else "",
        _cell(answer.paragraph(case)),
        "",
        _cell(f"By profile {case.evaluation.profile.name}."),
        *map(_cell, answer.readings(case, argument)),
        "",
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


EXPORTS: Final[dict[str, Callable[[UseCase, Argument], str]]] = {
    "junit": _junit,
    "sarif": _sarif,
    "summary": _summary,
}
"""Format → what writes it."""
