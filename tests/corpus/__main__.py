"""Compares what certkit answers with ``expected.json``, or writes it anew.

python -m tests.corpus [--write] [BUNDLE ...]
"""

from __future__ import annotations

import sys

from tests.corpus.bundles import BUNDLES
from tests.corpus.comparing import EXPECTED, compare, figures, read_differences, read_expected, written
from tests.corpus.logs import LOGS
from tests.corpus.program import answers


def main(*arguments: str) -> int:
    """Return 1 where an answer differs and the difference is not listed."""
    names = [name for name in arguments if name != "--write"] or [*BUNDLES, *LOGS]
    if absent := [name for name in names if name in LOGS and not LOGS[name].source.is_file()]:
        print("left as they are, since the shared evidence is not here:", *absent)
    now = {name: answers(name) for name in names if name not in absent}
    old = read_expected() if EXPECTED.is_file() else {}
    if "--write" in arguments:
        known = {name: now.get(name, old.get(name)) for name in (*BUNDLES, *LOGS)}
        EXPECTED.write_text(
            written({name: item for name, item in known.items() if item}) + "\n", encoding="utf-8"
        )
        return 0
    complaints, _ = compare(
        figures({name: old.get(name, {}) for name in now}), figures(now), read_differences()
    )
    print(*complaints, f"{len(complaints)} differences", sep="\n")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
