"""The published JSON Schemas of what follows from assessments: comparison, recheck and its claims."""

from __future__ import annotations

from typing import Any, Final

from certkit.assessment.compare.comparison import COMPARISON_SCHEMA
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.recheck import CLAIMS_SCHEMA, KINDS, RECHECK_SCHEMA, Head
from certkit.assessment.recheck.claim import State as Found
from certkit.schema import (
    COUNT,
    DIALECT,
    DIGEST,
    FLAG,
    NUMBER,
    SHARE,
    SOME,
    TEXT,
    Schema,
    by_name,
    closed,
    document,
    listed,
    optional,
    or_null,
)


def comparison_schema() -> Schema:
    """Return the schema of the document that ``certkit compare --json`` prints."""
    side = closed(
        bundle=DIGEST,
        sealed=FLAG,
        origin={"enum": ["measured", "simulated"]},
        records=COUNT,
        agent=closed(name=TEXT, version=TEXT, digest=DIGEST),
    )
    made = document(
        COMPARISON_SCHEMA,
        "Two agents compared on their evidence; every difference is A less B.",
        tool=closed(name={"const": "certkit"}, version=TEXT),
        split=TEXT,
        a=side,
        b=side,
        alpha=SHARE,
        seed=COUNT,
        draws=SOME,
        answer=closed(metric={"enum": list(CATALOGUE)}, better=_BETTER, words=TEXT),
        metrics=by_name(_compared(), list(CATALOGUE)),
        domains=listed(_domain()),
        rates=by_name(_bootstrap()),
        anova=or_null(_anova()),
        orders=closed(spearman=or_null(_ref("rank")), kendall=or_null(_ref("rank"))),
        manners=or_null(closed(a=_manner(), b=_manner())),
        not_alike=listed(closed(item=TEXT, a=or_null(TEXT), b=or_null(TEXT))),
        caveats=listed(TEXT),
        exit_code=COUNT,
    )
    return {**made, "$defs": _shared()}


_BETTER: Final[Schema] = {"enum": ["a", "b", None]}
_MAYBE: Final[Schema] = or_null(NUMBER)
_PAIR: Final[Schema] = {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _shared() -> dict[str, Schema]:
    interval = closed(low=NUMBER, high=NUMBER, level=SHARE, method=TEXT)
    side = closed(
        state={"enum": [state.value for state in State]},
        value=_MAYBE,
        n=COUNT,
        successes=or_null(COUNT),
        reason=or_null(TEXT),
    )
    rank = closed(
        n=COUNT, value=_MAYBE, p=or_null(SHARE), method={"enum": ["exact", "asymptotic", None]},
        reason=or_null(TEXT),
    )  # fmt: skip
    return {
        "interval": optional(interval, seed=COUNT, draws=SOME),
        "side": side,
        "test": closed(statistic=NUMBER, p=SHARE, df=_MAYBE),
        "matched": _matched(),
        "rank": rank,
    }


def _matched() -> Schema:
    robust = closed(
        se=_MAYBE, df=_MAYBE, t=_MAYBE, p=or_null(SHARE), interval=or_null(_ref("interval")),
        reason=or_null(TEXT),
    )  # fmt: skip
    return closed(
        a=NUMBER,
        b=NUMBER,
        difference=NUMBER,
        runs=_PAIR,
        cells=COUNT,
        paired=FLAG,
        tasks=COUNT,
        clusters=_PAIR,
        blocked=FLAG,
        robust=robust,
        permutation=closed(
            p=SHARE,
            method={"enum": ["exact", "monte-carlo"]},
            arrangements=COUNT,
            least=SHARE,
            seed=or_null(COUNT),
        ),
        bootstrap=or_null(_ref("interval")),
    )


def _compared() -> Schema:
    per_run = closed(
        warning=TEXT,
        z=or_null(_ref("test")),
        newcombe=or_null(_ref("interval")),
        cohen_h=_MAYBE,
        welch=or_null(_ref("test")),
        cohen_d=_MAYBE,
        hedges_g=_MAYBE,
    )
    return closed(
        unit={"enum": [unit.value for unit in Unit]},
        a=_ref("side"),
        b=_ref("side"),
        better=_BETTER,
        p_holm=or_null(SHARE),
        matched=or_null(_ref("matched")),
        per_run=or_null(per_run),
        notes=listed(TEXT),
        reason=or_null(TEXT),
    )


def _domain() -> Schema:
    return closed(
        domain=TEXT,
        a=_ref("side"),
        b=_ref("side"),
        matched=or_null(_ref("matched")),
        p_holm=or_null(SHARE),
        better=_BETTER,
        reason=or_null(TEXT),
    )


def _bootstrap() -> Schema:
    return closed(
        value=NUMBER, low=_MAYBE, high=_MAYBE, by=TEXT, blocks=_PAIR, level=SHARE, draws=COUNT, seed=COUNT,
        method=TEXT,
    )  # fmt: skip


def _anova() -> Schema:
    effect = or_null(closed(ss=NUMBER, df=COUNT, f=NUMBER, p=SHARE, eta=NUMBER))
    cell = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
    return closed(
        observation=TEXT,
        sums_of_squares=TEXT,
        observations=COUNT,
        agent=effect,
        domain=effect,
        interaction=effect,
        error=closed(ss=NUMBER, df=COUNT),
        tukey=listed(
            closed(first=cell, second=cell, difference=NUMBER, q=NUMBER, p=SHARE, interval=_ref("interval"))
        ),
        reason=or_null(TEXT),
    )


def _manner() -> Schema:
    counted = closed(successes=COUNT, n=COUNT, value=or_null(SHARE))
    return closed(
        intentional=counted,
        trial_and_error=counted,
        unknown=COUNT,
        difference=_MAYBE,
        z=or_null(_ref("test")),
        newcombe=or_null(_ref("interval")),
        cohen_h=_MAYBE,
        warning=TEXT,
    )


def recheck_schema() -> Schema:
    """Return the schema of the document that ``certkit recheck --json`` prints."""
    states = [state.value for state in Found]
    return document(
        RECHECK_SCHEMA,
        "What arithmetic says of published claims; the worst first.",
        id=TEXT,
        title=or_null(TEXT),
        sources=listed(TEXT),
        counts=closed(**dict.fromkeys(states, COUNT)),
        exit_code=COUNT,
        claims=listed(
            closed(
                id=TEXT,
                kind={"enum": list(KINDS)},
                where=TEXT,
                printed=TEXT,
                state={"enum": states},
                arithmetic=TEXT,
                computed=or_null(closed(low=NUMBER, high=NUMBER)),
                missing=listed(TEXT),
            )
        ),
    )


def claims_schema() -> Schema:
    """Return the schema of a file of claims, once its TOML is parsed with its decimals as text."""
    body: dict[str, Any] = Head.model_json_schema(by_alias=True)
    definitions = body.pop("$defs", {})
    forms = []
    for kind, form in KINDS.items():
        made = form.model_json_schema(by_alias=True)
        definitions |= made.pop("$defs", {})
        made["properties"]["kind"] = {"const": kind}
        definitions[kind] = made
        forms.append({"$ref": f"#/$defs/{kind}"})
    body["properties"]["claims"]["items"] = {"oneOf": forms}
    about = {"title": "certkit claims", "description": "Published claims, for 'certkit recheck'."}
    return {
        "$schema": DIALECT,
        "$id": CLAIMS_SCHEMA,
        **body,
        **about,
        "$defs": dict(sorted(definitions.items())),
    }
