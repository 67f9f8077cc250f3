"""How sure the results are: posteriors, bounds with what they rest on, intervals, other priors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.assessment import CATALOGUE, Status, Unit
from certkit.assessment.metrics.metric import percent
from certkit.assessment.statistics.posterior import PRIORS
from certkit.report import words
from certkit.report.results import name, rows, unit
from certkit.report.svg import judged, posterior
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from certkit.report.results import Document


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
    """Return P(θ > τ) of every tier beside the confidence that the tier asks for."""
    metric = document["metrics"]["posterior"]
    asked = {row["tier"]: row for row in document["criteria"] if CATALOGUE[row["metric"]].tau_of}
    body = []
    for tier, at in sorted((int(tier), at) for tier, at in metric.get("tau", {}).items()):
        row = asked.get(tier)
        body.append(
            (
                f"Tier\u00a0{tier}",
                f"{at:g}",
                words.probability(metric["by_tier"][str(tier)]),
                "not specified"
                if row is None
                else words.threshold(row["operator"], row["threshold"], Unit.PROBABILITY),
                None if row is None else judged(Status(row["status"])),
            )
        )
    columns = (
        Column("tier", 20),
        Column("τ", 20, "number"),
        Column("P(θ > τ)", 20, "number"),
        Column("asked (δ)", 20, "number"),
        Column("table reading", 20),
    )
    return table("Posterior at each tier's threshold", columns, body)


def bounds_table(document: Document, tier: int) -> Table:
    """Return how the bound of every row of a tier was got, and what it rests on."""
    columns = (
        Column("criterion", 26),
        Column("confidence", 11, "number"),
        Column("bound", 10, "number"),
        Column("rests on", 53),
    )
    body = []
    for row in rows(document, tier):
        bounded = row["bounded"]
        if bounded is None:
            continue
        bound = (
            "–"
            if bounded["bound"] is None
            else words.value(bounded["bound"], unit(row), beside=row["threshold"])
        )
        body.append(
            (
                name(row),
                percent(bounded["confidence"]),
                bound,
                bounded["reason"] or bounded["rests_on"] or "–",
            )
        )
    return table(f"Bounds at Tier {tier}", columns, body)


def priors_table(document: Document) -> Table:
    """Return P(θ > τ) of every tier under each prior, and the p-value that holds at any time."""
    posteriors = document["fragility"]["posterior"]
    body = [
        (
            f"Tier\u00a0{tier}",
            *(words.probability(row["priors"][prior]) for prior in PRIORS),
            words.probability(row["anytime_p"]),
        )
        for tier, row in sorted(posteriors.items())
    ]
    columns = (
        Column("tier", 16),
        *(Column(f"{prior} prior", 22, "number") for prior in PRIORS),
        Column("p at any time", 18, "number"),
    )
    return table("P(θ > τ) under other priors", columns, body)
