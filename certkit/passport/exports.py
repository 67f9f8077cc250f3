"""Views of a passport, or of a judged bundle, in the formats of other programs. No view is signed.

    view = View(evaluation=predicate.evaluation, passport=..., verification=verification)
    export("badge", view).content

| format | what | for |
|---|---|---|
| svr | in-toto Simple Verification Result 0.2, as a statement | policy engines |
| test-result | in-toto Test Result 0.1, as a statement | policy engines |
| a2a | an extension of an A2A agent card (``capabilities.extensions``) | agents |
| markdown | a table | a README, the summary of a CI run |
| badge | an SVG picture with three words | a README |

A view is a copy of the verdict and no evidence. It carries the digest of the passport or of the bundle and
names the open questions by code, severity and state. A view of simulated evidence says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from markupsafe import escape
from msgspec import Struct

from certkit._version import __version__
from certkit.assessment.assessment import Status, TierStatus
from certkit.assessment.evaluation import Evaluation
from certkit.ground import canonical
from certkit.ground.canonical import Digest
from certkit.ground.document import Document, Text
from certkit.ground.errors import NegativeError, UsageError
from certkit.ground.wording import many
from certkit.passport import words
from certkit.passport.passport import PREDICATE_TYPE, STATEMENT_TYPE, Validity
from certkit.passport.verify import OpenQuestion, Verification, open_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.assessment import Row

Format = Literal["svr", "test-result", "a2a", "markdown", "badge"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

SVR_TYPE: Final = "https://in-toto.io/attestation/svr/v0.2"
TEST_RESULT_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"
_NAMES: Final = {"passport": "agent passport", "bundle": "evidence bundle"}
VERIFIER: Final = f"pkg:pypi/certkit@{__version__}"
"""What verified: the program, by its package URL."""


class View(Struct, frozen=True, kw_only=True, eq=False):
    """A judged bundle, or a passport, as exports show it.

    Attributes:
        evaluation: what was judged.
        passport_id: SHA-256 of the passport's payload; None for a bundle.
        issuer: the issuer, by the name in the verifier's policy or else its own; None for a bundle.
        validity: from when to when the passport is valid; None for a bundle.
        verification: of the passport; None where none was asked for.
    """

    evaluation: Evaluation
    passport_id: Digest | None = None
    issuer: str | None = None
    validity: Validity | None = None
    verification: Verification | None = None

    @property
    def is_specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return self.evaluation.facts.protocol.origin == "simulated"

    @property
    def subject(self) -> tuple[str, str]:
        """What the view is a copy of, and its digest."""
        if self.passport_id is not None:
            return "passport", self.passport_id
        return "bundle", self.evaluation.facts.digest

    @property
    def tiers(self) -> str:
        """The tier by each reading, in one sentence."""
        return words.tiers_text(self.evaluation)

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """The open and answered questions, the gravest first."""
        return open_questions(self.evaluation.assessment)

    @property
    def by_reading(self) -> dict[str, int]:
        """The tier that each reading attains, findings aside."""
        verdict = self.evaluation.assessment.verdict
        return {"table": verdict.table.tier, "bounded": verdict.bounded.tier}


class Export(Document, frozen=True, kw_only=True, tag="urn:certkit:export:v1"):
    """A view: `content` is the text of the file, to the last byte."""

    format: Format
    subject: Text
    media_type: Text
    content: Text


def refuse_unverified(verification: Verification) -> None:
    """Refuse a passport that was not verified.

    Raises:
        NegativeError: ``export.unverified``, with the exit code of the verification.
    """
    if verification.verdict == "verified":
        return
    reason = words.headline(verification)
    hint = "'certkit verify PASSPORT --trust FILE -v' prints every step"
    error = NegativeError("export.unverified", f"no view of this passport: {reason}", hint=hint)
    error.exit_code = verification.exit_code
    raise error


def export(format: Format, view: View) -> Export:  # noqa: A002 - the word of the trade, and of the option
    """Return a view in a format.

    Raises:
        UsageError: ``usage.option`` for a verification result of what was not verified.
    """
    media_type, content = _WRITERS[format](view)
    return Export(format=format, subject=view.subject[1], media_type=media_type, content=content)


# in-toto statements: https://github.com/in-toto/attestation/tree/main/spec/predicates


def _statement(view: View, kind: str, predicate: dict[str, Any]) -> tuple[str, str]:
    what, digest = view.subject
    agent = view.evaluation.facts.agent
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [_resource(agent.name, agent.digest), _resource(_NAMES[what], digest)],
        "predicateType": kind,
        "predicate": predicate,
    }
    return "application/vnd.in-toto+json", canonical.pretty(document)


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}


def _profile(view: View) -> dict[str, Any]:
    profile = view.evaluation.profile
    return _resource(f"profile {profile.id}", profile.digest)


def svr(view: View) -> tuple[str, str]:
    """Return media type and text of a Simple Verification Result.

    A consumer compares properties as texts, so a specimen has none that a real passport has. As in SLSA, a
    tier stands for those below it.
    """
    if view.verification is None:
        raise UsageError(
            "usage.option", "svr is the result of a verification", hint="--trust FILE, of a passport"
        )
    policy = _profile(view)
    return _statement(
        view,
        SVR_TYPE,
        {
            "verifier": {"id": VERIFIER, "policies": [policy]},
            "timeCreated": words.utc(view.verification.at),
            "properties": list(_properties(view, view.verification)),
        },
    )


def _properties(view: View, verification: Verification) -> Iterator[str]:
    prefix = "CERTKIT_SPECIMEN" if view.is_specimen else "CERTKIT"
    yield f"{prefix}_PASSPORT_VERIFIED"
    for reading, tier in {
        "": view.evaluation.assessment.verdict.tier,
        "TABLE_": view.by_reading["table"],
        "BOUNDED_": view.by_reading["bounded"],
    }.items():
        if tier:
            yield f"{prefix}_{reading}TIER_{tier}"
    for item in view.questions:
        yield f"{prefix}_{item.state}_{item.severity}_{item.code}".upper().replace("-", "_")
    for step in verification.steps:
        if step.status == "passed":
            yield f"{prefix}_PASSED_{step.id.upper()}"
    if view.validity is not None:
        yield f"{prefix}_VALID_UNTIL_{words.utc(view.validity.not_after)}"


def result_of_tests(view: View) -> tuple[str, str]:
    """Return media type and text of a Test Result.

    A test is a criterion that decides the tier that was asked for. A criterion without enough evidence is
    warned of, and so is every open question. A specimen never passes.
    """
    results = {"met": "PASSED", "not_met": "FAILED"}
    judged, profile = view.evaluation.assessment, view.evaluation.profile
    outcome = results.get(judged.verdict.status, "WARNED")
    tests: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    required = judged.verdict.required_tier
    for row in judged.criteria:
        status = row.deciding(profile.reading)
        asked = row.tier == required and status not in {None, Status.NOT_APPLICABLE}
        if asked and _decides(view, row):
            key = f"{results.get(status or '', 'WARNED').lower()}Tests"
            tests[key].append(f"{row.id} at Tier {required} of {profile.name}")
    tests["warnedTests"] += [
        f"finding {item.code} ({item.severity}, {item.state})" for item in view.questions
    ]
    if view.is_specimen:
        outcome = "WARNED" if outcome == "PASSED" else outcome
        tests["warnedTests"].append(words.SPECIMEN)
    configuration = [_resource(_NAMES["bundle"], view.evaluation.facts.digest), _profile(view)]
    return _statement(view, TEST_RESULT_TYPE, {"result": outcome, "configuration": configuration, **tests})


def _decides(view: View, row: Row) -> bool:
    evaluation = view.evaluation
    left_out = evaluation.assessment.tiers[str(row.tier)].left_out
    return row.id not in left_out and (evaluation.question.strict or not row.provisional)


# A2A: https://a2a-protocol.org/latest/topics/extensions


def agent_extension(view: View) -> tuple[str, str]:
    """Return media type and text of an agent card's extension, which tells and asks for nothing."""
    what, digest = view.subject
    facts, profile = view.evaluation.facts, view.evaluation.profile
    params = {
        what: digest,
        "agent": facts.agent.digest,
        "origin": facts.protocol.origin,
        "profile": {"id": profile.id, "digest": profile.digest, "reading": profile.reading},
        "tier": view.evaluation.assessment.verdict.tier,
        "tierByReading": view.by_reading,
        "domains": list(view.evaluation.summary.domains),
        "challenges": [{"code": c.code, "severity": c.severity, "state": c.state} for c in view.questions],
    }
    if view.validity is not None:
        params |= {
            "validFrom": words.utc(view.validity.not_before),
            "validUntil": words.utc(view.validity.not_after),
        }
    document = {
        "uri": PREDICATE_TYPE,
        "description": f"{view.tiers}. {words.questions_text(view.questions)}. {words.NOTICE}",
        "required": False,
        "params": params,
    }
    return "application/json", canonical.pretty(document)


