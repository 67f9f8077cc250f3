"""A registry as people read it: its entries, its audit, and the history of a lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from certkit.cli import documents_registry as documents
from certkit.cli.emit import WIDTH, brief, entries, fold, hint
from certkit.document import fill
from certkit.registry.entry import timestamp
from certkit.registry.standing import standing_of, stated_in
from certkit.tlog.note import VerifierKey
from certkit.wording import many

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.registry.admission import Admitted
    from certkit.registry.auditing import Audit
    from certkit.registry.entry import Entry, Logged
    from certkit.registry.keeping import Gathered
    from certkit.registry.reader import History, Reader
    from certkit.registry.registry import Registry
    from certkit.registry.state import Issued
    from certkit.tlog.note import Signed

_BARS: Final = "▁▂▃▄▅▆▇█"
_LEVELS: Final = len(_BARS) - 1
# Of which part of an entry a member is, where it would be taken for the entry's own.
_PARTS: Final = {"passport": "file ", "prev": "prev "}


def show_vkey(vkey: VerifierKey) -> Iterator[str]:
    """Print a log's verifier key, and who needs it."""
    yield str(vkey)
    hint("publish this verifier key; auditors add it: certkit trust add --log VKEY")


def head(log: Registry) -> documents.RegistryCheckpoint:
    """Return the signed head of a registry."""
    head, note = log.head(), log.checkpoint().decode()
    return fill(documents.RegistryCheckpoint, head, root=head.root.hex(), vkey=str(log.vkey), note=note)


def following(logged: Admitted | None) -> documents.Following:
    """Return with which earlier passport a new one was compared when it was logged, and what that gave."""
    succession = logged.following if logged else None
    drift = succession.drift if succession else None
    return documents.Following(
        earlier=succession.earlier if succession else None, drift=drift.result if drift else None
    )


def show_following(logged: Admitted) -> Iterator[str]:
    """Print what was logged along with a passport."""
    succession = logged.following
    if succession.drift is not None:
        yield from fold(f"against passport {brief(succession.earlier)}: {succession.drift.result}", rest="  ")
    elif succession.reason is not None:
        yield from fold(f"not compared with the passport before it: {succession.reason}", rest="  ")


def show_appended(appended: Admitted, proof: Path) -> Iterator[str]:
    """Print where a passport was logged, and what was logged along with it."""
    done = "logged" if appended.new else "was logged already"
    yield f"{done} as entry {appended.index}; proof in {proof}"
    yield from show_following(appended)


def ended(issued: Issued | None, now: str) -> dict[str, Any]:
    """Return how a logged passport stands, as fields of documents; None for an entry of another type."""
    ending = issued.ending if issued else None
    return {
        "status": issued.standing(now) if issued else None,
        "ended_by": ending.index if ending else None,
        "reason": ending.reason if ending else None,
    }


def listed(logged: Logged, issued: Issued | None, now: str, **ranked: Any) -> documents.ListedEntry:
    """Return an entry with what became of the passport that it logs, and its place among those `ranked`."""
    entry = logged.found.entry
    return documents.ListedEntry(
        index=logged.index, leaf=logged.leaf.hex(), entry=entry, **ended(issued, now), **ranked
    )


def _standing(row: documents.ListedEntry) -> str:
    """Return in words how a logged passport stands, nothing for one in force."""
    if row.ended_by is not None:
        return f"{row.status} by entry {row.ended_by}{f': {row.reason}' if row.reason else ''}"
    if row.status == "expired":
        return f"expired on {row.entry.claims['not_after'][:10]}"
    if row.status == "upcoming":
        return f"valid from {row.entry.claims['not_before'][:10]}"
    return row.label or ""


def show_entry(listing: documents.RegistryList) -> Iterator[str]:
    """Print one entry, member by member, after how the passport stands that it logs."""
    (row,) = listing.entries
    if words := _standing(row):
        yield from fold(f"This passport is {words}")
    members = {"index": row.index, "leaf": row.leaf} | to_builtins(row.entry)
    del members["v"]
    for name, value in members.items():
        part = _PARTS.get(name, "")
        for label, text in value.items() if isinstance(value, dict) else [(None, value)]:
            yield from _item(f"{part}{label}" if label else name, "none" if text is None else text)
    yield from _item(
        "included in", f"{listing.origin}, {entries(listing.size)}; 'certkit registry audit' checks more"
    )


def _item(label: str, text: object) -> Iterator[str]:
    label = label.removesuffix("_id").removesuffix(" sha256").replace("_", " ")
    digest = str(text).startswith("sha256:")  # beside a label of eight it ends in column 80
    yield from fold(str(text), first=f"{label:<8} " if digest else f"{label:<15}", rest=" " * 15)


def show_entries(listing: documents.RegistryList) -> Iterator[str]:
    """Print a line for each entry, and below it what became of the passport, or what else the entry says."""
    number = "" if len(listing.entries) == listing.size else f"{len(listing.entries):,} of "
    yield from fold(f"{listing.origin}, {number}{entries(listing.size)}, signatures not checked")
    indent = " " * 8
    for row in listing.entries:
        entry, claims = row.entry, row.entry.claims
        passport = brief(claims.get("passport_id"))
        tier = "" if "tier" not in claims else f"Tier {claims['tier']}" if claims["tier"] else "no tier"
        line = f"{row.index:>6}  {entry.issued_at[:10]}  {entry.type:<10}  {tier:<7}  {passport:<12}  "
        subject = "the log itself" if entry.subject == listing.origin else entry.subject
        fits = len(line) + len(subject) <= WIDTH
        yield line + subject if fits else line.rstrip()
        for text in filter(None, ["" if fits else subject, _standing(row) or _words(entry), _limit(row)]):
            yield from fold(text, first=indent, rest=indent)


