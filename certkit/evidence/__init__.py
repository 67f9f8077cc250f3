"""Evidence: bundles of evaluation records, read strictly and reduced to integers once.

What this room knows: the formats of bundle and record, how to read them when a hostile hand wrote them, and
how logs of other programs become bundles (`importers`). It does not know thresholds, tiers or verdicts.

    bundle = open_bundle(Path("bundle"))      # structure and digests verified
    summary = summarise(bundle)               # records verified and reduced
    summary.domains, summary.records

A bad record refuses the whole bundle; nothing is skipped or repaired.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certkit.evidence.bundle.calibration import Calibration, read_calibration
    from certkit.evidence.bundle.folder import Bundle, init, open_bundle, seal
    from certkit.evidence.bundle.manifest import Facts, Manifest
    from certkit.evidence.bundle.pooling import Accumulation, Part, accumulate
    from certkit.evidence.records.faults import Fault, RecordFaultsError
    from certkit.evidence.records.record import Record
    from certkit.evidence.summary.gather import summarise, to_label
    from certkit.evidence.summary.summary import Summary

__all__ = [
    "Accumulation",
    "Bundle",
    "Calibration",
    "Facts",
    "Fault",
    "Manifest",
    "Part",
    "Record",
    "RecordFaultsError",
    "Summary",
    "accumulate",
    "init",
    "open_bundle",
    "read_calibration",
    "seal",
    "summarise",
    "to_label",
]

# Loaded on first use: a reader process does not need the manifest and pydantic.
_HOMES = {
    "certkit.evidence.bundle.pooling": ("Accumulation", "Part", "accumulate"),
    "certkit.evidence.bundle.folder": ("Bundle", "init", "open_bundle", "seal"),
    "certkit.evidence.bundle.calibration": ("Calibration", "read_calibration"),
    "certkit.evidence.records.faults": ("Fault", "RecordFaultsError"),
    "certkit.evidence.bundle.manifest": ("Facts", "Manifest"),
    "certkit.evidence.records.record": ("Record",),
    "certkit.evidence.summary.gather": ("summarise", "to_label"),
    "certkit.evidence.summary.summary": ("Summary",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
