"""Sources that mean harm: bombs, endless rows, damage, devices, names; and what an import leaves behind."""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError
from certkit.ground.progress import SILENT
from certkit.imports import FORMATS, ImportFaultsError, ImportOptions, run, source
from certkit.imports.archive import Archive
from certkit.imports.splitter import split
from tests.support.importing import DATA, imported

if TYPE_CHECKING:
    from pathlib import Path

JSONL = DATA / "records" / "runs.jsonl"


def refused(path: Path, out: Path, format_: str = "records") -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        run(path, out, ImportOptions(format=format_, agent="mine"), SILENT)
    assert not out.exists()
    assert not list(out.parent.glob(f".{out.name}*"))
    return caught.value


@pytest.mark.parametrize("format_", list(FORMATS))
def test_a_gzip_bomb_costs_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    monkeypatch.setattr(source, "FREE", 1 << 20)
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress((b'{"metadata": {"model": "m"}}' + b" " * 1000 + b"\n") * 20_000))
    error = refused(bomb, tmp_path / "out", format_)
    # An object after the first one ends the reading of formats that hold a single document.
    assert error.code in {"import.unpacks", "json.syntax"}


def of_ratio(root: Path, ratio: float, packing: str) -> Path:
    """Write a file that unpacks to `ratio` times its size: a hash's bytes stored, and zeros packed."""
    noise, path, zeros = hashlib.shake_256().digest(40_000), root / packing, 1 << 20
    for _ in range(6):  # zeros cost some bytes too, so that their number is found by steps
        if packing == "gzip":
            path.write_bytes(gzip.compress(noise, 0) + gzip.compress(bytes(zeros), 9))
        else:
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("noise", noise, zipfile.ZIP_STORED)
                file.writestr("zeros", bytes(zeros), zipfile.ZIP_DEFLATED, 9)
        zeros = int(ratio * path.stat().st_size) - len(noise)
    return path


def unpacked(path: Path, packing: str) -> int:
    """Return how many bytes are read of a file."""
    if packing == "gzip":
        with source.opening(path, path.name, SILENT) as opened:
            return len(opened.read(1 << 26))
    archive = Archive(path, path.name, 1 << 26)
    try:
        return sum(len(archive.read(name)) for name in archive.names)
    finally:
        archive.close()


@pytest.mark.parametrize("packing", ["gzip", "zip"])
def test_what_unpacks_to_more_than_250_times_its_size_is_refused(tmp_path: Path, packing: str) -> None:
    below = of_ratio(tmp_path, 245, packing)
    assert unpacked(below, packing) > 244 * below.stat().st_size
    above = of_ratio(tmp_path, 255, packing)
    with pytest.raises(InputError) as caught:
        unpacked(above, packing)
    assert (caught.value.code, caught.value.message) == (
        "import.unpacks",
        "unpacks to more than 250 times its size",
    )


def test_eight_mebibytes_are_unpacked_whatever_the_ratio(tmp_path: Path) -> None:
    path = tmp_path / "gzip"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    assert unpacked(path, "gzip") == 8 << 20
    path.write_bytes(gzip.compress(bytes((8 << 20) + 1)))
    with pytest.raises(InputError, match="unpacks to more than 250 times its size"):
        unpacked(path, "gzip")


