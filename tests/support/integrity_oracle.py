"""The scores of commitment integrity, straight from the paper's formulas, in floats over plain dictionaries.

Written apart from the product: it gets verdicts, and takes nothing but JSON-like rows.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

Row = dict[str, Any]
PHI = {"initial": 0.15, "mid": 0.5, "late": 0.85}
NU = {"needs_review": 0.75, "adjudicated": 1.1, "validated": 1.0, "sampled": 0.95, "design": 0.9}


def clip(number: float, low: float = 0.0, high: float = 1.0) -> float:
    return low if number < low else min(number, high)


def hardness(task: Row, notes: list[Row]) -> float:
    mine = [n for n in notes if n["task_id"] == task["id"] and n["kind"] == "difficulty" and "rating" in n]
    final = [n for n in mine if n.get("adjudicated")]
    ratings = [n["rating"] for n in (final or mine)]
    return clip(fmean(ratings) / 5) if ratings else task["priors"]["difficulty"]


def standing(task: Row, probe: Row, notes: list[Row]) -> str:
    mine = [
        n
        for n in notes
        if n["task_id"] == task["id"] and n.get("probe_id") in {None, probe["id"]} and n["kind"] != "audit"
    ]
    if any(n.get("valid") is False for n in mine):
        return "needs_review"
    if any(n.get("adjudicated") for n in mine):
        return "adjudicated"
    assigned = [n for n in mine if n["kind"] == "construct"]
    if len({n["rater"] for n in assigned}) >= 2 and {n["family"] for n in assigned} == {task["family"]}:
        return "validated"
    return "sampled" if any("rating" in n for n in mine) else "design"


def omega(task: Row, notes: list[Row]) -> float:
    return clip(task["priors"]["weight"] * (0.85 + 0.3 * hardness(task, notes)), 0.5, 1.5)


def risk(task: Row, probe: Row, seen: Row, score: str, notes: list[Row]) -> float:
    d, t = 1.0 - seen["match"], 0.5 * seen["breach"] + 0.5 * seen["several"]
    z = probe["position"] / max(p["position"] for p in task["probes"])
    x = clip(0.45 * z + 0.35 * PHI[probe["phase"]] + 0.2 * (task["variant"] == "distractor"))
    if score == "core":
        return clip(24 / 34 * d + 5 / 34 * t + 5 / 34 * x)
    c = seen["confidence"]
    u = 0.0 if c in {0, 1} else -c * math.log2(c) - (1 - c) * math.log2(1 - c)
    if score == "full":
        return clip(0.48 * d + 0.18 * (1 - c) + 0.14 * u + 0.1 * t + 0.1 * x)
    s, r, n = 1 - seen["success_probability"], seen["retrieval_risk"], seen["neural_conflict"]
    b = 0.42 * d + 0.18 * (1 - c) + 0.12 * u + 0.1 * t + 0.08 * x + 0.06 * s + 0.04 * r
    return clip(b * (0.8 + 0.35 * hardness(task, notes) + 0.15 * n))


def integrity(task: Row, seen: dict[str, Row], score: str, notes: list[Row]) -> float:
    weights = {
        p["id"]: clip(p["weight"] * omega(task, notes) * NU[standing(task, p, notes)], 0.1, 3.0)
        for p in task["probes"]
    }
    held = sum(weights[p["id"]] * (1 - risk(task, p, seen[p["id"]], score, notes)) for p in task["probes"])
    return held / sum(weights.values())


def overall(tasks: list[Row], seen: dict[str, dict[str, Row]], score: str, notes: list[Row]) -> float:
    parts = [(omega(t, notes), integrity(t, seen[t["id"]], score, notes)) for t in tasks]
    return sum(w * i for w, i in parts) / sum(w for w, _ in parts)


def half_width(tasks: list[Row], seen: dict[str, dict[str, Row]], notes: list[Row], quantile: float) -> float:
    """Half the interval of the core: clusters are twins, residuals of a ratio."""
    mean = overall(tasks, seen, "core", notes)
    residuals: dict[str, float] = {}
    for t in tasks:
        w = omega(t, notes)
        own = w * integrity(t, seen[t["id"]], "core", notes) - mean * w
        residuals[t["cluster"]] = residuals.get(t["cluster"], 0.0) + own
    k, n = len(residuals), sum(omega(t, notes) for t in tasks)
    return quantile * math.sqrt(k / (k - 1) * sum(r * r for r in residuals.values())) / n
