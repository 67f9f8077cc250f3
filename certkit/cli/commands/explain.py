"""``certkit explain``: what a name means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal

import typer

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.findings import FINDINGS
from certkit.assessment.profile_file import load_profile
from certkit.assessment.words import finding_words, threshold_text
from certkit.cli import options as opt
from certkit.cli.emit import emit, entry, fold
from certkit.cli.views import WORDS
from certkit.ground.document import Document, Text
from certkit.ground.errors import CODES, UsageError
from certkit.record import schema
from certkit.record.record import Condition, Outcome
from certkit.report.argument.challenges import CLOSED_BY, STANDING

_KNOWN: Final = "criteria, metrics, findings, challenges, codes, record fields, columns of assess, some words"


class Explanation(Document, frozen=True, kw_only=True, tag="urn:certkit:explanation:v1"):
    """What a name of certkit means."""

    name: Text
    kind: Literal["criterion", "metric", "finding", "challenge", "code", "column", "word"]
    text: Text
    facts: Mapping[str, Text]


def explain(
    words: Annotated[list[str], typer.Argument(metavar="NAME", help=f"Known are {_KNOWN}.")],
    profile: opt.ProfileName = "hb-eval-2026",
) -> None:
    """Tell what a name on the screen means: its formula and source, what a tier asks, how to measure it.

    Example: certkit explain r_op
    """
    name, names = " ".join(words), known(profile)
    titles = {title: key for key, spec in CATALOGUE.items() for title in (spec.short, spec.title)}
    spelled = {text.casefold(): key for text, key in (titles | {key: key for key in names}).items()}
    spelled = dict.fromkeys(Outcome, "outcome") | dict.fromkeys(Condition, "condition") | spelled
    # A name that is copied from a screen may have its id behind it, in brackets.
    lone = r"^.*[(\[]([\w.-]+)[^()\[\]]*[)\]]$|^(tier) [0-9]$"
    said = re.sub(lone, r"\1\2", name.strip(" †").casefold()).partition(":")[0]
    if said not in spelled:
        near = get_close_matches(name, names, n=1, cutoff=0.75)
        raise UsageError(
            "usage.option",
            f"certkit knows no {name[:80]!r}",
            hint=f"certkit explain {near[0]}" if near else f"known are {_KNOWN}",
        )
    told = names[spelled[said]]
    emit(told, _explained(told))


def known(profile: str) -> dict[str, Explanation]:
    """Return everything that has a name; where several have it, the later kind below."""
    columns, _ = schema.fields()
    names = {name: _told(name, "code", text) for name, text in CODES.items()}
    names |= {
        name: _told(name, "challenge", rule.text.replace("{}", "…"), **{"closed by": CLOSED_BY[rule.kind]})
        for name, rule in STANDING.items()
    }
    names |= {name: _told(name, "column", body["description"]) for name, body in columns.items()}
    names |= {
        item.code: _told(item.code, "finding", finding_words()[item.code]["means"], severity=item.severity)
        for item in reversed(FINDINGS)
    }
    names |= {name: _told(name, "word", text) for name, text in WORDS.items()}
    names |= {name: _metric(name, name, "metric") for name in CATALOGUE}
    judged = load_profile(profile)
    for row in judged.criteria:
        unit = CATALOGUE[row.metric].unit
        tiers = {
            f"Tier {tier} of {judged.id}": threshold_text(row.operator_at(tier), threshold, unit)
            for tier in judged.tier_numbers
            if (threshold := row.threshold(tier)) is not None
        }
        if row.provisional:
            tiers["decides"] = "nothing: it is provisional in its paper; --strict counts it"
        names[row.id] = _metric(row.id, row.metric, "criterion", **tiers)
    return names


def _told(name: str, kind: Any, text: str, **facts: str) -> Explanation:
    return Explanation(name=name, kind=kind, text=text, facts=facts)


def _metric(name: str, metric: str, kind: Any, **tiers: str) -> Explanation:
    spec = CATALOGUE[metric]
    text = f"{spec.title[:1].upper()}{spec.title[1:]}: {spec.formula}.".replace("ω", "success (1 or 0)")
    facts = {"unit": str(spec.unit), "source": spec.source, "to measure it": spec.evidence}
    if spec.example is not None:
        facts["example"] = spec.example
    # A finding of this name says why the printed formula of a metric misleads.
    if (printed := finding_words().get(f"{metric}-as-printed")) is not None:
        facts["as printed"] = printed["means"]
    return _told(name, kind, text, **facts, **tiers)


def _explained(told: Explanation) -> Iterator[str]:
    yield f"{told.name} is a {told.kind}."
    yield from fold(told.text[:1].upper() + told.text[1:])
    width = max(map(len, told.facts), default=0) + 2
    for label, text in told.facts.items():
        yield from entry(label, text, width)
    if told.kind in {"criterion", "metric"}:
        yield "Runs: certkit runs BUNDLE; --condition, --domain and --failed choose among them"
