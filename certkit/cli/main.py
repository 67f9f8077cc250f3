"""The program ``certkit``: the table of commands and the way out.

A module of `certkit.cli.commands` is loaded when one of its commands is called, so that help costs nothing of
what the commands use; a row's help line is the beginning of the command's own help. Every command gets
``--json`` and ``-q`` here, which `certkit.cli.emit` obeys.

Exit codes are those of `certkit.ground.errors.Exit`, whatever happens: a wrong command line is 2, an expected
failure is its error's, anything unexpected is 70 and the only thing that may show a traceback.
"""

from __future__ import annotations

import codecs
import gc
import os
import re
import signal
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException
from typer.main import get_install_completion_arguments

from certkit._version import __version__
from certkit.cli import emit
from certkit.cli.settings import SETTINGS, from_file
from certkit.ground.errors import CertkitError, Exit, UsageError


class CommandRow(NamedTuple):
    """A command: the words that call it, its line in the help, and the module of its function.

    The function is called as the last word, or that with ``_`` where Python has the name already.
    """

    words: str
    help: str
    module: str


TABLE: Final = (
    CommandRow("demo", "Run the whole chain on a trial of a reference policy", "demo"),
    CommandRow("simulate", "Write a bundle of simulated evidence", "simulate"),
    CommandRow("import", "Turn the log of another program into an evidence bundle", "importing"),
    CommandRow("assess", "Judge a bundle of evaluation records, or a log, against a tier table", "assess"),
    CommandRow("plan", "Say how many tasks and runs a tier takes", "plan"),
    CommandRow("explain", "Tell what a name on the screen means", "explain"),
    CommandRow("runs", "List the runs of a bundle by task, failing tasks first", "runs"),
    CommandRow("view", "Write the runs of a bundle as one page", "view"),
    CommandRow("compare", "Compare two agents on their evidence", "compare"),
    CommandRow("drift", "Compare an agent with itself at a later time", "compare"),
    CommandRow("issue", "Judge a sealed bundle again, sign the judgement as a passport", "issue"),
    CommandRow("verify", "Verify a passport against your trust policy", "verify"),
    CommandRow("show", "Show what a passport or a bundle says, on one screen", "show"),
    CommandRow("report", "Draw the safety case of a bundle or of a passport", "report"),
    CommandRow("context init", "Write a context.json to fill in", "report"),
    CommandRow("bundle init", "Write the manifest of a new bundle", "bundle"),
    CommandRow("bundle seal", "List every file with its digest in the manifest", "bundle"),
    CommandRow("bundle check", "Check structure, digests and every record of a bundle", "bundle"),
    CommandRow("trial plan", "Fix what will be run, before it is run", "trial"),
    CommandRow("trial run", "Run an agent through a plan, and write the bundle", "trial"),
    CommandRow("trial mcp", "Stand between an agent and its MCP server", "trial"),
    CommandRow("trial check", "Check a plan without an agent", "trial"),
    CommandRow("probes generate", "Write tasks with side questions", "probes"),
    CommandRow("probes run", "Ask an agent every question of the tasks", "probes"),
    CommandRow("probes score", "Tell how often an agent succeeds, and whether it held", "probes"),
    CommandRow("probes sheet", "Write a sheet for people to fill in", "probes"),
    CommandRow("profile show", "Show a profile's table", "profile"),
    CommandRow("keys generate", "Make a private key", "keys"),
    CommandRow("trust add", "Add to a trust policy", "trust"),
    CommandRow("trust show", "Show a trust policy", "trust"),
    CommandRow("registry init", "Make an empty registry", "registry"),
    CommandRow("registry append", "Log a passport", "registry"),
    CommandRow(
        "registry show",
        "List the lineages of a registry, the history of one, or the entries",
        "registry_show",
    ),
    CommandRow("registry prove", "Make a fresh proof that an entry is in the log", "registry"),
    CommandRow("registry audit", "Make everything in a registry again from its bytes", "registry"),
    CommandRow("registry revoke", "Log that a passport is revoked", "registry"),
    CommandRow("registry status", "Write a passport's status as a file for offline use", "registry"),
    CommandRow("registry cosign", "Take in cosignatures of witnesses", "registry"),
    CommandRow("registry export", "Write the log as files for any static host", "registry"),
    CommandRow("registry rotate-key", "Hand the log over to another key", "registry"),
)
GROUPS: Final = {
    "context": "Say what an agent is to be used for, and answer what speaks against it",
    "bundle": "Make, seal and check evidence bundles",
    "trial": "Run your agent under planned faults, and make evidence",
    "probes": "Ask whether an agent holds what its answers rest on",
    "profile": "The tier tables that evidence is judged against",
    "keys": "Make signing keys",
    "trust": "Say whose passports are accepted, and what must be checked",
    "registry": "Keep an append-only log of passports, and check it",
}

