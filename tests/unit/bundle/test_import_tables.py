"""Tables without guesses: the columns that are known, what needs a mapping, and what is refused or warned of.

The inputs of the shared evidence are cut from public result files; they are skipped where they are absent.
"""

from __future__ import annotations

import json  # noqa: TID251 - logs of other programs
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit import imports
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, columns_of
from certkit.imports.mapping import parse_mapping
from tests.support.importing import SHARED, TELLS_PEAK, counts, imported, peak_of, written
from tests.support.running import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_HOUR: Final = SHARED / "first-hour"
NEEDS_EVIDENCE: Final = pytest.mark.skipif(
    not FIRST_HOUR.is_dir(), reason="the shared evidence is not beside the checkout"
)


def cases(form: str | None = None) -> dict[str, Any]:
    """Return the cases of the shared evidence, of one format."""
    if not FIRST_HOUR.is_dir():
        return {}
    document: dict[str, Any] = json.loads((FIRST_HOUR / "expected.json").read_text())["cases"]
    return {name: case for name, case in document.items() if form in {None, case.get("format")}}


TABLES: Final = [name for name, case in cases().items() if case.get("format", "table") == "table"]


def toml(mapping: dict[str, Any]) -> str:
    """Return a mapping of the expected answers as TOML."""
    lines = []
    for table, members in mapping.items():
        for name, value in members.items():
            if isinstance(value, dict):
                lines.append(f"[{table}.{name}]")
                lines += [f"{key} = {json.dumps(item)}" for key, item in value.items()]
            else:
                lines += [f"[{table}]"] * (f"[{table}]" not in lines) + [f"{name} = {json.dumps(value)}"]
    return "\n".join(lines) + "\n"


