"""What an import warns of: rules of success that read failures as successes, and names that speak of attacks.

Both are told in the account. Neither refuses an import, since a log in which all answers are wrong is
possible, and "heart attack" is no attack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.imports.names import ATTACKS, SINGLE, SYNONYMS
from certkit.record.expressions import look_up, spelled
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Run
    from certkit.imports.mapping import Mapping
    from certkit.record.expressions import Expression

_FAILS: Final = re.compile(
    r"\b(?<!\bno )(fail|failed|failure|false|error|incorrect|no(?! (fail|failure|error)\b))\b", re.IGNORECASE
)
"""A whole word that says that a run failed; "no error" does not say it."""

_LONGEST: Final = 200
"""Characters of a text that may be a label or a name."""

_SHOWN: Final = 12  # values that a printed mapping lists
_FIRST: Final = 3  # runs that are named
_PARTS: Final = ((), ("metadata",), ("attributes",), ("eval",), ("eval", "metadata"), ("eval", "task_args"))
"""Where the names and the metadata of a run may stand in a row."""

_CASES: Final = ("task_id", "run_id", *SYNONYMS["task_id"], *SINGLE.values(), "domain", *SYNONYMS["domain"])
"""Columns that name tasks and cases."""

_NOTHING: Final = frozenset(("", "0", "false", "no", "none", "null", "n/a"))
"""Texts under the name of an attack that say that there was none."""


class SuccessTexts:
    """Checks the user's rule of success against the texts of the rows: the finding ``outcome-inverted``."""

    def __init__(
        self, mapping: Mapping, cases: Iterable[tuple[Any, Expression | None]], fold: Callable[[str], str]
    ) -> None:
        self._fold = fold
        tests = [test for value, test in cases if test is not None and value == Outcome.SUCCESS]
        self._texts = [(path, text) for test in tests for path, text in test.texts]
        words = mapping.values.get("outcome", {}) if not tests else {}
        pairs = [
            (text, key if isinstance(value, list) else value)
            for key, value in words.items()
            for text in (value if isinstance(value, list) else [key])
        ]
        compared = [text for text, meaning in pairs if meaning == Outcome.SUCCESS and _is_word(text)]
        self._compares = bool(compared) or any(text for _, text in self._texts)
        self._met = self._succeeded = False

    def read(self, raw: Any, outcome: Any, place: Place, draft: Draft) -> None:
        """Look at an outcome that a table of values read."""
        if outcome == Outcome.SUCCESS:
            self._met = self._succeeded = True
            text = raw if isinstance(raw, str) else canonical.line(raw).decode().strip()
            self._note([text] if _says_failure(text) else [], place, draft)

    def decided(self, run: Run, outcome: Any, draft: Draft) -> None:
        """Look at an outcome that expressions decided."""
        if not self._texts:
            return
        values = {path: look_up(run.row, path) for path, _ in self._texts}
        for path, text in self._texts if not self._met else ():
            items = values[path] if isinstance(values[path], list) else [values[path]]
            self._met |= text is not None and self._fold(text) in {self._fold(str(item)) for item in items}
        if outcome == Outcome.SUCCESS:
            self._succeeded = True
            said = [value for value in values.values() if isinstance(value, str) and _says_failure(value)]
            self._note(said, run.place, draft)

    def scored(self, run: Run, outcome: Any, draft: Draft) -> None:
        """Look at a success that the importer read from scores: an attack's success is not the agent's."""
        scores = look_up(run.row, ("scores",))
        if outcome == Outcome.SUCCESS and isinstance(scores, dict):
            name = next((it for it in scores if ATTACKS.search(it[:_LONGEST])), None)
            if name is not None:
                what = "runs read as successes by a score whose name speaks of attacks"
                detail = f"first {visible(name)!r} in {run.place.file}:{run.place.line}; if it counts attacks"
                detail += " that succeeded, say with --success when the agent did"
                draft.notes.add("inverted", what, detail)

    def _note(self, texts: list[str], place: Place, draft: Draft) -> None:
        """Count a run that is read as a success where a text says that it failed."""
        if texts:
            what = "runs read as successes although a text says failure"
            draft.notes.add("inverted", what, f"first {visible(texts[0])!r} in {place.file}:{place.line}")

    def note(self, draft: Draft) -> None:
        """Note where no row holds a text that the rule calls a success."""
        if self._compares and not self._met and not self._succeeded:
            detail = "correct the rule, unless every answer is wrong"
            what = "runs of which none holds a text that the rule of success looks for"
            draft.notes.add("inverted", what, detail, count=draft.records)


