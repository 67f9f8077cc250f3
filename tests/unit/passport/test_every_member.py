"""Whatever member of the signed facts or of the signed summary is not what the bundle gives is named.

The members are those of the structs and of their parts, so that one that is added later is walked too.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from math import inf, nextafter
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET, Struct, structs

from certkit.bundle.facts import Facts
from certkit.ground.errors import MismatchError, NegativeError
from certkit.passport import checks
from certkit.passport.passport import signed_summary
from certkit.passport.steps import open_signed
from certkit.summary.summary import LabelledTask, Labels, PlannedRuns, Summary
from tests.support import passports
from tests.support.whole_facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def summary() -> Summary:
    """Return a summary of which no part is absent: that of the specimen, with labels, a salt and a plan."""
    own = passports.specimen().summary
    return structs.replace(
        own,
        tasks=structs.replace(own.tasks, salt="0" * 16),
        plan=PlannedRuns(planned=9, present=8, outside=1, differ=2),
        labels=Labels(
            state="labelled",
            referenced=3,
            counts=(1, 1, 0, 0),
            tasks=(
                LabelledTask(task=0, domain="d", series={"c_nom": (2, 1)}, labels={"normal": (1, 1, 0, 0)}),
            ),
        ),
    )


def set_to(part: Any, name: str, value: Any) -> Any:
    """Return a part with another member, whatever its other members have to say to that."""
    result = copy(part)
    structs.force_setattr(result, name, value)
    return result


def variants(part: Struct, path: str) -> Iterator[tuple[str, Any]]:
    """Yield parts that differ from one in a single member, each with the path of it."""
    numbered = part.__struct_config__.array_like
    for place, field in enumerate(structs.fields(part)):
        at = f"{path}[{place}]" if numbered else f"{path}.{field.encode_name}"
        for where, other in others(getattr(part, field.name), at):
            yield where, set_to(part, field.name, other)


def others(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """Yield other values of a member: one for itself, or one for each of its own members."""
    if isinstance(value, Struct):
        yield from variants(value, at)
    elif isinstance(value, dict):
        key, first = next(iter(value.items()), ("", None))
        yield at, {**value, "another": first}
        for where, other in others(first, f"{at}.{key}") if key else ():
            yield where, {**value, key: other}
    elif isinstance(value, tuple):
        yield at, (*value, *value[:1]) if value else (1,)
        for where, other in others(value[0], f"{at}[0]") if value else ():
            yield where, (other, *value[1:])
    elif isinstance(value, bool):
        yield at, not value
    elif isinstance(value, int):
        yield at, value + 1
    elif isinstance(value, float):
        yield at, nextafter(value, inf)
    else:
        assert value is None or isinstance(value, str)
        yield at, "another" if value != "another" else ""


def left_out(value: Any, at: str = "it") -> Iterator[str]:
    """Yield the members of a part that hold nothing."""
    if isinstance(value, Struct):
        for field in structs.fields(value):
            yield from left_out(getattr(value, field.name), f"{at}.{field.name}")
    elif isinstance(value, tuple | dict):
        for item in [*(value.values() if isinstance(value, dict) else value)][:1]:
            yield from left_out(item, f"{at}[0]")
    if value is None or value is UNSET or value in ((), {}):
        yield at


class Records:
    """Evidence that is the same whatever it is asked for."""

    def facts(self, core_conditions: tuple[str, ...]) -> Facts:
        del core_conditions
        return FACTS

    def summary(self, core_conditions: tuple[str, ...]) -> Summary:
        del core_conditions
        return summary()


@cache
def case() -> checks.Case:
    """Return the passport of the specimen beside the evidence that leaves out nothing."""
    signed = open_signed(passports.specimen_passport().to_json(), passports.lenient())
    return checks.Case(
        passport=signed,
        signing=checks.Signing(),
        trust=passports.lenient(),
        at=passports.LATER,
        facts=FACTS,
        evidence=Records(),
        replay=True,
    )


def stating(**parts: Any) -> checks.Case:
    """Return the case whose passport states other parts."""
    whole = case()
    statement = whole.passport.statement
    statement = structs.replace(statement, predicate=structs.replace(statement.predicate, **parts))
    return structs.replace(whole, passport=structs.replace(whole.passport, statement=statement))


def given() -> Summary:
    """Return the summary as a passport holds it."""
    return signed_summary(summary(), case().predicate.profile)


def test_the_evidence_leaves_out_no_part() -> None:
    assert list(left_out(FACTS)) == []
    without_parts = {"it.core_conditions", "it.order.reason", "it.order.counts", "it.order.latest[0].irs"}
    assert set(left_out(summary())) == without_parts


def test_the_facts_and_the_summary_of_the_bundle_are_accepted() -> None:
    assert "the passport repeats what the manifest states" in checks.evidence(stating(facts=FACTS))
    told = checks.replay(stating(summary=given()))
    assert told == "the signed summary is what the records give"


@pytest.mark.parametrize("member", [field.encode_name for field in structs.fields(Facts)])
def test_a_fact_that_the_bundle_does_not_give_is_named(member: str) -> None:
    walked = [(at, other) for at, other in variants(FACTS, "facts") if of(at) == member]
    assert walked
    for at, other in walked:
        with pytest.raises((MismatchError, NegativeError)) as caught:
            checks.evidence(stating(facts=other))
        if at == "facts.digest":
            assert caught.value.code == "passport.other-evidence"
        else:
            assert (caught.value.code, names(caught.value.message, at)) == ("passport.manifest-differs", True)


@pytest.mark.parametrize("member", [field.encode_name for field in structs.fields(Summary)])
def test_a_figure_that_the_records_do_not_give_is_named(member: str) -> None:
    walked = [(at, other) for at, other in variants(given(), "summary") if of(at) == member]
    assert walked
    for at, other in walked:
        with pytest.raises(MismatchError) as caught:
            checks.replay(stating(summary=other))
        assert (caught.value.code, names(caught.value.message, at)) == ("passport.replay-differs", True)


def of(at: str) -> str:
    """Return the first member on a path."""
    return at.split(".", maxsplit=2)[1].partition("[")[0]


def names(message: str, at: str) -> bool:
    """Tell whether a message begins with a path, or with an item of what lies there."""
    return message.startswith((f"{at}:", f"{at}.another:", f"{at}["))
