"""Agents for tests: functions that `python:tests.support.agents:NAME` names, and programs in one file."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS: list[str] = []

PROGRAM = """
import json, os, subprocess, sys, time
how = sys.argv[1]
for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if how == "dies" and number == 3: os._exit(9)
    if how == "leaves-a-child":  # that holds the pipes, and outlives the program
        subprocess.Popen(["sleep", "20"], start_new_session=True)
    if how in {"hangs", "leaves-a-child"}: time.sleep(60)
    if how == "floods": print("x" * 3_000_000)
    if how == "babbles": print("hello")
    elif how == "other-id": print(json.dumps({"id": 0, "text": "x"}))
    else: print(json.dumps({"id": asked["id"], "text": f"{os.getpid()} {len(asked['prompt'])}"}))
    sys.stdout.flush()
"""


def program(path: Path, how: str) -> str:
    """Write a program, and return the spec that names it."""
    path.write_text(PROGRAM)
    return f"command:{sys.executable} {path} {how}"


def remembers(prompt: str) -> str:
    PROMPTS.append(prompt)
    return f"reply number {len(PROMPTS):04} – ž"


def raises(_: str) -> str:
    raise SystemExit(3)


class HiddenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("hidden")


class Worded(str):
    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        raise RuntimeError("no bytes")


def raises_what_cannot_be_shown(_: str) -> str:
    raise HiddenError


def returns_what_only_looks_like_text(_: str) -> str:
    return Worded("x")


def fails_at_first(prompt: str) -> str:
    PROMPTS.append(prompt)
    if len(PROMPTS) <= 4:
        raise ValueError("filtered")
    return "x"


def sleeps(_: str) -> str:
    time.sleep(5)
    return "late"


def returns_nothing(_: str) -> None:
    return None


def floods(_: str) -> str:
    return "x" * 1_000_001


def talks_too_much(_: str) -> str:
    return "\ud800" + "x" * 30_000
