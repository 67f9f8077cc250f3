"""What a passport holds, and what is not issued."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec import structs

from certkit.api.issuing import NOT_ASKED, write_issued
from certkit.api.judging import answered
from certkit.assessment.assess import RULES
from certkit.assessment.assessment import Question
from certkit.assessment.evaluation import evaluate
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.passport import envelope
from certkit.passport.passport import read_passport, read_statement, signed_summary, write_statement
from certkit.summary.summarise import summarise
from certkit.summary.summary import MOST_TASKS
from tests import bench
from tests.published import missing
from tests.support import bundles, passports
from tests.support.passports import KEY, NOW, document, specimen_passport
from tests.support.signers import signed_payload

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation


def with_facts(**changes: Any) -> Evaluation:
    judged = passports.specimen()
    return evaluate(judged.summary, structs.replace(judged.facts, **changes), judged.profile)


def test_the_file_is_a_sigstore_bundle_around_an_in_toto_statement() -> None:
    found = specimen_passport()
    file = canonical.loads(found.to_json())
    assert file["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert file["verificationMaterial"]["tlogEntries"] == []
    assert "keyid" not in file["dsseEnvelope"]["signatures"][0]
    assert signed_payload(file["dsseEnvelope"], KEY.public_key()) == found.payload
    assert found.passport_id == "sha256:" + hashlib.sha256(found.payload).hexdigest()
    assert read_passport(found.to_json()).payload == found.payload


def test_the_statement_is_about_the_agent_and_the_bundle() -> None:
    statement, facts = document(), passports.specimen().facts
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:certkit:agent-passport:v1"
    digests = [f"sha256:{subject['digest']['sha256']}" for subject in statement["subject"]]
    assert digests == [facts.agent.digest, facts.digest]


def test_the_members_stand_in_the_order_of_the_design() -> None:
    predicate = document()["predicate"]
    assert list(predicate) == [
        *("rules", "issuer", "facts", "summary", "profile", "question", "assessment", "validity")
    ]
    assert predicate["rules"] == RULES
    more = specimen_passport(supersedes="sha256:" + "1" * 64, context="sha256:" + "2" * 64)
    assert list(canonical.loads(more.payload)["predicate"])[-2:] == ["supersedes", "context"]


def test_it_holds_what_was_judged() -> None:
    judged = passports.specimen()
    evaluation = specimen_passport().unverified_statement().predicate.evaluation
    assert evaluation.facts == judged.facts
    assert evaluation.profile == judged.profile
    assert evaluation.question == judged.question
    assert evaluation.summary == signed_summary(judged.summary, judged.profile)
    assert evaluation.assessment == judged.assessment


def test_a_payload_reads_back_to_its_own_bytes() -> None:
    payload = specimen_passport().payload
    assert write_statement(read_statement(payload)) == payload


def test_the_same_evaluation_gives_the_same_payload() -> None:
    assert (
        specimen_passport().to_json() == specimen_passport().to_json()
    )  # Ed25519 signatures are deterministic


def test_of_many_tasks_a_thousand_are_signed_those_with_the_smallest_tags(tmp_path: Path) -> None:
    records = [bundles.run(number, task_id=f"d/{number}") for number in range(MOST_TASKS + 5)]
    manifest = bundles.MANIFEST | {"protocol": {"origin": "measured", "task_salt": "0" * 64}}
    root = bundles.write(tmp_path / "b", {"a.jsonl": bundles.lines(records)}, manifest)
    every, most = (summarise(open_bundle(root), most_tasks=most) for most in (None, MOST_TASKS))
    assert len(every.tasks.rows) == MOST_TASKS + 5
    profile = passports.specimen().profile
    assert signed_summary(every, profile) == signed_summary(most, profile)
    assert [row.tag for row in most.tasks.rows] == sorted(row.tag for row in every.tasks.rows)[:MOST_TASKS]


def test_the_triggers_of_a_new_test_name_the_thresholds_of_the_tier() -> None:
    triggers = document()["predicate"]["validity"]["retest_triggers"]
    assert [(item["event"], item.get("metric"), item.get("threshold")) for item in triggers] == [
        ("component_change", None, None),
        ("metric_beyond_threshold", "r_op", 0.6),
        ("metric_beyond_threshold", "frr", 0.7),
        ("intervention_rate_above", None, 0.05),
    ]


def test_an_unsealed_bundle_is_not_issued() -> None:
    with pytest.raises(UsageError) as caught:
        specimen_passport(with_facts(sealed=False))
    assert caught.value.code == "bundle.unsealed"


def test_a_summary_of_too_many_domains_is_not_issued(tmp_path: Path) -> None:
    """It is the issuer's evidence that is at fault, and no passport that somebody was given."""
    records = [bundles.run(number, domain=f"d{number}", task_id=f"{number}") for number in range(1_001)]
    judged = structs.replace(
        passports.specimen(), summary=bundles.summary(bundles.of(tmp_path / "b", records))
    )
    with pytest.raises(CertkitError) as caught:
        specimen_passport(judged)
    assert (type(caught.value), caught.value.code) == (InputError, "passport.too-large")
    assert caught.value.message == "the summary has 1,001 domains, and a passport holds at most 1,000"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"issuer": ""}, "usage.option"),
        ({"issuer": "x" * 513}, "usage.option"),
        ({"supersedes": "sha256:1"}, "usage.option"),
        ({"not_before": NOW.replace(tzinfo=None)}, "passport.validity"),
        ({"not_after": NOW.replace(tzinfo=None)}, "passport.validity"),
        ({"not_after": NOW - timedelta(days=1)}, "passport.validity"),
        ({"not_after": NOW + timedelta(days=367)}, "passport.validity"),
    ],
)
def test_what_cannot_be_signed_is_the_callers_mistake(wrong: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        specimen_passport(**wrong)
    assert caught.value.code == code


def test_no_run_is_later_than_the_time_of_issuing() -> None:
    early = NOW - timedelta(days=400)
    wrong: list[dict[str, Any]] = [{"not_before": early, "not_after": early}, {"now": early}]
    for times in wrong:
        with pytest.raises(InputError) as caught:
            specimen_passport(**times)
        assert caught.value.code == "passport.period-in-future"


def test_times_are_written_in_utc_and_cut_to_seconds() -> None:
    start = datetime(2026, 3, 1, 13, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=1)))
    validity = canonical.loads(
        specimen_passport(not_before=start, not_after=start + timedelta(days=1)).payload
    )
    validity = validity["predicate"]["validity"]
    assert (validity["not_before"], validity["not_after"]) == ("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z")


