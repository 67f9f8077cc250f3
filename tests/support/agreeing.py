"""A changed statement made to agree with itself again, for tests that look at something else."""

from __future__ import annotations

from typing import Any

import msgspec

from certkit.passport import derived
from certkit.passport.statement import Statement, plain


def agree(document: dict[str, Any]) -> dict[str, Any]:
    """Write the parts of a statement that follow from the others, in place; return the statement."""
    predicate = msgspec.convert(document, Statement).predicate
    stated = {challenge.code for challenge in predicate.challenges}
    document["predicate"]["challenges"] += [
        {"code": code, "severity": severity, "message": code}
        for code, severity in derived.challenges(predicate).items()
        if code not in stated
    ]
    predicate = msgspec.convert(document, Statement).predicate
    rebuilt = plain(derived.rebuilt(predicate))
    document["predicate"].update(rebuilt["predicate"])
    return document
