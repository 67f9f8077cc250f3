"""A changed statement made to agree with itself again, for tests that look at something else."""

from __future__ import annotations

from typing import Any

import msgspec

from certkit import passport
from certkit.passport import implied, payload


def agree(document: dict[str, Any]) -> dict[str, Any]:
    """Write the parts of a statement that follow from the others, in place; return the statement."""
    predicate = document["predicate"]
    found = msgspec.convert(document, passport.Statement).predicate
    judgement, criteria = found.assessment, found.criteria
    predicate["limitations"] = list(
        implied.limitations(found.agent, found.evidence, judgement.profile, criteria)
    )
    modes = implied.failure_modes(found.profile_of_reliability.cells)
    predicate["known_failure_modes"] = [payload.plain(mode) for mode in modes]
    predicate["scope"]["exclusions"] = list(implied.exclusions(found.evidence, criteria))
    ends = implied.triggers(judgement.tier, criteria)
    predicate["validity"]["retest_triggers"] = [payload.plain(end) for end in ends]
    stated = {challenge.code for challenge in found.challenges}
    predicate["challenges"] += [
        {"code": code, "severity": severity, "message": code}
        for code, severity in sorted(implied.challenges(found).items())
        if code not in stated
    ]
    challenges = msgspec.convert(document, passport.Statement).predicate.challenges
    predicate["claim"] = implied.sentence(judgement.tier, judgement.profile.id, found.origin, challenges)
    return document
