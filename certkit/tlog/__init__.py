"""Transparency-log formats and proofs, pure: bytes in, values out, no files, no clock.

RFC 6962 stands in `tree`, C2SP tlog-tiles in `tiles`, signed-note in `note`, tlog-checkpoint,
tlog-cosignature and tlog-proof in `checkpoint`.

    log = note.VerifierKey.parse("certkit.demo/…+1f2e3d4c+AX…")    # from a trust policy, never from the log
    given = checkpoint.parse_proof(Path("passport.json.tlog-proof").read_bytes())
    head = checkpoint.verify_proof(given, tree.leaf_hash(entry), [log])   # raises, or the log held the entry
    head.checkpoint.size, given.index

All input is hostile: each parser accepts exactly the bytes that the matching writer makes, and the extension
lines and unknown signatures that a specification requires readers to ignore.
Faults of form are `InputError`; a signature or a proof that does not hold is `MismatchError`.
"""
