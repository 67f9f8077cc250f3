"""certkit: certification evidence and agent passports.

From evaluation records of an AI agent to a verdict that anyone can recompute from the same bytes:

    import certkit

    a = certkit.assess("log.eval", condition="nominal")     # a log, or the folder of a bundle
    a                                   # three lines; in a notebook the table
    a.tier                              # 0, 1, 2 or 3
    a.rows[0].exact, a.rows[0].value    # Fraction(29, 32), 0.90625
    a.to_frame(), a.cells_frame()       # with pandas

    bundle = certkit.import_log("log.eval", "bundle", condition="nominal")
    for run in bundle.runs(failed=True):
        print(run.run_id, run.outcome)

The other functions do what the commands of the same name do: `issue`, `verify`, `compare`, `drift`, and
`write_report` for ``certkit report``. No function reads the clock: times are arguments. Whatever is wrong
with an input is raised as a `CertkitError` with a stable ``code`` and a ``hint``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from certkit._version import __version__
from certkit.ground.errors import CertkitError, InputError, UsageError

if TYPE_CHECKING:
    from certkit.api.functions import (
        RunsBundle,
        assess,
        compare,
        drift,
        import_log,
        issue,
        open_bundle,
        verify,
        write_report,
    )
    from certkit.api.judging import Judged
    from certkit.assessment.assessment import Assessment
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Profile
    from certkit.assessment.profile_file import load_profile
    from certkit.bundle.folder import Bundle
    from certkit.bundle.writer import seal
    from certkit.probes.running import generate_probes, run_probes
    from certkit.probes.score import score_integrity
    from certkit.record.faults import RecordFaultsError
    from certkit.summary.ratings import to_label
    from certkit.summary.summarise import summarise
    from certkit.summary.summary import Summary

__all__ = [
    "Assessment",
    "Bundle",
    "CertkitError",
    "Evaluation",
    "InputError",
    "Judged",
    "Profile",
    "RecordFaultsError",
    "RunsBundle",
    "Summary",
    "UsageError",
    "__version__",
    "assess",
    "compare",
    "drift",
    "generate_probes",
    "import_log",
    "issue",
    "load_profile",
    "open_bundle",
    "run_probes",
    "score_integrity",
    "seal",
    "summarise",
    "to_label",
    "verify",
    "write_report",
]

_MODULES: Final = {
    "Assessment": "assessment.assessment",
    "Bundle": "bundle.folder",
    "Evaluation": "assessment.evaluation",
    "Judged": "api.judging",
    "Profile": "assessment.profile",
    "RecordFaultsError": "record.faults",
    "RunsBundle": "api.functions",
    "Summary": "summary.summary",
    "assess": "api.functions",
    "compare": "api.functions",
    "drift": "api.functions",
    "generate_probes": "probes.running",
    "import_log": "api.functions",
    "issue": "api.functions",
    "load_profile": "assessment.profile_file",
    "open_bundle": "api.functions",
    "run_probes": "probes.running",
    "score_integrity": "probes.score",
    "seal": "bundle.writer",
    "summarise": "summary.summarise",
    "to_label": "summary.ratings",
    "verify": "api.functions",
    "write_report": "api.functions",
}
"""The module of each name that is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'certkit' has no attribute {name!r}")
    return getattr(import_module(f"certkit.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
