"""``certkit drift``: results and exit codes, passports and bundles, signatures, 80 columns."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

import pytest

from certkit.assessment.bundles import attains_tier
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.passport import envelope, keys
from certkit.passport.passport import read_passport
from certkit.simulation.simulate import simulate
from tests.support import bundles
from tests.support.passports import KEY, of_bundle, trust
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


class Made(NamedTuple):
    """A strong and a weak bundle of one agent, and what is signed over them."""

    folder: Path
    strong: Path
    weak: Path
    old: Path
    new: Path
    policy: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("drift")
    found = Made(
        folder, *(folder / name for name in ("strong", "weak", "old.json", "new.json", "trust.json"))
    )
    simulate(found.strong, seed=1, runs=1000, tier_target=2, attains=attains_tier)
    simulate(found.weak, seed=2, runs=1000, tier_target=1, attains=attains_tier)
    found.old.write_bytes(of_bundle(found.strong).to_json())
    found.new.write_bytes(of_bundle(found.weak).to_json())
    found.policy.write_bytes(trust(accept_specimens=True).to_json())
    return found


def resigned(path: Path, out: Path, **changes: object) -> Path:
    """A passport with members of its predicate changed, signed again."""
    document = canonical.loads(read_passport(path.read_bytes()).payload)
    document["predicate"] |= changes
    out.write_bytes(canonical.pretty(envelope.seal(canonical.canonical(document), KEY)).encode())
    return out


def test_passports_and_bundles_give_the_same_answer(made: Made) -> None:
    texts = set()
    for old, new in ((made.old, made.weak), (made.strong, made.new)):
        done = certkit("drift", old, new, "--json")
        assert (done.code, done.err) == (5, "")
        document = done.document
        sides = document.pop("sides")
        assert sides[0]["signature"] == ("not_checked" if old == made.old else "none")
        assert (sides[1]["passport_id"] is None) == (new == made.weak)
        texts.add(canonical.canonical(document))
    assert len(texts) == 1
    (text,) = texts
    document = canonical.loads(text)
    assert (document["schema"], document["result"]) == ("urn:certkit:drift:v1", "DRIFTED")
    assert document["tier"] == {"old": 2, "new": 1}
    assert document["identity"] == []
    first = document["behaviour"][0]
    assert (first["criterion"], first["state"], first["flagged"]) == ("r_op", "WORSE", True)
    assert first["difference"] == pytest.approx(first["old"] - first["new"], abs=1e-12)


def test_the_answer_stands_first_and_fits_a_terminal(made: Made) -> None:
    done = certkit("drift", made.old, made.new)
    lines = done.out.splitlines()
    assert (done.code, done.err) == (5, "")
    flagged = sum(
        row["flagged"] for row in certkit("drift", made.old, made.new, "--json").document["behaviour"]
    )
    assert lines[:3] == [
        f"DRIFTED: the agent behaves worse, in {flagged} of 18 rows",
        "tier: Tier 2 before, Tier 1 now",
        "SIGNATURES NOT CHECKED: name a trust policy with --trust",
    ]
    assert any(line.startswith("operational reliability (r_op) ") for line in lines)
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_way_back_is_no_drift(made: Made) -> None:
    done = certkit("drift", made.new, made.old, "--json")
    assert {row["state"] for row in done.document["behaviour"]} >= {"BETTER"}
    assert (done.code, done.document["result"]) == (0, "STABLE")


def test_a_changed_component_is_named(made: Made, tmp_path: Path) -> None:
    document = canonical.loads((made.strong / "bundle.json").read_bytes())
    document["agent"] |= {"version": "2.0.0", "components": [{"role": "model", "name": "bigger"}]}
    del document["files"]
    root = tmp_path / "other"
    (root / "records").mkdir(parents=True)
    (root / "bundle.json").write_bytes(canonical.canonical(document))
    (root / "records" / "runs.jsonl").write_bytes((made.strong / "records" / "runs.jsonl").read_bytes())
    done = certkit("drift", made.old, root)
    assert done.code == 5
    assert done.out.startswith("IDENTITY_CHANGED: ")
    assert "  version: 1.0.0 -> 2.0.0\n" in done.out
    assert "  model: nothing -> bigger not pinned\n" in done.out


def test_other_profiles_are_not_comparable_and_little_evidence_is_underpowered(
    made: Made, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(of_bundle(made.strong, profile="hb-eval-2025").to_json())
    done = certkit("drift", made.old, other, "--json")
    assert (done.code, done.document["result"], done.document["behaviour"]) == (4, "NOT_COMPARABLE", [])
    assert done.document["reasons"][0].startswith("not comparable: profile hb-eval-2026")
    # A bundle is judged under the profile of the passport, whichever side that is on.
    for pair in ((other, made.strong), (made.strong, other)):
        assert certkit("drift", *pair, "--json").document["result"] == "UNDERPOWERED"
    assert certkit("drift", made.old, made.strong, "--profile", "hb-eval-2025").code == 4
    few = bundles.of(tmp_path / "few", [bundles.run(i, condition="x_f", task_id=f"d/{i}") for i in range(6)])
    done = certkit("drift", few, few, "--json")
    assert (done.code, done.document["result"]) == (4, "UNDERPOWERED")


def test_the_order_of_records_changes_no_byte(tmp_path: Path) -> None:
    runs = [
        bundles.run(
            i,
            condition=("x_f", "nominal")[i % 5 == 0],
            task_id=f"d/{i % 9}",
            outcome=("success", "failure")[i % 7 == 0],
        )
        for i in range(120)
    ]
    forwards, backwards = bundles.of(tmp_path / "f", runs), bundles.of(tmp_path / "b", runs[::-1])
    other = bundles.of(tmp_path / "o", runs[:90])
    assert certkit("drift", other, forwards, "--json").out == certkit("drift", other, backwards, "--json").out
    assert certkit("drift", other, forwards).out == certkit("drift", other, backwards).out


def test_a_trusted_signature_is_said(made: Made, tmp_path: Path) -> None:
    done = certkit("drift", made.old, made.weak, "--trust", made.policy)
    assert done.code == 5
    assert "signatures checked: every passport is signed by an issuer whom the policy trusts" in done.out
    sides = certkit("drift", made.old, made.new, "--trust", made.policy, "--json").document["sides"]
    assert [side["signature"] for side in sides] == ["trusted", "trusted"]
    strangers = tmp_path / "strangers.json"
    strangers.write_bytes(trust(keys.generate("ed25519")).to_json())
    done = certkit("drift", made.old, made.new, "--trust", strangers, "--json")
    assert (done.code, done.document["error"]["code"]) == (8, "passport.untrusted-issuer")
    assert certkit("drift", made.old, made.new, "--trust", tmp_path / "none.json").code == 3


def test_a_bad_signature_is_refused_on_either_side(made: Made, tmp_path: Path) -> None:
    document = canonical.loads(made.old.read_bytes())
    envelope = document["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"]).replace(b'"tier":2', b'"tier":3')
    envelope["payload"] = base64.b64encode(payload).decode()
    forged = tmp_path / "forged.json"
    forged.write_bytes(canonical.canonical(document))
    for pair in ((forged, made.new), (made.new, forged), (made.strong, forged)):
        done = certkit("drift", *pair, "--trust", made.policy, "--json")
        assert (done.code, done.document["error"]["code"]) == (1, "dsse.signature")
        assert done.document["error"]["where"] == str(forged)


def test_integers_that_contradict_each_other_are_refused(made: Made, tmp_path: Path) -> None:
    summary = canonical.loads(read_passport(made.old.read_bytes()).payload)["predicate"]["summary"]
    summary["cells"][0]["counts"]["success"] += 1
    bad = resigned(made.old, tmp_path / "bad.json", summary=summary)
    done = certkit("drift", bad, made.new, "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "passport.statement")


@pytest.mark.parametrize(
    ("content", "code", "error"),
    [(b"{", 3, "json.syntax"), (b"{}", 3, "passport.form"), (None, 3, "file.missing")],
)
def test_what_is_neither_is_malformed(
    made: Made, tmp_path: Path, content: bytes | None, code: int, error: str
) -> None:
    path = tmp_path / "thing.json"
    if content is not None:
        path.write_bytes(content)
    for arguments in ((), ("--trust", made.policy)):
        done = certkit("drift", made.old, path, "--json", *arguments)
        assert (done.code, done.err) == (code, "")
        assert (done.document["error"]["code"], done.document["error"]["where"]) == (error, str(path))
    assert (
        certkit("drift", tmp_path, made.old, "--json").document["error"]["code"] == "bundle.manifest-missing"
    )


def test_names_from_evidence_cannot_command_the_terminal(tmp_path: Path) -> None:
    runs = [bundles.run(i, condition="x_f", domain="\u001b[2J", task_id=f"d/{i}") for i in range(12)]
    root = bundles.of(tmp_path / "b", runs)
    done = certkit("drift", root, root)
    assert "\x1b" not in done.out
    assert "\\u001b[2J" in done.out


def test_a_sealed_bundle_is_not_changed(made: Made) -> None:
    digest = open_bundle(made.strong).facts.digest
    certkit("drift", made.strong, made.weak)
    assert open_bundle(made.strong).facts.digest == digest
