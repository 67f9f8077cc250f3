"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import structs

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, emit, entry, fold
from certkit.ground import canonical, files
from certkit.ground.errors import UsageError
from certkit.ground.wording import many
from certkit.passport import keyless, keys, trusted_root
from certkit.passport.trust import MAX_POLICY, Identity, Trust, TrustedKey, cautions, parse
from certkit.passport.words import POLICY_LABEL, policy_rows


def add(
    trust: opt.TrustFile = None,
    issuer: Annotated[str | None, opt.ISSUER(help="Your name for whoever holds the key.")] = None,
    key: Annotated[Path | None, opt.KEY(help="The issuer's public key (PEM).")] = None,
    not_before: Annotated[datetime | None, opt.MOMENT("--not-before", help="Signatures from here.")] = None,
    not_after: Annotated[datetime | None, opt.MOMENT("--not-after", help="Signatures up to here.")] = None,
    identity: Annotated[str | None, opt.IDENTITY()] = None,
    oidc_issuer: Annotated[
        str | None, typer.Option("--oidc-issuer", metavar="URL", help="Where that signer has signed in.")
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--trusted-root",
            metavar="FILE",
            help="A Sigstore TrustedRoot, put into the policy; 'public': that of Sigstore's public instance, "
            "as installed.",
        ),
    ] = None,
    log: opt.LogKeys = None,
    witness: opt.WitnessKeys = None,
    profile: opt.Profiles = None,
    domain: opt.Domains = None,
) -> None:
    """Add to a trust policy: an issuer's key or identity, a Sigstore trusted root, a log, a witness.

    Where there is no policy yet, one is written. Without a profile any is accepted, and without a domain none
    is asked for. Certificates and timestamps count under the policy's trusted root alone. A root that is
    older than the policy's own is refused. What the policy requires, and what it no longer trusts, you change
    in the file, with an editor: the reference page of the trust policy lists every member.

    Example: certkit trust add --issuer "Example Lab" --key public-key.pem
    """
    policy = context.load_policy(trust) if context.policy_path(trust).exists() else Trust()
    if issuer is not None and key is not None and identity is None and oidc_issuer is None:
        pem = keys.public_pem(keys.load_public(key))
        policy = policy.with_issuer(issuer, TrustedKey(pem=pem, not_before=not_before, not_after=not_after))
    elif issuer and identity and oidc_issuer and not (key or not_before or not_after):
        policy = policy.with_issuer(issuer, Identity(identity=identity, issuer=oidc_issuer))
    elif issuer or key or identity or oidc_issuer or not_before or not_after:
        raise UsageError(
            "usage.option",
            "--issuer goes with --key, which alone may have a window, or with --identity and --oidc-issuer",
            hint="--issuer is your own name for them, --oidc-issuer the URL where they sign in",
        )
    if root is not None:
        policy = policy.with_root(_root(root))
    quorum = policy.witnesses
    policy = structs.replace(
        policy,
        logs=_and(policy.logs, log),
        witnesses=structs.replace(quorum, keys=_and(quorum.keys, witness)),
        profiles=_and(policy.profiles, [context.profile_digest(name) for name in profile or ()]),
        domains=_and(policy.domains, domain),
    )
    _save(policy, trust)


def show(trust: opt.TrustFile = None) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, and what is required.

    Cautions name what the policy lets pass and a careful verifier would not; they change no exit code.

    Example: certkit trust show --trust trust.json
    """
    policy, path = context.load_policy(trust), context.policy_path(trust)
    warned = tuple(cautions(policy))
    shown = [*policy_rows(policy), *(("caution", text) for text in warned)]
    lines = [line for label, text in shown for line in entry(label, text, POLICY_LABEL)]
    document = answer("trust-show", path=path, policy=policy.to_dict(), cautions=warned)
    emit(document, [str(path), *lines])


def _save(policy: Trust, given: Path | None) -> None:
    """Write a policy that can be read again, and say so."""
    path = context.policy_path(given)
    policy = parse(policy.to_json(), str(path))  # as whoever loads it will
    files.write(path, policy.to_json())
    count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
    held = [many(count, "trusted key"), *([f"keyless signers: {people}"] if people else [])]
    lines = fold(f"{path} written: {', '.join([*held, many(len(policy.logs), 'log key')])}")
    rootless = people and policy.trusted_root is None
    hints = ["no identity counts without a root: certkit trust add --trusted-root FILE"] if rootless else []
    emit(policy, lines, hints=hints)


def _and(held: tuple[str, ...], more: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*held, *(more or ())]))


def _root(name: str) -> dict[str, Any]:
    if name == "public":
        return keyless.public_root()
    document: Any = canonical.loads(files.read(Path(name), limit=MAX_POLICY), where=name)
    trusted_root.check(document, name)
    return dict(document)
