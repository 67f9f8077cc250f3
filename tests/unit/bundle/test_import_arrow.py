"""Arrow files and streams say what the same table says as Parquet; hostile ones are refused."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from certkit.ground.errors import CertkitError, InputError
from certkit.imports import ImportFaultsError, ImportOptions, preview, suggest
from certkit.imports.source import MAX_ROW
from certkit.record import arrow
from certkit.record import parquet as columns
from tests.support.importing import imported
from tests.support.running import program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


def table(rows: int = 5) -> Any:
    """Return records with columns of many types, none of which fills a field wrongly."""
    instants = pa.array([1_767_225_600_123_456_789] * rows, pa.timestamp("ns", "Europe/Berlin"))
    names = [f"r{at}" for at in range(rows)]
    return pa.table(
        {
            "run_id": pa.array(names, pa.string_view()),
            "domain": pa.array(["rail"] * rows, pa.large_string()),
            "task_id": names,
            "condition": pa.array(["nominal"] * rows).dictionary_encode(),
            "outcome": ["success"] * rows,
            "started_at": [NOON] * rows,
            "exact": instants,
            "local": instants.cast(pa.timestamp("us"), safe=False),
            "price": [Decimal("1.25")] * rows,
            "score": [0.5, float("nan"), None, *[1.0] * (rows - 3)],
            "nothing": pa.nulls(rows),
            "meta": [{"at": [NOON], "tags": ["a", None]}] * rows,
            "pairs": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
            'the "rest"': [b"\xff"] * rows,
        }
    )


def write(path: Path, content: Any, packing: str | None = None, *, rows: int | None = 2) -> Path:
    """Write a table as its file's name says, `rows` in a batch."""
    if path.suffix == ".parquet":
        parquet.write_table(content, path)
        return path
    make = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
    with make(path, content.schema, options=ipc.IpcWriteOptions(compression=packing)) as writer:
        writer.write_table(content, max_chunksize=rows)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    reader = columns if path.suffix == ".parquet" else arrow
    return list(reader.rows(path, shown="runs", limit=MAX_ROW))


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read(path)
    assert (caught.value.code, caught.value.where) == ("import.source", "runs")
    return caught.value


def test_each_batch_of_a_stream_may_have_a_dictionary_of_its_own(tmp_path: Path) -> None:
    parts = [pa.table({"text": pa.array(texts).dictionary_encode()}) for texts in (["a", "b"], ["c", "a"])]
    with ipc.new_stream(tmp_path / "a.arrows", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    assert [row["text"] for row in read(tmp_path / "a.arrows")] == ["a", "b", "c", "a"]


@pytest.mark.parametrize("packing", [None, "lz4", "zstd"])
@pytest.mark.parametrize("suffix", [".arrow", ".arrows"])
def test_arrow_gives_the_rows_of_the_same_parquet(tmp_path: Path, suffix: str, packing: str | None) -> None:
    path, same = write(tmp_path / f"a{suffix}", table(), packing), write(tmp_path / "a.parquet", table())
    assert read(path) == read(same)
    _, records = imported(None, path, tmp_path / "out", agent="a")
    assert records == imported(None, same, tmp_path / "same", agent="a")[1]
    assert [record["run_id"] for record in records] == [f"r{at}" for at in range(5)]
    assert suggest(path, ImportOptions()) == suggest(same, ImportOptions()).replace(same.name, path.name)
    assert preview(path, ImportOptions(agent="a"))[:2] == preview(same, ImportOptions(agent="a"))[:2]


def test_a_file_is_read_as_its_footer_says(tmp_path: Path) -> None:
    """Polars writes no schema of its own before the batches."""
    path = write(tmp_path / "a.arrow", table())
    told = read(path)
    data = path.read_bytes()
    path.write_bytes(data[:8] + bytes(64) + data[72:])
    assert read(path) == told


def test_a_fault_has_the_number_of_its_row_in_the_file(tmp_path: Path) -> None:
    bad = table().set_column(4, "outcome", pa.array([*["success"] * 3, "great", "success"]))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, write(tmp_path / "a.arrow", bad), tmp_path / "out", agent="a")
    assert [(fault.line, fault.pointer) for fault in caught.value.faults] == [(4, "/outcome")]