LETTERS: Final = {"✓": "+", "✗": "x", "–": "-", "≥": ">=", "≤": "<=", "≠": "!=", "…": "~", "█": "#", "░": "."}
"""What stands for a sign where standard output cannot show it; for any other character a question mark."""
HELP: Final = {"help_option_names": ["-h", "--help"]}
_EXAMPLE: Final = "Example: "


class Command(TyperCommand):
    """A command with ``--json`` and ``-q``, and an example in its help that can be copied."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            TyperOption(
                param_decls=["--json"], is_flag=True, help="Print one JSON document on standard output."
            ),
            TyperOption(
                param_decls=["-q", "--quiet"],
                is_flag=True,
                help="Print errors and serious findings only; the exit code tells the rest.",
            ),
        ]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with an example that can be copied whatever its length."""
        whole = self.help or ""
        self.help = whole.replace(_EXAMPLE, f"\b\n{_EXAMPLE}")  # what stands after \b is printed as it is
        super().format_help_text(ctx, formatter)
        self.help = whole

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; refuse an option with its opposite, of which only the last would count."""
        for param in self.params:
            pair = [
                next((word for word in names if word in args), "")
                for names in (param.opts, param.secondary_opts)
            ]
            if all(pair):
                raise UsageError("usage.option", f"{' and '.join(pair)} contradict each other: choose one")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, answering as the user wants."""
        sources = ((param, str(ctx.get_parameter_source(param.name))) for param in self.params)
        named = {str(param.name): param.opts[-1] for param, source in sources if "COMMANDLINE" in source}
        emit.wanted.set(emit.Wanted(ctx.params.pop("json"), ctx.params.pop("quiet"), named))
        return super().invoke(ctx)


class Lazy(TyperGroup):
    """A group of commands, each loaded only when it is called."""

    def __init__(self, *, rows: Iterable[CommandRow], **kwargs: Any) -> None:
        super().__init__(rich_markup_mode=None, no_args_is_help=True, context_settings=HELP, **kwargs)
        self.rows: Final[dict[str, list[CommandRow]]] = {}
        for row in rows:
            first, _, rest = row.words.partition(" ")
            self.rows.setdefault(first, []).append(row._replace(words=rest))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names in the order of the help."""
        return list(self.rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        """Return a command, loading its module at the first call; None where there is none of this name."""
        if cmd_name in self.rows and cmd_name not in self.commands:
            self.commands[cmd_name] = _loaded(cmd_name, self.rows[cmd_name])
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names; say which one is near where there is none."""
        if ctx.resilient_parsing or args[0] in self.rows or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        near = get_close_matches(args[0], self.rows, n=1)
        meant = [f"{ctx.command_path} {name}" for name in near]
        meant = meant or [f"certkit {row.words}" for row in TABLE if row.words.endswith(f" {args[0]}")]
        hints = [*(f"did you mean {command}?" for command in meant), f"{ctx.command_path} --help"]
        message = f"{ctx.command_path} has no command {args[0]!r}"
        raise UsageError("usage.option", message, hint="\n".join(hints))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, GROUPS.get(name, rows[0].help)) for name, rows in self.rows.items()])


