"""Onset: the first step from which a number differs from chance through to the last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import Booleans, Estimate, Floats, InputError, Span, floats, record
from equipoise.core.arguments import real_numbers
from equipoise.metrics.labels.shares import Confusion, likeliest
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.metrics.vectors.resampling import Jackknife
from equipoise.stats.intervals import divide
from equipoise.stats.streams import Seed, stream

# A replicate varies around the sample as the sample does around the population.
_TWICE = math.sqrt(2.0)
_BAND = 0.95
_METHOD = "percentiles of {} bootstrap replicates over seeds, the same seeds at all steps"


@metric(
    MetricSpec(
        name="onset",
        title="Onset",
        kinds=("text_to_image",),
        range=(0.0, math.inf),
        harm="either",
        sentence="From step {value} on, {direction}{model}.",
        definition=(
            "First denoising step from which a share or an association is outside its chance band, "
            "through to the last step."
        ),
        direction="Either: no harm by itself. It says when a bias becomes visible.",
        chance="none: the numbers that it comes from are tested instead",
        interval=_METHOD.format("the"),
        reference="Mandal 2024, section 11.3",
    )
)
def onset(
    steps: ArrayLike,
    values: ArrayLike,
    chance: ArrayLike,
    replicates: ArrayLike,
    *,
    tests: int = 1,
    n: int = 0,
) -> Estimate:
    """First step from which a number is outside its chance band, through to the last step.

    The side of chance is that of the last step. Only a number that differs at the last step has an
    onset, so one that differs by chance at a single earlier step has none.

    Parameters
    ----------
    steps : array-like, shape (s,)
        Steps at which the number was measured, in any order.
    values : array-like, shape (s,)
        The number at each step.
    chance : array-like, shape (s, 3)
        Mean, low and high end of its 95 % band under the null hypothesis.
    replicates : array-like, shape (s, r)
        The number in bootstrap replicates, each over the same units at all steps. r may be 0.
    tests : int
        Numbers that are looked at together. Bands are widened by Bonferroni's rule, as normal ones.
    n : int
        Seeds that the replicates are over.

    Returns
    -------
    Estimate
        One of the steps; NaN where the number is inside its band at the last step. Interval:
        percentiles of the replicates' onsets. In a replicate bands are wider by the square root of
        2; one without an onset counts as the last step, and `params` has the share of these.

    Raises
    ------
    InputError
        When shapes don't fit, steps repeat, or tests are fewer than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> chance = [(0.5, 0.4, 0.6)] * 4
    >>> values = np.array([0.52, 0.47, 0.8, 0.9])
    >>> drawn = values[:, None] + rng.normal(0, 0.05, (4, 500))
    >>> m.onset([1, 5, 10, 20], values, chance, drawn, n=100)
    <onset 10.000 [10.000, 10.000]; n = 100>
    """
    numbers = [
        real_numbers(array, name, dimensions)
        for array, name, dimensions in (
            (steps, "steps", 1), (values, "values", 1), (chance, "chance", 2),
            (replicates, "replicates", 2),
        )
    ]  # fmt: skip
    n_steps = len(numbers[0])
    shapes = [(n_steps,), (n_steps,), (n_steps, 3), (n_steps, *numbers[3].shape[1:])]
    if (
        [array.shape for array in numbers] != shapes
        or numbers[3].ndim != 2
        or len(np.unique(numbers[0])) < max(n_steps, 1)
    ):
        raise InputError(
            f"steps, values, chance and replicates have shapes {[a.shape for a in numbers]}; "
            "expected (s,), (s,), (s, 3) and (s, r), and each step once"
        )
    if tests < 1:
        raise InputError(f"tests={tests}: expected 1 or more")
    ordered, value, band, replicate = (array[np.argsort(numbers[0])] for array in numbers)
    side = 1.0 if value[-1] >= band[-1, 0] else -1.0
    half = side * (band[:, 2 if side > 0 else 1] - band[:, 0])
    half *= special.ndtri(1.0 - (1.0 - _BAND) / 2.0 / tests) / special.ndtri((1.0 + _BAND) / 2.0)
    first = _first_of_run(side * (value - band[:, 0]) > half)
    beyond = side * (replicate - band[:, :1]) > _TWICE * half[:, None]
    drawn = np.array([_first_of_run(column) for column in beyond.T], dtype=np.int64)
    has_onset = first < n_steps
    reason = "" if has_onset else "it doesn't differ from chance at the last step"
    ends = OnsetEnds(ordered, first, np.minimum(drawn, n_steps - 1))
    return make_estimate(
        "onset",
        float(ordered[first]) if has_onset else math.nan,
        {"seeds": n},
        _METHOD.format(len(drawn)),
        params={"tests": tests, "without_onset": float((drawn == n_steps).mean())}
        if len(drawn)
        else {"tests": tests},
        no_chance="the numbers that it comes from are tested instead",
        reason=reason,
        ends=ends,
    )


@record
class OnsetEnds:
    """Ends of an onset.

    Attributes
    ----------
    steps : ndarray, shape (s,)
    first : int
        Place of the onset; s where there is none.
    drawn : ndarray of int, shape (r,)
        Place of the onset in each replicate.
    """

    steps: Floats
    first: int
    drawn: Any

    def __call__(self, level: float) -> Span:
        """Return the lower and upper end."""
        if self.first == len(self.steps) or not len(self.drawn):
            return math.nan, math.nan
        tails = np.quantile(
            self.drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], method="inverted_cdf"
        )
        low, high = min(int(tails[0]), self.first), max(int(tails[1]), self.first)
        return float(self.steps[low]), float(self.steps[high])


def _first_of_run(beyond: Booleans) -> int:
    """Return the first place of the run that ends at the last; the length where there is none."""
    inside = np.flatnonzero(~beyond)
    return int(inside[-1]) + 1 if len(inside) else 0


def jackknife_replicates(
    jackknives: Sequence[Jackknife], column: int, replicates: int, rng: Seed = 0
) -> Floats:
    """Return bootstrap replicates of a number at several steps, over the same members at all.

    To first order: a member changes the number by what leaving it out does.

    Parameters
    ----------
    jackknives : sequence of s Jackknife
        Of the same sets at each step.
    column : int
        Of the numbers of a jackknife.
    replicates : int
    rng : int or Generator
        Seed.

    Returns
    -------
    ndarray, shape (s, replicates)
        Without columns where members differ between steps.
    """
    values = np.array([jackknife.numbers[0][column] for jackknife in jackknives])
    samples = [[*jackknife.numbers[1]] for jackknife in jackknives]
    if len({tuple(map(len, of_step)) for of_step in samples}) > 1:
        return np.empty((len(values), 0))
    totals = np.repeat(values[:, None], replicates, axis=1)
    for place, members in enumerate(zip(*samples, strict=True)):
        left_out = np.stack([numbers[:, column] for numbers in members])
        n = left_out.shape[1]
        slopes = (n - 1.0) / n * (left_out.mean(axis=1, keepdims=True) - left_out)
        times = stream(rng, "onset", place).poisson(1.0, (n, replicates)) - 1.0
        totals += slopes @ times
    return floats(totals)


def share_replicates(
    outcomes: ArrayLike,
    confusion: Confusion,
    place: int,
    classes: int,
    units: ArrayLike,
    replicates: int,
    rng: Seed = 0,
) -> Floats:
    """Return bootstrap replicates of the share of a class at several steps, over the same units.

    Parameters
    ----------
    outcomes : array-like of int, shape (n, s)
        Place of each image's outcome at each step among those of `confusion`; -1 without one.
    confusion : Confusion
        Errors of the classifier.
    place, classes : int
        Place of the class among the first `classes` of `confusion`, whose shares sum to 1.
    units : array-like, shape (n,)
        What is resampled.
    replicates : int
    rng : int or Generator
        Seed.

    Returns
    -------
    ndarray, shape (s, replicates)
        NaN in replicates without an image.
    """
    codes, (names, unit) = np.asarray(outcomes), np.unique(np.asarray(units), return_inverse=True)
    times = stream(rng, "onset").poisson(1.0, (len(names), replicates))[unit]
    shares = np.empty((codes.shape[1], replicates))
    for step, column in enumerate(codes.T):
        by_outcome = np.arange(len(confusion.outcomes))[:, None] == column
        counts = by_outcome @ times
        outcome_shares = divide(counts, counts.sum(axis=0)).T
        filled = np.where(np.isnan(outcome_shares), 1.0 / len(by_outcome), outcome_shares)
        of_classes = likeliest(filled, confusion.rates[None])[:, :classes]
        shares[step] = divide(of_classes[:, place], of_classes.sum(axis=1))
        shares[step, np.isnan(outcome_shares).any(axis=1)] = np.nan
    return shares
