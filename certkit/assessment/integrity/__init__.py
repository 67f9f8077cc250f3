"""Scores of commitment integrity: what an agent held behind its answers, beside any tier and never in it."""
