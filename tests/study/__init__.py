"""The simulation study: how often the readings err, on agents whose truth is known.

    python -m tests.study                    # every section, about four minutes
    python -m tests.study --quick            # a tenth of the draws, under a minute
    python -m tests.study --only coverage    # one section
    python -m tests.study --write            # and puts tables and figures into the documentation

Nothing of the package is rewritten here: sums come from `series.totals`, bounds from `bounds`, rows from
`bounded.Reader`, consistency from `csi` and `csi_windowed`, drift from `drift.drift`. What is written here is
the world: who succeeds how often, and how alike the runs of one cluster are.
"""