def test_an_endless_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_ROW", 1000)
    for name, text in (
        ("line", b'{"x_a": "' + b"a" * 2000),
        ("array", b"[" + b'{"x_a": "' + b"a" * 600_000),
    ):
        (tmp_path / name).write_bytes(text)
        assert refused(tmp_path / name, tmp_path / "out").code == "json.too-large"


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(JSONL.read_bytes() * 50)
    for name, data in (("short", whole[:-12]), ("flipped", whole[:-30] + b"\0" * 22 + whole[-8:])):
        (tmp_path / name).write_bytes(data)
        assert refused(tmp_path / name, tmp_path / "out").code == "import.source"


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe", tmp_path / "out").code == "import.source"
    assert refused(tmp_path / "absent", tmp_path / "out").code == "file.missing"
    assert refused(tmp_path, tmp_path.parent / "out").code == "import.source"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rows.bin", "save it as CSV; if it is text, give --encoding, for instance utf-16"),
        ("sheet.xls", "save the sheet as CSV, and import that"),
        ("sheet.xlsx", "save the sheet as CSV, and import that"),
        ("sheet.ods", "save the sheet as CSV, and import that"),
        ("short.gz", "copy or download the file again"),
        ("exports", "give one of its files itself"),
        ("empty", "choose the folder or file that holds the log"),
        ("rows.csv", "rows.csv"),
    ],
)
def test_what_is_no_log_gets_a_hint_that_fits(tmp_path: Path, name: str, hint: str) -> None:
    path = tmp_path / name
    format_ = "inspect" if name == "rows.csv" else None
    if name == "empty":
        path.mkdir()
    elif name == "rows.csv":
        path.write_text("task;domain\n")
    elif name == "exports":
        path.mkdir()
        (path / "a.jsonl").write_bytes((DATA / "agentdojo" / "export.jsonl").read_bytes())
    elif name in {"rows.bin", "sheet.xls"}:
        path.write_bytes((b"rows" if name == "rows.bin" else b"\xd0\xcf\x11\xe0") + b"\0" * 100)
    elif name == "short.gz":
        path.write_bytes(gzip.compress(JSONL.read_bytes() * 50)[:-12])
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("META-INF/manifest.xml" if name == "sheet.ods" else "[Content_Types].xml", "<x/>")
    with pytest.raises(CertkitError) as caught:
        run(path, tmp_path / "out", ImportOptions(format=format_, agent="mine"), SILENT)
    assert (caught.value.code, hint in str(caught.value.hint)) == ("import.source", True)
    assert "certkit import inspect" not in str(caught.value.hint)


def test_the_account_names_the_source_by_its_bytes(tmp_path: Path) -> None:
    import hashlib  # noqa: PLC0415 - the oracle of this one test

    packed = tmp_path / "rows.gz"
    packed.write_bytes(gzip.compress(JSONL.read_bytes()))
    account, _ = imported("records", packed, tmp_path / "out", agent="mine")
    (named,) = account.imported.sources
    assert named.name == "rows.gz"
    assert named.size == packed.stat().st_size
    assert named.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_a_hostile_file_name_is_shown_harmlessly(tmp_path: Path) -> None:
    path = tmp_path / "rows\x1b[2J.jsonl"
    path.write_bytes(JSONL.read_bytes())
    account, _ = imported("records", path, tmp_path / "out", agent="mine")
    assert account.imported.sources[0].name == "rows\\u001b[2J.jsonl"


def test_an_empty_folder_may_be_the_output(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    imported("records", JSONL, tmp_path / "out", agent="mine")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bundle.json", "records"]


def test_unsealed_on_request_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    loose, _ = imported("records", JSONL, tmp_path / "loose", agent="mine", seal=False)
    assert loose.digest is None
    one, _ = imported("records", JSONL, tmp_path / "one", agent="mine")
    two, _ = imported("records", JSONL, tmp_path / "two", agent="mine")
    assert one.digest == two.digest is not None


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("nothing", {}),
        ("records", {"success": "utility"}),
        ("records", {"timezone": "Berlin"}),
        ("records", {"split_by": "nowhere"}),
        ("records", {"encoding": "foo"}),
        ("records", {"agent": "NAME"}),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, format_: str, options: dict[str, object]
) -> None:
    with pytest.raises(CertkitError) as caught:
        imported(format_, JSONL, tmp_path / "out", **options)
    assert caught.value.code == "usage.option"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},\n \u00e9', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('b"\\]}', max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(items=st.lists(JSON, max_size=6), pieces=st.integers(1, 9), indent=st.booleans())
def test_an_array_is_cut_at_its_items_however_it_arrives(
    items: list[object], pieces: int, *, indent: bool
) -> None:
    text = canonical.pretty(items).encode() if indent else canonical.line(items)
    chunks = [text[start : start + pieces] for start in range(0, len(text), pieces)]
    assert [canonical.loads(piece.data) for piece in split(chunks, "rows", 1000)] == items


