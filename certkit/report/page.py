"""A view as HTML and as PDF.

Templates hold prose and layout and no logic but "for each" and "if there is". Everything that they print
is escaped; what came from evidence is first made visible: control characters and marks that reorder text
stand as escapes, None stands as "not provided".

The PDF is the same HTML with one font family loaded by path, nothing else can be fetched, and no clock is
read, so the same view gives the same bytes on any machine; a character that the family lacks is written as
its escape. PDF/A-3a is declared; it is not validated here.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import logging
import re
import sys
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from certkit._version import __version__
from certkit.assessment.answer import fragility_texts
from certkit.assessment.words import reason_text
from certkit.ground import files
from certkit.ground.errors import UnavailableError
from certkit.ground.text import quoted, visible
from certkit.ground.wording import many
from certkit.report import answer, results, sections, words
from certkit.report.argument.challenges import CLASS_WORDS, CLOSED_BY, STATUS_WORDS
from certkit.report.argument.columns import figures
from certkit.report.figures import mark, word
from certkit.report.view import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment

    from certkit.report.view import ReportView

HINTS: Final = (
    "Debian, Ubuntu:",
    "sudo apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0",
    "macOS: brew install pango",
)
"""What to install where a PDF cannot be made."""

_FAMILY: Final = "Source Sans Pro"
_FACES: Final = {400: "Regular", 600: "Semibold"}
"""Weight → name of the face. No italics: they lack Greek."""

# A file in a PDF must have a date, and no clock is read; this one says that none was given.
_NO_DATE: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TEMPLATE: Final = 1 << 18
_LONGEST: Final = 1_200


def printable(text: str) -> str:
    """Return text with what a reader cannot see made visible, cut at `_LONGEST` characters."""
    return "\n".join(map(visible, words.cut(text, _LONGEST).split("\n")))


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if value is None or value == "":
        return Markup('<span class="blank">not provided</span>')
    if type(value) is int:
        return f"{value:,}"
    return printable(value) if isinstance(value, str) else value


_HYPHENATED: Final = re.compile(r"-*[\w.:]+-[\w.:-]+,?|[\d.]+ %[,;.]?")


def _unbroken(cell: Any, most: int = _LONGEST) -> Any:
    """Return the text of a cell with each id, code, date and rate on one line where the column has room."""
    if isinstance(cell, Markup) or not cell or not isinstance(cell, str):
        return cell
    text = str(escape(printable(words.cut(cell, most))))
    return Markup(_HYPHENATED.sub(r'<span class="kept">\g<0></span>', text))  # noqa: S704 - escaped


def html(view: ReportView) -> str:
    """Return the report as one HTML document that fetches nothing."""
    page = environment().get_template("report.html")
    return page.render(
        case=view.case,
        argument=view.argument,
        attachments=view.attachments,
        failed=view.failed,
        generated_at=view.generated_at,
        style=Markup(template("style.css")),  # noqa: S704 - our own file
    )


@cache
def environment() -> Environment:
    """Return the templates, which are compiled once."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - only where drawn

    made = Environment(
        loader=FunctionLoader(template),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        optimized=False,  # each is drawn once, and folding constants takes a third of the compilation
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"kept": _unbroken, "plain": printable, "quoted": quoted}
    made.globals |= {
        "Markup": Markup,
        "answer": answer,
        "results": results,
        "sections": sections,
        "closed_by": {CLASS_WORDS[kind]: text for kind, text in CLOSED_BY.items()},
        "contents": SECTIONS,
        "figures": figures,
        "fragility_texts": fragility_texts,
        "many": many,
        "mark": mark,
        "reason_text": reason_text,
        "version": __version__,
        "word": word,
        "state_words": STATUS_WORDS,
    }
    return made


def template(name: str) -> str:
    """Return a file of the safety case's templates, or of another folder: ``view/page.html``."""
    folder, _, file = name.rpartition("/")
    return files.read(
        files.packaged("templates", folder or "safety_case", file), limit=_MAX_TEMPLATE
    ).decode()


def _fonts() -> dict[int, Path]:
    """Return the files of the faces; empty where the font package is not installed."""
    spec = find_spec("font_source_sans_pro")
    if spec is None or spec.origin is None:
        return {}
    folder = Path(spec.origin).parent / "files"
    paths = {weight: folder / f"SourceSansPro-{name}.ttf" for weight, name in _FACES.items()}
    return paths if all(path.is_file() for path in paths.values()) else {}


