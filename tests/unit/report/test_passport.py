"""A report carries the passport's bytes as they are, and none that is about something else."""

from __future__ import annotations

import hashlib

import pytest
from msgspec import structs

from certkit import report
from certkit.assessment.assessing import assess, contested
from certkit.bundle import context
from certkit.bundle.context import CONTEXT_SCHEMA, Given
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, MismatchError
from certkit.summary.summary import Likeness
from tests.support.drawing import DAY, judged, page, passport, strong


def test_the_passport_is_named_attached_and_not_vouched_for() -> None:
    assessment = judged(strong(), tier=2)
    signed = passport(assessment)
    view = report.view(assessment, passport=signed.document)
    attached = {item.name: item.data for item in view.attachments}
    assert attached["passport.json"] == signed.document
    text = page(assessment, signed.document).text
    assert "sha256:" + hashlib.sha256(signed.payload).hexdigest() in text
    assert "this report did not verify its signature" in text
    assert "Lab of Tests" in text
    assert "2026-02-04 00:00 UTC" in text
    assert view.generated_at == DAY


def test_without_a_passport_nothing_is_said_to_be_signed() -> None:
    text = page(judged(strong())).text
    assert "no passport: nothing has been signed" in text
    assert "certkit verify passport.json" not in text


def with_context(**answers: object) -> Given:
    base = judged(strong(), tier=2)
    about = {"bundles": [base.facts.digest], "profile": base.profile.digest, "tier": 2}
    said = {"schema": CONTEXT_SCHEMA, "about": about, "owner": "o", "people": [{"id": "o"}], **answers}
    return context.read(canonical.line(said), where="context.json")


def test_a_passport_issued_without_a_context_is_reported_with_one_and_the_word_is_unsigned() -> None:
    bare, given = judged(strong(), tier=2), with_context()
    answered = assess(strong(), bare.facts, bare.profile, required_tier=2, context=given)
    view = report.view(answered, context=given, passport=passport(bare).document)
    assert view.case.word == "context.json, the owner's word, unsigned"
    assert "--require-tier 2 --context context.json -o again.json" in report.html(view)
    bound = report.view(answered, context=given, passport=passport(answered).document)
    assert str(bound.case.word).endswith("signed in the passport (signature not verified here)")
    other = with_context(use={"purpose": "another"})
    unbound = assess(strong(), bare.facts, bare.profile, required_tier=2, context=other)
    told = report.view(unbound, context=other, passport=passport(answered).document).case.word
    assert str(told).endswith("not the context that the passport names")
    # And with another context, or none: what the passport's said changes nothing either.
    assert report.view(bare, passport=passport(answered).document).case.word is None


def test_an_answer_that_changes_the_verdict_needs_the_passport_to_carry_it() -> None:
    odd, given = structs.replace(strong(), likeness=Likeness(oracles=3)), with_context()
    bare = judged(odd, tier=2)
    answered = structs.replace(contested(bare, {"oracle-varies": ("Ana",)}), context=given.digest)
    assert answered.verdict.status != bare.verdict.status
    with pytest.raises(MismatchError) as caught:
        report.view(answered, context=given, passport=passport(bare).document)
    assert f"issued without --context, and this is with --context {given.digest}" in str(caught.value.hint)
    other = structs.replace(answered, facts=structs.replace(bare.facts, digest=given.digest))
    with pytest.raises(MismatchError, match="evidence bundle") as caught:  # whatever the context
        report.view(other, context=given, passport=passport(bare).document)
    assert "--context" not in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("evidence", {"of": strong(), "sealed": True, "tier": 2, "digest": "f"}),
        ("required tier", {"of": strong(), "tier": 1}),
        ("tier", {"of": strong(adversarial=850), "tier": 2}),
        ("profile", {"of": strong(), "tier": 2, "name": "hb-eval-2025"}),
        ("assessment", {"of": strong(adversarial=951), "tier": 2}),
    ],
)
def test_a_passport_about_something_else_is_refused(name: str, other: dict[str, object]) -> None:
    signed = passport(judged(strong(), tier=2))
    if name == "evidence":
        from certkit.ground.canonical import Digest  # noqa: PLC0415 - only here

        base = judged(strong(), tier=2)
        digest = Digest("sha256:" + "f" * 64)
        made = structs.replace(base, facts=structs.replace(base.facts, digest=digest))
    else:
        made = judged(other["of"], str(other.get("name", "hb-eval-2026")), tier=other["tier"])  # type: ignore[arg-type]
    with pytest.raises(MismatchError) as caught:
        report.view(made, passport=signed.document)
    assert caught.value.code == "report.passport-differs"
    assert name in caught.value.message


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"mediaType": 1}', b"\xff"])
def test_what_is_no_passport_is_refused_as_malformed(data: bytes) -> None:
    with pytest.raises(CertkitError) as caught:
        report.view(judged(strong()), passport=data)
    assert caught.value.exit_code == 3
