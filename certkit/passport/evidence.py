"""What a verifier, or an issuer, reads of sealed bundles: the facts and the summary.

    evidence = BundleEvidence([Path("bundle")])
    evidence.facts(), evidence.summary(core_conditions)

Several bundles of one agent are pooled. Files are hashed and records are read once.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

from certkit.assessment.bundles import bundle_facts
from certkit.bundle.folder import Bundle, open_bundle
from certkit.ground.errors import CertkitError, UnavailableError
from certkit.ground.progress import SILENT, Progress
from certkit.summary.pooling import Pooled, accumulate
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from certkit.bundle.facts import Facts
    from certkit.summary.summary import Summary

_ABSENT = {"file.missing", "bundle.manifest-missing"}


class BundleEvidence:
    """The bundle in a folder, or several that are pooled.

    Its methods raise what opening, hashing and reading a bundle raises, and `UnavailableError`
    ``passport.unavailable`` where there is no bundle.
    """

    def __init__(self, roots: Sequence[Path], *, progress: Progress = SILENT) -> None:
        self._roots = tuple(roots)
        self._progress = progress
        self._pooled, self._summarised = cache(self._accumulate), cache(self._summarise)

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """The opened bundles; every file has its digest."""
        try:
            return tuple(open_bundle(root, progress=self._progress) for root in self._roots)
        except CertkitError as error:
            if error.code in _ABSENT:
                raise UnavailableError("passport.unavailable", str(error)) from None
            raise

    def facts(self, core_conditions: tuple[str, ...] = ()) -> Facts:
        """Return what the manifests state.

        Several bundles are read to know their order, and one that encloses a plan to know its runs.

        Args:
            core_conditions: as for `summary`, so that bundles are read once.
        """
        if len(self.bundles) == 1:
            bundle = self.bundles[0]
            return bundle_facts(bundle, None if bundle.plan is None else self.summary(core_conditions))
        return self._pooled(core_conditions).facts

    def summary(self, core_conditions: tuple[str, ...] = ()) -> Summary:
        """Return the records, reduced.

        Args:
            core_conditions: `x_` conditions that count as core evidence.
        """
        if len(self.bundles) == 1:
            return self._summarised(core_conditions)
        return self._pooled(core_conditions).summary

    def _summarise(self, core_conditions: tuple[str, ...]) -> Summary:
        return summarise(self.bundles[0], core_conditions=core_conditions, progress=self._progress)

    def _accumulate(self, core_conditions: tuple[str, ...]) -> Pooled:
        return accumulate(self.bundles, core_conditions=core_conditions, progress=self._progress)
