"""certkit: certification evidence and agent passports.

From evaluation records of an AI agent to a verdict that anyone can recompute from the same bytes:

    import certkit

    assessment = certkit.assess("bundle", profile="hb-eval-2026")
    assessment.verdict.tier                    # 0, 1, 2 or 3
    assessment.to_dict()["criteria"]           # every row: value, status, margin

    bundle = certkit.open_bundle("bundle")     # structure and digests verified
    summary = certkit.summarise(bundle)        # records verified and reduced to integers

Whatever is wrong with an input is raised as a `CertkitError` with a stable ``code`` and a ``hint``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit._version import __version__
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.ground.lazy import lazy

if TYPE_CHECKING:
    from certkit.assessment.integrity.scores import score_integrity
    from certkit.assessment.profile import Profile
    from certkit.assessment.result import Assessment
    from certkit.bundle.folder import Bundle, open_bundle, seal
    from certkit.probes.running import generate_probes, run_probes
    from certkit.record.faults import RecordFaultsError
    from certkit.summary.summarise import summarise, to_label
    from certkit.summary.summary import Summary
    from certkit.workflow import assess, load_profile

__all__ = [
    "Assessment",
    "Bundle",
    "CertkitError",
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

__getattr__ = lazy(
    __name__,
    {
        "assessment.integrity.scores": ("score_integrity",),
        "assessment.profile": ("Profile",),
        "assessment.result": ("Assessment",),
        "bundle.folder": ("Bundle", "open_bundle", "seal"),
        "probes.running": ("generate_probes", "run_probes"),
        "record.faults": ("RecordFaultsError",),
        "summary.summarise": ("summarise", "to_label"),
        "summary.summary": ("Summary",),
        "workflow": ("assess", "load_profile"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
