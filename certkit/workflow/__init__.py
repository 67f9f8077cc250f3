"""Tasks that need several rooms: from a folder of evidence to a verdict, and on to a signed passport.

    assessment = assess(Path("bundle"), "hb-eval-2026")
    assessment.verdict.tier
    issue(Path("bundle"), Path("issued"), key=key, issuer=Issuer(name="Lab"), at=now)

`judging` judges bundles, `comparing` sets two of them side by side, `issuing` signs, logs and draws the
judgement, `drawing` draws it alone, `demonstration` runs the whole chain, and `named` finds a profile by the
name of a packaged one or by the path of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.ground.lazy import lazy

if TYPE_CHECKING:
    from certkit.workflow.comparing import compare, drift
    from certkit.workflow.demonstration import demo
    from certkit.workflow.drawing import draw
    from certkit.workflow.issuing import NOT_ASKED, IssuedFiles, Logging, issue, own_trust
    from certkit.workflow.judging import assess, measured_icc, refuse_inside
    from certkit.workflow.named import (
        DEFAULT_PROFILE,
        load_context,
        load_profile,
        named_text,
        packaged_profiles,
        profile_text,
    )

__getattr__ = lazy(
    __name__,
    {
        "comparing": ("compare", "drift"),
        "demonstration": ("demo",),
        "drawing": ("draw",),
        "issuing": ("NOT_ASKED", "IssuedFiles", "Logging", "issue", "own_trust"),
        "judging": ("assess", "measured_icc", "refuse_inside"),
        "named": (
            "DEFAULT_PROFILE",
            "load_context",
            "load_profile",
            "named_text",
            "packaged_profiles",
            "profile_text",
        ),
    },
)
