"""The registry: an append-only log of which passports were issued, and its audit.

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
