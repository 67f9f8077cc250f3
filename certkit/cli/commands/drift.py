"""``certkit drift``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import clock, output
from certkit.cli.options import Jobs, Json, Quiet, Verbose

if TYPE_CHECKING:
    from certkit.assessment.drift import Drift, Row
    from certkit.assessment.drift.rows import Mean
    from certkit.passport.comparing import Comparison, Side

_RESULTS: Final = {
    "STABLE": "a loss of the margin in r_op is excluded, and no row shows that it got worse",
    "DRIFTED": "it behaves worse",
    "IDENTITY_CHANGED": "the agent is not the same, though no row shows that it got worse",
    "UNDERPOWERED": "no row shows that it got worse, and a loss in r_op is not excluded",
    "NOT_COMPARABLE": "the two sides measure different things",
}
_NAME, _VALUE, _RUNS, _LOSS = 29, 7, 8, 8


def drift(
    old: Annotated[
        Path,
        typer.Argument(metavar="OLD", help="A passport, a PDF with one attached, or the folder of a bundle."),
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The later one, of either kind.")],
    trust: Annotated[
        Path | None,
        typer.Option(
            "-t",
            "--trust",
            metavar="FILE",
            envvar="CERTKIT_TRUST",
            help="The trust policy by which signatures are checked. Default: they are not checked.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--profile",
            help="The profile that a bundle is judged under. Default: that of the passport, or hb-eval-2026.",
        ),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare an agent with itself at a later time: whether it is the same, and behaves as well.

    Every row is tested for a loss of at least the profile's margin over tasks; tasks that both sides ran are
    paired, and the old mix of domains and faults counts. No raw evidence of a passport is needed. Exit
    code 0: STABLE; 5: DRIFTED or IDENTITY_CHANGED; 4: UNDERPOWERED or NOT_COMPARABLE.

    Example: certkit drift january/passport.json april/passport.json --trust trust.json
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.cli.policy import load  # noqa: PLC0415 - the same
    from certkit.cli.views.bar import progress  # noqa: PLC0415 - the same

    found = workflow.drift(
        old,
        new,
        profile=profile,
        trust=load(trust) if trust else None,
        at=clock.now(),
        jobs=jobs,
        progress=progress(hidden=quiet or json),
    )
    if json:
        output.document(found.to_dict())
    elif not quiet:
        _show(found, verbose=verbose)
    raise typer.Exit(found.drift.exit_code)


def _show(found: Comparison, *, verbose: bool) -> None:
    drift = found.drift
    worse = sum(row.flagged for row in drift.behaviour)
    rows = f", in {worse} of {output.counted(len(drift.behaviour), 'row')}" if worse else ""
    output.wrapped(f"{drift.result}: {_RESULTS[drift.result]}{rows}")
    output.wrapped(f"tier: {_tier(drift.old_tier)} before, {_tier(drift.new_tier)} now")
    output.wrapped(_signatures(found.old, found.new))
    for name, side in (("old", found.old), ("new", found.new)):
        for doubt in side.doubts:
            _item(f"the {name} passport fails a later step of verification: {doubt}", first="")
    if drift.identity:
        output.say()
        output.say("Identity:")
        for change in drift.identity:
            _item(f"{change.role}: {change.old or 'nothing'} -> {change.new or 'nothing'}")
    if drift.behaviour:
        output.say()
        _table(drift, verbose=verbose)
    if drift.trend is not None:
        output.wrapped(f"trend: {drift.trend.sentence}{', a decline' if drift.trend.flagged else ''}")
    output.say()
    output.say("Reasons:")
    for reason in drift.reasons:
        if not reason.startswith("identity: "):
            _item(reason)


def _item(text: str, *, first: str = "  ") -> None:
    output.wrapped(text, first=first, rest=first + "  ")


def _tier(number: int) -> str:
    return f"Tier {number}" if number else "no tier"


def _signatures(old: Side, new: Side) -> str:
    """Say what is known of the signatures, in one sentence that stands above all figures."""
    found = {side.signature for side in (old, new)} - {"none"}
    if not found:
        return "no signatures: both sides are bundles"
    if found == {"trusted"}:
        return "signatures checked: every passport is signed by an issuer whom the policy trusts"
    return "SIGNATURES NOT CHECKED: name a trust policy with --trust"


def _table(drift: Drift, *, verbose: bool) -> None:
    output.say(
        f"{'row':<{_NAME}}{'old':>{_VALUE}}{'tasks':>{_RUNS}}{'new':>{_VALUE}}{'tasks':>{_RUNS}}"
        f"{'loss':>{_LOSS}} state"
    )
    for row in drift.behaviour:
        name = output.cut(row.name, _NAME - 1)
        loss = f"{row.found.loss:+.3f}" if row.found else "-"
        state = "not tested" if row.reason else row.state
        output.say(f"{name:<{_NAME}}{_side(row.old)}{_side(row.new)}{loss:>{_LOSS}} {state}")
        if verbose and row.is_tested:
            output.say(f"  {_details(row)}")
    output.wrapped(
        "loss: the change for the worse, in the row's unit. WORSE is drift, BETTER a gain; EQUIVALENT: no"
        " change as large as the margin; UNDERPOWERED: none of these is shown."
    )


def _side(side: Mean | None) -> str:
    if side is None:
        return f"{'-':>{_VALUE}}{0:>{_RUNS}}"
    return f"{side.value:>{_VALUE}.3f}{side.tasks:>{_RUNS},}"


def _details(row: Row) -> str:
    margin = "no margin" if row.margin is None else f"margin {float(row.margin):g}"
    se = row.found.se if row.found else 0.0
    return f"{margin}, se {se:.4f}, adjusted p {row.p:.2g}, at most {row.limit:+.3f}"
