"""Transparency-log formats and proofs, pure: bytes in, values out, no files, no clock.

What this room knows: RFC 6962 hashing and proofs (`tree`), tiles and bundles of entries (`tiles`,
C2SP tlog-tiles), signed notes and their keys (`note`, C2SP signed-note), checkpoints and witnesses'
cosignatures, and the text of an offline proof (`checkpoint`, C2SP tlog-checkpoint, tlog-cosignature and
tlog-proof). It does not know what an entry says or where anything is stored.

    log = note.VerifierKey.parse("certkit.demo/…+1f2e3d4c+AX…")    # from a trust policy, never from the log
    given = checkpoint.parse_proof(Path("passport.json.tlog-proof").read_bytes())
    head = checkpoint.verify_proof(given, tree.leaf_hash(entry), [log])   # raises, or the log held the entry
    head.checkpoint.size, given.index

All input is hostile: each parser accepts exactly the bytes that the matching writer makes, and the extension
lines and unknown signatures that a specification requires readers to ignore.
Faults of form are `InputError`; a signature or a proof that does not hold is `MismatchError`.
"""
