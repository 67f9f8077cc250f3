"""The documentation tells the truth: what it shows is run, what it names exists, what exists is in it."""

from __future__ import annotations

import re
import tomllib  # noqa: TID251 - a second reading, without our own door
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit import assess
from certkit.assessment.findings import FINDINGS
from certkit.ground import canonical
from certkit.ground.errors import CODES, Exit
from certkit.imports import FORMATS
from certkit.record.record import FIELDS
from tests import console, generate, pictures

if TYPE_CHECKING:
    from tests.support.demonstration import Demonstration

ROOT: Final = console.ROOT
PAGES: Final = console.pages()
REFERENCE: Final = ROOT / "docs" / "reference"
LEAVES: Final = [
    (words, command) for words, command in generate.commands() if not hasattr(command, "commands")
]

# What is run, and what holds data; every other language needs a reason on the fence.
RUN: Final = {"console", "python"}
DATA: Final = {"text", "json", "toml"}


def _name(page: object) -> str:
    return str(page.relative_to(ROOT)) if isinstance(page, Path) else " ".join(page)  # type: ignore[arg-type]


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", _text(page), flags=re.MULTILINE | re.DOTALL)


FIRST: Final = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
"""Pages that a newcomer follows in a clone."""
RUNNABLE: Final = [page for page in PAGES if any(b.language in RUN for b in console.blocks(_text(page)))]


@pytest.mark.parametrize("page", FIRST, ids=_name)
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout of git")
def test_what_the_first_pages_show_happens_in_a_clone(page: Path, tmp_path: Path) -> None:
    console.clone(tmp_path / "clone")
    _happens(page, tmp_path / "clone")


@pytest.mark.parametrize("page", [page for page in RUNNABLE if page not in FIRST], ids=_name)
def test_what_a_page_shows_happens(page: Path, tmp_path: Path) -> None:
    console.lay_out(tmp_path)
    _happens(page, tmp_path)


def _happens(page: Path, folder: Path) -> None:
    complaints = [
        f"$ {one.step.command}\n{one.complaint}"
        for _, ran in console.run_page(page, folder)
        for one in ran
        if one.complaint
    ]
    assert not complaints, "\n\n".join(complaints)
    missing = {console.missing(block) for block in console.blocks(_text(page))} - {None}
    if missing:
        pytest.skip(f"run but for the blocks that need {', '.join(map(str, missing))}, which is not here")


def test_no_block_hides_a_command() -> None:
    for page in PAGES:
        blocks = console.blocks(_text(page))
        assert _text(page).count("\n```") == 2 * len(blocks), f"{page}: an open fence"
        for block in blocks:
            if block.language in RUN:
                continue
            if block.language in DATA:
                assert not re.search(r"^(\$ |certkit |make )", block.text, re.MULTILINE), (page, block.text)
            else:
                assert "not run:" in block.info, f"{page}: a {block.language} block without a reason"
            if block.language == "toml":
                tomllib.loads(block.text)
            if block.language == "json":
                canonical.loads(block.text.encode())


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
            if re.match(r"https?://", target):
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), (page, target)
            assert linked.is_relative_to(ROOT), (page, target)
            if anchor:
                assert anchor in _anchors(linked), (page, target)


