"""Shares of perceived classes, corrected for the errors of the classifier that perceived them.

Intervals say how unequal shares are, of one set of images and of the mean over sets.

The inequality Σ |p_k - 1/K| is 2 max_A (p(A) - |A|/K), the maximum over sets A of classes. The mean
of its estimates lies above the truth by an amount that does not shrink as sets of images are
added, while the spread of that mean does. So both ends are bounds that hold whatever the shares.

**One set of images.** The low end is the largest low end of p(A) - |A|/K over A, at a critical
value that holds for all A which the images can't tell apart; the high end is the largest high end
at the normal one, since it is too low only if that of the truly largest A is.

**A mean, low end.** The larger of two bounds, each with half of the probability of error. The
inequality of mean shares is at most the mean inequality, and equal to it where all sets favour
the same classes. And where A is chosen from all images of a set but one, whether that one is in A
has a mean of at most max_A p(A).

**A mean, high end.** By Jensen's inequality mean |x| <= sqrt(mean x²), and the mean of squares is
estimated without bias: the squared difference less its variance.

Shares of A are bounded numbers of images: their intervals are Clopper's and Pearson's, with n
divided by the design effect. What labelled images leave open is added by its distance from the
estimate (MOVER).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from scipy import special

from equipoise.core import (
    Booleans,
    Estimate,
    Fields,
    Floats,
    GroupValue,
    Harm,
    InputError,
    Integers,
    Integers32,
    IntervalKind,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    numbered,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import check_lengths
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    apply_to_draws,
    column_of,
    compare_with_null,
    ends_of,
    number,
    spread_level,
)
from equipoise.metrics.labels.part import PartMetric, estimate_of_part
from equipoise.metrics.labels.reference import ReferenceKind, sample_size
from equipoise.metrics.labels.table import name_unit
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, NO_REPLICATES
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate
from equipoise.stats.intervals import clopper_pearson, divide, wilson
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.streams import Seed, stream

# Times that sets of images are drawn again to find how the low end of a mean varies.
_AGAIN = 200
_ROUNDS = 30
# Sets whose spread tells how a mean over them varies.
_MANY = 24
# Added to each count where variances are wanted: outcomes that were not seen may occur.
_UNSEEN = 0.5
_ROUNDING = 1e-12


@record
class Inequality:
    """Ends of the mean inequality of shares over sets of images, at any level.

    Attributes
    ----------
    outcome_shares : ndarray, shape (sets, outcomes)
        Shares of outcomes in each set of images.
    n : ndarray, shape (sets,)
        Independent images of each set.
    inverse : ndarray, shape (classes, outcomes)
        Takes shares of outcomes to those of classes, up to a factor that makes these sum to 1.
    inverse_draws : ndarray, shape (draws, classes, outcomes), or None
        The same from labelled images that are drawn anew; None where there are none.
    rng : function
        Makes the Generator, anew at every call.
    """

    outcome_shares: Floats
    n: Floats
    inverse: Floats
    inverse_draws: Floats | None
    rng: Callable[[], np.random.Generator]

    def __call__(self, level: float) -> Span:
        """Return the lower and upper end."""
        if len(self.n) == 1:
            low, high = self._ends_of_mean_shares(level)
        else:
            half = (1.0 + level) / 2.0
            low, high = (
                max(self._ends_of_mean_shares(half)[0], self._low_of_own_classes(half)),
                self._high(level),
            )
        return max(low, 0.0), min(max(high, 0.0), self.most)

    @property
    def most(self) -> float:
        """The inequality where one class has all images."""
        return 2.0 * (1.0 - 1.0 / len(self.inverse))

    @cached_property
    def estimate(self) -> float:
        """The mean inequality that squares without bias imply, in [0, most]."""
        if not self._estimable_sets.any():
            return math.nan
        roots = np.sqrt(np.maximum(self._squares.mean(axis=0), 0.0))
        return min(float(roots.sum()), self.most)

    @cached_property
    def _total(self) -> Floats:
        """Sum of class shares before normalisation, shape (sets,)."""
        return floats(self.outcome_shares @ self.inverse.sum(axis=0))

    @cached_property
    def _shares(self) -> Floats:
        return floats(self.outcome_shares @ self.inverse.T / self._total[:, None])

    @cached_property
    def _images(self) -> Floats:
        """What one image of an outcome says of p_k - 1/K, shape (sets, classes, outcomes)."""
        shares, total = self._shares[:, :, None], self._total[:, None, None]
        turned = self.inverse - shares * self.inverse.sum(axis=0)
        return floats(turned / total + shares - 1.0 / len(self.inverse))

    @cached_property
    def _likely(self) -> Floats:
        """Smoothed shares of outcomes: unobserved outcomes may occur."""
        return _normalised(self.n[:, None] * self.outcome_shares + _UNSEEN)

    def _labelled(self, chosen: Any, tail: float) -> Span:
        """Return how far labelled images may move the mean of what images say, down and up.

        `chosen` weighs sets, classes and outcomes.
        """
        if self.inverse_draws is None:
            return 0.0, 0.0
        weight = chosen * self.outcome_shares[:, None, :] / self._total[:, None, None]
        inverse_change = self.inverse_draws - self.inverse
        shift = np.einsum("bkj,kj->b", inverse_change, weight.sum(axis=0))
        shift -= inverse_change.sum(axis=1) @ (weight * self._shares[:, :, None]).sum(axis=(0, 1))
        low, high = np.quantile(shift, [tail, 1.0 - tail])
        return max(-float(low), 0.0), max(float(high), 0.0)

    def _ends(self, chosen: Booleans, z: float, design: float = 1.0) -> Span:
        """Return the ends of 2 (p(A) - |A|/K), averaged over sets.

        Parameters
        ----------
        chosen : ndarray, shape (1 or sets, classes, 1 or outcomes)
            Whether A has a class, where it is used for images of an outcome.
        z : float
            Critical value.
        design : float
            Images that say as much as one that is independent.
        """
        sets = len(self.n)
        low, high, mean = self._span(chosen)
        middle, size = mean / sets, sets**2 / float((1.0 / self.n).sum()) / design
        hits = (middle - low) / max(high - low, _ROUNDING)
        ends = clopper_pearson(size * min(max(hits, 0.0), 1.0), size, 2.0 * special.ndtr(z) - 1.0)
        below, above = (low + (high - low) * float(end) for end in ends)
        down, up = self._labelled(chosen * (2.0 / sets), float(special.ndtr(-z)))
        return middle - math.hypot(middle - below, down), middle + math.hypot(above - middle, up)

    def _span(self, chosen: Booleans) -> tuple[float, float, float]:
        """Return the least and the most that an image says of 2 (p(A) - |A|/K), and the sum."""
        contributions = 2.0 * (chosen * self._images).sum(axis=1)
        return (
            float(contributions.min()),
            float(contributions.max()),
            float((contributions * self.outcome_shares).sum()),
        )

    def _ends_of_mean_shares(self, level: float) -> Span:
        """Return the ends of the inequality of the mean shares."""
        deviations, classes = self._shares.mean(axis=0) - 1.0 / len(self.inverse), len(self.inverse)
        single_classes, critical = (
            np.eye(classes, dtype=bool)[:, None, :, None],
            _critical(level, classes - 1),
        )
        class_ends = np.array([self._ends(single, critical) for single in single_classes])
        unsure = tally((class_ends[:, 0] <= 0.0) & (class_ends[:, 1] >= 0.0))
        wide, narrow = _critical(level, min(unsure, classes - 1)), _critical(level, 1)
        largest = np.argsort(-deviations, kind="stable")
        low = high = -self.most
        for n_chosen in range(1, classes):
            chosen = np.isin(np.arange(classes), largest[:n_chosen])[None, :, None]
            low = max(low, self._ends(chosen, wide)[0])
            high = max(high, self._ends(chosen, narrow)[1])
        return low, high

    def _low_of_own_classes(self, level: float) -> float:
        """Return the low end where each set may favour classes of its own."""
        sizes = np.maximum(np.rint(self.n), 1.0)
        redrawn_counts = self.rng().multinomial(integers(sizes), self._likely, (_AGAIN, len(sizes)))
        redrawn_shares = redrawn_counts / sizes[:, None]
        chosen_values = self._chosen_without_image(redrawn_shares, sizes) * self._images
        redrawn_means = 2.0 * np.einsum("rmkj,rmj->rm", chosen_values, redrawn_shares)
        chosen = self._chosen_without_image(self.outcome_shares, self.n)
        low, high, _ = self._span(chosen)
        hits = min(max((float(redrawn_means.mean()) - low) / max(high - low, _ROUNDING), 0.0), 1.0)
        independent = (high - low) ** 2 * hits * (1.0 - hits) * float((1.0 / self.n).sum())
        of_sets = float(redrawn_means.var(axis=0).sum())
        if len(sizes) >= _MANY:
            set_values = (chosen * self._images * self.outcome_shares[:, None]).sum(axis=(1, 2))
            # What so few sets show may be too little by two of its standard errors.
            wider = 1.0 + 2.0 * math.sqrt(2.0 / len(sizes))
            of_sets = min(of_sets, wider * 4.0 * len(sizes) * float(set_values.var(ddof=1)))
        design = of_sets / max(independent, _ROUNDING)
        return self._ends(chosen, _critical(level, 1), max(design, 1.0))[0]

    def _chosen_without_image(self, outcome_shares: Floats, n: Floats) -> Booleans:
        """Whether classes exceed 1/K without an image of each outcome: (..., classes, outcomes)."""
        deviations = np.einsum("mkj,...mj->...mk", self._images, outcome_shares)
        remaining = n[:, None, None] * deviations[..., None] - self._images
        return np.asarray((remaining > _ROUNDING) & (n[:, None, None] > 1.0))

    @cached_property
    def _estimable_sets(self) -> Booleans:
        """Which sets have two independent images, without which no square is known."""
        return self.n >= 2.0

    def _variance(self, outcome_shares: Floats) -> Floats:
        """Return covariances of what one image says of classes, (sets, classes, classes)."""
        images = self._images[self._estimable_sets]
        centred = images - np.einsum("mkj,mj->mk", images, outcome_shares)[:, :, None]
        return floats(np.einsum("mkj,mlj,mj->mkl", centred, centred, outcome_shares))

    @cached_property
    def _squares(self) -> Floats:
        """Squares of p_k - 1/K without bias, shape (sets with several images, classes)."""
        estimable = self._estimable_sets
        deviations, n = self._shares[estimable] - 1.0 / len(self.inverse), self.n[estimable, None]
        noise = np.einsum("mkk->mk", self._variance(self.outcome_shares[estimable]))
        return floats(deviations**2 - noise / (n - 1.0))

    def _high(self, level: float) -> float:
        """Return the high end: sqrt(x) <= (x / c + c) / 2 whatever c, best near the root."""
        estimable, z = self._estimable_sets, _critical(level, 1)
        if not estimable.any():
            return self.most
        n, likely = self.n[estimable], self._likely[estimable]
        deviations = np.einsum("mkj,mj->mk", self._images[estimable], likely)
        noise = self._variance(likely) / n[:, None, None]
        of_set = 4.0 * deviations[:, :, None] * deviations[:, None] * noise
        of_set += 2.0 * noise**2 * (n / (n - 1.0))[:, None, None]
        squares = np.maximum(self._squares.mean(axis=0), 0.0)
        spread = of_set.sum(axis=0) / len(n) ** 2
        separate = z * np.sqrt(np.diag(spread)) + _ROUNDING
        roots = np.sqrt(squares + separate)
        for _ in range(_ROUNDS):
            weight = 0.5 / roots
            error = math.sqrt(max(float(weight @ spread @ weight), _ROUNDING))
            # Classes whose squares vary less together than alone are not left out.
            roots = np.sqrt(
                squares + np.maximum(z * spread @ weight / error, separate / len(roots))
            )
        weight = 0.5 / roots
        error = z * math.sqrt(float(weight @ spread @ weight))
        slope = np.zeros((len(self.n), len(roots), 1))
        slope[estimable, :, 0] = (
            2.0 * (self._shares[estimable] - 1.0 / len(roots)) * weight / len(n)
        )
        up = self._labelled(slope, float(special.ndtr(-z)))[1]
        high = float(roots.sum() / 2.0 + squares @ weight) + math.hypot(error, up)
        share_estimable = float(estimable.mean())
        return share_estimable * min(high, self.most) + (1.0 - share_estimable) * self.most


def _critical(level: float, freedom: int) -> float:
    """Return the critical value of all contrasts in some dimensions together (Scheffé)."""
    return math.sqrt(2.0 * float(special.gammaincinv(max(freedom, 1) / 2.0, level)))


# What is added to each count of an outcome before shares are drawn (Jeffreys), so that what was not
# said is rare and not impossible; to the rates of a class one image in all (Perks), for there a
# half a cell would make a classifier that never erred on 30 images err often.
_SAID = 0.5
_STEPS, _STILL, _GROWTH = 2000, 1e-9, 1.0 + 1e-6
# One leap may not end a share: the next steps tell whether it is 0.
_SHRINK = 0.01
# Below this singular value a drawn matrix counts as having no inverse.
_SINGULAR = 1e-9
_DRAWN = "percentiles of shares drawn from Dirichlet distributions"
_ENDS = "bounds from exact intervals of shares and from squares without bias"
TRANSPORT = "errors on the labelled images are taken to be those on the images that are asked about"
"""What every correction by labelled images supposes."""
MOST_DRAWS = 20_000


@record
class Confusion:
    """Counts of a classifier's labels of images of each class.

    Attributes
    ----------
    classes : tuple of str
        True classes.
    outcomes : tuple of str
        Labels: the classes, and further ones such as "unknown".
    counts : ndarray of int, shape (classes, outcomes)

    Raises
    ------
    InputError
        When counts are negative, no whole numbers, or of another shape.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> confusion, _ = m.Confusion.of_labels(
    ...     ["man", "woman"] * 20, ["man"] * 10 + ["man", "woman"] * 15
    ... )
    >>> confusion.counts.tolist()
    [[20, 0], [5, 15]]
    """

    classes: Strings
    outcomes: Strings
    counts: Integers

    def __post_init__(self) -> None:
        shape, counts = (len(self.classes), len(self.outcomes)), self.counts
        if counts.shape != shape or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise InputError(f"confusion: expected whole numbers of at least 0, shape {shape}")

    @classmethod
    def of_labels(
        cls, true: Labels, predicted: Labels, *, outcomes: Sequence[str] = ()
    ) -> tuple[Confusion, int]:
        """Count labelled images.

        Parameters
        ----------
        true, said : array-like, shape (n,)
            The true class, and the classifier's label; missing ones are left out.
        outcomes : sequence of str
            Outcomes to have a column, whether they occur or not.

        Returns
        -------
        tuple of Confusion and int
            And how many images were left out because either is missing.

        Raises
        ------
        InputError
            When the lengths differ.
        """
        rows, classes = encode(true, subject="true labels")
        columns, labels = encode(predicted, subject="predicted labels")
        if len(rows) != len(columns):
            raise InputError(
                f"true labels: {len(rows)}; predicted: {len(columns)}; expected as many"
            )
        names = tuple(dict.fromkeys([*outcomes, *classes, *labels]))
        place = np.array([names.index(label) for label in labels], dtype=np.int64)
        complete = (rows >= 0) & (columns >= 0)
        counts = np.zeros((len(classes), len(names)), dtype=np.int64)
        np.add.at(counts, (rows[complete], place[columns[complete]]), 1)
        return cls(classes, names, counts), tally(~complete)

    @property
    def labelled(self) -> Integers:
        """Labelled images of each class."""
        return integers(self.counts.sum(axis=1))

    @property
    def key(self) -> tuple[Strings, Strings, bytes]:
        """What equal counts share."""
        return self.classes, self.outcomes, self.counts.tobytes()

    @cached_property
    def rates(self) -> Floats:
        """Share of each outcome among the images of each class; NaN of a class without images."""
        return divide(self.counts, self.labelled[:, None])

    @cached_property
    def condition(self) -> float:
        """Largest over smallest singular value of the rates: how far errors are blown up."""
        if not np.isfinite(self.rates).all():
            return math.inf
        sizes = np.linalg.svd(self.rates, compute_uv=False)
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 1e-12 * sizes[0] else math.inf

    def arranged(self, order: Sequence[str], aside: Sequence[str]) -> Confusion:
        """Return the counts with classes in order, excluded classes last."""
        names = [*order, *(name for name in aside if name in self.classes)]
        counts, rows = np.pad(self.counts, ((0, 1), (0, 1))), _places(names, self.classes)
        outcome_used = zip(self.outcomes, np.asarray(counts[rows].any(axis=0)), strict=False)
        outcomes = (*names, *(name for name, used in outcome_used if used and name not in names))
        columns = _places(outcomes, self.outcomes)
        return Confusion(tuple(names), outcomes, counts[np.ix_(rows, columns)])

    @property
    def likely(self) -> Floats:
        """Smoothed counts: unobserved outcomes are rare, not impossible."""
        return floats(self.counts) + 1.0 / len(self.outcomes)


def _places(names: Sequence[str], among: Sequence[str]) -> list[int]:
    """Return the place of each name, -1 where it is not among them."""
    place = {name: index for index, name in enumerate(among)}
    return [place.get(name, -1) for name in names]


def independent_rows(codes: Integers32, units: Labels | None, subject: str) -> float:
    """Return how many independent images say as much as all of the argument `subject`.

    That is n over the design effect: how much more shares vary between units than images.
    """
    labelled = codes >= 0
    n = tally(labelled)
    if units is None or not n:
        return float(n)
    owners, names = encode(units, subject="units")
    check_lengths({subject: len(codes), "units": len(owners)})
    # An image without a unit is one of its own.
    unit_of_image = np.where(owners < 0, len(names) + np.arange(len(owners)), owners)[labelled]
    unit, label = numbered(unit_of_image), codes[labelled]
    n_units, classes = int(unit.max()) + 1, int(label.max()) + 1
    if n_units in (1, n):
        return float(n_units)
    table = np.zeros((n_units, classes))
    np.add.at(table, (unit, label), 1.0)
    shares = table.sum(axis=0) / n
    simple = float((shares * (1.0 - shares)).sum()) / n
    deviations = table - shares * table.sum(axis=1, keepdims=True)
    clustered = float((deviations**2).sum()) * n_units / (n_units - 1) / n**2
    return n / max(clustered / simple, 1.0) if simple > 0 else float(n_units)


@record
class Shares:
    """Shares of classes with their draws; the ends of their MAD.

    Attributes
    ----------
    classes : tuple of str
        Whose shares are estimated: the first ones of `confusion`.
    outcome_counts : ndarray, shape (outcomes,)
        Counts, in the order of the outcomes of `confusion`.
    effective : float
        Independent images.
    confusion : Confusion
    exact : bool
        Whether what is said is taken for true: nothing is corrected.
    name : str
        Key of the draws of these images; those of the labelled ones are the same for all.
    resampling : Resampling or None
    seed : int
    reason : str
        Why shares cannot be estimated.
    """

    classes: Strings
    outcome_counts: Floats
    effective: float
    confusion: Confusion
    exact: bool
    name: str
    resampling: Resampling | None
    seed: Seed
    reason: str = ""

    def __call__(self, level: float) -> Span:
        """Return the ends of the MAD."""
        bounds = inequality([self])
        return no_ends(level) if bounds is None else bounds(level)

    @property
    def drawn_by(self) -> tuple[Resampling | None, Seed, Strings, tuple[Strings, Strings, bytes]]:
        """What sets of shares that are compared have in common."""
        return self.resampling, self.seed, self.classes, self.confusion.key

    @cached_property
    def _all_shares(self) -> Floats:
        """Shares of all true classes, shape (classes of the confusion,)."""
        share = self.outcome_counts / self.outcome_counts.sum()
        return floats(likeliest(share[None], self.confusion.rates[None])[0])

    @cached_property
    def observed(self) -> Floats:
        """Shares among the classes, shape (classes,)."""
        if self.reason:
            return nans(len(self.classes))
        return floats(self._of_classes(self._all_shares[None])[0])

    @cached_property
    def boot(self) -> Floats | None:
        """Draws of class shares given images and labelled images, (draws, classes)."""
        if self.reason or not isinstance(self.resampling, Bootstrap):
            return None
        draws, weight = self.resampling.replicates, self.effective / self.outcome_counts.sum()
        rng = stream(self.seed, "shares", "counts", self.name)
        drawn_counts = rng.standard_gamma(
            self.outcome_counts * weight + _SAID, (draws, len(self.outcome_counts))
        )
        return self._of_classes(likeliest(_normalised(drawn_counts), self.likely_rates(draws)))

    def likely_rates(self, draws: int) -> Floats:
        """Return draws of the rates, the same for all sets of images."""
        if self.exact:
            return self.confusion.rates[None]
        likely, rng = self.confusion.likely, stream(self.seed, "shares", "confusion")
        return _normalised(rng.standard_gamma(likely, (draws, *likely.shape)))

    @cached_property
    def null(self) -> Floats | None:
        """Shares found where true ones are equal: (draws, classes)."""
        if self.reason or self.resampling is None:
            return None
        return self.draw_under(np.full_like(self.observed, 1.0 / len(self.observed)))

    def draw_under(self, target: Floats) -> Floats:
        """Return shares found where the true ones are `target`: (draws, classes).

        Images and labelled images are both drawn anew, as many as there were. Classes aside keep
        their estimated share.
        """
        confusion = self.confusion
        draws = null_draws(self.resampling or DEFAULT, MOST_DRAWS)
        if len(self.classes) < len(confusion.classes):
            all_shares = _normalised(np.clip(self._all_shares, 0.0, None))
            target_slice = slice(len(self.classes))
            all_shares[target_slice] = target * all_shares[target_slice].sum()
            target = all_shares
        rates = confusion.rates if self.exact else _normalised(confusion.likely)
        n = max(1, round(self.effective))
        rng = stream(self.seed, "shares", "null", self.name)
        share = rng.multinomial(n, _whole(target @ rates), size=draws) / n
        if self.exact:
            return self._of_classes(likeliest(share, rates[None]))
        labelled = stream(self.seed, "shares", "null", "confusion")
        redrawn_rates = np.empty((draws, *rates.shape))
        for row, (count, rate) in enumerate(zip(confusion.labelled.tolist(), rates, strict=True)):
            redrawn_rates[:, row] = labelled.multinomial(count, _whole(rate), size=draws) / count
        return self._of_classes(likeliest(share, redrawn_rates))

    def _of_classes(self, shares: Floats) -> Floats:
        class_shares = shares[:, : len(self.classes)]
        return divide(class_shares, class_shares.sum(axis=1, keepdims=True))

    def method(self, interval_name: str) -> str:
        """Return the method of an interval with its assumptions."""
        if self.resampling is None:
            return NO_INTERVAL
        if not isinstance(self.resampling, Bootstrap):
            return NO_REPLICATES
        if self.exact:
            return f"{interval_name}; not corrected for the errors of the classifier"
        draws = self.resampling.replicates
        return f"{interval_name}, with {draws} draws of the labelled images; {TRANSPORT}"

    def compare_with_null(
        self, null: Floats | None, value: float, hypothesis: str, harm: Harm = "higher"
    ) -> ChanceTest:
        """Hold a number against draws of it where true shares are `what`."""
        if null is None:
            return UNTESTED
        text = f"true shares are {hypothesis}; {len(null)} draws of images and labelled images"
        resolution = resolution_of(self.resampling)
        return compare_with_null(null, value, harm, text, resolution=resolution, sampled="")


def inequality(sets: Sequence[Shares]) -> Inequality | None:
    """Return the mean inequality over sets of images of one classifier; None without intervals."""
    first = sets[0]
    if first.reason or not isinstance(first.resampling, Bootstrap):
        return None
    classes, inverse_draws = len(first.classes), None
    if not first.exact:
        inverse_draws = _inverse(first.likely_rates(first.resampling.replicates))[:, :classes]
    return Inequality(
        np.stack([shares.outcome_counts / shares.outcome_counts.sum() for shares in sets]),
        np.array([shares.effective for shares in sets]),
        _inverse(first.confusion.rates[None])[0, :classes],
        inverse_draws,
        lambda: stream(first.seed, "shares", "inequality"),
    )


def _normalised(values: Floats) -> Floats:
    return floats(values / values.sum(axis=-1, keepdims=True))


def _whole(shares: Floats) -> Floats:
    """Return shares that sum to 1 in floating point, as multinomial draws want."""
    clipped = np.clip(shares, 0.0, 1.0)
    return floats(clipped / math.fsum(clipped.tolist()))


def inverted(outcome_shares: Floats, rates: Floats) -> Floats:
    """Return class shares from outcome shares by least squares; may leave [0, 1].

    Least squares where there are more outcomes than classes.

    Parameters
    ----------
    outcome_counts : ndarray, shape (r, outcomes)
        Shares of outcomes.
    rates : ndarray, shape (r, classes, outcomes)

    Returns
    -------
    ndarray, shape (r, classes)
        They sum to 1 where there are as many outcomes as classes.
    """
    return floats(np.einsum("rkj,rj->rk", _inverse(rates), outcome_shares))


def _inverse(rates: Floats) -> Floats:
    return floats(np.linalg.pinv(rates.transpose(0, 2, 1), rcond=_SINGULAR))


def likeliest(outcome_shares: Floats, rates: Floats) -> Floats:
    """Return the shares in the simplex under which the outcomes are likeliest.

    Where the plain inverse lies inside the simplex, it is these; elsewhere expectation
    maximisation leads to the point of the border, see `inverted` for the parameters.
    """
    plain = inverted(outcome_shares, rates)
    if rates.shape[1] == rates.shape[2]:
        inside = (plain >= 0.0).all(axis=1) & (np.abs(plain.sum(axis=1) - 1.0) < 1e-9)
    else:
        inside = np.zeros(len(plain), dtype=bool)
    shares = plain.copy()
    outside = np.flatnonzero(~inside)
    if len(outside):
        start = np.clip(plain[outside], 0.0, 1.0) + 0.1 / plain.shape[1]
        start /= start.sum(axis=1, keepdims=True)
        shares[outside] = _maximised(start, outcome_shares[outside], rates[outside])
    return shares


def _maximised(start: Floats, outcome_shares: Floats, rates: Floats) -> Floats:
    """Return where expectation maximisation leads, each row until it stands still.

    Steps are squared (Varadhan & Roland 2008), for on the border plain ones hardly move.
    """
    shares, moving = start.copy(), np.arange(len(start))
    for _ in range(_STEPS):
        current, outcome_batch, rate_batch = shares[moving], outcome_shares[moving], rates[moving]
        first = _step(current, outcome_batch, rate_batch)
        second = _step(first, outcome_batch, rate_batch)
        away, turn = first - current, second - 2.0 * first + current
        turned = np.sqrt((turn**2).sum(axis=1))
        with unwarned():
            step_length = np.where(turned > 0, np.sqrt((away**2).sum(axis=1)) / turned, 1.0)[
                :, None
            ]
        leap = current + 2.0 * step_length * away + step_length**2 * turn
        leap = np.maximum(leap, np.maximum(_SHRINK * current, 1e-12))
        leap = _step(leap / leap.sum(axis=1, keepdims=True), outcome_batch, rate_batch)
        worse = _fit(leap, outcome_batch, rate_batch) < _fit(second, outcome_batch, rate_batch)
        leap[worse] = second[worse]
        shares[moving] = leap
        # A share that a leap set to 0 by mistake grows at first by less than it stands still.
        unsettled = (np.abs(leap - current) > _STILL) | (first > current * _GROWTH)
        moving = moving[unsettled.any(axis=1)]
        if not len(moving):
            break
    shares[shares < 1e-7] = 0.0
    return floats(shares / shares.sum(axis=1, keepdims=True))


def _step(shares: Floats, outcome_shares: Floats, rates: Floats) -> Floats:
    expected = np.einsum("rk,rkj->rj", shares, rates)
    ratio = outcome_shares / np.maximum(expected, 1e-300)
    updated = shares * np.einsum("rkj,rj->rk", rates, ratio)
    total = updated.sum(axis=1, keepdims=True)
    return np.where(total > 0, updated / np.where(total > 0, total, 1.0), shares)


def _fit(shares: Floats, outcome_shares: Floats, rates: Floats) -> Floats:
    expected = np.maximum(np.einsum("rk,rkj->rj", shares, rates), 1e-300)
    return floats((outcome_shares * np.log(expected)).sum(axis=1))


def mad(shares: Floats) -> Floats:
    """Return the sum over classes of |share - mean share|, shape (r,)."""
    return floats(np.abs(shares - shares.mean(axis=1, keepdims=True)).sum(axis=1))


_OUTSIDE = "true shares are the outside shares"
_share = partial(
    MetricSpec,
    null_kind=NullHypothesis.SHARES,
    kinds=("text_to_image",),
    unit="share",
    reference="Mandal 2024, chapters 6 and 8; Rogan & Gladen 1978; Saerens et al. 2002",
    interval=_DRAWN,
)


@metric(
    _share(
        name="share_mad",
        aliases=("mean absolute deviation of shares",),
        title="Inequality of shares",
        group_label="share of images",
        of_whole=True,
        clause="{model} shows {groups} of the images{of}",
        part="{group} in {share}",
        symbol="MAD",
        range=(0.0, 2.0),
        range_note="at most 2 (k - 1) / k for k classes",
        unit="points",
        definition=(
            "Sum over classes of |share − mean share|, of shares corrected for the classifier's "
            "errors. Summary: the mean over prompts."
        ),
        threshold=0.1,
        threshold_reason="5 points up for one class and 5 points down for another",
        direction="Higher: images show one class more often than others.",
        chance="above 0, more so for few images and a poor classifier",
        null="true shares are equal",
        interval=_ENDS,
    )
)
def corrected_shares(  # noqa: PLR0913 - one keyword for each choice
    predicted: Labels,
    confusion: Confusion | None,
    *,
    classes: Sequence[str] | None = None,
    aside: Sequence[str] = (),
    units: Labels | None = None,
    max_condition: float = 20.0,
    min_labelled: int = 10,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
    name: str = "",
) -> Estimate:
    """Shares of true classes among images that a classifier with known errors named.

    The shares of what was said are the true shares times the rates at which images of each class
    are called each outcome. These rates come from labelled images; the true shares are those in
    the simplex under which what was said is likeliest. Where the plain inverse lies inside the
    simplex, it is these.

    Parameters
    ----------
    predicted : array-like, shape (n,)
        The classifier's label of each image; missing labels are left out, and counted.
    confusion : Confusion or None
        Labelled images. Outcomes that are no class, such as "unknown", are part of what is said.
        None: the classifier is taken at its word and nothing is corrected.
    classes : sequence of str, optional
        The order of the classes; those of the labelled images otherwise.
    aside : sequence of str
        True classes, such as "no person", that are no part of the shares: these are among the
        other images.
    units : array-like, shape (n,), optional
        Of images that are not independent, such as those of one seed.
    max_condition : float
        Above this condition number of the rates, nothing is estimated.
    min_labelled : int
        Labelled images that every class needs.
    resampling : Bootstrap, Permutation or None
        None gives values alone.
    rng : int or Generator
        Seed.
    name : str
        Of the images, such as their prompt: sets of other names are drawn independently, the
        labelled images alike for all.

    Returns
    -------
    Estimate
        `share_mad`: sum over classes of |share - mean share|, in [0, 2 (k - 1) / k], higher is
        worse. `.corrected` is without the bias of few images. Interval: its smallest and largest
        value over a simultaneous region of the shares. Chance and p: what is found where true
        shares are equal. `.by` has "corrected_share" of every class (and "raw_share", as said),
        with intervals from Dirichlet distributions of what was said and of the labelled images.
        Not estimable, with the reason: a class has too few labelled images, or the condition
        number is too large.

    Raises
    ------
    InputError
        When labels and units differ in number, or fewer than two classes are left.

    Notes
    -----
    Supposes that errors on the labelled images are those on the images asked about (transport).
    Rates that differ, as for images of another style, bias the shares, and no interval says so.

    References
    ----------
    Rogan & Gladen 1978; Saerens, Latinne & Decaestecker 2002; Mandal 2024.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> confusion, _ = m.Confusion.of_labels(
    ...     ["man", "woman"] * 50, ["man", "woman"] * 45 + ["man", "man"] * 5
    ... )
    >>> m.corrected_shares(["man"] * 60 + ["woman"] * 40, confusion)
    <share_mad 0.111 [0.000, 0.342]; chance 0.102, p = 0.41, n = 100>
    """
    codes, names = encode(predicted, subject="predicted labels")
    order, arranged = _arrange(confusion, names, classes, aside)
    of_label = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    counted = dict(zip(names, of_label, strict=True))
    outcome_counts = np.array(
        [counted.get(outcome, 0) for outcome in arranged.outcomes], dtype=np.float64
    )
    effective = (
        independent_rows(codes, units, "predicted") * outcome_counts.sum() / max(sum(of_label), 1)
    )
    exact = confusion is None
    shares = Shares(order, outcome_counts, effective, arranged, exact, name, resampling, rng)
    reason = _reason(shares, aside, max_condition, min_labelled)
    shares = replace(shares, reason=reason)
    value = float(mad(shares.observed[None])[0])
    chance_test = shares.compare_with_null(apply_to_draws(mad, shares.null), value, "equal")
    bounds = inequality([shares])
    params: Fields = {"corrected": not exact, "excluded_classes": [*aside]}
    if not exact:
        params |= {
            "labelled_images": int(arranged.labelled.sum()),
            "condition_number": round(arranged.condition, 6),
            "max_condition": max_condition,
        }
    if units is not None:
        params["effective_images"] = round(effective, 3)
    unused_reason = "no class" if exact else "of no labelled image"
    unused_counts = {label: n for label, n in counted.items() if label not in arranged.outcomes}
    return make_estimate(
        "share_mad",
        value,
        {"images": int(outcome_counts.sum())},
        shares.method(_ENDS),
        params=params,
        **chance_test.fields(reason or "resampling is off"),
        by=lambda: _parts(shares),
        excluded={"no prediction": tally(codes < 0)}
        | {f"said {label}: {unused_reason}": n for label, n in unused_counts.items()},
        unit=name_unit(units, "image"),
        reason=reason,
        ends=shares,
        corrected=bounds.estimate if bounds else math.nan,
    )


def _arrange(
    confusion: Confusion | None,
    names: Strings,
    classes: Sequence[str] | None,
    aside: Sequence[str],
) -> tuple[Strings, Confusion]:
    """Return the classes in order and the labelled images in it, all right where there are none."""
    all_classes = names if confusion is None else confusion.classes
    order = tuple(
        name for name in (all_classes if classes is None else classes) if name not in aside
    )
    if len(order) < 2 or len({*order}) < len(order):
        raise InputError(f"classes: {[*order]}; expected at least two, each once")
    if confusion is None:
        return order, Confusion(order, order, np.eye(len(order), dtype=np.int64))
    return order, confusion.arranged(order, aside)


def _reason(shares: Shares, aside: Sequence[str], max_condition: float, min_labelled: int) -> str:
    """Return why there are no shares, "" where there are."""
    confusion = shares.confusion
    if not shares.outcome_counts.sum():
        return "no image was named"
    if shares.exact:
        return ""
    few = [
        f"{name}: {count}"
        for name, count in zip(confusion.classes, confusion.labelled.tolist(), strict=True)
        if count < min_labelled
    ]
    if few:
        return f"fewer than {min_labelled} labelled images ({', '.join(few)})"
    if not confusion.condition <= max_condition:
        return (
            f"the condition number of the confusion matrix is {confusion.condition:.3g}, above "
            f"{max_condition:g}: predictions hardly depend on the images"
        )
    return "" if shares.observed.sum() > 0 else f"every image is {' or '.join(aside)}"


def _parts(shares: Shares) -> Iterator[Part]:
    level, used = level_of(shares.resampling), int(shares.outcome_counts.sum())
    named = shares.outcome_counts[: len(shares.classes)]
    weight = shares.effective / shares.outcome_counts.sum() if used else math.nan
    for index, name in enumerate(shares.classes):
        low, high = ends_of(shares.boot, index)(level)
        value = float(shares.observed[index])
        share = (GroupValue(name, (name,), used, value, low, high),)
        yield Part(
            "corrected_share", name, value, low, high, n=used, by_group=share, reason=shares.reason
        )
        # Of the images that were assigned to any class.
        raw = (math.nan, math.nan, math.nan)
        if total := float(named.sum()):
            ends = wilson(named[index] * weight, total * weight, level)
            raw = (float(named[index] / total), float(ends[0]), float(ends[1]))
        yield Part("raw_share", name, *raw, n=used)


def mean_share_mad(estimates: Mapping[str, Estimate]) -> Estimate:
    """Mean over sets of images of how unequal their shares are.

    Parameters
    ----------
    estimates : mapping of name to Estimate
        What `corrected_shares` returned with one seed and another `name=` each: their draws share
        the labelled images alone. Those that are not estimable are left out, and counted.

    Returns
    -------
    Estimate
        `share_mad`, at least 0, higher is worse. `.corrected` is without the bias of few images,
        which the mean keeps however many sets there are. Interval: bounds that hold whatever the
        shares, see `equipoise.metrics.labels.shares`. Chance and p: true shares are equal in
        every set.

    Raises
    ------
    InputError
        When an estimate is another, draws were made otherwise, two have the same name (""
        without one), or none can be estimated.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> chef = m.corrected_shares(["man"] * 60 + ["woman"] * 40, None, name="chef")
    >>> nurse = m.corrected_shares(["man"] * 20 + ["woman"] * 80, None, name="nurse")
    >>> m.mean_share_mad({"chef": chef, "nurse": nurse})
    <share_mad 0.400 [0.103, 0.542]; chance 0.078, p ≤ 0.001, n = 200 in 2 groups>
    """
    estimable = {name: estimate for name, estimate in estimates.items() if estimate.estimable}
    share_sets = [
        estimate.ends for estimate in estimable.values() if isinstance(estimate.ends, Shares)
    ]
    if not share_sets or len(share_sets) < len(estimable):
        raise InputError("estimates: expected what corrected_shares returned, at least one of them")
    first = share_sets[0]
    if any(shares.drawn_by != first.drawn_by for shares in share_sets):
        raise InputError(
            "estimates: of other classes, labelled images, seeds or numbers of draws; use the same"
        )
    if len({shares.name for shares in share_sets}) < len(share_sets):
        raise InputError("estimates: two share a name and so their draws; give each its own name=")
    value = float(np.mean([estimate.value for estimate in estimable.values()]))
    bounds = inequality(share_sets)
    nulls = [mad(shares.null) for shares in share_sets if shares.null is not None]
    null = np.mean(nulls, axis=0) if nulls else None
    chance_test = first.compare_with_null(null, value, "equal in every set")
    return make_estimate(
        "share_mad",
        value,
        {name: estimate.n["images"] for name, estimate in estimable.items()},
        first.method(_ENDS),
        params={"sets": len(estimable), "corrected": not first.exact},
        **chance_test.fields("resampling is off"),
        excluded={"not estimable": len(estimates) - len(estimable)},
        unit=next(iter(estimable.values())).unit,
        ends=bounds or no_ends,
        corrected=bounds.estimate if bounds else math.nan,
    )


@metric(
    _share(
        name="share_gap",
        title="Difference from outside shares",
        unit="points",
        group_label="share of images",
        of_whole=True,
        clause=(
            "{model} shows {group} in {share} of the images{of} ({n}), against {expected} in the "
            "outside shares."
        ),
        expectation="outside",
        definition=(
            "Largest absolute difference over classes between corrected shares and outside shares, "
            "such as labour statistics."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: images depart more from the outside shares.",
        chance="above 0",
        interval="drawn shares, simultaneous over classes",
        null=_OUTSIDE,
    )
)
def share_gap(
    shares: Estimate,
    outside: Mapping[str, float] | Literal["uniform"] = "uniform",
    *,
    kind: ReferenceKind | None = None,
) -> Estimate:
    """Largest difference between the shares of classes and shares from outside.

    Parameters
    ----------
    shares : Estimate
        What `corrected_shares` returned, with its draws.
    outside : mapping of class to number, or "uniform"
        Shares or counts to hold them against, such as labour statistics, divided by their sum
        over the classes.
    kind : "census" or "sample", optional
        Whether they are exact, or counts of a sample, whose own error is in interval and test.
        Without it, shares, percentages and ratios below 10 are exact, and other whole numbers
        are counts of a sample.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous over classes. Chance and p: what is
        found where true shares are those from outside. `.by` has the signed "share_difference" of
        every class, with its own interval and two-sided p.

    Raises
    ------
    InputError
        When the estimate is another, a class has no number from outside, or numbers are negative,
        not finite or all 0, or no counts for a sample.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> shares = m.corrected_shares(["man"] * 60 + ["woman"] * 40, None)
    >>> m.share_gap(shares, {"man": 0.5, "woman": 0.5})
    <share_gap 0.100 [0.001, 0.203]; chance 0.040, p = 0.055, n = 100>
    """
    corrected = shares.ends
    if not isinstance(corrected, Shares):
        raise InputError(f"shares: {shares.metric} is not what corrected_shares returned")
    classes = corrected.classes
    target = _target(classes, outside)
    counted = math.inf
    if not isinstance(outside, str):
        counted = sample_size([outside[name] for name in classes], kind)
    differences = corrected.observed - target
    value = float(np.abs(differences).max())
    null = None if corrected.null is None else _null_differences(corrected, target, counted)
    hypothesis = "equal" if isinstance(outside, str) else "those from outside"
    chance_test = corrected.compare_with_null(
        None if null is None else np.abs(null).max(axis=1), value, hypothesis
    )
    replicates = None
    if corrected.boot is not None:
        replicates = corrected.boot - _redrawn_target(
            target, counted, len(corrected.boot), corrected.seed
        )
    return make_estimate(
        "share_gap",
        value,
        shares.n,
        corrected.method(f"{_DRAWN}, simultaneous over classes"),
        interval_kind=IntervalKind.SIMULTANEOUS,
        params={
            **shares.params,
            "outside": dict(
                zip(classes, [round(share, 12) for share in target.tolist()], strict=True)
            ),
        },
        **chance_test.fields(shares.reason or "resampling is off"),
        by=[*_difference_parts(corrected, target, replicates, null, hypothesis)],
        excluded=shares.excluded,
        unit=shares.unit,
        reason=shares.reason,
        ends=no_ends if replicates is None else partial(_bound_largest, replicates),
    )


def _difference_parts(
    corrected: Shares,
    target: Floats,
    replicates: Floats | None,
    null: Floats | None,
    hypothesis: str,
) -> Iterator[Part]:
    """Yield the signed difference of each class from its outside share."""
    used, level = int(corrected.outcome_counts.sum()), level_of(corrected.resampling)
    from_target = apply_to_draws(lambda boot: boot - target, corrected.boot)
    differences = (corrected.observed - target).tolist()
    for index, (name, difference) in enumerate(zip(corrected.classes, differences, strict=True)):
        low, high = (float(end + target[index]) for end in ends_of(from_target, index)(level))
        of_class = column_of(null, index)
        yield number(
            "share_difference",
            difference,
            subject=name,
            ends=ends_of(replicates, index),
            level=level,
            chance_test=corrected.compare_with_null(of_class, difference, hypothesis, "either"),
            n=used,
            by_group=(
                GroupValue(name, (name,), used, float(corrected.observed[index]), low, high),
            ),
            reason=corrected.reason,
            shows="share",
        )


def _redrawn_target(target: Floats, counted: float, draws: int, seed: Seed) -> Floats:
    """Return draws of outside shares given so many that were counted; the shares where exact."""
    if math.isinf(counted):
        return target
    rng = stream(seed, "shares", "outside")
    return _normalised(rng.standard_gamma(target * counted + _SAID, (draws, len(target))))


def _null_differences(corrected: Shares, target: Floats, counted: float) -> Floats:
    """Return draws of differences where true shares are those from outside.

    Those of a sample are only estimated: the shares that images and sample have in common are
    their mean, weighted by numbers.
    """
    if math.isinf(counted):
        return corrected.draw_under(target) - target
    pooled = corrected.effective * np.clip(corrected.observed, 0.0, None) + counted * target
    common = pooled / pooled.sum()
    drawn = corrected.draw_under(common)
    rng = stream(corrected.seed, "shares", "null", "outside")
    size = max(round(counted), 1)
    return drawn - rng.multinomial(size, _whole(common), size=len(drawn)) / size


def _bound_largest(differences: Floats, level: float) -> Span:
    """Return the ends of the largest |difference|, from intervals simultaneous over classes."""
    n_classes = differences.shape[1]
    joint_level = spread_level(level, n_classes)
    low, high = np.transpose(
        [ends_of(differences, index)(joint_level) for index in range(n_classes)]
    )
    reached = np.abs([low, high]).max()
    return float(np.max([low, -high], initial=0.0)), float(reached)


def _target(classes: Strings, outside: Mapping[str, float] | str) -> Floats:
    outside_shares = dict.fromkeys(classes, 1.0) if outside == "uniform" else outside
    by_class = outside_shares if isinstance(outside_shares, Mapping) else {}
    numbers = np.array([float(by_class.get(name, math.nan)) for name in classes])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        raise InputError(
            f"outside: {outside!r}; expected 'uniform', or a share or count of each class, at "
            "least 0 and not all 0"
        )
    return floats(numbers / numbers.sum())


share_mad = corrected_shares
"""`corrected_shares` by the name of its number."""
corrected_share = metric(
    _share(
        name="corrected_share",
        harm="either",
        definition=(
            "Most likely share of a true class among images, from the classifier's labels and its "
            "errors on labelled images."
        ),
        direction="Either: a share is no disparity.",
        chance="none: see share_mad and share_gap",
    )
)(PartMetric("corrected_share", corrected_shares))
raw_share = metric(
    _share(
        name="raw_share",
        title="Predicted share",
        harm="either",
        definition=(
            "Share of images that the classifier assigns to a class, among those it assigns to "
            "any; not corrected."
        ),
        direction="Either: a share is no disparity.",
        chance="none: see share_mad and share_gap",
        interval="Wilson, with as many images as are independent",
    )
)(PartMetric("raw_share", corrected_shares))


@metric(
    _share(
        name="share_difference",
        title="Difference of one share",
        range=(-1.0, 1.0),
        unit="points",
        harm="either",
        definition="Corrected share of a class minus its outside share.",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Either: positive means images show the class more often than outside.",
        chance="0",
        null=_OUTSIDE,
    )
)
def share_difference(
    shares: Estimate,
    outside: Mapping[str, float] | Literal["uniform"] = "uniform",
    *,
    subject: str,
    kind: ReferenceKind | None = None,
) -> Estimate:
    """Difference of the share of one class from its share outside.

    Parameters
    ----------
    shares, outside, kind
        As of `share_gap`.
    subject : str
        The class.

    Returns
    -------
    Estimate
        In [-1, 1]; its interval is at the level of the resampling of `shares`, and at no other.

    Raises
    ------
    InputError
        As `share_gap`, and when there is no such class.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> shares = m.corrected_shares(["man"] * 60 + ["woman"] * 40, None)
    >>> m.share_difference(shares, {"man": 0.5, "woman": 0.5}, subject="man")
    <share_difference 0.100 [0.010, 0.190]; chance −0.002, p = 0.052, n = 100>
    """
    gap = share_gap(shares, outside, kind=kind)
    resampling = shares.ends.resampling if isinstance(shares.ends, Shares) else None
    return estimate_of_part(gap, "share_difference", subject, level_of(resampling))
