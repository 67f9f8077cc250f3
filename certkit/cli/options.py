"""Options that several commands share, each declared once.

``--json`` and ``-q`` belong to every command and are added where commands are loaded: `certkit.cli.main`.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from certkit.cli.context import moment


def packaged(incomplete: str) -> list[str]:
    """Return the packaged profiles whose names begin so, for the shell's completion."""
    from certkit.assessment.profile_file import packaged_profiles  # noqa: PLC0415 - no command needs it

    return [name for name in packaged_profiles() if name.startswith(incomplete)]


def mix(text: str) -> dict[str, float]:
    """Return what ``--fault-mix`` says: the share of each condition."""
    try:
        shares = (part.split("=") for part in text.split(","))
        return {name.strip(): float(share) for name, share in shares}
    except ValueError:
        message = f"{text!r} is not CONDITION=SHARE, with commas between"
        raise typer.BadParameter(message, param_hint="--fault-mix") from None


def _no_dash(path: Path | None) -> Path | None:
    """Refuse ``-``, which elsewhere means standard output and here would be a file of that name."""
    if path == Path("-"):
        raise typer.BadParameter("- is taken for no file here")
    return path


AGENT: Final = partial(typer.Option, "--agent", help="The name of the agent.")
AGENT_VERSION: Final = partial(typer.Option, "--agent-version", help="The agent's version.")
MOMENT: Final = partial(typer.Option, metavar="TIME", parser=moment)
AT: Final = partial(MOMENT, "--at", help="Look as of this time. Default: now.")
ATTEMPT: Final = partial(
    typer.Option, "--attempt", min=1, max=1_000_000, help="Which attempt of the agent it is."
)
BUNDLE: Final = partial(
    typer.Option,
    "--bundle",
    metavar="BUNDLE",
    help="The evidence bundle: its digests are checked. Once for each bundle.",
)
DOMAIN: Final = partial(typer.Option, "--domain", help="The domain of use, which must have been evaluated.")
FORMAT: Final = partial(typer.Option, "-f", "--format", help="The format to write.")
IDENTITY: Final = partial(
    typer.Option, "--identity", help="A keyless signer: the e-mail address or URI in their certificates."
)
ISSUER: Final = partial(typer.Option, "--issuer", help="The issuer's name, as it calls itself.")
KEY: Final = partial(typer.Option, "-k", "--key", metavar="FILE", help="The private key that signs (PEM).")
LIKE: Final = partial(
    typer.Option,
    "--like",
    metavar="OLD",
    help="An earlier bundle of the agent: keep its task salt, so that drift can pair the tasks.",
)
LOG_KEY: Final = partial(
    typer.Option,
    "--log-key",
    metavar="FILE",
    help="The log's private key. Default: in your configuration folder, under the log's name.",
)
CONDITION: Final = partial(typer.Option, "--condition", help="The condition of runs.")
NAME: Final = partial(typer.Option, "--name", help="The name.")
OUT: Final = partial(
    typer.Option, "-o", "--out", callback=_no_dash, help="The file to write. Default: standard output."
)
PROFILE: Final = partial(
    typer.Option,
    "-p",
    "--profile",
    autocompletion=packaged,
    help="A packaged profile (see 'certkit profile show') or the path of a TOML file.",
)
PUBLIC: Final = partial(typer.Option, "--public", help="The file of the new public key.")
READING: Final = partial(typer.Option, "--reading", help="The reading that counts.")
REGISTRY: Final = partial(
    typer.Option,
    "-r",
    "--registry",
    metavar="DIR",
    help="Ask this registry, or exported tree, whether the passport still stands.",
)
REQUIRE_TIER: Final = partial(typer.Option, "--require-tier", min=1, max=9, help="The least tier to accept.")
RUNS: Final = partial(typer.Option, "--runs", min=0, help="Runs, nominal ones included.")
SEED: Final = partial(
    typer.Option, "--seed", min=0, max=2**63 - 1, help="Seed of every draw of the simulation."
)
TIER: Final = partial(typer.Option, "--tier", min=0, max=9, help="The tier.")
TRUST: Final = partial(
    typer.Option,
    "-t",
    "--trust",
    metavar="FILE",
    envvar="CERTKIT_TRUST",
    help="The trust policy. Default: trust.json in your configuration folder.",
)
WITNESS: Final = partial(
    typer.Option, "--witness", metavar="VKEY", help="A witness's verifier key; repeatable."
)

