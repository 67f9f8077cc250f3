"""How a reply is read: which options it names, and whether it keeps the contract.

    >>> reading = judge(question, '{"answer": "Adaeze", "confidence": 0.9}', mode=Mode.JSON)
    >>> reading.verdict, reading.breach, reading.confidence
    (<ReplyGrade.MATCH: 'match'>, False, 900)

A reply matches if it says the right option once and nothing else. A reply that names the right option with
other options or words beside it is unclear; a reply that does not name the right option is no.

An option is named if each of its parts stands there in words. The words of a text are made of Unicode NFC,
case folded, without list marks, thousands separators, invisible characters, the punctuation `_QUIET` and the
words `_EMPTY`; any other character is a word. docs/reference/integrity.md says which part of a reply is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.probes.records import Kind, Mode, ProbeQuestion, parts

MAX_WORDS: Final = 12
"""Words that a reply in text mode may have, in one line."""
THOUSAND: Final = 1000

# No pattern may take longer than in proportion to a reply, whatever stands in it.
_SAID: Final = re.compile(r"(?im)(?:^|[.!?]\s)[^\w\n]{0,20}(?:final )?answer[\"'*_`]{0,4}:")
_COMMA: Final = "[,'\u2019_\u00a0\u2009\u202f]"
_THOUSANDS: Final = re.compile(
    rf"(?<![0-9.,])(?<![0-9]{_COMMA})[0-9]{{1,3}}(?:{_COMMA}[0-9]{{3}})+(?![0-9]|[.]?{_COMMA}?[0-9])"
)
_MARK: Final = re.compile(r"(?m)^ {0,9}(?:(?:[-+>\u2022]|[0-9]{1,2}[.)]) )+(?=[\"'*_`]{0,4}[^\W\d_])")
_QUIET: Final = r".,;:!\"'()\[\]{}*_`#/&"
_SAME: Final = dict.fromkeys(map(ord, "‘’"), "'") | dict.fromkeys(map(ord, "“”„«»"), '"')  # noqa: RUF001
_EMPTY: Final = frozenset({"the", "it", "is", "it's", "answer", "and", "from", "by", "on", "in", "at"})
_NOT: Final = re.compile(
    r" (?:not|no|never|nor|neither|none|nobody|cannot|\S+n't|without|except|unless|instead|rather|wrong) "
)
_LETTER: Final = "[0-9a-z\x80-\U0010ffff]"
_BREAK: Final = "\x1f"
_EXTRA: Final = frozenset({_BREAK, "a", "an"})  # an option may be called A
# A point or comma before a digit is a word, and so is a hyphen but within a word: 12 is not .12, -12 or 12-;
# and an exclamation mark before a word, as it negates in code. A box that is not ticked is a word.
_WORD: Final = re.compile(
    rf"{_BREAK}|\[ *\]|\( *\)|{_LETTER}+(?:'{_LETTER}+)*|[.,](?=[0-9])"
    rf"|!(?=[ {_QUIET}]{{0,9}}{_LETTER})|(?<!{_LETTER})-|-(?!{_LETTER})|[^\s{_QUIET}-]"
)


class ReplyGrade(StrEnum):
    """Whether a reply gives the right answer."""

    MATCH = "match"
    UNCLEAR = "unclear"
    NO = "no"


class Reading(Struct, frozen=True, kw_only=True):
    """How a reply reads, shares in thousandths; an agent may supply the last three.

    `competing`: it names several options; `lured`: it names the lure alone.
    """

    verdict: ReplyGrade
    reason: str
    breach: bool
    competing: bool
    lured: bool
    confidence: int | None
    success_probability: int | None = None
    retrieval_risk: int | None = None
    neural_conflict: int | None = None


def judge(question: ProbeQuestion, text: str, *, mode: Mode) -> Reading:
    """Return how a reply to a question reads."""
    document, before = _object(text)
    given = _answer(document.pop("answer", None), question.kind)
    stated = document.pop("confidence", None)
    confidence = thousandths(stated)
    breach = given is None or bool(before or document) or (stated is not None and confidence is None)
    if mode is Mode.TEXT:
        breach = "\n" in text.strip() or len(text.split()) > MAX_WORDS
    if given is None:
        *earlier, last = _SAID.split(text)
        before, given = "\n".join(earlier), [last]
    elif document:
        given = [*given, str(document)]
    said, before = words(_BREAK.join(given)), words(before)
    named = _named(question, said)
    right, gold = question.options.index(question.gold), parts(question.gold)
    if right not in named:
        verdict, reason = ReplyGrade.NO, "names another option" if named else "names no option"
    elif named != (right,):
        verdict, reason = ReplyGrade.UNCLEAR, "names the right option and others"
    elif _named(question, before) or _NOT.search(before):
        verdict, reason = ReplyGrade.UNCLEAR, "names an option or negates before the answer"
    elif {*(Counter(said.split()) - Counter("".join(map(normal, gold)).split()))} - _EXTRA:
        verdict, reason = ReplyGrade.UNCLEAR, "says more than the right option once"
    elif question.kind == "pair" and not all(
        normal(part) in words(text) for part, text in zip(gold, given, strict=False)
    ):
        verdict, reason = ReplyGrade.UNCLEAR, "gives the value as the source"
    else:
        verdict, reason = ReplyGrade.MATCH, "says the right option alone"
    return Reading(
        verdict=verdict,
        reason=reason,
        breach=breach,
        competing=len(named) > 1,
        lured=named == (question.options.index(question.lure),),
        confidence=confidence,
    )


def _named(question: ProbeQuestion, said: str) -> tuple[int, ...]:
    """Return the places of the options that words name."""
    return tuple(
        place
        for place, option in enumerate(question.options)
        if all(normal(part) in said for part in parts(option))
    )


def _object(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object in a reply, empty if there is none, and the text before its fence."""
    before, *fenced = text.strip().split("```")
    if len(fenced) > 1 and not fenced[-1]:
        before, text = "".join((before, *fenced[:-2])), fenced[-2].strip().removeprefix("json")
    else:
        before = ""
    try:
        value = canonical.loads(text.strip().encode("utf-8", errors="surrogatepass"))
    except InputError:
        return {}, ""
    return (value, before) if isinstance(value, dict) else ({}, "")


