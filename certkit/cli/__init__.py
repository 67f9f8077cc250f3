"""The command line: read the options, call one function, print, exit. What decides is below.

`main` holds the table of commands, `settings` those of a team, `options` what several commands share, `emit`
the one way out, `context` the clock and the user's own files; `commands` has a module for each noun with its
screens and documents, `views` the screens that several print. Clock, seed and environment are read here;
`passport.keyless` alone asks a CI system for its identity token.
"""

import gc

# A command makes little garbage, and looking for it takes a tenth of the time of a short one.
gc.set_threshold(100_000, 20, 20)
