"""``certkit registry list`` and ``history``: what a log holds, and what it says of one lineage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Meta, to_builtins

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.registry import Head
from certkit.cli.emit import WIDTH, brief, emit, entries, entry, fold, progress
from certkit.ground.document import BESIDE, Count, Document, Hash, Part, Share, Text, fill
from certkit.ground.errors import Exit, UsageError
from certkit.ground.wording import many
from certkit.registry.entry import DriftResult, Entry, Reason, timestamp
from certkit.registry.reader import reading
from certkit.registry.standing import Limit, Query, Standing, ranked, standing_of, stated_in
from certkit.registry.state import PassportStanding
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from certkit.registry.entry import Logged
    from certkit.registry.reader import History, Reader
    from certkit.registry.state import Issued


class ListedEntry(Part, frozen=True, kw_only=True):
    """An entry of a log, and what became of the passport that it logs; null for entries of other types."""

    index: Count
    leaf: Hash
    entry: Annotated[Entry, BESIDE]
    status: PassportStanding | None = None
    ended_by: Annotated[Count | None, Meta(description="the entry that ended it")] = None
    reason: Reason | None = None
    limit: Annotated[Limit | None, Meta(description="of r_op, where passports are sorted")] = None
    label: Annotated[Text | None, Meta(description="why a sorted passport comes after those in force")] = None
    r_op: Annotated[Share | None, Meta(description="in a lineage's history, where it is known")] = None
    drift: Annotated[DriftResult | None, Meta(description="in a lineage's history: what is logged")] = None


class RegistryList(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-list:v1"):
    """The entries of a log that were asked for; who signed them was not checked."""

    origin: Text
    size: Annotated[Count, Meta(description="all entries of the log")]
    entries: Sequence[ListedEntry]


class RegistryHistory(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-history:v1"):
    """A lineage: its passports, oldest first, and what else the log says of it."""

    lineage: Text
    signatures: Annotated[
        Literal["checked", "not checked"], Meta(description="of the entries, under a trust policy")
    ]
    left_out: Annotated[Sequence[Count], Meta(description="entries that do not count under the policy")]
    standing: Standing
    passports: Sequence[ListedEntry]
    events: Sequence[ListedEntry]


def days(text: str) -> timedelta:
    """Read a number of days, ``30d``; raise `UsageError` ``usage.option``."""
    if not re.fullmatch(r"[1-9][0-9]{0,3}d", text):
        raise UsageError("usage.option", f"--expiring: expected days, as 30d, found {text[:80]!r}")
    return timedelta(days=int(text[:-1]))


def list_(
    folder: opt.RegistryFolder,
    ident: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="One entry: its index, a passport id, or 8 digits of one."),
    ] = None,
    agent: Annotated[
        str | None, opt.AGENT(help="Passports of this lineage, a part of its name, or a digest.")
    ] = None,
    tier: Annotated[int | None, opt.TIER(help="Passports of this tier.")] = None,
    profile: Annotated[
        str | None, opt.PROFILE(help="Passports under this profile: a name, or a digest.")
    ] = None,
    status: Annotated[
        PassportStanding | None, typer.Option("--status", help="Passports that stand so.")
    ] = None,
    expiring: Annotated[
        timedelta | None,
        typer.Option(
            "--expiring", metavar="30d", parser=days, help="Passports in force that end within so many days."
        ),
    ] = None,
    sort: Annotated[
        Literal["standing"] | None,
        typer.Option(
            "--sort", help="'standing': those in force first, by the limit of r_op; passports alone."
        ),
    ] = None,
    at: Annotated[
        datetime | None, opt.AT(help="What is valid at this time; every entry counts. Default: now.")
    ] = None,
) -> None:
    """List the entries of a registry, oldest first, one of them, or the passports that options ask for.

    DIR is a registry or an exported tree. The dates are those of the entries. All must give the checkpoint's
    root, which the registry's own key must have signed; who signed the entries is not checked. An entry whose
    passport was revoked or superseded, has expired or is not valid yet says so.

    Example: certkit registry list registry --status current
    """
    moment = at or context.now()
    query = Query(
        agent=agent,
        tier=tier,
        profile=context.profile_digest(profile) if profile else None,
        status=status,
        expiring=timestamp(moment + expiring) if expiring else None,
    )
    asked = sort is not None or query != Query()
    if ident is not None and asked:
        raise UsageError("usage.option", "an ID names one entry, and the options search for passports")
    with reading(folder, heads=context.heads_path(), progress=progress()) as log:
        head, now = log.head.checkpoint, timestamp(moment)
        if ident is not None:
            rows = [_listed(*log.find(ident), now)]
        else:
            rows = _rows(log, query if asked else None, now, ranking=sort is not None)
    listing = RegistryList(origin=head.origin, size=head.size, entries=rows)
    emit(listing, _show_entries(listing) if ident is None else _show_entry(listing))


def _rows(log: Reader, query: Query | None, now: str, *, ranking: bool) -> list[ListedEntry]:
    """Return all entries, or those of the passports that a query takes, by their standing where asked for."""
    entries, passports = log.listed()
    if query is None:
        named = ((logged, logged.found.passport) for logged in entries)
        return [_listed(logged, passports.get(it.passport_id) if it else None, now) for logged, it in named]
    taken = [issued for issued in passports.values() if query.takes(issued, now)]
    if not ranking:
        return [_listed(entries[issued.index], issued, now) for issued in taken]
    return [
        _listed(
            entries[issued.index], issued, now, limit=stated.limit if stated else None, label=label or None
        )
        for issued, stated, label in ranked(log, taken, now)
    ]


def _listed(logged: Logged, issued: Issued | None, now: str, **more: Any) -> ListedEntry:
    """Return an entry as a document, with what became of the passport that it logs (None: it logs none)."""
    ending = issued.ending if issued else None
    return ListedEntry(
        index=logged.index,
        leaf=logged.leaf.hex(),
        entry=logged.found.entry,
        status=issued.standing(now) if issued else None,
        ended_by=ending.index if ending else None,
        reason=ending.reason if ending else None,
        **more,
    )


def _standing(row: ListedEntry) -> str:
    """Return in words how a logged passport stands, nothing for one in force."""
    if row.ended_by is not None:
        return f"{row.status} by entry {row.ended_by}{f': {row.reason}' if row.reason else ''}"
    if row.status == "expired":
        return f"expired on {row.entry.claims['not_after'][:10]}"
    if row.status == "upcoming":
        return f"valid from {row.entry.claims['not_before'][:10]}"
    return row.label or ""


def _show_entry(listing: RegistryList) -> Iterator[str]:
    """Print one entry, member by member, after how the passport stands that it logs."""
    (row,) = listing.entries
    if words := _standing(row):
        yield from fold(f"This passport is {words}")
    members = {"index": row.index, "leaf": row.leaf} | to_builtins(row.entry)
    for name, value in members.items():
        for part, text in value.items() if isinstance(value, dict) else [("", value)]:
            place = {"claims": "", "passport": "file "}.get(name, f"{name} ")
            label = f"{place}{part}".removesuffix("_id").replace("_", " ")
            digest = str(text).startswith("sha256:")  # beside a label of eight it ends in column 80
            yield from entry(f"{label.strip()} ", "none" if text is None else text, 9 if digest else 15)
    yield from entry("included in", f"{listing.origin}, {entries(listing.size)}", 15)


def _show_entries(listing: RegistryList) -> Iterator[str]:
    """Print a line for each entry, and below it what became of the passport, or what else the entry says."""
    number = "" if len(listing.entries) == listing.size else f"{len(listing.entries):,} of "
    yield from fold(f"{listing.origin}, {number}{entries(listing.size)}, signatures not checked")
    yield f"{'entry':>6}  {'logged':<10}  {'type':<10}  {'tier':<7}  {'passport':<12}  about"
    indent = " " * 8
    for row in listing.entries:
        item, claims = row.entry, row.entry.claims
        passport = brief(claims.get("passport_id"))
        line = f"{row.index:>6}  {item.issued_at[:10]}  {item.type:<10}  {_tier(claims)}  {passport:<12}  "
        subject = "the log itself" if item.subject == listing.origin else item.subject
        fits = len(line) + len(subject) <= WIDTH
        yield line + subject if fits else line.rstrip()
        for text in filter(None, ["" if fits else subject, _standing(row) or _words(item), _limit(row)]):
            yield from fold(text, first=indent, rest=indent)


def _tier(claims: Mapping[str, Any]) -> str:
    tier = claims.get("tier")
    return f"{'' if tier is None else f'Tier {tier}' if tier else 'no tier':<7}"


def _limit(row: ListedEntry) -> str:
    if (limit := row.limit) is None:
        return ""
    tasks = "" if limit.k is None else f" on {many(limit.k, 'task')}"
    return f"r_op at least {limit.value:.4f} with {limit.confidence:.4g} confidence{tasks}"


def _words(logged: Entry) -> str:
    """Return in words what an entry says beside what its line does."""
    claims = logged.claims
    if logged.type == "key":
        return f"the log is handed over to its key {VerifierKey.parse(claims['new']).key_id.hex()}"
    if logged.type == "supersede":
        return f"by {brief(claims['by'])}"
    told = claims.get("result") or claims.get("reason") or claims.get("text")
    return ": ".join(filter(None, [told, claims.get("detail") or ", ".join(claims.get("rows", ()))]))


def history(
    folder: opt.RegistryFolder,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A lineage: provider/name, or the name alone where no provider is stated."
        ),
    ],
    trust: opt.Signers = None,
    at: opt.AsOf = None,
) -> None:
    """Tell a lineage's history: every passport, with its r_op and what became of it, and every event.

    DIR is a registry or an exported tree. All entries are read and must give the checkpoint's root, which the
    registry's own key must have signed. With a trust policy, one of its log keys must have, and only entries
    count whose signers it knows. --at is for validity; every entry counts, whenever it was logged.

    Exit code 0: no drift of the latest passport is logged; 5: one is. Whether the log left a drift out, only
    'certkit registry audit' tells.

    Example: certkit registry history registry gardener-1
    """
    policy, moment = context.load_policy(trust) if trust else None, context.now()
    opened = reading(folder, heads=context.heads_path(), trust=policy, at=moment, progress=progress())
    with opened as log:
        history = log.history(name, policy)
        told = _told(log, history, at or moment, checked=policy is not None)
    emit(told, _history(told), code=Exit.DRIFT if history.drifted else Exit.OK)


def _told(log: Reader, history: History, at: datetime, *, checked: bool) -> RegistryHistory:
    """Return a lineage's history as a document, while its log is open."""
    now, head = timestamp(at), log.head.checkpoint
    logged = {item.index: item for item in history.entries}
    passports = []
    for issued in history.passports:
        stated = stated_in(log, issued)
        r_op = stated.r_op if stated else None
        passports.append(_listed(logged[issued.index], issued, now, r_op=r_op, drift=issued.drift))
    return fill(
        RegistryHistory,
        history,
        origin=head.origin,
        size=head.size,
        root=head.root.hex(),
        signatures="checked" if checked else "not checked",
        standing=standing_of(log, history, at=at),
        passports=passports,
        events=[_listed(item, None, now) for item in history.entries if item.found.passport is None],
    )


