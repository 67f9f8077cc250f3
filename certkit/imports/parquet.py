"""Rows of Parquet files, read with pyarrow in bounded memory; needs the extra ``parquet``.

A few bytes of Parquet can stand for millions of rows, for one row of gigabytes, or for a long text that every
row repeats. So before pyarrow reads a row, the headers of all pages are read. They state what each page
unpacks to, and pyarrow refuses a page that holds anything else. From them follows how many rows are read at
once. Trusted are pyarrow's decoders, and that they read no page twice.

    for row in rows(Path("runs.parquet"), shown="runs.parquet", limit=MAX_ROW):
        row["task_id"]
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec import Struct
from pyarrow import compute as pc
from pyarrow import parquet as pq

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.imports.source import MAX_LINES, refuse_growth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader
    from pathlib import Path

MAGIC: Final = b"PAR1"

VALUE: Final = 8
"""Bytes that a value counts in what a file unpacks to, null or not; a text counts its bytes too."""

ITEM: Final = 32
"""Bytes that an item of a list counts in the size of a row: what it takes in Python, or less."""

MAX_OPEN: Final = 96 * 1024 * 1024
"""Unpacked bytes of a row group that pyarrow may hold at once.

They are the largest page and the dictionary of each column, and all pages of a column of lists, since one row
may take them all, or of a dictionary type, since pyarrow collects its texts.
"""

BATCH: Final = 16 * 1024 * 1024
"""Bytes that the rows of a batch may have where all of them are as long as the longest, roughly."""

MAX_ROWS: Final = 1024
"""Most rows of a batch."""

MAX_CELLS: Final = 1 << 18
"""Most values of a batch."""

MAX_FOOTER: Final = 16 * 1024 * 1024
_HEADERS: Final = (1024, 64 * 1024, 1024 * 1024)
"""Bytes that are read to find the header of a page: some writers put the least and the largest text there."""

TEXT: Final = "BYTE_ARRAY"
"""The physical type of texts."""

_DICTIONARY_PAGE: Final = 2
_SHARED_PREFIXES: Final = 7
"""The encoding DELTA_BYTE_ARRAY, in which few bytes may stand for many long texts."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTEGERS: Final = {4, 5, 6}
"""How Thrift's compact protocol numbers the types of members."""

_DEEP: Final = 8
"""Most levels of structs in the header of a page; the format has three."""


