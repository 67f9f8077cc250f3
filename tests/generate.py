"""Writes what is made from the code: the JSON Schemas, and the tables inside pages of the documentation.

    python -m tests.generate            # exits with 1 and names what differs
    python -m tests.generate --write    # writes it

A page says where a table belongs: everything between ``<!-- generated: NAME -->`` and
``<!-- end of generated -->`` is the output of the function `NAME` in `TABLES`. The pages of commands are made
wholly, and so are the parts of the menu in docs/mkdocs.yml that list the pages of a folder.
"""

from __future__ import annotations

import inspect
import re
import sys
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.findings import FINDINGS
from certkit.assessment.plan import Plan
from certkit.assessment.profile_file import load_profile, packaged_profiles
from certkit.assessment.words import finding_words, threshold_text
from certkit.cli.documents import Error
from certkit.cli.main import tree
from certkit.comparison.compare import Comparison
from certkit.comparison.drift import Drift
from certkit.ground import canonical, toml
from certkit.ground.errors import CODES, Exit
from certkit.imports import FORMATS
from certkit.passport.verify import VerificationDocument
from certkit.probes import records
from certkit.record.record import Condition
from certkit.registry.audit import RegistryAudit
from certkit.registry.reader import RegistryView
from certkit.registry.status import StatusDocument
from certkit.report.argument.build import Argument
from certkit.summary.summary import Summary
from certkit.trial.plan import TrialPlan
from tests.support.schemas import (
    assessment_schema,
    calibration_schema,
    context_schema,
    entry_schema,
    manifest_schema,
    mapping_schema,
    name_of,
    passport_schema,
    profile_schema,
    record_schema,
    schema_of,
    trial_schema,
    trust_schema,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from certkit.assessment.profile import Profile
    from certkit.ground.document import Document

ROOT: Final = Path(__file__).parents[1]
_REGION: Final = re.compile(
    r"(<!-- generated: ([a-z0-9-]+) -->\n).*?(<!-- end of generated -->\n)", re.DOTALL
)
_PAGES: Final = re.compile(r"(( *)# generated: pages of ([\w/]+)\n).*?( *# end of generated\n)", re.DOTALL)
_LIMIT: Final = 2**53 - 1


def line_schema(kind: type[Document]) -> dict[str, Any]:
    """Return the JSON Schema of a type whose documents are lines, which do not repeat their schema."""
    body = schema_of(kind)
    del body["properties"]["schema"]
    return body | {"required": [name for name in body["required"] if name != "schema"]}


SCHEMAS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "assessment.v1": assessment_schema,
    "bundle.v1": manifest_schema,
    "calibration.v1": calibration_schema,
    "context.v1": context_schema,
    "entry.v1": entry_schema,
    "mapping.v1": mapping_schema,
    "passport.v1": passport_schema,
    "profile.v1": profile_schema,
    "record.v1": record_schema,
    "trial.v1": trial_schema,
    "trust.v1": trust_schema,
    **{
        name_of(kind): partial(schema_of, kind)
        for kind in (
            Argument,
            Comparison,
            Drift,
            Error,
            Plan,
            RegistryAudit,
            RegistryView,
            StatusDocument,
            Summary,
            TrialPlan,
            VerificationDocument,
            records.Inventory,
            records.ProbeRun,
        )
    },
    **{
        name_of(kind): partial(line_schema, kind)
        for kind in (records.ProbeTask, records.ProbeAnswer, records.Annotation)
    },
}
"""What people write, and what other programs read. What other commands print with ``--json`` has none."""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    cells = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)


