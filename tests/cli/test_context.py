"""``certkit context`` and ``report --context`` on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.bundle.writer import seal
from certkit.ground import canonical
from tests.support import bundles
from tests.support.extremes import GOOD
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = bundles.of(tmp_path_factory.mktemp("context") / "bundle", GOOD[:120])
    seal(root)
    return root


@pytest.fixture
def context(bundle: Path, tmp_path: Path) -> Path:
    path = tmp_path / "context.json"
    assert certkit("context", "init", bundle, "--require-tier", "2", "-o", path).code == 0
    return path


def test_a_new_context_is_bound_and_the_report_says_what_is_blank(bundle: Path, context: Path) -> None:
    done = certkit("report", bundle, "--context", context, "--require-tier", "2", "--format", "sarif")
    assert (done.code, done.err) == (0, "")
    [run] = canonical.loads(done.out.encode())["runs"]
    assert "challenge/no-hazards" in {item["ruleId"] for item in run["results"]}


def test_an_earlier_context_keeps_its_words_and_loses_its_answers(
    bundle: Path, context: Path, tmp_path: Path
) -> None:
    said = canonical.loads(context.read_bytes())
    said |= {"use": said["use"] | {"purpose": "refunds"}, "owner": "o-1", "people": [{"id": "o-1"}]}
    said |= {"decision": {"outcome": "approved", "by": "o-1"}}
    comment = {"node": "G5", "resolved": True}
    said["reviewers"] = [{"person": "o-1", "date": "2026-02-01", "comments": [comment]}]
    context.write_bytes(canonical.line(said))
    after = tmp_path / "next.json"
    done = certkit("context", "init", bundle, "--require-tier", "1", "--from", context, "-o", after)
    assert done.code == 0, done.err
    carried = canonical.loads(after.read_bytes())
    assert (carried["owner"], carried["about"]["tier"]) == ("o-1", 1)
    assert carried["previous_decision"]["outcome"] == "approved"
    assert carried["previous_answers"]
    screen = " ".join(done.out.split())
    assert "answers (previous_answers), decision (previous_decision); left out: reviewers" in screen
    # What the earlier context states is not open.
    assert "Nobody stated what the agent is to be used for" not in screen
    assert "[no-hazards" in screen
    assert (carried["decision"], carried["reviewers"]) == (None, [])
    assert {item["state"] for item in carried["answers"]} == {None}


def test_a_context_of_other_evidence_is_drawn_with_a_warning(
    bundle: Path, context: Path, tmp_path: Path
) -> None:
    key, options = tmp_path / "key.pem", ("--context", context, "--require-tier", "3")
    certkit("keys", "generate", "-o", key)
    signing = ("--key", key, "--issuer", "Lab", "--no-pdf", "-o", tmp_path / "issued")
    for command in (("assess", bundle), ("issue", bundle, *signing)):
        assert "about other evidence (tier)" in certkit(*command, *options).err
    done = certkit("report", bundle, "--context", context, "--require-tier", "3", "-o", tmp_path / "x.html")
    assert done.code == 0
    assert "about other evidence (tier)" in done.err
    assert "about other evidence: tier" in (tmp_path / "x.html").read_text(encoding="utf-8")
    said = canonical.loads(context.read_bytes())
    context.write_bytes(canonical.line(said | {"about": said["about"] | {"bundles": ["sha256:" + "7" * 64]}}))
    assert "about other evidence (bundles, tier)" in certkit("assess", bundle, *options).err


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ('"owner": "nobody"', "/owner"),
        ('"wisdom": 1', "/wisdom"),
        ('"assumptions": [{"id": "A-8"}]', "/assumptions/0/id"),
        ('"owner": null, "owner": null', "owner"),
        ('"risk": {"criterion": NaN}', "NaN"),
        ('"answers": [{"challenge": "no-such-thing"}]', "/answers/0/challenge"),
        ('"hazards": [{"id": "H-1", "criteria": ["no-such-row"]}]', "/hazards/0/criteria"),
        ('"hazards": [{"id": "H-1"}, {"id": "H-1"}]', "/hazards/1/id: 'H-1'"),
    ],
)
def test_a_malformed_context_is_refused_and_nothing_is_written(
    members: str, pointer: str, bundle: Path, tmp_path: Path
) -> None:
    path = tmp_path / "context.json"
    path.write_text(f'{{"schema": "urn:certkit:context:v1", {members}}}', encoding="utf-8")
    done = certkit("report", bundle, "--context", path, "-o", tmp_path / "x.html")
    assert (done.code, pointer in done.err) == (3, True), done.err
    assert not (tmp_path / "x.html").exists()
