"""Keeps ``templates/profiles/published.json``: the digests of every table that certkit published, by its id.

    python -m tests.published            # exits with 1 and names the tables that are not listed
    python -m tests.published --write    # adds them

The oldest comes first. A passport that names one of the ids with another table is refused. A digest that a
release carried is never taken out: passports name it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from certkit.assessment.profile_file import load_profile, packaged_profiles
from certkit.ground import canonical, files

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH: Final = files.packaged("templates", "profiles", "published.json")


def listed() -> dict[str, list[str]]:
    """Return the digests that are listed, by id."""
    digests: dict[str, list[str]] = canonical.loads(PATH.read_bytes())
    return digests


def missing() -> dict[str, str]:
    """Return the digests of packaged tables that are not listed, by id."""
    digests = {name: load_profile(name).digest for name in packaged_profiles()}
    return {name: digest for name, digest in digests.items() if digest not in listed().get(name, [])}


def main(arguments: Sequence[str]) -> int:
    lacking = missing()
    if "--write" in arguments:
        digests = listed()
        for name, digest in lacking.items():
            digests.setdefault(name, []).append(digest)
        PATH.write_text(canonical.pretty(dict(sorted(digests.items()))), encoding="utf-8")
        return 0
    for name, digest in lacking.items():
        print(f"{name}: {digest} is not listed: make schemas")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
