"""``certkit assess``."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from certkit import workflow
from certkit.assessment.drift import NOT_COMPARABLE
from certkit.assessment.result import Baseline, moment
from certkit.assessment.words import serious
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, progress
from certkit.cli.views.assessment import REFUSED, compared, show_assessment
from certkit.ground import canonical, files
from certkit.ground.errors import Exit, InputError, NegativeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def assess(
    bundles: opt.BundleFolders,
    profile: opt.ProfileName = "hb-eval-2026",
    require_tier: Annotated[
        int, opt.REQUIRE_TIER(help="The tier that the exit code speaks of.", envvar="CERTKIT_REQUIRE_TIER")
    ] = 1,
    answers: opt.ContextFile = None,
    out: Annotated[Path | None, opt.OUT(help="Also write the assessment (JSON) to this file.")] = None,
    force: opt.Force = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="EARLIER",
            help="Fail where it drifted against this earlier passport or bundle.",
        ),
    ] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 whatever the verdict; errors still count.")
    ] = False,
    verbose: opt.Verbose = False,
) -> None:
    """Judge a bundle of evaluation records against a tier table, or several bundles of one agent together.

    Reads every record, recomputes every metric, and tells which tier the evidence shows, what fails, what
    has no evidence, and what to measure next. Of several bundles all runs are pooled, and each is also shown
    alone. Exit code 0: the required tier is met; 1: a measured criterion fails; 4: evidence is missing, or
    serious findings contest the verdict, or --baseline cannot be compared; 5: nothing fails, but the agent
    drifted against --baseline; 3: the bundle is malformed.

    Example: certkit assess bundle/ --require-tier 2 -o assessment.json
    """
    workflow.refuse_inside(bundles, out)
    context.check_outputs(out, force=force)
    given = None if answers is None else workflow.load_context(answers)
    for path in bundles:
        if path.is_file():
            hint = f"certkit import {shlex.quote(str(path))} -o bundle\ncertkit assess bundle"
            raise InputError("bundle.manifest-missing", "a file, not a bundle", where=str(path), hint=hint)
    result = workflow.assess(bundles, profile, required_tier=require_tier, context=given, progress=progress())
    context.check_about(given, result)
    first, last = moment(result.times.first), moment(result.times.last)
    context.check_dates(first and first.date(), last and last.date())
    earlier = _compared(baseline, bundles) if baseline else None
    document = result.to_dict() | ({"baseline": to_builtins(earlier)} if earlier else {})
    if out:
        files.write(out, canonical.pretty(document).encode(), overwrite=force)
    refused = REFUSED.get(earlier.result) if earlier else None
    missing = result.exit_code == Exit.INSUFFICIENT  # which does not hide a drift
    code = Exit.OK if exit_zero else (missing and refused) or result.exit_code or refused or Exit.OK
    place = shlex.join(map(str, bundles))
    chosen = {
        "-p": profile if profile != workflow.DEFAULT_PROFILE else None,
        "--require-tier": require_tier if require_tier > 1 else None,
        "--context": answers,
    }
    options = {name: f"{name} {shlex.quote(str(value))} " for name, value in chosen.items() if value}
    screen = show_assessment(result, verbose=verbose, place=place, options=options, baseline=earlier)
    told = [f"written: {out}"] if out else []
    told_quietly = [*serious(result), *([compared(earlier)] if earlier and refused else [])]
    emit(document, chain(screen, told), code=code, serious=told_quietly)


def _compared(baseline: Path, bundles: Sequence[Path]) -> Baseline:
    """Return what the comparison with a passport, whose signature is not checked, or a bundle gives."""
    if len(bundles) > 1:
        raise UsageError("usage.option", "--baseline is compared with one bundle")
    try:
        drift = workflow.drift(baseline, bundles[0], progress=progress())
    except NegativeError as failure:  # a passport that contradicts itself: no verdict on the bundle
        raise InputError(failure.code, failure.message, where=failure.where, hint=failure.hint) from None
    apart = (text.partition(NOT_COMPARABLE) for text in drift.reasons)
    worse = tuple(row.name for row in drift.behaviour if row.flagged)
    pairs = ((item.old or "", item.new or "") for item in drift.identity if item.role == "agent")
    agents = tuple(name.removeprefix("-/") for name in next(pairs, ()))  # no provider is stated
    return Baseline(
        passport=str(baseline),
        signature="none" if baseline.is_dir() else "not_checked",
        result=drift.result,
        worse=worse,
        agents=agents,
        not_comparable=tuple(why for _, lead, why in apart if lead),
    )
