"""Parquet files give the rows that were written; hostile ones are refused in bounded memory."""

from __future__ import annotations

import datetime as dt
import struct
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from certkit import imports
from certkit.ground.errors import CertkitError, InputError
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, parquet, preview, run
from certkit.imports.drafts import SeenHashes
from certkit.imports.source import MAX_ROW
from tests.support.importing import TELLS_PEAK, imported, peak_of, peak_of_import

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
LOCAL = NOON.replace(tzinfo=None)


def write(path: Path, content: Any, **options: Any) -> Path:
    pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), path, **options)
    return path


def drawn() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(1))


def read(path: Path) -> list[dict[str, Any]]:
    return list(parquet.rows(path, shown="runs", limit=MAX_ROW))


def refused(path: Path, code: str = "import.source") -> InputError:
    with pytest.raises(InputError) as caught:
        read(path)
    assert (caught.value.code, (caught.value.where or "").partition(":")[0]) == (code, "runs")
    return caught.value


VALUES: dict[str, tuple[Any, Any]] = {
    "text": (pa.array(["ä", None, ""]), ["ä", None, ""]),
    "large text": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "view": (pa.array(["a", None], pa.string_view()), ["a", None]),
    "categories": (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", None, "b"]),
    "bytes": (pa.array([b"ok", b"\xff", None]), ["ok", "\\xff", None]),
    "fixed bytes": (pa.array([b"abcd"], pa.binary(4)), ["abcd"]),
    "integers": (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    "short integers": (pa.array([-128, 127], pa.int8()), [-128, 127]),
    "truth": (pa.array([True, None, False]), [True, None, False]),
    "floats": (pa.array([0.1, float("nan"), None]), [0.1, None, None]),
    "single floats": (pa.array([0.1], pa.float32()), [struct.unpack("f", struct.pack("f", 0.1))[0]]),
    "decimals": (pa.array([Decimal("1.25"), None]), [1.25, None]),
    "nothing": (pa.nulls(2), [None, None]),
    "days": (pa.array([dt.date(2026, 1, 2)]), ["2026-01-02"]),
    "times of day": (pa.array([dt.time(9, 5, 1)], pa.time64("ns")), ["09:05:01"]),
    "local times": (pa.array([LOCAL, None], pa.timestamp("ms")), ["2026-01-31T12:00:00", None]),
    "instants": (
        pa.array([NOON, NOON.replace(microsecond=120_000), None], pa.timestamp("us", "Europe/Berlin")),
        ["2026-01-31 12:00:00+00", "2026-01-31 12:00:00.12+00", None],
    ),
    "instants in nanoseconds": (
        pa.array([1_767_225_600_123_456_789], pa.timestamp("ns", "UTC")),
        ["2026-01-01 00:00:00.123456789+00"],
    ),
    "durations": (pa.array([dt.timedelta(seconds=5)], pa.duration("us")), [5_000_000]),
    "ids": (pa.array([uuid.UUID(int=5).bytes], pa.uuid()), [str(uuid.UUID(int=5))]),
    "json": (pa.array(["{}"], pa.json_(pa.string())), ["{}"]),
    "lists": (pa.array([["a", None], [], None, ["a"]]), [["a", None], [], None, ["a"]]),
    "lists of lists": (pa.array([[[1, 2], None], [], None]), [[[1, 2], None], [], None]),
    "lists of one length": (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)), [[1, 2], None, [3, 4]]),
    "structs": (pa.array([{"a": 1, "b": ["x"]}, None]), [{"a": 1, "b": ["x"]}, None]),
    "structs in lists": (pa.array([[{"at": NOON}, None]]), [[{"at": "2026-01-31 12:00:00+00"}, None]]),
    "maps": (
        pa.array([[("k", 1), ("l", None)], None, []], pa.map_(pa.string(), pa.int64())),
        [{"k": 1, "l": None}, None, {}],
    ),
}


