"""Two summaries side by side: `compare` holds two agents together, `drift` one agent at two times.

Both test each row with `contrast`. `paper` prints the tests that papers use.
"""