def given_by_user(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a user gives beside a mapping: what neither it nor the log says."""
    mapping = case.get("mapping", {})
    stated = {*mapping.get("columns", {}), *mapping.get("when", {}), *mapping.get("constants", {})}
    options: dict[str, Any] = {"domain": "d", "condition": "nominal"}
    return {name: value for name, value in options.items() if name not in stated}


@NEEDS_EVIDENCE
@pytest.mark.parametrize("name", [name for name in TABLES if "mapping" in cases()[name]])
def test_a_public_table_with_its_mapping_gives_the_expected_counts(tmp_path: Path, name: str) -> None:
    case, file = cases()[name], tmp_path / "map.toml"
    file.write_text(toml(case["mapping"]))
    given = given_by_user(case) | ({"agent": "a"} if name.startswith("firewall") else {})
    account, records = imported(None, FIRST_HOUR / name, tmp_path / "out", mapping=file, **given)
    for condition, key in (("nominal", "success"), ("adversarial", "adversarial")):
        runs = [record["outcome"] for record in records if record["condition"] == condition]
        assert [runs.count("success"), len(runs)] == case.get(key, [0, 0])
    assert len({record["task_id"] for record in records}) == case.get(
        "tasks", len({r["task_id"] for r in records})
    )
    assert not counts(account, "inverted")
    if name.startswith("firewall"):
        details = {note.what: note.detail or "" for note in account.imported.notes}
        assert "'dev'" in details["column 'split'"]


@NEEDS_EVIDENCE
def test_a_public_table_of_several_agents_needs_only_options(tmp_path: Path) -> None:
    case = cases()["latitude.jsonl"]
    options = {
        flag[2:].replace("-", "_"): value for flag, value in pairwise(case["options"]) if flag[:2] == "--"
    }
    accounts = imports.run(FIRST_HOUR / "latitude.jsonl", tmp_path / "out", ImportOptions(**options), SILENT)
    won = {
        account.agent.name: [
            sum(run["outcome"] == "success" for run in written(account)),
            len(written(account)),
        ]
        for account in accounts
    }
    assert won == case["by_agent"]


@NEEDS_EVIDENCE
@pytest.mark.parametrize("name", [name for name in TABLES if "refused" in cases()[name]])
def test_a_public_file_that_holds_no_runs_is_refused_as_what_it_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(CertkitError, match=re.escape(cases()[name]["refused"])):
        imported(None, FIRST_HOUR / name, tmp_path / "out", agent="a")


@NEEDS_EVIDENCE
def test_case_ids_that_say_injected_are_warned_of_with_the_mapping_that_splits_them(tmp_path: Path) -> None:
    path, file = FIRST_HOUR / "injection-study-12.jsonl", tmp_path / "map.toml"
    given: dict[str, Any] = {"domain": "d", "success": "label == 'not_misled'"}
    account, _ = imported(None, path, tmp_path / "out", condition="nominal", **given)
    [note] = [note for note in account.imported.notes if "whose names say injected" in note.what]
    detail = note.detail or ""
    assert (note.kind, note.count) == ("odd", 6)
    assert "injection-study-12.jsonl:2" in detail
    cased = re.findall(r"`([^`]+ = \"[^`]+)`", detail)
    file.write_text("\n".join(["[when.condition]", *cased]))
    _, records = imported(None, path, tmp_path / "split", mapping=file, **given)
    assert Counter(record["condition"] for record in records) == {"adversarial": 6, "nominal": 6}


def sentences(path: Path, folder: Path) -> Iterator[str]:
    """Yield what an import of a log prints, plain and with the options that it asks for."""
    tries: list[dict[str, Any]] = [{}, {"agent": "a"}, {"agent": "a", "domain": "d", "condition": "nominal"}]
    for number, given in enumerate(tries):
        try:
            accounts = imports.run(path, folder / str(number), ImportOptions(**given), SILENT)
        except CertkitError as error:
            yield f"{error}\n{error.hint}"
        else:
            yield from (note.detail or "" for account in accounts for note in account.imported.notes)


@NEEDS_EVIDENCE
@pytest.mark.parametrize("name", cases())
def test_no_printed_command_compares_a_column_with_a_value_that_the_log_does_not_hold(
    tmp_path: Path, name: str
) -> None:
    path = FIRST_HOUR / name
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    text = "".join(file.read_bytes().decode(errors="replace") for file in files)
    for sentence in sentences(path, tmp_path):
        tests = re.findall(r"--success (\S+|'[^']+'|\"[^\"]+\")", sentence)
        tests += re.findall(r'= "([^"]+ (?:==|in|>=) [^"]+)"', sentence)
        for value in re.findall(r"""(?<!>)(?:==|in) \[?("[^"]*"|'[^']*'|[\w.-]+)""", " ".join(tests)):
            assert value.strip("\"'") in text or value in {"VALUE", "EXPRESSION", "null"}, sentence
        assert not re.search(r">= ['\"]", " ".join(tests))


GOOD: Final[dict[str, Any]] = {
    "task": "t",
    "suite": "s",
    "condition": "nominal",
    "success": True,
    "agent": "a",
}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows as JSON lines."""
    path.write_bytes(b"".join(map(canonical.line, rows)))
    return path


@pytest.mark.parametrize("column", ["success", "passed", "correct", "resolved", "solved"])
@pytest.mark.parametrize(("good", "bad"), [(True, False), (1, 0), ("true", "false"), ("1", "0")])
def test_an_outcome_is_read_from_truth_values_of_a_few_exact_columns(
    tmp_path: Path, column: str, good: object, bad: object
) -> None:
    rows = [
        {name: value for name, value in GOOD.items() if name != "success"} | {column: it}
        for it in (good, bad)
    ]
    account, records = imported(None, lines(tmp_path / "runs.jsonl", *rows), tmp_path / "out")
    assert [record["outcome"] for record in records] == ["success", "failure"]
    assert open_rule(account) == column


def open_rule(account: imports.ImportAccount) -> object:
    """Return the rule of success in the manifest of a bundle."""
    return canonical.loads((account.out / "bundle.json").read_bytes())["protocol"]["success_rule"]


@pytest.mark.parametrize("value", ["pass", "yes", 0.7, 2, "failed"])
def test_any_other_outcome_needs_the_users_word(tmp_path: Path, value: object) -> None:
    path = lines(tmp_path / "runs.jsonl", GOOD | {"success": value})
    with pytest.raises(
        ImportFaultsError, match=r"/success: expected success, .* true, false, 1 or 0 for outcome"
    ) as caught:
        imported(None, path, tmp_path / "out")
    assert "--success EXPRESSION" in str(caught.value)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"passed": False}, "outcome"),
        ({"outcome": "failure"}, "outcome"),
        ({"category": "other"}, "domain"),
        ({"case_id": "u"}, "task_id"),
    ],
)
def test_columns_that_contradict_each_other_are_refused_until_a_mapping_says_which_counts(
    tmp_path: Path, more: dict[str, Any], field: str
) -> None:
    path, file = lines(tmp_path / "runs.jsonl", GOOD | more), tmp_path / "map.toml"
    with pytest.raises(ImportFaultsError, match=f"expected columns that agree on the {field}") as caught:
        imported(None, path, tmp_path / "none")
    [line] = re.findall(rf"`({field} = \"[^`]+)`", str(caught.value))[:1]
    file.write_text(f"[columns]\n{line}\n[values.outcome]\ntrue = 'success'\n")
    assert len(imported(None, path, tmp_path / "out", mapping=file)[1]) == 1


def test_an_id_names_tasks_only_where_it_names_each_once_or_a_trial_tells_them_apart(tmp_path: Path) -> None:
    row = {name: value for name, value in GOOD.items() if name != "task"}
    path, file = tmp_path / "runs.jsonl", tmp_path / "map.toml"
    trials = [row | {"id": name, "trial": trial} for name in "ab" for trial in (0, 1)]
    _, records = imported(None, lines(path, *trials), tmp_path / "out")
    assert [record["task_id"] for record in records] == ["a", "a", "b", "b"]
    lines(path, *(row | {"id": name} for name in "aba"))
    with pytest.raises(ImportFaultsError, match=r"runs.jsonl:3 /id: expected a value only once") as caught:
        imported(None, path, tmp_path / "none")
    [line] = re.findall(r"`(task_id = [^`]+)`", str(caught.value))
    file.write_text(f"[columns]\n{line}\n")
    assert len(imported(None, path, tmp_path / "mapped", mapping=file)[1]) == 3
    lines(path, row | {"id": "r", "task": "t"})
    assert imported(None, path, tmp_path / "task")[1][0]["task_id"] == "t"


@pytest.mark.parametrize(
    ("row", "count"),
    [
        ({"trials": 5, "pass_rate": 0.8}, "trials"),
        ({"n_completed": "4/4", "avg_reward": 0.5}, "n_completed"),
        ({"episodes": 10.0, "success_rate": 0.1}, "episodes"),
    ],
)
def test_a_row_that_sums_up_several_runs_is_refused_unless_a_mapping_takes_the_count(
    tmp_path: Path, row: dict[str, Any], count: str
) -> None:
    path, file = lines(tmp_path / "runs.jsonl", GOOD | row), tmp_path / "map.toml"
    with pytest.raises(CertkitError, match=rf"each row is a summary of several runs \({count}\)") as caught:
        imported(None, path, tmp_path / "none")
    [line] = re.findall("`(x_[^`]+)`", str(caught.value.hint))
    file.write_text(f"[columns]\n{line}\n")
    assert len(imported(None, path, tmp_path / "out", mapping=file)[1]) == 1
    lines(path, GOOD | {count: 1, "pass_rate": 1.0}, GOOD | {"trials": 5})
    assert len(imported(None, path, tmp_path / "runs")[1]) == 2


NESTED: Final = {
    "about": "x",
    "results": {"stats": {"n": 3}, "results": [{"task": name, "success": True} for name in "abc"]},
    "tests": [{"n": number} for number in range(12)],
    "runs": {"r1": {"task": "a", "success": True}, "r2": {"task": "b", "success": False}},
    "deep": {"er": {"rows": [{"task": "d", "success": 0}]}},
}
USER: Final = {"agent": "a", "domain": "d", "condition": "nominal"}


def test_an_object_that_is_no_row_is_refused_with_the_lists_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    for text in (json.dumps(NESTED), json.dumps(NESTED, indent=1)):
        path.write_text(text)
        with pytest.raises(CertkitError) as caught:
            imported(None, path, tmp_path / "out", **USER)
        assert str(caught.value).endswith(
            "this file is one object, not one row per run. Lists in it: `results.results` (3), `tests` (12),"
            " `runs.*` (2), `deep.er.rows` (1). Say which in `[read] rows`."
        )
        with pytest.raises(CertkitError, match="Lists in it"):
            columns_of(path, ImportOptions())
    path.write_text(f"[{json.dumps(GOOD | {'calls': [{'name': 'f'}]})}]")
    assert len(imported(None, path, tmp_path / "row")[1]) == 1


@pytest.mark.parametrize(
    ("rows", "tasks"),
    [("results.results", ["a", "b", "c"]), ("runs.*", ["a", "b"]), ("deep.er.rows", ["d"])],
)
def test_a_mapping_names_the_list_that_holds_the_runs(tmp_path: Path, rows: str, tasks: list[str]) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    path.write_text(json.dumps(NESTED, indent=1))
    file.write_text(f'[read]\nrows = "{rows}"\n')
    _, records = imported(None, path, tmp_path / "out", mapping=file, **USER)
    assert [record["task_id"] for record in records] == tasks
    contents = columns_of(path, ImportOptions(mapping=file))
    names = [column.name for column in contents.columns if column.name != "parent.key"]
    assert names == ["task", "success"]


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ('[read]\nrows = "results.result"\n', "names no list of objects; did you mean 'results.results'?"),
        ('[read]\nrows = "about"\n', "Lists in it: `results.results` (3)"),
        ('[read]\nrow = "results"\n', "/read/row: not known; did you mean 'rows'?"),
        (
            '[read]\nrows = "tests"\nwhere = "n > 99"\n[columns]\ntask_id = "n"\n',
            "read.where: 'n > 99' holds for no row",
        ),
        (
            '[read]\nrows = "runs.*"\n[columns]\ntask_id = ["tasks", "success"]\n',
            "columns.task_id names 'tasks': no row has it; did you mean 'task'?",
        ),
        ('[read]\nrows = "runs.*"\nwhere = "kind == 1"\n', "read.where names 'kind': no row has it"),
        ('[read]\nrows = ""\n', "/read/rows"),
        ("[read]\nrows = 'runs.*'\nwhere = 'task =='\n", "read.where: 'task ==' is no expression"),
        ('[columns]\noutcome = ["task", "success"]\n', "several columns make a text, and 'outcome' is none"),
        ('[columns]\ntask_id = ["task"]\n', "/columns/task_id"),
        (
            '[columns]\ntask_id = ""\noutcome = ""\n',
            "/columns/task_id: empty; write the columns that hold task_id, outcome",
        ),
    ],
)
def test_a_wrong_mapping_names_the_key_and_what_there_is(tmp_path: Path, mapping: str, said: str) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    path.write_text(json.dumps(NESTED))
    file.write_text(mapping)
    with pytest.raises(CertkitError) as caught:
        imported(None, path, tmp_path / "out", mapping=file, **USER)
    assert caught.value.code == "import.mapping"
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_mapping_for_another_file_is_told_with_the_columns_there_are(tmp_path: Path) -> None:
    path, file = lines(tmp_path / "runs.jsonl", GOOD), tmp_path / "map.toml"
    file.write_text('[columns]\ntask_id = "Aufgabe"\n')
    with pytest.raises(CertkitError, match=r"columns\.task_id names 'Aufgabe': no row has it") as caught:
        imported(None, path, tmp_path / "out", mapping=file)
    assert caught.value.hint == "the columns are task, suite, condition, success, agent"
    file.write_text('[read]\nrows = "runs"\n')
    (tmp_path / "runs.csv").write_text("task,success\nt,1\n")
    with pytest.raises(
        CertkitError, match=r"read.rows: names a list in a JSON object, and this file is none"
    ):
        imported(None, tmp_path / "runs.csv", tmp_path / "out", mapping=file)


def test_rows_that_where_leaves_out_are_counted(tmp_path: Path) -> None:
    rows = [GOOD | {"kind": "run", "status": 2}, {"kind": "digest"}, GOOD | {"kind": "run", "status": 1}]
    path, file = lines(tmp_path / "runs.jsonl", *rows), tmp_path / "map.toml"
    file.write_text("[read]\nwhere = \"kind == 'run' and status == 2\"\n")
    account, records = imported(None, path, tmp_path / "out", mapping=file)
    assert len(records) == 1
    assert counts(account, "refused") == {"rows that `where` of the mapping leaves out": 2}


def test_columns_that_make_one_text_are_joined_so_that_no_two_pairs_are_equal(tmp_path: Path) -> None:
    pairs = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("x", 7)]
    path = lines(tmp_path / "runs.jsonl", *(GOOD | {"a": first, "b": second} for first, second in pairs))
    (tmp_path / "map.toml").write_text('[columns]\ntask_id = ["a", "b"]\n')
    account, records = imported(None, path, tmp_path / "out", mapping=tmp_path / "map.toml")
    assert [record["task_id"] for record in records] == ["a%2Fb/c", "a/b%2Fc", "a%252Fb/c", "x/7"]
    assert {note.what: note.detail for note in account.imported.notes}["task_id"] == "from 'a, b'"
    lines(path, GOOD | {"a": "x", "b": None})
    with pytest.raises(ImportFaultsError, match="expected a value for task_id, found nothing"):
        imported(None, path, tmp_path / "none", mapping=tmp_path / "map.toml")


def test_columns_lists_what_there_is_and_writes_a_mapping_that_waits_for_the_user(tmp_path: Path) -> None:
    rows = [
        {"case_id": f"c{n % 2}", "label": "good", "meta": {"kind": None, "n": n}, "tags": ["x"]}
        for n in range(3)
    ]
    path, file = lines(tmp_path / "runs.jsonl", *rows), tmp_path / "map.toml"
    contents = columns_of(path, ImportOptions())
    seen = {column.name: (column.rows, column.blank, column.values) for column in contents.columns}
    assert seen == {
        "case_id": (3, 0, {"c0": 2, "c1": 1}),
        "label": (3, 0, {"good": 3}),
        "meta.kind": (0, 3, {}),
        "meta.n": (3, 0, {"0": 1, "1": 1, "2": 1}),
        "tags": (3, 0, {'["x"]': 3}),
    }
    text = contents.mapping
    assert text.startswith("#:schema urn:certkit:mapping:v1\n")
    assert '\ntask_id = "case_id"\n' in text
    for field in ("domain", "condition", "outcome"):
        assert len(re.findall(rf'^{field} = ""  # needed: the column that ', text, re.MULTILINE)) == 1
    file.write_text(text)
    with pytest.raises(CertkitError, match="empty; write the columns that hold domain, condition, outcome"):
        imported(None, path, tmp_path / "out", mapping=file, agent="a")
    text = re.sub(r'^(domain|condition) = ""', r'\1 = "label"', text, flags=re.MULTILINE)
    parse_mapping(text.replace('outcome = ""', 'outcome = "label"'), "map.toml")


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("runs.csv", "task,model,domain,success\na,m,d,True\nb,m,d,False\n"),
        ("runs.csv", "task,model,domain,success\na,m,d,1\nb,m,d,0.0\n"),
        (
            "runs.jsonl",
            "".join(
                f'{{"task":"{name}","model":"m","domain":"d","success":{word}}}\n'
                for name, word in (("a", "true"), ("b", "false"))
            ),
        ),
    ],
)
def test_a_written_mapping_reads_a_table_as_it_is_read_without_one(
    tmp_path: Path, name: str, rows: str
) -> None:
    path, file = tmp_path / name, tmp_path / "map.toml"
    path.write_text(rows)
    given: dict[str, Any] = {"condition": "nominal"}
    file.write_text(columns_of(path, ImportOptions(**given)).mapping)
    assert 'outcome = "success"' in file.read_text()
    _, plain = imported(None, path, tmp_path / "plain", **given)
    _, mapped = imported(None, path, tmp_path / "mapped", mapping=file, **given)
    assert [record["outcome"] for record in plain] == ["success", "failure"]
    assert mapped == plain


def test_a_table_of_values_alone_says_what_truth_values_mean(tmp_path: Path) -> None:
    path, file = lines(tmp_path / "runs.jsonl", GOOD, GOOD | {"success": False}), tmp_path / "map.toml"
    file.write_text("[columns]\noutcome = 'success'\n[values.outcome]\nfalse = 'success'\n")
    with pytest.raises(ImportFaultsError, match=r"runs.jsonl:1 /success: .* found True"):
        imported(None, path, tmp_path / "out", mapping=file)


GIVEN: Final = """[read]
rows = "runs"
where = "kind == 'run'"
blank = ["-"]
[columns]
task_id = ["task", "kind"]
[when.outcome]
success = "success == true"
failure = "otherwise"
[constants]
condition = "nominal"
[agent]
name = "a"
components = [{ role = "model", name = "m" }]
"""


def test_a_written_mapping_keeps_what_the_given_one_said(tmp_path: Path) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    path.write_bytes(canonical.line({"runs": [GOOD | {"kind": "run"}, {"kind": "sum"}]}))
    file.write_text(GIVEN)
    given = ImportOptions(mapping=file, timezone="Europe/Berlin")
    text = columns_of(path, given).mapping
    assert "# outcome: by [when]" in text
    (tmp_path / "written.toml").write_text(text)
    before, after = (parse_mapping(it.read_text(), it.name) for it in (file, tmp_path / "written.toml"))
    assert after.read == before.read.model_copy(update={"timezone": "Europe/Berlin"})
    assert (after.when, after.constants, after.agent) == (before.when, before.constants, before.agent)
    assert after.columns == before.columns | {"domain": "suite"}
    account, records = imported(None, path, tmp_path / "out", mapping=tmp_path / "written.toml")
    assert (account.agent.name, [record["task_id"] for record in records]) == ("a", ["t/run"])


def test_a_written_mapping_states_the_encoding_and_the_only_list_of_an_object(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_bytes("task,success\nBüro,1\n".encode("cp1252"))
    text = columns_of(path, ImportOptions(encoding="cp1252", domain="d", condition="nominal")).mapping
    file.write_text(text)
    assert len(imported(None, path, tmp_path / "csv", mapping=file, **USER)[1]) == 1
    path = tmp_path / "log.json"
    path.write_bytes(canonical.line({"about": "x", "inside": {"runs": [GOOD, GOOD | {"success": False}]}}))
    with pytest.raises(CertkitError) as caught:
        imported(None, path, tmp_path / "out")
    assert "log.json --columns -o MAP.toml" in str(caught.value.hint)
    file.write_text(columns_of(path, ImportOptions()).mapping)
    assert '[read]\nrows = "inside.runs"\n' in file.read_text()
    assert len(imported(None, path, tmp_path / "json", mapping=file)[1]) == 2


TESTS: Final = {
    "list": {"tests": [{"name": "a", "results": [{"success": True}, {"success": False}], "x": [1]}]},
    "object": {"tests": {"a": {"results": [{"success": True}, {"success": False}]}, "b": {}}},
}


def test_lists_under_names_are_read_with_their_names(tmp_path: Path) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    path.write_text(json.dumps({"tests": {"a": [{"success": True}, {"success": False}], "b": []}}))
    file.write_text('[read]\nrows = "tests.*"\n[columns]\ntask_id = "parent.key"\n')
    _, records = imported(None, path, tmp_path / "out", mapping=file, **USER)
    assert [record["task_id"] for record in records] == ["a", "a"]


@pytest.mark.parametrize(("form", "named"), [("list", "parent.name"), ("object", "parent.key")])
def test_a_list_in_the_items_of_a_list_is_named_and_read_with_what_stands_around_it(
    tmp_path: Path, form: str, named: str
) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    path.write_text(json.dumps(TESTS[form]))
    with pytest.raises(CertkitError, match=r"`tests.\*.results` \(2\)"):
        imported(None, path, tmp_path / "none", **USER)
    file.write_text(f'[read]\nrows = "tests.*.results"\n[columns]\ntask_id = "{named}"\n')
    _, records = imported(None, path, tmp_path / "out", mapping=file, **USER)
    assert [(record["task_id"], record["outcome"]) for record in records] == [
        ("a", "success"),
        ("a", "failure"),
    ]


def test_a_row_that_holds_a_list_of_runs_is_told(tmp_path: Path) -> None:
    path, file = tmp_path / "log.json", tmp_path / "map.toml"
    rows = [{"task": name, "success": True, "results": [{"success": True}] * 3} for name in "ab"]
    path.write_text(json.dumps({"tests": rows}))
    file.write_text('[read]\nrows = "tests"\n')
    account, _ = imported(None, path, tmp_path / "out", mapping=file, **USER)
    [note] = [
        note for note in account.imported.notes if note.what == "rows that hold a list `results` of runs"
    ]
    assert (note.kind, note.count) == ("odd", 2)
    assert note.detail == (
        '6 objects with an outcome, read as 2 runs; `rows = "tests.*.results"` under `[read]` reads each'
    )


def test_bundles_of_two_tables_without_run_ids_can_be_pooled(tmp_path: Path) -> None:
    names = ("one", "two")
    for name in names:
        path = lines(tmp_path / f"{name}.jsonl", GOOD | {"task": name})
        _, records = imported(None, path, tmp_path / name)
        assert records[0]["run_id"] == f"{name}.jsonl:1"
    done = certkit("assess", *(tmp_path / name for name in names), "--json")
    assert done.document["bundle"]["records"] == 2


def test_a_summary_that_where_leaves_out_is_told(tmp_path: Path) -> None:
    total = {"accuracy": 0.87, "correct_count": 174, "total_count": 200}
    path, file = lines(tmp_path / "score.json", total, GOOD), tmp_path / "map.toml"
    with pytest.raises(CertkitError, match=r"score.json:1: each row is a summary") as caught:
        imported(None, path, tmp_path / "none")
    [where] = re.findall("`(where = [^`]+)`", str(caught.value.hint))
    file.write_text(f"[read]\n{where}\n")
    account, records = imported(None, path, tmp_path / "out", mapping=file)
    details = {note.what: note.detail for note in account.imported.notes}
    assert len(records) == 1
    assert details["summaries of several runs that `where` leaves out"] == (
        "first correct_count = 174, total_count = 200 in score.json:1; check that the log holds each of these"
        " runs"
    )


@pytest.mark.parametrize(("rows", "odd"), [(10, {}), (11, {"runs that all have the outcome failure": 11})])
def test_one_outcome_in_all_of_many_rows_is_told(tmp_path: Path, rows: int, odd: dict[str, int]) -> None:
    path = lines(tmp_path / "runs.jsonl", *(GOOD | {"task": f"t{n}", "success": False} for n in range(rows)))
    account, _ = imported(None, path, tmp_path / "out")
    assert counts(account, "odd") == odd


def test_columns_of_an_object_that_are_mostly_blank_are_one_line(tmp_path: Path) -> None:
    rows = [GOOD | {"task": f"t{n}", "success": n > 0, "checks": {f"check_{n}": "passed"}} for n in range(40)]
    path = lines(tmp_path / "runs.jsonl", *rows)
    folded = "checks.*: 40 columns, mostly blank"
    text = columns_of(path, ImportOptions()).mapping
    assert (text.count(folded), "check_7" in text) == (1, False)
    assert "checks.check_7: 1 distinct" in certkit("import", path, "--columns", "-v").out
    account, _ = imported(None, path, tmp_path / "out")
    details = {note.what: note.detail for note in account.imported.notes}
    assert details["40 columns that no record field takes"] == folded


def test_names_of_columns_are_cut_between_names(tmp_path: Path) -> None:
    names = [f"{n:02}" + "x" * 98 for n in range(30)]
    account, _ = imported(
        None, lines(tmp_path / "runs.jsonl", GOOD | dict.fromkeys(names, 1)), tmp_path / "out"
    )
    [note] = [note for note in account.imported.notes if "no record field takes" in note.what]
    assert str(note.detail).removesuffix(", …").split(", ") == names[:14]


def test_a_list_fills_no_field_and_an_option_does(tmp_path: Path) -> None:
    row = {"task": "t", "success": True, "category": ["coding", "general"], "agent": "a"}
    path = lines(tmp_path / "runs.jsonl", row)
    said = "domain: category holds a list; map another column to domain, or give --domain NAME"
    with pytest.raises(ImportFaultsError, match=said):
        imported(None, path, tmp_path / "none")
    assert imported(None, path, tmp_path / "out", **USER)[1][0]["domain"] == "d"


def test_a_blank_below_a_filled_cell_asks_for_merged_cells(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task,domain,condition,success,agent\n,d,nominal,1,a\nt,d,nominal,1,a\n,d,nominal,0,a\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    hints = {fault.line: fault.hint for fault in caught.value.faults}
    assert hints == {2: "", 4: "merged cells? fill them down in the spreadsheet"}


def test_a_refusal_keeps_the_rule_of_success_and_names_what_a_mapping_needs(tmp_path: Path) -> None:
    path = lines(tmp_path / "runs.jsonl", {"name": "t", "score": 1})
    with pytest.raises(ImportFaultsError, match='such as task_id = "name"') as caught:
        imported(None, path, tmp_path / "out", success="score == 1")
    commands = [line for line in str(caught.value.hint).splitlines() if "certkit" in line]
    assert len(commands) == 2
    assert all('--success "score == 1"' in line or "--success 'score == 1'" in line for line in commands)


def test_assess_reads_a_log_in_its_encoding_and_says_so_where_it_has_none(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes("task,domain,success,started_at\nBüro,d,1,2026-01-31 09:00:00\n".encode("cp1252"))
    assert "--encoding cp1252" in certkit("assess", path).err
    given = ("--agent", "a", "--condition", "nominal", "--encoding", "cp1252", "--timezone", "UTC")
    assert certkit("assess", path, *given, "-p", "pass-rate", "--exit-zero").code == 0


def test_columns_of_a_command_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "runs.jsonl", GOOD)
    done = certkit("import", path, "--columns", "-o", tmp_path / "map.toml", "--json")
    assert (done.code, done.document["rows"]) == (0, 1)
    assert done.document["columns"][0] == {
        "name": "task",
        "rows": 1,
        "blank": 0,
        "values": {"t": 1},
        "more": False,
    }
    assert (tmp_path / "map.toml").read_text() == done.document["mapping"]
    assert certkit("import", path, "--columns", "-o", tmp_path / "map.toml").code == 2


SUCCESSES: Final = {
    "a text that says failure": ({"success": "grade == 'no'"}, "", 2),
    "not what passes": ({"success": "grade != 'yes'"}, "", 2),
    "not equal, turned": ({"success": "not (grade == 'yes')"}, "", 2),
    "one of several": ({"success": "grade in ['yes', 'no']"}, "", 2),
    "a case of a mapping": ({}, "[when.outcome]\nsuccess = \"grade == 'no'\"\nfailure = 'otherwise'\n", 2),
    "a value of a mapping": (
        {},
        "[columns]\noutcome = 'grade'\n[values.outcome]\nsuccess = ['no', 'yes']\n",
        2,
    ),
    "a text that no row holds": ({"success": "grade == 'pass'"}, "", 3),
    "a value that no row holds": (
        {},
        "[columns]\noutcome = 'grade'\n[values.outcome]\nsuccess = ['pass']\nfailure = ['no', 'yes']\n",
        3,
    ),
}


@pytest.mark.parametrize("name", SUCCESSES)
def test_a_rule_that_reads_failure_as_success_is_told_and_contests(tmp_path: Path, name: str) -> None:
    options, mapping, count = SUCCESSES[name]
    rows = [GOOD | {"success": None, "grade": grade} for grade in ("yes", "no", "no")]
    path, file = lines(tmp_path / "runs.jsonl", *rows), tmp_path / "map.toml"
    file.write_text(mapping)
    account, _ = imported(None, path, tmp_path / "out", mapping=file if mapping else None, **options)
    assert sum(counts(account, "inverted").values()) == count
    findings = certkit("assess", account.out, "--json").document["findings"]
    assert "outcome-inverted" in {item["code"] for item in findings if item["severity"] == "serious"}


@pytest.mark.parametrize(
    "success",
    [
        "grade == 'yes'",
        "score >= 0.5",
        "score >= 0.5 or grade == 'pass'",
        "note == 'no error'",
        "grade in ['yes', 'pass']",
        "score == 0.9",
    ],
)
def test_a_rule_that_reads_success_as_success_is_not_told(tmp_path: Path, success: str) -> None:
    rows = [
        GOOD | {"success": None, "grade": grade, "score": score, "note": note}
        for grade, score, note in (("yes", 0.9, "no error"), ("no", 0.1, "stopped"))
    ]
    account, records = imported(
        None, lines(tmp_path / "runs.jsonl", *rows), tmp_path / "out", success=success
    )
    assert [record["outcome"] for record in records] == ["success", "failure"]
    assert not counts(account, "inverted")


@pytest.mark.parametrize(
    ("row", "test"),
    [
        ({"task": "heart attack"}, "task in ['heart attack']"),
        ({"task": "docs_INJECTED_2"}, "task in ['docs_INJECTED_2']"),
        (
            {"metadata": {"kind": "prompt injection"}},
            "metadata.kind != null and metadata.kind in ['prompt injection']",
        ),
        ({"metadata": {"jailbreak": True}}, "metadata.jailbreak != null and metadata.jailbreak in [true]"),
        ({"attack": "ignore previous"}, "attack != null and attack in ['ignore previous']"),
    ],
)
def test_a_name_that_says_attack_is_warned_of(tmp_path: Path, row: dict[str, Any], test: str) -> None:
    path = lines(tmp_path / "runs.jsonl", {k: v for k, v in GOOD.items() if k != "condition"} | row)
    account, _ = imported(None, path, tmp_path / "out", condition="nominal")
    [note] = [note for note in account.imported.notes if "whose names say" in note.what]
    assert f'`adversarial = "{test}"`' in (note.detail or "")


@pytest.mark.parametrize(
    "row",
    [
        {"task": "attacker"},
        {"task": "injections"},
        {"attack": "none"},
        {"attack": False},
        {"metadata": {"attack": ""}},
    ],
)
def test_a_name_that_only_holds_the_word_is_not_warned_of(tmp_path: Path, row: dict[str, Any]) -> None:
    path = lines(tmp_path / "runs.jsonl", {k: v for k, v in GOOD.items() if k != "condition"} | row)
    account, _ = imported(None, path, tmp_path / "out", condition="nominal")
    assert not counts(account, "odd")


def test_a_split_that_is_no_split_of_a_record_is_left_out_with_a_note(tmp_path: Path) -> None:
    rows = [
        GOOD | {"split": "train"},
        GOOD | {"task": "u", "split": "novel_fault", "condition": "stochastic"},
    ]
    account, records = imported(None, lines(tmp_path / "runs.jsonl", *rows), tmp_path / "out")
    assert [record.get("split") for record in records] == [None, "novel_fault"]
    assert counts(account, "refused") == {"column 'split'": 1}


def test_a_pointer_of_git_lfs_in_any_format_says_git_lfs_pull(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for name in ("runs.csv", "log.eval", "folder/results.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(pointer)
        for source in {path, path.parent if "/" in name else path}:
            with pytest.raises(CertkitError, match="git lfs pull"):
                imported(None, source, tmp_path / "out")


ROWS = """
import sys
from pathlib import Path
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions, run
folder = Path(sys.argv[1])
options = ImportOptions(agent="a", domain="d", condition="nominal", mapping=folder / "map.toml")
print(run(folder / "log.json", folder / "out", options, SILENT)[0].imported.records)
"""


@TELLS_PEAK
def test_a_list_in_an_object_is_read_row_by_row(tmp_path: Path) -> None:
    row = json.dumps({"success": True, "text": "x" * 100_000})
    with (tmp_path / "log.json").open("w") as file:
        file.write('{"config": {}, "results": {"results": [')
        file.writelines(f'{"," * bool(number)}{{"task": "t{number}", {row[1:]}' for number in range(1000))
        file.write("]}}")
    (tmp_path / "map.toml").write_text('[read]\nrows = "results.results"\n')
    records, peak = peak_of(ROWS, tmp_path)
    assert records == "1000"
    assert peak < 150e6