def named(command: Any) -> list[str]:
    """Return the commands of a group in the order of its help; none of a command."""
    return [*command.list_commands(None)] if hasattr(command, "commands") else []


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command of the tree with the words that call it, groups before their commands."""

    def walk(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield words, command
        for name in named(command):
            yield from walk((*words, name), command.get_command(None, name))

    yield from walk(("certkit",), tree())


def _options(command: Any) -> Sequence[tuple[str, ...]]:
    rows = []
    for item in command.params:
        argument = item.param_type_name == "argument"
        names = item.metavar if argument else "`, `".join(item.opts)
        notes = []
        if not argument and item.default not in {None, False} and item.opts[0].startswith("-"):
            notes.append(f"default `{item.default}`")
        if item.required:
            notes.append("required")
        low, high = getattr(item.type, "min", None), getattr(item.type, "max", None)
        if low is not None or high is not None:
            notes.append(f"at least {low}" if high is None else f"{low} to {high}")
        if item.envvar:
            notes.append(f"also `{item.envvar}`")
        rows.append((f"`{names}`", item.help or "", "; ".join(notes)))
    return rows


CLI: Final = ROOT / "docs" / "reference" / "cli"
"""The folder that holds a page for every command and group."""


def cli() -> str:
    """Return the table of commands, each with the link to its page."""
    rows = []
    for words, command in commands():
        if len(words) == 2:
            leaves = ", ".join(f"`{name}`" for name in named(command))
            meaning = (command.help or "").strip().partition("\n")[0]
            rows.append((f"[`{' '.join(words)}`](cli/{words[1]}.md)", meaning, leaves))
    return table(("command", "does", "subcommands"), rows)


def cli_pages() -> dict[Path, str]:
    """Return the page of every command, with the commands of a group on the group's page."""
    pages: dict[Path, str] = {}
    for words, command in commands():
        if len(words) > 1:
            page = CLI / f"{words[1]}.md"
            before = f"{pages[page]}\n" if page in pages else ""
            pages[page] = before + _command(words, command)
    return pages


def _command(words: tuple[str, ...], command: Any) -> str:
    text, _, example = (command.help or "").partition("Example: ")
    parts = [f"{'#' * (len(words) - 1)} `{' '.join(words)}`", re.sub(r"\n{3,}", "\n\n", text.strip())]
    if rows := _options(command):
        parts.append(table(("argument or option", "meaning", ""), rows).rstrip("\n"))
    if example:
        parts.append(f"Example: `{example.strip()}`")
    return "\n\n".join(part for part in parts if part) + "\n"


EXIT_MEANING: Final[dict[Exit, str]] = {
    Exit.OK: "the required tier is met, the check passed",
    Exit.NEGATIVE: "a negative verdict: a measured criterion or a check failed",
    Exit.USAGE: "the command line is wrong",
    Exit.MALFORMED: "the input is malformed or contradicts itself",
    Exit.INSUFFICIENT: "the evidence is insufficient or was never gathered",
    Exit.DRIFT: "behaviour or identity drifted",
    Exit.ENDED: "revoked, expired or superseded",
    Exit.MISMATCH: "the registry or the replay does not match the claim",
    Exit.UNTRUSTED: "the issuer is not trusted or the policy refuses",
    Exit.BUG: "a bug in certkit",
}


def exit_codes() -> str:
    """Return the table of exit codes."""
    return table(("exit code", "meaning"), [(str(int(code)), text) for code, text in EXIT_MEANING.items()])


def codes() -> str:
    """Return the table of error codes."""
    rows = [(f"`{code}`", exits()[code], text) for code, text in CODES.items()]
    return table(("code", "exit code", "meaning"), rows)


@cache
def exits() -> dict[str, str]:
    """Return the exit code of every error code, in words where it depends."""
    text = (ROOT / "tests" / "support" / "exit_codes.toml").read_text(encoding="utf-8")
    patterns = toml.loads(text, code="internal.bug", where="exit_codes.toml")
    return {code: next(told for name, told in patterns.items() if fnmatch(code, name)) for code in CODES}