def rows(path: Path, *, shown: str, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file with the values of JSON: times and other types become text.

    Args:
        path: The file.
        shown: Its name in errors.
        limit: Most bytes of a row: those of its texts, and `ITEM` for each item of a list.

    Raises:
        InputError: ``import.source`` where the file cannot be read or has too many rows, ``import.unpacks``
            where it unpacks to too much, ``json.too-large`` for a row beyond `limit`.
    """
    with _refusing(shown), path.open("rb") as file:
        _check_ends(file)
        metadata = pq.read_metadata(file)
        leaves = map(metadata.schema.column, range(metadata.num_columns))
        # In lists a long text that is repeated would be copied for each item.
        texts = [leaf.path for leaf in leaves if leaf.max_repetition_level and leaf.physical_type == TEXT]
        options = {"pre_buffer": False, "buffer_size": 1 << 16, "read_dictionary": texts}
        table = pq.ParquetFile(file, metadata=metadata, **options)
        _refuse_equal_names(table.schema_arrow.names, shown)
        groups, packed = list(_groups(file, table, shown)), path.stat().st_size
        unpacked = number = 0
        for group, size in enumerate(groups):
            for batch in table.iter_batches(size, row_groups=[group], use_threads=False):
                unpacked += sum(VALUE * len(column) + _text_bytes(column) for column in batch.columns)
                refuse_growth(unpacked, packed, shown)
                for part in _parts(batch, limit):
                    number += part.num_rows
                    if max(number, metadata.num_rows) > MAX_LINES:  # the footer may state fewer
                        raise InputError("import.source", f"more than {MAX_LINES:,} rows", where=shown)
                    if part.num_rows == 1 and _bytes(part) > limit:
                        where = f"{shown}:{number}"
                        raise InputError("json.too-large", f"row longer than {limit:,} bytes", where=where)
                    for values in zip(*map(_values, part.columns), strict=True):
                        yield dict(zip(part.schema.names, values, strict=True))


@contextmanager
def _refusing(shown: str) -> Iterator[None]:
    """Turn what pyarrow raises into an `InputError` ``import.source``."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError, IndexError) as error:
        reason = visible(str(error).partition("\n")[0])[:300]
        hint = "it is damaged, was cut off, or is no Parquet: copy it again, or write it anew"
        raise InputError(
            "import.source", f"cannot be read as Parquet: {reason}", where=shown, hint=hint
        ) from None


def _check_ends(file: BufferedReader) -> None:
    """Raise `ValueError` where the file does not end as Parquet does, or its footer is too large."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    if size < 12 or tail[4:] != MAGIC:  # noqa: PLR2004 - both marks and the length of the footer
        raise ValueError("it does not end as Parquet does")
    if int.from_bytes(tail[:4], "little") > MAX_FOOTER:
        raise ValueError(f"its footer has more than {MAX_FOOTER:,} bytes")
    file.seek(0)


def _refuse_equal_names(names: list[str], shown: str) -> None:
    """Raise `InputError` where two columns have names that are equal but for case."""
    seen = set[str]()
    for name in names:
        if name.casefold() in seen:
            message = f"two columns have names that are equal but for case: {visible(name)!r}"
            raise InputError("import.source", message, where=shown, hint="give each column a name of its own")
        seen.add(name.casefold())


def _groups(file: BufferedReader, table: Any, shown: str) -> Iterator[int]:
    """Yield how many rows of each row group are read at once; refuse what unpacks to too much."""
    metadata, packed = table.metadata, file.seek(0, 2)
    stored = unpacked = 0
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    coded = tuple(field.name for field in table.schema_arrow if "dictionary<" in str(field.type))
    for number in range(metadata.num_row_groups):
        row = opened = 1
        for leaf, chunk in zip(
            leaves, map(metadata.row_group(number).column, range(len(leaves))), strict=True
        ):
            stored += chunk.total_compressed_size
            if stored > packed:
                raise ValueError("two columns use the same bytes")
            pages = _measured(file, chunk, leaf)
            unpacked += max(pages.total, VALUE * pages.values)
            refuse_growth(unpacked, packed, shown)
            if leaf.max_repetition_level or leaf.path.startswith(coded):
                opened += pages.total + VALUE * pages.values
            else:
                opened += pages.largest + pages.dictionary
                row += max(leaf.length, pages.longest)
            if opened > MAX_OPEN:
                message = f"row group {number} needs more than {MAX_OPEN:,} bytes of memory at once"
                hint = "write it in smaller row groups and pages; pandas: to_parquet(…, row_group_size=1000)"
                raise InputError("import.source", message, where=shown, hint=hint)
        yield max(1, min(MAX_ROWS, MAX_CELLS // max(1, len(leaves)), BATCH // row))


class _Pages(Struct):
    """What the pages of one column unpack to, as their headers state it."""

    total: int = 0  # bytes
    largest: int = 0  # bytes of the largest page of values
    dictionary: int = 0  # bytes of the dictionary
    values: int = 0
    longest: int = (
        0  # bytes of a value: of the longest in the dictionary, or the mean of a page, if that is more
    )


def _measured(file: BufferedReader, chunk: Any, leaf: Any) -> _Pages:
    """Return what the pages of a column unpack to."""
    pages = _Pages()
    at = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    end = at + chunk.total_compressed_size
    while pages.values < chunk.num_values:
        if at >= end:
            raise ValueError("a column ends before its values do")
        header, length = _header(file, at)
        data: dict[int, Any] = next(
            (header[number] for number in (5, 7, 8) if isinstance(header.get(number), dict)), {}
        )
        sizes = [header.get(1), header.get(2), header.get(3), data.get(1, 0)]
        kind, unpacked, packed, count = (size if isinstance(size, int) else -1 for size in sizes)
        if min(kind, unpacked, packed, count) < 0:
            raise ValueError("a page has no header")
        pages.total += unpacked
        if kind == _DICTIONARY_PAGE:
            pages.dictionary += unpacked
            if leaf.physical_type == TEXT and unpacked <= MAX_OPEN:
                file.seek(at + length)
                pages.longest = max(pages.longest, _longest(file.read(packed), unpacked, chunk.compression))
        else:
            pages.values += count
            pages.largest = max(pages.largest, unpacked)
            shared = data.get(4 if 8 in header else 2) == _SHARED_PREFIXES  # noqa: PLR2004 - version 2
            pages.longest = max(pages.longest, unpacked if shared else unpacked // max(1, count))
        at += length + packed
    return pages


def _longest(data: bytes, size: int, codec: str) -> int:
    """Return the bytes of the longest text of a packed dictionary, or of all where it cannot be unpacked."""
    name = {"LZ4": "lz4_raw"}.get(codec, codec.lower())
    try:
        texts = data if codec == "UNCOMPRESSED" else pa.decompress(data, size, codec=name, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return size
    at = longest = 0
    while at < len(texts):
        length = int.from_bytes(texts[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return min(longest, size)


def _header(file: BufferedReader, at: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at a place, and its length."""
    for most in _HEADERS:
        file.seek(at)
        try:
            return _members(file.read(most), 0)
        except IndexError:
            continue
    raise ValueError(f"the header of a page has more than {_HEADERS[-1]:,} bytes")


def _members(data: bytes, at: int, deep: int = 0) -> tuple[dict[int, Any], int]:
    """Return the members of a struct in Thrift's compact protocol by their numbers, and where it ends."""
    members: dict[int, Any] = {}
    number = 0
    while lead := data[at]:
        at, kind, step = at + 1, lead & 15, lead >> 4
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        if kind in {_TRUE, _FALSE}:
            members[number] = kind == _TRUE
        elif kind in _INTEGERS:
            members[number], at = _integer(data, at)
        elif kind == _STRUCT and deep < _DEEP:
            members[number], at = _members(data, at, deep + 1)
        elif kind == _BINARY:
            size, at = _varint(data, at)
            at += size
        elif kind in {_BYTE, _DOUBLE}:
            at += 8 if kind == _DOUBLE else 1
        else:
            raise ValueError("the header of a page has a member of an unknown type")
    return members, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at
        if shift > 63:  # noqa: PLR2004 - bits of the largest integer
            raise ValueError("an integer of more than 64 bits")


def _parts(batch: Any, limit: int) -> Iterator[Any]:
    """Yield a batch in parts whose values have no more than `limit` bytes, or that are a single row."""
    if batch.num_rows < 2 or _bytes(batch) <= limit:  # noqa: PLR2004 - a single row is not divided
        if batch.num_rows:
            yield batch
        return
    middle = batch.num_rows // 2
    yield from _parts(batch.slice(0, middle), limit)
    yield from _parts(batch.slice(middle), limit)


def _bytes(batch: Any) -> int:
    """Return the bytes of the texts in a batch, repeated ones too, and `ITEM` for each item of a list."""
    return sum(_text_bytes(column) + ITEM * _items(column) for column in batch.columns)


def _text_bytes(array: Any) -> int:
    """Return the bytes of the texts in an array, repeated ones too."""
    if pa.types.is_dictionary(array.type):
        codes, texts = _used(array)
        return pc.sum(_lengths(texts).take(codes)).as_py() or 0
    if _is_text(array.type):
        return pc.sum(_lengths(array)).as_py() or 0
    return sum(map(_text_bytes, _inner(array)))


def _used(array: Any) -> tuple[Any, Any]:
    """Return an array of a dictionary type as the numbers of its values, and these values."""
    used = pc.unique(array.indices.drop_null())
    return pc.index_in(array.indices, used), array.dictionary.take(used)


def _lengths(texts: Any) -> Any:
    if pa.types.is_fixed_size_binary(texts.type):
        return pa.array([texts.type.byte_width]).take(pa.array([0] * len(texts)))
    return pc.binary_length(texts.cast(pa.large_binary())).cast(pa.int64())


def _is_text(kind: Any) -> bool:
    tests = (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def _items(array: Any) -> int:
    inner = _inner(array)
    return _is_list(array.type) * sum(map(len, inner)) + sum(map(_items, inner))


def _inner(array: Any) -> list[Any]:
    """Return the members of a struct, or the items of lists; nothing of other types."""
    if pa.types.is_struct(array.type):
        return list(array.flatten())
    return [_as_lists(array).flatten()] if _is_list(array.type) else []


def _is_list(kind: Any) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_map)
    return any(test(kind) for test in tests)


def _as_lists(array: Any) -> Any:
    """Return lists of pairs for maps, which pyarrow can neither flatten nor measure."""
    if not pa.types.is_map(array.type):
        return array
    return array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))