def _anchors(page: Path) -> set[str]:
    """Return the anchors that a reader of Markdown makes of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", _prose(page))
        waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert set(PAGES) - reached == set()


def test_the_menu_of_the_site_has_every_page_once() -> None:
    menu = _text(ROOT / "docs" / "mkdocs.yml").partition("\nnav:\n")[2]
    entries = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", menu, re.MULTILINE)
    assert sorted(entries) == sorted(
        page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page != ROOT / "README.md"
    )


def test_the_menu_keeps_formulas_decisions_and_benchmarks_below_its_first_level() -> None:
    menu = _text(ROOT / "docs" / "mkdocs.yml").partition("\nnav:\n")[2]
    doors = re.findall(r"^  - ([^:\n]+):", menu, re.MULTILINE)
    assert doors == ["Home", "I have logs", "I answer for the risk", "I was handed a passport", "Reference"]


def test_pictures_of_screens_show_what_the_program_shows(demonstration: Demonstration) -> None:
    assert pictures.differing(demonstration.folder) == [], "run 'make pictures'"


def test_continuous_integration_runs_the_readmes_test_command_and_builds_the_site() -> None:
    assert re.search(r"^ +run: \.ci/run$", _text(ROOT / ".github" / "workflows" / "ci.yml"), re.MULTILINE)
    steps = re.findall(r"\bmake ([a-z -]+)", _text(ROOT / ".ci" / "run"))
    assert "$ make test " in _text(ROOT / "README.md")
    assert {"test", "docs", "wheel-check", "kills"} <= {name for step in steps for name in step.split()}


def test_codes_named_in_prose_exist() -> None:
    families = {code.partition(".")[0] for code in CODES}
    files = {"bundle.json", "records.py", "profile.toml", "record.md", "bundle.md", "import.toml"}
    files |= {"passport.json", "registry.db", "trust.json", "context.json", "assessment.json"}
    for page in PAGES:
        for code in re.findall(r"`([a-z]+\.[a-z-]+)`", _prose(page)):
            if code.partition(".")[0] in families and code not in files:
                assert code in CODES, f"{_name(page)}: {code}"


def test_every_error_code_and_exit_code_is_documented() -> None:
    text = _text(REFERENCE / "errors.md")
    assert [code for code in CODES if f"| `{code}` |" not in text] == []
    assert [code for code in Exit if f"| {int(code)} |" not in text] == []


def test_every_contradiction_is_told_in_prose() -> None:
    text = _prose(REFERENCE / "record.md")
    listed = list(CODES)
    first = listed.index("record.nominal-with-fault")
    contradictions = [code for code in listed[first:] if code.startswith("record.")]
    assert [code for code in contradictions if f"`{code}`" not in text] == []


def test_the_page_of_findings_is_the_list_of_findings() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (serious|warning|info) \| \S.+ \|$",
        _text(REFERENCE / "findings.md"),
        re.MULTILINE,
    )
    assert rows == [(row.code, row.severity.value) for row in FINDINGS]


def test_every_format_has_a_section() -> None:
    assert {f"## `{name}`" for name in FORMATS} <= set(_text(REFERENCE / "importers.md").splitlines())


def test_every_record_field_stands_on_its_page() -> None:
    text = _text(REFERENCE / "record.md")
    assert [name for name in FIELDS if f"| `{name}` |" not in text] == []


def test_every_place_that_contributing_names_exists() -> None:
    page = _text(ROOT / "docs" / "contributing.md").partition("## Where to look")[2]
    tables = "\n".join(re.findall(r"^\|.+\|$", page, re.MULTILINE))
    paths = set(re.findall(r"`([\w.*-]+/[\w./*-]+)`", tables))
    roots = (ROOT, ROOT / "certkit")
    assert [path for path in paths if not any([*root.glob(path)] for root in roots)] == []
    places = re.findall(r"((?:`\w+`(?: and |, )?)+) in `([\w./]+\.py)`", tables)
    assert len(places) > 20
    for names, path in places:
        code = _text(ROOT / "certkit" / path)
        for name in re.findall(r"\w+", names.replace(" and ", " ")):
            assert re.search(rf"^ *(def|class) {name}\b|^{name}\b.* = ", code, re.MULTILINE), (name, path)


def test_every_key_of_an_assessment_is_documented(tmp_path: Path) -> None:
    from certkit.simulation.simulate import simulate  # noqa: PLC0415 - for this test only

    simulate(tmp_path / "bundle", seed=3, runs=300, tier_target=0)
    text = _text(REFERENCE / "assessment.md")
    document = assess(tmp_path / "bundle").to_dict()
    metrics = document.pop("metrics")
    del document["judge"]  # its keys stand on the page of calibration files
    for finding in document["findings"]:
        finding["counts"] = {}  # the places of its sentence
    keys = {"judge", "fragility", *document.pop("fragility")}
    keys |= _keys({**document, "tiers": list(document["tiers"].values())})
    for metric in metrics.values():
        keys |= set(metric)
    assert {key for key in keys if f"`{key}`" not in text} == set()


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    return set()


@pytest.mark.parametrize(
    ("words", "command"), LEAVES, ids=lambda value: _name(value) if isinstance(value, tuple) else ""
)
def test_every_command_has_help_with_an_example(words: tuple[str, ...], command: Any) -> None:
    called = " ".join(words)
    match = re.search(rf"^Example: ({re.escape(called)}\b.*)$", command.help, re.MULTILINE)
    assert match, f"{called}: no example"
    known = {name for item in command.params for name in item.opts}
    used = [word for word in match[1].split() if word.startswith("-") and word != "--"]
    assert set(used) <= known
    assert [item.name for item in command.params if not item.help] == []


def test_every_command_is_run_by_some_page() -> None:
    shown = "\n".join(
        step.command
        for page in PAGES
        for block in console.blocks(_text(page))
        if block.language == "console"
        for step in console.steps(block)
    )
    called = [" ".join(words) for words, _ in LEAVES]
    assert [command for command in called if not re.search(rf"{re.escape(command)}(\s|$)", shown)] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_in_sentences_exist_with_their_options(page: Path) -> None:
    every = {" ".join(words): command for words, command in generate.commands()}
    for text in re.findall(r"`(certkit [a-z][^`]*)`", _prose(page)):
        words = re.split(r"[^a-z -]", text)[0].split()
        called = next(
            (name for at in (3, 2) if (name := " ".join(words[:at])) in every and len(words) >= at), None
        )
        assert called, text
        known = {name for item in every[called].params for name in (*item.opts, *item.secondary_opts)}
        used = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", text))
        assert used <= known | {"--help"}, text


def test_an_elision_stands_for_lines_and_hides_no_difference() -> None:
    printed = ("a", "b", "c", "d")
    shown: tuple[str, ...]
    for shown in (printed, ("a", "…"), ("…", "d"), ("a", "…", "c", "d"), ("…", "b", "…"), ("…",)):
        assert console.difference(shown, printed) is None
    for shown in (
        (),
        ("a",),
        ("b", "…"),
        ("…", "c"),
        ("a", "…", "x", "…"),
        ("…", "c", "…", "b", "…"),
        ("a", "…", "b", "d"),
    ):
        assert console.difference(shown, printed) is not None
