"""What surrounds a command: the clock, the user's own files, private keys and the trust policy.

Clock and environment are read here and nowhere below; what is found is passed down as values.
"""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

import typer

from certkit.cli.emit import warn
from certkit.ground import files
from certkit.ground.canonical import is_digest
from certkit.ground.errors import InputError, UsageError
from certkit.passport import keys
from certkit.passport.passport import CLOCK_SKEW
from certkit.passport.trust import read_policy

if TYPE_CHECKING:
    from certkit.api.judging import Judged
    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.report.context import Given

MAX_PASSPHRASE: Final = 4096
_OLDEST: Final = 2000
"""The year before which no run was made; spreadsheets and clocks that were never set begin before it."""


def moment(text: str) -> datetime:
    """Return an RFC 3339 time with offset, or the beginning (UTC) of a date; 1970 to 9998 alone."""
    try:
        time = datetime.fromisoformat(text if "T" in text else f"{text}T00:00:00Z")
    except ValueError:
        time = None
    # Beyond these years an offset or a tolerance leaves the calendar.
    if time is None or time.tzinfo is None or not 1970 <= time.year < 9999:  # noqa: PLR2004
        hint = "a date, 2026-01-31, or a time with its offset, 2026-01-31T12:00:00Z"
        raise UsageError("usage.option", f"{text!r} is not a time from 1970 to 9998", hint=hint)
    return time.astimezone(UTC)


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Refuse files to write that are there and shall not be replaced, before any work is done for them."""
    for path in paths:
        if path is not None:
            files.check_target(path, overwrite=force, hint="choose another name, or replace it with --force")


def profile_digest(name: str) -> str:
    """Return the digest of a profile that was named, by its name, its file, or the digest itself."""
    from certkit.assessment.profile_file import load_profile  # noqa: PLC0415 - 'verify' reads no profile

    return name if is_digest(name) else load_profile(name).digest


def salt_of(old: Path) -> str | None:
    """Return the task salt of an earlier bundle; warn where it has none."""
    from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - most commands open no bundle

    salt = open_bundle(old).manifest.protocol.task_salt
    if salt is None:
        warn(f"{old} has no task salt to keep: drift will not pair tasks")
    return salt


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is the clock's door


def dated(at: datetime | None) -> datetime:
    """Return the date of what is signed now, or as ``--at`` says, which may not be a time to come.

    Nothing is dated before what a log holds already: an entry dated far ahead would bar all others till then.
    A status so dated would hide what is logged meanwhile.
    """
    if at is None:
        return now()
    if at > now() + CLOCK_SKEW:
        raise UsageError(
            "usage.option", f"--at: {at.isoformat()} is to come", hint="what is signed is dated now or before"
        )
    return at


def today() -> date:
    """Return the day by which acceptances end: that of SOURCE_DATE_EPOCH where it is set, else today."""
    return (document_date() or now()).date()


def check_dates(first: date | None, last: date | None) -> None:
    """Warn where the first or the last run has a day that a wrong date format may have made."""
    questionable = {last: "which is to come"} if last and last > now().date() else {}
    questionable |= {first: f"before {_OLDEST}"} if first and first.year < _OLDEST else {}
    for day, why in questionable.items():
        warn(f"runs start on {day}, {why}: is the date format right?")


def document_date() -> datetime | None:
    """Return the date that SOURCE_DATE_EPOCH sets for reproducible documents, None where it is not set."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(text), tz=UTC) if text else None


def heads_path() -> Path:
    """Return the file that remembers what was signed: CERTKIT_HEADS, or that of the user's state folder."""
    if named := os.environ.get("CERTKIT_HEADS"):
        files.check_source(Path(named))
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative path there is to be ignored, by the XDG base directory specification.
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "certkit" / "heads.db"


def log_key_path(origin: str) -> Path:
    """Return where the private key of a log lies by default: in the user's configuration folder.

    Raises:
        UsageError: ``registry.log-key`` for an origin that a registry of certkit cannot have.
    """
    if not re.fullmatch(r"certkit\.[a-z0-9][a-z0-9.-]{0,62}/[0-9a-f-]{36}", origin):
        raise UsageError(
            "registry.log-key", f"no default place for the key of {origin[:80]!r}", hint="--log-key FILE"
        )
    return Path(typer.get_app_dir("certkit")) / "logs" / f"{origin.replace('/', '-')}.pem"


def policy_path(given: Path | None) -> Path:
    """Return the policy file that was named, or the user's own."""
    return given or Path(typer.get_app_dir("certkit")) / "trust.json"


def load_policy(given: Path | None) -> Trust:
    """Return the policy in a file.

    Raises:
        InputError: ``file.missing`` where there is none.
    """
    path = policy_path(given)
    if not path.exists():
        raise InputError(
            "file.missing",
            "there is no trust policy",
            where=str(path),
            hint="certkit trust add --issuer NAME --key PUBLIC.pem\nor name a policy with --trust FILE",
        )
    return read_policy(path)


def load_context(path: Path | None) -> Given | None:
    """Return the ``context.json`` that was named, None where none is.

    Raises:
        InputError: it is malformed.
    """
    if path is None:
        return None
    from certkit.report.argument import challenges  # noqa: PLC0415 - most are judged without answers

    return challenges.load_context(path)


def check_context(judged: Judged) -> None:
    """Warn of a context about other evidence."""
    if judged.stale:
        warn(f"the context is about other evidence ({', '.join(judged.stale)}): what it says does not count")


def passphrase(path: Path | None) -> bytes | None:
    """Return the first line of a passphrase file, None where no file is named."""
    if path is None:
        return None
    line = files.read(path, limit=MAX_PASSPHRASE).split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise UsageError("key.passphrase", "the first line is empty", where=str(path))
    return line


def new_passphrase(path: Path | None, *, ask: bool) -> bytes | None:
    """Return a new key's passphrase: the file's, or one that is asked for twice; None for none."""
    if path is not None or not ask:
        return passphrase(path)
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)).encode()


def signing_key(path: Path, passphrase_file: Path | None) -> PrivateKey:
    """Return the private key in a file, asking for its passphrase where that is needed and possible."""
    if not path.exists():
        hint = f"certkit keys generate -o {quote(str(path))} --public PUBLIC.pem"
        raise InputError("file.missing", "not found", where=str(path), hint=hint)
    words = passphrase(passphrase_file)
    if words is None and sys.stdin.isatty() and keys.is_encrypted(path):
        words = str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True)).encode()
    return keys.load_private(path, passphrase=words)
