"""What readers meet is said in plain words: no phrase of `tests.support.words` is left."""

from __future__ import annotations

import pytest

from tests.support import words


@pytest.mark.parametrize(
    "text",
    [
        '"""What a\n    writer keeps to,\n    asked of."""',
        "# nobody\n    # but",
        '"binds "\n f"nobody"',
        "# passes far more\n# often than its confidence says",
        '"the log holds 1 by "\n"other evidence"',
        "falls if 4.8 %\nof failures were judged successes",
    ],
)
def test_a_phrase_is_seen_over_lines(text: str) -> None:
    assert any(pattern.search(text) for pattern in words.PATTERNS.values())


@pytest.mark.parametrize(
    "text", ["it goes by it", "they go by it", "it hangs on it", "they hang on it", "by the\n# words of it"]
)
def test_both_forms_of_a_verb_are_seen(text: str) -> None:
    assert any(pattern.search(text) for pattern in words.PATTERNS.values())


def test_no_riddle_is_left() -> None:
    found = words.riddles()
    assert not found, "\n".join(found)
