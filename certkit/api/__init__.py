"""What notebooks and commands do alike: judge what lies on disk, issue, verify, compare, draw a report.

`functions` holds the calls that ``import certkit`` offers. The other modules hold what the command line
shares with them. No module here reads a clock, a seed or the environment, and none prints.
"""
