"""From records to integer sums: `summarise` makes a `Summary` of a bundle, and `pooling` one of several.

`terms` says what a run adds to the sums, `reduce` adds runs up, `series` adds up tasks, and `finish` makes
the document, whose form `summary` holds. `runs` lists the runs behind a number.
"""
