"""A lineage's history by those entries alone that keys of a trust policy signed.

    with reading(folder, key=key) as log:
        found, left_out = vetted(log.history("lab/agent"), trust, log.passport, origin)

What a log holds was let in by whoever keeps it. A passport counts where a trusted key submitted it and, where
its file is here, that is the passport which the entry names, of its lineage and by a trusted issuer; what
ends a passport, where one of its issuer's keys signed it, or where a later passport that counts takes its
place; all else where a trusted key signed it. What was signed for another log does not count, unless it ends
a passport. The rules are those of a status (`certkit.registry.status`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.errors import CertkitError
from certkit.registry.entry import Claims, Revocation, Supersession
from certkit.registry.history import history
from certkit.registry.rules import is_of, issuer_of
from certkit.registry.status import signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.passport.trust import Trust
    from certkit.registry.entry import Stored
    from certkit.registry.history import History
    from certkit.registry.registry import Logged


def vetted(
    found: History, trust: Trust, passport: Callable[[Stored], bytes | None], origin: str
) -> tuple[History, tuple[int, ...]]:
    """Return the history that the entries which count tell, and the places of those that do not.

    Raises `MismatchError` ``registry.entry-signature`` where a trusted key is named and did not sign.
    """
    vetting = _Vetting(trust, passport, origin)
    for one in found.entries:
        vetting.take(one)
    kept = [one for one in found.entries if vetting.counts(one)]
    places = {one.index for one in kept}
    left_out = tuple(one.index for one in found.entries if one.index not in places)
    return history(found.lineage, kept), left_out


class _Vetting:
    """The entries of a lineage, one after the other, under a policy."""

    def __init__(self, trust: Trust, passport: Callable[[Stored], bytes | None], origin: str) -> None:
        self._trust, self._passport, self._origin = trust, passport, origin
        self._known = {one.id: one.key for one in trust.candidates()}
        self._names: dict[str, str] = {one.id: one.issuer for one in trust.candidates()}
        self._issuers: dict[str, set[str]] = {}

    def take(self, one: Logged) -> None:
        """Note whose passport an entry logs, before any entry is counted: they may come in any order."""
        if isinstance(one.found.claims, Claims) and signed(one, self._known):
            found = self._issuers.setdefault(one.found.claims.passport_id, set())
            if issuer := self._issuer(one):
                found.add(issuer)

    def counts(self, one: Logged) -> bool:
        """Tell whether an entry counts."""
        if not signed(one, self._known):
            return False
        claims = one.found.claims
        if isinstance(claims, Revocation | Supersession):
            return self._names[one.found.entry.submitter] in self._issuers.get(claims.passport_id, ())
        if not one.found.entry.is_for(self._origin):
            return False
        return not isinstance(claims, Claims) or self._issuer(one) is not None

    def _issuer(self, one: Logged) -> str | None:
        """Return who issued a passport; whoever submitted it, where its file is not here."""
        submitter, file = self._names[one.found.entry.submitter], one.found.entry.passport
        data = None if file is None else self._passport(file)
        if data is None:
            return submitter
        try:
            return issuer_of(data, self._trust) if is_of(data, one.found) else None
        except CertkitError:
            return None