def test_keys_of_metadata_are_no_marks_of_a_format(tmp_path: Path) -> None:
    """Hugging Face writes the columns as keys of JSON into the schema."""
    named = table().replace_schema_metadata({"huggingface": '{"info": {"task_id": {}, "reward": {}}}'})
    account, _ = imported(None, write(tmp_path / "a.arrows", named), tmp_path / "out", agent="a")
    assert account.imported.format == "records"


def test_a_program_that_read_arrow_ends_without_a_word_more(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", table())
    done = program("import", path, "-o", tmp_path / "out", "--agent", "a", "-q")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("package", ["pyarrow", "flatbuffers"])
def test_the_packages_that_are_missing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = refused(write(tmp_path / "a.arrow", table()))
    assert error.message == f"an Arrow file, and {package} is not installed"
    assert error.hint == "pip install pyarrow flatbuffers"


@pytest.mark.parametrize(("packing", "repeated"), [("zstd", False), ("lz4", False), ("zstd", True)])
def test_what_unpacks_to_too_much_is_refused_before(tmp_path: Path, packing: str, *, repeated: bool) -> None:
    text = pa.array(["x" * (arrow.MAX_UNPACKED + 1)])
    bomb = pa.table({"text": pa.DictionaryArray.from_arrays([0], text) if repeated else text})
    path = write(tmp_path / "a.arrow", bomb, packing)
    assert path.stat().st_size < 1_000_000
    before = pa.total_allocated_bytes()
    error = refused(path)
    assert "unpacks to more than 67,108,864 bytes" in error.message
    assert error.hint == "write smaller batches, or without compression"
    assert pa.default_memory_pool().max_memory() - before < 3 * arrow.MAX_UNPACKED  # as made here


def test_rows_without_bytes_are_bounded_too(tmp_path: Path) -> None:
    nulls = pa.table({"nothing": pa.nulls(arrow.MAX_UNPACKED + 1)})
    assert "unpacks to more" in refused(write(tmp_path / "a.arrow", nulls, rows=None)).message


@pytest.mark.parametrize("packing", ["lz4", "zstd"])
@pytest.mark.parametrize("told", [15_999, 16_001, 60 << 20, -2, 0])
def test_a_buffer_that_unpacks_to_other_than_it_declares_is_refused(
    tmp_path: Path, packing: str, told: int
) -> None:
    path = write(tmp_path / "a.arrow", pa.table({"text": [b"x" * 8000] * 2}), packing)
    data, size = path.read_bytes(), (16_000).to_bytes(8, "little")
    at = data.rindex(size)  # LZ4 declares it before, with the lengths
    path.write_bytes(data[:at] + told.to_bytes(8, "little", signed=True) + data[at + 8 :])
    refused(path)


@pytest.mark.parametrize("suffix", [".arrow", ".arrows"])
def test_what_was_cut_off_or_goes_on_is_refused(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", table())
    data = path.read_bytes()
    twice = [data + data] if suffix == ".arrows" else []  # of two files the last footer counts
    for other in (*(data[:size] for size in range(9, len(data), 197)), data[:-8], *twice):
        path.write_bytes(other)
        assert "or write it anew" in str(refused(path).hint)


ODD: dict[str, Callable[[], Any]] = {
    "extension": lambda: pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
    "list_view": lambda: pa.array([[1]], pa.list_view(pa.int8())),
    "union": lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["x"])]),
    "run_end": lambda: pa.RunEndEncodedArray.from_arrays([1], ["x"]),
    "halffloat": lambda: pa.array([1.0], pa.float16()),
    "decimal256": lambda: pa.array([Decimal(1)], pa.decimal256(40, 2)),
    "values=list": lambda: pa.DictionaryArray.from_arrays([0], pa.array([["x"]])),
}


@pytest.mark.parametrize("kind", list(ODD))
def test_types_that_are_not_read_are_named(tmp_path: Path, kind: str) -> None:
    for content in (ODD[kind](), pa.StructArray.from_arrays([ODD[kind]()], ["inner"])):
        error = refused(write(tmp_path / "a.arrow", pa.table({"odd": content})))
        assert (kind in error.message, error.hint) == (True, "write it as Parquet")


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    """DuckDB would read it up to there."""
    error = refused(write(tmp_path / "a.arrow", pa.table({"outcome\0 as judged by me": ["success"]})))
    assert "holds what is not read" in error.message


