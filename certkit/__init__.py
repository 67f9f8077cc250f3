"""certkit: certification evidence and agent passports.

From evaluation records of an AI agent to a verdict that anyone can recompute from the same bytes:

    import certkit

    evaluation = certkit.assess("bundle", profile="hb-eval-2026")
    evaluation.assessment.verdict.tier         # 0, 1, 2 or 3
    evaluation.to_dict()["criteria"]           # every row: value, status, margin

    bundle = certkit.open_bundle("bundle")     # structure and digests verified
    summary = certkit.summarise(bundle)        # records verified and reduced to integers

Whatever is wrong with an input is raised as a `CertkitError` with a stable ``code`` and a ``hint``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from certkit._version import __version__
from certkit.ground.errors import CertkitError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from certkit.assessment.assessment import Assessment
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Profile
    from certkit.assessment.profile_file import load_profile
    from certkit.bundle.folder import Bundle, open_bundle
    from certkit.bundle.writer import seal
    from certkit.probes.running import generate_probes, run_probes
    from certkit.probes.score import score_integrity
    from certkit.record.faults import RecordFaultsError
    from certkit.summary.summarise import summarise, to_label
    from certkit.summary.summary import Summary

__all__ = [
    "Assessment",
    "Bundle",
    "CertkitError",
    "Evaluation",
    "InputError",
    "Profile",
    "RecordFaultsError",
    "Summary",
    "UsageError",
    "__version__",
    "assess",
    "generate_probes",
    "load_profile",
    "open_bundle",
    "run_probes",
    "score_integrity",
    "seal",
    "summarise",
    "to_label",
]

_MODULES: Final = {
    "Assessment": "assessment.assessment",
    "Bundle": "bundle.folder",
    "Evaluation": "assessment.evaluation",
    "Profile": "assessment.profile",
    "RecordFaultsError": "record.faults",
    "Summary": "summary.summary",
    "generate_probes": "probes.running",
    "load_profile": "assessment.profile_file",
    "open_bundle": "bundle.folder",
    "run_probes": "probes.running",
    "score_integrity": "probes.score",
    "seal": "bundle.writer",
    "summarise": "summary.summarise",
    "to_label": "summary.summarise",
}
"""The module of each name that is loaded when it is first asked for."""


def assess(
    bundles: str | Path | Sequence[str | Path],
    profile: str | Profile = "hb-eval-2026",
    *,
    required_tier: int = 1,
    strict: bool = False,
) -> Evaluation:
    """Read the bundle in a folder, or pool those in several folders, and judge them against a profile.

    Args:
        bundles: one folder or several.
        profile: a packaged name, the path of a TOML file, or a table.
        required_tier: the tier whose status decides the exit code.
        strict: let rows that their paper calls provisional decide.

    Returns:
        The evaluation: facts, summary, profile, question and the assessment.

    Raises:
        CertkitError: a bundle or the profile is refused.
    """
    from certkit.assessment.assessment import Question  # noqa: PLC0415 - loaded when it is asked for
    from certkit.assessment.bundles import assess_bundles  # noqa: PLC0415 - the same

    return assess_bundles(bundles, profile, question=Question(required_tier=required_tier, strict=strict))


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'certkit' has no attribute {name!r}")
    return getattr(import_module(f"certkit.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
