"""The signed payload: an in-toto Statement v1 about an agent and the bundle that holds its evidence.

    statement = Statement(...)                # `issue` makes it from an evaluation
    payload = write_statement(statement)      # the bytes that are signed
    read_statement(payload)                   # the statement, or why it is none
    read_passport(data).passport_id           # of a file; its signature is not checked

`rules` comes first: a passport judged by other rules is not read any further. Unknown members are refused
everywhere, since a member that this program does not know might change what the others mean. The parts agree
with each other: the subject is that of the facts, no run is later than the beginning of the validity, and a
profile under a published id is a published one. Whether the assessment follows from the summary is not
checked here; `verify` judges again.
"""

# Annotations are not postponed here: msgspec would compile each of them when it first reads such a struct.

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, structs

from certkit.assessment.assess import RULES
from certkit.assessment.assessment import Assessment, Question
from certkit.assessment.evaluation import Evaluation
from certkit.assessment.profile import Profile
from certkit.bundle.facts import Facts, Relation
from certkit.bundle.identity import MAX_BUNDLES, accumulation_digest
from certkit.ground import canonical, files
from certkit.ground.canonical import Digest
from certkit.ground.document import Digest as DigestText
from certkit.ground.document import Hash, Part, Time, to_builtins
from certkit.ground.errors import CertkitError, InputError, NegativeError, UnavailableError
from certkit.ground.text import is_said, span
from certkit.ground.wording import many
from certkit.passport.differences import form_difference
from certkit.passport.envelope import PAYLOAD_TYPE, parse_envelope, parse_file
from certkit.summary.summary import MOST_BYTES, MOST_DOMAINS, MOST_TASKS, Summary

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:certkit:agent-passport:v1"
BUNDLE_NAME: Final = "evidence bundle"

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far two clocks may differ. An end of validity is not stretched."""
MAX_VALIDITY: Final = timedelta(days=366)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
INTERVENTION_RATE: Final = 0.05
"""The share of runs with human intervention above which a tier wants a new test."""

_YEARS: Final = range(2, 9998)
"""Years in which a time has a day before and after it, whatever its offset."""
_IN_OPERATION: Final = ("r_op", "frr")
"""Metrics that are observed in operation."""
_MICROSECOND: Final = timedelta(microseconds=1)

Text = Annotated[str, Meta(min_length=1, max_length=512)]


class StatementPart(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the statement; it leaves out what has no value."""


class Sha256(StatementPart, frozen=True, kw_only=True):
    """A digest as in-toto writes it."""

    sha256: Hash


class Subject(StatementPart, frozen=True, kw_only=True):
    """One of the two things that the statement is about."""

    name: Text
    digest: Sha256


class Issuer(StatementPart, frozen=True, kw_only=True):
    """Who signs, as they state it.

    Attributes:
        name: of the issuer.
        key_id: SHA-256 of the public key that signs.
        relation_to_evaluator: to who ran the evaluation.
        relation_to_developer: to the agent's developer.
    """

    name: Text
    key_id: DigestText
    relation_to_evaluator: Relation | None = None
    relation_to_developer: Relation | None = None


class Trigger(StatementPart, frozen=True, kw_only=True):
    """An event that asks for a new test before the passport ends.

    Attributes:
        event: what happens.
        metric: the metric that is beyond its threshold.
        operator: what the tier asks of it.
        threshold: the limit.
    """

    event: Literal["component_change", "metric_beyond_threshold", "intervention_rate_above"]
    metric: Text | None = None
    operator: Text | None = None
    threshold: float | None = None


class Validity(StatementPart, frozen=True, kw_only=True):
    """When the passport is valid, both ends included.

    Attributes:
        not_before: the first moment.
        not_after: the last moment.
        retest_triggers: what asks for a new test sooner.
    """

    not_before: Time
    not_after: Time
    retest_triggers: Annotated[tuple[Trigger, ...], Meta(max_length=100)] = ()


