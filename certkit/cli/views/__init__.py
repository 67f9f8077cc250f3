"""Results as people read them on a terminal."""

from typing import Final

from certkit.ground import toml

WORDS: Final[dict[str, str]] = toml.packaged("templates", "words.toml")
"""What the words of the screens mean."""
