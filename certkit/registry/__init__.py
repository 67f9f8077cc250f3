"""The registry: an append-only log of the passports that were issued.

Modules, each importing only those before it: `entry` (the bytes of an entry), `log` (the database, the
stored passports, the tree), `fold` (lineages, attempts, endings), `heads` (what was signed last, remembered
elsewhere), `writer`, `reader`, `audit`, `status` and `publish` (the exported tree).

No name from outside becomes a path: passports are stored under their digest, tiles under their numbers.
"""
