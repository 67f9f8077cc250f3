"""The verification cases of Sigstore's public conformance suite, run on certkit by `tests.interop.client`.

    git clone https://github.com/sigstore/sigstore-conformance SUITE
    python -m tests.interop.conformance SUITE

Each folder of ``SUITE/test/assets/bundle-verify`` is one case: a bundle, the file that was signed, whose
signature is expected, under which root. A folder whose name ends in ``_fail`` must be refused. Every case is
run twice, with the file and with its digest. Prints what became of each; leaves with 0 if all ended as they
must, but for those that are named here with the reason. Needs no network, and keeps nothing of the suite.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.interop import client

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES: Final = Path("test/assets/bundle-verify")
OPEN: Final = {
    "intoto-with-custom-trust-root": (
        "its log entry has the retired type intoto 0.0.2, which sigstore-python does not read and the suite "
        "counts as optional; four cases of that type that must be refused are refused for that reason alone"
    )
}
"""Cases that do not end as the suite says, each with its reason."""

# What the suite takes where a case names nobody (test/assets/bundle-verify/README.md).
IDENTITY: Final = (
    "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon"
    "/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
)
ISSUER: Final = "https://token.actions.githubusercontent.com"


class Ended(NamedTuple):
    """How a case ended: as it must or not, and what was said with the file and with its digest."""

    name: str
    right: bool
    said: str


def run(suite: Path) -> Iterator[Ended]:
    """Run the cases of the suite, by name."""
    for folder in sorted(path for path in (suite / CASES).iterdir() if path.is_dir()):
        own = folder / "artifact"
        artifact = own if own.is_file() else folder.parent / "a.txt"
        digest = f"sha256:{hashlib.sha256(artifact.read_bytes()).hexdigest()}"
        said = [_said(folder, about) for about in (str(artifact), digest)]
        right = all((one == "verified") != folder.name.endswith("_fail") for one in said)
        yield Ended(folder.name, right, ", ".join(dict.fromkeys(said)))


def _said(folder: Path, artifact: str) -> str:
    """Return ``verified``, or the code of the refusal. A bug is no refusal."""
    code, document = client.run(*_options(folder), artifact)
    if code == 0:
        return "verified"
    if code not in {1, 3}:
        raise AssertionError(f"{folder.name}: left with {code}: {document}")
    return str(document["error"]["code"])


def _options(folder: Path) -> list[str]:
    def told(name: str, otherwise: str) -> str:
        path = folder / name
        return path.read_text(encoding="utf-8").strip() if path.is_file() else otherwise

    options = ["--bundle", str(folder / "bundle.sigstore.json")]
    if (folder / "key.pub").is_file():
        options += ["--key", str(folder / "key.pub")]
    else:
        options += ["--certificate-identity", told("identity", IDENTITY)]
        options += ["--certificate-oidc-issuer", told("issuer", ISSUER)]
    if (folder / "trusted_root.json").is_file():
        options += ["--trusted-root", str(folder / "trusted_root.json")]
    return options


def main(arguments: list[str]) -> int:
    """Print a table, and return 0 if all cases ended as they must or have their reason."""
    if len(arguments) != 1 or not (Path(arguments[0]) / CASES).is_dir():
        print("usage: python -m tests.interop.conformance SUITE, a checkout of sigstore-conformance")
        return 2
    ended = list(run(Path(arguments[0])))
    for one in ended:
        print(f"{'ok   ' if one.right else 'WRONG'} {one.name}: {one.said}")
    wrong = [one.name for one in ended if not one.right]
    print(
        f"{len(ended) - len(wrong)} of {len(ended)} cases end as they must, with a file and with its digest"
    )
    for name in wrong:
        print(f"{name}: {OPEN.get(name, 'no reason is known')}")
    return int(not ended or any(name not in OPEN for name in wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