def test_a_signer_that_seals_another_payload_is_a_bug() -> None:
    class Other:
        key_id = canonical.digest(b"key")

        def seal(self, payload: bytes) -> dict[str, Any]:
            return envelope.seal(payload + b" ", KEY)

    with pytest.raises(AssertionError):
        specimen_passport(key=cast("Any", Other()))


def test_a_folder_is_written_and_nothing_where_a_step_fails(tmp_path: Path) -> None:
    judged, passport, out = passports.specimen(), specimen_passport(), tmp_path / "out"
    asked = passports.specimen(question=Question(required_tier=2))
    with pytest.raises(MismatchError) as caught:  # the safety case is drawn after the passport is written
        write_issued(out, answered(asked, None), passport, key=KEY, today=NOW.date(), pdf=False)
    assert caught.value.code == "report.passport-differs"
    assert list(tmp_path.iterdir()) == []
    wrote = write_issued(out, answered(judged, None), passport, key=KEY, today=NOW.date(), pdf=False)
    assert (wrote.index, wrote.pdf_missing) == (None, NOT_ASKED)
    assert sorted(path.name for path in out.iterdir()) == [
        *("assessment.json", "passport.json", "public-key.pem", "safety-case.html")
    ]
    assert (out / "passport.json").read_bytes() == passport.to_json()


def test_packaged_tables_are_listed_as_published() -> None:
    assert missing() == {}


def test_a_passport_of_a_thousand_tasks_in_five_domains_has_at_most_200_kb(tmp_path: Path) -> None:
    data = bench.passport_of_tasks(tmp_path).read_bytes()
    predicate = canonical.loads(read_passport(data).payload)["predicate"]
    assert predicate["summary"]["tasks"]["tasks"] == 1_000
    assert len(data) <= 200_000
