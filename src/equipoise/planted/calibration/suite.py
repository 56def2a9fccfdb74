"""The whole suite: every case, every strength, every number of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equipoise.planted.calibration.cases import CASES, Case
from equipoise.planted.calibration.runner import (
    POWER_STRENGTHS,
    Alarms,
    Power,
    Rise,
    alarms,
    power,
    rise,
)
from equipoise.planted.calibration.versions import PLANTED, Effects, effects

Progress = Callable[[str, int, int], None]

_FRESH = 4


@dataclass(frozen=True)
class Samples:
    """How many samples are drawn: of false alarms, those of concepts, rises, power, versions."""

    alarms: int = 400
    concepts: int = 150
    rise: int = 40
    power: int = 50
    versions: int = 10


QUICK = Samples(alarms=60, concepts=20, rise=20, power=10, versions=1)


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes
    ----------
    quick : bool
    slow : int
        Samples of the slow cases' false alarms.
    alarms, again : tuple of Alarms
        False alarms, and those above their limit once more on fresh samples.
    rises : tuple of Rise
    powers : tuple of Power
        By case, then by strength.
    effects : tuple of Effects
    """

    quick: bool
    slow: int
    alarms: tuple[Alarms, ...]
    again: tuple[Alarms, ...]
    rises: tuple[Rise, ...]
    powers: tuple[Power, ...]
    effects: tuple[Effects, ...]


def calibrate(
    cases: tuple[Case, ...] = CASES,
    *,
    quick: bool = False,
    samples: Samples | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Measure false alarms, rises and power of metrics in worlds whose bias is known.

    Parameters
    ----------
    cases : tuple of Case
    quick : bool
        Few samples: minutes become seconds, and shares rough.
    samples : Samples, optional
        Instead of the numbers that `quick` stands for.
    progress : callable, optional
        Called with a step, how many cases are done, and how many there are.

    Returns
    -------
    Calibration
        The same for the same cases and samples.
    """
    many = samples or (QUICK if quick else Samples())
    tell = progress or _silent
    found, again, rises, powers = [], [], [], []
    for index, case in enumerate(cases):
        tell("Cases", index, len(cases))
        drawn = many.concepts if case.family == "concepts" else many.alarms
        if case.tested or case.parts:
            here = alarms(case, drawn)
            found += here
            if any(one.too_many for one in here):
                fresh = alarms(case, _FRESH * drawn, first=drawn)
                high = {one.name for one in here if one.too_many}
                again += [one for one in fresh if one.name in high]
        if case.rises:
            rises.append(rise(case, many.rise))
        if case.curve:
            powers += [power(case, strength, many.power) for strength in POWER_STRENGTHS]
    tell("Cases", len(cases), len(cases))
    return Calibration(
        quick,
        many.concepts,
        tuple(found),
        tuple(again),
        tuple(rises),
        tuple(powers),
        tuple(effects(planted, many.versions) for planted in PLANTED if many.versions),
    )


def _silent(step: str, done: int, total: int) -> None:
    """Tell nobody."""
