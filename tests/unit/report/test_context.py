"""What `certkit.report.context` takes and refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.report import context
from tests.support.schemas import context_schema

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64
WHOLE: dict[str, Any] = {
    "schema": "urn:certkit:context:v1",
    "about": {"bundles": [DIGEST], "profile": OTHER, "tier": 2},
    "owner": "owner-1",
    "people": [
        {"id": "owner-1", "name": "Olga", "relation": "same"},
        {"id": "reviewer-1", "name": "Ravi", "relation": "independent"},
        {"id": "reviewer-2", "name": "Ana", "relation": "affiliated"},
    ],
    "hazards": [{"id": "H-1", "title": "wrong dose", "mitigations": ["M-1"], "tolerable": {"at_most": 0.05}}],
    "mitigations": [{"id": "M-1", "what": "a nurse confirms", "owner": "owner-1"}],
    "assumptions": [{"id": "A-1", "owner": "owner-1"}, {"id": "A-101", "text": "one ward only"}],
    "reviewers": [
        {"person": person, "date": "2026-02-01"} for person in ("reviewer-1", "reviewer-2", "owner-1")
    ],
    "answers": [
        {
            "challenge": "runs-alike",
            "state": "answered",
            "reason": "Seen to.",
            "by": "owner-1",
            "agreed_by": "reviewer-1",
        },
        {
            "challenge": "rate-not-shown:H-1",
            "state": "accepted",
            "reason": "Seen to.",
            "by": "owner-1",
            "until": "2027-01-31",
        },
    ],
    "decision": {"outcome": "approved", "by": "owner-1", "until": None},
}


def read(document: Any) -> context.Given:
    return context.read_context(canonical.line(document), where="context.json")


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the whole context with another value at a JSON pointer."""
    document = canonical.loads(canonical.line(WHOLE))
    *way, last = path.strip("/").split("/")
    at = document
    for part in way:
        at = at[int(part) if isinstance(at, list) else part]
    at[int(last) if isinstance(at, list) else last] = value
    return document  # type: ignore[no-any-return]


def test_a_whole_context_is_read_and_its_bytes_are_kept() -> None:
    given = read(WHOLE)
    assert given.context.owner == "owner-1"
    assert canonical.loads(given.data) == WHOLE
    jsonschema.validate(WHOLE, context_schema())


def test_all_but_the_schema_may_be_null() -> None:
    blank = dict.fromkeys(context_schema()["properties"]) | {"schema": WHOLE["schema"]}
    assert read(blank).context == read({"schema": WHOLE["schema"]}).context
    jsonschema.validate(blank, context_schema())


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/unknown", 1),
        ("/owner", "nobody-1"),
        ("/people/1/id", "owner-1"),
        ("/people/1/id", "OWNER-1"),
        ("/hazards/0/mitigations/0", "M-2"),
        ("/hazards/0/tolerable/at_most", 0),
        ("/hazards/0/title", "x" * 201),
        ("/hazards/0/severity", "bad"),
        ("/mitigations/0/owner", "nobody-1"),
        ("/mitigations/0/what", "x" * 4001),
        ("/assumptions/0/text", "another text"),
        ("/assumptions/1/text", None),
        ("/assumptions/1/id", "A-8"),
        ("/reviewers/0/person", "nobody-1"),
        ("/answers/0/agreed_by", "owner-1"),
        ("/answers/0/reason", None),
        ("/answers/0/reason", " \u200b"),
        ("/mitigations/0/what", "\u200b"),
        ("/mitigations/0/what", "..."),
        ("/people/0/name", "-"),
        ("/hazards/0/tolerable/at_most", 1),
        ("/hazards/0/title", " "),
        ("/hazards/0/id", "G3"),
        ("/hazards/0/id", "g2.H-1"),
        ("/answers/1/until", None),
        ("/answers/1/by", "reviewer-1"),
        ("/answers/1/until", "2027-02-30"),
        ("/answers/1/challenge", "runs-alike"),
        ("/decision/by", "reviewer-1"),
        ("/about/tier", 0),
        ("/about/bundles/0", "sha256:1"),
        ("/about/bundles", [DIGEST] * 201),
    ],
)
def test_each_fault_is_refused_where_it_stands(pointer: str, value: Any) -> None:
    with pytest.raises(InputError) as refused:
        read(changed(pointer, value))
    assert refused.value.code == "context.invalid"
    assert f"{pointer}: " in refused.value.message