class Predicate(StatementPart, frozen=True, kw_only=True):
    """What a passport says (``urn:certkit:agent-passport:v1``).

    Attributes:
        rules: the version of the judging rules and of the summary's schema.
        issuer: who signs.
        facts: what the manifest states.
        summary: the records, reduced to integers, with the rows of at most 1,000 tasks.
        profile: the tier table.
        question: the tier asked for, whether provisional rows decide, and answered findings.
        assessment: the judgement.
        validity: from when to when it is valid.
        supersedes: the id of the passport that this one replaces.
        context: digest of the ``context.json`` that holds the answers.
    """

    rules: Text
    issuer: Issuer
    facts: Facts
    summary: Summary
    profile: Profile
    question: Question
    assessment: Assessment
    validity: Validity
    supersedes: DigestText | None = None
    context: DigestText | None = None

    @property
    def evaluation(self) -> Evaluation:
        """The five values that were judged, for screens, reports and views."""
        return Evaluation(
            facts=self.facts,
            summary=self.summary,
            profile=self.profile,
            question=self.question,
            assessment=self.assessment,
        )


class Statement(
    Part, frozen=True, kw_only=True, rename={"type_": "_type", "predicate_type": "predicateType"}
):
    """The signed payload: an in-toto Statement v1; its types are always written."""

    type_: Literal["https://in-toto.io/Statement/v1"] = STATEMENT_TYPE
    subject: Annotated[tuple[Subject, ...], Meta(min_length=2, max_length=2)]
    predicate_type: Literal["urn:certkit:agent-passport:v1"] = PREDICATE_TYPE
    predicate: Predicate

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values."""
        types = {"_type": self.type_, "predicateType": self.predicate_type}
        value: dict[str, Any] = types | to_builtins(self)
        return value


class Passport(Struct, frozen=True, kw_only=True):
    """A passport file and the payload in it; nobody has checked the signature.

    Attributes:
        payload: the bytes that are signed.
        document: the bytes of the file.
    """

    payload: bytes
    document: bytes

    @property
    def passport_id(self) -> Digest:
        """The SHA-256 of the payload: signatures and white space can be written in other ways."""
        return canonical.digest(self.payload)

    def to_json(self) -> bytes:
        """Return the bytes of ``passport.json``."""
        return self.document

    def unverified_statement(self) -> Statement:
        """Return the statement, whoever signed it; raises as `read_statement`."""
        return read_statement(self.payload)


class OtherRulesError(UnavailableError):
    """The passport was judged by other rules than this program's."""


def read_passport(data: bytes, where: str | None = None) -> Passport:
    """Return the passport in the bytes of a file; its signature is not checked.

    Args:
        data: the file.
        where: what errors call it.

    Raises:
        InputError: a ``json.*``, ``passport.form`` or ``dsse.*`` code.
    """
    try:
        envelope = parse_envelope(parse_file(data).dsse_envelope, payload_type=PAYLOAD_TYPE)
    except CertkitError as error:
        error.where = where or error.where
        raise
    return Passport(payload=envelope.payload, document=data)


def write_statement(statement: Statement) -> bytes:
    """Return the payload that is signed: compact JSON, members in the order of the types."""
    return canonical.line(statement.to_dict()).removesuffix(b"\n")


@lru_cache(maxsize=8)  # a registry reads the latest of a lineage again and again
def read_statement(payload: bytes) -> Statement:
    """Return the statement in a payload.

    Raises:
        NegativeError: ``passport.types`` for a statement of another kind; ``passport.statement``,
            ``passport.too-large`` or a ``json.*`` code for one that is malformed or whose parts disagree;
            ``passport.period-in-future`` where a run is later than the beginning of the validity.
        OtherRulesError: ``passport.other-rules``; nothing else was read.
    """
    document = _document(payload)
    try:
        statement = msgspec.convert(document, Statement)
    except (msgspec.ValidationError, RecursionError) as error:
        text = str(error)
        raise NegativeError("passport.statement", text[:1].lower() + text[1:]) from None
    if reason := form_difference(document, statement) or next(_disagreements(statement), None):
        raise NegativeError("passport.statement", reason)
    passport = statement.predicate
    if late := late_run(passport.facts, passport.summary, passport.validity.not_before):
        raise NegativeError("passport.period-in-future", late)
    return statement


