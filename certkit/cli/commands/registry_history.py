"""Those of ``certkit registry`` that tell a lineage's history: its passports, its drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli import clock, output
from certkit.cli.lineage import Signers, Words, heading, opened
from certkit.cli.options import Json
from certkit.cli.places import RegistryOption
from certkit.errors import CertkitError, Exit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certkit.assessment.drift import Snapshot
    from certkit.cli.lineage import Told
    from certkit.registry.course import Step
    from certkit.registry.history import History, Issued, Log

_BARS: Final = "▁▂▃▄▅▆▇█"
_LEVELS: Final = len(_BARS) - 1

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Tell as of this time what is valid and how old it is. Every entry counts, whenever it was "
        "logged. Default: now.",
    ),
]


def history(
    words: Words,
    registry: RegistryOption = None,
    trust: Signers = None,
    at: At = None,
    json: Json = False,
) -> None:
    """Tell a lineage's history: every passport, with its r_op and what became of it.

    DIR is a registry or an exported tree. All entries are read and must give the checkpoint's root, which the
    registry's own key must have signed. With a trust policy, one of its log keys must have, and only entries
    count whose signers it knows.

    Example: certkit registry history registry gardener-1
    """
    with opened(words, registry, trust, hidden=json) as told:
        found, moment = told.history, clock.moment(at, "--at") if at else clock.now()
        rows = [_row(one, _rate(told.log, one), moment) for one in found.passports]
    if json:
        schema = "urn:certkit:registry-history:v1"
        output.document({"schema": schema, **told.to_dict(), "passports": rows, **_events(found)})
        return
    heading(told)
    output.say(
        f"{'entry':>6}  {'logged':<10}  {'passport':<12}  {'tier':<7}  {'r_op':>7}  {'try':>3}  status"
    )
    for row in rows:
        rate = "-" if row["r_op"] is None else f"{row['r_op']:.4f}"
        tier = f"Tier {row['tier']}" if row["tier"] else "no tier"
        name = output.brief(row["passport_id"])
        output.say(
            f"{row['index']:>6}  {row['issued_at'][:10]}  {name}  {tier:<7}  {rate:>7}  {row['attempt']:>3}  "
            f"{row['status']}"
        )
    if line := sparkline([row["r_op"] for row in rows]):
        output.say()
        output.say(f"r_op   {line}")
    _show_events(found)


def drift(words: Words, registry: RegistryOption = None, trust: Signers = None, json: Json = False) -> None:
    """Compare each passport of a lineage with those before it.

    Where the one before it rests on too few tasks to tell, or is of another kind, an earlier one counts. The
    last column is the trend of r_op over up to eight passports, which finds a slow decline that no pair
    shows. Exit code 0: nothing; 5: the latest passport drifted or the trend shows a decline; 4: it cannot be
    told. A passport on the evidence of the one before it shows nothing new, and what was found before stands.

    Example: certkit registry drift registry gardener-1
    """
    with opened(words, registry, trust, hidden=json) as told:
        found = told.history
        snapshots = [_snapshot(told.log, one) for one in found.passports]
    pairs = _pairs(found, snapshots)
    code = _exit(found, pairs)
    if json:
        output.document(
            {
                "schema": "urn:certkit:registry-drift:v1",
                **told.to_dict(),
                "pairs": pairs,
                "exit_code": int(code),
            }
        )
    else:
        _show_drift(told, pairs)
    raise typer.Exit(code)


def _row(one: Issued, rate: float | None, at: datetime) -> dict[str, Any]:
    claims, ending = one.claims, one.ending
    return {
        "index": one.index,
        "issued_at": one.issued_at,
        "passport_id": claims.passport_id,
        "agent": claims.agent,
        "profile": claims.profile,
        "tier": claims.tier,
        "attempt": claims.attempt,
        "not_before": claims.not_before,
        "not_after": claims.not_after,
        "r_op": rate,
        "status": _status(one, at),
        "ended_by": ending.index if ending else None,
        "reason": ending.reason if ending else None,
    }


def _status(one: Issued, at: datetime) -> str:
    from certkit.registry.entry import timestamp  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.search import timely  # noqa: PLC0415 - the same

    if one.ending is not None:
        return one.ending.how
    return timely(one.claims.not_before, one.claims.not_after, timestamp(at))


def _rate(log: Log, one: Issued) -> float | None:
    """Return a passport's r_op, None where it has none or its file is not here."""
    from certkit.registry.history import r_op, statement  # noqa: PLC0415 - keeps the help fast

    data = log.passport(one.file)
    try:
        return r_op(statement(data)) if data else None
    except CertkitError:
        return None


def sparkline(values: list[float | None]) -> str:
    """Return a line of bars from 0 to 1, a dot where there is no value; nothing for fewer than two."""
    if sum(value is not None for value in values) < len(("from", "to")):
        return ""
    return "".join("·" if value is None else _BARS[round(value * _LEVELS)] for value in values)


def _events(found: History) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    rows = [
        {"index": one.index, "issued_at": one.found.entry.issued_at, "type": one.found.entry.type}
        | {"claims": to_builtins(one.found.claims)}
        for one in found.entries
        if one.found.passport is None
    ]
    return {"events": rows}


