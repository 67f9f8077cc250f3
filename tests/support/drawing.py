"""Reports for tests: of agents built by hand, read back with a parser that knows nothing of certkit."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit import report
from certkit.bundle.context import read
from certkit.ground import canonical
from certkit.passport.issuing import Issuer, issue
from certkit.report import render
from tests.support.build import facts, judged, perfect, profile, strong

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.assessment.result import Assessment
    from certkit.passport.opening import Passport

DAY = datetime(2026, 2, 3, tzinfo=UTC)
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'> {{ 7 * 7 }} {% raw %} &lt;b&gt; ]]> -->"
    " </style></title>"
)

needs_pdf = pytest.mark.skipif(
    report.pdf_missing() is not None, reason=f"no PDF can be made here: {report.pdf_missing()}"
)

# Elements without content; a parser sees no end tag for them.
_VOID = {"meta", "br", "col", "wbr", "line", "circle", "rect", "path"}


class Page(HTMLParser):
    """What a browser would see: elements with attributes, and the text outside head, figures' titles kept."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed: list[str] = []
        self.pieces: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed, f"</{tag}> closes nothing"
        assert self.unclosed[-1] == tag, f"</{tag}> closes <{self.unclosed[-1]}>"
        self.unclosed.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.unclosed:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        """All text, white space collapsed."""
        return " ".join("".join(self.pieces).split())

    @property
    def lines(self) -> str:
        """Text piece by piece, one a line, for people to compare."""
        return "\n".join(" ".join(piece.split()) for piece in self.pieces if piece.strip()) + "\n"

    def values(self, attribute: str) -> list[str]:
        """Every value of an attribute, in order."""
        return [found for _, attrs in self.elements if (found := attrs.get(attribute)) is not None]


def page(assessment: Assessment, passport: bytes | None = None) -> Page:
    """The report of an assessment, parsed."""
    return Page(report.html(report.view(assessment, passport=passport)))


def hostile(owner: str = "o", hazards: int = 200, harm: str = "w" * 200) -> report.View:
    """A report whose context has many hazards with markup, controls, right-to-left marks and long words."""
    assessment = judged(strong(), tier=2, tasks_independent=True)
    said = {
        "schema": "urn:certkit:context:v1",
        "about": {"bundles": [assessment.facts.digest], "profile": assessment.profile.digest, "tier": 2},
        "owner": "o",
        "people": [{"id": "o", "name": owner, "role": "risk owner"}],
        "decision": {"outcome": "approved", "by": "o", "date": "2026-02-03", "until": "2027-02-03"},
        "use": {"purpose": f"{EVIL}\u202eevil\u0007"},
        "hazards": [
            {
                "id": f"H-{number}",
                "title": f"{number} {EVIL[:150]}",
                "harm": harm,
                "severity": "catastrophic",
                "criteria": ["r_op"],
            }
            for number in range(hazards)
        ],
    }
    context = read(canonical.line(said), where="context.json")
    return report.view(assessment, context=context, summary=perfect(20, 2))


def begun() -> bytes:
    """The HTML of a hostile report and, behind it, the PDF of its pages before the results."""
    view = hostile(hazards=1)
    markup = render.html(view)
    return markup.encode() + render.pdf(view, markup.partition('<h2 id="results"')[0])


def alternatives(file: Path) -> list[str | None]:
    """What a PDF's structure tree says in place of each figure, None where it says nothing."""
    told = canonical.loads(tool("qpdf", "--json", "--json-key=qpdf", file).encode(), max_bytes=1 << 25)
    objects = told["qpdf"][1]
    values = (item["value"] for item in objects.values() if isinstance(item.get("value"), dict))
    return [item.get("/Alt") for item in values if item.get("/S") == "/Figure"]


def passport(assessment: Assessment, key: Ed25519PrivateKey | None = None) -> Passport:
    """A passport of the strong agent's assessment, valid for a day."""
    signing = key or Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    return issue(
        assessment,
        strong(),
        issuer=Issuer(name="Lab of Tests"),
        key=signing,
        not_before=DAY,
        not_after=DAY + timedelta(days=1),
    )


def tool(name: str, *arguments: object) -> str:
    """What a program of poppler or qpdf prints; the test is skipped where it is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([name, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="replace")


def filled(file: Path) -> list[float]:
    """How far down its lowest word stands on each page, as a share of the height; the footer left out."""
    shares = []
    for page in re.findall(r"<page .*?</page>", tool("pdftotext", "-bbox", file, "-"), re.DOTALL):
        height = float(re.findall(r'<page [^>]*height="([0-9.]+)"', page)[0])
        lowest = [float(y) for y in re.findall(r'<word [^>]*yMax="([0-9.]+)"', page)]
        shares.append(max((y for y in lowest if y < height - 14 * 72 / 25.4), default=0.0) / height)
    return shares


def written(path: Path, data: bytes) -> Path:
    """Write bytes and return where."""
    path.write_bytes(data)
    return path


__all__ = [
    "DAY",
    "EVIL",
    "Page",
    "alternatives",
    "begun",
    "facts",
    "filled",
    "hostile",
    "judged",
    "needs_pdf",
    "page",
    "passport",
    "profile",
    "strong",
    "tool",
    "written",
]
