"""What nobody sees is shown, and what everybody sees is left alone."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from certkit.ground import canonical
from certkit.ground.text import HIDDEN, name_key, visible

# Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), which renderers may leave out.
IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
# Format characters that are drawn: signs that stand before or around numbers, and joints of hieroglyphs.
DRAWN = {
    *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440),
}  # fmt: skip


EVERY = range(sys.maxunicode + 1)
SHOWN = {ord(letter) for letter in HIDDEN.findall("".join(map(chr, EVERY)))}
"""The characters that stand alone in a text as their code."""


def test_what_a_renderer_may_leave_out_is_shown() -> None:
    for first, last in IGNORABLE:
        assert set(range(first, last + 1)) <= SHOWN


def test_what_a_terminal_obeys_is_shown() -> None:
    categories = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    obeyed = {number for number in EVERY if unicodedata.category(chr(number)) in categories}
    assert obeyed - DRAWN <= SHOWN


def test_letters_marks_signs_and_spaces_are_left_alone() -> None:
    ignorable = {number for first, last in IGNORABLE for number in range(first, last + 1)}
    drawn = {number for number in EVERY if unicodedata.category(chr(number))[0] in "LMNPSZ"}
    assert drawn & SHOWN <= {*ignorable, 0x2028, 0x2029, 0x2800}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tria\u200bge", r"tria\u200bge"),
        ("a\u00addmin", r"a\u00addmin"),
        ("gpj.exe\u202etxt", r"gpj.exe\u202etxt"),
        ("a\U000e0041\U000e007f", r"a\U000e0041\U000e007f"),
        ("one\ntwo\x1b[2J", r"one\u000atwo\u001b[2J"),
        ("a\u2800b", r"a\u2800b"),
        ("Größe 漢字 حارس ✓ ≥", "Größe 漢字 حارس ✓ ≥"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_text_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("✈\ufe0f", "✈\ufe0f"),
        ("葛\U000e0100飾", "葛\U000e0100飾"),
        ("a\ufe0f", r"a\ufe0f"),
        ("1\ufe0f", r"1\ufe0f"),
        ("✈\ufe0f\ufe0f", "✈\ufe0f" + r"\ufe0f"),
        ("✈\U000e0100", r"✈\U000e0100"),
        ("葛\U000e0100\U000e0101", "葛\U000e0100" + r"\U000e0101"),
        ("\u2800\ufe0f", r"\u2800\ufe0f"),
        ("\ufe0f", r"\ufe0f"),
    ],
)
def test_a_variation_selector_stays_where_it_varies_something_and_hides_nothing(
    text: str, shown: str
) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["tria\u200bge", "a\U000e0041", "\x7f\x9b", "\n", "a\ufe0f", "✈\ufe0f"])
def test_documents_hold_the_same_text_and_hide_nothing(text: str) -> None:
    printed = canonical.pretty({"name": text})
    assert canonical.loads(printed.encode()) == {"name": text}
    assert HIDDEN.search(printed.replace("\n", "")) is None


@pytest.mark.parametrize("name", ["Acme Triage", "ACME TRIAGE", "\uff21cme triage", "acme\u00a0triage"])
def test_names_in_another_case_or_form_have_one_key(name: str) -> None:
    assert name_key(name) == "acme triage"


@pytest.mark.parametrize(
    "name", ["acme triage 2", "acmetriage", "acme-triage", "\u0430cme triage", "acme triag\u00e9"]
)
def test_names_of_other_letters_have_another_key(name: str) -> None:
    assert name_key(name) != "acme triage"


def test_the_key_of_a_key_is_itself() -> None:
    # Characters that are not assigned, or for private use, are nothing's compatibility form.
    told = [chr(number) for number in EVERY if unicodedata.category(chr(number)) not in {"Cn", "Co", "Cs"}]
    once = [name_key("b".join(told[first : first + 4096])) for first in range(0, len(told), 4096)]
    assert [name_key(text) for text in once] == once
