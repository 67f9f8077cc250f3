"""The transcript of a run for people to read: who said what, turn by turn, from a log of any form.

    for turn in turns(log):
        print(turn.role, turn.text)

Nothing is judged by it: what a trace shows for an assessment is in `certkit.record.trace`. The text is that
of the log, and hostile; who prints it makes it visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from certkit.record.trace import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator


class SpokenTurn(NamedTuple):
    """One turn of a conversation: the role of the speaker, and what is said, tool calls included."""

    role: str
    text: str


def turns(log: bytes) -> tuple[SpokenTurn, ...]:
    """Return the turns of a run: its messages, else its events, else the whole log as one turn.

    Args:
        log: the JSON of a run as a trace file holds it.

    Raises:
        MsgspecError: it is no JSON.
        InputError: it would take too much memory.
    """
    value = decoded(log, Any)
    members = value if isinstance(value, dict) else {}
    for name in ("messages", "traj"):
        if isinstance(messages := members.get(name), list) and messages:
            return tuple(_turn(message) for message in messages)
    if isinstance(events := members.get("events"), list) and events:
        return tuple(SpokenTurn(_word(event, "event"), _json(event)) for event in events)
    return (SpokenTurn("log", _json(value)),)


def _turn(message: Any) -> SpokenTurn:
    if not isinstance(message, dict):
        return SpokenTurn("?", _json(message))
    parts = [_content(message.get("content")), *_calls(message.get("tool_calls"))]
    if message.get("error"):
        parts.append(f"error: {_content(message['error'])}")
    return SpokenTurn(_word(message, "role"), "\n".join(filter(None, parts)))


def _word(value: Any, key: str) -> str:
    word = value.get(key) if isinstance(value, dict) else None
    return word if isinstance(word, str) and word else "?"


def _content(content: Any) -> str:
    """Return the text of a content, which logs write as a text or as a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content if isinstance(content, list) else [content]:
        texts_of_part = [part.get("text"), part.get("content")] if isinstance(part, dict) else [part]
        texts.append(next((text for text in texts_of_part if isinstance(text, str)), None) or _json(part))
    return "\n".join(texts)


def _calls(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        inner = call.get("function") if isinstance(call, dict) else None
        called = inner if isinstance(inner, dict) else call
        if not isinstance(called, dict):
            yield f"calls {_json(call)}"
            continue
        name = next((word for key in ("name", "function") if isinstance(word := called.get(key), str)), "?")
        arguments = next((called[key] for key in ("arguments", "args", "input") if key in called), None)
        yield f"calls {name}({arguments if isinstance(arguments, str) else _json(arguments)})"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
