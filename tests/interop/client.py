"""The client of sigstore-conformance's protocol: verifies any Sigstore bundle by what verifies passports.

    run("--bundle", "notes.sigstore.json", "--key", "public-key.pem", "notes.txt")  # (exit code, document)

It takes a signature of a file, or an attestation that names the file's digest. Beside a key, log entries and
timestamps are verified where a trusted root is given. Exit codes are certkit's: 0 verified, 1 refused, 2 for
options that do not go together.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError, Exit, UsageError
from certkit.passport import keyless, keys, trusted_root
from tests.interop import anybundle

if TYPE_CHECKING:
    from argparse import Namespace

MAX_BUNDLE: Final = 64 * 1024 * 1024
MAX_ARTIFACT: Final = 1 << 30
_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")


def run(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Verify a bundle; return the exit code, and who signed when, or the error."""
    try:
        found = _verify(_parser().parse_args(arguments))
    except CertkitError as error:
        code = error.exit_code if isinstance(error, UsageError) else Exit.NEGATIVE
        return int(code), {"verified": False, "error": error.to_dict()}
    return int(Exit.OK), {"verified": True, "signer": found.signer, "time": found.time}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="client")
    parser.add_argument("artifact")
    for name in ("bundle", "key", "certificate-identity", "certificate-oidc-issuer", "trusted-root"):
        parser.add_argument(f"--{name}", required=name == "bundle")
    return parser


def _verify(options: Namespace) -> anybundle.Found:
    identity, issuer = options.certificate_identity, options.certificate_oidc_issuer
    named = (identity, issuer) if identity and issuer else None
    if (options.key is None) == (named is None) or (identity is None) != (issuer is None):
        raise UsageError(
            "usage.option",
            "expected --key, or --certificate-identity and --certificate-oidc-issuer together",
        )
    about, data = _artifact(options.artifact), files.read(Path(options.bundle), limit=MAX_BUNDLE)
    key = keys.load_public(Path(options.key)) if options.key else None
    root = _root(options.trusted_root) if named or options.trusted_root else None
    return anybundle.verify(data, about, key=key, identity=named, root=root)


def _artifact(text: str) -> anybundle.Artifact:
    # Never a file of that name, which somebody else may have put there: that one is ./sha256:…
    if match := _DIGEST.fullmatch(text):
        return anybundle.Artifact(sha256=match[1].lower())
    path = Path(text)
    if not path.exists():
        raise UsageError("file.missing", "not found", where=text)
    return anybundle.Artifact(sha256=files.sha256(path), read=lambda: files.read(path, limit=MAX_ARTIFACT))


def _root(path: str | None) -> dict[str, Any]:
    if path is None:
        return keyless.public_root()
    document: Any = canonical.loads(files.read(Path(path), limit=MAX_BUNDLE), where=path)
    trusted_root.check(document, path)
    return dict(document)
