"""The program ``certkit``: the tree of commands, and the way out.

Exit codes are those of `certkit.errors.Exit`, whatever happens: a wrong command line is 2, an expected
failure is its error's, anything unexpected is 70 and the only thing that may show a traceback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from certkit._version import __version__
from certkit.cli import config, helps, output
from certkit.errors import CertkitError, Exit, UsageError

# In the order of the help. A module holds either a group (`app`) or the function of one command.
_COMMANDS: Final = {
    "assess": "commands.assess",
    "import": "commands.imports",
    "issue": "commands.issue",
    "verify": "commands.verify",
    "show": "commands.show",
    "export": "commands.export",
    "verify-bundle": "commands.verify_bundle",
    "drift": "commands.drift",
    "plan": "commands.plan",
    "simulate": "commands.simulate",
    "report": "commands.report",
    "doctor": "commands.doctor",
    "demo": "commands.demo",
    "bundle": "commands.bundle",
    "profile": "commands.profile",
    "recheck": "commands.recheck",
    "compare": "commands.compare",
    "keys": "commands.keys",
    "trust": "commands.trust",
    "registry": "commands.registry",
    "config": "config",
}


def tree(wanted: str | None = None) -> typer.Typer:
    """Return the tree of commands, or of one command alone, which is much sooner there."""
    app = typer.Typer(
        name="certkit",
        help="Certification evidence and agent passports: evidence in, a verdict that can be recomputed out.",
        epilog="Start with 'certkit demo', then 'certkit assess BUNDLE'.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name, home in _COMMANDS.items():
        if wanted in _COMMANDS and name != wanted:
            continue
        module = import_module(f"certkit.cli.{home}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            function = getattr(module, home.rpartition(".")[2], None) or getattr(module, f"{name}_")
            app.command(name)(function)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"certkit {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Certification evidence and agent passports: evidence in, a verdict that can be recomputed out."""


def run(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = _command(arguments)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as leaving:
        if isinstance(leaving, SystemExit) and not leaving.code:
            return Exit.OK  # typer leaves so after it printed a completion script
        # Whoever read the output has gone, which typer and rich answer by leaving with 1, a verdict's
        # code. The verdict was not delivered, so this leaves as a program that the signal ended.
        sys.stdout = None
        return 128 + 13
    except OSError as failure:
        # Rooms wrap what the system refuses them, so this is nearly always standard output on, say, a full
        # disk. The verdict was not delivered, and must not seem to be by its code.
        sys.stdout = None
        lost = UsageError(
            "file.unwritable", failure.strerror or "refused", where=str(failure.filename or "standard output")
        )
        output.error(lost, json=False)
        return lost.exit_code
    return code


def _check_epoch() -> None:
    """Refuse a SOURCE_DATE_EPOCH that is no number before a library trips over it."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if text and not (text.isascii() and text.isdigit()):
        raise UsageError("usage.option", f"SOURCE_DATE_EPOCH is {text[:40]!r}, not seconds since 1970")


def _check_text(arguments: list[str]) -> None:
    """Refuse bytes that are no text, which nothing that is written could repeat."""
    for word in arguments:
        try:
            os.fsencode(word).decode()
        except UnicodeDecodeError:
            raise UsageError("usage.option", f"an argument is not text in UTF-8: {word}") from None


def _command(arguments: list[str]) -> int:
    json = "--json" in arguments
    try:
        _check_text(arguments)
        _check_epoch()
        asks = {"-h", "--help", "--version"} & set(arguments)
        settings, source = ({}, None) if asks else config.load(Path.cwd())
        if settings and not {"-q", "--quiet"} & set(arguments):
            output.note(f"note: {', '.join(settings)} from {source}")
        program = typer.main.get_command(tree(arguments[0] if arguments else None))
        result = helps.tidied(program)(
            args=arguments,
            prog_name="certkit",
            standalone_mode=False,
            default_map=config.default_map(settings),
        )
    except CertkitError as failure:
        output.error(failure, json=json)
        return failure.exit_code
    except TyperException as failure:
        if type(failure).__name__ == "NoArgsIsHelpError" and not json:
            output.note(str(failure.format_message()))
            return Exit.USAGE
        output.usage(getattr(failure, "format_message", failure.__str__)(), json=json)
        return Exit.USAGE
    except (typer.Abort, KeyboardInterrupt):
        output.note("interrupted")
        return 130
    except OSError:
        raise
    except Exception as failure:  # noqa: BLE001 - the last door: no traceback unless asked for
        return output.bug(failure, json=json, traceback="-v" in arguments or "--verbose" in arguments)
    return result if isinstance(result, int) else Exit.OK
