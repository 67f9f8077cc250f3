"""Issuing on disk: a judgement is signed, drawn and logged, all into one folder.

    issued = write_issued(Path("issued"), judged, passport, key=key, today=today, logging=logging)
    issued.index, issued.pdf_missing

Nothing is left behind where a step fails, except an entry that was logged.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from certkit.api.judging import Judged
from certkit.ground import canonical, files
from certkit.passport import keys
from certkit.passport.logs import PROOF_SUFFIX
from certkit.passport.passport import Passport
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey

if TYPE_CHECKING:
    from datetime import date

    from certkit.passport.keys import PrivateKey
    from certkit.report.context import Given

NOT_ASKED: Final = "not asked for"
"""Why there is no PDF where none was asked for."""


class Logging(Struct, frozen=True, kw_only=True):
    """Where a passport is logged.

    Attributes:
        registry: the registry's folder.
        log_key: the log's key.
        heads: the file, outside the registry, that remembers what was signed.
        trust: who may have signed.
        at: the time of the entry.
    """

    registry: Path
    log_key: Ed25519PrivateKey
    heads: Path
    trust: Trust
    at: datetime


class IssuedFiles(Struct, frozen=True, kw_only=True):
    """What `write_issued` wrote.

    Attributes:
        passport: the passport.
        judged: what was signed.
        index: of the entry in the registry, None where the passport was not logged.
        pdf_missing: why there is no PDF, None where there is one.
    """

    passport: Passport
    judged: Judged
    index: int | None
    pdf_missing: str | None

    def __repr__(self) -> str:
        return f"<IssuedFiles: passport {self.passport.passport_id}, Tier {self.judged.tier}>"


def write_issued(
    out: Path,
    judged: Judged,
    passport: Passport,
    *,
    key: PrivateKey | None,
    today: date,
    given: Given | None = None,
    pdf: bool = True,
    logging: Logging | None = None,
) -> IssuedFiles:
    """Write the passport, the assessment, the public key and the safety case into a new folder, and log it.

    Args:
        out: the folder, which is made.
        judged: what was signed.
        passport: the passport.
        key: the key that signed and that submits to the registry; None where a certificate brought its own.
        today: the day for which acceptances and the age of the evidence are shown.
        given: the context that the safety case quotes.
        pdf: whether to draw the safety case as PDF too.
        logging: where to log the passport; only a key logs.

    Raises:
        CertkitError: nothing is left at `out`.
    """
    with files.building(out) as folder:
        files.write(folder / "passport.json", passport.to_json())
        files.write(folder / "assessment.json", canonical.pretty(judged.to_dict()).encode())
        if key is not None:
            files.write(folder / "public-key.pem", keys.public_pem(key.public_key()).encode())
        pdf_missing = _draw(folder, judged, passport, given=given, today=today, pdf=pdf)
        # Last, since an entry is never taken back.
        index = _log(folder, passport, key, logging) if logging and key else None
    return IssuedFiles(passport=passport, judged=judged, index=index, pdf_missing=pdf_missing)


def _draw(
    folder: Path, judged: Judged, passport: Passport, *, given: Given | None, today: date, pdf: bool
) -> str | None:
    """Write the safety case; return why there is no PDF, or None where there is one."""
    from certkit import report  # noqa: PLC0415 - drawing is heavy, and demo and issue are not the only users
    from certkit.api.reporting import draw  # noqa: PLC0415 - the same

    drawn = draw(judged, today=today, given=given, passport=report.IssuedPassport.of(passport))
    page = report.html(drawn)
    files.write(folder / "safety-case.html", page.encode())
    reason = report.pdf_missing() if pdf else NOT_ASKED
    if reason is None:
        files.write(folder / "safety-case.pdf", report.pdf(drawn, page))
    return reason


def _log(folder: Path, passport: Passport, key: PrivateKey, logging: Logging) -> int:
    """Append the passport to the registry, write the proof into the folder, and return the index."""
    from certkit.registry.writer import admit  # noqa: PLC0415 - many passports are not logged

    appended = admit(
        logging.registry,
        passport.to_json(),
        trust=logging.trust,
        submitter=key,
        log_key=logging.log_key,
        heads=logging.heads,
        at=logging.at,
    )
    files.write(folder / f"passport.json{PROOF_SUFFIX}", appended.proof.to_bytes())
    return appended.index


def own_trust(name: str, key: PrivateKey) -> Trust:
    """Return the trust policy of an issuer who trusts only itself."""
    pem = keys.public_pem(key.public_key())
    return Trust(issuers=(TrustedIssuer(name=name, keys=(TrustedKey(pem=pem),)),))
