"""An argument as files: ``argument.json``, GSN in YAML as gsn2x reads it, and a register in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from certkit import canonical
from certkit.document import Digest, Document, Part, Text, Tier
from certkit.report.argument.challenges import Class, Standing
from certkit.report.argument.claim import approved
from certkit.report.argument.graph import ROOT, Kind, Link, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.argument.challenges import Challenge


class AboutPart(Part, frozen=True, kw_only=True):
    """The evidence that the argument is about."""

    bundles: tuple[Digest, ...]
    profile: Digest
    tier: Tier


class ClaimPart(Part, frozen=True, kw_only=True):
    """The claim about the use: its state, and every reason why it does not stand."""

    id: Text
    text: Text
    state: State
    supported: bool
    because: tuple[Text, ...]


class NodePart(Part, frozen=True, kw_only=True):
    """A node; the state of a counter-goal is that of its challenge."""

    id: Text
    kind: Kind
    text: Text
    state: State | None
    source: Annotated[str, Meta(description="the row, the member of context.json or the rule that made it")]


class EdgePart(Part, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A link between two nodes."""

    start: Text
    end: Text
    kind: Link


class AnswerPart(Part, frozen=True, kw_only=True):
    """What people said to a challenge, and what the answer lacks where it does not count."""

    state: Text
    reason: Text | None
    by: Text | None
    agreed_by: Text | None
    until: Text | None
    evidence: tuple[Text, ...]
    awaits: Text | None


class ChallengePart(Part, frozen=True, kw_only=True, rename={"kind": "class"}):
    """What is asked of a goal, and what became of it."""

    code: Text
    target: Text
    text: Text
    kind: Class
    state: Standing
    stale: bool
    closed_by: Text
    answer: AnswerPart | None


class DecisionPart(Part, frozen=True, kw_only=True):
    """What the owner decided, and whether an approval is in force for this evidence."""

    in_force: bool
    outcome: Text | None
    by: Text | None
    date: Text | None
    until: Text | None


class ArgumentDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:argument:v1"):
    """The argument of a safety case as a typed graph, after GSN version 3."""

    about: AboutPart
    assessment: Digest
    context: Annotated[Digest | None, Meta(description="SHA-256 of context.json as it was given")]
    claim: ClaimPart
    nodes: tuple[NodePart, ...]
    edges: tuple[EdgePart, ...]
    challenges: tuple[ChallengePart, ...]
    decision: DecisionPart


def document(argument: Argument, case: Case, *, context: str | None) -> ArgumentDocument:
    """Return ``argument.json``; `context` is the digest of the context that was given."""
    bundle, decision = case.document["bundle"], case.context.decision
    bundles = [item["digest"] for item in case.document.get("bundles", ())] or [bundle["digest"]]
    root = argument.graph.by_id[ROOT]
    return ArgumentDocument(
        about=AboutPart(bundles=tuple(bundles), profile=case.document["profile"]["digest"], tier=case.tier),
        assessment=canonical.digest(canonical.canonical(case.document)),
        context=context,
        claim=ClaimPart(
            id=ROOT,
            text=root.text,
            state=argument.states[ROOT],
            supported=argument.supported,
            because=argument.because,
        ),
        nodes=tuple(
            NodePart(
                id=node.id,
                kind=node.kind,
                text=node.text,
                state=argument.states.get(node.id),
                source=node.source,
            )
            for node in argument.graph.nodes
        ),
        edges=tuple(
            EdgePart(start=link.start, end=link.end, kind=link.kind) for link in argument.graph.edges
        ),
        challenges=tuple(_challenge(item) for item in argument.challenges),
        decision=DecisionPart(
            in_force=approved(case),
            outcome=decision.outcome if decision else None,
            by=decision.by if decision else None,
            date=decision.date if decision else None,
            until=decision.until if decision else None,
        ),
    )


def _challenge(item: Challenge) -> ChallengePart:
    answer = item.answer
    said = None
    if answer is not None and answer.state is not None:
        said = AnswerPart(
            state=answer.state,
            reason=answer.reason,
            by=answer.by,
            agreed_by=answer.agreed_by,
            until=answer.until,
            evidence=tuple(file.digest for file in answer.evidence or () if file.digest),
            awaits=item.awaits,
        )
    return ChallengePart(
        code=item.code,
        target=item.target,
        text=item.text,
        kind=item.kind,
        state=item.state,
        stale=item.stale,
        closed_by=item.closed_by,
        answer=said,
    )


_PREFIX: Final = {
    Kind.GOAL: "G",
    Kind.STRATEGY: "S",
    Kind.SOLUTION: "Sn",
    Kind.CONTEXT: "C",
    Kind.ASSUMPTION: "A",
    Kind.JUSTIFICATION: "J",
    Kind.COUNTER_GOAL: "CG",
}
_LINKS: Final[dict[Link, str]] = {
    "supported_by": "supportedBy",
    "in_context_of": "inContextOf",
    "challenges": "challenges",
}


def gsn(argument: Argument) -> str:
    """Return the argument in the YAML that gsn2x reads; ids begin with their kind."""
    names = {node.id: f"{_PREFIX[node.kind]}_{node.id}" for node in argument.graph.nodes}
    lines: list[str] = []
    for node in argument.graph.nodes:
        state = argument.states.get(node.id)
        lines += [f"{_text(names[node.id])}:", f"  text: {_text(node.text)}"]
        for link, word in _LINKS.items():
            ends = [edge.end for edge in argument.graph.edges if edge.start == node.id and edge.kind == link]
            if ends:
                lines.append(f"  {word}: [{', '.join(_text(names[end]) for end in ends)}]")
        if state is State.UNDEVELOPED and not argument.graph.below(node.id) and node.kind in _OPEN:
            lines.append("  undeveloped: true")
        if state is State.REFUTED:
            lines.append("  defeated: true")
    return "\n".join(lines) + "\n"


_OPEN: Final = {Kind.GOAL, Kind.STRATEGY}


def _text(text: str) -> str:
    """Return text as a double-quoted scalar: JSON strings are YAML's."""
    return canonical.line(text).decode().rstrip("\n")


def register(argument: Argument) -> str:
    """Return the challenges as a Markdown table, sustained and open ones first, for whoever answers them."""
    rows = "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in _rows(argument))
    names = ("code", "class", "state", "goal", "challenge", "what would close it", "answer")
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    claim = "Supported" if argument.supported else "Not supported"
    because = "".join(f"- {reason}\n" for reason in argument.because)
    return f"# Challenges\n\n{claim}: {_cell(argument.graph.by_id[ROOT].text)}\n\n{because}\n{head}{rows}"


def _rows(argument: Argument) -> Iterator[tuple[str, ...]]:
    for item in argument.challenges:
        answer = item.answer
        said = (
            ""
            if answer is None
            else f"{answer.state or 'blank'} by {answer.by or 'nobody'}: {answer.reason or ''}"
        )
        if item.awaits:
            said += f" ({item.awaits})"
        yield item.code, item.kind.value, item.state.value, item.target, item.text, item.closed_by, said


def _cell(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())