def _limit(row: documents.ListedEntry) -> str:
    if (limit := row.limit) is None:
        return ""
    tasks = "" if limit.k is None else f" on {many(limit.k, 'task')}"
    return f"r_op at least {limit.value:.4f} with {limit.confidence:.4g} confidence{tasks}"


def _words(entry: Entry) -> str:
    """Return in words what an entry says beside what its line does."""
    claims = entry.claims
    if entry.type == "key":
        return f"the log is handed over to its key {VerifierKey.parse(claims['new']).key_id.hex()}"
    told = claims.get("result") or claims.get("reason") or claims.get("text")
    return ": ".join(filter(None, [told, claims.get("detail") or ", ".join(claims.get("rows", ()))]))


def show_audit(report: Audit) -> Iterator[str]:
    """Print whether a registry is sound, every finding, and what the files do not show."""
    passports = "1 passport" if report.passports == 1 else f"{report.passports:,} passports"
    if report.total:
        findings = "1 finding" if report.total == 1 else f"{report.total:,} findings"
        yield from fold(f"UNSOUND: {findings} in {entries(report.size)} of {report.origin}")
    else:
        yield from fold(f"SOUND: {entries(report.size)}, {passports}, signed as {report.origin}")
    for finding in report.findings:
        yield from fold(f"{finding.where}: {finding.message} [{finding.code}]", first="  ", rest="    ")
    if report.total > len(report.findings):
        yield f"  and {report.total - len(report.findings):,} more"
    for note in report.notes:
        yield from fold(f"note: {note}")
    if any(finding.code == "registry.log-keys" for finding in report.findings):
        hint("where the log's keeper confirms its new key: certkit trust add --log VKEY")
    yield ""
    yield "Not shown by these files:"
    for text in report.not_shown:
        yield from fold(text, first="  ", rest="    ")


def show_gathered(gathered: Gathered, required: int | None, time: Callable[[Signed], str]) -> Iterator[str]:
    """Print who cosigned the checkpoint."""
    for signed in gathered.cosigned:
        kept = "" if signed in gathered.added else " (known already)"
        yield from fold(f"cosigned by {signed.key.name} at {time(signed)}{kept}", rest="  ")
    for name in gathered.ignored:
        yield from fold(f"passed over: a line of {name}, which is no known witness", rest="  ")
    asked = "" if required is None else f", and the policy asks for {required:,}"
    cosigned = many(len(gathered.cosigned), "cosignature")
    yield f"checkpoint over {entries(gathered.head.size)}: {cosigned}{asked}"


def told(
    log: Reader, history: History, at: datetime, *, checked: bool
) -> tuple[documents.RegistryHistory, Iterator[str]]:
    """Return a lineage's history as a document while its log is open, and as a screen."""
    now, head = timestamp(at), log.head.checkpoint
    passports = []
    for issued in history.passports:
        stated = stated_in(log, issued)
        r_op = stated.r_op if stated else None
        passports.append(fill(documents.HistoryRow, issued, r_op=r_op, **ended(issued, now)))
    document = fill(
        documents.RegistryHistory,
        history,
        origin=head.origin,
        size=head.size,
        root=head.root.hex(),
        signatures="checked" if checked else "not checked",
        standing=standing_of(log, history, at=at),
        passports=passports,
        events=[listed(logged, None, now) for logged in history.entries if logged.found.passport is None],
    )
    return document, _history(document)


def _signed(told: documents.RegistryHistory) -> str:
    if told.signatures == "not checked":
        return "signatures not checked (--trust FILE)"
    if not told.left_out:
        return "signatures checked under your trust policy"
    places = ", ".join(map(str, told.left_out))
    subject = f"entry {places} does" if len(told.left_out) == 1 else f"entries {places} do"
    return f"signatures checked under your trust policy; {subject} not count"


def _history(told: documents.RegistryHistory) -> Iterator[str]:
    """Print a lineage's passports, the course of r_op, and every event."""
    passports = many(len(told.passports), "passport")
    yield from fold(f"{told.lineage}: {passports}, as of {entries(told.size)} of {told.origin}")
    yield from fold(_signed(told))
    yield ""
    yield from fold(f"Standing: {told.standing.sentence}", rest="  ")
    yield ""
    yield f"{'entry':>6}  {'logged':<10}  {'passport':<12}  {'tier':<7}  {'r_op':>6}  {'try':>3}  status"
    for row in told.passports:
        rate = "-" if row.r_op is None else f"{row.r_op:.4f}"
        tier = f"Tier {row.claims.tier}" if row.claims.tier else "no tier"
        yield (
            f"{row.index:>6}  {row.issued_at[:10]}  {brief(row.claims.passport_id)}  {tier:<7}  {rate:>6}  "
            f"{row.claims.attempt:>3}  {row.status}{f': {row.reason}' if row.reason else ''}"
        )
    if line := sparkline([row.r_op for row in told.passports]):
        yield ""
        yield f"r_op   {line}"
    if told.events:
        yield ""
        yield "Events:"
    for event in told.events:
        claims = event.entry.claims
        by = f" by {brief(claims['by'])}" if "by" in claims else f": {_words(event.entry)}"
        about = " ".join(filter(None, [event.entry.type, brief(claims.get("passport_id"))]))
        line = f"{event.index:>4}  {event.entry.issued_at[:10]}  {about}{by}"
        yield from fold(line, first="  ", rest=" " * 20)


def sparkline(values: Sequence[float | None]) -> str:
    """Return a line of bars from 0 to 1, a dot where there is no value; nothing for fewer than two."""
    if sum(value is not None for value in values) < len(("from", "to")):
        return ""
    return "".join("·" if value is None else _BARS[round(value * _LEVELS)] for value in values)
