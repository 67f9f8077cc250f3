"""A passport of which any figure is edited and signed again by its own trusted issuer is refused.

Any leaf of the assessment without the bundle; any leaf of summary and facts with the bundle and a replay; any
unknown member of any object. Of the summary the suite walks every n-th leaf:

    CERTKIT_SLOW=1 python -m pytest tests/unit/passport/test_every_leaf.py     # every leaf, minutes
"""

from __future__ import annotations

import os
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect, structs

from certkit.assessment.assessment import Assessment
from certkit.assessment.evaluation import evaluate
from certkit.passport.differences import form_difference, judgement_difference
from certkit.passport.passport import Predicate
from tests.support import passports
from tests.support.leaves import at, changed, edits, inner, objects
from tests.support.whole_facts import FACTS

if TYPE_CHECKING:
    from certkit.assessment.evaluation import Evaluation
    from certkit.passport.verify import Verification


PREDICATE = inspect.type_info(Predicate)
MOST = 10_000
"""Edits of one part; of more every n-th is made."""
OF_SUMMARY = 1_000_000 if os.environ.get("CERTKIT_SLOW") else 400


@cache
def evaluation() -> Evaluation:
    """Return that of the specimen, with a value that is attested and with counts of commitment integrity."""
    judged = passports.specimen()
    facts = structs.replace(judged.facts, attested=FACTS.attested, integrity=FACTS.integrity)
    return evaluate(judged.summary, facts, judged.profile)


@cache
def statement_of() -> Any:
    return passports.document(evaluation())


def thinned(found: list[Any], most: int) -> list[Any]:
    return found[:: -(-len(found) // most)]


def refused(statement: Any, **more: Any) -> Verification:
    result = passports.verified(passports.signed(statement), **more)
    assert result.verdict == "rejected", result
    return result


def every_edit(part: str) -> list[Any]:
    return list(edits(statement_of()["predicate"][part], (part,), inner(PREDICATE, part)))


def refuse_every_edit(part: str, most: int, exit_codes: set[int], **more: Any) -> None:
    original = statement_of()
    assert passports.verified(passports.signed(original), **more).verdict == "verified"
    for path, change in thinned(every_edit(part), most):
        result = refused(changed(original, ("predicate", *path), change), **more)
        assert result.exit_code in exit_codes, (path, result.deciding)


def differs(value: Any, judged: Assessment) -> bool:
    """Tell whether steps 4 and 5 refuse an assessment in JSON values, without the passport around it."""
    try:
        signed = msgspec.convert(value, Assessment)
    except msgspec.ValidationError:
        return True
    return bool(form_difference(value, signed) or judgement_difference(signed, judged))


def test_every_edited_leaf_of_the_assessment_is_refused_without_the_bundle() -> None:
    judged = evaluation().assessment
    original = statement_of()["predicate"]["assessment"]
    assert not differs(original, judged)
    for path, change in thinned(every_edit("assessment"), MOST):
        assert differs(changed(original, path[1:], change), judged), path
    refuse_every_edit("assessment", 200, {1})


def test_every_edited_leaf_of_the_facts_is_refused_with_the_bundle() -> None:
    refuse_every_edit("facts", MOST, {1, 7}, evidence=passports.held(evaluation()), replay=True)


def test_edited_leaves_of_the_summary_are_refused_with_the_bundle() -> None:
    refuse_every_edit("summary", OF_SUMMARY, {1, 7}, evidence=passports.held(evaluation()), replay=True)


def test_every_unknown_member_is_refused() -> None:
    original = statement_of()
    found = list(objects(original, ()))
    for path in thinned(found, 150):
        statement = deepcopy(original)
        at(statement, path)["unknown"] = 1
        result = refused(statement)
        assert result.deciding is not None
        assert result.deciding.id in {"types", "judgement"}, (path, result.deciding)


def test_only_the_version_of_the_program_is_not_compared() -> None:
    original = passports.document()
    original["predicate"]["assessment"]["tool"]["version"] = "0"
    assert passports.verified(passports.signed(original)).verdict == "verified"
