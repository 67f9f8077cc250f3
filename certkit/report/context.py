"""What people say about a use of the agent, ``context.json`` (``urn:certkit:context:v1``).

Purpose, hazards, assumptions, reviewers, answers to challenges and the decision: everything that a safety
case needs and that no record of a run can hold. Every member but `schema` and the ids may be left out or be
null; a blank is said to be blank, and never filled in. `about` binds the file to bundles, profile and tier
by their digests: where one of them differs, answers, comments and the decision are stale and count for
nothing.

    given = read_context(path.read_bytes(), where="context.json")
    given.context.owner, given.digest
    given.context.stale(bundles=(digest,), profile=digest, tier=2)   # what differs, empty where bound

This module checks what the file says of itself: its form, that every id it refers to is there, and who may
accept or answer. Which challenges there are, and so which answers count, is said by `argument.challenges`.
"""

from __future__ import annotations

import os
import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct, structs
from pydantic import AfterValidator, Field

from certkit.bundle.manifest import DigestText  # noqa: TC001 - pydantic resolves the annotation at run time
from certkit.ground import canonical, files
from certkit.ground.base import Authored, EditorSchema, validate
from certkit.ground.canonical import Digest
from certkit.ground.errors import InputError
from certkit.ground.text import is_said, name_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from certkit.bundle.facts import Facts

CONTEXT_SCHEMA: Final = "urn:certkit:context:v1"
MAX_BYTES: Final = 4 * 1024 * 1024


def _real_date(text: str) -> str:
    date.fromisoformat(text)
    return text


def _something(text: str) -> str:
    if not is_said(text):
        raise ValueError("should hold a letter or a digit; a blank is null")
    return text


Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Title = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_something)]
Prose = Annotated[str, Field(min_length=1, max_length=4_000), AfterValidator(_something)]
Day = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="the whole day, in UTC"),
    AfterValidator(_real_date),
]
Titles = Annotated[tuple[Title, ...], Field(max_length=200)]
Ids = Annotated[tuple[Id, ...], Field(max_length=200)]


class About(Authored):
    """The evidence that answers, comments and the decision were given for."""

    bundles: Annotated[tuple[DigestText, ...], Field(max_length=200)] | None = None
    profile: DigestText | None = None
    tier: Annotated[int, Field(ge=1, le=9)] | None = None


class Person(Authored):
    """Somebody who owns, reviews, answers or decides; `relation` is to the agent's developer."""

    id: Id
    name: Title | None = None
    role: Title | None = None
    organisation: Title | None = None
    relation: Literal["same", "affiliated", "independent"] | None = None


class Use(Authored):
    """What the agent is to be used for, by whom, and under whose eyes."""

    purpose: Prose | None = None
    users: Prose | None = None
    oversight: Literal["none", "on_request", "supervises", "approves_each_action"] | None = None
    exclusions: Titles | None = None


class OperatingDomain(Authored):
    """Where the agent is to be used; `domains` are named as in the evidence."""

    description: Prose | None = None
    domains: Titles | None = None


class Risk(Authored):
    """The accepted risk, and why the profile's thresholds fit it."""

    criterion: Prose | None = None
    thresholds_fit: Prose | None = None


class HazardIdentification(Authored):
    """How hazards were looked for, by whom and when."""

    method: Prose | None = None
    by: Ids | None = None
    date: Day | None = None


class Tolerable(Authored):
    """The events that are tolerable per run, or per attack where attacks are counted; 1 would be no limit."""

    at_most: Annotated[float, Field(gt=0, lt=1)]


class Hazard(Authored):
    """A way in which the use of the agent can end in harm; conditions and domains as in the evidence."""

    id: Id
    title: Title | None = None
    harm: Prose | None = None
    severity: Literal["negligible", "marginal", "critical", "catastrophic"] | None = None
    counts: Annotated[
        Literal["failures", "violations", "attacks_succeeded", "unsafe"] | None,
        Field(
            description="what counts as an event: runs that failed, violations, attacks that succeeded, or"
            " (unsafe) violations and attacks that succeeded; default: what the criteria measure"
        ),
    ] = None
    tolerable: Tolerable | None = None
    conditions: Titles | None = None
    domains: Titles | None = None
    criteria: Titles | None = None
    mitigations: Ids | None = None
    residual: Prose | None = None