def _document(payload: bytes) -> dict[str, Any]:
    """Return the JSON of a payload of the right types, judged by the rules of this program."""
    try:
        document = canonical.loads(payload, where="payload")
    except InputError as error:
        raise NegativeError(error.code, error.message, where="payload") from None
    if not isinstance(document, dict):
        raise NegativeError("passport.types", "the payload is not a statement")
    for key, expected in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if document.get(key) != expected:
            actual = str(document.get(key))[:80]
            raise NegativeError("passport.types", f"expected {key} {expected}, found {actual}")
    predicate = document.get("predicate")
    rules = predicate.get("rules") if isinstance(predicate, dict) else None
    if isinstance(rules, str) and rules != RULES:
        raise OtherRulesError(
            "passport.other-rules",
            f"made by another certkit: rules {rules[:80]}, and this program judges by {RULES}",
            hint="verify it with a certkit that has these rules",
        )
    try:
        refuse_large(predicate.get("summary") if isinstance(predicate, dict) else None)
    except InputError as error:
        raise NegativeError(error.code, error.message) from None
    return document


def refuse_large(summary: Any) -> None:
    """Refuse the JSON values of a summary that is larger than a passport may hold.

    Raises:
        InputError: ``passport.too-large``.
    """
    cells = summary.get("cells") if isinstance(summary, dict) else None
    cells = cells if isinstance(cells, list) else []
    domains = {str(cell.get("domain")) for cell in cells if isinstance(cell, dict)}
    size = len(msgspec.json.encode(summary))
    for count, most, what in (
        (len(domains), MOST_DOMAINS, "domains"),
        (size, MOST_BYTES, "bytes"),
    ):
        if count > most:
            raise InputError(
                "passport.too-large",
                f"the summary has {count:,} {what}, and a passport holds at most {most:,}",
                hint="issue passports of fewer domains, each with its own bundle",
            )


def signed_summary(summary: Summary, profile: Profile) -> Summary:
    """Return a summary as a passport holds it.

    The rows are those of at most 1,000 tasks, which have the smallest tags, and the columns those of success
    and of the profile's metrics: nothing else of a task is compared with a later passport.
    """
    table, metrics = summary.tasks, {"success", *(row.metric for row in profile.criteria)}
    tags = sorted({row.tag for row in table.rows})[:MOST_TASKS]
    places = [place for place, column in enumerate(table.columns) if column.metric in metrics]
    rows = tuple(
        structs.replace(row, sums=tuple(row.sums[2 * place + side] for place in places for side in (0, 1)))
        for row in table.rows
        if row.tag <= tags[-1]
    )
    columns = tuple(table.columns[place] for place in places)
    return structs.replace(summary, tasks=structs.replace(table, columns=columns, rows=rows))


def subject_of(facts: Facts) -> tuple[Subject, ...]:
    """Return what a statement is about: the agent and the bundle, by their digests."""
    named = ((facts.agent.name, facts.agent.digest), (BUNDLE_NAME, facts.digest))
    return tuple(
        Subject(name=name, digest=Sha256(sha256=digest.removeprefix("sha256:"))) for name, digest in named
    )


def triggers_of(assessment: Assessment) -> tuple[Trigger, ...]:
    """Return what asks for a new test before the end: a changed part, and what operation observes."""
    tier = assessment.verdict.tier
    watched = (
        Trigger(
            event="metric_beyond_threshold",
            metric=row.metric,
            operator=row.operator,
            threshold=float(row.threshold),
        )
        for row in assessment.criteria
        if row.tier == tier and row.metric in _IN_OPERATION and row.threshold is not None
    )
    limit = Trigger(event="intervention_rate_above", threshold=INTERVENTION_RATE)
    return (Trigger(event="component_change"), *watched, limit)


