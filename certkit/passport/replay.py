"""Replay: the claim is computed again from the evidence and compared, row by row.

`difference` names the first row in which the claim differs or which it leaves out. The digest of the
assessment document is not compared: the document's floating point numbers may differ in the last bit between
machines, the decimals of a statement do not.

`from_bundle` returns the two callables that `verify` takes, for a bundle in a folder or for several.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit import assessment, evidence
from certkit.errors import CertkitError, UnavailableError
from certkit.passport.declared import Declared, declared
from certkit.passport.payload import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from certkit.assessment import Assessment
    from certkit.assessment.profile import Profile
    from certkit.passport.statement import Profile as Judged
    from certkit.passport.statement import Statement
    from certkit.progress import Progress

# Criteria first, since that is what a reader wants named; the rest follows from them or from the records.
ORDER: Final = (
    "criteria",
    "assessment",
    "profile_of_reliability",
    "scope",
    "known_failure_modes",
    "integrity",
    "challenges",
    "limitations",
    "protocol",
    "claim",
    "origin",
    "agent",
    "evidence",
)
_NOT_COMPARED: Final = {("assessment", "digest"), ("assessment", "tool")}
_NAMES: Final = ("id", "metric", "code", "role", "name", "domain", "condition")
_ABSENT: Final = {"file.missing", "file.unreadable", "bundle.manifest-missing"}
_SHOWN: Final = 60


class Opened(Struct, frozen=True, kw_only=True):
    """A bundle whose files have the digests of its manifest: the digest of the bundle and of its agent.

    `declared` is what the manifest says. Of several bundles the digest is that of their accumulation,
    whatever the order they were given in.
    """

    digest: str
    agent_digest: str
    declared: Declared | None = None


def difference(statement: Statement, recomputed: Mapping[str, Any]) -> str | None:
    """Return the first place where the claim differs from what was recomputed, None where none does."""
    claimed = plain(statement)["predicate"]
    for part in ORDER:
        if mismatch := _differ((part,), claimed.get(part), recomputed.get(part)):
            return mismatch
    return None


def manifest_difference(statement: Statement, declared: Declared) -> str | None:
    """Return the first place where a claim does not repeat the manifest of its evidence, else None."""
    predicate = statement.predicate
    dates = {predicate.evidence.digest: predicate.scope.dates}
    dates |= {part.digest: part.dates for part in predicate.evidence.bundles or ()}
    periods = {
        digest: structs.replace(period, first_run=None, last_run=None) for digest, period in dates.items()
    }
    claimed = Declared(
        origin=predicate.origin, agent=predicate.agent, protocol=predicate.protocol, periods=periods
    )
    return _differ((), plain(claimed), plain(declared))


def _differ(path: tuple[str, ...], claimed: Any, recomputed: Any) -> str | None:
    if path in _NOT_COMPARED:
        return None
    if isinstance(claimed, dict) and isinstance(recomputed, dict):
        for key, value in claimed.items():
            if key not in recomputed:
                return _words((*path, key), value, None)
            if inner := _differ((*path, key), value, recomputed[key]):
                return inner
        # A row that is left out is a row that is hidden.
        hidden = next(
            (key for key in recomputed if key not in claimed and (*path, key) not in _NOT_COMPARED), None
        )
        return None if hidden is None else _words((*path, hidden), "nothing", recomputed[hidden])
    if isinstance(claimed, list | tuple) and isinstance(recomputed, list | tuple):
        for number, (row, computed) in enumerate(zip(claimed, recomputed, strict=False), start=1):
            if inner := _differ((*path, _name(row, number)), row, computed):
                return inner
        return (
            None
            if len(claimed) == len(recomputed)
            else _words(path, f"{len(claimed)} rows", f"{len(recomputed)}")
        )
    # True and 1 are one value to Python, and two to JSON.
    same = claimed == recomputed and isinstance(claimed, bool) == isinstance(recomputed, bool)
    return None if same else _words(path, claimed, recomputed)


def _name(row: Any, number: int) -> str:
    """Return the names that tell a row from others, or its number from 1."""
    names = [str(row[key]) for key in _NAMES if key in row] if isinstance(row, dict) else []
    return "/".join(dict.fromkeys(names)) or str(number)


def _words(path: tuple[str, ...], claimed: Any, recomputed: Any) -> str:
    shown = [
        text if len(text := str(item)) <= _SHOWN else text[:_SHOWN] + "…" for item in (claimed, recomputed)
    ]
    return f"{' '.join(path)}: claimed {shown[0]}, the evidence gives {shown[1]}"


def from_bundle(
    roots: Path | Sequence[Path],
    load_profile: Callable[[str], Profile],
    *,
    progress: Progress,
    jobs: int | None = None,
) -> tuple[Callable[[], Opened], Callable[[Statement], dict[str, Any]]]:
    """Return two callables: the first opens the bundles in the folders, the second computes a claim again.

    `load_profile` gives the profile of an id. Both raise `UnavailableError` where there is no such
    bundle or no profile of the right digest, and what `open_bundle` and `summarise` raise otherwise.
    """
    from certkit.passport.issuing import replayed  # noqa: PLC0415 - the same

    folders = (roots,) if isinstance(roots, Path) else tuple(roots)

    @cache  # hashed once, for the digests and for the replay
    def bundles() -> tuple[evidence.Bundle, ...]:
        try:
            return tuple(evidence.open_bundle(root, progress=progress) for root in folders)
        except CertkitError as error:
            if error.code in _ABSENT:
                raise UnavailableError("passport.unavailable", str(error)) from None
            raise

    @cache  # several are read to know their order
    def pooled() -> evidence.Accumulation:
        return evidence.accumulate(bundles(), jobs=jobs, progress=progress)

    def opened() -> Opened:
        facts, parts = bundles()[0].facts, tuple[evidence.Facts, ...]()
        if len(folders) > 1:
            facts, parts = pooled().facts, tuple(part.facts for part in pooled().parts)
        told = declared(facts, parts)
        return Opened(digest=facts.digest, agent_digest=facts.agent_digest, declared=told)

    def replay(statement: Statement) -> dict[str, Any]:
        judgement = statement.predicate.assessment
        profile, tier = _profile(load_profile, judgement.profile), judgement.required_tier
        if len(folders) > 1:
            judged = assessment.assess_accumulation(pooled(), profile, required_tier=tier)
            return replayed(_answered(judged, statement), pooled().summary)
        source = bundles()[0]
        summary = evidence.summarise(source, jobs=jobs, progress=progress)
        judged = assessment.assess(summary, source.facts, profile, required_tier=tier)
        return replayed(_answered(judged, statement), summary)

    return opened, replay


def _answered(judged: Assessment, statement: Statement) -> Assessment:
    """Return a judgement with the stated answers, which no evidence tells."""
    predicate = statement.predicate
    stated = {item.code: item.answered_by or () for item in predicate.challenges if item.state == "answered"}
    answered = assessment.contested(judged, stated)
    return structs.replace(answered, context=predicate.assessment.context)


def _profile(load: Callable[[str], Profile], wanted: Judged) -> Profile:
    try:
        profile = load(wanted.id)
    except CertkitError as error:
        raise UnavailableError("passport.unavailable", str(error), hint=error.hint) from None
    if profile.digest != wanted.digest:
        raise UnavailableError(
            "passport.unavailable",
            f"profile {wanted.id} here is {profile.digest}, the passport was judged by {wanted.digest}",
            hint="give the profile that it was judged by with --profile FILE",
        )
    return profile
