r"""How a reply is read: which options it names, and whether it keeps the contract.

    >>> reading = judge(question, '{"answer": "Adaeze", "confidence": 0.9}', mode=Mode.JSON)
    >>> reading.verdict, reading.breach, reading.confidence
    (<Verdict.MATCH: 'match'>, False, 900)

The normal form of a text is its words: Unicode NFKC, case folded, without markup, invisible characters and
thousands separators, punctuation as spaces. An option is named if all its parts stand in the reply as whole
words, and none only within three words after *not*, *never*, *rather than* or *instead of* (*but* ends that,
and *not only* denies nothing). The right option alone is a match; with others beside it the reply is
unclear; anything else is no.

It knows no grammar: "Borys is out of the question" names Borys. The audit of verdicts by people measures
what that costs.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from certkit import canonical
from certkit.errors import InputError
from certkit.probes.records import Kind, Mode, Question, Value, parts

MAX_WORDS: Final = 12
"""Words that a reply in text mode may have, in one line."""
WITHIN: Final = 3
"""Words after a negation that it denies."""
THOUSAND: Final = 1000

# No pattern may take longer than in proportion to a reply, whatever stands in it.
_FENCE: Final = re.compile(r"```[A-Za-z]*+\s*\n")
_SAID: Final = re.compile(r"answer[\"'*_`\s]*:", re.IGNORECASE)
_LINK: Final = re.compile(r"\]\([^)\s]*+\)?")
_TAG: Final = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,10}\s*/?>")
_SPACES: Final = {0x00A0: ",", 0x2009: ",", 0x202F: ",", 0x2019: "'", 0x2212: "-"}
"""Spaces that separate thousands, the apostrophe and the minus sign, before NFKC makes them others."""
_THOUSANDS: Final = re.compile(r"(?<![0-9.,])(?<![0-9]['_])[0-9]{1,3}(?:[,'_][0-9]{3})+(?![0-9]|[.,'][0-9])")
_DENIED: Final = re.compile(r"n't\b|(?<=\bcan)not\b")
_LETTER: Final = "[0-9a-z\x80-\U0010ffff]"
_BREAK: Final = "\x1f"
# A decimal is one word, and so is a number with its unit or sign: 12 does not stand in 12.5, 12kg or -12.
_WORD: Final = re.compile(
    rf"{_BREAK}|(?<!{_LETTER})-?(?:[0-9]+(?:[.,][0-9]+)*|\.[0-9]+){_LETTER}*|{_LETTER}+"
)
_NEGATIONS: Final = frozenset({"not", "never", "rather than", "instead of"})


class Verdict(StrEnum):
    """Whether a reply gives the right answer."""

    MATCH = "match"
    UNCLEAR = "unclear"
    NO = "no"


class Reading(Struct, frozen=True, kw_only=True):
    """What a reply says: `named` are places among the options, `confidence` is in thousandths."""

    verdict: Verdict
    reason: str
    breach: bool
    named: tuple[int, ...]
    confidence: int | None


def judge(question: Question, text: str, *, mode: Mode) -> Reading:
    """Return how a reply to a question reads."""
    given, confidence, kept = _contract(question, text, mode)
    words = tokens(_BREAK.join(given))
    named = _named(words, question.options)
    right = question.options.index(question.gold)
    if named == (right,):
        verdict, reason = Verdict.MATCH, "names the right option alone"
    elif right in named:
        verdict, reason = Verdict.UNCLEAR, "names the right option and others"
    else:
        verdict, reason = Verdict.NO, "names another option" if named else "names no option"
    return Reading(verdict=verdict, reason=reason, breach=not kept, named=named, confidence=confidence)


def _contract(question: Question, text: str, mode: Mode) -> tuple[tuple[str, ...], int | None, bool]:
    """Return the texts that answer, the confidence stated, and whether the contract is kept."""
    document = _object(text)
    answer = _answer(document.get("answer"), question.kind)
    kept = answer is not None
    if mode is Mode.TEXT:
        kept = "\n" not in text.strip() and len(text.split()) <= MAX_WORDS
    answer = answer or (_SAID.split(text)[-1],)
    return answer, thousandths(document.get("confidence")), kept


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object that a reply is, bare or fenced; empty where it is something else."""
    bare = text.strip()
    opened = _FENCE.match(bare)
    if opened and bare.endswith("```", opened.end()):
        bare = bare[opened.end() : -3].strip()
    if not bare.startswith("{"):
        return {}
    try:
        value = canonical.loads(bare.encode("utf-8", errors="surrogatepass"))
    except InputError:
        return {}
    return value if isinstance(value, dict) else {}


def _answer(value: Any, kind: Kind) -> tuple[str, ...] | None:
    """Return the texts of an answer that has its kind or is one text; None where it is neither."""
    if isinstance(value, str):
        return (value,)
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        return (str(value),)
    if kind == "pair" and isinstance(value, dict) and set(value) == {"source", "value"}:
        value = [str(value["value"]) if type(value["value"]) is int else value["value"], value["source"]]
    elif kind != "set":
        return None
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None


def thousandths(value: Any) -> int | None:
    """Return a share in thousandths, rounded half up; None for what is no number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return int(value * THOUSAND + 0.5)


def tokens(text: str) -> list[str]:
    """Return the words of a text in normal form; where texts are joined by `_BREAK`, that is a word too."""
    text = unicodedata.normalize("NFKC", text.translate(_SPACES))
    text = _THOUSANDS.sub(lambda match: re.sub("[^0-9]", "", match[0]), text)
    text = _LINK.sub(lambda match: "] " if match[0].endswith(")") else match[0], text)
    text = unicodedata.normalize("NFKC", _TAG.sub(" ", text).casefold())
    if not text.isascii():
        text = "".join(map(_spaced, text))
    return _WORD.findall(_DENIED.sub(" not", text))


def _spaced(character: str) -> str:
    """Return a letter, mark or digit as it is, nothing for what is invisible, and a space for the rest."""
    if character.isascii():
        return character
    category = unicodedata.category(character)
    return "" if category == "Cf" else character if category[0] in "LMN" else " "


@lru_cache(maxsize=65_536)
def normal(text: str) -> str:
    """Return the words of a text with a space before and after each, so that whole words can be searched."""
    return f" {' '.join(tokens(text))} "


def _named(words: list[str], options: tuple[Value, ...]) -> tuple[int, ...]:
    """Return the places of the options that are named."""
    line = f" {' '.join(words)} "
    denied = _denied(words)
    return tuple(
        number
        for number, option in enumerate(options)
        if all(_stands(line, normal(part), denied) for part in parts(option))
    )


def _stands(line: str, part: str, denied: frozenset[int]) -> bool:
    """Tell whether a part stands anywhere in a line of words without being denied there."""
    at = line.find(part)
    while at >= 0:
        if line.count(" ", 0, at) not in denied:
            return True
        at = line.find(part, at + 1)
    return False


def _denied(words: list[str]) -> frozenset[int]:
    """Return the places of words that a negation before them denies."""
    denied: set[int] = set()
    for at, word in enumerate(words):
        if word not in _NEGATIONS and f"{words[at - 1] if at else ''} {word}" not in _NEGATIONS:
            continue
        for follower in range(at + 1, min(at + 1 + WITHIN, len(words))):
            if words[follower] in {"but", "only", _BREAK}:
                break
            denied.add(follower)
    return frozenset(denied)