def test_every_fault_is_named_at_once() -> None:
    document = changed("/answers/1/until", None)
    document["decision"]["by"] = "reviewer-1"
    with pytest.raises(InputError, match=r"2 faults\n  /answers/1/until.*\n  /decision/by"):
        read(document)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"schema": "urn:certkit:context:v1", "owner": null, "owner": null}', "json.duplicate-key"),
        (b'{"schema": "urn:certkit:context:v1", "owner": NaN}', "json.number"),
        (b'{"schema": "urn:certkit:context:v1"', "json.syntax"),
        (b" " * (context.MAX_BYTES + 1), "context.invalid"),
        (b'{"schema": "urn:certkit:context:v2"}', "context.invalid"),
        (b"[]", "context.invalid"),
    ],
)
def test_what_is_no_context_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as refused:
        context.read_context(data, where="context.json")
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("person", "expected"),
    [("reviewer-1", True), ("reviewer-2", False), ("owner-1", False), (None, False), ("nobody-1", False)],
)
def test_a_reviewer_is_independent_and_not_the_owner(person: str | None, *, expected: bool) -> None:
    assert read(WHOLE).context.independent(person) is expected


@pytest.mark.parametrize("what", ["/reviewers/0/date", "/people/1/name"])
def test_a_reviewer_without_a_date_or_a_name_does_not_count(what: str) -> None:
    assert not read(changed(what, None)).context.independent("reviewer-1")


def test_an_independent_owner_is_no_independent_reviewer() -> None:
    assert not read(changed("/people/0/relation", "independent")).context.independent("owner-1")


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({}, ()),
        ({"bundles": (OTHER,)}, ("bundles",)),
        ({"bundles": (DIGEST, DIGEST)}, ("bundles",)),
        ({"profile": DIGEST}, ("profile",)),
        ({"tier": 3}, ("tier",)),
    ],
)
def test_what_differs_from_the_evidence_is_named(evidence: dict[str, Any], expected: tuple[str, ...]) -> None:
    at_hand: dict[str, Any] = {"bundles": (DIGEST,), "profile": OTHER, "tier": 2} | evidence
    assert read(WHOLE).context.stale(**at_hand) == expected


def test_a_context_about_nothing_is_bound_to_nothing() -> None:
    about_nothing = read({"schema": WHOLE["schema"]}).context
    assert about_nothing.stale(bundles=(DIGEST,), profile=OTHER, tier=1) == ("bundles", "profile", "tier")


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("Ada", "Ravi"), True),
        (("Leon Rey", "Noel Rey"), True),
        (("Ada", "ADA"), False),
        (("Rita Review", "Review, Rita"), True),
    ],
)
def test_one_person_under_two_ids_cannot_agree_with_themselves(
    names: tuple[str, str], *, taken: bool
) -> None:
    document = changed("/people/0/name", names[0])
    document["people"][1]["name"] = names[1]
    if taken:
        assert read(document).context.independent("reviewer-1")
    else:
        with pytest.raises(InputError, match="answer of their own"):
            read(document)


def test_evidence_of_an_answer_lies_beside_the_context_with_its_digest(tmp_path: Path) -> None:
    folder, text = tmp_path / "case", b"two raters agree"
    (folder / "more").mkdir(parents=True)
    for path in (folder / "more" / "raters.txt", tmp_path / "outside.txt"):
        path.write_bytes(text)
    digest = canonical.digest(text)

    def seen(**named: Any) -> frozenset[str]:
        document = changed("/answers/0", WHOLE["answers"][0] | {"evidence": [named]})
        return context.read_context(canonical.line(document), where="context.json", folder=folder).files

    assert seen(digest=digest, where="more/raters.txt") == {digest}
    (folder / "blank.txt").write_bytes(b" .\n")
    assert not seen(digest=canonical.digest(b" .\n"), where="blank.txt")
    assert seen(digest="sha256:" + "0" * 64, where="more/raters.txt") == set()
    for where in ("../outside.txt", str(tmp_path / "outside.txt"), "more", "absent.txt", "a\0b", "ä" * 200):
        assert seen(digest=digest, where=where) == set()
    assert seen(digest=digest) == seen(where="more/raters.txt") == set()
