"""``certkit assess``."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.api.judging import judge, judge_log, log_of
from certkit.assessment.answer import serious_texts
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import refuse_inside
from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, progress, refuse
from certkit.cli.views import WORDS
from certkit.cli.views.assessment import REFUSED, JudgedSource, show_evaluation
from certkit.ground import canonical, files
from certkit.ground.errors import Exit, InputError, NegativeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from certkit.assessment.evaluation import Evaluation
    from certkit.comparison.drift import Drift

_FOR_LOGS: Final = (
    "agent",
    "mapping",
    "domain",
    "condition",
    "success",
    "timezone",
    "encoding",
    "tasks_independent",
    "attempt",
)


def assess(
    bundles: Annotated[
        list[Path],
        typer.Argument(
            metavar="BUNDLE...|LOG",
            help="A bundle's folder, or the log of another program; several bundles of one agent are pooled.",
        ),
    ],
    profile: opt.ProfileName = "hb-eval-2026",
    changes: opt.Changes = None,
    require_tier: Annotated[
        int, opt.REQUIRE_TIER(help="The tier required for exit code 0.", envvar="CERTKIT_REQUIRE_TIER")
    ] = 1,
    strict: opt.Strict = False,
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
    agent: opt.LogAgent = None,
    mapping: opt.LogMapping = None,
    domain: opt.LogDomain = None,
    condition: opt.LogCondition = None,
    success: opt.LogSuccess = None,
    timezone: opt.LogTimezone = None,
    encoding: opt.LogEncoding = None,
    tasks_independent: opt.IndependentTasks = None,
    attempt: opt.LogAttempt = None,
    verbose: opt.Verbose = False,
) -> None:
    """Judge a bundle of evaluation records, or a log, against a tier table; or several bundles together.

    Reads every record, computes every metric, and says which tier the evidence shows, what fails, what has no
    evidence, and what to measure next. A log is imported into a temporary bundle, as 'certkit import' does;
    the last lines say how to keep it. Of several bundles all runs are pooled, and each is also shown alone.
    Exit code 0: the required tier is met; 1: a measured criterion fails; 4: evidence is missing, or a serious
    finding is open, or --baseline cannot be compared; 5: nothing fails, but the agent drifted against
    --baseline; 3: the bundle or the log is malformed.

    Example: certkit assess bundle/ --require-tier 2 -o assessment.json
    """
    refuse_inside(bundles, out)
    context.check_outputs(out, force=force)
    given = context.load_context(answers)
    table = load_profile(profile, changes or ())
    question = Question(required_tier=require_tier, strict=strict)
    chosen = {
        "-p": profile if profile != DEFAULT_PROFILE else None,
        "--require-tier": require_tier if require_tier > 1 else None,
        "--context": answers,
    }
    options = {name: f"{name} {shlex.quote(str(value))} " for name, value in chosen.items() if value}
    options["-p"] = options.get("-p", "") + "".join(f"--set {shlex.quote(text)} " for text in changes or ())
    log = log_of(bundles)
    if log is None:
        refuse("is for a log, and this is a bundle", *_FOR_LOGS)
        judged = judge(bundles, table, question, given, progress=progress())
        folders = shlex.join(map(str, bundles))
        place = JudgedSource(folders, judge=f"certkit assess {folders}")
    else:
        from certkit.imports.job import ImportOptions  # noqa: PLC0415 - a bundle takes no importer

        importing = ImportOptions(
            agent=agent,
            mapping=mapping,
            domain=domain,
            condition=condition,
            success=success,
            timezone=timezone,
            encoding=encoding,
            tasks_independent=tasks_independent,
            attempt=attempt,
            assess="".join([*options.values(), "--strict" * strict]).rstrip(),
        )
        judged = judge_log(log, importing, table, question, given, progress=progress())
        place = JudgedSource(
            "bundle",
            judge=importing.command(log, verb="assess"),
            keep=f"{importing.command(log)} -o bundle",
            columns=f"{importing.command(log, tasks_independent=None)} --columns -o MAP.toml",
        )
    context.check_context(judged)
    times = judged.summary.times
    context.check_dates(_day(times.first), _day(times.last))
    earlier = _drift(baseline, bundles, judged) if baseline else None
    document = judged.to_dict() | ({"baseline": earlier.to_dict()} if earlier else {})
    if out:
        files.write(out, canonical.pretty(document).encode(), overwrite=force)
    refused = REFUSED.get(earlier.result) if earlier else None
    missing = judged.exit_code == Exit.INSUFFICIENT  # which does not hide a drift
    code = Exit.OK if exit_zero else (missing and refused) or judged.exit_code or refused or Exit.OK
    notes = [_compared(earlier, str(baseline))] if earlier else []
    screen = show_evaluation(
        judged,
        verbose=verbose,
        place=place,
        options=options,
        parts=judged.parts,
        notes=notes,
        imported=judged.imported,
    )
    written = [f"written: {out}"] if out else []
    quietly = [*serious_texts(judged), *(notes if refused else [])]
    emit(document, chain(screen, written), code=code, serious=quietly)


def _day(microseconds: int | None) -> date | None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return None if microseconds is None else (epoch + timedelta(microseconds=microseconds)).date()


def _drift(baseline: Path, bundles: Sequence[Path], evaluation: Evaluation) -> Drift:
    """Return the drift against a passport, whose signature is not checked, or a bundle."""
    from certkit.api.sides import drift_of, side_of  # noqa: PLC0415 - few have a baseline

    if len(bundles) > 1:
        raise UsageError("usage.option", "--baseline is compared with one bundle")
    try:
        old = side_of(baseline, profile=None, trust=None, progress=progress())
    except NegativeError as failure:  # a passport that contradicts itself: no verdict on the bundle
        raise InputError(failure.code, failure.message, where=failure.where, hint=failure.hint) from None
    return drift_of(old, evaluation)


def _compared(drift: Drift, baseline: str) -> str:
    """Return what the comparison with an earlier passport or bundle gave, in one sentence."""
    worse = [row.name for row in drift.behaviour if row.flagged]
    more = f"; {len(worse) - 3} more ('certkit drift' lists them)" if len(worse) > 3 else ""  # noqa: PLR2004
    detail = f": {', '.join(worse[:3])}{more}" if worse else ""
    reasons = f": {drift.reasons[0]}" if drift.result == "NOT_COMPARABLE" and drift.reasons else ""
    unchecked = "" if Path(baseline).is_dir() else " (signature not checked)"
    return f"Baseline {baseline}{unchecked}: {drift.result}: {WORDS[drift.result]}{detail}{reasons}"
