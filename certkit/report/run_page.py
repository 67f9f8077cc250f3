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
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from certkit.assessment import answer
from certkit.assessment.assessment import Status
from certkit.assessment.words import finding_text
from certkit.bundle.facts import UNVERSIONED
from certkit.ground import canonical
from certkit.report import results, words
from certkit.report.figures import mark, word
from certkit.report.page import environment, template
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


class GridCell(NamedTuple):
    """A cell of the grid: text, shade, and the filters of the list that it sets; None: no run is listed."""

    text: str
    style: str
    domain: int | None
    condition: int | None


class Grid(NamedTuple):
    """Successes of runs by domain and condition, held-out faults included.

    Attributes:
        conditions: the heads of the columns.
        rows: each domain with its cells.
        left_out: how many domains and conditions have no room.
    """

    conditions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[GridCell, ...]], ...]
    left_out: tuple[int, int]


def run_page(evaluation: Evaluation, runs: PageRuns) -> str:
    """Return the page as one HTML document.

    Args:
        evaluation: what was judged.
        runs: the runs of the same bundle.
    """
    script = template("view/script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = canonical.line(runs.data).decode().strip().replace("<", "\\u003c")
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
            data=Markup(data),  # noqa: S704 - no tag begins in it
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


def _grid(evaluation: Evaluation, runs: PageRuns) -> Grid:
    cells: dict[tuple[str, str], list[Cell]] = {}
    for cell in evaluation.summary.cells:
        cells.setdefault((cell.domain, cell.condition), []).append(cell)
    domains = sorted({domain for domain, _ in cells})
    conditions = sorted({name for _, name in cells}, key=lambda name: (PLACES.get(name, 99), name))
    places = [
        {name: place for place, name in enumerate(runs.names[kind])} for kind in ("domains", "conditions")
    ]

    def cell_of(domain: str, condition: str) -> GridCell:
        group = cells.get((domain, condition))
        text, style = covered(None if group is None else Tally.total(group))
        return GridCell(text, style, places[0].get(domain), places[1].get(condition))

    heads = conditions[:MOST_CONDITIONS]
    return Grid(
        tuple(name.replace("_", " ") for name in heads),
        tuple(
            (domain, tuple(cell_of(domain, condition) for condition in heads))
            for domain in domains[:MOST_DOMAINS]
        ),
        (max(0, len(domains) - MOST_DOMAINS), max(0, len(conditions) - MOST_CONDITIONS)),
    )
