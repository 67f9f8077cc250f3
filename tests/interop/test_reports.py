"""What ``certkit report --format`` writes suits its readers: SARIF its schema, JUnit a parser."""

from __future__ import annotations

from typing import Any

import pytest

from certkit import report
from tests.support.drawing import judged, strong, summary

VIEWS = {
    "met": lambda: report.view(judged(strong(), tier=2)),
    "not met": lambda: report.view(judged(strong(adversarial=100), tier=3, origin="simulated")),
    "empty": lambda: report.view(judged(summary([]))),
}
ABSENT = "{} is not installed; 'make interop' does it"


@pytest.mark.parametrize("name", VIEWS)
def test_sarif_keeps_to_its_published_schema(name: str) -> None:
    """The models are generated from the schema of OASIS, and refuse members that it does not have."""
    models: Any = pytest.importorskip("pydantic_sarif.model", reason=ABSENT.format("pydantic-sarif"))
    read = models.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate_json
    exported = report.export(VIEWS[name](), "sarif")
    assert len(read(exported).runs[0].results) == exported.count(b'"ruleId"')
    with pytest.raises(ValueError, match="level"):
        read(exported.replace(b'"level": "warning"', b'"level": "odd"'))


@pytest.mark.parametrize("name", VIEWS)
def test_a_reader_of_junit_counts_what_the_report_counts(name: str) -> None:
    junitparser: Any = pytest.importorskip("junitparser", reason=ABSENT.format("junitparser"))
    exported = report.export(VIEWS[name](), "junit")
    [suite] = junitparser.JUnitXml.fromstring(exported)
    stated = (suite.tests, suite.failures, suite.skipped)
    suite.update_statistics()
    assert (suite.tests, suite.failures, suite.skipped) == stated
    assert stated[0] == exported.count(b"<testcase ")
