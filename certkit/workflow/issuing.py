"""Issuing: bundles are judged again, the assessment is signed, logged and drawn, all into one folder.

    made = issue(Path("bundle"), Path("issued"), key=key, issuer=Issuer(name="Lab"), at=now)
    made.passport, made.logged

Keys are given, never made; nothing is left behind where a step fails, except an entry that was logged.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit import report
from certkit.ground import canonical, files
from certkit.ground.errors import MismatchError
from certkit.ground.progress import SILENT, Progress
from certkit.passport import issuing, keys
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.registry.admission import PROOF_SUFFIX, Admitted, admit
from certkit.workflow.judging import judge, paths_of, refuse_inside
from certkit.workflow.named import DEFAULT_PROFILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.assessment.result import Assessment
    from certkit.bundle.context import Given
    from certkit.ground.canonical import Digest
    from certkit.passport.issuing import Issuer
    from certkit.passport.keyless import Keyless
    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Passport
    from certkit.report import View


NOT_ASKED: Final = "not asked for"
"""Why there is no PDF where nobody wanted one."""


class Logging(Struct, frozen=True, kw_only=True):
    """Where a passport is logged: the registry's folder, the log's key, and who may have signed.

    `heads` is the file, outside the registry, that remembers what was signed; `warn` is as for
    `certkit.registry.Registry.open`.
    """

    registry: Path
    log_key: Ed25519PrivateKey
    heads: Path
    trust: Trust
    warn: Callable[[str], None] = lambda _: None


class IssuedFiles(Struct, frozen=True, kw_only=True):
    """What `issue` made: the passport, the assessment it rests on, how it was logged, what is missing."""

    assessment: Assessment
    passport: Passport
    logged: Admitted | None
    pdf_missing: str | None


def issue(
    bundle: Path | Sequence[Path],
    out: Path,
    *,
    key: PrivateKey | Keyless,
    issuer: Issuer,
    at: datetime,
    timestamp: Callable[[bytes], bytes] | None = None,
    now: datetime | None = None,
    validity: timedelta | None = None,
    profile: str = DEFAULT_PROFILE,
    required_tier: int = 1,
    context: Given | None = None,
    supersedes: Digest | None = None,
    logging: Logging | None = None,
    pdf: bool = True,
    progress: Progress = SILENT,
) -> IssuedFiles:
    """Judge the bundle again, or several pooled, sign the judgement, log it, and draw its safety case.

    `out` becomes a folder with ``passport.json`` (and ``passport.json.tlog-proof`` where it was logged),
    ``assessment.json``, ``public-key.pem`` where a key signs, ``safety-case.html`` and, where Pango is there,
    ``safety-case.pdf`` unless `pdf` is false. `at` is the beginning of the validity, which is 90 days unless
    told otherwise; `timestamp` and `now` are as in `certkit.passport.issuing.issue`; only a key logs. Raises
    `CertkitError` subclasses; nothing is left at `out` then.
    """
    refuse_inside(bundle, out)
    judged, summary = judge(bundle, profile, required_tier=required_tier, context=context, progress=progress)
    signed = issuing.issue(
        judged,
        summary,
        issuer=issuer,
        key=key,
        not_before=at,
        not_after=at + (validity or issuing.VALIDITY),
        supersedes=supersedes,
        timestamp=timestamp,
        now=now,
    )
    with files.building(out) as folder:
        files.write(folder / "passport.json", signed.to_json())
        files.write(folder / "assessment.json", canonical.pretty(judged.to_dict()).encode())
        day = min(at, now or at).date()
        view = report.view(judged, context=context, summary=summary, passport=signed.to_json(), today=day)
        pdf_missing, logged = _draw(folder, view, pdf=pdf), None
        if isinstance(key, keys.PrivateKey):
            files.write(folder / "public-key.pem", keys.public_pem(key.public_key()).encode())
            if logging:
                logged = _log(folder, signed, key, logging, bundle, at=at, progress=progress)
    return IssuedFiles(assessment=judged, passport=signed, logged=logged, pdf_missing=pdf_missing)


def _draw(folder: Path, view: View, *, pdf: bool) -> str | None:
    """Write the safety case; return why there is no PDF, or None where there is one."""
    page = report.html(view)
    files.write(folder / "safety-case.html", page.encode())
    reason = report.pdf_missing() if pdf else NOT_ASKED
    if reason is None:
        files.write(folder / "safety-case.pdf", report.pdf(view, page))
    return reason


def _log(
    folder: Path,
    signed: Passport,
    key: PrivateKey,
    logging: Logging,
    bundle: Path | Sequence[Path],
    *,
    at: datetime,
    progress: Progress,
) -> Admitted:
    try:
        appended = admit(
            logging.registry,
            signed.to_json(),
            trust=logging.trust,
            submitter=key,
            log_key=logging.log_key,
            heads=logging.heads,
            at=at,
            warn=logging.warn,
            progress=progress,
        )
    except MismatchError as error:
        if error.code == "registry.attempt" and len(folders := paths_of(bundle)) == 1:
            error.hint = str(error.hint).replace("BUNDLE", shlex.quote(str(folders[0])))
        raise
    files.write(folder / f"passport.json{PROOF_SUFFIX}", appended.proof.to_bytes())
    return appended


def own_trust(name: str, key: PrivateKey) -> Trust:
    """Return the trust policy of an issuer who trusts only itself."""
    pem = keys.public_pem(key.public_key())
    return Trust(issuers=(TrustedIssuer(name=name, keys=(TrustedKey(pem=pem),)),))
