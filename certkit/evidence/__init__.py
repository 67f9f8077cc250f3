"""Evidence: bundles of evaluation records, read strictly and reduced to integers once.

What this room knows: the formats of bundle and record, how to read them when a hostile hand wrote them, and
how logs of other programs become bundles (`importers`). It does not know thresholds, tiers or verdicts.

    bundle = open_bundle(Path("bundle"))      # structure and digests verified
    summary = summarise(bundle)               # records verified and reduced
    summary.domains, summary.records

A bad record refuses the whole bundle; nothing is skipped or repaired.
"""