# For people. Foreign text stands in code spans, where it can format, link and mention nothing.

_DOMAINS: Final = 12


def markdown(view: View) -> tuple[str, str]:
    """Return media type and text of a table."""
    what, _ = view.subject
    agent = view.evaluation.facts.agent
    lines = []
    if view.is_specimen:
        lines += ["> **Specimen: simulated evidence, which says nothing about a real agent.**", ""]
    lines += [
        f"**{_NAMES[what].capitalize()} of {_code(agent.name)} {_code(agent.version)}**",
        "",
        f"- {_code(view.tiers)}",
        f"- {_code(words.questions_text(view.questions))}",
        *(["", "| | |", "| --- | --- |"]),
    ]
    for name, value in _rows(view):
        escaped = value.replace("|", "\\|")  # a bar ends a cell even inside a code span
        lines.append(f"| {name} | {escaped} |")
    lines += ["", "What this is not:", "", *(f"- {item}" for item in words.IS_NOT), ""]
    return "text/markdown", "\n".join(lines)


def _rows(view: View) -> Iterator[tuple[str, str]]:
    judged, facts, profile = view.evaluation.assessment, view.evaluation.facts, view.evaluation.profile
    names, verification = view.evaluation.summary.domains, view.verification
    yield f"Tier {judged.verdict.required_tier}, as asked", judged.verdict.status.replace("_", " ")
    yield "Profile", f"{_code(profile.id)} {_code(profile.digest)}"
    more = f" and {len(names) - _DOMAINS} more" if len(names) > _DOMAINS else ""
    yield "Domains", (", ".join(map(_code, names[:_DOMAINS])) or "none") + more
    yield (
        "Evidence",
        f"{facts.protocol.origin}, {many(view.evaluation.summary.records, 'record')}: {_code(facts.digest)}",
    )
    yield "Agent", _code(facts.agent.digest)
    if view.passport_id is None or view.validity is None:
        yield "Passport", "none was issued"
        return
    yield "Valid", f"{words.utc(view.validity.not_before)} to {words.utc(view.validity.not_after)}"
    yield "Issuer", _code(view.issuer or "")
    yield "Passport", _code(view.passport_id)
    if verification is None:
        yield "Verified", "no: nobody checked the signature"
        return
    passed = ", ".join(step.id for step in verification.steps if step.status == "passed")
    yield "Verified", f"{words.utc(verification.at)}: {passed}"
    yield "Not checked", words.not_checked_text(verification).removeprefix("Not checked: ")