@given(value=st.dictionaries(st.text('b"\\]}:', max_size=4), JSON, max_size=4), pieces=st.integers(1, 9))
def test_an_object_is_cut_at_its_members_and_their_items(value: dict[str, object], pieces: int) -> None:
    text = canonical.line(value)
    chunks = [text[start : start + pieces] for start in range(0, len(text), pieces)]
    expected = [
        (key, item)
        for key, inner in value.items()
        for item in (inner if isinstance(inner, list) else [inner])
    ]
    found = [(piece.key, canonical.loads(piece.data)) for piece in split(chunks, "rows", 1000)]
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"[1", b"[1}", b"[1] [2]", b"[1] 2", b'["a]', b"[1]]", b"x[1]", b"3"),
        b'{"a": 1',
        b'{"a": 1]',
        b'{"a": [1}',
        b'{"a": [1] 2}',
        b'{"a": [1] [2]}',
        b"{1}",
        b'{"a": [1] "b": 2}',
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_what_is_not_one_array_or_object_is_refused(text: bytes, size: int) -> None:
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    with pytest.raises(CertkitError) as caught:
        list(split(chunks, "rows", 1000))
    assert caught.value.code == "json.syntax"


SAMPLE = b'{"eval": {"task": "shop", "model": "m"}, "samples": [{"id": 1, "epoch": 1, %s}]}'
TAU = (
    b'{"info": {"agent_info": {"llm": "m"}, "environment_info": {}}, "simulations": ['
    b'{"id": "s", "task_id": "1", %s}]}'
)
SPAN = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", %s}]}]}]}'


@pytest.mark.parametrize(
    ("format_", "document", "members"),
    [
        ("inspect", SAMPLE, b'"score": {"value": "I"}, "sc\\u006fre": {"value": "C"}'),
        ("tau", TAU, b'"reward_info": {"reward": 0.0, "reward": 1.0}'),
    ],
)
def test_of_a_key_that_a_log_writes_twice_the_last_value_counts(
    tmp_path: Path, format_: str, document: bytes, members: bytes
) -> None:
    (tmp_path / "log.json").write_bytes(document % members)
    _, records = imported(
        format_, tmp_path / "log.json", tmp_path / "out", domain="shop", condition="nominal"
    )
    assert [record["outcome"] for record in records] == ["success"]


@pytest.mark.parametrize(
    ("format_", "document"),
    [
        ("otel", SPAN % b'"name": "a", "name": "b"'),
        ("records", b'{"task_id": "t", "outcome": "failure", "outcome": "success"}\n'),
    ],
)
def test_a_key_that_is_written_twice_is_refused(tmp_path: Path, format_: str, document: bytes) -> None:
    (tmp_path / "log.json").write_bytes(document)
    error = refused(tmp_path / "log.json", tmp_path / "out", format_)
    assert isinstance(error, ImportFaultsError)
    assert [fault.code for fault in error.faults] == ["json.duplicate-key"]


@pytest.mark.parametrize(
    "members",
    [
        b'"startTimeUnixNano": "soon"',
        b'"startTimeUnixNano": "-99999999999999999999"',
        b'"startTimeUnixNano": -1',
        b'"attributes": [{"key": "a", "value": {"intValue": "x"}}]',
    ],
)
def test_a_number_of_a_span_that_is_none_is_refused(tmp_path: Path, members: bytes) -> None:
    (tmp_path / "log.json").write_bytes(SPAN % members)
    assert refused(tmp_path / "log.json", tmp_path / "out", "otel").code == "import.row"


@pytest.mark.parametrize("started", [b"1e20", b"1e300", b"-1e13"])
def test_a_session_begins_at_a_time_that_a_calendar_has(tmp_path: Path, started: bytes) -> None:
    session = (
        b'{"session_id": "s", "agent_id": "a", "live_metrics": {}, "step_count": 3, "status": "completed"'
    )
    (tmp_path / "log.json").write_bytes(session + b', "started_at": ' + started + b"}")
    assert refused(tmp_path / "log.json", tmp_path / "out", "hb-eval").code == "import.row"


def test_a_long_text_of_digits_is_read_once(tmp_path: Path) -> None:
    """As no name of a total: looking for its end at every digit would take minutes, and end this test."""
    digits = "1" * 100_000
    (tmp_path / "runs.csv").write_text(f"task_id,domain,condition,outcome\n{digits}a,d,nominal,success\n")
    assert refused(tmp_path / "runs.csv", tmp_path / "out").code == "import.row"


