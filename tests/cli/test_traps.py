"""Ways to a wrong yes, a lost record or a stuck program that were tried once, and must stay closed."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certkit.cli import context
from certkit.ground import canonical
from certkit.record.columns import Index
from certkit.record.layout import Layout
from certkit.record.reader import RecordReader
from tests.support import bundles
from tests.support.running import Done, certkit

TIERS = "".join(f'[tiers.{number}]\nname = "T"\n' for number in (1, 2, 3))


def write(root: Path, lines: list[dict[str, Any]], **manifest: Any) -> Path:
    (root / "records").mkdir(parents=True)
    (root / "records" / "runs.jsonl").write_bytes(b"".join(canonical.line(line) for line in lines))
    document = {
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "a", "version": "1"},
        "protocol": {"origin": "measured"},
        **manifest,
    }
    (root / "bundle.json").write_bytes(canonical.line(document))
    return root


def run(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "run_id": f"r{number}",
        "domain": "d",
        "task_id": f"d/{number % 50}",
        "condition": "stochastic",
        "outcome": "failure",
        **fields,
    }


def profile(path: Path, row: str, name: str = "house") -> Path:
    path.write_text(f'id = "{name}"\n{TIERS}[[criteria]]\nid = "x"\nmetric = "r_op"\n{row}\n')
    return path


def test_an_attestation_without_its_file_is_refused_sealed_or_not(tmp_path: Path) -> None:
    attested = [{"id": "edm_auditability", "value": True, "evidence": "nowhere.pdf"}]
    root = write(tmp_path / "b", [run(1)], attested=attested)
    done = certkit("assess", root, "-p", "hb-eval-2025", "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "bundle.manifest-invalid")
    assert "nowhere.pdf" in done.document["error"]["message"]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ('operator = ">="\ntiers = {1 = 0.5, 2 = 0.6, 3 = 0.7}', "hb-eval-2026"),
        ('operator = "<"\ntiers = {1 = 0.9, 2 = 0.8, 3 = 0.7}', "house"),
        ('operator = ">="\ntiers = {1 = 0, 2 = 0.6, 3 = 0.7}', "house"),
        ('operator = ">"\ntiers = {1 = -5, 2 = 0.6, 3 = 0.7}', "house"),
        ('operator = ">"\nmin_coverage = 1e-9\ntiers = {1 = 0.5, 2 = 0.6, 3 = 0.7}', "house"),
    ],
    ids=[
        "name of a packaged table",
        "wrong side",
        "cannot be missed",
        "below the range",
        "no coverage",
    ],
)
def test_no_one_is_judged_by_a_table_that_makes_no_sense(tmp_path: Path, row: str, name: str) -> None:
    root = write(tmp_path / "b", [run(number) for number in range(60)])
    table = profile(tmp_path / "table.toml", row, name)
    done = certkit("assess", root, "-p", table, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "profile.invalid")


def test_a_table_with_a_name_of_its_own_judges(tmp_path: Path) -> None:
    root = write(tmp_path / "b", [run(number) for number in range(60)])
    row = 'operator = ">="\ntiers = {1 = 0.5, 2 = 0.6, 3 = 0.7}'
    table = profile(tmp_path / "table.toml", row, "hb-eval-2026-strict")
    assert certkit("assess", root, "-p", table, "--json").code in {0, 1}
    told = certkit("report", root, "-p", table, "--format", "summary", "-o", "-").out
    assert "By profile hb-eval-2026-strict." in told


def test_the_screen_shows_the_digest_of_the_table(tmp_path: Path) -> None:
    root = write(tmp_path / "b", [run(1)])
    table = profile(tmp_path / "table.toml", 'operator = ">"\ntiers = {1 = 0.5, 2 = 0.6, 3 = 0.7}')
    shown = certkit("profile", "show", table, "--json").document["digest"]
    assert shown in certkit("assess", root, "-p", table, "-v").out


def test_runs_set_aside_are_said(tmp_path: Path) -> None:
    lines = [run(number, outcome="success") for number in range(30)]
    lines += [run(number, split="novel_fault") for number in range(30, 100)]
    done = certkit("assess", write(tmp_path / "b", lines), "-v")
    assert "30 under faults, 70 held out, " in " ".join(done.out.split())


def test_a_quality_factor_is_never_rounded_up_to_a_threshold(tmp_path: Path) -> None:
    for name, factor, met in (
        ("below", 0.6499995000001, False),
        ("at", 0.65, True),
        ("six", 0.570001, False),
    ):
        fields = {"steps_actual": 5, "steps_oracle": 5, "quality_factor": factor, "outcome": "success"}
        lines = [run(number, fault_step=4, task_id=f"t{number}", **fields) for number in range(10)]
        done = certkit("assess", write(tmp_path / name, lines), "-p", "hb-eval-2025", "--json").document
        row = next(row for row in done["criteria"] if (row["id"], row["tier"]) == ("pei_2025", 1))
        assert row["status"] == ("met" if met else "not_met")
        assert row["value"] <= factor
    assert done["metrics"]["pei_2025"]["value"] == 0.570001


@pytest.mark.parametrize("inside", ["records/runs.jsonl", "bundle.json", "new.json", "."])
def test_nothing_is_written_into_the_evidence(tmp_path: Path, inside: str) -> None:
    root = write(tmp_path / "b", [run(1)])
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert certkit("assess", root, "-o", root / inside).code == 2
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_long_dotted_key_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text("a" + ".a" * 60_000 + "=1")
    done = certkit("profile", "show", path, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "profile.invalid")


def test_a_number_of_thousands_of_digits_is_refused_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "digits.toml"
    path.write_text("a = 1" + "0" * 4000 + "0" * 90 + "\n")
    assert certkit("profile", "show", path).code == 3


def test_refused_lines_are_counted_and_not_kept() -> None:
    found = RecordReader().read(b"{}\n" * 1_000)
    assert isinstance(found, list)
    assert (len(found), found.total) == (50, 5_000)


def test_many_domains_are_read_in_time_that_grows_with_them(tmp_path: Path) -> None:
    # Seconds would be asserted by a clock; a look-up of a domain by position in a list cannot be: 20,000
    # domains are simply read here, which took minutes when it was one.
    lines = [run(number, domain=f"d{number}", task_id=f"t{number}") for number in range(20_000)]
    summary = bundles.summary(write(tmp_path / "b", lines))
    assert len(summary.domains) == 20_000


def test_a_repeated_export_line_is_said_to_be_odd(tmp_path: Path) -> None:
    lines = (Path(__file__).parents[1] / "data" / "agentdojo" / "export.jsonl").read_bytes().splitlines(True)
    source = tmp_path / "twice.jsonl"
    source.write_bytes(b"".join([*lines, lines[-1]]))
    done = certkit("import", "agentdojo", source, "-o", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    notes = done.document["bundles"][0]["imported"]["notes"]
    found = {note["kind"]: note["count"] for note in notes if "further trials" in note["what"]}
    assert found == {"odd": 1}


def test_a_bad_source_date_epoch_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "b", [run(1)])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert certkit("assess", root).code == 2


def test_runs_of_a_day_that_cannot_be_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"future": "2031-03-04T14:00:00Z", "old": "1904-03-05T09:10:00Z", "well": "2025-03-05T09:10:00Z"}
    roots = {name: write(tmp_path / name, [run(1, started_at=time)]) for name, time in times.items()}
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr(context, "now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    said = {
        "future": "warning: runs start on 2031-03-04, which is to come: is the date format right?\n",
        "old": "warning: runs start on 1904-03-05, before 2000: is the date format right?\n",
        "well": "",
    }
    assert {name: certkit("assess", root).err for name, root in roots.items()} == said
    assessed = certkit("assess", roots["future"], "--json").out
    page = tmp_path / "case.html"
    asked = "runs of 2031-03-04, which is to come: is the date format right?"
    done = certkit("report", roots["future"], "-o", page)
    assert (done.err, asked in page.read_text(encoding="utf-8")) == (said["future"], True)
    monkeypatch.setattr(context, "now", lambda: datetime(2031, 3, 6, tzinfo=UTC))
    assert certkit("assess", roots["future"], "--json") == Done(4, assessed, "")
    assert certkit("report", roots["future"], "-o", page, "--force").err == ""
    assert "runs of 2031-03-04, 2 days old" in page.read_text(encoding="utf-8")


def test_json_escapes_what_a_terminal_would_obey(tmp_path: Path) -> None:
    root = write(tmp_path / "b", [run(1, domain="a\u009b31m\u202eb")])
    done = certkit("assess", root, "--json")
    assert "\u009b" not in done.out
    assert "\u202e" not in done.out
    assert done.document["bundle"]["domains"] == ["a\u009b31m\u202eb"]


def test_the_layout_is_never_asked_for_what_it_cannot_hold() -> None:
    assert (
        Layout(frozenset({f"x_{number}" for number in range(100)})).decode(b"{}\n", defaultdict(Index))
        is None
    )
