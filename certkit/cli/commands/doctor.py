"""``certkit doctor``."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from certkit import report
from certkit._version import __version__
from certkit.cli.context import heads_path
from certkit.cli.emit import emit, fold
from certkit.cli.settings import SETTINGS, from_file
from certkit.ground.document import Document, Part, Text
from certkit.ground.errors import Exit, InputError
from certkit.registry.heads import remembered


class InForce(Part, frozen=True, kw_only=True):
    """A setting, with where its value comes from."""

    name: Text
    value: str | int | None
    source: Text


class Doctor(Document, frozen=True, kw_only=True, tag="urn:certkit:doctor:v1"):
    """What this machine lacks, and the settings in force."""

    certkit: Text
    python: Text
    missing: Annotated[Sequence[Text], Meta(description="packages that certkit needs, and are not here")]
    pdf_missing: Annotated[Text | None, Meta(description="why reports are made as HTML alone")]
    heads: Annotated[Text | None, Meta(description="why the file of remembered checkpoints cannot be read")]
    settings: Annotated[Sequence[InForce], Meta(description="every setting, with where its value comes from")]

    @property
    def exit_code(self) -> Exit:
        """1 where certkit lacks what it cannot do without."""
        return Exit.NEGATIVE if self.missing else Exit.OK


def doctor() -> None:
    """Look at what this machine has and lacks: packages, what makes a PDF, settings.

    Exit code 0: everything that certkit needs is here; a missing Pango only means that no PDF is made,
    and the lines to install it are printed. 1: a package that it needs is missing. A file of remembered
    checkpoints is named where it cannot be read. Then come the settings in force, each with its source.

    Example: certkit doctor
    """
    heads, way_out = None, ""
    try:
        remembered(heads_path())
    except InputError as failure:
        heads, way_out = str(failure), failure.hint or ""
    state = Doctor(
        certkit=__version__,
        python=platform.python_version(),
        missing=_missing(),
        pdf_missing=report.pdf_missing(),
        heads=heads,
        settings=list(_in_force()),
    )
    emit(state, _screen(state), hints=[*way_out.splitlines(), *(report.HINTS if state.pdf_missing else ())])


def _screen(state: Doctor) -> Iterator[str]:
    yield f"certkit {state.certkit}, Python {state.python}, {platform.platform(terse=True)}"
    yield from (f"missing: pip install {name}" for name in state.missing)
    yield from fold(f"PDF: {state.pdf_missing or 'Pango, HarfBuzz and the font of reports are here'}")
    if state.heads:
        yield from fold(state.heads)
    yield ""
    for item in state.settings:
        yield f"{item.name:<14}{item.value!s:<24}{item.source}"


def _missing() -> list[str]:
    """Return the packages that certkit declares to need, and that are not installed."""
    needed = [line for line in requires("certkit") or [] if "extra ==" not in line]
    names = [re.split(r"[^\w.-]", line)[0] for line in needed]
    return [name for name in names if not list(distributions(name=name))]


def _in_force() -> Iterator[InForce]:
    """Yield every setting with its value and where that comes from: a variable, the file or the default."""
    chosen, name = from_file(Path.cwd())
    for key, setting in SETTINGS.items():
        if setting.variable in os.environ:
            yield InForce(name=key, value=os.environ[setting.variable], source=setting.variable)
        else:
            value = chosen.get(key, setting.default)
            yield InForce(name=key, value=value, source=str(name) if key in chosen else "default")
