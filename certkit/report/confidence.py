"""How sure the results are: posteriors, bounds with what they rest on, other priors; where runs failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment import CATALOGUE, Unit
from certkit.assessment.metrics.metric import percent
from certkit.assessment.statistics.posterior import PRIORS
from certkit.report import words
from certkit.report.results import asked, bound, name, rows
from certkit.report.svg import posterior
from certkit.report.table import Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    from certkit.report.results import Document

MOST_CELLS: Final = 10


def posterior_figure(document: Document) -> Markup | None:
    """Return the posterior of the success rate under faults, None without fault runs."""
    metric = document["metrics"]["posterior"]
    tau = sorted((int(tier), float(at)) for tier, at in metric.get("tau", {}).items())
    if metric["state"] == "unmeasured" or not metric["n"] or not tau:
        return None
    parts = "; ".join(
        f"P(θ > {at:g}) = {words.probability(metric['by_tier'][str(tier)])}" for tier, at in tau
    )
    title = f"Posterior of the success rate under faults, {metric['s']} of {metric['n']} runs: {parts}"
    return posterior(metric["s"], metric["n"], tau, title=title)


def posterior_table(document: Document) -> Table:
    """Return P(θ > τ) of every tier: by runs, by tasks under each prior, at any time; and what is asked."""
    metric, fragility = document["metrics"]["posterior"], document["fragility"]["posterior"]
    limits = {row["tier"]: asked(row) for row in document["criteria"] if CATALOGUE[row["metric"]].tau_of}
    body = []
    for tier, at in sorted(metric.get("tau", {}).items()):
        other = fragility.get(tier)
        shown = [words.probability(metric["by_tier"][tier])]
        shown += [words.probability(other["priors"][prior]) if other else "–" for prior in PRIORS]
        shown.append(words.probability(other["anytime_p"]) if other else "–")
        body.append((f"Tier\u00a0{tier}", f"{at:g}", *shown, limits.get(int(tier), "not specified")))
    heads = ["by runs", *(f"by tasks, {prior} prior" for prior in PRIORS), "p at any time"]
    widths = {"tier": 10, "τ": 8} | dict.fromkeys(heads, 14) | {"asked (δ)": 12}
    return table("P(θ > τ) at each tier's threshold τ", widths, body, numbers=("τ", *heads, "asked (δ)"))


def bounds_table(document: Document, tier: int) -> Table:
    """Return how the bound of every row of a tier was got, and what it rests on."""
    body = (
        (
            name(row),
            percent(row["bounded"]["confidence"]),
            bound(row) or "–",
            row["bounded"]["reason"] or row["bounded"]["rests_on"] or "–",
        )
        for row in rows(document, tier)
        if row["bounded"] is not None
    )
    widths = {"criterion": 26, "confidence": 11, "bound": 10, "rests on": 53}
    return table(f"Bounds at Tier {tier}", widths, body, numbers=("confidence", "bound"))


def weakest(document: Document) -> Table:
    """Return the domains and conditions that failed most often, at most `MOST_CELLS`, worst first."""
    cells = [cell for cell in document["breakdown"] if cell["success"] < cell["runs"]]
    cells.sort(key=lambda cell: (cell["success"] / cell["runs"], -cell["runs"]))
    body = (
        (
            cell["domain"],
            cell["condition"].replace("_", " "),
            f"{cell['runs'] - cell['success']:,}",
            f"{cell['runs']:,}",
            words.value(cell["success"] / cell["runs"], Unit.FRACTION),
        )
        for cell in cells[:MOST_CELLS]
    )
    widths = {"domain": 34, "condition": 26, "failed": 12, "runs": 12, "success": 16}
    numbers = ("failed", "runs", "success")
    return table("Where runs failed most often", widths, body, numbers=numbers)


def episodes(document: Document) -> Iterator[str]:
    """Yield other known ways to fail: under cascades, with violations, by stopping short."""
    cascade = document["metrics"].get("cascade_penalty")
    if cascade and cascade["value"] is not None:
        fall = words.value(cascade["value"], Unit.PP)
        yield f"Under a cascade of faults success is {fall} below that under single faults."
    told = {"success-with-violations", "stopped-short", "harness-errors", "success-with-attack"}
    for item in document["findings"]:
        if item["code"] in told:
            yield f"{words.capital(item['message'])}."
