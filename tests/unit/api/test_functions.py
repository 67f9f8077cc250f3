"""The calls of ``import certkit``, as a notebook makes them."""

from __future__ import annotations

import csv
import pydoc
import sys
from datetime import UTC, date, datetime
from fractions import Fraction
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import certkit
from certkit.api.judging import answered
from certkit.ground import canonical
from certkit.passport import keys
from tests.support import bundles, passports
from tests.support.bundles import run
from tests.support.passports import KEY

if TYPE_CHECKING:
    from pathlib import Path

AT = datetime(2026, 7, 1, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of 40 runs of 20 tasks, of which three in four succeed."""
    path = tmp_path / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["agent", "task_id", "domain", "outcome"])
        rows.writerows(["m", f"t{n % 20}", "shop", "success" if n % 4 else "failure"] for n in range(40))
    return path


@pytest.fixture
def sealed(log: Path, tmp_path: Path) -> Path:
    """The bundle that the log becomes."""
    certkit.import_log(log, tmp_path / "bundle", condition="nominal")
    return tmp_path / "bundle"


@pytest.mark.parametrize(
    ("profile", "judged"),
    [("pass-rate", {"n"}), ("under-attack", {"n", "a", "l"}), ("hb-eval-2026", set("nfadl"))],
)
def test_the_failed_runs_of_a_report_are_those_that_the_profile_judges(
    tmp_path: Path, profile: str, judged: set[str]
) -> None:
    records = [
        run("n", condition="nominal"),
        run("f", condition="tool_failure"),
        run("a", condition="adversarial"),
        run("d", condition="adversarial", attack_attempted=False),
        run("l", condition="combined", attack_landed=True),
    ]
    root = bundles.of(tmp_path / "made", [record | {"outcome": "failure"} for record in records])
    failed = certkit.assess(root, profile=profile).failed_runs()
    assert failed is not None
    assert {record.run_id for record in failed} == judged


class Tags(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not attrs


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a library in the place of pandas whose frames are the rows that they are made of."""
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))


def test_a_log_and_its_bundle_give_the_same_judgement(log: Path, sealed: Path) -> None:
    of_log, of_bundle = certkit.assess(log, condition="nominal"), certkit.assess(sealed)
    assert of_log.assessment == of_bundle.assessment
    assert (of_log.imported is None, of_bundle.imported is None) == (False, True)


def test_a_judgement_is_three_lines(log: Path) -> None:
    first, second, third = repr(certkit.assess(log, "pass-rate", condition="nominal")).splitlines()
    assert first.startswith("m: 75.0 % of normal runs succeed (30 of 40 runs, 20 tasks;")
    assert second.startswith("On averages: ")
    assert third.startswith("Open questions: ")
    lacking = repr(certkit.assess(log, condition="nominal")).splitlines()[1]
    assert lacking == "HB-Eval tiers: cannot be judged: the evidence holds no run under faults."


def test_exact_values_stand_beside_rounded_ones(log: Path) -> None:
    judged = certkit.assess(log, "pass-rate", condition="nominal")
    rows = {row.id: row for row in judged.rows}
    assert (rows["c_nom"].exact, rows["c_nom"].value, judged.tier) == (Fraction(3, 4), 0.75, 0)
    unmeasured = [row for row in certkit.assess(log, condition="nominal").rows if row.value is None]
    assert unmeasured
    assert {row.exact for row in unmeasured} == {None}


def test_text_of_evidence_is_no_html(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(n, domain=HOSTILE) for n in range(4)])
    manifest = canonical.loads((root / "bundle.json").read_bytes())
    manifest["agent"]["name"] = HOSTILE
    (root / "bundle.json").write_bytes(canonical.line(manifest))
    page, tags = certkit.assess(root, "pass-rate")._repr_html_(), Tags()
    tags.feed(page)
    assert tags.seen == {"div", "p", "b", "br", "table", "thead", "tbody", "tr", "th", "td", "small"}
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page


def test_the_table_shows_every_measured_row_with_both_marks() -> None:
    page = answered(passports.specimen(), None)._repr_html_()
    assert "<td>Operational reliability (r_op)</td>" in page
    assert page.count("<tr>") == 1 + len({row.id for row in passports.specimen().assessment.criteria})


