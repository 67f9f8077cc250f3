"""Evidence: bundles of evaluation records, read strictly and reduced to integers once.

What this room knows: the formats of bundle and record, how to read them when a hostile hand wrote them, and
how logs of other programs become bundles (`importers`). It does not know thresholds, tiers or verdicts.

    bundle = open_bundle(Path("bundle"))      # structure and digests verified
    summary = summarise(bundle)               # records verified and reduced
    summary.domains, summary.records

A bad record refuses the whole bundle; nothing is skipped or repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.lazy import lazy

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

__getattr__ = lazy(
    __name__,
    {
        "bundle.pooling": ("Accumulation", "Part", "accumulate"),
        "bundle.folder": ("Bundle", "init", "open_bundle", "seal"),
        "bundle.calibration": ("Calibration", "read_calibration"),
        "records.faults": ("Fault", "RecordFaultsError"),
        "bundle.manifest": ("Facts", "Manifest"),
        "records.record": ("Record",),
        "summary.gather": ("summarise", "to_label"),
        "summary.summary": ("Summary",),
    },
)
