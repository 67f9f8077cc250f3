"""``certkit profile``: tier tables, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.assessment.profile_file import (
    changed,
    faults_of,
    load_profile,
    packaged_profiles,
    parse_profile,
    profile_text,
)
from certkit.cli import options as opt
from certkit.cli.emit import answer, coloured, emit, fold, refuse
from certkit.cli.views.assessment import show_profile
from certkit.ground.errors import Exit, UsageError

if TYPE_CHECKING:
    from certkit.assessment.profile import Profile
    from certkit.cli.emit import Line

_NAME = "A packaged name, or the path of a TOML file."


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[PROFILE]", help=f"{_NAME} Without it, all packaged are listed.")
    ] = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the file itself, to copy and edit.")] = False,
    changes: opt.Changes = None,
    runs: Annotated[
        int | None, opt.RUNS(min=1, help="Runs that are planned: a row that they can never meet is wrong.")
    ] = None,
) -> None:
    """Show a profile's table: every criterion, its operator, and its threshold at each tier.

    What is wrong with the profile stands below its table: thresholds that fall as tiers rise, operators that
    reward the wrong side, rows that every agent meets or that none can. 'certkit assess' refuses a file with
    such a fault. Without a name, the packaged profiles are listed with their digests.

    Exit code 0: nothing is wrong; 1: a fault was found; 3: it is not a profile at all.

    Example: certkit profile show hb-eval-2026 --toml > mine.toml
    """
    if toml:
        refuse("is not what --toml prints", "json", "changes")
    if name is None:
        refuse("changes a threshold of one profile", "changes")
        if toml:
            raise UsageError("usage.option", "--toml prints the file of one profile", hint="name it")
        profiles = [load_profile(each) for each in packaged_profiles()]
        names = ("id", "title", "reading", "digest")
        rows = [{key: getattr(profile, key) for key in names} for profile in profiles]
        emit(answer("profiles", profiles=rows), _listed(profiles))
        return
    profile = parse_profile(profile_text(name), name)
    if toml:
        text = profile_text(name).encode()
        emit(text, text)
        return
    profile = changed(profile, changes or ())
    faults = faults_of(profile, profile.id if changes else name, planned_runs=runs)
    document = answer("profile-show", digest=profile.digest, faults=faults, **profile.to_dict())
    code = Exit.NEGATIVE if faults else Exit.OK
    emit(document, chain(show_profile(profile), _wrong(faults)), code=code)


def _wrong(faults: Sequence[str]) -> Iterator[Line]:
    if faults:
        yield ""
        yield from coloured(["What is wrong with it:"], "bold red")
    for fault in faults:
        yield from fold(fault, first="- ", rest="  ")


def _listed(profiles: Iterable[Profile]) -> Iterator[str]:
    width = max(len(item.id) for item in profiles) + 2
    for item in profiles:
        decides = "averages decide" if item.reading == "table" else "confidence limits decide"
        text = f"{item.title or ''} ({decides}) {item.digest}".strip()
        yield from fold(text, first=f"{item.id:<{width}}", rest=" " * width)
