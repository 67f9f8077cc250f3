"""Evidence: bundles of evaluation records, read strictly and reduced to integers once.

    bundle = open_bundle(Path("bundle"))      # structure and digests verified
    summary = summarise(bundle)               # records verified and reduced
    summary.domains, summary.records

A bad record refuses the whole bundle; nothing is skipped or repaired.
"""