def test_frames_need_pandas_and_say_so(log: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    judged, bundle = certkit.assess(log, condition="nominal"), certkit.open_bundle(sealed)
    for frame in (judged.to_frame, judged.cells_frame, bundle.runs_frame):
        with pytest.raises(certkit.UsageError, match="pandas") as caught:
            frame()
        assert caught.value.hint == "pip install pandas"


def test_frames_hold_rows_cells_and_runs(log: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    judged = certkit.assess(log, "pass-rate", condition="nominal")
    first: dict[str, Any] = judged.to_frame()[0]
    assert {name: first[name] for name in ("id", "tier", "value", "operator", "threshold")} == {
        "id": "c_nom", "tier": 1, "value": 0.75, "operator": ">=", "threshold": 0.8,
    }  # fmt: skip
    [cell] = judged.cells_frame()
    assert (cell["domain"], cell["runs"], cell["success"], cell["rate"]) == ("shop", 40, 30, 0.75)
    runs = certkit.open_bundle(sealed).runs_frame(failed=True)
    assert [(row["task_id"], row["outcome"]) for row in runs[:2]] == [("t0", "failure"), ("t4", "failure")]


def test_real_frames_have_a_column_for_each_field(sealed: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = certkit.open_bundle(sealed).runs_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert (len(frame), int((frame["outcome"] == "success").sum())) == (40, 30)


def test_runs_are_chosen_and_a_condition_that_no_run_has_is_refused(sealed: Path) -> None:
    bundle = certkit.open_bundle(sealed)
    assert len(list(bundle.runs())) == 40
    assert {run.outcome for run in bundle.runs(failed=True)} == {"failure"}
    with pytest.raises(certkit.UsageError, match="no run has the condition"):
        bundle.runs(condition="cascade")


def test_options_of_logs_do_not_go_with_bundles(sealed: Path) -> None:
    with pytest.raises(certkit.UsageError, match="condition is for a log, and this is a bundle"):
        certkit.assess(sealed, condition="nominal")


def test_a_threshold_is_changed_for_one_call(sealed: Path) -> None:
    changed = certkit.assess(sealed, "pass-rate", changes=["c_nom=0.5"])
    again = certkit.assess(sealed, certkit.load_profile("pass-rate"), changes=["c_nom=0.5"])
    assert changed.profile == again.profile
    assert {row.id: row.threshold for row in changed.rows}["c_nom"] == 0.5


def test_what_is_issued_is_verified_and_drawn(sealed: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    keys.write_private(key, KEY, passphrase=None)
    judged = certkit.assess(sealed)
    issued = certkit.issue(judged, tmp_path / "issued", issuer="Lab", key=key, at=AT, pdf=False)
    again = certkit.issue(sealed, tmp_path / "again", issuer="Lab", key=KEY, at=AT, pdf=False)
    assert issued.passport.passport_id == again.passport.passport_id
    passport, public = tmp_path / "issued" / "passport.json", tmp_path / "issued" / "public-key.pem"
    verified = certkit.verify(passport, key=public, issuer="Lab", at=AT, bundle=sealed, replay=True)
    assert (verified.verdict, verified.step("replay").status) == ("verified", "passed")
    assert certkit.verify(passport, key=public, issuer="Other", at=AT).verdict == "rejected"
    written = certkit.write_report(passport, tmp_path / "case.html", today=date(2026, 7, 2))
    assert (written.html, written.pdf) == (tmp_path / "case.html", None)
    assert issued.passport.passport_id in (tmp_path / "case.html").read_text(encoding="utf-8")


def test_a_passport_needs_a_policy_or_a_key_with_a_name(tmp_path: Path) -> None:
    with pytest.raises(certkit.UsageError, match="expected either trust, or key and issuer"):
        certkit.verify(tmp_path / "passport.json", at=AT)


def test_the_judgement_of_a_log_is_not_signed(log: Path, tmp_path: Path) -> None:
    judged = certkit.assess(log, condition="nominal")
    with pytest.raises(certkit.UsageError, match="whose records were not kept"):
        certkit.issue(judged, tmp_path / "issued", issuer="Lab", key=KEY, at=AT)
    assert not (tmp_path / "issued").exists()


def test_agents_and_moments_are_compared(sealed: Path) -> None:
    assert certkit.compare(sealed, sealed).a == certkit.compare(sealed, sealed).b
    assert certkit.drift(sealed, sealed, profile="pass-rate").identity == ()
    with pytest.raises(certkit.UsageError, match="an older and a newer side"):
        certkit.drift(sealed)


def test_a_context_about_other_evidence_is_warned_of(sealed: Path, tmp_path: Path) -> None:
    context = tmp_path / "context.json"
    about = {"bundles": ["sha256:" + "0" * 64]}
    context.write_bytes(canonical.line({"schema": "urn:certkit:context:v1", "about": about}))
    with pytest.warns(UserWarning, match="about other evidence"):
        judged = certkit.assess(sealed, context=context)
    assert "bundles" in judged.stale


def test_what_a_cell_returns_is_one_line(sealed: Path, tmp_path: Path) -> None:
    issued = certkit.issue(sealed, tmp_path / "issued", issuer="Lab", key=KEY, at=AT, pdf=False)
    public = tmp_path / "issued" / "public-key.pem"
    verified = certkit.verify(tmp_path / "issued" / "passport.json", key=public, issuer="Lab", at=AT)
    bundle = certkit.open_bundle(sealed)
    for value in (issued, verified, bundle, certkit.compare(sealed, sealed), certkit.drift(sealed, sealed)):
        text = repr(value)
        assert text.startswith(f"<{type(value).__name__}")
        assert len(text) < 300
        assert "\n" not in text


@pytest.mark.parametrize("name", ["assess", "issue", "Judged", "RunsBundle"])
def test_python_shows_the_help_of_a_name(name: str) -> None:
    assert len(pydoc.plain(pydoc.render_doc(getattr(certkit, name))).splitlines()) > 10
