"""A registry as people read it: its entries, its audit, and the history of a lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import to_builtins

from certkit.cli import documents_registry as documents
from certkit.cli.emit import WIDTH, brief, counted, entries, fold, hint
from certkit.document import Part, fill
from certkit.registry.entry import Drift, KeyChange, Note, Revocation, timestamp
from certkit.registry.standing import standing_of, stated_in
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.registry.admission import Admitted
    from certkit.registry.auditing import Audit
    from certkit.registry.entry import AnyClaims, Logged
    from certkit.registry.keeping import Gathered
    from certkit.registry.reader import Reader
    from certkit.registry.standing import Standing, Stated
    from certkit.registry.state import History, Issued
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import Signed

AnyEntry = TypeVar("AnyEntry", bound=Part)

_BARS: Final = "▁▂▃▄▅▆▇█"
_LEVELS: Final = len(_BARS) - 1
# Of which part of an entry a member is, where it would be taken for the entry's own.
_PARTS: Final = {"passport": "file ", "prev": "prev "}


def show_vkey(vkey: VerifierKey) -> Iterator[str]:
    """Print a log's verifier key, and who needs it."""
    yield str(vkey)
    hint("publish this verifier key; auditors add it: certkit trust add --log VKEY")


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


def entry(kind: type[AnyEntry], logged: Logged, **more: Any) -> AnyEntry:
    """Return an entry as a document or a part of such holds it."""
    return fill(kind, logged.found.entry, index=logged.index, leaf=logged.leaf.hex(), **more)


def ended(issued: Issued | None, now: str) -> dict[str, Any]:
    """Return how a logged passport stands, as fields of documents; None for an entry of another type."""
    ending = issued.ending if issued else None
    return {
        "status": issued.standing(now) if issued else None,
        "ended_by": ending.index if ending else None,
        "reason": ending.reason if ending else None,
    }


def _standing(issued: Issued, now: str) -> str:
    """Return in words how a logged passport stands, nothing for one in force."""
    standing, ending = issued.standing(now), issued.ending
    if ending is not None:
        return f"{standing} by entry {ending.index}{f': {ending.reason}' if ending.reason else ''}"
    if standing == "expired":
        return f"expired on {issued.claims.not_after[:10]}"
    return f"valid from {issued.claims.not_before[:10]}" if standing == "upcoming" else ""


def show_entry(logged: Logged, issued: Issued | None, head: Checkpoint, now: str) -> Iterator[str]:
    """Print one entry, member by member, after how the passport stands that it logs."""
    if issued is not None and (words := _standing(issued, now)):
        yield from fold(f"This passport is {words}")
    for name, value in to_builtins(entry(documents.ShownEntry, logged)).items():
        part = _PARTS.get(name, "")
        for label, text in value.items() if isinstance(value, dict) else [(None, value)]:
            yield from _item(f"{part}{label}" if label else name, "none" if text is None else text)
    yield from _item(
        "included in", f"{head.origin}, {entries(head.size)}; 'certkit registry audit' checks more"
    )


def _item(label: str, text: object) -> Iterator[str]:
    label = label.removesuffix("_id").removesuffix(" sha256").replace("_", " ")
    digest = str(text).startswith("sha256:")  # beside a label of eight it ends in column 80
    yield from fold(str(text), first=f"{label:<8} " if digest else f"{label:<15}", rest=" " * 15)


def show_entries(
    origin: str, logs: Sequence[Logged], passports: Mapping[str, Issued], now: str
) -> Iterator[str]:
    """Print a line for each entry, what it says beside that, and what became of the passport that it logs."""
    yield from fold(f"{origin}, {entries(len(logs))}, signatures not checked")
    for logged in logs:
        said, claims = logged.found.entry, logged.found.passport
        met = f"Tier {claims.tier}" if claims and claims.tier else "no tier" if claims else ""
        subject = "the log itself" if said.subject == origin else said.subject
        passport = brief(logged.found.passport_id)
        yield from _line(logged.index, said.issued_at, said.type, met, passport, subject)
        issued = passports.get(claims.passport_id) if claims else None
        if words := _standing(issued, now) if issued else _words(logged.found.claims):
            yield from fold(words, first="        ", rest="        ")


def _words(claims: AnyClaims) -> str:
    """Return in words what an entry says beside what its line does."""
    match claims:
        case Drift():
            return f"{claims.result}{': ' if claims.rows else ''}{', '.join(claims.rows)}"
        case KeyChange():
            return f"the log is handed over to its key {VerifierKey.parse(claims.new).key_id.hex()}"
        case Note():
            return claims.text
        case Revocation():
            return f"{claims.reason}{': ' if claims.detail else ''}{claims.detail or ''}"
    return ""


def _line(index: int, time: str, kind: str, tier: str, passport: str, lineage: str) -> Iterator[str]:
    """Print one row of a list; a long name has a line of its own."""
    line = f"{index:>6}  {time[:10]}  {kind:<10}  {tier:<7}  {passport:<12}  "
    if len(line) + len(lineage) <= WIDTH:
        yield line + lineage
    else:
        yield line.rstrip()
        yield from fold(lineage, first="        ", rest="        ")


def listed(logged: Logged, passports: Mapping[str, Issued], now: str) -> documents.ListedEntry:
    """Return an entry with what became of the passport that it logs."""
    claims = logged.found.passport
    issued = passports.get(claims.passport_id) if claims else None
    return entry(documents.ListedEntry, logged, **ended(issued, now))


