"""Phrases that a reader who does not know this project has to read twice, and plain words for each.

They are looked for in the code with its comments and messages, the pages (decisions aside: they record what
was thought at the time), the templates (the probes' prompts aside) and the README. A phrase may be broken
over lines, comment marks and quotation marks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]

# A pattern of words, and what to say instead.
RIDDLES: Final = {
    "binds? no(?:body|thing)": "is ignored: registers nothing and blocks nothing",
    "whose words?": "name who decides, or what counts as evidence",
    "gives? way to": "is replaced by, comes after",
    "at worst": "the lowest, the largest loss",
    "(?:is|are) worth": "effective sample size; informs as N independent runs would",
    "(?:as|say) much as .{1,40} equal ones": "inform as N equal ones would",
    "of whatever": "name it",
    "whomever": "name them: writer, auditor, anyone",
    "keeps? to, asked": "rules that every entry must satisfy",
    "what (?:no|nobody|whoever)": "say who cannot do what",
    "(?:the|its) (?:later|earlier|older|newer) (?:can|cannot|is|are|was|has|must|may|holds)":
        "add the noun: the later passport",
    "mends?": "correct, repair",
    "(?:is|are) told (?:by|of)": "say who reports it",
    "asked (?:of|by)": "checked for, required of; say who asks",
    "in silence": "silently; or say what the user sees",
    "takes? it as": "treat as, assume",
    "nobody but": "only",
    "of which (?:the|it|its|a|one|he|they)": "begin a new sentence with the noun",
    "by (?:what|whose) ": "say who does it",
    "for whom": "say for which",
    "best that any": "the highest lower limit of",
    "says? nothing of": "does not tell whether",
    "speaks? for": "belongs to, names",
    "hangs? together": "are correlated, belong to one cluster",
    "is decided (?:in|on)": "say what the lock or the rule guarantees",
    "(?:is|are) charged": "counts as a loss, lowers",
    "leaves? with": "exits with",
    "go(?:es)? by": "uses, follows",
    "hangs? on": "depends on",
    "by the words? of": "say who does it",
    "held against": "compared with",
    "came to": "result",
    "whose turn": "say who holds the lock",
    "pass(?:es)? far more often than": "makes false passes likely",
    "by other evidence": "say where the other evaluation stands",
    r"falls? if [\s\S]{1,60}were judged": "say who wrongly passed which runs, and the tier that is missed",
}  # fmt: skip

_GAP: Final = (
    r'(?:[\s"#>]|\bf")+'  # between two words: a space, a line's end, a comment's or a quotation's mark
)
PATTERNS: Final = {
    riddle: re.compile(rf"\b(?:{riddle.strip().replace(' ', _GAP)})\b", re.IGNORECASE) for riddle in RIDDLES
}


def read_texts() -> Iterator[tuple[Path, str]]:
    """Yield every text that readers meet, with its path."""
    yield ROOT / "README.md", (ROOT / "README.md").read_text(encoding="utf-8")
    for folder, endings in (
        ("certkit", {".py"}),
        ("docs", {".md"}),
        ("templates", {".j2", ".html", ".md", ".toml"}),
    ):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and not {"decisions", "families.toml"} & set(path.parts):
                yield path, path.read_text(encoding="utf-8")


def riddles() -> list[str]:
    """Return every place where a phrase of the table stands: file, line, the phrase, and better words."""
    found = []
    for path, text in read_texts():
        for riddle, pattern in PATTERNS.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                said = " ".join(match[0].split())
                found.append(f"{path.relative_to(ROOT)}:{line}: “{said}”: better: {RIDDLES[riddle]}")
    return sorted(found)
