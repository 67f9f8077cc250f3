"""Errors that a user may meet: one tree, one stable code each, one exit code per branch.

Rules for messages: the object first, then what was expected and what was found, in lower case and without a
full stop; the next step goes into ``hint``. Foreign exceptions are wrapped where they arise. Any other
exception is a bug in certkit, with exit code 70.

    >>> error = InputError("bundle.manifest-missing", "bundle.json: not found", where="runs/")
    >>> error.code, error.exit_code
    ('bundle.manifest-missing', 3)

This module knows no room above it and does no I/O.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """Exit codes: documented in docs/reference/errors.md, tested, stable."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    MALFORMED = 3
    INSUFFICIENT = 4
    DRIFT = 5
    ENDED = 6
    MISMATCH = 7
    UNTRUSTED = 8
    BUG = 70


# Every code that a message or a JSON document can carry, with its meaning. The reference page of the
# documentation is generated from this table; a code that is not listed here cannot be raised.
CODES: Final[dict[str, str]] = {
    # JSON, at every door
    "json.syntax": "the bytes are not JSON",
    "json.encoding": "the bytes are not UTF-8, begin with a byte order mark, or hold a lone surrogate",
    "json.duplicate-key": "an object holds the same key twice",
    "json.number": "a number is NaN, infinite, or an integer beyond ±(2^53 − 1)",
    "json.too-deep": "arrays or objects are nested deeper than the limit",
    "json.too-large": "the document is larger than the limit",
    "json.not-canonical": "a value has no canonical form",
    # files
    "file.missing": "a named file or folder does not exist",
    "file.exists": "a file that would be overwritten exists",
    "file.not-regular": "a named file is a folder, a pipe, a socket or a device",
    "file.unreadable": "the operating system refused to read a file",
    "file.unwritable": "the operating system refused to write a file",
    # the bundle
    "bundle.manifest-missing": "the folder has no bundle.json",
    "bundle.manifest-invalid": "bundle.json does not have the published form",
    "bundle.path-unsafe": "a path leaves the bundle, is absolute, or cannot be the same on every system",
    "bundle.path-collision": "two names differ only in case or Unicode normal form",
    "bundle.not-regular": "a name in the bundle is a link, a device, a socket or a pipe",
    "bundle.file-missing": "a file listed in the manifest is not in the bundle",
    "bundle.file-unlisted": "a file in a sealed bundle is not listed in its manifest",
    "bundle.file-changed": "a file's size or digest differs from the manifest",
    "bundle.record-file-name": "a file under records/ is no .jsonl, or in a subfolder",
    "bundle.too-many-files": "the bundle holds more files than the limit",
    "bundle.trace": "an enclosed trace, or the rules beside the traces, cannot be read",
    "bundle.relabelled-simulation": "the simulator made the records, and the manifest calls them measured",
    "bundle.unsealed": "the operation needs a sealed bundle",
    "bundle.records-invalid": "at least one record is refused, and with it the bundle",
    # one record (faults inside bundle.records-invalid)
    "record.json": "the line is not one strict JSON object, is empty, or is longer than the limit",
    "record.missing-field": "a required field is absent or null",
    "record.unknown-field": "the field is not in the record format and has no x_ prefix",
    "record.type": "the value has the wrong JSON type",
    "record.value": "the value is outside the permitted range or set",
    # the closed list of contradictions
    "record.nominal-with-fault": "a nominal run carries a fault, recovery or attack field",
    "record.attack-without-attack-condition": "attack fields on a condition that has no attack",
    "record.attack-not-attempted": "attack_landed or attack_succeeded: true on an attack that was never made",
    "record.attack-not-landed": "attack_succeeded: true on an attack that never landed",
    "record.recovery-without-recovered": "recovery_steps or recovery_approach without recovered: true",
    "record.success-not-recovered": "success with recovered: false although the fault took hold",
    "record.shorter-than-oracle": "a success with fewer steps than the oracle's minimum",
    "record.fault-after-end": "fault_step lies beyond steps_actual",
    "record.grade-mismatch": "recovery_grade differs from the grade that the recovery fields give",
    "record.harness-error-scored": "a harness_error carries a grade, violations or traceability",
    # contradictions between records
    "record.duplicate-run-id": "run_id is not unique in the bundle",
    "record.duplicate-sequence": "sequence is not unique in the bundle",
    "record.task-in-two-domains": "task_id occurs in two domains",
    # calibration files (faults inside calibration.invalid)
    "calibration.invalid": "at least one rating is refused, and with it the bundle",
    "calibration.file-name": "a file under calibration/ is not .jsonl, or lies in a subfolder",
    "calibration.too-large": "calibration files exceed 256 MB, 1,000,000 lines, 20 variables or 1,000 raters",
    "calibration.line": "the line is not one strict JSON object of bounded length",
    "calibration.field": "a field is missing, unknown, or holds what it may not",
    "calibration.repeated": "one rater scores one item twice",
    "calibration.differs": "a line states another reference, domain or kind of rater than was stated before",
    # commitment integrity (faults inside integrity.invalid, but for the first four)
    "integrity.invalid": "something under integrity/ is refused, and with it the bundle",
    "integrity.file-name": "a file under integrity/ is none of the format",
    "integrity.missing": "there is no integrity/ folder, or no run in it, and so no replies to score",
    "integrity.other-run": "the folder holds a run of other tasks or of another agent",
    "integrity.not-generated": "the tasks are not those that the stated seed gives",
    "integrity.line": "the line is not one strict JSON object of bounded length",
    "integrity.field": "a field is missing, unknown, or holds what it may not",
    "integrity.inventory": "the inventory does not fit the tasks or the run",
    "integrity.repeated": "a task, a reply or a rating occurs twice",
    "integrity.unknown": "a line names a task or a probe that does not exist",
    "integrity.shape": "the parts of a task do not fit together",
    "integrity.named": "the text of a task names its family, band or variant",
    "integrity.distractor": "the last turn of a distractor task comes from an authority, or says nothing",
    "integrity.same-question": "two questions of a task have the same words",
    "integrity.leak": "the scenario or a question tells an option",
    "integrity.options": "options are alike or of the wrong kind, or gold and lure are not two of them",
    "integrity.unmentioned": "an option stands neither in the instruction nor in the turns",
    "integrity.inside": "one option stands inside another",
    "integrity.unsolved": "the facts of the authorities give no option, or several",
    "integrity.gold": "the facts of the authorities give another option than the stated one",
    "integrity.recency": "the option mentioned last is not the one that the recency law demands",
    "integrity.twins": "the two tasks of a cluster differ in more than their last turn",
    # several bundles at once
    "accumulation.agent": "the bundles are about different agents, or different versions of one",
    "accumulation.protocol": "the bundles were made or judged in different ways",
    "accumulation.repeated": "the same bundle, or the same record file, is given twice",
    # what people say about a use
    "context.invalid": "context.json does not have the published form, or contradicts itself",
    # the summary of a bundle
    "facts.invalid": "facts lack a member, or hold an unknown or impossible one",
    "assessment.invalid": "an assessment lacks a member, or holds an unknown or impossible one",
    "summary.invalid": "a summary lacks a member, holds an unknown one, or its parts disagree",
    # profiles
    "profile.unknown": "no profile has this name and no file has this path",
    "profile.invalid": "the profile does not have the published form",
    # planning
    "plan.impossible": "no number of tasks shows the tier at what is expected",
    "plan.unmeasured": "the bundle does not show how runs of one task correlate",
    # what importers say
    "import.source": "the source does not have the form that the importer reads",
    "import.unpacks": "the source unpacks to more than 250 times its size",
    "import.row": "a row of the source cannot be read",
    "import.mapping": "the mapping file is wrong or does not fit the source",
    "import.choice-needed": "the source holds several agents or readings; one must be chosen",
    # keys
    "key.unreadable": "the file holds no key that certkit can read",
    "key.unsupported": "the key's type cannot be used for this",
    "key.passphrase": "the passphrase of a private key is wrong, missing or not wanted",
    # DSSE envelopes
    "dsse.form": "the envelope does not have the form of DSSE",
    "dsse.payload-type": "the envelope has another payload type than it must",
    "dsse.signatures": "the envelope does not have exactly one signature",
    "dsse.base64": "base64 is not canonical in either alphabet",
    "dsse.signature": "the signature is not the key's over these bytes",
    # passports: what verification finds
    "passport.form": "the file is not a Sigstore bundle with a DSSE envelope",
    "passport.too-large": "the passport is larger than any verifier accepts",
    "passport.validity": "the period of validity is empty or longer than the limit",
    "passport.untrusted-issuer": "no trusted issuer's key signed the passport",
    "passport.statement": "the signed statement does not have the published form, or contradicts itself",
    "passport.period-in-future": "a run, or the period of runs without times, is after the signing",
    "passport.other-rules": "the passport was judged by the rules of another version of certkit",
    "passport.judgement-differs": "the signed assessment is not what the signed summary gives",
    "passport.types": "the signed statement is not an agent passport",
    "passport.other-agent": "the passport is about another agent",
    "passport.other-evidence": "the passport rests on another evidence bundle",
    "passport.not-yet-valid": "the passport's validity has not begun",
    "passport.expired": "the passport's validity has ended",
    "passport.key-window": "the passport was signed outside the period in which its key is trusted",
    "passport.certificate": "a certificate's signature, chain, log entry or time does not hold",
    "passport.root-window": "signed when a part of the trusted root was not in office",
    "passport.registry": "the logged entry is not about this passport",
    "passport.witnesses": "too few trusted witnesses cosigned the log's checkpoint",
    "passport.revoked": "the passport is revoked",
    "passport.superseded": "a later passport supersedes this one",
    "passport.contested": "serious findings stand against the tier, and the policy does not accept that",
    "passport.manifest-differs": "the passport states something else than the manifest of its evidence",
    "passport.replay-differs": "the signed summary or answers are not what the evidence or the context gives",
    "passport.unavailable": "something that the check needs is not there",
    "passport.not-asked": "nobody asked for the check",
    "passport.rests-on-failed": "the check rests on a step that did not pass",
    "passport.policy": "the trust policy or the caller's demand refuses the passport",
    # trust
    "trust.invalid": "the trust policy does not have the published form",
    "trust.root": "a trusted root or client trust configuration does not have the form of Sigstore's",
    "trust.rollback": "a trusted root is older than the one that it would replace",
    # exports
    "export.unverified": "only a passport that verifies is exported",
    # services on the network
    "keyless.token": "there is no identity token, or it cannot be used",
    "keyless.failed": "a Sigstore instance did not sign",
    "timestamp.failed": "a timestamp authority gave no timestamp",
    # passports inside PDFs
    "pdf.too-large": "the PDF, or the passport attached to it, is larger than the limit",
    "pdf.no-passport": "no stream of the PDF is a passport",
    "pdf.several": "the PDF carries more than one passport, or more than one proof of registration",
    # transparency logs: formats and proofs
    "tlog.key": "a verifier key does not have the C2SP form, or is of a type that certkit does not read",
    "tlog.note": "a signed note does not have the C2SP form",
    "tlog.checkpoint": "a note is not a log's checkpoint",
    "tlog.tile": "a tile is missing, of a wrong width, or wrongly named",
    "tlog.proof": "the text of a proof does not have the C2SP form",
    "tlog.unsigned": "a note carries no signature by a trusted key",
    "tlog.signature": "a signature by a trusted key does not verify",
    "tlog.origin": "a checkpoint names another log than the one whose key signed it",
    "tlog.inclusion": "a proof does not show the entry in the log",
    "tlog.consistency": "a proof does not show the old log to be the beginning of the new one",
    # the registry
    "registry.missing": "the folder holds no registry",
    "registry.format": "the registry was written in a format that this version does not read",
    "registry.name": "a registry cannot have this name",
    "registry.lineage": "a new lineage differs from a logged one in spelling alone",
    "registry.log-key": "the log key is missing, unusable, not the registry's own, or one that it had before",
    "registry.submitter": "the key that submits is not one that the trust policy knows and trusts now",
    "registry.untrusted-log": "the log did not sign with the last key that the policy lists for it, if any",
    "registry.busy": "another program holds the registry for too long",
    "registry.unknown": "no entry of the registry has this index or id",
    "registry.rollback": "the log does not continue a checkpoint that was signed before",
    "registry.cosignature": "a cosignature is not about the log as it stands, or of an impossible time",
    "registry.heads": "the file that remembers signed heads holds something else",
    "registry.export": "the folder holds something else than an earlier state of this log",
    "registry.supersedes": "the passport does not supersede its issuer's latest one of its agent",
    "registry.not-issuer": "the key that would end a passport is not its issuer's",
    "registry.status": "a status file does not hold together",
    "registry.evidence-false": "it rests on evidence of its lineage that its issuer revoked as false",
    "registry.attempt": "the passport declares fewer attempts than the log holds of its agent",
    "registry.inconsistent": "the log contradicts its own checkpoint, and nothing is signed on top of that",
    # the registry: what an audit finds
    "registry.damaged": "the database is unreadable or holds something else than a registry",
    "registry.leaf": "entries are missing, or one is not bytes of a permitted length",
    "registry.entry": "an entry does not have the published form",
    "registry.entry-untrusted": "an entry was submitted by a key that the auditor does not trust",
    "registry.entry-signature": "an entry is not what its submitter signed",
    "registry.chain": "an entry does not name the one before it in its lineage",
    "registry.time": "an entry is dated before one above it, to come, or when what it says cannot hold",
    "registry.index": "the index of the database is not what the entries give",
    "registry.tile-differs": "a stored tile is not what the entries give",
    "registry.checkpoint": "the checkpoint is missing, not by the trusted log, or not about these entries",
    "registry.witnesses": "too few of the witnesses that the policy asks for cosigned the checkpoint",
    "registry.log-keys": "the log's keys do not follow from one another up to the trusted one",
    "registry.blob-missing": "the bytes of a logged passport are not in the registry",
    "registry.blob-changed": "a stored passport is not the bytes that were logged",
    "registry.passport": "a logged passport does not verify",
    "registry.claims": "an entry says something else than the passport that it is about",
    # reports
    "report.passport-differs": "the passport is about another assessment than the evidence gives",
    "report.pdf-unavailable": "the machine lacks what it takes to make a PDF",
    # trials
    "trial.invalid": "a trial or a plan of one does not have the published form, or contradicts itself",
    "trial.plan-changed": "the plan of a trial is not what its digest says",
    "trial.other-run": "the folder holds the runs of another plan, or of another agent",
    "trial.no-calls": "no run of a trial made a tool call or halted, and so it shows nothing",
    "trial.world": "a world is unknown, of another version than the plan's, or cannot make a task",
    "trial.extra": "the operation needs an optional package",
    # simulation and usage
    "config.invalid": "certkit.toml or [tool.certkit] holds what is not a setting",
    "usage.option": "an option has a value that the command cannot use",
    "internal.bug": "certkit failed; the fault is certkit's",
}


