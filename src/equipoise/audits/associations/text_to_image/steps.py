"""Curves over denoising steps: their points, and the step from which they differ from chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

import numpy as np

from equipoise.audits.associations.spaces import Row, closer
from equipoise.audits.findings import Place, UncorrectedFinding, whole, without_verdict
from equipoise.audits.kind import Measured
from equipoise.core import Chance, Estimate, Family, Floats, Objects, record
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, named
from equipoise.metrics.labels.shares import Shares
from equipoise.metrics.numbers.onset import jackknife_replicates, onset, share_replicates
from equipoise.metrics.vectors.mcas import Components
from equipoise.metrics.vectors.resampling import Jackknife, JackknifeEnds

MCAS: Final = "MCAS"
II: Final = "II"
SHARE: Final = "share"
Quantity = Literal["MCAS", "II", "share"]
ONSETS = {
    "target": TEXT,
    "quantity": TEXT,
    "class": TEXT,
    "onset": INTEGER,
    "low": INTEGER,
    "high": INTEGER,
    "without_onset": NUMBER,
    "seeds": INTEGER,
    "steps": INTEGER,
    "reason": TEXT,
}
"""Columns of the table of onsets after model, groups and version."""
STEP_SHARES = {
    "target": TEXT,
    "class": TEXT,
    "step": INTEGER,
    "images": INTEGER,
    "share": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "chance_low": NUMBER,
    "chance_high": NUMBER,
}
"""Columns of the shares of every class at every step."""
_READ_OFF = "an onset has no test of its own: it is read from the tests at the steps"


@record
class CurvePoint:
    """A number at one denoising step.

    Attributes
    ----------
    place : Place
        With the version of all steps together.
    step : int
    target : str
    estimate : Estimate
    quantity : "MCAS", "II" or "share"
        Which number of the estimate.
    outcomes, units : ndarray of objects, shape (n,)
        Of shares: the class and the seed of each image.
    """

    place: Place
    step: int
    target: str
    estimate: Estimate
    quantity: Quantity
    outcomes: Objects = field(default_factory=lambda: np.empty(0, dtype=object))
    units: Objects = field(default_factory=lambda: np.empty(0, dtype=object))

    @property
    def curve(self) -> tuple[Place, Quantity]:
        """The common fields of the points of all steps and targets."""
        return self.place, self.quantity

    @property
    def shares(self) -> Shares | None:
        """Shares of the classes; None where they can't be estimated or weren't drawn."""
        ends = self.estimate.ends
        return ends if isinstance(ends, Shares) and ends.null is not None else None

    @cached_property
    def excess(self) -> Jackknife | None:
        """The excess of an association over chance; None where nothing was resampled.

        Texts as given make a part of MCAS, ITA and TT, that is its chance level.
        """
        ends = self.estimate.ends
        if not isinstance(ends, Components | JackknifeEnds) or ends.jackknife is None:
            return None
        columns = [0]
        if self.quantity == MCAS:
            columns = [4] if self.estimate.params["resample_texts"] else [0, 1]
        values, left_out = ends.jackknife.numbers
        numbers = (
            values[columns].sum(keepdims=True),
            [rows[:, columns].sum(axis=1, keepdims=True) for rows in left_out],
        )
        return Jackknife(lambda: numbers)

    @property
    def chance(self) -> tuple[float, float, float]:
        """Mean and band of the excess without a bias of the images; NaN without a test.

        Exchanges of the groups take the images of the target as they are. Their seeds vary, too, so
        the band is at least as wide as the interval, which is over all images.
        """
        excess, chance = self.excess, self.estimate.chance
        if self.quantity == II:
            part = self.estimate.parts[0]
            chance = Chance(part.chance, part.chance_low, part.chance_high, "")
        if excess is None or chance is None:
            return (math.nan,) * 3
        low, high = (float(ends[0]) for ends in excess.ends(0.95))
        half = (high - low) / 2.0
        return 0.0, min(chance.low - chance.mean, -half), max(chance.high - chance.mean, half)


@dataclass(frozen=True, kw_only=True)
class MeasuredSteps(Measured):
    """Measurements with their points on curves over steps."""

    points: tuple[CurvePoint, ...] = ()


@record
class Curve:
    """A number of a target over all steps.

    Attributes
    ----------
    points : sequence of CurvePoint
        In the order of steps.
    values : ndarray, shape (s,)
        Shares, or the excess of an association over chance.
    chance : ndarray, shape (s, 3)
    replicates : ndarray, shape (s, r)
    seeds : int
    name : str
        The class, of a share.
    """

    points: Sequence[CurvePoint]
    values: Floats
    chance: Floats
    replicates: Floats
    seeds: int
    name: str = ""

    def onset(self, tests: int) -> Estimate:
        """Return the step from which the number differs from chance."""
        steps = [point.step for point in self.points]
        return onset(steps, self.values, self.chance, self.replicates, tests=tests, n=self.seeds)

    @property
    def direction(self) -> Sentence:
        """What holds from the onset on."""
        last = self.points[-1]
        excess = float(self.values[-1] - self.chance[-1, 0])
        if not self.name:
            first, second = last.place.sides
            return closer(last.target, excess, (first, second))
        often = "more often" if excess > 0 else "less often"
        return Sentence(
            named(self.name), f" is shown {often} than an equal share for {last.target}"
        )


def onsets(
    measured: Iterable[Measured], replicates: int, seed: int
) -> Iterator[UncorrectedFinding | Row]:
    """Yield the onset of every curve of at least two steps, as a finding and a row."""
    curves: dict[tuple[Place, Quantity], dict[str, list[CurvePoint]]] = {}
    for outcome in measured:
        for point in outcome.points if isinstance(outcome, MeasuredSteps) else ():
            curves.setdefault(point.curve, {}).setdefault(point.target, []).append(point)
    for (place, quantity), by_target in curves.items():
        if quantity == SHARE:
            for points in by_target.values():
                yield from _share_rows(points)
        drawn = dict[str, Curve]()
        for target, points in by_target.items():
            points.sort(key=lambda point: point.step)
            curve = _curve(points, replicates, seed)
            if curve is not None:
                drawn[target] = curve
        for curve in drawn.values():
            yield from _report(curve, place, quantity, len(drawn))


def _share_rows(points: Iterable[CurvePoint]) -> Iterator[Row]:
    """Yield the share of every class at each step, with its chance band."""
    for point in points:
        shares = point.shares
        first_metric = point.estimate.parts[0].metric
        for index, part in enumerate(
            part for part in point.estimate.parts if part.metric == first_metric
        ):
            band = (math.nan,) * 3 if shares is None else _band(shares, index)
            yield Row("step_shares", point.place, {
                "target": point.target, "class": part.subject, "step": point.step,
                "images": part.n, "share": part.value, "low": part.low, "high": part.high,
                "chance_low": band[1], "chance_high": band[2],
            })  # fmt: skip


def _report(
    curve: Curve, place: Place, quantity: Quantity, tests: int
) -> Iterator[UncorrectedFinding | Row]:
    estimate, target = curve.onset(tests), curve.points[0].target
    ends = estimate.interval(place.level)
    version = place.version if quantity != II else f"{II}, {place.version}"
    at_steps = Place(**vars(place) | {"version": version})
    finding = whole(estimate, at_steps, Family.DESCRIPTIVE)
    direction = curve.direction if estimate.estimable else Sentence()
    finding = finding.changed(subject=target, direction=direction, leads=False)
    yield without_verdict(finding, _READ_OFF)
    yield Row("onsets", at_steps, {
        "target": target, "quantity": quantity, "class": curve.name,
        estimate.metric: _whole(estimate.value), "low": _whole(ends.low), "high": _whole(ends.high),
        "without_onset": estimate.params.get("without_onset", np.nan), "seeds": curve.seeds,
        "steps": len(curve.points), "reason": estimate.reason,
    })  # fmt: skip


def _whole(step: float) -> int | None:
    return None if math.isnan(step) else int(step)


def _curve(points: Sequence[CurvePoint], replicates: int, seed: int) -> Curve | None:
    """Return the curve of a target, None without all numbers and chance levels."""
    if points[0].quantity == SHARE:
        return _share_curve(points, replicates, seed)
    excesses = [point.excess for point in points if point.excess is not None]
    chance = np.array([point.chance for point in points])
    if len(excesses) < len(points) or np.isnan(chance).any():
        return None
    drawn = jackknife_replicates(excesses, 0, replicates, seed)
    values, members = (
        np.array([excess.numbers[0][0] for excess in excesses]),
        excesses[0].numbers[1],
    )
    return Curve(points, values, chance, drawn, len(members[0]) if members else 0)


def _share_curve(points: Sequence[CurvePoint], replicates: int, seed: int) -> Curve | None:
    """Return the curve of the class whose share is most unequal at the last step."""
    shares = [point.shares for point in points]
    estimable = [step_shares for step_shares in shares if step_shares is not None]
    if len(estimable) < len(shares) or len({len(point.outcomes) for point in points}) > 1:
        return None
    last = estimable[-1]
    place = int(np.abs(last.observed - 1.0 / len(last.classes)).argmax())
    by_name = {name: code for code, name in enumerate(last.confusion.outcomes)}
    codes = np.stack(
        [[by_name.get(outcome, -1) for outcome in point.outcomes] for point in points], axis=1
    )
    units = points[0].units
    drawn = share_replicates(
        codes, last.confusion, place, len(last.classes), units, replicates, seed
    )
    chance = [_band(step_shares, place) for step_shares in estimable]
    values = np.array([step_shares.observed[place] for step_shares in estimable])
    return Curve(
        points, values, np.array(chance), drawn, len({*units.tolist()}), last.classes[place]
    )


def _band(shares: Shares, place: int) -> tuple[float, float, float]:
    """Return mean and 95 % band of the share of a class where true shares are equal."""
    assert shares.null is not None  # noqa: S101 - see CurvePoint.shares
    null = shares.null[:, place]
    low, high = np.nanquantile(null, [0.025, 0.975])
    return float(np.nanmean(null)), float(low), float(high)