def test_few_bytes_that_become_many_records_are_refused(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    table = pa.table(
        {name: [name] * 200 for name in ("task_id", "domain")}
        | {"agent": [f"a{at % 24}" for at in range(200)]}
        | {"condition": ["nominal"] * 200, "outcome": ["success"] * 200}
        | {"x_note": pa.array([text] * 200).dictionary_encode()}
    )
    parquet.write_table(table, tmp_path / "bomb.parquet", dictionary_pagesize_limit=1 << 22)
    error = refused(tmp_path / "bomb.parquet", tmp_path / "out")
    assert (error.code, "times its size" in str(error)) == ("import.unpacks", True)


def test_texts_without_their_type_are_texts(tmp_path: Path) -> None:
    """As older writers of Parquet leave them: bytes are compared as texts, or are none."""
    values = {
        "task_id": [b"t", b"u"],
        "domain": [b"d"] * 2,
        "outcome": [b"success"] * 2,
        "attack": [b"none", b"x y"],
    }
    parquet.write_table(pa.table(values), tmp_path / "runs.parquet")
    (tmp_path / "map.toml").write_text(
        "[when.condition]\nadversarial = \"attack == 'x y'\"\nnominal = 'otherwise'\n"
    )
    options = {"agent": "mine", "mapping": tmp_path / "map.toml"}
    _, records = imported("records", tmp_path / "runs.parquet", tmp_path / "out", **options)
    assert [record["condition"] for record in records] == ["nominal", "adversarial"]


def test_more_lines_than_can_be_told_apart_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_LINES", 100)
    (tmp_path / "runs.csv").write_text("task_id\n" + "\n" * 200)
    assert "more than 100 lines" in str(refused(tmp_path / "runs.csv", tmp_path / "out"))


@pytest.mark.parametrize("second", ["Outcome", "outcome"])
def test_columns_whose_names_are_equal_but_for_case_are_refused(tmp_path: Path, second: str) -> None:
    table = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["outcome", second])
    parquet.write_table(table, tmp_path / "runs.parquet")
    assert "equal but for case" in str(refused(tmp_path / "runs.parquet", tmp_path / "out"))


def test_a_byte_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(b"task_id\nt\nB\xfcro\n")
    error = refused(tmp_path / "runs.csv", tmp_path / "out")
    assert (error.code, error.where) == ("json.encoding", "runs.csv:3")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            b'{"a":1,"in":{"v":3,"rows":[{"x":[1,{"y":2}]},\n{}],"o":{"q":[1,2]}},"c":{"rows":[1]},"e":[3]}',
            [
                ("a", 1, 1, False, False),
                ("v", 1, 3, True, False),
                ("rows", 1, {"x": [1, {"y": 2}]}, True, True),
                ("rows", 2, {}, True, True),
                ("o", 2, {"q": [1, 2]}, True, False),
                ("c", 2, {"rows": [1]}, False, False),
                ("e", 2, 3, False, True),
            ],
        ),
        (b'{"in":{}}', []),
        (b'{"in":{"rows":[]},"in":[1]}', [("in", 1, 1, False, True)]),
        (b'{"b":{"in":{"c":1}}}', [("b", 1, {"in": {"c": 1}}, False, False)]),
        (b'{"in":{"in":{"c":1}}}', [("in", 1, {"c": 1}, True, False)]),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_one_named_object_is_cut_at_its_members_too(
    text: bytes, pieces: list[tuple[object, ...]], size: int
) -> None:
    chunks = (text[at : at + size] for at in range(0, len(text), size))
    found = [
        (piece.key, piece.line, canonical.loads(piece.data), piece.inside, piece.item)
        for piece in split(chunks, "log", 1000, "in")
    ]
    assert found == pieces


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    "text",
    [
        b'{"in":{"rows":[1]},}',
        b'{"in":{"a":1,}}',
        b'{"in":{"a":1]}',
        b'{"in":{"rows":[1} "q":1}',
        b'{"in":{"rows":[1]} "q":1}',
        b'{"in" {"a":1}}',
        b'{"in":{"rows":[1]',
        b'{"in":{"a":1}',
    ],
)
def test_one_named_object_that_is_not_well_formed_is_refused(text: bytes, size: int) -> None:
    chunks = (text[at : at + size] for at in range(0, len(text), size))
    with pytest.raises(InputError) as caught:
        list(split(chunks, "log", 1000, "in"))
    assert caught.value.code == "json.syntax"
