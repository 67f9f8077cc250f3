"""The command line: read the options, call one function, print, exit. It decides nothing.

`main` holds the table of commands, `options` what several of them share, `emit` the one way out, `context`
the clock and the user's own files, `settings` those of a team; `commands` has a module for each noun, and
`views` the screens that several modules print. Clock, seed and environment are read here and nowhere below.
"""