def last_run(facts: Facts, summary: Summary) -> timedelta | None:
    """Return when the last run began, counted from 1970; without start times the end of the stated period."""
    times, period = summary.times, facts.period
    ends = [] if times.last is None else [times.last * _MICROSECOND]
    if times.timed < summary.records and period is not None and period.end is not None:
        # The first moment of a day counts: a period that ends today may have ended this morning.
        end, _ = span(period.end, None)
        ends += [] if end is None else [end - EPOCH]
    return max(ends, default=None)


def late_run(facts: Facts, summary: Summary, signed: datetime) -> str | None:
    """Return how runs are later than a time of signing, None where they are not."""
    last = last_run(facts, summary)
    if last is None or last - (signed - EPOCH) <= CLOCK_SKEW:
        return None
    return f"its last run began at {run_time(last)}, later than {signed.isoformat()}, when it was signed"


def run_time(since: timedelta) -> str:
    """Return a time counted from 1970 as RFC 3339, or that no calendar has it."""
    try:
        return (EPOCH + since).isoformat()
    except OverflowError:
        return "a time that no calendar has"


def is_published(profile: Profile) -> bool:
    """Tell whether a profile is one that certkit published, by its id and digest."""
    return profile.digest in _published().get(profile.id, ())


@cache
def _published() -> dict[str, list[str]]:
    """Return the digests of every table that certkit published, by its id."""
    path = files.packaged("templates", "profiles", "published.json")
    digests: dict[str, list[str]] = canonical.loads(path.read_bytes(), where=path.name)
    return digests


def _disagreements(statement: Statement) -> Iterator[str]:
    """Yield how the parts of a statement disagree."""
    predicate = statement.predicate
    facts = predicate.facts
    if statement.subject != subject_of(facts):
        yield "the subject is not the agent and the bundle of the facts"
    if not facts.sealed:
        yield "facts.sealed is false: a passport rests on a sealed bundle"
    if facts.bundles and not (
        1 < len(set(facts.bundles)) == len(facts.bundles) <= MAX_BUNDLES
        and facts.digest == accumulation_digest(facts.bundles)
    ):
        yield "facts.digest is not that of the pooled bundles"
    tasks = predicate.summary.tasks
    if len({row.tag for row in tasks.rows}) != min(tasks.tasks, MOST_TASKS):
        yield f"summary.tasks does not have the rows of {many(min(tasks.tasks, MOST_TASKS), 'task')}"
    yield from _times(predicate)
    yield from _answers(predicate)
    yield from (f"profile.criteria: {fault}" for fault in predicate.profile.faults)
    profile = predicate.profile.original
    if profile.id in _published() and not is_published(profile):
        yield f"profile {predicate.profile.id!r} is no table that certkit published as {profile.id!r}"


def _times(predicate: Predicate) -> Iterator[str]:
    start, end = predicate.validity.not_before, predicate.validity.not_after
    if start.year not in _YEARS or end.year not in _YEARS:
        yield "the validity has a time that no calendar has"
    elif not timedelta(0) <= end - start <= MAX_VALIDITY:
        yield f"the validity ends before it begins, or is longer than {MAX_VALIDITY.days} days"
    if (period := predicate.facts.period) is not None:
        try:
            span(period.start, period.end)
        except ValueError as error:
            yield f"facts.period: {error}"


def _answers(predicate: Predicate) -> Iterator[str]:
    answers = predicate.question.answers
    if answers and predicate.context is None:
        yield "a finding is answered, and no context holds the answer"
    if not all(is_said(answer.by) and is_said(answer.agreed_by) for answer in answers):
        yield "a finding is answered, or agreed to, by nobody"
    serious = {item.code for item in predicate.assessment.serious}
    for answer in answers:
        if answer.code not in serious:
            yield f"question.answers: {answer.code[:80]!r} is no serious finding here"