def _kind(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = definitions[name]
        return _kind(target, definitions) if "enum" in target else f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        values = [value for value in schema.get("enum", [schema.get("const")]) if value is not None]
        return ", ".join(f"`{value:g}`" if isinstance(value, float) else f"`{value}`" for value in values)
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(_kind(option, definitions) for option in options)
    if "prefixItems" in schema:
        return f"[{', '.join(_kind(item, definitions) for item in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'], definitions)}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_kind(inner, definitions)}" if isinstance(inner, dict) else "object"
    return _plain(schema)


def _plain(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any value")
    words = {"string": "text", "boolean": "true or false"}.get(kind, str(kind))
    low, high = schema.get("minimum"), schema.get("maximum")
    if high == _LIMIT:
        high = None
    if low is not None and high is not None:
        return (
            f"{words}, {low:,g} to {high:,g}" if isinstance(high, float) else f"{words}, {low:,} to {high:,}"
        )
    if low is not None:
        return f"{words}, at least {low:,}"
    if schema.get("format") == "date-time":
        return "time with offset"
    if schema.get("pattern", "").startswith("^sha256"):
        return "`sha256:` and 64 hexadecimal digits"
    if "maxLength" in schema:
        return f"{words}, {schema.get('minLength', 0):,} to {schema['maxLength']:,} characters"
    return words


def _fields(body: dict[str, Any], definitions: dict[str, Any]) -> str:
    required = body.get("required", [])
    rows = []
    for name, field in body["properties"].items():
        texts = [field.get("description"), *(option.get("description") for option in field.get("anyOf", ()))]
        meaning = next((text for text in texts if text), "")
        rows.append((f"`{name}`", _kind(field, definitions), "yes" if name in required else "", meaning))
    return table(("field", "holds", "required", "meaning"), rows).replace("``", "`")


def record_fields() -> str:
    """Return the table of record fields."""
    schema = record_schema()
    conditions = ", ".join(f"`{item}`" for item in Condition)
    text = _fields(schema, schema["$defs"])
    return text.replace("| `condition` | text |", f"| `condition` | {conditions} or `x_…` |")


def calibration_fields() -> str:
    """Return the table of a rating's fields."""
    return _fields(calibration_schema(), {})


def bundle_fields() -> str:
    """Return the tables of the manifest: the document itself first, then its parts."""
    schema = manifest_schema()
    return _nested(schema, schema["$defs"])


def passport_fields() -> str:
    """Return the tables of the statement that a passport signs."""
    definitions = dict(passport_schema()["$defs"])
    return _nested(definitions.pop("Statement"), definitions)


def trust_fields() -> str:
    """Return the tables of the trust policy."""
    schema = trust_schema()
    return _nested(schema, schema["$defs"])


def trial_fields() -> str:
    """Return the tables of a trial."""
    schema = trial_schema()
    return _nested(schema, schema["$defs"])


def _nested(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    parts = [_fields(schema, definitions)]
    for name, body in definitions.items():
        about = " ".join((body.get("description") or "").replace("``", "`").split())
        fields = _fields(body, definitions) if "properties" in body else ""  # a list has none
        parts.append(f"\n### {name}\n\n{about}\n\n{fields}".rstrip("\n") + "\n")
    return "".join(parts)


def findings() -> str:
    """Return the table of findings."""
    words = finding_words()
    rows = [(f"`{row.code}`", str(row.severity), words[row.code]["means"]) for row in FINDINGS]
    return table(("code", "severity", "when"), rows)


def metrics() -> str:
    """Return the table of metrics."""
    rows = []
    for spec in CATALOGUE.values():
        low, high = (None if end is None else f"{float(end):g}" for end in (spec.low, spec.high))
        better = "more" if spec.higher else "less"
        span = f"{low} to {high}" if high else f"from {low}"
        rows.append((f"`{spec.id}`", spec.title, str(spec.unit), span, better, spec.source, spec.evidence))
    return table(("id", "name", "unit", "range", "better", "source", "to measure it"), rows)


def profiles() -> str:
    """Return the table of every packaged profile."""
    return "\n".join(_profile(load_profile(name)) for name in packaged_profiles())


def _profile(profile: Profile) -> str:
    tiers = [(tier, profile.tiers[str(tier)]) for tier in profile.tier_numbers]
    rows = []
    for row in profile.criteria:
        cells = [f"`{row.id}`" + " †" * row.provisional + " \\*" * row.optional]
        for tier, _ in tiers:
            threshold = row.threshold(tier)
            unit = CATALOGUE[row.metric].unit
            cells.append("–" if threshold is None else threshold_text(row.operator_at(tier), threshold, unit))
        rows.append((*cells, f"{row.margin:g}" if row.margin else "", row.source or ""))
    names = (f"Tier {tier}: {info.name}" for tier, info in tiers)
    source = f" Source: {'; '.join(profile.sources)}." if profile.sources else ""
    text = f"## `{profile.id}`\n\n{profile.title}.{source}\n\n"
    decides = "averages decide" if profile.reading == "table" else "confidence limits decide"
    core = "; a tier must also stand on [core evidence](findings.md#core-evidence)" if profile.core else ""
    text += f"Digest `{profile.digest}`; {decides}{core}.\n\n"
    text += table(("criterion", *names, "drift margin", "source"), rows)
    if any(row.provisional for row in profile.criteria):
        text += "\n† provisional in the paper: the row decides only with `--strict`.\n"
    if any(row.optional for row in profile.criteria):
        text += "\n\\* left out where no run is there for it.\n"
    if any(info.sil for _, info in tiers):
        guides = [(str(tier), info.sil or "", info.asil or "") for tier, info in tiers]
        text += "\nThe source's guidance, which is not certification:\n\n"
        text += table(("tier", "SIL", "ASIL"), guides)
    return text


def importer(name: str) -> str:
    """Return what the module that reads a format says of it, with the table of its fields."""
    text = inspect.getdoc(sys.modules[FORMATS[name].importer.__module__]) or ""
    return text.replace("``", "`") + "\n"


TABLES: Final[dict[str, Callable[[], str]]] = {
    "bundle-fields": bundle_fields,
    "calibration-fields": calibration_fields,
    "cli": cli,
    "codes": codes,
    "findings": findings,
    "exit-codes": exit_codes,
    "metrics": metrics,
    "passport-fields": passport_fields,
    "profiles": profiles,
    "record-fields": record_fields,
    "trial-fields": trial_fields,
    "trust-fields": trust_fields,
    **{f"importer-{name}": partial(importer, name) for name in FORMATS if name != "records"},
}


@cache
def _made(name: str) -> str:
    return "\n" + TABLES[name]() + "\n"


def _menu(match: re.Match[str]) -> str:
    """Return a part of the site's menu: the pages of a folder, by name."""
    folder = ROOT / "docs" / match[3]
    pages = {*folder.glob("*.md"), *(page for page in cli_pages() if page.parent == folder)}
    names = sorted(page.name for page in pages if page.name != "index.md")
    return match[1] + "".join(f"{match[2]}- {match[3]}/{name}\n" for name in names) + match[4]


def outputs() -> dict[Path, str]:
    """Return every file that is made from the code, wholly or in part, with its right content."""
    found = {
        ROOT / "schemas" / f"{name}.schema.json": canonical.pretty(make()) for name, make in SCHEMAS.items()
    }
    found |= cli_pages()
    site = ROOT / "docs" / "mkdocs.yml"
    found[site] = _PAGES.sub(_menu, site.read_text(encoding="utf-8"))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        right = _REGION.sub(lambda match: match[1] + _made(match[2]) + match[3], text)
        if _REGION.search(text):
            found[page] = right
    return found


def differing() -> list[Path]:
    """Return the files that are not what the code makes."""
    return [
        path
        for path, right in outputs().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != right
    ]


def main(arguments: list[str]) -> int:
    """Write or compare; return the exit code."""
    wrong = differing()
    right = outputs()
    for path in wrong:
        if "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(right[path], encoding="utf-8")
        sys.stdout.write(f"{'written' if '--write' in arguments else 'differs'}: {path.relative_to(ROOT)}\n")
    return 1 if wrong and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