PassportFile = Annotated[
    Path,
    typer.Argument(metavar="PASSPORT", help="The file passport.json, or the PDF that it is attached to."),
]
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder with bundle.json.")]
BundleFolders = Annotated[
    list[Path],
    typer.Argument(metavar="BUNDLE...", help="The folder with bundle.json; several of one agent are pooled."),
]
RegistryFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The registry's folder.", show_default=False)
]
EntryId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="An entry's index, a passport id, or at least the first 8 digits of one."
    ),
]
Registry = Annotated[Path | None, REGISTRY()]
Strict = Annotated[
    bool, typer.Option("--strict", help="Count rows that their paper calls provisional (CSI).")
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print every detail.")]
LogAgent = Annotated[str | None, AGENT(help="Name the agent, or choose one of several in the log.")]
LogMapping = Annotated[
    Path | None,
    typer.Option("--map", help="A TOML file that maps columns and values; see 'certkit import --columns'."),
]
LogDomain = Annotated[str | None, DOMAIN(help="The domain, where the log has none.")]
LogCondition = Annotated[
    str | None, CONDITION(help="The condition of all runs where the log has none, such as 'nominal'.")
]
LogSuccess = Annotated[
    str | None,
    typer.Option(
        "--success",
        metavar="EXPRESSION",
        help="When a run of the log succeeded, such as 'score >= 0.5'; agentdojo: 'strict' or 'utility'.",
    ),
]
LogTimezone = Annotated[
    str | None,
    typer.Option("--timezone", help="The zone of times without an offset, such as Europe/Berlin."),
]
LogEncoding = Annotated[
    str | None, typer.Option("--encoding", help="CSV: how its text is encoded, such as cp1252.")
]
IndependentTasks = Annotated[
    bool | None,
    typer.Option(
        "--independent-tasks/--dependent-tasks",
        help="Whether no two tasks share a template, site or document. Bounds need this, or cluster_id.",
    ),
]
LogAttempt = Annotated[int | None, ATTEMPT(help="This is the agent's n-th evaluation.")]
ProfileName = Annotated[str, PROFILE(envvar="CERTKIT_PROFILE")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ROW=THRESHOLD",
        help="Change a threshold of the profile for this call; ROW@TIER=THRESHOLD where a row has several.",
    ),
]
Evidence = Annotated[list[Path] | None, BUNDLE()]
Replay = Annotated[bool, typer.Option("--replay", help="Summarise the records of --bundle again.")]
AsOf = Annotated[datetime | None, AT()]
EntryTime = Annotated[datetime | None, AT(help="The time of the entry. Default: now.")]
Icc = Annotated[
    float, typer.Option("--icc", min=0.0, max=0.99, help="Intraclass correlation of outcomes in a cluster.")
]
DomainCount = Annotated[int, typer.Option("--domains", min=1, help="Application domains.")]
FaultMix = Annotated[
    dict[str, float] | None,
    typer.Option(
        "--fault-mix",
        metavar="C=S,…",
        parser=mix,
        help="Shares of fault conditions: adversarial=0.5,cascade=0.5",
    ),
]
Seed = Annotated[int, SEED(envvar="CERTKIT_SEED")]
Like = Annotated[Path | None, LIKE()]
ContextFile = Annotated[
    Path | None,
    typer.Option(
        "--context",
        metavar="FILE",
        help="context.json: purpose, hazards, reviewers, answers, decision.",
    ),
]
Out = Annotated[Path, OUT(help="The folder to write; must not exist or be empty.")]
Remember = Annotated[
    bool, typer.Option("--remember/--no-remember", help="Remember the registry's head for the next time.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file to write, if it is there.")]
NoSeal = Annotated[bool, typer.Option("--no-seal", help="Leave the bundle open for additions.")]
SigningKey = Annotated[Path, KEY(help="The private key of who signs the entry.")]
LogKey = Annotated[Path | None, LOG_KEY()]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        envvar="CERTKIT_PASSPHRASE_FILE",
        help="A file whose first line is the key's passphrase.",
    ),
]
Since = Annotated[
    Path | None,
    typer.Option("--since", metavar="FILE", help="A checkpoint, or a proof, that the log must continue."),
]
TrustFile = Annotated[Path | None, TRUST()]
Signers = Annotated[
    Path | None,
    TRUST(help="Count only what keys of this trust policy signed. Default: signatures are not checked."),
]
LogKeys = Annotated[
    list[str] | None, typer.Option("--log", metavar="VKEY", help="A registry's verifier key; repeatable.")
]
WitnessKeys = Annotated[list[str] | None, WITNESS()]
Profiles = Annotated[
    list[str] | None,
    PROFILE(help="A profile to accept: a packaged name, a TOML file or a digest; repeatable."),
]
Domains = Annotated[list[str] | None, DOMAIN(help="A domain that must have been evaluated; repeatable.")]
