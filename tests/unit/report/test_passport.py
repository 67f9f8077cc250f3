"""A report carries the passport's bytes as they are, and none that is about something else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from certkit import report
from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.report.context import CONTEXT_SCHEMA, Given, read_context
from tests.support.drawing import DAY, judged, page, passport, strong


def test_the_passport_is_named_attached_and_not_vouched_for() -> None:
    evaluation = judged(strong(), tier=2)
    signed = passport(evaluation, supersedes="sha256:" + "5" * 64)
    view = report.view(evaluation, passport=signed)
    attached = {item.name: item.data for item in view.attachments}
    assert attached["passport.json"] == signed.data
    text = page(evaluation, signed).text
    assert signed.id in text
    assert "this report did not verify its signature" in text
    assert "Lab of Tests" in text
    assert "it replaces sha256:5555" in text
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
    return read_context(canonical.line(said), where="context.json")


@pytest.mark.parametrize(
    ("signed", "word"),
    [
        (None, "context.json, the owner's word, unsigned"),
        (with_context().digest, "signed in the passport (signature not verified here)"),
        (with_context(use={"purpose": "another"}).digest, "not the context that the passport names"),
    ],
)
def test_whether_the_passport_binds_the_context_is_said(signed: str | None, word: str) -> None:
    evaluation, given = judged(strong(), tier=2), with_context()
    view = report.view(evaluation, context=given, passport=passport(evaluation, context=signed))
    assert str(view.case.word).endswith(word)
    assert "--require-tier 2 --context context.json -o again.json" in report.html(view)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("required tier", judged(strong(), tier=1)),
        ("tier", judged(strong(adversarial=170), tier=2)),
        ("profile", judged(strong(), "hb-eval-2025", tier=2)),
        ("rows", judged(strong(), tier=2, tasks_independent=True)),
    ],
)
def test_a_passport_about_something_else_is_refused(name: str, other: Any) -> None:
    with pytest.raises(MismatchError) as caught:
        report.view(other, passport=passport(judged(strong(), tier=2)))
    assert caught.value.code == "report.passport-differs"
    assert f"the passport's {name} " in caught.value.message


def test_a_passport_about_other_evidence_is_refused() -> None:
    evaluation = judged(strong(), tier=2)
    facts = structs.replace(evaluation.facts, digest="sha256:" + "f" * 64)
    with pytest.raises(MismatchError, match="the passport's evidence bundle is sha256:0"):
        report.view(structs.replace(evaluation, facts=facts), passport=passport(evaluation))
