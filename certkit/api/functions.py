"""The calls of ``import certkit``: what the commands do, for notebooks and programs.

    judged = assess("log.eval", condition="nominal")
    judged.tier, judged.to_frame()
    bundle = import_log("log.eval", "bundle", condition="nominal")
    issued = issue("bundle", "issued", issuer="Lab", key="key.pem", at=now)
    verify("issued/passport.json", trust="trust.json", at=now).verdict

Times are arguments: no call reads the clock.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from certkit.api.judging import Judged, answered, judge, judge_log, log_of
from certkit.api.notebook import frame
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import paths_of
from certkit.assessment.profile_file import DEFAULT_PROFILE, changed, load_profile
from certkit.bundle import folder
from certkit.bundle.folder import Bundle
from certkit.ground.document import to_builtins
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT
from certkit.ground.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from certkit.api.issuing import IssuedFiles
    from certkit.api.reporting import WrittenReport
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Relation
    from certkit.comparison.compare import Comparison
    from certkit.comparison.drift import Drift
    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.passport.verify import Verification
    from certkit.record.record import Record
    from certkit.report.context import Given

FilePath = str | Path


class RunsBundle(Bundle, frozen=True, kw_only=True, dict=True):
    """An opened bundle whose runs can be read."""

    def __repr__(self) -> str:
        return f"<RunsBundle {self.root}: {quoted(self.facts.agent.name)}, {self.facts.digest}>"

    def runs(
        self, *, failed: bool = False, domain: str | None = None, condition: str | None = None
    ) -> Iterator[Record]:
        """Return the runs one after another, in the order of the records; all records are checked first.

        Args:
            failed: only runs that did not succeed.
            domain: only runs of this domain.
            condition: only runs under this condition.

        Raises:
            RecordFaultsError: a record is refused.
            UsageError: no run has the domain or the condition.
        """
        from certkit.summary.runs import RunFilter, each_run  # noqa: PLC0415 - numpy is loaded for it

        return (run.record for run in each_run(self, RunFilter(failed, domain, condition)))

    def runs_frame(
        self, *, failed: bool = False, domain: str | None = None, condition: str | None = None
    ) -> Any:
        """Return the runs as a `pandas.DataFrame`, a column for each field.

        Args:
            failed: only runs that did not succeed.
            domain: only runs of this domain.
            condition: only runs under this condition.

        Raises:
            RecordFaultsError: a record is refused.
            UsageError: no run has the domain or the condition, or pandas is not installed.
        """
        chosen = self.runs(failed=failed, domain=domain, condition=condition)
        return frame([to_builtins(structs.asdict(run)) | {"started_at": run.started_at} for run in chosen])


def open_bundle(path: FilePath) -> RunsBundle:
    """Open the bundle in a folder, and check its structure and digests.

    Args:
        path: the folder with ``bundle.json``.

    Returns:
        The bundle, whose `runs` can be read.

    Raises:
        CertkitError: the bundle is refused.
    """
    return RunsBundle(**structs.asdict(folder.open_bundle(Path(path))))


def import_log(
    log: FilePath,
    out: FilePath,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
    agent: str | None = None,
    agent_version: str | None = None,
    mapping: FilePath | None = None,
    domain: str | None = None,
    condition: str | None = None,
    success: str | None = None,
    timezone: str | None = None,
    encoding: str | None = None,
    tasks_independent: bool | None = None,
    attempt: int | None = None,
) -> RunsBundle:
    """Import the log of another program into a bundle, as ``certkit import`` does.

    Args:
        log: the file or folder.
        out: the folder of the bundle, which is made.
        format: the format; by default it is found by content.
        agent: the agent's name, or which one of several in the log.
        agent_version: its version, where the log does not say it.
        mapping: a mapping file, which says what the columns mean.
        domain: the domain, where the log has none.
        condition: the condition, where the log has none: ``nominal`` for runs without faults.
        success: an expression that is true of successful rows.
        timezone: the zone of times without an offset.
        encoding: how the text of a CSV file is encoded, such as ``cp1252``.
        tasks_independent: whether the tasks are independent of each other.
        attempt: this is the agent's n-th evaluation.

    Returns:
        The bundle, whose manifest holds the account of the import.

    Raises:
        CertkitError: the log is refused, and nothing is written.
    """
    from certkit.imports import ImportOptions, run  # noqa: PLC0415 - most calls import no log

    options = ImportOptions(
        format=format,
        agent=agent,
        agent_version=agent_version,
        mapping=None if mapping is None else Path(mapping),
        domain=domain,
        condition=condition,
        success=success,
        timezone=timezone,
        encoding=encoding,
        tasks_independent=tasks_independent,
        attempt=attempt,
    )
    [account] = run(Path(log), Path(out), options, SILENT)
    return open_bundle(account.out)


def assess(
    source: FilePath | Sequence[FilePath],
    profile: str | Profile = DEFAULT_PROFILE,
    *,
    changes: Sequence[str] = (),
    required_tier: int = 1,
    strict: bool = False,
    context: FilePath | None = None,
    agent: str | None = None,
    mapping: FilePath | None = None,
    domain: str | None = None,
    condition: str | None = None,
    success: str | None = None,
    timezone: str | None = None,
    encoding: str | None = None,
    tasks_independent: bool | None = None,
    attempt: int | None = None,
) -> Judged:
    """Judge a bundle, several bundles of one agent, or a log, as ``certkit assess`` does.

    Args:
        source: the folder of a bundle, several of them, or a log, which is imported and not kept.
        profile: a packaged name, the path of a TOML file, or a table.
        changes: thresholds of the profile to change, as ``c_nom=0.9``.
        required_tier: the tier required for exit code 0.
        strict: also count rows that their paper calls provisional.
        context: the ``context.json`` whose answers to serious findings count.
        agent: for a log: the agent's name, or which one of several in the log.
        mapping: for a log: a mapping file, which says what the columns mean.
        domain: for a log: the domain, where it has none.
        condition: for a log: the condition, where it has none: ``nominal`` for runs without faults.
        success: for a log: an expression that is true of successful rows.
        timezone: for a log: the zone of times without an offset.
        encoding: for a log: how the text of a CSV file is encoded, such as ``cp1252``.
        tasks_independent: for a log: whether the tasks are independent of each other.
        attempt: for a log: this is the agent's n-th evaluation.

    Returns:
        The judgement: ``tier``, ``rows``, ``to_frame()``, and the facts, summary and profile behind them.

    Raises:
        CertkitError: a bundle, the log or the profile is refused.
    """
    table = load_profile(profile, changes) if isinstance(profile, str) else changed(profile, changes)
    question, given = Question(required_tier=required_tier, strict=strict), _context(context)
    chosen: dict[str, Any] = {
        "agent": agent,
        "mapping": None if mapping is None else Path(mapping),
        "domain": domain,
        "condition": condition,
        "success": success,
        "timezone": timezone,
        "encoding": encoding,
        "tasks_independent": tasks_independent,
        "attempt": attempt,
    }
    sources = paths_of(source)
    if (log := log_of(sources)) is not None:
        from certkit.imports import ImportOptions  # noqa: PLC0415 - a bundle takes no importer

        return _warned(judge_log(log, ImportOptions(**chosen), table, question, given))
    if names := [name for name, value in chosen.items() if value is not None]:
        raise UsageError("usage.option", f"{names[0]} is for a log, and this is a bundle")
    return _warned(judge(sources, table, question, given))


def _context(path: FilePath | None) -> Given | None:
    if path is None:
        return None
    from certkit.report.argument.challenges import load_context  # noqa: PLC0415 - few give a context

    return load_context(Path(path))


def _warned(judged: Judged) -> Judged:
    if judged.stale:
        text = f"the context is about other evidence ({', '.join(judged.stale)}): what it says does not count"
        warnings.warn(text, stacklevel=3)
    return judged


def issue(
    source: Judged | FilePath | Sequence[FilePath],
    out: FilePath,
    *,
    issuer: str,
    key: PrivateKey | FilePath,
    at: datetime,
    days: int = 90,
    passphrase: bytes | None = None,
    profile: str | Profile = DEFAULT_PROFILE,
    required_tier: int = 1,
    strict: bool = False,
    context: FilePath | None = None,
    supersedes: str | None = None,
    relation_to_evaluator: Relation | None = None,
    relation_to_developer: Relation | None = None,
    pdf: bool = True,
) -> IssuedFiles:
    """Sign a judgement of sealed bundles as a passport, and draw its safety case, as ``certkit issue`` does.

    ``certkit registry append`` logs the passport afterwards.

    Args:
        source: the bundles, or what `assess` returned for them; import a log with `import_log` first.
        out: the folder of passport, assessment, public key and safety case, which is made.
        issuer: the issuer's name.
        key: the private key, or its file.
        at: the time of issuing, with its offset; the validity begins then.
        days: how long the passport is valid, at most 366.
        passphrase: opens the key's file where it is encrypted.
        profile: the tier table under which bundles are judged.
        required_tier: the tier that bundles are asked for.
        strict: also count provisional rows when bundles are judged.
        context: the ``context.json`` whose answers count, and which the safety case quotes.
        supersedes: the id of the passport that this one replaces.
        relation_to_evaluator: the issuer and who ran the evaluation: same, affiliated, independent.
        relation_to_developer: the issuer and the agent's developer: the same words.
        pdf: draw the safety case as PDF too.

    Returns:
        The passport, the judgement, and why there is no PDF where none was drawn.

    Raises:
        CertkitError: nothing was issued.
    """
    from certkit.api.issuing import write_issued  # noqa: PLC0415 - signing is heavy
    from certkit.passport import issue as signing  # noqa: PLC0415 - the same
    from certkit.passport import keys  # noqa: PLC0415 - the same

    given = _context(context)
    judged = _judged(source, profile, Question(required_tier=required_tier, strict=strict), given)
    signer = keys.load_private(Path(key), passphrase=passphrase) if isinstance(key, str | Path) else key
    passport = signing.issue(
        judged,
        issuer=issuer,
        key=signer,
        not_before=at,
        not_after=at + timedelta(days=days),
        relation_to_evaluator=relation_to_evaluator,
        relation_to_developer=relation_to_developer,
        supersedes=supersedes,
        context=given.digest if given else None,
        now=at,
    )
    today = at.astimezone(UTC).date()
    return write_issued(Path(out), judged, passport, key=signer, today=today, given=given, pdf=pdf)


def _judged(
    source: Judged | FilePath | Sequence[FilePath],
    profile: str | Profile,
    question: Question,
    given: Given | None,
) -> Judged:
    """Return the judgement of bundles, or one that was made before, with the answers of a context."""
    if not isinstance(source, Judged):
        table = load_profile(profile) if isinstance(profile, str) else profile
        return _warned(judge(paths_of(source), table, question, given))
    if source.imported is not None:
        message = "this is the judgement of a log, whose records were not kept"
        raise UsageError("bundle.unsealed", message, hint="certkit.import_log(LOG, OUT), then assess OUT")
    if given is None:
        return source
    names = ("parts", "integrity", "bundle")
    more = {name: getattr(source, name) for name in names}
    return _warned(structs.replace(answered(source, given), **more))


def verify(
    passport: FilePath,
    *,
    at: datetime,
    trust: Trust | FilePath | None = None,
    key: FilePath | None = None,
    issuer: str | None = None,
    bundle: FilePath | Sequence[FilePath] = (),
    replay: bool = False,
    context: FilePath | None = None,
    agent: str | None = None,
    domain: str | None = None,
    required_tier: int | None = None,
    registry: FilePath | None = None,
    heads: FilePath | None = None,
) -> Verification:
    """Verify a passport against a trust policy, as ``certkit verify`` does.

    Files of proof and status beside the passport are read too.

    Args:
        passport: the file of the passport, or a PDF with one attached.
        at: the time of verification, with its offset.
        trust: the trust policy, or its file.
        key: in place of a policy: the file of the only public key that is trusted.
        issuer: the signer's name in the policy; with `key`, the issuer's name in the passport.
        bundle: the bundle that the passport is about, or several.
        replay: compute the summary of the bundle's records again.
        context: the ``context.json`` that you hold, for the replay.
        agent: the digest of the agent that the passport must be about.
        domain: a domain that the evaluation must have covered.
        required_tier: the lowest tier that is accepted.
        registry: the folder of a registry that knows whether the passport still stands.
        heads: the file that remembers checkpoints of logs; by default none are remembered.

    Returns:
        The verdict, the claim and every step. A passport that is refused is a verdict, and no exception.

    Raises:
        CertkitError: a file is missing, or the policy is malformed.
    """
    from certkit.api import passport_files as beside  # noqa: PLC0415 - most calls verify nothing
    from certkit.passport.trust import Trust, read_policy  # noqa: PLC0415 - the same

    if (trust is None) == (key is None) or (key is not None and issuer is None):
        raise UsageError("usage.option", "expected either trust, or key and issuer")
    if key is not None:
        policy = beside.trust_key(Path(key))
    else:
        policy = trust if isinstance(trust, Trust) else read_policy(Path(str(trust)))
    answers = None if context is None else Path(context)
    asked: dict[str, Any] = {"agent": agent, "domain": domain, "require_tier": required_tier}
    asked["issuer" if key is None else "stated"] = issuer
    return beside.verify_taken(
        Path(passport),
        beside.taken(Path(passport)),
        policy,
        None if registry is None else Path(registry),
        at,
        heads=None if heads is None else Path(heads),
        **asked,
        **beside.evidence_of(list(paths_of(bundle)), answers, replay=replay),
    )


def compare(a: FilePath, b: FilePath, *, novel: bool = False, paper_tests: bool = False) -> Comparison:
    """Compare two agents on their bundles, as ``certkit compare`` does.

    Args:
        a: the bundle of one agent.
        b: the bundle of the other.
        novel: compare runs under held-out faults, and no others.
        paper_tests: add tests that treat runs as independent.

    Returns:
        The effect on success, and a row for each other metric. Every difference is A minus B.

    Raises:
        CertkitError: a bundle is refused.
    """
    from certkit.api.sides import compare_bundles  # noqa: PLC0415 - most calls compare nothing

    return compare_bundles(Path(a), Path(b), novel=novel, paper_tests=paper_tests, progress=SILENT)


def drift(*sides: FilePath, profile: str | None = None, trust: Trust | FilePath | None = None) -> Drift:
    """Compare an agent with itself at a later time, as ``certkit drift`` does.

    Args:
        sides: passports, PDFs with one attached, or bundles, oldest first. Three or more also give a trend.
        profile: the tier table under which bundles are judged; by default that of the first passport.
        trust: the trust policy, or its file; without one no signature is checked.

    Returns:
        The comparison of the last two sides, and the trend over all.

    Raises:
        CertkitError: a side is refused.
    """
    from certkit.api.sides import drift_of_sides  # noqa: PLC0415 - most calls compare nothing
    from certkit.passport.trust import read_policy  # noqa: PLC0415 - the same

    if len(sides) < 2:  # noqa: PLR2004 - a comparison takes two
        raise UsageError("usage.option", "expected an older and a newer side")
    policy = read_policy(Path(trust)) if isinstance(trust, str | Path) else trust
    return drift_of_sides([*map(Path, sides)], profile=profile, trust=policy, progress=SILENT)


def write_report(
    source: Judged | FilePath | Sequence[FilePath],
    out: FilePath,
    *,
    today: date,
    profile: str | Profile = DEFAULT_PROFILE,
    required_tier: int = 1,
    strict: bool = False,
    context: FilePath | None = None,
    overwrite: bool = False,
) -> WrittenReport:
    """Draw the safety case of bundles or of a passport, as ``certkit report`` does.

    Args:
        source: the bundles, what `assess` returned for them, or the file of a passport. Its signature is
            not checked.
        out: ``X.html``, or ``X.pdf`` with ``X.html`` beside it.
        today: the day for which acceptances and the age of the evidence are shown.
        profile: the tier table under which bundles are judged.
        required_tier: the tier that bundles are asked for.
        strict: also count provisional rows when bundles are judged.
        context: the ``context.json`` that the report quotes.
        overwrite: replace files that are there.

    Returns:
        The files that were written, and why there is no PDF where one was asked for.

    Raises:
        CertkitError: the source is refused, or a file is in the way.
    """
    from certkit.api import reporting  # noqa: PLC0415 - drawing is heavy
    from certkit.api.passport_files import taken  # noqa: PLC0415 - the same
    from certkit.passport.steps import open_unsigned  # noqa: PLC0415 - the same
    from certkit.report import IssuedPassport  # noqa: PLC0415 - the same

    given, passport = _context(context), None
    if isinstance(source, str | Path) and Path(source).is_file():
        path = Path(source)
        passport = IssuedPassport.of(open_unsigned(taken(path).passport, str(path))[0])
        judged = _warned(answered(passport.evaluation, given))
    else:
        judged = _judged(source, profile, Question(required_tier=required_tier, strict=strict), given)
    drawn = reporting.draw(judged, today=today, given=given, passport=passport)
    return reporting.write_drawn(drawn, Path(out), overwrite=overwrite)