class NamedFile(Authored):
    """A file that shows something, by its digest; `where` is its path beside the context."""

    title: Title | None = None
    digest: DigestText | None = None
    where: Title | None = None


Files = Annotated[tuple[NamedFile, ...], Field(max_length=200)]


class Mitigation(Authored):
    """What is done against a hazard outside the agent."""

    id: Id
    what: Prose | None = None
    kind: Literal["human_oversight", "safe_halt", "guard", "process", "other"] | None = None
    owner: Id | None = None
    evidence: Files | None = None


class Assumption(Authored):
    """An assumption that somebody owns: A-1 to A-7 are the report's own, A-101 and up come with a text."""

    id: Annotated[str, Field(pattern=r"^A-([1-7]|[1-9][0-9]{2})$")]
    text: Prose | None = None
    owner: Id | None = None
    rationale: Prose | None = None
    falsified_by: Prose | None = None


class Comment(Authored):
    """What a reviewer has to say about a node of the argument."""

    node: Annotated[str, Field(min_length=1, max_length=200)]
    text: Prose | None = None
    resolved: bool | None = None


class Reviewer(Authored):
    """Somebody who looked at the argument, at what, and when."""

    person: Id
    scope: Prose | None = None
    date: Day | None = None
    comments: Annotated[tuple[Comment, ...], Field(max_length=200)] | None = None


