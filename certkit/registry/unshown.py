"""What no look at a registry's files can show, in words for whoever audits it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

NOT_SHOWN: Final = (
    (
        "whether a later state was undone by putting older files back: that takes a checkpoint remembered"
        " elsewhere, or a witness"
    ),
    "whether the log's key was used to sign a shorter or different log after this one: likewise",
    "whether others are shown a different log under the same key: likewise",
    "whether a passport was issued and never submitted",
)
NO_WITNESS: Final = (
    "anything that whoever holds the log's key may do by themselves: your policy asks for no witness, so only"
    " checkpoints that somebody remembers stand against the next three"
)
NO_PASSPORTS: Final = (
    "whether the passports say what the entries repeat, drifted as the entries tell, and were ended by their"
    " issuers: this tree holds none"
)


def unshown(k: int, witnessed: int | None, *, passports: bool) -> tuple[str, ...]:
    """Return what an audit could not see.

    `k` witnesses were asked for and vouch up to the time `witnessed` (seconds since 1970; None: they do
    not); `passports` says whether these were there.
    """
    more = () if passports else (NO_PASSPORTS,)
    if witnessed is None:
        return (*(() if k else (NO_WITNESS,)), *NOT_SHOWN, *more)
    time = datetime.fromtimestamp(witnessed, UTC).isoformat().replace("+00:00", "Z")
    who = "1 witness vouches" if k == 1 else f"{k} witnesses vouch"
    return (
        f"whether anything was undone or shown otherwise after {time}: up to then {who} that nothing was",
        NOT_SHOWN[-1],
        *more,
    )