@pytest.mark.parametrize("name", list(VALUES))
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"data_page_version": "2.0", "compression": "zstd", "store_schema": False},
        {"use_dictionary": False, "compression": "gzip", "data_page_size": 1, "row_group_size": 2},
        {"compression": "lz4"},
    ],
)
def test_values_are_those_that_json_has(tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    array, expected = VALUES[name]
    path = write(tmp_path / "a.parquet", {"value": array}, **how)
    assert [row["value"] for row in read(path)] == expected


def test_rows_that_come_in_batches_and_groups_keep_their_order(tmp_path: Path) -> None:
    content = {"at": list(range(5000)), "text": ["é" * (at * at % 41) or None for at in range(5000)]}
    path = write(tmp_path / "a.parquet", content, row_group_size=1800)
    rows = list(parquet.rows(path, shown="runs", limit=1000))
    assert {name: [row[name] for row in rows] for name in content} == content


RECORDS = {
    "task_id": ["t1", "t2"],
    "domain": ["rail"] * 2,
    "condition": ["nominal"] * 2,
    "outcome": ["success", "failure"],
    "started_at": [NOON] * 2,
}


def test_a_fault_has_the_number_of_its_row_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", RECORDS | {"outcome": ["success", "great"]}, row_group_size=1)
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a")
    assert [(fault.line, fault.pointer) for fault in caught.value.faults] == [(2, "/outcome")]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", RECORDS)
    monkeypatch.delitem(sys.modules, "certkit.imports.parquet")
    monkeypatch.delattr(imports, "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="pyarrow is not installed") as caught:
        imported(None, path, tmp_path / "out", agent="a")
    assert caught.value.hint == "pip install 'certkit[parquet]'"


@pytest.mark.parametrize("lead", [b"ARROW1\0\0", b"\xff\xff\xff\xff\x10\0\0\0"])
def test_arrow_files_are_refused_with_what_to_do(tmp_path: Path, lead: bytes) -> None:
    (tmp_path / "a.arrow").write_bytes(lead + b'{"info": {"task_id": {}, "reward": {}}}' + bytes(100))
    with pytest.raises(InputError, match="an Arrow file") as caught:
        run(tmp_path / "a.arrow", tmp_path / "out", ImportOptions(agent="a"), SILENT)
    assert "to_parquet" in str(caught.value.hint)


@pytest.mark.parametrize("content", [{"a": []}, {"a": [None]}, {"a": [{}]}])
def test_tables_with_little_in_them_are_read(tmp_path: Path, content: dict[str, Any]) -> None:
    content = {"a": pa.array(content["a"], pa.int64())} if content["a"] != [{}] else {"a": [{"b": None}]}
    assert len(read(write(tmp_path / "a.parquet", content))) == len(content["a"])


@pytest.mark.parametrize("time", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_a_time_that_no_calendar_has_is_refused(tmp_path: Path, time: Any) -> None:
    assert "out of range" in refused(write(tmp_path / "a.parquet", {"at": pa.array([2**62], time)})).message


def test_a_row_that_is_too_long_is_refused_with_its_number(tmp_path: Path) -> None:
    long = drawn().bytes(MAX_ROW // 4).hex()
    path = write(tmp_path / "a.parquet", {"text": [["a"], ["b"], [long] * 2, ["c"]]})
    assert refused(path, "json.too-large").where == "runs:3"


def test_many_items_are_a_long_row_too(tmp_path: Path) -> None:
    numbers = drawn().integers(1 << 30, size=MAX_ROW // parquet.ITEM + 1).tolist()
    assert refused(write(tmp_path / "a.parquet", {"many": [numbers]}), "json.too-large").where == "runs:1"


def trials(rows: int) -> dict[str, Any]:
    """Return the columns of runs of 100 tasks, of which nothing but the trial differs from row to row."""
    task, trial = np.divmod(np.arange(rows), rows // 100)
    return {
        "task_id": pa.array([f"t{at}" for at in range(100)]).take(task),
        "trial": trial,
        "success": trial < 0,
    }


REPEATED = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 1_000_000])
BOMBS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "equal rows": lambda: (
        dict.fromkeys(RECORDS, pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["a"])),
        {"compression": "zstd"},
    ),
    "a long text in every row": lambda: ({"text": REPEATED}, {"dictionary_pagesize_limit": 1 << 22}),
    "a long text in every list": lambda: (
        {"text": pa.ListArray.from_arrays(list(range(5001)), REPEATED)},
        {"dictionary_pagesize_limit": 1 << 22, "store_schema": False},
    ),
    "many items in one row": lambda: ({"many": [[1] * 5_000_000]}, {}),
    "texts that share a beginning": lambda: (
        {"text": ["x" * 1_000_000 + str(at) for at in range(100)]},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    ),
    "a large page": lambda: ({"text": ["x" * (64 << 20)]}, {"use_dictionary": False, "compression": "zstd"}),
    "nulls": lambda: ({"nothing": pa.nulls(5_000_000)}, {}),
    "short rows": lambda: (
        trials(2_000_000) | {"success": drawn().random(2_000_000) < 0.06},
        {"compression": "zstd", "column_encoding": {"trial": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
    ),
}


@TELLS_PEAK
@pytest.mark.parametrize("name", list(BOMBS))
def test_what_unpacks_to_too_much_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    content, how = BOMBS[name]()
    path = write(tmp_path / "a.parquet", content, **how)
    assert path.stat().st_size < 200_000
    code, peak = peak_of_import(path)
    assert (code, peak <= 300_000_000) == ("import.unpacks", True)


READ = """
import sys
from pathlib import Path
from certkit.imports import parquet
print(sum(1 for _ in parquet.rows(Path(sys.argv[1]), shown="a", limit=1 << 24)))
"""


@TELLS_PEAK
def test_a_large_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    generator = drawn()
    texts = [generator.bytes(500).hex() for _ in range(120_000)]
    path = write(tmp_path / "a.parquet", {"text": texts}, row_group_size=120_000, compression="none")
    rows, peak = peak_of(READ, path)
    assert (int(rows), peak <= 200_000_000) == (120_000, True)


KEPT = """
import sys
from pathlib import Path
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions, parquet, run
def resident():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024
def told(*names, real=parquet.rows, **more):
    for number, row in enumerate(real(*names, **more)):
        if number == 4000:
            before = resident()
        yield row
    print((resident() - before) // (number - 4000))
parquet.rows = told
path = Path(sys.argv[1])
run(path, path.with_suffix(""), ImportOptions(agent="a", domain="d", condition="nominal"), SILENT)
"""


@TELLS_PEAK
def test_an_import_keeps_a_hundred_bytes_of_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", trials(24_000))
    assert int(peak_of(KEPT, path)[0]) <= 100


def test_more_rows_than_can_be_told_apart_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MAX_LINES", 3)
    assert len(read(write(tmp_path / "a.parquet", {"a": [1, 2, 3]}))) == 3
    assert refused(write(tmp_path / "a.parquet", {"a": [1, 2, 3, 4]})).message == "more than 3 rows"


@given(st.lists(st.integers(-3, 3000), max_size=3000))
@settings(max_examples=30)
def test_what_was_met_is_remembered(values: list[int]) -> None:
    met, known = SeenHashes(), set[int]()
    for value in values:
        assert met.seen_before(value) == (value in known)
        known.add(value)


@pytest.mark.parametrize("nested", [True, False])
def test_a_row_group_that_needs_much_memory_at_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nested: bool
) -> None:
    monkeypatch.setattr(parquet, "MAX_OPEN", 1 << 20)
    text = drawn().bytes(1 << 19).hex()
    path = write(tmp_path / "a.parquet", {"a": [[text]] if nested else [text]}, use_dictionary=False)
    error = refused(path)
    assert "of memory at once" in error.message
    assert "row_group_size" in str(error.hint)


@pytest.mark.parametrize(
    "data",
    [b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(8) + b"PAR1", b"PAR1" + b"\xff" * 8 + b"PAR1", b"PAR1" * 100],
)
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    assert "or write it anew" in str(refused(tmp_path / "a.parquet").hint)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path / "a.parquet", RECORDS).read_bytes()
    for size in range(9, len(data), 197):
        (tmp_path / "a.parquet").write_bytes(data[:size])
        refused(tmp_path / "a.parquet")


@pytest.mark.parametrize("size", [0, 15, 17, 60 << 20])
def test_a_page_that_unpacks_to_other_than_its_header_says_is_refused(tmp_path: Path, size: int) -> None:
    path = write(
        tmp_path / "a.parquet",
        {"a": [1, 2]},
        use_dictionary=False,
        compression="zstd",
        write_statistics=False,
    )
    header = b"\x15\x00\x15"  # a data page, and the member with the unpacked size
    data = path.read_bytes()
    start = data.index(header) + len(header)
    path.write_bytes(data[:start] + _varint(size << 1) + data[start + 1 :])
    with pytest.raises(CertkitError) as caught:
        read(path)
    assert caught.value.code in {"import.source", "import.unpacks"}


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@pytest.mark.parametrize("packing", ["none", "zstd"])
def test_a_changed_byte_gives_rows_or_a_refusal(tmp_path: Path, packing: str) -> None:
    """In a program of its own: nothing may end it."""
    path = write(
        tmp_path / "a.parquet",
        {name: array for name, (array, _) in VALUES.items() if len(array) == 1},
        compression=packing,
    )
    script = f"""
import random, sys
from pathlib import Path
from certkit.ground.errors import InputError
from certkit.imports import parquet
path, drawn = Path(sys.argv[1]), random.Random(7)
good = path.read_bytes()
for _ in range(150):
    data = bytearray(good)
    data[drawn.randrange(len(data))] ^= drawn.randrange(1, 256)
    path.write_bytes(data)
    try:
        list(parquet.rows(path, shown="a", limit={MAX_ROW}))
    except InputError:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    refused(write(tmp_path / "a.parquet", {"meta": twice}))


def test_a_file_is_imported_and_previewed(tmp_path: Path) -> None:
    named = pa.table(RECORDS).replace_schema_metadata(
        {"huggingface": '{"info": {"task_id": {}, "reward": {}}}'}
    )
    path = write(tmp_path / "a.parquet", named)
    account, records = imported(None, path, tmp_path / "out", agent="a")
    assert account.imported.format == "records"
    assert [record["started_at"] for record in records] == ["2026-01-31T12:00:00+00:00"] * 2
    assert preview(path, ImportOptions(agent="a"))[1]["outcome"] == {"success": 1, "failure": 1}
