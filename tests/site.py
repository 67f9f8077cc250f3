"""A hook of MkDocs, which `make docs` calls for every page; `docs/mkdocs.yml` names it.

Pages are written for a checkout: they link to schemas and scripts outside of docs/, and their fences say
whether tests run them. The site publishes such files under ``files/``, and a fence keeps its language only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
_LINK: Final = re.compile(r"(?<=\]\()(?:\.\./)+[^)#\s]+")
_FENCE: Final = re.compile(r"^( *```\w+) .*$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Page, config: Any, files: Files) -> str:
    """Return the page as MkDocs reads it, and publish the files that it links to."""
    folder = (DOCS / page.file.src_uri).parent

    def published(link: re.Match[str]) -> str:
        source = (folder / link[0]).resolve()
        if source.is_relative_to(DOCS):
            return link[0]
        name = f"files/{source.relative_to(ROOT).as_posix()}"
        if files.get_file_from_path(name) is None:
            files.append(File.generated(config, name, abs_src_path=str(source)))
        return f"{'../' * page.file.src_uri.count('/')}{name}"

    return _FENCE.sub(r"\1", _LINK.sub(published, markdown))