def test_metadata_of_a_type_are_not_believed(tmp_path: Path) -> None:
    """DuckDB reads 16 bytes for each value of one byte that is called arrow.uuid."""
    called = pa.field("odd", pa.int8(), metadata={"ARROW:extension:name": "any.name"})
    content = pa.table([pa.array([1], pa.int8())], schema=pa.schema([called]))
    assert "an extension" in refused(write(tmp_path / "a.arrow", content)).message


def test_a_type_that_pyarrow_does_not_know_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", pa.table({"at": [1]}))
    before, width, after = path.read_bytes().rpartition(b"\x40\0\0\0")  # 64 bits, as the footer says
    path.write_bytes(before + bytes([128]) + width[1:] + after)
    assert "Integers with more than 64 bits" in refused(path).message


@pytest.mark.parametrize("content", [{"a": []}, {"a": [None]}, {"a": [{}]}])
def test_tables_with_little_in_them_are_read(tmp_path: Path, content: dict[str, Any]) -> None:
    path = write(tmp_path / "a.arrows", pa.table(content))
    assert [row["a"] for row in read(path)] == content["a"]


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    assert "at least one column" in refused(write(tmp_path / "a.arrows", pa.table({}))).message


def test_offsets_that_lead_out_of_a_buffer_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", pa.table({"text": ["abcdefg", "hijklmn"]}))
    data, offsets = path.read_bytes(), b"\0\0\0\0\7\0\0\0\x0e\0\0\0"
    for far in (2**31 - 1, -(2**31), 15):
        path.write_bytes(data.replace(offsets, offsets[:8] + far.to_bytes(4, "little", signed=True)))
        assert "Offset invariant failure" in refused(path).message


@pytest.mark.parametrize("packing", [None, "zstd"])
def test_a_changed_byte_gives_rows_or_a_refusal(tmp_path: Path, packing: str | None) -> None:
    """In a program of its own: nothing may end it."""
    path = write(tmp_path / "a.arrow", table(), packing)
    script = f"""
import random, sys
from pathlib import Path
from certkit.ground.errors import InputError
from certkit.record import arrow
path, drawn = Path(sys.argv[1]), random.Random(7)
good = path.read_bytes()
for _ in range(40):
    data = bytearray(good)
    data[drawn.randrange(len(data))] ^= drawn.randrange(1, 256)
    path.write_bytes(data)
    try:
        list(arrow.rows(path, shown="a", limit={MAX_ROW}))
    except InputError:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a program's own peak")
@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_a_text_that_many_rows_repeat_does_not_fill_the_memory(tmp_path: Path, suffix: str) -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 10_000_000])
    nested = pa.StructArray.from_arrays([repeated], ["text"])
    path = write(tmp_path / f"a{suffix}", pa.table({"meta": nested}), rows=None)
    script = f"""
import resource, sys
from itertools import islice
from pathlib import Path
from certkit.record import {"parquet" if suffix == ".parquet" else "arrow"} as reader
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
rows = reader.rows(Path(sys.argv[1]), shown="a", limit={MAX_ROW})
assert all(len(row["meta"]["text"]) == 10_000_000 for row in islice(rows, 20))
told = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
print(next(int(words[1]) for words in told if words[0] == "VmHWM:"))
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300_000


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_a_row_that_is_too_long_is_refused_with_its_number(tmp_path: Path, suffix: str) -> None:
    long = pa.table({"text": [["a"], ["b"], ["x" * (MAX_ROW // 2)] * 2, ["c"]]})
    with pytest.raises(CertkitError) as caught:
        read(write(tmp_path / f"a{suffix}", long))
    assert (caught.value.code, caught.value.where) == ("json.too-large", "runs:3")


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_rows_that_are_fetched_in_pieces_keep_their_order(tmp_path: Path, suffix: str) -> None:
    content = {"at": list(range(5000)), "text": ["é" * (at * at % 41) or None for at in range(5000)]}
    path = write(tmp_path / f"a{suffix}", pa.table(content), rows=3000)
    reader = columns if suffix == ".parquet" else arrow
    rows = list(reader.rows(path, shown="runs", limit=1000))
    assert {name: [row[name] for row in rows] for name in content} == content
