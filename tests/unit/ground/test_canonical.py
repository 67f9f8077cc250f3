"""The only door to JSON: what it refuses, and the canonical bytes that digests are taken over."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path

import pytest

from certkit.ground import canonical
from certkit.ground.errors import InputError

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "rfc8785"
NAMES = ("arrays", "french", "structures", "unicode", "values", "weird")

REFUSED = [
    pytest.param(b"", "json.syntax", id="nothing"),
    pytest.param(b"{", "json.syntax", id="cut off"),
    pytest.param(b"{} {}", "json.syntax", id="two documents"),
    pytest.param(b"{'a':1}", "json.syntax", id="single quotes"),
    pytest.param(b"[1,]", "json.syntax", id="trailing comma"),
    pytest.param(b"[01]", "json.syntax", id="leading zero"),
    pytest.param(b"[+1]", "json.syntax", id="plus sign"),
    pytest.param(b"[.5]", "json.syntax", id="no digit before the point"),
    pytest.param(b"[5.]", "json.syntax", id="no digit after the point"),
    pytest.param(b"// no\n1", "json.syntax", id="comment"),
    pytest.param(b'"a\nb"', "json.syntax", id="raw newline in a string"),
    pytest.param(b'"\x00"', "json.syntax", id="raw NUL in a string"),
    pytest.param(b'"\\x41"', "json.syntax", id="unknown escape"),
    pytest.param(b'{"a":1,"a":1}', "json.duplicate-key", id="duplicate key"),
    pytest.param(b'{"a":1,"\\u0061":2}', "json.duplicate-key", id="duplicate key behind an escape"),
    pytest.param(b'[{"b":{"":0,"":0}}]', "json.duplicate-key", id="empty key twice, inside"),
    pytest.param(b"NaN", "json.number", id="NaN"),
    pytest.param(b"[Infinity]", "json.number", id="Infinity"),
    pytest.param(b"[-Infinity]", "json.number", id="-Infinity"),
    pytest.param(b"1e999", "json.number", id="beyond a double"),
    pytest.param(b"-1e999", "json.number", id="beyond a double, negative"),
    pytest.param(b"1e-999", "json.number", id="too small for a double"),
    pytest.param(b"[0.0001e-400]", "json.number", id="too small for a double, with leading zeros"),
    pytest.param(b"9007199254740992", "json.number", id="2^53"),
    pytest.param(b"-9007199254740992", "json.number", id="-2^53"),
    pytest.param(b"9" * 100_000, "json.number", id="a hundred thousand digits"),
    pytest.param(b'"\\ud800"', "json.encoding", id="lone high surrogate"),
    pytest.param(b'{"\\udc00":1}', "json.encoding", id="lone low surrogate in a key"),
    pytest.param(b'["\\udc00\\ud800"]', "json.encoding", id="surrogates in the wrong order"),
    pytest.param(b'"\xed\xa0\x80"', "json.encoding", id="surrogate as bytes"),
    pytest.param(b"\xef\xbb\xbf{}", "json.encoding", id="byte order mark"),
    pytest.param(b'"\xff"', "json.encoding", id="not UTF-8"),
    pytest.param(b'"\xc0\x80"', "json.encoding", id="overlong NUL"),
    pytest.param('"a"'.encode("utf-16"), "json.encoding", id="UTF-16"),
    pytest.param(b"[" * 65 + b"]" * 65, "json.too-deep", id="65 arrays"),
    pytest.param(b'{"a":' * 65 + b"1" + b"}" * 65, "json.too-deep", id="65 objects"),
    pytest.param(b"[" * 100_000, "json.too-deep", id="a hundred thousand open arrays"),
]

ACCEPTED = [
    (b"9007199254740991", 9007199254740991),
    (b"-9007199254740991", -9007199254740991),
    (b"1e308", 1e308),
    (b"0.00e-999", 0.0),
    (b"5e-324", 5e-324),
    (b'"\\ud83d\\ude00"', "\U0001f600"),
    (b'"\xf0\x9f\x98\x80"', "\U0001f600"),
    (b'"\\u0000"', "\x00"),
    (b' \t\r\n[1, 2.5, "a", null, true]\n', [1, 2.5, "a", None, True]),
    (b"[" * 64 + b"]" * 64, None),
    (b'["' + b"[{" * 500 + b'"]', ["[{" * 500]),
    (b'["\\"[[[", "\\\\"]', ['"[[[', "\\"]),
]


@pytest.mark.parametrize(("data", "code"), REFUSED)
def test_what_is_not_strict_json_is_refused_with_its_code(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical.loads(data, where="the place")
    assert caught.value.code == code
    assert caught.value.where == "the place"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("data", "value"), ACCEPTED)
def test_strict_json_is_read(data: bytes, value: object) -> None:
    read = canonical.loads(data)
    if value is None:
        for _ in range(63):
            read = read[0]
        assert read == []
    else:
        assert read == value
        assert type(read) is type(value)


def test_numbers_written_with_a_point_stay_floats() -> None:
    assert [type(item) for item in canonical.loads(b"[1, 1.0, 1e0]")] == [int, float, float]


def test_the_size_limit_is_exact() -> None:
    assert canonical.loads(b"[1]   ", max_bytes=6) == [1]
    with pytest.raises(InputError) as caught:
        canonical.loads(b"[1]    ", max_bytes=6)
    assert caught.value.code == "json.too-large"


def test_the_depth_limit_counts_brackets_outside_strings_only() -> None:
    deepest = b"[" * 63 + b'["]]]][[[["]' + b"]" * 63
    assert canonical.canonical(canonical.loads(deepest)) == deepest
    with pytest.raises(InputError) as caught:
        canonical.loads(b'["[", ' + deepest + b"]")
    assert caught.value.code == "json.too-deep"


def test_the_limit_of_memory_counts_marks_outside_texts_and_texts_beyond_two_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for text, most in ((b"a,[{", 2 * 12 + 3 * 150), ("😀".encode(), 2 * 12 + 3 * 150 + 3 * 6)):
        document = b'[0,"' + text + b'",0]'
        for limit, refused in ((most, False), (most - 1, True)):
            monkeypatch.setattr(canonical, "MAX_MEMORY", limit)
            with pytest.raises(InputError, match="of memory") if refused else nullcontext():
                assert len(canonical.loads(document)) == 3


def test_quotation_marks_without_end_are_refused_in_time() -> None:
    # With work quadratic in its length this megabyte would take an hour.
    with pytest.raises(InputError) as caught:
        canonical.loads(b"[]" * 65 + b'\\"' * 2**19)
    assert caught.value.code == "json.syntax"


@pytest.mark.parametrize("name", NAMES)
def test_the_canonical_form_is_that_of_the_published_vectors(name: str) -> None:
    if not VECTORS.is_dir():
        pytest.skip("the published RFC 8785 vectors are not beside this checkout")
    value = canonical.loads((VECTORS / "input" / f"{name}.json").read_bytes())
    assert canonical.canonical(value) == (VECTORS / "output" / f"{name}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
        ({"\u20ac": 1, "\U0001f600": 2, "\ufb33": 3, "\r": 4}, '{"\\r":4,"€":1,"😀":2,"\ufb33":3}'.encode()),
        ([1.0, -0.0, 1e21, 1e-7, 0.1, 100], b"[1,0,1e+21,1e-7,0.1,100]"),
        ('\x08\x0c\n\r\t\x01\x7f"\\/', b'"\\b\\f\\n\\r\\t\\u0001\x7f\\"\\\\/"'),
        ([None, True, False, [], {}], b"[null,true,false,[],{}]"),
    ],
    ids=["sorted keys", "keys by UTF-16", "numbers", "escapes", "words"],
)
def test_the_canonical_form_of_small_values(value: object, expected: bytes) -> None:
    # RFC 8785: §3.2.2.2 strings, §3.2.2.3 numbers, §3.2.3 order of keys by UTF-16 units.
    assert canonical.canonical(value) == expected


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53, 2.0**53, {"a": [1e16]}, {1: 2}, "\ud800", b"bytes"]
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(InputError) as caught:
        canonical.canonical(value)
    assert caught.value.code == "json.not-canonical"


def test_readable_and_compact_forms_keep_the_order_of_keys() -> None:
    value = {"b": [1], "a": "é"}
    assert canonical.pretty(value) == '{\n  "b": [\n    1\n  ],\n  "a": "é"\n}\n'
    assert canonical.line(value) == '{"b":[1],"a":"é"}\n'.encode()


@pytest.mark.parametrize("write", [canonical.pretty, canonical.line])
def test_no_form_holds_a_number_that_json_has_not(write: object) -> None:
    assert callable(write)
    with pytest.raises(ValueError, match="JSON compliant"):
        write(float("nan"))


def test_a_digest_is_sha256_in_hexadecimal() -> None:
    # FIPS 180-4, the example of the message "abc".
    digest = canonical.digest(b"abc")
    assert digest == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()
    assert canonical.is_digest(digest)


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:" + "A" * 64, "sha256:" + "a" * 64 + "\n", "a" * 64])
def test_what_is_no_digest(text: str) -> None:
    assert not canonical.is_digest(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a": "b', "unterminated string starting at line 1, column 7"),
        (b'{\n  "a" 1}', "expecting ':' delimiter at line 2, column 7"),
    ],
)
def test_broken_json_is_refused_with_its_place_once(data: bytes, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical.loads(data)
    assert caught.value.message == reason


@pytest.mark.parametrize(
    "text",
    ["", "[]", '"a,b,[c]"', '{"a":[1,2,{"b":"c"}]}', '"\U0001f600,"', '["\\ud83d\\ude00",1]', '"é","\\n"'],
)
def test_the_fast_bound_of_memory_is_never_below_what_counts(text: str) -> None:
    data = text.encode()
    assert canonical.memory_bound(data) >= canonical.memory(data)
    assert canonical.memory_bound(b"[[1,2],[3]]") == canonical.memory(b"[[1,2],[3]]")
