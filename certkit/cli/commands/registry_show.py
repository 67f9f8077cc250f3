"""``certkit registry show``: what a log holds, of one lineage, or of one passport."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import brief, coloured, emit, entry, fold, progress
from certkit.ground.errors import UsageError
from certkit.ground.text import name_key
from certkit.ground.wording import many
from certkit.registry.reader import reading
from certkit.registry.reader import show as view_of

if TYPE_CHECKING:
    from certkit.cli.emit import Line
    from certkit.registry.reader import HistoryRow, ListedEntry, LoggedDrift, RegistryView


def days(text: str) -> timedelta:
    """Read a number of days, ``30`` or ``30d``; raise `UsageError` ``usage.option``."""
    if not re.fullmatch(r"[1-9][0-9]{0,3}d?", text):
        raise UsageError("usage.option", f"--expiring: expected days, as 30, found {text[:80]!r}")
    return timedelta(days=int(text.removesuffix("d")))


def show(
    folder: opt.RegistryFolder,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[AGENT|ID]",
            help="A lineage (provider/name, or the agent's name alone where no provider is stated), an "
            "entry's index, a passport id, or 8 digits of one.",
        ),
    ] = None,
    expiring: Annotated[
        timedelta | None,
        typer.Option(
            "--expiring", metavar="DAYS", parser=days, help="Passports in force that end within so many days."
        ),
    ] = None,
    trust: opt.Signers = None,
    at: opt.AsOf = None,
) -> None:
    """List the lineages of a registry, the history of one, or the entries about one passport.

    DIR is a registry or an exported tree. A history is a table of facts over time: tier, lower confidence
    limit of r_op, its tasks, age of the evidence, attempt, drift against the passport before, and what ended
    it. All entries must give the checkpoint's root, which the registry's own key must have signed; with a
    trust policy, one of its log keys, and only entries count that its keys signed. --at is for validity and
    ages; every entry counts, whenever it was logged.

    Example: certkit registry show registry gardener-1
    """
    policy, now = context.load_policy(trust) if trust else None, context.now()
    with reading(folder, heads=context.heads_path(), trust=policy, at=now, progress=progress()) as log:
        view = view_of(log, name, at=at or now, trust=policy, expiring=expiring)
    hints = [f"the log's verifier key: {view.vkey}"] if view.vkey and name is None else []
    emit(view, _screen(view, named=name is not None), hints=hints)


def _screen(view: RegistryView, *, named: bool) -> Iterator[Line]:
    yield from coloured(fold(f"{view.origin}: {many(view.size, 'entry')}"), "bold")
    yield f"root {view.root}"
    if view.vkey is None:
        yield "the checkpoint's signature is not checked (--trust FILE checks it)"
    if view.signatures == "not checked":
        yield "signatures not checked (--trust FILE checks them)"
    else:
        places = ", ".join(map(str, view.left_out)) or "none"
        yield from fold(f"signatures checked under your trust policy; entries that do not count: {places}")
    if view.without_effect:
        places = ", ".join(map(str, view.without_effect))
        yield from fold(f"entries that end no passport, since its issuer did not sign them: {places}")
    yield ""
    if view.lineage is not None:
        yield from _history(view)
    elif named:
        for number, row in enumerate(view.entries):
            yield from ["", *_entry(row)] if number else _entry(row)
    else:
        yield from _lineages(view)


def _lineages(view: RegistryView) -> Iterator[str]:
    """Print a line for each lineage: its latest passport, and how many it has."""
    latest: dict[str, ListedEntry] = {}
    counts: dict[str, int] = {}
    for row in view.entries:
        if row.status is not None:
            key = name_key(row.entry.subject)
            latest[key], counts[key] = row, counts.get(key, 0) + 1
    yield f"{'logged':<10}  {'tier':<7}  {'valid until':<11}  {'passports':>9}  latest status  lineage"
    for key, row in latest.items():
        claims = row.entry.claims
        line = f"{row.entry.issued_at[:10]}  {_tier(claims['tier'])}  {claims['not_after'][:10]:<11}"
        yield from fold(f"{line}  {counts[key]:>9}  {row.status:<13}  {row.entry.subject}", rest=" " * 12)
    plans = Counter(row.entry.subject for row in view.entries if row.entry.type == "plan")
    if waiting := {name: count for name, count in plans.items() if name_key(name) not in latest}:
        agents = ", ".join(f"{name} ({many(count, 'plan')})" for name, count in waiting.items())
        yield from fold(f"announced, without a passport: {agents}")


def _tier(tier: int) -> str:
    return f"{f'Tier {tier}' if tier else 'no tier':<7}"


def _entry(row: ListedEntry) -> Iterator[str]:
    """Print one entry, member by member, after the status of the passport that it logs."""
    if row.ended_by is not None:
        yield f"{row.status} by entry {row.ended_by}{f': {row.reason}' if row.reason else ''}"
    elif row.status is not None:
        yield f"This passport is {row.status}"
    if row.announced is not None:
        yield from fold(row.announced)
    members = {"index": row.index, "leaf": row.leaf} | to_builtins(row.entry)
    for name, value in members.items():
        for part, text in value.items() if isinstance(value, dict) else [("", value)]:
            place = {"claims": "", "passport": "file "}.get(name, f"{name} ")
            label = f"{place}{part}".removesuffix("_id").replace("_", " ")
            digest = str(text).startswith("sha256:")  # beside a label of eight it ends in column 80
            yield from entry(f"{label.strip()} ", "none" if text is None else text, 9 if digest else 15)


def _history(view: RegistryView) -> Iterator[str]:
    """Print the passports of a lineage over time, and its other entries."""
    yield from fold(f"{view.lineage}: {many(len(view.history), 'passport')}")
    yield "entry  logged      passport      tier     r_op >=  tasks    age  try  status"
    for row in view.history:
        limit = f"{row.limit.value:.4f}" if row.limit else "-"
        tasks = f"{row.limit.k:,}" if row.limit and row.limit.k is not None else "-"
        age = "-" if row.evidence_days is None else f"{row.evidence_days} d"
        line = f"{row.index:>5}  {row.issued_at[:10]}  {brief(row.passport_id)}  {_tier(row.tier)}"
        yield f"{line}  {limit:>7}  {tasks:>5}  {age:>5}  {row.attempt:>3}  {row.status}"
        for text in _more(row):
            yield from fold(text, first=" " * 7, rest=" " * 9)
    logging = {row.index for row in view.history}
    if events := [row for row in view.entries if row.index not in logging]:
        yield ""
        yield "Other entries:"
        for event in events:
            claims = event.entry.claims
            named = brief(claims.get("passport_id")), claims.get("reason"), claims.get("plan")
            by = f"by {brief(claims['by'])}" if "by" in claims else None
            text = " ".join(filter(None, [event.entry.type, *named, by]))
            yield from fold(f"{event.index:>5}  {event.entry.issued_at[:10]}  {text}", rest=" " * 19)


def _more(row: HistoryRow) -> Iterator[str]:
    if row.announced is not None:
        yield row.announced
    if row.drift is not None:
        yield _drift(row.drift)
    if (ended := row.ended) is not None:
        why = f": {ended.reason}" if ended.reason else f" by passport {brief(ended.by)}" if ended.by else ""
        yield f"{ended.how} by entry {ended.index}{why}"


def _drift(drift: LoggedDrift) -> str:
    words = [f"against {brief(drift.earlier)}: {drift.result}"]
    if drift.row is not None and drift.loss is not None:
        words.append(f"{drift.row} {_lost(drift.loss)}")
    if drift.trend_loss is not None and drift.trend_p is not None:
        words.append(f"trend of r_op: {_lost(drift.trend_loss)} (p {drift.trend_p:.2g})")
    return "; ".join(words)


def _lost(loss: float) -> str:
    return f"{'gained' if loss < 0 else 'lost'} {abs(loss):.3f}"
