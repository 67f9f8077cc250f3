"""in-toto-attestation, in-toto's own reading of statements: it validates ours, and refuses what we refuse."""

from __future__ import annotations

import base64
import json  # noqa: TID251 - the reader's own
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit.ground import canonical
from certkit.passport import exports, sealed
from certkit.passport.verification import verify
from tests.support.making import KEY, NOW, issued, trust
from tests.support.sources import source

pytest.importorskip("in_toto_attestation", reason="in-toto-attestation is not installed")

from google.protobuf import json_format  # type: ignore[import-untyped,unused-ignore]
from in_toto_attestation.v1.resource_descriptor import (  # type: ignore[import-untyped,unused-ignore]
    ResourceDescriptor,
)
from in_toto_attestation.v1.statement import Statement  # type: ignore[import-untyped,unused-ignore]
from in_toto_attestation.v1.statement_pb2 import (  # type: ignore[import-untyped,unused-ignore]
    Statement as Message,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PAYLOAD: Final = issued().payload
ENVELOPE: Final = json.loads(exports.export("in-toto-svr", source(), key=KEY).content)
RESULT: Final = base64.b64decode(ENVELOPE["payload"])


def read(payload: bytes) -> Any:
    """Return the statement as the library has it; raise what it raises where it is none."""
    statement = Statement.copy_from_pb(json_format.Parse(payload, Message()))
    statement.validate()
    for subject in statement.pb.subject:
        ResourceDescriptor.copy_from_pb(subject).validate()
    return statement


@pytest.mark.parametrize(
    ("payload", "kind"),
    [(PAYLOAD, "urn:certkit:agent-passport:v1"), (RESULT, "https://in-toto.io/attestation/svr/v0.2")],
    ids=["passport", "verification result"],
)
def test_a_statement_is_valid_and_nothing_of_it_is_lost(payload: bytes, kind: str) -> None:
    statement, ours = read(payload), json.loads(payload)
    assert statement.pb.predicate_type == kind
    assert [(one.name, dict(one.digest)) for one in statement.pb.subject] == [
        (one["name"], one["digest"]) for one in ours["subject"]
    ]
    # Its numbers are doubles: every one of ours is the same number there.
    assert json.loads(json_format.MessageToJson(statement.pb)) == ours


def test_a_statement_that_the_library_makes_is_the_passports() -> None:
    ours = json.loads(PAYLOAD)
    subjects = [ResourceDescriptor(one["name"], digest=one["digest"]).pb for one in ours["subject"]]
    theirs = Statement(subjects, ours["predicateType"], ours["predicate"])
    theirs.validate()
    assert theirs.pb == read(PAYLOAD).pb


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "another type": lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
    "no type": lambda s: s.pop("_type"),
    "no subject": lambda s: s.update(subject=[]),
    "a subject without a digest": lambda s: s["subject"][1].pop("digest"),
    "a subject whose digest is empty": lambda s: s["subject"][0].update(digest={}),
    "a digest that is a number": lambda s: s["subject"][0]["digest"].update(sha256=7),
    "a digest that is a text": lambda s: s["subject"][0].update(digest=s["subject"][0]["digest"]["sha256"]),
    "a subject that is a text": lambda s: s["subject"].append("evidence bundle"),
    "no predicate type": lambda s: s.pop("predicateType"),
    "no predicate": lambda s: s.pop("predicate"),
    "an empty predicate": lambda s: s.update(predicate={}),
    "a predicate that is a list": lambda s: s.update(predicate=[]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_statement_is_refused_by_the_library_and_by_us(name: str) -> None:
    statement = json.loads(PAYLOAD)
    assert verdict(canonical.line(statement)) == "verified"
    WRONG[name](statement)
    payload = canonical.line(statement)
    with pytest.raises((ValueError, json_format.ParseError)):
        read(payload)
    assert verdict(payload) == "rejected"


def verdict(payload: bytes) -> str:
    """Return what we say of a statement that a trusted key signed."""
    data = canonical.line(sealed.seal(payload, KEY))
    return verify(data, trust=trust(), at=NOW + timedelta(days=1)).verdict