def _answer(value: Any, kind: Kind) -> list[str] | None:
    """Return the texts of an answer that has its kind or is one text; None if it is neither."""
    if kind == "number" and type(value) is int:
        value = str(value)
    elif kind == "pair" and isinstance(value, dict) and set(value) == {"source", "value"}:
        value = [str(value["value"]) if type(value["value"]) is int else value["value"], value["source"]]
    elif not (kind == "set" and isinstance(value, list) and value) and not isinstance(value, str):
        return None
    texts = [value] if isinstance(value, str) else value
    return texts if all(isinstance(text, str) for text in texts) else None


def thousandths(value: Any) -> int | None:
    """Return a share in thousandths, rounded half up; None for what is no number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return int(value * THOUSAND + 0.5)


def words(text: str) -> str:
    """Return the words of a text with a space before and after each, so that whole words can be searched."""
    text = _THOUSANDS.sub(lambda match: re.sub("[^0-9]", "", match[0]), _MARK.sub("", text))
    text = unicodedata.normalize("NFC", text.translate(_SAME).casefold())
    if not text.isascii():
        text = "".join(map(_spaced, text))
    return f" {' '.join(word for word in _WORD.findall(text) if word not in _EMPTY)} "


normal = lru_cache(maxsize=65_536)(words)
"""The same, kept in memory for texts of tasks."""


def _spaced(character: str) -> str:
    """Return a letter, mark or digit as it is, nothing for what is invisible, else a word of its own."""
    category = unicodedata.category(character)
    if character.isascii() or category[0] in "LMN":
        return character
    return "" if category == "Cf" else " " if character.isspace() else f" {character} "
