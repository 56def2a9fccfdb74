"""Names of metrics, bands and verdicts for display."""

from __future__ import annotations

import math

from equipoise.core import Verdict
from equipoise.metrics.spec import BANDS, spec_of

DIFFERENCE = "difference"


def title(metric: str) -> str:
    """Return a metric's name for display."""
    return spec_of(metric).title


def band(value: float) -> str:
    """Return the band of an effect size, "" for what is not finite."""
    if not math.isfinite(value):
        return ""
    return [name for name, lower in BANDS.items() if value >= lower][-1]


def verdict_word(verdict: Verdict, *, comparison: bool) -> str:
    """Return a verdict's word; between models it is a difference that is shown, no disparity."""
    return DIFFERENCE if comparison and verdict == Verdict.DISPARITY else verdict.value
