"""Tables of the calibration of metrics, as rows of CSV files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.calibration.cases import Case
from tools.calibration.runner import (
    ALPHA,
    LEVELS,
    POWER_STRENGTHS,
    STRENGTHS,
    VERSIONS,
    Alarms,
    Calibration,
    Effects,
    Power,
    Rise,
)
from tools.calibration.tables import FOLDER, decimal, write

Cells = tuple[object, ...]
SHOWN = (0.0, 0.5, 1.0)
"""Strengths whose mean estimates the table has."""

ALARMS = (
    "metric", "world", "samples", "drawn", *(f"p_{t:g}" for t in LEVELS), "low", "high",
    "disparity",
)  # fmt: skip
RISES = (
    "metric",
    "world",
    "images",
    "samples",
    *(f"mean_{strength:g}" for strength in SHOWN),
    "spearman",
)
POWERS = (
    "metric", "world", "samples", *(f"p_{strength:g}" for strength in POWER_STRENGTHS),
    *(f"disparity_{strength:g}" for strength in POWER_STRENGTHS),
)  # fmt: skip
EFFECTS = ("planted", "concepts", *VERSIONS, *(f"{name}_effects" for name in VERSIONS[1:]))


def write_tables(calibration: Calibration, folder: Path = FOLDER) -> None:
    """Write the tables of false alarms, rising estimates, sample sizes and prevalence."""
    alarms = [*calibration.alarms, *calibration.again]
    write("false-alarms", ALARMS, map(_alarm_row, alarms), folder)
    write("rising", RISES, map(_rise_row, calibration.rises), folder)
    write("sample-sizes", POWERS, map(_power_row, calibration.powers), folder)
    write("prevalence", EFFECTS, _effect_rows(calibration.effects), folder)


def _alarm_row(alarm: Alarms) -> Cells:
    share = alarm.shares[LEVELS.index(ALPHA)]
    low, high = alarm.interval(alarm.disparities if math.isnan(share) else share)
    verdict = decimal(alarm.disparities) if alarm.case.threshold is not None else ""
    shares = map(decimal, alarm.shares)
    ends = decimal(low), decimal(high)
    return alarm.name, alarm.case.world, alarm.samples, alarm.drawn, *shares, *ends, verdict


def _rise_row(rise: Rise) -> Cells:
    means = [decimal(rise.means[STRENGTHS.index(strength)]) for strength in SHOWN]
    case = rise.case
    return case.name, case.world, case.images, rise.samples, *means, decimal(rise.correlation)


def _power_row(power: Power) -> Cells:
    case = power.case
    tested = [_needed(case, images) for images in power.found]
    judged = ["" if case.threshold is None else _needed(case, n) for n in power.judged]
    return case.name, case.world, power.samples, *tested, *judged


def _needed(case: Case, images: float) -> str:
    if images == 0.0:
        return f"≤ {case.sizes[0]}"
    return f"> {case.sizes[-1]}" if math.isinf(images) else f"{float(f'{images:.2g}'):.0f}"


def _effect_rows(effects: Sequence[Effects]) -> Iterable[Cells]:
    for effect in effects:
        shares = [decimal(effect.significant[name], 2) for name in VERSIONS]
        changes = [_effects(effect.effects[name]) for name in VERSIONS[1:]]
        yield effect.planted, effect.concepts, *shares, *changes


def _effects(shares: dict[str, float]) -> str:
    ordered = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {share:.2f}" for name, share in ordered)
