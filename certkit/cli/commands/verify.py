"""``certkit verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli import clock, output, standing
from certkit.cli.options import AsOf, Evidence, Jobs, Json, PassportFile, Quiet, ReplayProfile, Verbose
from certkit.cli.policy import TrustFile, load
from certkit.errors import CertkitError, UsageError

if TYPE_CHECKING:
    from certkit.passport.outcome import Claim, Verification
    from certkit.passport.pdf import Taken

MAX_FILE: Final = 64 * 1024 * 1024
"""What is read of a file that claims to be a passport; far above what its first step accepts."""

_MARKS: Final = {"passed": "+", "failed": "x", "skipped": "-"}


def verify(
    passport: PassportFile,
    trust: TrustFile = None,
    bundle: Evidence = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Compute the claim again from --bundle, and compare.")
    ] = False,
    profile: ReplayProfile = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="DIGEST", help="The agent it must be about.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="The domain of use, which must have been evaluated.")
    ] = None,
    require_tier: Annotated[
        int | None, typer.Option("--require-tier", min=1, max=9, help="The least tier to accept.")
    ] = None,
    registry: standing.RegistryAsked = None,
    at: AsOf = None,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Verify a passport against your trust policy: signature, validity, evidence, and what it claims.

    Works offline and writes nothing. A proof of registration is taken from PASSPORT.tlog-proof, and a
    status from PASSPORT.status, where these files are there. Of a PDF the attached passport is verified,
    and nothing that its pages say.

    Exit code 0: verified; 1: the signature or the subject is wrong; 3: malformed; 4: something required
    could not be checked; 6: ended; 7: evidence or replay differ; 8: not trusted.

    Example: certkit verify passport.json --trust trust.json --bundle bundle --replay
    """
    from certkit.passport.verification import verify as check  # noqa: PLC0415 - keeps the help fast

    if replay and not bundle:
        raise UsageError("usage.option", "--replay needs the evidence", hint="--bundle DIR")
    _refuse_malformed(agent)
    given, policy = taken(passport), load(trust)
    moment = clock.moment(at, "--at") if at else clock.now()
    found = check(
        given.passport,
        trust=policy,
        at=moment,
        agent=agent,
        domain=domain,
        require_tier=require_tier,
        proof=given.proof,
        **standing.asked(passport, registry, trust=policy, at=moment, hidden=quiet or json),
        **evidence_of(bundle, profile, replay=replay, jobs=jobs, hidden=quiet or json),
    )
    result = given.told(found)
    if json:
        output.document(result.to_dict())
    elif not quiet:
        _show(result, verbose=verbose, told=at is not None)
    raise typer.Exit(result.exit_code)


def _refuse_malformed(agent: str | None) -> None:
    from certkit.canonical import is_digest  # noqa: PLC0415 - keeps the help fast

    if agent is not None and not is_digest(agent):
        raise UsageError("usage.option", f"--agent: {agent!r} is not sha256: and 64 hexadecimal digits")


def taken(path: Path) -> Taken:
    """Return the passport in a file, JSON or PDF, with its proof: the one beside it, or else one attached."""
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    from certkit import files  # noqa: PLC0415 - the same
    from certkit.passport.pdf import take  # noqa: PLC0415 - the same

    found = take(files.read(path, limit=MAX_FILE), where=str(path))
    proof = path.with_name(path.name + ".tlog-proof")
    if not proof.exists():
        return found
    try:
        return structs.replace(found, proof=files.read(proof, limit=MAX_FILE))
    except CertkitError as error:  # it may be anything, and is needed only where the policy says so
        return structs.replace(found, proof=found.proof or error)


def evidence_of(
    bundle: Path | list[Path] | None, profile: str | None, *, replay: bool, jobs: int | None, hidden: bool
) -> dict[str, Any]:
    """Return the arguments of `certkit.passport.verify` that bring the evidence along."""
    if not bundle:
        return {}
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.cli.views.bar import progress  # noqa: PLC0415 - the same
    from certkit.passport.replay import from_bundle  # noqa: PLC0415 - the same

    opened, replayed = from_bundle(
        bundle,
        lambda name: workflow.load_profile(profile or name),
        progress=progress(hidden=hidden),
        jobs=jobs,
    )
    return {"evidence": opened, "replay": replayed if replay else None}


def _show(result: Verification, *, verbose: bool, told: bool) -> None:
    if result.claim is not None:
        _show_claim(result.claim)
    for step in result.steps:
        if verbose or step.status != "skipped":
            _paragraph(
                f"{_MARKS[step.status]} {step.number:>2} {step.id:<10} {_one_line(step.detail)}", " " * 16
            )
    output.say()
    output.wrapped(verdict_of(result, told=told))
    output.say()
    output.say("Not checked:")
    for item in result.not_checked:
        _paragraph(f"  {item}", "    ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _paragraph(text: str, indent: str) -> None:
    output.wrapped(text.lstrip(), first=" " * (len(text) - len(text.lstrip())), rest=indent)


def _show_claim(claim: Claim) -> None:
    output.wrapped(f"{claim.agent.name} {claim.agent.version}, it is claimed: {claim.claim}")
    output.wrapped(f"domains: {', '.join(claim.domains) or 'none'}")
    known_as = f" (calls itself {claim.issuer.stated_name})"
    same = claim.issuer.stated_name == claim.issuer.name
    output.wrapped(f"issued by {claim.issuer.name}{'' if same else known_as}")
    output.say(f"valid {claim.not_before} to {claim.not_after}")
    output.say()


def verdict_of(result: Verification, *, told: bool) -> str:
    """Return the verdict in words, with the step that decides it, and (`told`) the time it speaks of."""
    from certkit.passport.exports.words import utc  # noqa: PLC0415 - keeps the help fast

    time = f", as of {utc(result.at)}" if told else ""
    if result.deciding is not None:
        step = result.deciding
        return f"REJECTED at step {step.number} ({step.id}){time}: {_one_line(step.detail)} [{step.code}]"
    if result.verdict == "unverifiable":
        return f"UNVERIFIABLE{time}: nothing is wrong, but something that is required could not be checked"
    return f"VERIFIED{time}: what was checked holds, under your trust policy"
