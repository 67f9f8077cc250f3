"""``certkit verify-bundle``, in the words of sigstore-conformance's client protocol."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli import output
from certkit.cli.options import Json, Quiet
from certkit.errors import CertkitError, Exit, UsageError

if TYPE_CHECKING:
    from certkit.passport.anybundle import Artifact, Found

SCHEMA: Final = "urn:certkit:bundle-verification:v1"
MAX_BUNDLE: Final = 64 * 1024 * 1024
MAX_ARTIFACT: Final = 1 << 30
_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")


def verify_bundle(
    artifact: Annotated[
        str,
        typer.Argument(metavar="FILE_OR_DIGEST", help="The file that was signed, or its sha256:DIGEST."),
    ],
    bundle: Annotated[Path, typer.Option("--bundle", metavar="FILE", help="The Sigstore bundle.")],
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The signer's public key (PEM).")
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--certificate-identity", help="Who must have signed in.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option("--certificate-oidc-issuer", metavar="URL", help="Where they signed in.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--trusted-root",
            metavar="FILE",
            help="A Sigstore TrustedRoot. Default beside an identity: that of Sigstore's public instance.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify any Sigstore bundle: a signature of a file, or an attestation that names its digest.

    Works offline and writes nothing. Passports are for 'certkit verify', which knows what they mean. Beside
    a key, log entries and timestamps in the bundle are verified where --trusted-root is given. What has the
    form of a digest is one; a file of such a name is ./sha256:DIGEST. Exit code 0: verified; 1: not.

    Example: certkit verify-bundle --bundle notes.sigstore.json --key public-key.pem notes.txt
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import anybundle, keys  # noqa: PLC0415 - the same

    named = (identity, issuer) if identity and issuer else None
    if (key is None) == (named is None) or (identity is None) != (issuer is None):
        raise UsageError(
            "usage.option",
            "expected --key, or --certificate-identity and --certificate-oidc-issuer together",
        )
    about, data = _artifact(artifact), files.read(bundle, limit=MAX_BUNDLE)
    public = keys.load_public(key) if key else None
    trusted = _root(root) if named or root else None
    try:
        found = anybundle.verify(data, about, key=public, identity=named, root=trusted)
    except UsageError:
        raise
    except CertkitError as error:
        _refused(error, json=json, quiet=quiet)
        raise typer.Exit(Exit.NEGATIVE) from None
    _report(found, json=json, quiet=quiet)


def _artifact(text: str) -> Artifact:
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.anybundle import Artifact  # noqa: PLC0415 - the same

    # Never a file of that name, which somebody else may have put there: that one is ./sha256:…
    if match := _DIGEST.fullmatch(text):
        return Artifact(sha256=match[1].lower())
    path = Path(text)
    if not path.exists():
        raise UsageError("file.missing", "not found", where=text)
    return Artifact(sha256=files.sha256(path), read=lambda: files.read(path, limit=MAX_ARTIFACT))


def _root(path: Path | None) -> dict[str, Any]:
    from certkit import canonical, files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keyless, trusted_root  # noqa: PLC0415 - the same

    if path is None:
        return keyless.public_root()
    document: Any = canonical.loads(files.read(path, limit=MAX_BUNDLE), where=str(path))
    trusted_root.check(document, str(path))
    return dict(document)


def _report(found: Found, *, json: bool, quiet: bool) -> None:
    time = None if found.time is None else found.time.isoformat(timespec="seconds").replace("+00:00", "Z")
    if json:
        output.document({"schema": SCHEMA, "verified": True, "signer": found.signer, "signed_by": time})
    elif not quiet:
        output.wrapped(f"VERIFIED: signed by {found.signer}" + (f", at {time} or before" if time else ""))


def _refused(error: CertkitError, *, json: bool, quiet: bool) -> None:
    if json:
        output.document({"schema": SCHEMA, "verified": False, "error": error.to_dict()})
    elif not quiet:
        output.wrapped(f"REFUSED: {error} [{error.code}]")
