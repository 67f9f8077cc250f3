"""Language-neutral cases of record files: ``record/*.json``, each ``{"format": "record", "cases": […]}``.

A case has a `name`, the bytes of a record file, and `expected`: null where it is accepted, else the list
of faults in order of line and pointer, each with `code`, `pointer` and `line` (1 where left out). The
bytes are given as one of

- `line`: one line, to which a newline is added;
- `lines`: several lines, each followed by a newline;
- `line_parts`: one line as a list of [text, times], for what is too long to write out;
- `file_base64`: the whole file.

Every case goes through the line reader and the summary of a bundle; the first of each answer, which is a
list of codes or none, goes through the command line too, which adds nothing to what the summary finds.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import CODES
from certkit.record.faults import RecordFaultsError
from certkit.summary.summarise import summarise
from tests.support.documents import certkit
from tests.support.line_by_line import check_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.record.faults import Fault

FOLDER = Path(__file__).parent / "record"
MANIFEST = {
    "schema": "urn:certkit:bundle:v1",
    "agent": {"name": "a", "version": "1"},
    "protocol": {"origin": "measured"},
}
Place = tuple[int, str, str]


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.json")):
        document = canonical.loads(path.read_bytes())
        assert document["format"] == "record"
        yield from ((path.stem, case) for case in document["cases"])


THEMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def of(theme: str) -> list[dict[str, Any]]:
    return [case for name, case in cases() if name == theme]


def answers() -> list[Any]:
    """The first case of each answer."""
    firsts: dict[tuple[str, ...], Any] = {}
    for theme, case in cases():
        named = pytest.param(case, id=f"{theme}: {case['name']}")
        firsts.setdefault(tuple(code for *_, code in expected(case)), named)
    return list(firsts.values())


def content(case: dict[str, Any]) -> bytes:
    if "file_base64" in case:
        return base64.b64decode(case["file_base64"], validate=True)
    if "line_parts" in case:
        return "".join(text * times for text, times in case["line_parts"]).encode() + b"\n"
    lines = case["lines"] if "lines" in case else [case["line"]]
    return "".join(f"{line}\n" for line in lines).encode()


def expected(case: dict[str, Any]) -> list[Place]:
    return [(fault.get("line", 1), fault["pointer"], fault["code"]) for fault in case["expected"] or ()]


def places(faults: Sequence[Fault]) -> list[Place]:
    return [(fault.line, fault.pointer, fault.code) for fault in faults]


def bundle_of(data: bytes, root: Path) -> Path:
    (root / "records").mkdir(parents=True)
    (root / "bundle.json").write_bytes(canonical.line(MANIFEST))
    (root / "records" / "a.jsonl").write_bytes(data)
    return root


@pytest.mark.parametrize("theme", THEMES)
def test_the_line_reader_finds_exactly_the_expected_faults(theme: str) -> None:
    for case in of(theme):
        found = check_lines(content(case))
        assert places(found) == expected(case), case["name"]
        assert all(fault.expected and fault.found for fault in found), case["name"]


@pytest.mark.parametrize("theme", THEMES)
def test_the_summary_of_a_bundle_finds_exactly_the_expected_faults(theme: str, tmp_path: Path) -> None:
    for number, case in enumerate(of(theme)):
        data = content(case)
        bundle = open_bundle(bundle_of(data, tmp_path / str(number)))
        if case["expected"] is None:
            records = data.rstrip(b"\r\n").count(b"\n") + bool(data)
            assert summarise(bundle).records == records, case["name"]
            continue
        with pytest.raises(RecordFaultsError) as caught:
            summarise(bundle)
        assert places(caught.value.faults) == expected(case), case["name"]
        assert caught.value.total == len(caught.value.faults), case["name"]
        assert {fault.file for fault in caught.value.faults} == {"records/a.jsonl"}, case["name"]


@pytest.mark.parametrize("case", answers())
def test_the_command_line_reports_exactly_the_expected_faults(case: dict[str, Any], tmp_path: Path) -> None:
    code, document = certkit("bundle", "check", str(bundle_of(content(case), tmp_path)), "--json")
    if case["expected"] is None:
        assert code == 0, document
        return
    assert code == 3
    assert document["schema"] == "urn:certkit:error:v1"
    assert document["error"]["code"] == "bundle.records-invalid"
    faults = document["error"]["faults"]
    assert [(fault["line"], fault["pointer"], fault["code"]) for fault in faults] == expected(case)


def test_every_record_code_has_a_case() -> None:
    covered = {place[2] for _, case in cases() for place in expected(case)}
    assert covered == {code for code in CODES if code.startswith("record.")}


def test_names_are_unique_within_a_theme() -> None:
    names = [(theme, case["name"]) for theme, case in cases()]
    assert len(set(names)) == len(names)