def _signed(told: RegistryHistory) -> str:
    if told.signatures == "not checked":
        return "signatures not checked (--trust FILE)"
    places = ", ".join(map(str, told.left_out)) or "none"
    return f"signatures checked under your trust policy; entries that do not count: {places}"


def _history(told: RegistryHistory) -> Iterator[str]:
    """Print a lineage's passports with their r_op, and every event."""
    passports = many(len(told.passports), "passport")
    yield from fold(f"{told.lineage}: {passports}, as of {entries(told.size)} of {told.origin}")
    yield from fold(_signed(told))
    yield ""
    yield from fold(f"Standing: {told.standing.sentence}", rest="  ")
    yield ""
    yield f"{'entry':>6}  {'logged':<10}  {'passport':<12}  {'tier':<7}  {'r_op':>6}  {'try':>3}  status"
    for row in told.passports:
        claims, rate = row.entry.claims, "-" if row.r_op is None else f"{row.r_op:.4f}"
        line = f"{row.index:>6}  {row.entry.issued_at[:10]}  {brief(claims['passport_id'])}  {_tier(claims)}"
        reason = f": {row.reason}" if row.reason else ""
        yield f"{line}  {rate:>6}  {claims['attempt']:>3}  {row.status}{reason}"
    if told.events:
        yield ""
        yield "Events:"
    for event in told.events:
        about = " ".join(filter(None, [event.entry.type, brief(event.entry.claims.get("passport_id"))]))
        colon = "" if event.entry.type == "supersede" else ":"
        line = f"{event.index:>4}  {event.entry.issued_at[:10]}  {about}{colon} {_words(event.entry)}"
        yield from fold(line, first="  ", rest=" " * 20)
