"""A passport's claim as a Markdown table, for a README or the summary of a CI run.

Text that the passport brings along stands in code spans, where it can format, link and mention nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from certkit.passport.exports import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports.source import Source

MEDIA_TYPE: Final = "text/markdown"
_DOMAINS: Final = 12


def write(source: Source, **_: Any) -> tuple[str, str]:
    """Return the media type and the text."""
    predicate = source.predicate
    head = f"**Agent passport of {_code(predicate.agent.name)} {_code(predicate.agent.version)}**"
    rows = "\n".join(_row(name, value) for name, value in _rows(source))
    notes = "\n".join(f"- {item}" for item in words.IS_NOT)
    return (
        MEDIA_TYPE,
        f"{_banner(source)}{head}\n\n| | |\n| --- | --- |\n{rows}\n\nWhat this is not:\n\n{notes}\n",
    )


def _row(name: str, value: str) -> str:
    escaped = value.replace("|", "\\|")  # a bar ends a cell even inside a code span
    return f"| {name} | {escaped} |"


def _banner(source: Source) -> str:
    text = ""
    if source.verification is None:
        text += (
            f"> **{words.UNVERIFIED}: nobody checked the signature. Nothing below is shown to be true.**\n\n"
        )
    if source.is_specimen:
        text += (
            f"> **{words.SPECIMEN}: the evidence is simulated. This says nothing about a real agent.**\n\n"
        )
    return text


def _rows(source: Source) -> Iterator[tuple[str, str]]:
    predicate, judgement = source.predicate, source.predicate.assessment
    yield "Claim", _code(predicate.claim)
    for name, attained, decides in words.readings(judgement):
        yield f"{name.capitalize()} reading", f"**{attained}**, decides" if decides else attained
    yield "Profile", _code(judgement.profile.id)
    yield "", _code(judgement.profile.digest)
    yield "Domains", _domains(predicate.scope.domains)
    evidence = predicate.evidence
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    yield "Evidence", f"{predicate.origin}, {evidence.records:,} records: {runs}"
    yield "", _code(evidence.digest)
    yield "Agent", _code(predicate.agent.digest)
    yield "Valid", f"{words.utc(predicate.validity.not_before)} to {words.utc(predicate.validity.not_after)}"
    yield "Issuer", _issuer(source)
    yield (
        "Stated in it",
        (
            f"{len(predicate.limitations)} limitations, "
            f"{len(predicate.known_failure_modes)} known failure modes, "
            f"{len(predicate.challenges)} open challenges"
        ),
    )
    yield "Passport", _code(source.passport_id)
    if source.verification is None:
        asked = f", as of {words.utc(source.at)}" if source.as_of else ""
        yield "Verified", f"no: **{words.UNVERIFIED}**{asked}"
    else:
        steps = source.verification.steps
        time = f"{'as of ' if source.as_of else ''}{words.utc(source.at)}"
        yield "Verified", f"{time}: {', '.join(step.id for step in steps if step.status == 'passed')}"
        yield "Not checked", ", ".join(step.id for step in steps if step.status == "skipped") or "–"


def _issuer(source: Source) -> str:
    stated = _code(source.predicate.issuer.name)
    claim = source.verification.claim if source.verification else None
    if claim is None:
        return f"{stated}, by its own word"
    known = _code(claim.issuer.name)
    return known if known == stated else f"{known}, which calls itself {stated}"


def _domains(names: tuple[str, ...]) -> str:
    shown = ", ".join(_code(name) for name in names[:_DOMAINS]) or "none"
    return shown if len(names) <= _DOMAINS else f"{shown} and {len(names) - _DOMAINS} more"


def _code(text: str) -> str:
    """Return foreign text as a code span."""
    shown = words.one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
