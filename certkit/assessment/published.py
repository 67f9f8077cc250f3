"""The published JSON Schemas of what follows from assessments: drift, comparison, recheck and its claims."""

from __future__ import annotations

from typing import Final, get_args

from certkit.assessment.drift import DRIFT_SCHEMA, Result
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.evidence.records.record import Condition
from certkit.schema import (
    COUNT,
    DIGEST,
    FLAG,
    NUMBER,
    SHARE,
    TEXT,
    TIER,
    Schema,
    closed,
    document,
    listed,
    or_null,
)

_ID: Final[Schema] = or_null(DIGEST)
_SIDE: Final[Schema] = closed(
    passport_id=_ID,
    signature={"enum": ["trusted", "not_checked", "none"]},
    doubts={**listed(TEXT), "description": "steps of the verification that failed although it is signed"},
)
DRIFT: Final[dict[str, Schema]] = {
    "result": {"enum": list(get_args(Result))},
    "exit_code": COUNT,
    "identity": listed(closed(role=TEXT, old=or_null(TEXT), new=or_null(TEXT))),
    "behaviour": listed(
        closed(
            criterion=TEXT,
            metric={"enum": list(CATALOGUE)},
            domain=or_null(TEXT),
            condition=or_null({"enum": [condition.value for condition in Condition]}),
            unit={"enum": [unit.value for unit in Unit]},
            old=or_null(NUMBER),
            new=or_null(NUMBER),
            n=closed(old=COUNT, new=COUNT),
            clusters=closed(old=COUNT, new=COUNT),
            difference={**or_null(NUMBER), "description": "the change for the worse, in the row's unit"},
            margin=or_null(NUMBER),
            standard_error=or_null(NUMBER),
            degrees_of_freedom=or_null(NUMBER),
            probability={**or_null(SHARE), "description": "one-sided, of no loss; null where not tested"},
            state={"enum": ["WORSE", "BETTER", "EQUIVALENT", "UNDERPOWERED"]},
            flagged=FLAG,
            reason={**or_null(TEXT), "description": "why the row was not tested"},
        )
    ),
    "tier": closed(old=TIER, new=TIER),
    "reasons": listed(TEXT),
}
"""What `Drift.to_dict` holds beside the name of its schema."""


def drift_schema() -> Schema:
    """Return the schema of the document that ``certkit drift --json`` prints."""
    return document(
        DRIFT_SCHEMA,
        "An agent compared with itself at a later time.",
        **DRIFT,
        sides=closed(old=_SIDE, new=_SIDE),
    )
