"""The metrics that certkit computes: what stands in ``templates/metrics.toml``, as values.

A profile may name any metric of `CATALOGUE`; the reference page, `explain` and the report read the same.
"""

from __future__ import annotations

from typing import Final

from certkit.assessment.metrics.catalogue import Group, Spec, Unit, _spec
from certkit.ground import toml

__all__ = ["ATTESTED", "CATALOGUE", "Group", "Spec", "Unit", "named"]

_ALL = toml.packaged("templates", "metrics.toml") | toml.packaged("templates", "metrics.next.toml")
CATALOGUE: Final = {name: _spec(name, told) for name, told in _ALL.items() if name != "csi_windowed"}
ATTESTED: Final = tuple(name for name, spec in CATALOGUE.items() if spec.attested)
"""Metrics that no record can carry: the manifest states them, with the file that shows it."""


def named(metric: str) -> str:
    """Return the full name of a metric with its id: ``operational reliability (r_op)``."""
    title = CATALOGUE[metric].title
    return f"{title[:-1]}, {metric})" if title.endswith(")") else f"{title} ({metric})"
