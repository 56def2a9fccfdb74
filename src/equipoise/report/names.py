"""Names of metrics, bands and verdicts as a reader meets them."""

from __future__ import annotations

import math

from equipoise.core import Verdict
from equipoise.report.voices import voices

TITLES = {
    "accuracy": "Accuracy",
    "worst_group_accuracy": "Worst-group accuracy",
    "accuracy_gap": "Accuracy gap (GAP)",
    "gap": "Accuracy gap (GAP)",
    "demographic_parity": "Demographic parity",
    "equalized_odds": "Equalized odds",
    "effect_size": "Effect size",
    "effect_size_mean": "Mean effect size",
    "skewsize": "SkewSize",
    "unanswered_rate": "Share without an answer",
    "hit_rate": "Hit rate",
    "cramers_v": "Cramér's V",
    "phi": "Phi",
    "tschuprows_t": "Tschuprow's T",
}
EFFECT_SIZES = ("cramers_v", "phi", "tschuprows_t")
BANDS = (("negligible", 0.1), ("small", 0.3), ("medium", 0.5), ("large", math.inf))
DIFFERENCE = "difference"


def title(metric: str) -> str:
    """Return a metric's name for display."""
    every = (TITLES, *(spoken.titles for spoken in voices()))
    plain = metric.replace("_", " ").capitalize()
    return next((titles[metric] for titles in every if metric in titles), plain)


def band(value: float) -> str:
    """Return the band of an effect size, "" for what is not finite."""
    if not math.isfinite(value):
        return ""
    return next(name for name, upper in BANDS if value < upper)


def verdict_word(verdict: Verdict, *, comparison: bool) -> str:
    """Return a verdict's word; between models it is a difference that is shown, no disparity."""
    return DIFFERENCE if comparison and verdict == Verdict.DISPARITY else verdict.value
