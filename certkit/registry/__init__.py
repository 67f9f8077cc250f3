"""The registry: an append-only log of which passports were issued, and its audit.

What this room knows: entries and how each lineage chains them (`entry`), the SQLite file that is the
store of record (`store`), the tree, tiles and signed checkpoint over it (`log`), what was signed last and
is remembered elsewhere (`heads`), the passports beside it (`blobs`), who may be admitted (`admission`), the
operations (`registry`), the public form (`export`, read back by `source`), the verified reader of either
form (`reader`), what the entries say (`state`, and `ledger` for who writes), and the proof from bytes that
all of it holds together (`auditing`). What it does not know: reports, and which keys deserve trust.

    vkey = Registry.init(folder, "acme", log_key, at=now)      # publish the verifier key
    with Registry.open(folder, heads=path) as registry:
        appended = registry.append(passport, check=check, submitter=key, log_key=log_key, at=now)
        appended.index, appended.proof.to_bytes()
    audit(folder, log=vkey, submitters=trusted, check=check).findings  # empty, or what is wrong

Rules. A passport is checked before anything is written; a refused append leaves nothing. The bytes of a
passport are on the disk before the entry that names them; entry, tiles and checkpoint are one
transaction. The same passport again is its first index. Nothing is signed on top of a log that
contradicts its own checkpoint, or does not go on from what was signed last. No name from outside becomes
a path: passports are stored under their digest, tiles under their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.lazy import lazy

if TYPE_CHECKING:
    from certkit.registry.audited import Audit, Finding
    from certkit.registry.auditing import audit
    from certkit.registry.entry import Check, Entry, Logged, PassportFacts
    from certkit.registry.registry import Registry
    from certkit.registry.writing import Appended

__all__ = ["Appended", "Audit", "Check", "Entry", "Finding", "Logged", "PassportFacts", "Registry", "audit"]

__getattr__ = lazy(
    __name__,
    {
        "audited": (
            "Audit",
            "Finding",
        ),
        "auditing": ("audit",),
        "entry": (
            "Check",
            "Entry",
            "Logged",
            "PassportFacts",
        ),
        "writing": ("Appended",),
        "registry": ("Registry",),
    },
)