def searched(issued: Issued, stated: Stated | None, label: str, now: str) -> documents.FoundPassport:
    """Return a passport that a search found; a sorted one has a limit, and a label if it is not in force."""
    return fill(
        documents.FoundPassport,
        issued.claims,
        index=issued.index,
        lineage=issued.lineage,
        limit=stated.limit if stated else None,
        label=label or None,
        **ended(issued, now),
    )


def show_found(origin: str, rows: Sequence[tuple[Issued, Stated | None, str]], now: str) -> Iterator[str]:
    """Print the passports that a search found, each with its status, or its label and the limit of r_op."""
    yield from fold(f"{origin}, {counted(len(rows), 'passport')}, signatures not checked")
    for issued, stated, label in rows:
        claims, status = issued.claims, label or issued.standing(now)
        tier, name = f"Tier {claims.tier}" if claims.tier else "no tier", brief(claims.passport_id)
        yield from _line(issued.index, issued.issued_at, status, tier, name, issued.lineage)
        if stated is not None and (limit := stated.limit) is not None:
            tasks = "" if limit.k is None else f" on {counted(limit.k, 'task')}"
            yield f"        r_op at least {limit.value:.4f} with {limit.confidence:.4g} confidence{tasks}"


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
    cosigned = counted(len(gathered.cosigned), "cosignature")
    yield f"checkpoint over {entries(gathered.head.size)}: {cosigned}{asked}"


class Told(NamedTuple):
    """A lineage's history as it is shown: whose signatures count, a row for each passport, how it stands."""

    log: Reader
    history: History
    policy: Path | None
    rows: tuple[documents.HistoryRow, ...]
    standing: Standing

    @classmethod
    def of(cls, log: Reader, history: History, policy: Path | None, at: datetime) -> Told:
        """Return what is shown of a history while its log is open."""
        now = timestamp(at)
        rows = tuple(_row(issued, stated_in(log, issued), now) for issued in history.passports)
        return cls(log, history, policy, rows, standing_of(log, history, at=at))

    def to_dict(self) -> dict[str, Any]:
        """Return what ``certkit registry history --json`` prints."""
        head = self.log.head.checkpoint
        return fill(
            documents.RegistryHistory,
            self.history,
            origin=head.origin,
            size=head.size,
            root=head.root.hex(),
            signatures="checked" if self.policy else "not checked",
            standing=self.standing,
            passports=self.rows,
            events=[
                fill(
                    documents.Event,
                    logged.found.entry,
                    index=logged.index,
                    claims=to_builtins(logged.found.claims),
                )
                for logged in self.history.entries
                if logged.found.passport is None
            ],
        ).to_dict()

    @property
    def signed(self) -> str:
        """Whether the signatures of its entries were checked, and what was left out for them."""
        if self.policy is None:
            return "signatures not checked (--trust FILE)"
        left_out = self.history.left_out
        if not left_out:
            return f"signatures checked under {self.policy}"
        which = ", ".join(map(str, left_out))
        what = f"entry {which} does" if len(left_out) == 1 else f"entries {which} do"
        return f"signatures checked under {self.policy}; {what} not count"


def _row(issued: Issued, stated: Stated | None, now: str) -> documents.HistoryRow:
    return fill(
        documents.HistoryRow,
        issued.claims,
        index=issued.index,
        issued_at=issued.issued_at,
        r_op=stated.r_op if stated else None,
        drift=issued.drift,
        **ended(issued, now),
    )


def show_history(told: Told) -> Iterator[str]:
    """Print a lineage's passports, the course of r_op, and every event."""
    history, head = told.history, told.log.head.checkpoint
    passports = counted(len(history.passports), "passport")
    yield from fold(f"{history.lineage}: {passports}, as of {entries(head.size)} of {head.origin}")
    yield from fold(told.signed)
    yield ""
    yield from fold(f"Standing: {told.standing.sentence}", rest="  ")
    yield ""
    yield f"{'entry':>6}  {'logged':<10}  {'passport':<12}  {'tier':<7}  {'r_op':>6}  {'try':>3}  status"
    for row in told.rows:
        rate = "-" if row.r_op is None else f"{row.r_op:.4f}"
        tier = f"Tier {row.tier}" if row.tier else "no tier"
        yield (
            f"{row.index:>6}  {row.issued_at[:10]}  {brief(row.passport_id)}  {tier:<7}  {rate:>6}  "
            f"{row.attempt:>3}  {row.status}{f': {row.reason}' if row.reason else ''}"
        )
    if line := sparkline([row.r_op for row in told.rows]):
        yield ""
        yield f"r_op   {line}"
    yield from _events([logged for logged in history.entries if logged.found.passport is None])


def _events(events: Sequence[Logged]) -> Iterator[str]:
    if not events:
        return
    yield ""
    yield "Events:"
    for logged in events:
        said, claims = logged.found.entry, logged.found.entry.claims
        about = brief(logged.found.passport_id)
        text = claims.get("reason") or claims.get("result") or claims.get("text") or "by another"
        by = f" by {claims['by'].removeprefix('sha256:')[:12]}" if "by" in claims else ""
        words = f"{said.type} {about}" if about else said.type
        line = f"{logged.index:>4}  {said.issued_at[:10]}  {words}{by or f': {text}'}"
        yield from fold(line, first="  ", rest=" " * 20)


def sparkline(values: Sequence[float | None]) -> str:
    """Return a line of bars from 0 to 1, a dot where there is no value; nothing for fewer than two."""
    if sum(value is not None for value in values) < len(("from", "to")):
        return ""
    return "".join("·" if value is None else _BARS[round(value * _LEVELS)] for value in values)
