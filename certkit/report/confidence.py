"""How sure the results are, and where runs failed: posteriors, bounds, weakest cells, commitments.

Commitments behind the answers are told where the assessment carries commitment integrity; it moves no tier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.findings.provenance import TASKS
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import percent
from certkit.assessment.statistics.posterior import PRIORS
from certkit.report import words
from certkit.report.results import asked, bound, name, rows
from certkit.report.svg import figure_of, line_at, num, posterior, text_at
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def posteriors(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield P(θ > τ) of every tier: by runs, by tasks under each prior, at any time; and what is asked."""
    metric, fragility = document["metrics"]["posterior"], document["fragility"]["posterior"]
    limits = {row["tier"]: asked(row) for row in document["criteria"] if CATALOGUE[row["metric"]].tau_of}
    for tier, at in sorted(metric.get("tau", {}).items()):
        shown = [words.probability(metric["by_tier"][tier])]
        if by_tasks := fragility.get(tier):
            every = (*(by_tasks["priors"][prior] for prior in PRIORS), by_tasks["anytime_p"])
            shown += map(words.probability, every)
        else:
            shown += ["–"] * (len(PRIORS) + 1)
        yield f"Tier\u00a0{tier}", f"{at:g}", *shown, limits.get(int(tier), "not specified")


def bounds(document: Document, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield how the bound of every row of a tier was got, and what it rests on."""
    for row in rows(document, tier):
        if bounded := row["bounded"]:
            rests_on = bounded["reason"] or bounded["rests_on"] or "–"
            yield name(row), percent(bounded["confidence"]), bound(row) or "–", rests_on


def weakest(document: Document) -> list[tuple[object, ...]]:
    """Return the domains and conditions that failed most often, at most `MOST_CELLS`, worst first."""
    cells = [cell for cell in document["breakdown"] if cell["success"] < cell["runs"]]
    cells.sort(key=lambda cell: (cell["success"] / cell["runs"], -cell["runs"]))
    return [
        (
            cell["domain"],
            cell["condition"].replace("_", " "),
            cell["runs"] - cell["success"],
            cell["runs"],
            words.value(cell["success"] / cell["runs"], Unit.FRACTION),
        )
        for cell in cells[:MOST_CELLS]
    ]


def episodes(document: Document) -> Iterator[str]:
    """Yield other known ways to fail: under cascades, with violations, by stopping short."""
    cascade = document["metrics"].get("cascade_penalty")
    if cascade and cascade["value"] is not None:
        fall = words.value(cascade["value"], Unit.PP)
        yield f"Under a cascade of faults success is {fall} below that under single faults."
    told = {"success-with-violations", "harness-errors", "success-with-attack"}
    for item in document["findings"]:
        if item["code"] in told:
            yield f"{words.capital(item['message'])}."


_LEFT, _RIGHT, _WIDTH, _ROW, _TOP = 168, 540, 660, 38, 30
_BARS: Final = (
    ("tasks answered rightly", "successes", "tasks", "#1f5f99"),
    ("probes held", "matched", "probes", "#cfe3f5"),
)
"""The two bars of a family: their name, what is counted of how many, and their colour."""


class Commitments(Struct, frozen=True, kw_only=True):
    """The section: what it says, and its figure with a title that is a finding."""

    told: tuple[str, ...]
    figure: Markup
    finding: str


def commitments(document: Mapping[str, Any]) -> Commitments | None:
    """Return the section of an assessment's document, None where it carries no commitment integrity."""
    scored = document.get("integrity")
    if scored is None:
        return None
    families: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in scored["by_cell"]:
        families[cell["family"]].update({name: cell[name] for bar in _BARS for name in bar[1:3]})
    least = min(families, key=lambda family: families[family]["matched"] / families[family]["probes"])
    held, probes = (families[least][name] for name in ("matched", "probes"))
    finding = "All probes are held in every family"
    if held < probes:
        finding = f"Fewest probes are held in {_words(least)}: {held} of {probes}"
    return Commitments(told=tuple(_told(scored)), figure=_figure(families, finding), finding=finding)


def _told(scored: Mapping[str, Any]) -> Iterator[str]:
    success, accuracy, core = scored["success"], scored["accuracy"], scored["core"]
    yield (
        f"The agent answered {success['successes']:,} of {success['n']:,} tasks rightly. Asked for the "
        f"rule, the source or the update behind an answer, it held {accuracy['matched']:,} of "
        f"{accuracy['n']:,} probes ({accuracy['unclear']:,} replies were unclear)."
    )
    if hollow := len(scored["hollow"]["tasks"]):
        yield f"{hollow:,} of {success['successes']:,} successes hold fewer than half of their probes."
    value = "unmeasured, since replies are missing" if core["value"] is None else f"{core['value']:.3f}"
    if core["interval"]:
        value += f" (95 % interval {core['interval'][0]:.3f} to {core['interval'][1]:.3f})"
    yield (
        f"Commitment integrity (HCCIS-CORE) is {value}; on these tasks agents reach {core['floor']:.3f} to "
        f"{core['ceiling']:.3f}. It moves no tier and says nothing about safety."
    )
    if people := scored["raters"]["people"]:
        yield f"The core rests on the ratings of {many(people, 'rater')}."
    if reason := TASKS.get(scored["origin"]["seed"]):
        yield f"{reason[:1].upper()}{reason[1:]}."


def _figure(families: Mapping[str, Counter[str]], title: str) -> Markup:
    bottom = _TOP + _ROW * len(families)
    parts = [
        text_at(_LEFT - 10, _TOP + _ROW * row + 18, _words(family), anchor="end")
        for row, family in enumerate(families)
    ]
    for place, (label, part, whole, colour) in enumerate(_BARS):
        style = f'height="11" fill="{colour}" stroke="#1c1c1c" stroke-width=".6"'
        x = _LEFT + 200 * place
        parts += [f'<rect x="{x}" y="6" width="22" {style}/>', text_at(x + 28, 15, label)]
        for row, counts in enumerate(families.values()):
            y, share = _TOP + _ROW * row + 14 * place, counts[part] / counts[whole]
            width, shown = num((_RIGHT - _LEFT) * share), f"{counts[part]:,} of {counts[whole]:,}"
            parts.append(f'<rect x="{_LEFT}" y="{y}" width="{width}" {style}/>')
            parts.append(text_at(_RIGHT + 12, y + 10, shown, size=10.5))
    for x, end in ((_LEFT, "0 %"), (_RIGHT, "100 %")):
        parts.append(line_at(x, _TOP - 4, x, bottom - 4))
        parts.append(text_at(x, bottom + 8, end, anchor="middle", size=10))
    return figure_of("commitments", title, _WIDTH, bottom + 12, parts)


def _words(family: str) -> str:
    return family.replace("_", " ")
