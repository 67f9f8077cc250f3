"""The page of runs, for engineers: the answer, the table, the grid, and every run with its transcript.

    runs = list_runs(open_bundle(Path("bundle"), defer_records=True))
    markup = run_page(evaluation, runs)

One HTML file that fetches nothing: its policy allows the one script by its digest and no address at all. The
script draws the list from the data in the page, and writes text only, never markup. The same bundle and
profile give the same bytes. Text that came from evidence is made visible and escaped.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.assessment import answer
from certkit.assessment.assessment import Status
from certkit.assessment.words import finding_text
from certkit.bundle.facts import UNVERSIONED
from certkit.ground.wording import listed, many
from certkit.report import results, words
from certkit.report.figures import mark, word
from certkit.report.page import environment, template
from certkit.report.run_list import page_json
from certkit.report.sections import PLACES, covered
from certkit.summary.summary import Cell, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.assessment import Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.report.run_list import PageRuns

MOST_DOMAINS: Final = 40
MOST_CONDITIONS: Final = 12
_WITHOUT: Final = {Status.NOT_TESTED, Status.NOT_APPLICABLE}
"""Statuses of a row that has no evidence."""


def run_page(evaluation: Evaluation, runs: PageRuns) -> str:
    """Return the page as one HTML document.

    Args:
        evaluation: what was judged.
        runs: the runs of the same bundle.
    """
    script = template("view/script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        environment()
        .get_template("view/page.html")
        .render(
            evaluation=evaluation,
            unversioned=UNVERSIONED,
            runs=runs,
            how_often=words.capital(answer.how_often(evaluation)),
            open_text=answer.open_text(evaluation),
            lines=[*_lines(evaluation)],
            to_know=[*_to_know(evaluation)],
            criteria=[*_criteria(evaluation)],
            without=_without(evaluation),
            grid=_grid(evaluation, runs),
            style=Markup(template("style.css") + template("view/style.css")),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own file
            script_digest=digest,
            data=Markup(page_json(runs.data).decode()),  # noqa: S704 - no tag begins in it
        )
    )


def _lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the answer, as the first screen of ``certkit assess`` gives it."""
    verdict = evaluation.assessment.verdict
    if verdict.table.tier or verdict.bounded.tier:
        yield answer.readings(evaluation)
    yield words.plain(answer.verdict_text(evaluation, brief=True))
    if provisional := answer.provisional_text(evaluation):
        yield provisional


def _to_know(evaluation: Evaluation) -> Iterator[str]:
    """Yield serious findings and warnings, the gravest first."""
    for text in (*answer.core_texts(evaluation), *answer.serious_texts(evaluation)):
        yield f"{words.capital(text)}."
    for item in answer.open_findings(evaluation):
        if item not in evaluation.assessment.serious:
            yield f"{words.capital(finding_text(item))}."


def _groups(evaluation: Evaluation) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in evaluation.assessment.criteria:
        groups.setdefault(row.id, []).append(row)
    return groups


def _has_evidence(group: list[Row]) -> bool:
    return any(row.status not in _WITHOUT for row in group)


def _without(evaluation: Evaluation) -> list[str]:
    """Return the names of the rows without evidence."""
    groups = _groups(evaluation).values()
    return [results.title(group[0]) for group in groups if not _has_evidence(group)]


def _criteria(evaluation: Evaluation) -> Iterator[tuple[str | Markup, ...]]:
    """Yield each criterion with evidence: its value and runs, and what each tier asks with two marks."""
    goal = evaluation.assessment.verdict.goal
    for group in _groups(evaluation).values():
        if _has_evidence(group):
            row = min(group, key=lambda item: (item.threshold is None, abs(item.tier - goal)))
            metric = evaluation.metrics[row.metric]
            value = results.found(row, metric)
            yield (results.name(row), value, words.count(metric.n), *map(_asked, group))


def _asked(row: Row) -> Markup:
    """Return what a tier asks of a row, with its marks on averages and with confidence limits."""
    if row.threshold is None:
        return Markup("–")
    marks = mark(row.status, f"on averages: {word(row.status)}")
    if row.bounded is not None:
        marks += Markup(" ") + mark(row.bounded.status, f"with confidence: {word(row.bounded.status)}")
    return Markup('<span class="asked">{}</span> <span class="marks">{}</span>').format(
        results.asked(row), marks
    )


def _grid(evaluation: Evaluation, runs: PageRuns) -> tuple[list[str], list[Any], str]:
    """Return successes of runs by domain and condition, held-out faults included.

    They come as the heads of the columns, the rows, and what has no room. A row is a domain and its cells; a
    cell is its text, its shade, and the places in the data of the domain and the condition that it lists.
    """
    cells: dict[tuple[str, str], list[Cell]] = {}
    for cell in evaluation.summary.cells:
        cells.setdefault((cell.domain, cell.condition), []).append(cell)
    domains = sorted({domain for domain, _ in cells})
    conditions = sorted({name for _, name in cells}, key=lambda name: (PLACES.get(name, 99), name))
    place_of = {kind: {name: place for place, name in enumerate(names)} for kind, names in runs.names.items()}

    def cell_of(domain: str, condition: str) -> tuple[Any, ...]:
        group = cells.get((domain, condition))
        shown = covered(None if group is None else Tally.total(group))
        return (*shown, place_of["domains"].get(domain), place_of["conditions"].get(condition))

    heads = conditions[:MOST_CONDITIONS]
    rows = [(domain, [cell_of(domain, name) for name in heads]) for domain in domains[:MOST_DOMAINS]]
    more = [many(len(domains) - MOST_DOMAINS, "more domain")] * (len(domains) > MOST_DOMAINS)
    more += [many(len(conditions) - MOST_CONDITIONS, "more condition")] * (len(conditions) > MOST_CONDITIONS)
    return (
        [name.replace("_", " ") for name in heads],
        rows,
        f"{listed(more)} in the list alone." if more else "",
    )
