"""What certkit is asked about a bundle: the only module of the corpus that lets it judge.

    answers("plain")["hb-eval-2026"]["verdict"]["tier"]

It uses the public functions `certkit.assess` and `certkit.seal`, and the command ``certkit import``. When the
assessment gets another form, this module follows it, and ``expected.json`` stays what it is. Values are taken
from the exact metrics; a document rounds them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import certkit
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.metric import Metric, written
from certkit.assessment.raters import JudgeReport, judge_report
from certkit.ground.document import to_builtins
from tests.corpus.bundles import BUNDLES, HOUSE
from tests.corpus.logs import LOGS
from tests.support import running

if TYPE_CHECKING:
    from collections.abc import Sequence

PROFILES: Final = {HOUSE: str(Path(__file__).with_name("house.toml"))}
COUNTS: Final = ("records", "nominal_runs", "fault_runs", "harness_errors", "novel_fault_runs")

DIGITS: Final = 12
"""Digits of a number that are kept: more than are compared."""

Answers = dict[str, Any]


@cache
def answers(name: str) -> Answers:
    """Return what certkit says about a bundle of the corpus, by profile."""
    with TemporaryDirectory() as folder:
        if name in BUNDLES:
            case = BUNDLES[name]()
            folders = case.write(Path(folder))
            for path, part in zip(folders, case.parts, strict=True):
                if part.sealed:
                    certkit.seal(path)
            return {"drawn": case.digest()} | _by_profile(folders, case.profiles)
        log, out = LOGS[name], Path(folder, "bundle")
        done = running.certkit(*log.arguments(out))
        assert done.code == 0, done.err
        return _by_profile([out / log.folder], log.profiles)


def _by_profile(folders: Sequence[Path], profiles: Sequence[str]) -> Answers:
    return {profile: _judged(folders, profile, first=profile == profiles[0]) for profile in profiles}


def _judged(folders: Sequence[Path], profile: str, *, first: bool) -> Answers:
    """Return the judgement under a profile; what hardly depends on it is kept under the `first` alone."""
    result = certkit.assess(folders, PROFILES.get(profile, profile))
    document = to_builtins(result.assessment)
    verdict = document["verdict"]
    criteria: Answers = {}
    for row in document["criteria"]:
        criteria.setdefault(row["id"], {})[str(row["tier"])] = _row(row, result)
    judged: Answers = {
        "verdict": {
            "tier": verdict["tier"],
            "table": verdict["table"]["tier"],
            "bounded": verdict["bounded"]["tier"],
            "exit": int(result.exit_code),
            "contested": verdict["status"] == "contested",
            "binding": " ".join(verdict["binding"]),
        },
        "tiers": {number: tier["status"] for number, tier in document["tiers"].items()},
        "criteria": criteria,
    }
    if not first:
        return judged
    return judged | {
        "counts": {key: result.to_dict()["bundle"][key] for key in COUNTS},
        "metrics": {name: _metric(metric) for name, metric in result.metrics.items()},
        "judge": _judge(judge_report(result.summary, result.facts)),
    }


def _row(row: Answers, result: certkit.Evaluation) -> Answers:
    bounded = row["bounded"] or {}
    figures = {"status": row["status"], "value": row["value"], "margin": row["margin"]}
    value, threshold = result.metrics[row["metric"]].at(row["tier"]), row["threshold"]
    if row["value"] is not None and not isinstance(row["value"], bool) and value is not None:
        figures["value"] = float(value)
        if row["margin"] is not None:
            exact = value - Fraction(repr(threshold)) if isinstance(value, Fraction) else value - threshold
            figures["margin"] = float(-exact if row["operator"] in {"<", "<="} else exact)
    return _known(figures | {f"bounded.{key}": bounded.get(key) for key in ("status", "bound", "k")})


def _metric(metric: Metric) -> Answers:
    exact = (
        metric.value if CATALOGUE[metric.id].unit is not Unit.BOOLEAN else written(metric.value, metric.id)
    )
    value = float(exact) if isinstance(exact, Fraction) else exact
    return _known({"state": metric.state.value, "value": value, "n": metric.n})


def _judge(report: JudgeReport) -> Answers:
    """Return the judge's error, nothing where no label shows it."""
    if report.state != "labelled" or report.sensitivity is None or report.specificity is None:
        return {}
    return _known(
        {
            "referenced": report.referenced,
            "sensitivity": report.sensitivity.value,
            "specificity": report.specificity.value,
            "kappa": report.kappa,
            "corrected": report.corrected,
            "low": report.low,
            "high": report.high,
        }
    )


def _known(figures: Answers) -> Answers:
    return {
        key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for key, value in figures.items()
        if value is not None
    }
