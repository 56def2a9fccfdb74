"""How often a learned threshold of a detection agrees with people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core import Booleans, Estimate, InputError, Integers, NullHypothesis
from equipoise.core.arguments import check_lengths, real_numbers
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import known_ends
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.intervals import wilson
from equipoise.stats.streams import unit_keys

_FOLDS, _FEWEST = 5, 10


@dataclass(frozen=True)
class Learned:
    """A threshold that agrees best with people's labels.

    Attributes
    ----------
    threshold : int
        Images of a set that must show the attribute; of several that agree as often, the most.
    size : int
        Images of a set.
    labels, yes : int
        Sets with a label, and those that people found to show the attribute.
    agreement : float
        Share of labels that the threshold agrees with, on the labels it was chosen by.
    accuracy, low, high : float
        Share of labels that thresholds chosen by others agree with, and its interval.
    majority : float
        Share of labels that "always" or "never" agrees with, whichever is more.
    """

    threshold: int
    size: int
    labels: int
    yes: int
    agreement: float
    accuracy: float
    low: float
    high: float
    majority: float

    @property
    def estimate(self) -> Estimate:
        """The accuracy as an estimate."""
        return make_estimate(
            "threshold_accuracy",
            self.accuracy,
            {"labels": self.labels},
            "Wilson, one trial a caption set; cross-validated",
            params={
                "threshold": self.threshold, "images": self.size,
                "majority": self.majority, "agreement": self.agreement,
            },
            no_chance="compare the share of the more frequent label, among the parameters",
            reason=f"always or never agrees with {self.majority:.3g} of the labels",
            unit="caption set",
            ends=known_ends(self.low, self.high),
        )  # fmt: skip


def learned_threshold(
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    size: int,
    clusters: npt.ArrayLike,
    level: float = 0.95,
) -> Learned:
    """Choose how many images of a set must show an attribute, by people's labels.

    Parameters and errors are those of `threshold_accuracy`. Folds, at most five, are drawn by the
    clusters' names.
    """
    counts = real_numbers(values, "values").astype(np.int64)
    truth = real_numbers(labels, "labels").astype(bool)
    n, yes = len(truth), int(truth.sum())
    unit_codes(clusters, n, "clusters", of="labels")
    check_lengths({"labels": n, "values": len(counts)})
    if size < 1:
        raise InputError(f"size={size}: expected 1 or more")
    names, place = np.unique(np.asarray(clusters).astype(str), return_inverse=True)
    if n < _FEWEST or yes in (0, n) or len(names) < 2:
        raise InputError(
            f"labels: {yes} yes of {n} in {len(names)} clusters; expected {_FEWEST} or more of "
            "both kinds, in two or more clusters"
        )
    turn = np.empty(len(names), dtype=np.int64)
    turn[np.argsort(unit_keys(names.tolist()))] = np.arange(len(names)) % _FOLDS
    fold, right = turn[place], 0
    for number in range(min(_FOLDS, len(names))):
        out = fold == number
        chosen, _ = _best(counts[~out], truth[~out], size)
        right += int(((counts[out] >= chosen) == truth[out]).sum())
    chosen, agreement = _best(counts, truth, size)
    low, high = wilson(right / n * len(names), len(names), level)
    share = max(yes, n - yes) / n
    return Learned(chosen, size, n, yes, agreement, right / n, float(low), float(high), share)


def _best(ranks: Integers, labels: Booleans, size: int) -> tuple[int, float]:
    """Return the largest threshold that agrees most often, and how often it does."""
    agree = ((ranks >= np.arange(1, size + 1)[:, None]) == labels).mean(axis=1)
    return int(np.flatnonzero(agree == agree.max())[-1]) + 1, float(agree.max())


@metric(
    MetricSpec(
        name="threshold_accuracy",
        null_kind=NullHypothesis.WITHIN_SETS,
        kinds=("generation",),
        unit="share",
        title="Accuracy of a learned threshold",
        harm="lower",
        definition=(
            "Share of people's labels of sets that a detection threshold agrees with, chosen by "
            "the labels of other caption sets."
        ),
        direction="Lower: the filter disagrees with people more often.",
        chance="none: compare the share of the more frequent label, among the parameters",
        interval="Wilson, with as many trials as caption sets",
        reference="Howard et al. 2024, section 8.4",
    )
)
def threshold_accuracy(
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    size: int,
    clusters: npt.ArrayLike,
    level: float = 0.95,
) -> Estimate:
    """Share of people's labels that a threshold learned from other labels agrees with.

    Parameters
    ----------
    values : array-like of int, shape (m,)
        Images of each set in which the attribute was detected.
    labels : array-like of bool, shape (m,)
        Whether people found that the set shows the attribute.
    size : int
        Images of a set.
    clusters : array-like of str, shape (m,)
        What must not be in two folds of the cross-validation, such as the caption set.
    level : float
        Of the interval.

    Returns
    -------
    Estimate
        In [0, 1], lower: the filter disagrees with people more often. `params` has the threshold
        that agrees best with all labels, the share it agrees with, and that of "always" or
        "never". Interval: Wilson's, with as many trials as there are clusters.

    Raises
    ------
    InputError
        When there are fewer than ten labels or two clusters, or all are the same.

    References
    ----------
    Howard et al. 2024, section 8.4.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> shown = np.arange(40) % 8
    >>> m.threshold_accuracy(shown, shown >= 5, 7, np.arange(40))
    <threshold_accuracy 1.000 [0.912, 1.000]; n = 40>
    """
    return learned_threshold(values, labels, size, clusters, level).estimate