def _faces() -> str:
    """Return the @font-face rules of the family."""
    return "".join(
        f'@font-face{{font-family:"{_FAMILY}";font-weight:{weight};src:url("{path.as_uri()}")}}'
        for weight, path in _fonts().items()
    )


@cache
def _drawn() -> frozenset[int]:
    from fontTools.ttLib import TTFont  # noqa: PLC0415 - heavy

    sets = []
    for path in _fonts().values():
        with TTFont(path, lazy=True) as font:
            sets.append(frozenset(font.getBestCmap()))
    return frozenset.intersection(*sets) | {0x09, 0x0A}


def _drawable(text: str) -> str:
    r"""Return `text` with every character that the family lacks as ``\u4e2d``."""
    lacking = set(map(ord, set(text))) - _drawn()
    return text.translate({code: f"\\u{code:04x}" for code in lacking})


@contextmanager
def _by_file_name() -> Iterator[None]:
    """Load libraries on Linux by the names of their files: a search starts whatever compiler is installed."""
    search = ctypes.util.find_library
    if sys.platform == "linux":
        ctypes.util.find_library = lambda name: None  # noqa: ARG005 - the name that ctypes gives it
    try:
        yield
    finally:
        ctypes.util.find_library = search


def pdf_missing() -> str | None:
    """Return why no PDF can be made on this machine, or None where one can."""
    if not _fonts():
        return "the Python package font-source-sans-pro is not installed"
    try:
        with _by_file_name():
            import weasyprint  # noqa: F401, PLC0415 - heavy, and loads Pango
    except ImportError as error:
        return f"the Python package {error.name or 'weasyprint'} is not installed"
    except OSError as error:
        return f"Pango cannot be loaded ({str(error).splitlines()[0][:160]})"
    return None


@contextmanager
def _undated_fonts() -> Iterator[None]:
    """Keep the dates of fonts: where HarfBuzz-Subset is missing, fontTools cuts them and writes the time."""
    from weasyprint.pdf import fonts  # noqa: PLC0415 - heavy

    opening = fonts.TTFont
    fonts.TTFont = partial(opening, recalcTimestamp=False)
    try:
        yield
    finally:
        fonts.TTFont = opening


def _named_once(_document: Any, made: Any) -> None:
    """Name each attached file once in the catalogue; WeasyPrint 70.0 names each twice."""
    if "AF" in made.catalog:
        made.catalog["AF"][:] = list(dict.fromkeys(made.catalog["AF"]))


def pdf(view: ReportView, markup: str | None = None) -> bytes:
    """Return the report as PDF/A-3a with its attachments; `markup` is its HTML where that is at hand.

    Raises:
        UnavailableError: ``report.pdf-unavailable`` where the machine lacks what it takes.
    """
    if missing := pdf_missing():
        raise UnavailableError("report.pdf-unavailable", missing, hint="\n".join(HINTS))
    from weasyprint import CSS, HTML  # noqa: PLC0415 - heavy
    from weasyprint import Attachment as Attached  # noqa: PLC0415 - heavy
    from weasyprint.text.fonts import FontConfiguration  # noqa: PLC0415 - heavy
    from weasyprint.urls import URLFetcher  # noqa: PLC0415 - heavy

    # The file that is made names what it lacks in the log; a user of certkit is not its reader.
    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    document = _drawable(html(view) if markup is None else markup)
    fetcher = URLFetcher(allowed_protocols={"file"})
    loaded = FontConfiguration()
    date = view.generated_at or _NO_DATE
    attached = [
        Attached(
            string=item.data,
            name=item.name,
            description=item.description,
            created=date,
            modified=date,
            relationship=item.relationship,
        )
        for item in view.attachments
    ]
    identity = hashlib.sha256(document.encode())
    for item in view.attachments:
        identity.update(hashlib.sha256(item.data).digest())
    with warnings.catch_warnings(), _undated_fonts():
        # WeasyPrint 70.0 leaves the file of its colour profile to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        made = HTML(string=document, url_fetcher=URLFetcher(allowed_protocols=())).write_pdf(
            stylesheets=[CSS(string=_faces(), font_config=loaded, url_fetcher=fetcher)],
            font_config=loaded,
            attachments=attached,
            pdf_variant="pdf/a-3a",
            pdf_identifier=identity.digest()[:16],
            finisher=_named_once,
        )
    if not isinstance(made, bytes):
        raise TypeError(type(made).__name__)
    return made
