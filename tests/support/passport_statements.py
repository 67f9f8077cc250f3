"""The statements that the passport vectors start from, as certkit issues them.

    python -m tests.support.passport_statements --write

The maker of the vectors uses nothing of certkit: it reads these statements as data, edits and signs them.
Their figures can be checked by eye: 12 of 16 runs under faults succeed, and the profile asks for one half.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from certkit.assessment.assessment import Answer, Question
from certkit.assessment.bundles import assess_bundles
from certkit.assessment.evaluation import evaluate
from certkit.ground import canonical
from certkit.passport.issue import issue
from tests.support.passport_parts import BUNDLES, LAB, PROFILE, STATEMENTS, digest, laid_out

BEGINS = datetime(2026, 2, 1, tzinfo=UTC)
ANSWER = Answer(code="success-with-attack", by="Ana", agreed_by="Ravi")


def statements() -> dict[str, Any]:
    """Return each statement by its name, as JSON values."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "house.toml").write_text(PROFILE, encoding="utf-8")
        return {
            kind: _issued(folder, kind, *parts)
            for kind, *parts in (
                ("plain", "plain"),
                ("better", "better"),
                ("specimen", "simulated"),
                ("contested", "contested"),
                ("answered", "contested"),
                ("pooled", "plain", "second"),
                ("late", "late"),
            )
        }


def _issued(folder: Path, kind: str, *parts: str) -> Any:
    bundles = [laid_out(BUNDLES[part], folder / part) for part in parts]
    judged = assess_bundles(bundles, str(folder / "house.toml"))
    answered = kind == "answered"
    if answered:
        question = structs.replace(Question(), answers=(ANSWER,))
        judged = evaluate(judged.summary, judged.facts, judged.profile, question)
    passport = issue(
        judged,
        issuer="Example Lab",
        key=LAB,
        not_before=datetime(2026, 2, 14, 23, 58, tzinfo=UTC) if kind == "late" else BEGINS,
        not_after=datetime(2026, 5, 2, tzinfo=UTC),
        relation_to_developer="independent",
        context=canonical.Digest(digest("context")) if answered else None,
    )
    return canonical.loads(passport.payload)


def text() -> str:
    """Return the file: a statement in each line."""
    lines = (f'"{name}": {canonical.line(value).decode().strip()}' for name, value in statements().items())
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__" and "--write" in sys.argv:
    STATEMENTS.write_text(text(), encoding="utf-8")
