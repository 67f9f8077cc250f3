"""A report's findings as files for other programs: ``certkit report --format``.

| format | what | for |
|---|---|---|
| argument | ``argument.json`` | programs |
| gsn | the argument in YAML | gsn2x |
| register | the challenges as a Markdown table | whoever answers them |
| junit | a case for each criterion of the tier asked for, and one for the challenges | test reports of CI |
| sarif | SARIF 2.1.0: criteria that are not met, open challenges | code scanning |
| csv | the criteria of every tier | spreadsheets |
| summary | page 1 in Markdown | the summary of a CI job |

An export is no verdict: a criterion without evidence is skipped in JUnit, never passed.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from certkit._version import __version__
from certkit.assessment.criteria import Status
from certkit.assessment.metrics.metric import State
from certkit.ground import canonical
from certkit.ground.text import quoted, visible
from certkit.report import answer, results, words
from certkit.report.argument.challenges import Class, Standing
from certkit.report.argument.graph import Kind
from certkit.report.argument.graph import State as NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case

_PREFIX: Final = dict(zip(Kind, ("G", "S", "Sn", "C", "A", "J", "CG"), strict=True))


def _argument(_case: Case, argument: Argument) -> str:
    return canonical.pretty(argument.to_dict())


def _gsn(_case: Case, argument: Argument) -> str:
    """Return the argument in the YAML that gsn2x reads; ids begin with their kind, as it demands."""
    graph = argument.graph
    names = {node.id: f"{_PREFIX[node.kind]}_{node.id}" for node in graph.nodes}
    lines: list[str] = []
    for node in graph.nodes:
        lines += [f"{_quoted(names[node.id])}:", f"  text: {_quoted(node.text)}"]
        for link, word in (
            ("supported_by", "supportedBy"),
            ("in_context_of", "inContextOf"),
            ("challenges", "challenges"),
        ):
            ends = [edge.end for edge in graph.edges if edge.start == node.id and edge.kind == link]
            if ends:
                lines.append(f"  {word}: [{', '.join(_quoted(names[end]) for end in ends)}]")
        opened = node.kind in {Kind.GOAL, Kind.STRATEGY} and not graph.below(node.id)
        if node.state is NodeState.UNDEVELOPED and opened:
            lines.append("  undeveloped: true")
        if node.state is NodeState.REFUTED:
            lines.append("  defeated: true")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return text as a double-quoted scalar: JSON strings are YAML's."""
    return canonical.line(text).decode().rstrip("\n")


def _register(case: Case, argument: Argument) -> str:
    names = ("code", "class", "state", "goal", "challenge", "what would close it", "answer")
    rows = "".join(
        _line(c.code, c.kind, c.state, c.target, c.text, c.closed_by, c.said(case.context) or "")
        for c in argument.challenges
    )
    claim = "Supported" if argument.claim.supported else "Not supported"
    because = "".join(f"- {_cell(reason)}\n" for reason in argument.claim.because)
    head = f"{_line(*names)}|{'---|' * len(names)}\n"
    return f"# Challenges\n\n{claim}: {_cell(argument.claim.text)}\n\n{because}\n{head}{rows}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return " ".join(re.sub(r"[\\|\[\]`*~]|\b_|_\b", r"\\\g<0>", visible(text)).replace("<", "&lt;").split())


def _judged(case: Case) -> Iterator[tuple[dict[str, Any], Status, str]]:
    """Yield the criteria of the tier asked for with their status and what was found."""
    for row, status in results.judged_rows(case.document, case.tier):
        reason = f"; {row['reason']}" if row.get("reason") else ""
        value = {State.PARTIAL: "partial", State.UNMEASURED: "nothing"}.get(_state(case, row))
        yield row, status, f"asked {results.asked(row)}, found {value or results.measured(row)}{reason}"


def _state(case: Case, row: dict[str, Any]) -> State:
    return State(case.document["metrics"][row["metric"]]["state"])


def _junit(case: Case, argument: Argument) -> str:
    name = f"Tier {case.tier} of {case.document['profile']['id']}"
    cases = []
    for row, status, said in _judged(case):
        made = ET.Element(
            "testcase", classname=name, name=f"{words.capital(results.title(row))} ({row['id']})"
        )
        if status is Status.NOT_MET:
            ET.SubElement(made, "failure", message=visible(said), type=status)
        elif status is not Status.MET:
            ET.SubElement(made, "skipped", message=visible(said))
        cases.append(made)
    made = ET.Element("testcase", classname="challenges", name="None is serious and open, and none sustained")
    against = [
        f"{item.code}: {item.text}"
        for item in argument.challenges
        if item.state is Standing.SUSTAINED or (item.kind is Class.SERIOUS and item.state is Standing.OPEN)
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


def _sarif(case: Case, argument: Argument) -> str:
    told = [
        (f"criterion/{row['id']}", "error" if status is Status.NOT_MET else "warning", said)
        for row, status, said in _judged(case)
        if status is not Status.MET
    ]
    told += [
        (f"challenge/{item.code}", _LEVELS.get(item.kind, "warning"), item.text) for item in argument.opened
    ]
    place = {"physicalLocation": {"artifactLocation": {"uri": "bundle.json"}}}
    driver = {
        "name": "certkit",
        "version": __version__,
        "rules": [{"id": rule} for rule in dict.fromkeys(rule for rule, _, _ in told)],
    }
    run = {
        "tool": {"driver": driver},
        "results": [
            {"ruleId": rule, "level": level, "message": {"text": visible(text)}, "locations": [place]}
            for rule, level, text in told
        ],
    }
    return canonical.pretty(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    )


def _csv(case: Case, _argument: Argument) -> str:
    names = ("tier", "criterion", "name", "operator", "threshold", "value", "bound", "n", "table", "bounded")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in case.document["criteria"]:
        bounded = row["bounded"] or {"bound": None, "status": None}
        n, title = case.document["metrics"][row["metric"]]["n"], results.title(row)
        value = {State.PARTIAL: "partial", State.UNMEASURED: None}.get(_state(case, row), row["value"])
        start = (row["tier"], row["id"], title, row["operator"], row["threshold"], value)
        writer.writerow([*start, bounded["bound"], n, row["status"], bounded["status"]])
    return file.getvalue()


def _summary(case: Case, argument: Argument) -> str:
    boxes = answer.boxes(case, argument)
    lines = [
        f"## {_cell(quoted(case.agent))}",
        "**SPECIMEN: simulated evidence, says nothing about a real agent.**" if case.specimen else "",
        _cell(answer.paragraph(case)),
        "",
        _cell(f"By profile {case.document['profile']['id']}."),
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
        "Sections are those of the whole report, which `certkit report BUNDLE -o report.html` writes.",
    ]
    return "\n".join(lines) + "\n"


EXPORTS: Final[dict[str, Callable[[Case, Argument], str]]] = {
    "argument": _argument,
    "gsn": _gsn,
    "register": _register,
    "junit": _junit,
    "sarif": _sarif,
    "csv": _csv,
    "summary": _summary,
}
"""Format → what writes it."""