def _values(array: Any) -> list[Any]:
    """Return the values of an array as JSON has them."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        codes, texts = _used(array)
        values = [*_values(texts), None]
        return [values[-1 if code is None else code] for code in codes.to_pylist()]
    if pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        if len({*names}) < len(names):
            raise ValueError("two members of a column have the same name")
        members = zip(*map(_values, array.flatten()), strict=True) if names else [()] * len(array)
        present = array.is_valid().to_pylist()
        return [
            dict(zip(names, items, strict=True)) if valid else None
            for items, valid in zip(members, present, strict=True)
        ]
    if _is_list(kind):
        lists, at = list[Any](), 0
        items = _values(_as_lists(array).flatten())
        for length in pc.list_value_length(_as_lists(array)).to_pylist():
            lists.append(None if length is None else items[at : at + length])
            at += length or 0
        if pa.types.is_map(kind):
            return _each(lambda pairs: {str(key): value for key, value in map(dict.values, pairs)}, lists)
        return lists
    return _scalars(array)


def _scalars(array: Any) -> list[Any]:
    """Return the values of an array without members as JSON has them; NaN is pandas' blank."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        uuid = kind.extension_name == "arrow.uuid"
        return _each(str, array.to_pylist()) if uuid else _values(array.storage)
    if pa.types.is_timestamp(kind):
        return _instants(array) if kind.tz else _each(_iso, array.cast(_MICRO, safe=False).to_pylist())
    if pa.types.is_floating(kind):
        values = array.cast(pa.float64()).to_pylist()
        return [value if value == value else None for value in values]  # noqa: PLR0124 - NaN differs from itself
    if pa.types.is_date(kind):
        return _each(_iso, array.to_pylist())
    if pa.types.is_time(kind):
        return _each(str, array.cast(pa.time64("us"), safe=False).to_pylist())
    if pa.types.is_duration(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_decimal(kind):
        return _each(float, array.to_pylist())
    if pa.types.is_nested(kind):
        raise ValueError(f"holds what is not read: {kind}")
    return _each(_decoded, array.to_pylist())


def _each(made: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [None if value is None else made(value) for value in values]


def _iso(value: Any) -> str:
    return str(value.isoformat())


def _instants(array: Any) -> list[str | None]:
    """Return instants, which Parquet keeps in UTC, as texts such as ``2026-01-31 08:05:00.5+00``."""
    digits = _DIGITS[array.type.unit]
    counts = array.cast(pa.int64()).to_pylist()
    texts = _each(lambda time: time.isoformat(" ")[:19], array.cast(_MICRO, safe=False).to_pylist())
    fractions = _each(lambda count: f".{count % 10**digits:0{digits}}".rstrip("0").rstrip("."), counts)
    return [text and f"{text}{fraction}+00" for text, fraction in zip(texts, fractions, strict=True)]


def _decoded(value: Any) -> Any:
    """Return bytes as text, since older writers write texts so, and any other value as it is."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


_MICRO: Final = pa.timestamp("us")
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimal digits of a second in each unit of time."""
