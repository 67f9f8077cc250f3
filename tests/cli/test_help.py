"""Help as it is printed: lists of commands, and examples that can be copied."""

from __future__ import annotations

import re
from typing import Any

import pytest

from certkit.cli.main import TABLE, Group, Row
from tests.generate import commands
from tests.support.running import certkit

ALL = [words[1:] for words, _ in commands()]
GROUPS = [words[1:] for words, command in commands() if hasattr(command, "commands")]
LONG = [
    (words[1:], example[1])
    for words, command in commands()
    if (example := re.search(r"^Example: (.*)$", command.help or "", re.MULTILINE)) and len(example[1]) > 60
]


def helped(words: tuple[str, ...]) -> str:
    done = certkit(*words, "--help")
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_help_that_fits(words: tuple[str, ...]) -> None:
    shown = helped(words)
    assert shown.startswith("Usage: certkit ")
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    if words not in GROUPS:
        assert "Example: certkit " + " ".join(words) in shown


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_list_of_commands_breaks_off_nowhere(words: tuple[str, ...]) -> None:
    listed = helped(words).partition("Commands:\n")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(("words", "example"), LONG, ids=lambda value: " ".join(value)[:40] if value else "")
def test_a_long_example_can_be_copied(words: tuple[str, ...], example: Any) -> None:
    shown = helped(words).partition("Example: ")[2].partition("\n\n")[0]
    joined = shown.replace(" \\\n", " ")  # as a shell does
    assert "\n" not in joined
    assert re.sub(" +", " ", joined) == example


def test_a_line_of_the_table_is_the_beginning_of_the_help() -> None:
    helps = {words[1:]: command.help for words, command in commands()}
    rows: list[tuple[tuple[str, ...], Row | Group]] = [((row.name,), row) for row in TABLE]
    rows += [
        ((group.name, row.name), row) for group in TABLE if isinstance(group, Group) for row in group.rows
    ]
    assert len(rows) == len(helps) - 1
    for words, row in rows:
        assert " ".join((helps[words] or "").split()).startswith(row.help), words
