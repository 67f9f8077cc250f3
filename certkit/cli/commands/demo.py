"""``certkit demo``: the whole chain on a trial of a reference policy, which is measured evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.issue import document, screen
from certkit.cli.commands.verify import show_verdict
from certkit.cli.emit import emit, fold, progress
from certkit.cli.views.assessment import show_evaluation
from certkit.ground import canonical, files

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.api.issuing import IssuedFiles
    from certkit.assessment.evaluation import Evaluation
    from certkit.cli.emit import Line
    from certkit.passport.verify import Verification
    from certkit.report.context import Given

AGENT: Final = "ap-edm"
PROFILE: Final = "trial-rig"
_ISSUER: Final = "certkit demo"
_TIER: Final = 1
"""The tier of `PROFILE` that is asked for."""


class Demonstrated(NamedTuple):
    """What the demonstration made.

    Attributes:
        issued: the files of the passport.
        paper: the same evidence under the table of the paper.
        plan: the entry that announces the plan.
        verification: of the passport, with the evidence and the registry.
    """

    issued: IssuedFiles
    paper: Evaluation
    plan: int
    verification: Verification


def demo(out: opt.Out = Path("build/demo"), seed: opt.Seed = 1) -> None:
    """Run the whole chain on a trial of a reference policy: announce, run, assess, issue, verify, report.

    The policy is a program of certkit without a language model, so its evidence is measured, in seconds.
    'certkit simulate' draws evidence instead.

    Example: certkit demo -o build/demo
    """
    made = demonstrate(out, seed=seed, clock=context.now)
    emit(document(made.issued, out), _demonstrated(made, out))


def demonstrate(out: Path, *, seed: int, clock: Callable[[], datetime]) -> Demonstrated:
    """Write the demonstration into a new folder: plan, bundle, context, issued files, registry and policy.

    Keys are drawn from the operating system's randomness; everything else follows from `seed` and the times
    that `clock` gives.
    """
    # Loaded here, since help needs none of it.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    from certkit.api.issuing import Logging, own_trust, write_issued  # noqa: PLC0415
    from certkit.api.judging import judge  # noqa: PLC0415
    from certkit.api.passport_files import evidence_of, taken, verify_taken  # noqa: PLC0415
    from certkit.assessment.assessment import Question  # noqa: PLC0415
    from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile  # noqa: PLC0415
    from certkit.passport import keys  # noqa: PLC0415
    from certkit.passport.issue import VALIDITY, issue  # noqa: PLC0415
    from certkit.registry.entry import PlanNotice  # noqa: PLC0415
    from certkit.registry.writer import Registry  # noqa: PLC0415
    from certkit.trial.plan import MAX_TRIAL, make_plan, read_trial  # noqa: PLC0415
    from certkit.trial.run import run_trial  # noqa: PLC0415

    with files.building(out) as folder:
        table, start = load_profile(PROFILE), clock()
        template = files.packaged("templates", "trials", "demo.toml")
        trial = read_trial(files.read(template, limit=MAX_TRIAL), where=str(template))
        plan = make_plan(trial.model_copy(update={"seed": seed}))
        bundle, registry, heads = folder / "bundle", folder / "registry", folder / "heads.db"
        files.write(folder / "plan.json", plan.to_json())
        key, log_key = keys.generate("ed25519"), Ed25519PrivateKey.generate()
        keys.write_private(folder / "issuer-key.pem", key, passphrase=None)
        vkey = Registry.init(registry, "demo", log_key, at=start)
        trust = structs.replace(own_trust(_ISSUER, key), logs=(str(vkey),))
        files.write(folder / "trust.json", trust.to_json())
        with Registry.open(registry, heads=heads) as opened:
            notice = PlanNotice(plan=plan.digest, lineage=f"-/{AGENT}")
            announced = opened.announce(notice, submitter=key, log_key=log_key, at=start)
        protocol = {
            "attempt": 1,
            "evaluator": {"name": _ISSUER, "relation": "same"},
            "period": {"from": f"{start:%Y-%m-%d}", "to": f"{start:%Y-%m-%d}"},
        }
        run_trial(plan, f"reference:{AGENT}", bundle, protocol=protocol, progress=progress())
        at = clock()
        given = _context(bundle, table.digest, at, at + VALIDITY)
        files.write(folder / "context.json", given.data)
        judged = judge([bundle], table, Question(required_tier=_TIER), given, progress=progress())
        paper = judge([bundle], load_profile(DEFAULT_PROFILE), Question(), progress=progress())
        passport = issue(
            judged,
            issuer=_ISSUER,
            key=key,
            not_before=at,
            not_after=at + VALIDITY,
            relation_to_evaluator="same",
            relation_to_developer="same",
            context=given.digest,
        )
        issued = write_issued(
            folder / "issued",
            judged,
            passport,
            key=key,
            today=at.date(),
            given=given,
            logging=Logging(registry=registry, log_key=log_key, heads=heads, trust=trust, at=at),
        )
        heads.unlink()  # a demonstration leaves nothing outside its folder
        files.lift(folder / "issued")
        file = folder / "passport.json"
        evidence = evidence_of([bundle], None, replay=True, progress=progress())
        verification = verify_taken(file, taken(file), trust, registry, clock(), heads=None, **evidence)
    return Demonstrated(issued=issued, paper=paper, plan=announced.index, verification=verification)


def _context(bundle: Path, profile: str, at: datetime, until: datetime) -> Given:
    """Return the packaged example of a context, bound to the demonstration's evidence and its time."""
    from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - help needs none of it
    from certkit.report.context import MAX_BYTES, read_context  # noqa: PLC0415 - the same

    template = files.packaged("templates", "context", "example.json")
    example = canonical.loads(files.read(template, limit=MAX_BYTES))
    example["about"] = {"bundles": [open_bundle(bundle).facts.digest], "profile": profile, "tier": _TIER}
    for dated in (example["reviewers"][0], example["hazard_identification"], example["decision"]):
        dated["date"] = f"{at:%Y-%m-%d}"
    for ending in (example["answers"][0], example["decision"]):
        ending["until"] = f"{until:%Y-%m-%d}"
    return read_context(canonical.pretty(example).encode(), where="context.json")