def _code(text: str) -> str:
    """Return foreign text as a code span."""
    line = words.one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


COLOURS: Final = {"measured": "#0a3f73", "simulated": "#5c3a00"}
"""The colour of a badge by origin, at a contrast of at least 7:1 with its text (WCAG 2.2, AAA)."""
INK: Final = "#ffffff"
_CHARACTER: Final = 6.4
"""Width in px of an average character of the sans-serif fonts at 11 px, rounded up."""
_PAD: Final = 8


def badge(view: View) -> tuple[str, str]:
    """Return media type and text of an SVG picture with three words.

    A picture goes stale and is copied, so its title says that it is no evidence, and names what to verify.
    Words say all that colours say, and nothing outside is loaded.
    """
    what, digest = view.subject
    text = _three_words(view)
    width = round(len(text) * _CHARACTER) + 2 * _PAD
    end = f", valid to {view.validity.not_after:%Y-%m-%d}" if view.validity else ""
    profile = view.evaluation.profile.id
    return "image/svg+xml", _SVG.format(
        width=width,
        title=escape(f"{profile}: {text}. No evidence. {_NAMES[what].capitalize()} {digest}{end}."),
        about=escape(f"{view.tiers}. {words.questions_text(view.questions)}. {words.NOTICE}"),
        colour=COLOURS[view.evaluation.facts.protocol.origin],
        ink=INK,
        middle=width / 2,
        length=width - 2 * _PAD,
        text=escape(text),
    )


def _three_words(view: View) -> str:
    verdict = view.evaluation.assessment.verdict
    if verdict.status is TierStatus.CONTESTED:
        return f"Tier {verdict.required_tier} {'specimen' if view.is_specimen else 'contested'}"
    if not verdict.tier:
        return "no tier met"
    return f"Tier {verdict.tier} {'specimen' if view.is_specimen else 'met'}"


_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" viewBox="0 0 {width} 20"\
 role="img" aria-label="{title}">
<title>{title}</title>
<desc>{about}</desc>
<rect width="{width}" height="20" rx="3" fill="{colour}"/>
<text x="{middle:g}" y="14" textLength="{length}" fill="{ink}"\
 font-family="Verdana,'DejaVu Sans',Arial,sans-serif" font-size="11" text-anchor="middle">{text}</text>
</svg>
"""

_WRITERS: Final[dict[Format, Callable[[View], tuple[str, str]]]] = {
    "svr": svr,
    "test-result": result_of_tests,
    "a2a": agent_extension,
    "markdown": markdown,
    "badge": badge,
}
"""What writes a format: media type and text."""
