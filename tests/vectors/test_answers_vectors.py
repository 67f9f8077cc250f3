"""Language-neutral cases of answers to serious findings: ``contested/answers.json``.

It has the files of a sealed bundle whose criteria are met with a serious finding, files that lie beside the
context, a profile in TOML, and cases: a ``context.json`` or null, and how the assessment ends: its exit code,
and the state of the finding, null where the context is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from certkit.assessment.bundles import assess_bundles
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.report.argument.challenges import answered, load_context
from tests.support.documents import certkit

VECTORS = Path(__file__).parent / "contested" / "answers.json"
DOCUMENT = canonical.loads(VECTORS.read_bytes())
CASES = [pytest.param(case["context"], case["expected"], id=case["name"]) for case in DOCUMENT["cases"]]
CODE = "success-with-attack"


def laid_out(context: Any, folder: Path) -> tuple[str, str, Path | None]:
    """Write bundle, profile and context, and return their paths."""
    for path, text in DOCUMENT["bundle"].items():
        (folder / "bundle" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "bundle" / path).write_text(text, encoding="utf-8")
    (folder / "house.toml").write_text(DOCUMENT["profile"], encoding="utf-8")
    path = folder / "context.json"
    path.write_bytes(canonical.line(context))
    for name, text in DOCUMENT["beside"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder / "bundle"), str(folder / "house.toml"), path if context else None


def assessed(context: Any, folder: Path) -> dict[str, Any]:
    bundle, profile, path = laid_out(context, folder)
    try:
        judged = answered(assess_bundles(bundle, profile), load_context(path) if path else None)
    except CertkitError as error:
        return {"exit_code": error.exit_code, "state": None}
    states = {finding.code: finding.state for finding in judged.assessment.findings}
    return {"exit_code": judged.exit_code, "state": states[CODE]}


@pytest.mark.parametrize(("context", "expected"), CASES)
def test_library(context: Any, expected: dict[str, Any], tmp_path: Path) -> None:
    assert assessed(context, tmp_path) == expected


@pytest.mark.parametrize(("context", "expected"), CASES)
def test_command_line(context: Any, expected: dict[str, Any], tmp_path: Path) -> None:
    bundle, profile, path = laid_out(context, tmp_path)
    more = ["--context", str(path)] if path else []
    code, document = certkit("assess", bundle, "--profile", profile, *more, "--json")
    states = {item["code"]: item.get("state") for item in document.get("findings", ())}
    assert {"exit_code": code, "state": states.get(CODE)} == expected
