"""``certkit profile`` and ``certkit recheck``: tier tables, and the arithmetic of claims made by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit import workflow
from certkit.assessment import recheck as room
from certkit.assessment.lint import lint as profile_faults
from certkit.assessment.profile import Profile
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold, refuse
from certkit.cli.views.assessment import show_profile
from certkit.ground.document import BESIDE, Digest, Document, Part, Text, fill
from certkit.ground.errors import Exit, UsageError
from certkit.passport.statement import Reading

if TYPE_CHECKING:
    from certkit.assessment.recheck import RecheckDocument

_NAME = "A packaged name, or the path of a TOML file."


class ListedProfile(Part, frozen=True, kw_only=True):
    """A packaged profile."""

    id: Text
    title: Text | None
    reading: Reading
    digest: Digest


class Profiles(Document, frozen=True, kw_only=True, tag="urn:certkit:profiles:v1"):
    """The packaged profiles."""

    profiles: Sequence[ListedProfile]


class ProfileLint(Document, frozen=True, kw_only=True, tag="urn:certkit:profile-lint:v1"):
    """Faults of a profile; none: an empty list."""

    profile: Text
    faults: Sequence[Text]

    @property
    def exit_code(self) -> Exit:
        """1 where there are faults."""
        return Exit.NEGATIVE if self.faults else Exit.OK


class ProfileShow(Document, frozen=True, kw_only=True, tag="urn:certkit:profile-show:v1"):
    """A profile with its digest."""

    digest: Digest
    profile: Annotated[Profile, BESIDE]


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[PROFILE]", help=f"{_NAME} Without it, all packaged are listed.")
    ] = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the file itself, to copy and edit.")] = False,
) -> None:
    """Show a profile's table: every criterion, its operator, and its threshold at each tier.

    Without a name, the packaged profiles are listed with their digests.

    Example: certkit profile show hb-eval-2026 --toml > mine.toml
    """
    if toml:
        refuse("is not what --toml prints", "json")
    if name is None:
        if toml:
            raise UsageError("usage.option", "--toml prints the file of one profile", hint="name it")
        profiles = [workflow.load_profile(each) for each in workflow.packaged_profiles()]
        emit(Profiles(profiles=[fill(ListedProfile, item) for item in profiles]), _listed(profiles))
        return
    profile = workflow.load_profile(name)
    text = workflow.profile_text(name)[0].encode() if toml else None
    emit(text or ProfileShow(digest=profile.digest, profile=profile), text or show_profile(profile))


def _listed(profiles: Iterable[Profile]) -> Iterator[str]:
    width = max(len(item.id) for item in profiles) + 2
    for item in profiles:
        text = f"{item.title or ''} ({item.reading} reading) {item.digest}".strip()
        yield from fold(text, first=f"{item.id:<{width}}", rest=" " * width)


def lint(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help=_NAME)],
    runs: Annotated[
        int | None, opt.RUNS(min=1, help="Runs that are planned: refuses rows that they can never meet.")
    ] = None,
) -> None:
    """Check that a profile makes sense: thresholds that rise with the tiers, rows that can be met.

    Exit code 0: nothing is wrong; 1: a fault was found; 3: it is not a profile at all.

    Example: certkit profile lint ./mine.toml --runs 1000
    """
    profile = workflow.load_profile(name, linted=False)
    faults = [str(fault) for fault in profile_faults(profile, runs)]
    lines = [line for fault in faults for line in fold(fault, rest="  ")]
    emit(ProfileLint(profile=profile.id, faults=faults), lines or [f"{profile.id}: nothing found"])


_MARKS: Final = {"impossible": "✗", "inconsistent": "≠", "undecidable": "?", "consistent": "✓"}
_INDENT: Final = " " * 15


def recheck(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file of claims, or a packaged name.")],
) -> None:
    """Check the arithmetic of published claims: posteriors, intervals, tiers, aggregates, differences, tests.

    A claim is consistent, undecidable, inconsistent, or impossible: nothing that prints as stated gives it.
    Exit code 0: all are consistent; 1: one is impossible or inconsistent; 4: the rest is undecidable.

    Example: certkit recheck hb-eval-papers
    """
    codes = ("recheck.unknown", "recheck.invalid")
    claims = room.parse(*workflow.named_text("recheck", name, what="claims", codes=codes))
    done = room.recheck(claims, profiles=cache(workflow.load_profile))
    emit(done, _rechecked(done))


def _rechecked(done: RecheckDocument) -> Iterator[str]:
    yield from fold(f"{done.id}: {done.title}" if done.title else done.id)
    for result in done.claims:
        yield ""
        state = str(result.state)
        yield from fold(f"{result.id}: {result.where}", first=f"{_MARKS[state]} {state:<12} ", rest=_INDENT)
        yield from fold(f"printed: {result.printed}", first=_INDENT, rest=_INDENT)
        yield from fold(result.arithmetic, first=_INDENT, rest=_INDENT)
        if result.missing:
            yield from fold(f"missing: {', '.join(result.missing)}", first=_INDENT, rest=_INDENT)
    yield ""
    yield from fold(", ".join(f"{number} {state}" for state, number in done.counts.items()))