class GivenAnswer(Authored):
    """What was said to an open question, by whom, who agreed, and until when it holds."""

    challenge: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*(:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$")]
    state: Literal["answered", "accepted", "sustained"] | None = None
    reason: Prose | None = None
    by: Id | None = None
    agreed_by: Id | None = None
    until: Day | None = None
    evidence: Files | None = None


class Indicator(Authored):
    """What is watched in operation, and what is done where it passes its limit."""

    id: Id
    claim: Id | None = None
    measure: Prose | None = None
    limit: Prose | None = None
    window: Title | None = None
    source: Title | None = None
    owner: Id | None = None
    action: Prose | None = None


class Decision(Authored):
    """What the owner decided, under which conditions and until when."""

    outcome: Literal["approved", "approved_with_conditions", "rejected", "deferred"] | None = None
    by: Id | None = None
    date: Day | None = None
    conditions: Titles | None = None
    residual_risk: Prose | None = None
    until: Day | None = None


class Context(Authored):
    """``context.json`` (``urn:certkit:context:v1``): what people say about the use of an agent."""

    editor_schema: EditorSchema = None
    schema_: Literal["urn:certkit:context:v1"] = Field(alias="schema")
    about: About | None = None
    owner: Id | None = Field(default=None, description="the person who owns the risk and decides")
    people: Annotated[tuple[Person, ...], Field(max_length=200)] | None = None
    use: Use | None = None
    operating_domain: OperatingDomain | None = None
    risk: Risk | None = None
    hazard_identification: HazardIdentification | None = None
    hazards: Annotated[tuple[Hazard, ...], Field(max_length=200)] | None = None
    mitigations: Annotated[tuple[Mitigation, ...], Field(max_length=200)] | None = None
    assumptions: Annotated[tuple[Assumption, ...], Field(max_length=200)] | None = None
    reviewers: Annotated[tuple[Reviewer, ...], Field(max_length=200)] | None = None
    answers: Annotated[tuple[GivenAnswer, ...], Field(max_length=200)] | None = None
    monitoring: Annotated[tuple[Indicator, ...], Field(max_length=200)] | None = None
    decision: Decision | None = None
    previous_answers: Annotated[tuple[GivenAnswer, ...], Field(max_length=200)] | None = Field(
        default=None, description="answers to earlier evidence, kept to be read; they never count"
    )
    previous_decision: Decision | None = None

    @property
    def by_id(self) -> dict[str, Person]:
        """The people by their ids."""
        return {person.id: person for person in self.people or ()}

    def named(self, person: str | None) -> bool:
        """Tell whether a person has a name; without one nobody owns, answers, agrees, reviews or decides."""
        return person is not None and self.by_id[person].name is not None

    def called(self, person: str | None) -> str:
        """Return a person's name, or their id where nobody gave one."""
        return "nobody" if person is None else self.by_id[person].name or person

    @property
    def reviewing(self) -> set[str]:
        """Who reviewed: a person with a name, on a day."""
        return {item.person for item in self.reviewers or () if item.date and self.named(item.person)}

    def independent(self, person: str | None) -> bool:
        """Tell whether this person is `reviewing`, independent of the developer, and not the owner."""
        return (
            person in self.reviewing
            and not self.same(person, self.owner)
            and self.by_id[person].relation == "independent"
        )

    def same(self, first: str | None, second: str | None) -> bool:
        """Tell whether two ids are one, or their people have one name."""
        if first == second:
            return True
        people = [self.by_id.get(person) if person else None for person in (first, second)]
        keys = [_keys(person.name) if person else set[str]() for person in people]
        return bool(keys[0] & keys[1])

    def stale(self, *, bundles: Sequence[str], profile: str, tier: int) -> tuple[str, ...]:
        """Return which members of `about` name something else than the evidence at hand; none where bound."""
        about = self.about or About()
        differs = {
            "bundles": sorted(about.bundles or ()) != sorted(bundles),
            "profile": about.profile != profile,
            "tier": about.tier != tier,
        }
        return tuple(name for name, different in differs.items() if different)


class Given(Struct, frozen=True, kw_only=True):
    """A context as it was given.

    Attributes:
        context: what people said.
        data: the bytes of the file.
        digest: their SHA-256.
        where: the file, in errors.
        files: digests of the files that answers name as evidence and that lie in the context's folder.
        nearer: by id, people who are less independent than they state: how near, and through whom.
    """

    context: Context
    data: bytes
    digest: Digest
    where: str
    files: frozenset[str] = frozenset()
    nearer: dict[str, str] = {}

    def knowing(self, facts: Facts) -> Given:
        """Return the same, with people no more independent than the facts and the other people say.

        Whoever has the name of its evaluator or of the agent's provider is meant, or is of that organisation;
        so is whoever has the name or organisation of somebody near the developer.
        """
        evaluator, people = facts.protocol.evaluator, self.context.people or ()
        parties: list[tuple[str | None, set[str], str]] = [
            ("same", _keys(facts.agent.provider), "the provider")
        ]
        parties += [(evaluator.relation, _keys(evaluator.name), "the evaluator")] if evaluator else []
        keys = {person.id: _keys(person.name, person.organisation) for person in people}
        parties += [(person.relation, keys[person.id], person.name or person.id) for person in people]
        near = [party for relation in ("same", "affiliated") for party in parties if party[0] == relation]
        related, nearer = [], dict[str, str]()
        for person in people:
            names, stated = keys[person.id], person.relation
            relation, _, through = next((party for party in near if party[1] & names), (stated, names, ""))
            related.append(person.model_copy(update={"relation": relation}))
            if relation != stated:
                nearer[person.id] = f"{relation} through {through}, stated: {stated or 'nothing'}"
        context = self.context.model_copy(update={"people": tuple(related)})
        return structs.replace(self, context=context, nearer=nearer)


def _keys(*names: str | None) -> set[str]:
    return {name_key(name) for name in names if name}


def read_context(data: bytes, *, where: str, folder: Path | None = None) -> Given:
    """Return the context in the bytes of a ``context.json`` of `folder`; `where` names it in errors.

    Raises:
        InputError: ``context.invalid``, which lists every fault with its JSON pointer, or a ``json.*``
            code.
    """
    if len(data) > MAX_BYTES:
        raise InputError("context.invalid", f"is larger than {MAX_BYTES:,} bytes", where=where)
    context = validate(Context, canonical.loads(data, where=where), code="context.invalid", where=where)
    refuse(_faults(context), where)
    named = frozenset(_present(context, folder.resolve())) if folder else frozenset[str]()
    return Given(context=context, data=data, digest=canonical.digest(data), where=where, files=named)


def refuse(faults: Iterable[str], where: str) -> None:
    """Raise `InputError` ``context.invalid`` with every fault, if there is one."""
    if listed := tuple(faults):
        message = listed[0] if len(listed) == 1 else f"{len(listed)} faults\n  " + "\n  ".join(listed)
        raise InputError("context.invalid", message, where=where)


def _present(context: Context, folder: Path) -> Iterator[str]:
    """Yield the digests of evidence whose file, not blank, is at its `where` below the folder."""
    named: dict[Path, set[str]] = {}
    for item in (item for answer in context.answers or () for item in answer.evidence or ()):
        if item.digest and item.where and "\0" not in item.where:
            named.setdefault((folder / item.where).resolve(), set()).add(item.digest)
    for path, digests in named.items():  # a file is read once, however often it is named
        inside = path.is_relative_to(folder) and os.path.isfile(path)  # noqa: PTH113 - false for a name too long
        if inside and (digest := f"sha256:{files.sha256(path)}") in digests:
            with path.open("rb") as stream:
                if re.search(rb"[0-9A-Za-z\x80-\xff]", stream.read(MAX_BYTES)):
                    yield digest


_PERSON: Final = re.compile(r"(?!/previous_).*/(owner|person|by|agreed_by)(/[0-9]+)?")
_MITIGATION: Final = re.compile(r"/hazards/[0-9]+/mitigations/[0-9]+")
"""Where ids of people and of mitigations stand."""
_LISTS: Final = ("people", "hazards", "mitigations", "assumptions", "monitoring")


def _faults(context: Context) -> Iterator[str]:
    """Yield what the file says that it contradicts, or refers to and does not hold."""
    for name in _LISTS:
        ids = [item.id for item in getattr(context, name) or ()]
        for place, identifier in enumerate(ids):
            if identifier.lower() in map(str.lower, ids[:place]):
                yield f"/{name}/{place}/id: {identifier!r} stands there twice, case aside"
    for place, hazard in enumerate(context.hazards or ()):
        if re.match(r"G[1-6]\b", hazard.id, re.IGNORECASE):
            yield f"/hazards/{place}/id: {hazard.id!r} is the name of a goal"
    people = set(context.by_id)
    mitigations = {item.id for item in context.mitigations or ()}
    for pointer, value in _leaves(context.model_dump(mode="json")):
        if value is not None and value not in people and _PERSON.fullmatch(pointer):
            known = ", ".join(sorted(people)) or "nobody"
            yield f"{pointer}: no person has the id {value!r}; people holds {known}"
        if value not in mitigations and _MITIGATION.fullmatch(pointer):
            yield f"{pointer}: no mitigation has the id {value!r}"
    yield from _assumption_faults(context)
    yield from _answer_faults(context)
    if context.decision and context.decision.by not in {None, context.owner}:
        yield f"/decision/by: {context.decision.by!r} is not the owner, who alone decides"


def _assumption_faults(context: Context) -> Iterator[str]:
    for place, assumption in enumerate(context.assumptions or ()):
        added = len(assumption.id) == len("A-101")
        if added != (assumption.text is not None):
            said = "needs a text" if added else "has a text already: leave text out"
            yield f"/assumptions/{place}/text: {assumption.id} {said}"


def _answer_faults(context: Context) -> Iterator[str]:
    for place, answer in enumerate(context.answers or ()):
        at = f"/answers/{place}"
        if answer.challenge in [earlier.challenge for earlier in (context.answers or ())[:place]]:
            yield f"{at}/challenge: {answer.challenge!r} is answered twice"
        if answer.agreed_by is not None and context.same(answer.agreed_by, answer.by):
            yield f"{at}/agreed_by: {answer.by!r} cannot agree with an answer of their own"
        if answer.state == "accepted":
            if answer.by is None or answer.by != context.owner:
                yield f"{at}/by: an open question is accepted by the owner alone, found {answer.by!r}"
            if answer.until is None:
                yield f"{at}/until: an acceptance needs a day on which it ends"
        if answer.state is not None and answer.reason is None:
            yield f"{at}/reason: {answer.state} without a reason"


def _leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a document that holds no others, with its JSON pointer."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{pointer}/{key}")
    else:
        yield pointer, value
