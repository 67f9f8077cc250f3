"""The command line: read the options, call one function, print, exit. It decides nothing.

`main` holds the table of commands, `options` what several of them share, `emit` the one way out, `context`
the clock and the user's own files, `settings` those of a team; `commands` has a module for each noun, and
`views` the screens that several modules print. Clock, seed and environment are read here and nowhere below.
"""

import gc

# A command makes little garbage, and looking for it takes a tenth of the time of a short one.
gc.set_threshold(100_000, 20, 20)