def _show_events(found: History) -> None:
    events = [one for one in found.entries if one.found.passport is None]
    if not events:
        return
    output.say()
    output.say("Events:")
    for one in events:
        claims = one.found.entry.claims
        about = output.brief(one.found.passport_id)
        said = claims.get("reason") or claims.get("result") or claims.get("text") or "by another"
        by = f" by {claims['by'].removeprefix('sha256:')[:12]}" if "by" in claims else ""
        words = f"{one.found.entry.type} {about}" if about else one.found.entry.type
        output.wrapped(
            f"{one.index:>4}  {one.found.entry.issued_at[:10]}  {words}{by or f': {said}'}",
            first="  ",
            rest=" " * 20,
        )


def _snapshot(log: Log, one: Issued) -> Snapshot | str:
    """Return a passport's side of a comparison, or why there is none."""
    from certkit.registry.consequences import snapshot  # noqa: PLC0415 - keeps the help fast

    data = log.passport(one.file)
    if data is None:
        return "its file is not here, or has changed"
    try:
        return snapshot(data)[1]
    except CertkitError as error:
        return error.message


def _pairs(found: History, snapshots: list[Snapshot | str]) -> list[dict[str, Any]]:
    """Compare each passport but the first with those before it, and with what was logged of that."""
    from certkit.registry.course import Course  # noqa: PLC0415 - keeps the help fast

    ids = [one.claims.passport_id for one in found.passports]
    known = {name: side for name, side in zip(ids, snapshots, strict=True) if not isinstance(side, str)}
    course = Course(known.__getitem__)
    steps = [course.follow(name) if name in known else None for name in ids]
    return [_pair(found, snapshots, number, steps[number]) for number in range(1, len(steps))]


def _pair(found: History, snapshots: list[Snapshot | str], number: int, step: Step | None) -> dict[str, Any]:
    """Return the comparison of a passport that counts, and what the log says of it."""
    from certkit.registry.consequences import agree, logged  # noqa: PLC0415 - keeps the help fast

    places = {one.claims.passport_id: one.index for one in found.passports}
    one = found.passports[number]
    said = [claims for _, claims in found.drifts if claims.passport_id == one.claims.passport_id]
    if step is None:
        before = found.passports[number - 1].index
        reasons = [side for side in snapshots[: number + 1] if isinstance(side, str)]
        row = {"old": before, "new": one.index, "logged": said[0].result if said else None}
        return {**row, "result": None, "agrees": None, "reasons": reasons[-1:], "drift": None}
    earlier, made = step.told.earlier, step.told.drift
    entry = next((claims for claims in said if claims.earlier == earlier), said[0] if said else None)
    # Whoever wrote had every file, and may have compared with one that is not here.
    whole = not any(isinstance(side, str) for side in snapshots[:number])
    return {
        "old": places[earlier],
        "new": one.index,
        "logged": entry.result if entry else None,
        "result": made.result,
        "agrees": agree(logged(made, one.claims.passport_id, earlier), entry) if whole else None,
        "reasons": list(made.reasons),
        "drift": made.to_dict(),
    }


def _exit(found: History, pairs: list[dict[str, Any]]) -> Exit:
    changed = {"DRIFTED", "IDENTITY_CHANGED"}
    telling = (
        pair["result"] for pair in reversed(pairs) if pair["result"] in changed or not _is_again(found, pair)
    )
    if (result := next(telling, None)) in changed:
        return Exit.DRIFT
    return Exit.OK if result == "STABLE" else Exit.INSUFFICIENT


def _is_again(found: History, pair: dict[str, Any]) -> bool:
    """Tell whether a pair's passports rest on one bundle about one agent, so that it shows nothing."""
    both = [one.claims for one in found.passports if one.index in {pair["old"], pair["new"]}]
    one, other = both
    return one.evidence is not None and (one.evidence, one.agent) == (other.evidence, other.agent)


def _show_drift(told: Told, pairs: list[dict[str, Any]]) -> None:
    found = told.history
    heading(told)
    output.say(f"{'entry':>6}  {'against':>7}  {'result':<16}  {'logged':<16}  trend of r_op")
    for number, one in enumerate(found.passports):
        pair = pairs[number - 1] if number else None
        against = "" if pair is None else pair["old"]
        result = "the first" if pair is None else pair["result"] or "unknown"
        logged = "" if pair is None else _logged(pair)
        trend = "" if pair is None or pair["drift"] is None else _trend(pair["drift"]["trend"])
        output.say(f"{one.index:>6}  {against:>7}  {result:<16}  {logged:<16}  {trend}".rstrip())
    output.say()
    for line in _explained(pairs):
        output.wrapped(line, first="- ", rest="  ")


def _logged(pair: dict[str, Any]) -> str:
    differs = " (differs)" if pair["agrees"] is False else ""
    return f"{pair['logged'] or 'nothing'}{differs}"


def _trend(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    flag = ", a decline" if found["flagged"] else ""
    return f"{-found['loss']:+.3f} over {len(found['values'])}{flag}"


def _explained(pairs: list[dict[str, Any]]) -> Iterator[str]:
    if not pairs:
        yield "there is one passport, and nothing to compare it with"
    for pair in pairs:
        if pair["result"] != "STABLE" and pair["reasons"]:
            yield f"entry {pair['new']}: {pair['reasons'][0]}"
        if pair["agrees"] is False:
            yield f"entry {pair['new']}: the log says {pair['logged'] or 'nothing'} of it, which differs"
