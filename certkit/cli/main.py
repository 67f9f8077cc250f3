"""The program ``certkit``: the tree of commands, and the way out.

Exit codes are those of `certkit.errors.Exit`, whatever happens: a wrong command line is 2, an expected
failure is its error's, anything unexpected is 70 and the only thing that may show a traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from certkit._version import __version__
from certkit.cli import assess, bundle, demo, imports, output, profile, simulate
from certkit.errors import CertkitError, Exit

app = typer.Typer(
    name="certkit",
    help="Certification evidence and agent passports: evidence in, a verdict that can be recomputed out.",
    epilog="Start with 'certkit demo', then 'certkit assess BUNDLE'.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"certkit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Certification evidence and agent passports: evidence in, a verdict that can be recomputed out."""


app.command("assess")(assess.assess)
app.add_typer(bundle.app, name="bundle")
app.command("import")(imports.import_)
app.add_typer(profile.app, name="profile")
app.command("simulate")(simulate.simulate)
app.command("demo")(demo.demo)


def run(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    json = "--json" in arguments
    try:
        result = typer.main.get_command(app)(args=arguments, prog_name="certkit", standalone_mode=False)
    except CertkitError as failure:
        output.error(failure, json=json)
        return failure.exit_code
    except TyperException as failure:
        output.usage(getattr(failure, "format_message", failure.__str__)(), json=json)
        return Exit.USAGE
    except (typer.Abort, KeyboardInterrupt):
        output.note("interrupted")
        return 130
    except (BrokenPipeError, SystemExit) as leaving:
        if isinstance(leaving, SystemExit) and not leaving.code:
            return Exit.OK  # typer leaves so after it printed a completion script
        # Whoever read the output has gone, which typer and rich answer by leaving with 1, a verdict's
        # code. The verdict was not delivered, so this leaves as a program that the signal ended.
        sys.stdout = None
        return 128 + 13
    except Exception as failure:  # noqa: BLE001 - the last door: no traceback unless asked for
        return output.bug(failure, json=json, traceback="-v" in arguments or "--verbose" in arguments)
    return result if isinstance(result, int) else Exit.OK