def _demonstrated(made: Demonstrated, out: Path) -> Iterator[Line]:
    from certkit.assessment.answer import rows_by_id, verdict_text, without_evidence  # noqa: PLC0415
    from certkit.trial.agents import LABEL  # noqa: PLC0415

    yield from fold(f"{AGENT} is a {LABEL}: the evidence is measured.")
    yield from fold(f"The plan is announced before the first run: entry {made.plan} of {out}/registry")
    yield ""
    yield from show_evaluation(made.issued.judged, verbose=False)
    yield ""
    paper = f"{verdict_text(made.paper)} {without_evidence(made.paper, rows_by_id(made.paper))}"
    yield from fold(f"The same evidence under {made.paper.profile.id}: {paper}")
    yield ""
    yield from screen(made.issued, out)
    yield ""
    yield from show_verdict(made.verification, dated=False)
    yield from fold(f"status: {made.verification.step('status').detail}")
    yield ""
    yield "Try next:"
    yield f"  certkit verify {out}/passport.json --trust {out}/trust.json \\"
    yield f"    --bundle {out}/bundle --replay --registry {out}/registry"
    yield f"  certkit registry audit {out}/registry --trust {out}/trust.json"
    yield "with your own agent:"
    yield "  certkit trial plan my_trial.toml -o plan.json"
    yield "and on a real log:"
    yield "  certkit assess LOG"
    yield "  certkit import LOG -o my-bundle"
    yield f"  certkit issue my-bundle --key {out}/issuer-key.pem \\"
    yield "    --issuer Me -o my-passport"
