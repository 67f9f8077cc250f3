"""Keeps ``templates/profiles/published.toml``: the digests of every table that certkit published, by its id.

    python -m tests.published            # exits with 1 and names the tables that are not listed
    python -m tests.published --write    # adds them

A digest that a release carried is never taken out: passports name it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from certkit.assessment.profile_file import load_profile, packaged_profiles
from certkit.ground import files, toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD: Final = """\
# The digests of every table that certkit published, by its id, oldest first. A passport that names one of
# these ids with another table is refused. `make schemas` adds the digest of a packaged table.
"""


def listed() -> dict[str, list[str]]:
    """Return the digests that are listed, by id."""
    return toml.packaged("templates", "profiles", "published.toml")


def missing() -> dict[str, str]:
    """Return the digests of packaged tables that are not listed, by id."""
    digests = {name: load_profile(name).digest for name in packaged_profiles()}
    return {name: digest for name, digest in digests.items() if digest not in listed().get(name, [])}


def text(digests: Mapping[str, Sequence[str]]) -> str:
    """Return the file that lists `digests`."""
    lines = [HEAD]
    for name in sorted(digests):
        lines += [f"\n{name} = [\n", *(f'    "{digest}",\n' for digest in digests[name]), "]\n"]
    return "".join(lines)


def main(arguments: Sequence[str]) -> int:
    lacking = missing()
    if "--write" in arguments:
        digests = listed()
        for name, digest in lacking.items():
            digests.setdefault(name, []).append(digest)
        path = files.packaged("templates", "profiles", "published.toml")
        path.write_text(text(digests), encoding="utf-8")
        return 0
    for name, digest in lacking.items():
        print(f"{name}: {digest} is not listed: make schemas")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