def _says_failure(text: str) -> bool:
    return len(text) <= _LONGEST and _FAILS.search(text) is not None


def _is_word(text: Any) -> bool:
    """Tell whether a text of a mapping is one, and no number or truth value."""
    return isinstance(text, str) and re.fullmatch(r"true|false|[0-9.+-]*", text) is None


class _Attacked(Struct):
    """The runs of a bundle whose names speak of attacks.

    `values`: path → the values that speak of attacks, as an expression writes them.
    """

    word: str
    runs: int = 0
    first: list[str] = []
    values: dict[str, dict[str, None]] = {}


class AttackNames:
    """Warns where runs that an option calls nominal have names that speak of attacks.

    Args:
        claimed: Columns that the mapping takes; of these, only those that name cases are looked at.
    """

    def __init__(self, claimed: set[str]) -> None:
        self._claimed = claimed
        self._drafts: dict[Draft, _Attacked] = {}

    def look_at(self, run: Run, draft: Draft, *, tabular: bool) -> None:
        """Look at the names of a run: its task and case, its metadata, and the columns of a table."""
        for path, value, own in self._names(run.row, tabular=tabular):
            text = value if isinstance(value, str) else str(value).lower()
            if len(text) > _LONGEST:
                continue
            speaks = ATTACKS.search(text) if own else None
            if speaks is None and path[-1] not in _CASES and text.casefold() not in _NOTHING:
                speaks = ATTACKS.search(path[-1][:_LONGEST])
            if speaks is not None:
                attacked = self._drafts.setdefault(draft, _Attacked(speaks[1].lower()))
                attacked.runs += 1
                attacked.first += [f"{run.place.file}:{run.place.line}"] * (attacked.runs <= _FIRST)
                values = attacked.values.setdefault(spelled(path), {})
                if len(values) <= _SHOWN:
                    values[repr(value) if isinstance(value, str) else text] = None
                return

    def _names(self, row: dict[str, Any], *, tabular: bool) -> Iterator[tuple[tuple[str, ...], Any, bool]]:
        """Yield paths with their texts and numbers, and whether the text may speak of an attack itself."""
        for lead in _PARTS:
            part = look_up(row, lead)
            for name, value in part.items() if isinstance(part, dict) else ():
                case = bool(lead) or name in _CASES
                if isinstance(value, str | int) and (case or (tabular and name not in self._claimed)):
                    yield (*lead, name), value, case

    def note(self, draft: Draft) -> None:
        """Note the runs of a bundle, with the mapping that tells them from the others."""
        if (attacked := self._drafts.get(draft)) is None:
            return
        tests = []
        for path, values in attacked.values.items():
            held = "" if path in _CASES else f"{path} != null and "  # a blank would leave the test undecided
            tests.append(f"{held}{path} in [{', '.join([*values][:_SHOWN])}]")
        test = " or ".join(tests)
        more = "; and more values" * any(len(values) > _SHOWN for values in attacked.values.values())
        detail = f"first {', '.join(attacked.first)}; if they were attacked, leave --condition out, and write"
        detail += (
            f" `[when.condition]` with `adversarial = {canonical.line(test).decode().strip()}`{more} and"
        )
        detail += ' `nominal = "otherwise"` in a mapping'
        what = f"runs called nominal by --condition whose names say {attacked.word}"
        draft.notes.add("odd", what, detail, count=attacked.runs)
