"""Help as it is printed: lists of commands, and examples that can be copied."""

from __future__ import annotations

import pytest

from certkit.cli.main import TABLE
from tests.generate import commands
from tests.support.running import certkit

ALL = [words[1:] for words, _ in commands()]
GROUPS = [words[1:] for words, command in commands() if hasattr(command, "commands")]


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


def test_a_line_of_the_table_is_the_beginning_of_the_help() -> None:
    helps = {words[1:]: command.help for words, command in commands()}
    assert len(TABLE) + len(GROUPS) == len(helps)
    for row in TABLE:
        assert " ".join((helps[tuple(row.words.split())] or "").split()).startswith(row.help), row
