"""Reports for tests: of agents whose runs are written out, read back with a parser of their own.

The strong agent passes all rows of all tiers on averages. Its runs under tool failure are many, its other
cells small, so that a small cell can cross its own threshold without moving the aggregate.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec import structs

from certkit import report
from certkit.assessment.assessment import Question
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.profile_file import load_profile
from certkit.bundle.facts import Facts, read_facts
from certkit.ground import canonical
from certkit.report import page as drawing
from certkit.report.argument.case import IssuedPassport
from certkit.report.context import read_context
from tests.support import bundles
from tests.support.build import AGENT, DIGEST, PROTOCOL
from tests.support.extremes import failed, full

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from certkit.summary.summary import Summary
    from tests.support.bundles import Run

DAY = datetime(2026, 2, 3, tzinfo=UTC)
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'> {{ 7 * 7 }} {% raw %} &lt;b&gt; ]]> -->"
    " </style></title>"
)

needs_pdf = pytest.mark.skipif(
    report.pdf_missing() is not None, reason=f"no PDF can be made here: {report.pdf_missing()}"
)

STRONG: Final = {
    ("bank", "nominal"): 400,
    ("bank", "tool_failure"): 2_400,
    ("bank", "adversarial"): 200,
    ("bank", "cascade"): 200,
    ("shop", "nominal"): 100,
    ("shop", "stochastic"): 800,
}
"""The runs of the strong agent by domain and condition."""
TASKS: Final = 10
"""Tasks of a domain: as many as the packaged profiles ask for."""


def runs(domain: str, condition: str, count: int, successes: int, **fields: Any) -> list[Run]:
    """Runs of which so many succeed, the failures spread evenly."""
    listed = []
    for i in range(count):
        run = full(i, condition, domain=domain, task_id=f"{domain}/{i % TASKS}", **fields)
        if (i + 1) * (count - successes) // count > i * (count - successes) // count:
            run = failed(run)
            if condition == "adversarial":
                run["attack_succeeded"] = True
        listed.append(run)
    return listed


def summary(records: Iterable[Run], *, ordered: bool = True) -> Summary:
    """The summary of runs, told apart by their ids here; in their order, or in none."""
    listed = []
    for place, record in enumerate(records):
        run = record | {"run_id": f"r{place}", "sequence": place}
        listed.append(run if ordered else {key: value for key, value in run.items() if key != "sequence"})
    manifest = bundles.MANIFEST | {"protocol": {"origin": "measured", "memory_observable": True}}
    with tempfile.TemporaryDirectory() as folder:
        return bundles.summary(
            bundles.write(Path(folder) / "b", {"a.jsonl": bundles.lines(listed)}, manifest)
        )


@cache
def strong(**changes: int) -> Summary:
    """The summary of an agent that passes every row of every tier, but for the successes of a condition."""
    cells = [
        runs(domain, condition, count, min(count, changes.get(condition, count - count // 50)))
        for (domain, condition), count in STRONG.items()
    ]
    # Every cell is spread over the whole of the evaluation.
    placed = [
        ((i + 0.5) / len(cell), number, run)
        for number, cell in enumerate(cells)
        for i, run in enumerate(cell)
    ]
    return summary(run for *_, run in sorted(placed, key=lambda item: item[:2]))


def facts(
    *,
    sealed: bool = True,
    agent: Mapping[str, Any] | None = None,
    imported: Mapping[str, Any] | None = None,
    period: Mapping[str, Any] | None = PROTOCOL["period"],
    attested: Iterable[Mapping[str, Any]] = (),
    **protocol: Any,
) -> Facts:
    """Facts of a well-documented bundle; keyword arguments replace protocol facts, None leaves one out.

    Tasks are not said to be independent, so that no row has a confidence limit unless a test says so.
    """
    stated = {**PROTOCOL, "tasks_independent": None, "period": None, **protocol}
    return read_facts(
        {
            "agent": {"digest": DIGEST, **(AGENT if agent is None else agent)},
            "protocol": {key: value for key, value in stated.items() if value is not None},
            "digest": DIGEST,
            "sealed": sealed,
            "attested": list(attested),
            **{name: value for name, value in (("period", period), ("imported", imported)) if value},
        }
    )


def judged(of: Summary, name: str = "hb-eval-2026", *, tier: int = 1, **protocol: Any) -> Evaluation:
    """The evaluation of a summary by a packaged profile, under facts as `facts` makes them."""
    return evaluate(of, facts(**protocol), load_profile(name), Question(required_tier=tier))


# Elements without content; a parser sees no end tag for them.
_VOID = {"meta", "br", "col", "wbr", "line", "circle", "rect", "path", "link", "input"}


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


def page(evaluation: Evaluation, passport: IssuedPassport | None = None) -> Page:
    """The report of an evaluation, parsed."""
    return Page(report.html(report.view(evaluation, passport=passport)))


def hostile(owner: str = "o", hazards: int = 200, harm: str = "w" * 200) -> report.ReportView:
    """A report whose context has many hazards with markup, controls, right-to-left marks and long words."""
    evaluation = judged(strong(), tier=2, tasks_independent=True)
    said = {
        "schema": "urn:certkit:context:v1",
        "about": {"bundles": [evaluation.facts.digest], "profile": evaluation.profile.digest, "tier": 2},
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
    return report.view(evaluation, context=read_context(canonical.line(said), where="context.json"))


def begun() -> tuple[bytes, bytes]:
    """The HTML of a hostile report with rows of long prose, and the PDF of its pages before the results."""
    view = hostile(hazards=6, harm="Somebody is hurt, and nobody notices it in time. " * 24)
    markup = drawing.html(view)
    beginning, behind, _ = markup.partition('<h2 id="results"')
    assert behind
    return markup.encode(), drawing.pdf(view, beginning)


def alternatives(file: Path) -> list[str | None]:
    """What a PDF's structure tree says in place of each figure, None where it says nothing."""
    told = canonical.loads(tool("qpdf", "--json", "--json-key=qpdf", file).encode(), max_bytes=1 << 25)
    objects = told["qpdf"][1]
    values = (item["value"] for item in objects.values() if isinstance(item.get("value"), dict))
    return [item.get("/Alt") for item in values if item.get("/S") == "/Figure"]


def passport(evaluation: Evaluation, **changes: Any) -> IssuedPassport:
    """What a passport of an evaluation states, valid for a day; its file is none."""
    issued = IssuedPassport(
        data=b'{"a file": "that is no passport"}\n',
        id=canonical.digest(b"a payload"),
        evaluation=evaluation,
        issuer="Lab of Tests",
        not_before=DAY,
        not_after=DAY + timedelta(days=1),
    )
    return structs.replace(issued, **changes)


READERS: Final = ("pdftotext", "pdffonts", "pdfinfo", "pdfdetach", "qpdf")
"""Programs of poppler and qpdf."""


def tool(name: str, *arguments: object) -> str:
    """What one of `READERS` prints; the test is skipped where it is not installed."""
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
