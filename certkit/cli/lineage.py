"""The lineage that a command of ``certkit registry`` is about, and whose word its history is."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from certkit.cli import clock, output, places
from certkit.cli.policy import load
from certkit.cli.standing import memory
from certkit.cli.views.bar import progress
from certkit.errors import MismatchError, UnavailableError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.trust import Trust
    from certkit.registry.reader import Reader
    from certkit.registry.state import History
    from certkit.tlog.note import VerifierKey

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[DIR] LINEAGE",
        help="The registry, and a lineage: provider/name, or the name alone where no provider is stated.",
    ),
]
Signers = Annotated[
    Path | None,
    typer.Option(
        "-t",
        "--trust",
        metavar="FILE",
        envvar="CERTKIT_TRUST",
        help="Count only what keys of this trust policy signed. Default: signatures are not checked.",
    ),
]


class OfLineage(TyperCommand):
    """A command that is given a lineage, which without a provider begins as an option does: -/name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put such words behind all options, where they are none."""
        taking = {
            name
            for one in self.params
            if one.param_type_name == "option" and not getattr(one, "is_flag", False)
            for name in one.opts
        }
        end = args.index("--") if "--" in args else len(args)
        behind = [
            number
            for number, word in enumerate(args[:end])
            if word.startswith("-/") and (not number or args[number - 1] not in taking)
        ]
        rest = [word for number, word in enumerate(args[:end]) if number not in behind]
        return super().parse_args(ctx, [*rest, "--", *(args[one] for one in behind), *args[end + 1 :]])


class Told(NamedTuple):
    """A lineage's history with its log, and what is known of who signed."""

    log: Reader
    history: History
    policy: Path | None
    left_out: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what every document says of it."""
        head = self.log.head.checkpoint
        return {
            "lineage": self.history.lineage,
            "origin": head.origin,
            "size": head.size,
            "root": head.root.hex(),
            "signatures": "checked" if self.policy else "not checked",
            "left_out": list(self.left_out),
        }

    @property
    def of(self) -> str:
        """As of which checkpoint."""
        head = self.log.head.checkpoint
        return f"as of {output.entries(head.size)} of {head.origin}"

    @property
    def signed(self) -> str:
        """Whether the signatures of its entries were checked, and what was left out for them."""
        if self.policy is None:
            return "signatures not checked (--trust FILE)"
        if not self.left_out:
            return f"signatures checked under {self.policy}"
        which = ", ".join(map(str, self.left_out))
        what = f"entry {which} does" if len(self.left_out) == 1 else f"entries {which} do"
        return f"signatures checked under {self.policy}; {what} not count"


@contextmanager
def opened(words: list[str], registry: Path | None, trust: Path | None, *, hidden: bool) -> Iterator[Told]:
    """Open the log that the words name, and read the lineage's history; with a policy, what counts of it."""
    from certkit.passport.checks import CLOCK_SKEW  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.admission import keys_of_log  # noqa: PLC0415 - the same
    from certkit.registry.reader import reading  # noqa: PLC0415 - the same
    from certkit.tlog.witness import Quorum, counted  # noqa: PLC0415 - the same

    folder, lineage = places.split(words, registry, "LINEAGE")
    if trust is None:
        with places.own(folder, hidden=hidden) as log:
            yield Told(log, log.history(lineage), None, ())
        return
    policy = load(trust)
    quorum = Quorum.of(policy.witnesses.k, policy.witnesses.keys)
    seen = memory(lambda origin: keys_of_log(policy, origin))
    key, bar = _key(folder, policy), progress(hidden=hidden)
    with reading(folder, key=key, witnesses=quorum.keys, seen=seen, progress=bar) as log:
        latest = (clock.now() + CLOCK_SKEW).timestamp()
        cosigned = counted(log.head.cosigned, latest)
        if not quorum.is_met(cosigned):
            raise MismatchError(
                "registry.witnesses",
                f"{len(cosigned)} of {quorum.k} required witnesses cosigned",
                where=str(folder),
                hint="the log's keeper takes in what they sign: certkit registry cosign",
            )
        found = log.history(lineage, policy)
        yield Told(log, found, trust, found.left_out)


def _key(folder: Path, policy: Trust) -> VerifierKey:
    """Return the policy's present key of a log; raise `UntrustedError` where it did not sign."""
    from certkit.registry.reader import opened as source  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.status import log_key  # noqa: PLC0415 - the same

    with source(folder) as files:
        try:
            return log_key(files.note(), policy)
        except UnavailableError as error:
            raise UntrustedError(error.code, error.message, where=str(folder), hint=error.hint) from None


def heading(told: Told) -> None:
    """Print what the lines below are about, and whether signatures were checked."""
    found = told.history
    output.wrapped(f"{found.lineage}: {output.counted(len(found.passports), 'passport')}, {told.of}")
    output.wrapped(told.signed)
    output.say()
