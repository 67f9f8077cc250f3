"""A passport's file and what lies beside it: its proof of registration, its status, and a registry.

    given = taken(path)
    verify_taken(path, given, policy, registry, at, heads=None, **evidence_of([bundle], None, replay=True))

Registries are heavy to read, so their room is loaded only where one is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from certkit.ground import files
from certkit.ground.errors import CertkitError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.passport import keys
from certkit.passport.checks import AnswersGiven
from certkit.passport.logs import ENDED, PROOF_SUFFIX
from certkit.passport.pdf import MAX_PDF, take
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from certkit.passport.passport import Predicate
    from certkit.passport.pdf import Taken
    from certkit.passport.verify import Verification
    from certkit.tlog.checkpoint import Checkpoint

STATUS_SUFFIX: Final = ".status"
"""What is appended to a passport's file name to name the status beside it."""

_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]+:/"
"""With one slash, since a path has no two; a drive has one letter."""


def taken(path: Path) -> Taken:
    """Return the passport in a file, JSON or PDF, with its proof: the one beside it, or else one attached."""
    passport = take(files.read(path, limit=MAX_PDF), where=str(path))
    proof = path.with_name(path.name + PROOF_SUFFIX)
    if not proof.exists():
        return passport
    try:
        return structs.replace(passport, proof=files.read(proof, limit=MAX_PDF))
    except CertkitError as error:  # it may be anything, and is needed only where the policy says so
        return structs.replace(passport, proof=passport.proof or error)


def standing_of(
    passport: Path,
    registry: Path | None,
    *,
    trust: Trust,
    at: datetime,
    heads: Path | None,
    progress: Progress,
) -> dict[str, Any]:
    """Return the arguments of `certkit.passport.verify.verify` that bring the status along.

    They are the file beside the passport, and the registry that was named. Checkpoints that the file `heads`
    remembers of the log are compared with both.

    Raises:
        UsageError: ``usage.option`` for a URL.
    """
    path, sources = passport.with_name(passport.name + STATUS_SUFFIX), dict[str, Any]()
    if path.exists():
        from certkit.registry.status import MAX_SIZE, FileStatus  # noqa: PLC0415 - only where it is asked

        data = files.read(path, limit=MAX_SIZE)
        sources["beside"] = FileStatus(data, trust=trust, at=at, seen=_memory(trust, heads))
    if registry is not None:
        if re.match(_URL, str(registry)):
            raise UsageError(
                "usage.option",
                "--registry: a URL is not supported yet",
                hint="--registry DIR, with a copy of the tree that is published there",
            )
        from certkit.registry.status import FolderStatus  # noqa: PLC0415 - only where a registry is asked

        seen = _memory(trust, heads)
        sources["status"] = FolderStatus(registry, trust=trust, at=at, seen=seen, progress=progress)
    return sources


def evidence_of(
    bundles: Sequence[Path] | None, answers: Path | None, *, replay: bool, progress: Progress = SILENT
) -> dict[str, Any]:
    """Return the arguments of `certkit.passport.verify.verify` that bring the evidence along.

    Args:
        bundles: the bundles of the passport.
        answers: the ``context.json`` of the verifier.
        replay: summarise the records again.
        progress: told what is being read.

    Raises:
        UsageError: ``usage.option`` where a replay is wanted without evidence, or what it uses alone.
        InputError: ``file.missing`` or ``bundle.manifest-missing`` where a bundle is not there.
    """
    if answers is not None and not replay:
        raise UsageError("usage.option", "--context is for --replay", hint="add --replay --bundle DIR")
    if not bundles:
        if replay:
            raise UsageError("usage.option", "--replay needs the evidence", hint="--bundle DIR")
        return {}
    from certkit.bundle.folder import check_bundle  # noqa: PLC0415 - only where there is evidence
    from certkit.passport.evidence import BundleEvidence  # noqa: PLC0415 - the same

    for path in bundles:
        check_bundle(path)  # a mistyped path is no fact about the passport
    return {
        "evidence": BundleEvidence(bundles, progress=progress),
        "replay": replay,
        "answers": answers and (lambda predicate: _answers(answers, predicate)),
    }


def _answers(path: Path, predicate: Predicate) -> AnswersGiven:
    from certkit.report.argument.challenges import answers_of, load_context  # noqa: PLC0415 - with a context

    given = load_context(path)
    return AnswersGiven(digest=given.digest, answers=answers_of(given, predicate.evaluation))


def verify_taken(
    path: Path,
    given: Taken,
    trust: Trust,
    registry: Path | None,
    at: datetime,
    *,
    heads: Path | None,
    progress: Progress = SILENT,
    **asked: Any,
) -> Verification:
    """Verify a passport, with the files beside it and what a registry says of it.

    Args:
        path: the file of the passport.
        given: what was taken from it.
        trust: the verifier's policy.
        registry: the folder of a registry.
        at: the time of verification.
        heads: the file that remembers checkpoints of logs.
        progress: told what is being read.
        asked: further arguments of `certkit.passport.verify.verify`.
    """
    standing = standing_of(path, registry, trust=trust, at=at, heads=heads, progress=progress)
    arguments = standing | asked
    return verify(given.passport, trust=trust, at=at, proof=given.proof, in_pdf=given.in_pdf, **arguments)


def trust_key(path: Path) -> Trust:
    """Return a policy that trusts the public key in a file, and no other."""
    pem = keys.public_pem(keys.load_public(path))
    return Trust(issuers=(TrustedIssuer(name=f"the key in {path.name}", keys=(TrustedKey(pem=pem),)),))


def remembered(registry: Path, result: Verification, trust: Trust, heads: Path) -> Iterator[str]:
    """Remember the head of a registry that told the status of a passport; yield why it could not be."""
    ended = ENDED.values()
    if any(step.id == "status" and (step.status == "passed" or step.code in ended) for step in result.steps):
        from certkit.registry.reader import remember  # noqa: PLC0415 - only where a registry is asked

        try:
            remember(registry, trust, heads)
        except CertkitError as error:
            yield f"the head of the registry is not remembered: {error}"


def _memory(trust: Trust, heads: Path | None) -> Callable[[str], Checkpoint | None]:
    """Return what tells the newest checkpoint that `heads` remembers of a log, by any of its keys."""
    if heads is None:
        return lambda _: None
    from certkit.registry.heads import remembered as seen  # noqa: PLC0415 - only where a log is asked
    from certkit.registry.reader import keys_of_log  # noqa: PLC0415 - the same

    return lambda origin: seen(heads, *keys_of_log(trust, origin))
