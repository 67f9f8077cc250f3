"""An evaluation as a notebook shows it: three lines, a table in HTML, and rows for a data frame."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certkit.assessment.answer import (
    agent_called,
    cannot_judge,
    how_often,
    no_faults_text,
    open_text,
    readings,
    row_title,
    rows_by_id,
    serious_texts,
    verdict_text,
    without_evidence,
)
from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.words import MARKS, row_value, threshold_text
from certkit.ground.errors import UsageError
from certkit.ground.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.assessment import Row
    from certkit.assessment.evaluation import Evaluation


def three_lines(evaluation: Evaluation) -> tuple[str, str, str]:
    """Return how often the agent succeeds, its tiers, and how many questions are open."""
    tiers = readings(evaluation)
    if cannot_judge(evaluation):
        tiers = no_faults_text(evaluation, "evidence")
    return (
        visible(f"{agent_called(evaluation)}: {how_often(evaluation)}."),
        visible(tiers),
        f"{open_text(evaluation)}.",
    )


def html_of(evaluation: Evaluation) -> str:
    """Return the answer and the table of an evaluation as HTML; all text is escaped."""
    rates, tiers, questions = map(escape, three_lines(evaluation))
    rows, numbers = rows_by_id(evaluation), evaluation.profile.tier_numbers
    lines = [f"<div><p><b>{rates}</b><br>{tiers}<br>{_text(verdict_text(evaluation))}<br>{questions}</p>"]
    lines += [f"<p>{_text(text)}.</p>" for text in serious_texts(evaluation)]
    if rows:
        heads = "".join(f"<th>Tier {number}</th>" for number in numbers)
        lines.append(f"<table><thead><tr><th>criterion</th><th>value</th>{heads}</tr></thead><tbody>")
        lines += [_html_row(at_tiers) for at_tiers in rows.values()]
        legend = "; ".join(f"{mark} {status.replace('_', ' ')}" for status, mark in MARKS.items())
        lines.append(f"</tbody></table><p><small>first mark: averages, second: confidence limits; {legend}")
        lines.append("</small></p>")
    if hidden := without_evidence(evaluation, rows):
        lines.append(f"<p><small>{_text(hidden)}</small></p>")
    return "\n".join([*lines, "</div>"])


def _text(text: str) -> str:
    return escape(visible(text))


def _html_row(at_tiers: Sequence[Row]) -> str:
    asking = [row for row in at_tiers if row.threshold is not None]
    first = (asking or at_tiers)[0]
    cells = [row_title(first), row_value(first), *map(_asked, at_tiers)]
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _asked(row: Row) -> str:
    if row.operator is None or row.threshold is None:
        return "–"
    limit = MARKS.get(row.bounded.status, "") if row.bounded else ""
    asked = threshold_text(row.operator, row.threshold, CATALOGUE[row.metric].unit)
    return f"{asked} {MARKS.get(row.status, '')} {limit}".rstrip()


def row_dicts(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the columns of every row: what its tier asks, the value, both statuses and what carries it."""
    for row in rows:
        bounded = row.bounded
        yield {
            "id": row.id,
            "title": row_title(row),
            "tier": row.tier,
            "value": row.value,
            "operator": row.operator,
            "threshold": row.threshold,
            "status": row.status.value,
            "margin": row.margin,
            "limit": bounded.bound if bounded else None,
            "limit_status": bounded.status.value if bounded else None,
            "confidence": bounded.confidence if bounded else None,
            "tasks": row.k,
            "provisional": row.provisional,
        }


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a `pandas.DataFrame`.

    Raises:
        UsageError: ``usage.option`` where pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        message = "pandas, which makes data frames, is not installed"
        raise UsageError("usage.option", message, hint="pip install pandas") from None
    return pandas.DataFrame(rows)