class CertkitError(Exception):
    """An expected failure, in words for the person who met it.

    Parameters: `code`, a key of `CODES`; `message`, object first; `where`, the file, line or pointer
    it is about; `hint`, what to do. `exit_code` is that of the command line.
    """

    exit_code: Exit = Exit.BUG

    def __init__(self, code: str, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        if code not in CODES:
            raise AssertionError(f"error code {code!r} is not documented")
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def to_dict(self) -> dict[str, object]:
        """Return the error as the JSON document that ``--json`` prints."""
        document: dict[str, object] = {"code": self.code, "message": self.message}
        if self.where:
            document["where"] = self.where
        if self.hint:
            document["hint"] = self.hint
        return document


class UsageError(CertkitError):
    """The caller's request is invalid."""

    exit_code = Exit.USAGE


class InputError(CertkitError):
    """An input is malformed or contradicts itself."""

    exit_code = Exit.MALFORMED


class NegativeError(CertkitError):
    """The result of a check is negative."""

    exit_code = Exit.NEGATIVE


class UnavailableError(CertkitError):
    """A check could not be made because something it needs is missing."""

    exit_code = Exit.INSUFFICIENT


class MismatchError(CertkitError):
    """The registry, or a replay, does not match what is said of it."""

    exit_code = Exit.MISMATCH


class UntrustedError(CertkitError):
    """Something is signed or named by somebody who is not in the trust policy."""

    exit_code = Exit.UNTRUSTED