def _loaded(name: str, rows: list[CommandRow]) -> Any:
    if rows[0].words:
        return Lazy(name=name, help=f"{GROUPS[name]}.", rows=rows)
    module = import_module(f"certkit.cli.commands.{rows[0].module}")
    function = name.replace("-", "_")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
    app.command(name, cls=Command)(getattr(module, f"{function}_", None) or getattr(module, function))
    return typer.main.get_command(app)


@cache
def tree() -> Lazy:
    """Return the tree of commands."""
    version = TyperOption(
        param_decls=["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        help="Print the version and exit.",
    )
    return Lazy(
        name="certkit",
        help="Certification evidence and agent passports: evidence in, a verdict that can be recomputed out.",
        epilog="Start with 'certkit assess LOG'; without a log, with 'certkit demo'.",
        params=[version, *get_install_completion_arguments()],
        rows=TABLE,
    )


def _version(ctx: Any, param: Any, value: bool) -> None:  # noqa: ARG001 - typer's signature
    if value:
        sys.stdout.write(f"certkit {__version__}\n")
        raise typer.Exit


def _letters(error: Any) -> tuple[str, int]:
    lost = error.object[error.start : error.end]
    return "".join(LETTERS.get(character, "?") for character in lost), error.end


def run(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code."""
    codecs.register_error("letters", _letters)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # what is half written goes, as after Ctrl-C
        if signal.getsignal(ending) is signal.SIG_DFL:
            signal.signal(ending, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="letters")
    code = main(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # else Python looks for garbage once more at exit: a fifth of a short command's time
    sys.exit(code)


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
        emit.error(lost, json=False)
        return lost.exit_code
    return code


def _check_words(arguments: list[str]) -> None:
    """Refuse bytes that are no text, and a SOURCE_DATE_EPOCH that is no time before a library trips on it.

    An empty SOURCE_DATE_EPOCH counts as absent, for libraries too.
    """
    try:
        for word in arguments:
            os.fsencode(word).decode()
    except UnicodeDecodeError:
        raise UsageError("usage.option", f"an argument is not text in UTF-8: {word}") from None
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        os.environ.pop("SOURCE_DATE_EPOCH", None)
    elif not re.fullmatch("[0-9]{1,11}", text):
        raise UsageError("usage.option", f"SOURCE_DATE_EPOCH is {text[:40]!r}, not seconds since 1970")


def _command(arguments: list[str]) -> int:
    json = "--json" in arguments
    try:
        _check_words(arguments)
        asks = {"-h", "--help", "--version"} & set(arguments)
        chosen, source = ({}, None) if asks else from_file(Path.cwd())
        if chosen and not {"-q", "--quiet"} & set(arguments):
            emit.note(f"note: {', '.join(chosen)} from {source}")
        result = tree()(
            args=arguments,
            prog_name="certkit",
            standalone_mode=False,
            default_map={
                command: {key: value for key, value in chosen.items() if command in SETTINGS[key].sets}
                for command in ("assess", "plan", "simulate", "demo")
            },
        )
    except CertkitError as failure:
        emit.error(failure, json=json)
        return failure.exit_code
    except TyperException as failure:
        if type(failure).__name__ == "NoArgsIsHelpError" and not json:
            emit.note(str(failure.format_message()))
            return Exit.USAGE
        ctx = getattr(failure, "ctx", None)
        path, about = (ctx.command_path, ctx.command.help or "") if ctx else ("certkit", "")
        told = getattr(failure, "format_message", failure.__str__)()
        example = about.partition(_EXAMPLE)[2]
        hint = f"{path} --help" + (f"\nfor example: {example}" if example else "")
        if names := [word for word in arguments if word.startswith("-/")]:  # a lineage without a provider
            hint = f"a name that begins with - comes last, after --: {path} … -- {names[0]}\n{hint}"
        emit.error(UsageError("usage.option", told, hint=hint), json=json)
        return Exit.USAGE
    except (typer.Abort, KeyboardInterrupt):
        emit.note("interrupted")
        return 130
    except OSError:
        raise
    except Exception as failure:  # noqa: BLE001 - the last door: no traceback unless asked for
        return emit.bug(failure, json=json, traceback="-v" in arguments or "--verbose" in arguments)
    return result if isinstance(result, int) else Exit.OK
