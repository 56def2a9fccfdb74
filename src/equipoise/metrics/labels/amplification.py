"""Bias amplification: how far predictions go beyond the co-occurrence of groups and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Booleans,
    Ends,
    Estimate,
    Fields,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Integers32,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    Words,
    floats,
    integers,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import (
    PERCENTILE,
    UNTESTED,
    ChanceTest,
    bootstrap_method,
    centred_percentile,
    compare_with_null,
    ends_of,
    explain_undefined,
    nan_mean,
    number,
)
from equipoise.metrics.labels.cross_fitting import Changes, Pair, Replicates, Units
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.chance import band
from equipoise.stats.draws import block_sizes
from equipoise.stats.intervals import ClosedForm, mean_t
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.streams import Seed, place_keys, unit_counts, unit_keys

Direction = Literal["attribute_to_task", "task_to_attribute"]

_NO_CHANCE = "no groups are exchanged; compare the interval with 0"
_NO_IMAGES = "training shares are published, so there are no images to exchange"
_EXCHANGED = "training images and predicted images exchange places"
_EXCHANGED_ROWS = "each image exchanges its labels and predictions"
_CENTRED = "centred percentile bootstrap"
_OVER_LABELS = "Student's t over labels: shares without images"


@record
class Cooccurrence:
    """How often each group occurs among the images of each label.

    Attributes
    ----------
    shares : ndarray, shape (labels, groups)
        Rows sum to 1; NaN for a label without images.
    labels, groups : tuple of str
    marks : ndarray of bool, shape (n, labels), or None
        Labels of each image; None where shares are published ones.
    codes : ndarray of int, shape (n,), or None
        Group of each image, -1 for none.
    """

    shares: Floats
    labels: Strings
    groups: Strings
    marks: Booleans | None = None
    codes: Integers32 | None = None

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        groups: GroupLabels,
        *,
        names: Sequence[str] | None = None,
    ) -> Cooccurrence:
        """Count images.

        Parameters
        ----------
        labels : array-like of bool, shape (n, labels)
            Which labels each image has.
        groups : array-like (n,), mapping of attribute to labels, or Groups
            Group of each image; images without one count for no label.
        names : sequence of str, optional
            Of the labels; their numbers unless given.

        Raises
        ------
        InputError
            If lengths differ.
        """
        marks, image_groups = _marks(labels, "labels"), Groups.of(groups)
        named = _names(names, marks.shape[1])
        if len(image_groups.codes) != len(marks):
            raise InputError(f"groups: {len(image_groups.codes)} labels for {len(marks)} images")
        weights = np.ones((1, len(marks)))
        shares = _shares(marks, image_groups.codes, len(image_groups), weights)[0]
        return cls(shares, named, image_groups.names, marks, image_groups.codes)

    @classmethod
    def published(
        cls,
        shares: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
    ) -> Cooccurrence:
        """Take published ratios.

        Parameters
        ----------
        shares : array-like, shape (labels, groups) or (labels,)
            Share of each group among the images of a label; of two groups that of the first is
            enough.
        names, groups : sequence of str, optional
            Of labels and groups; their numbers unless given.

        Raises
        ------
        InputError
            If shares lie outside [0, 1] or don't sum to 1.
        """
        table = floats(shares)
        if table.ndim == 1:
            table = np.stack([table, 1.0 - table], axis=1)
        complete = np.abs(table.sum(axis=-1) - 1.0) < 1e-6
        inside = (table >= 0) & (table <= 1)
        if (
            table.ndim != 2
            or not (inside.all(axis=1) & complete | np.isnan(table).any(axis=1)).all()
        ):
            raise InputError("shares: expected rows of shares in [0, 1] that sum to 1")
        return cls(table, _names(names, len(table)), _names(groups, table.shape[1]))


@record
class Corrected:
    """An amplification whose directions were chosen on other images than it is measured on.

    Attributes
    ----------
    values : ndarray, shape (labels,)
    boot : tuple of ndarray, shape (replicates, labels), or None
        Replicates that choose directions anew, and in the directions of the sample. The first vary
        too little where directions are clear, the second where they are not.
    """

    values: Floats
    boot: tuple[Floats, Floats] | None

    def ends(self, level: float, label: int | None = None) -> Span:
        """Return the wider interval of the mean over labels, or of a label."""
        if self.boot is None:
            return no_ends(level)
        values = self.values if label is None else self.values[label : label + 1]
        boots = self.boot if label is None else [boot[:, [label]] for boot in self.boot]
        value = float(nan_mean(values))
        spans = [centred_percentile(value, nan_mean(boot))(level) for boot in boots]
        return min(low for low, _ in spans), max(high for _, high in spans)


@record
class Null:
    """Draws of an amplification where the two samples exchange images.

    Attributes
    ----------
    values, corrected : ndarray, shape (draws, labels)
        As published, and as it is tested.
    text : str
        What is exchanged.
    resolution : float
        The finest p-value that matters.
    """

    values: Floats
    corrected: Floats
    text: str
    resolution: float

    def test(self, observed: float, label: int | None = None) -> ChanceTest:
        """Hold the mean over labels, or a label, against the draws, in both directions."""
        if label is None:
            values, corrected = nan_mean(self.values), nan_mean(self.corrected)
        else:
            values, corrected = self.values[:, label], self.corrected[:, label]
        tested = compare_with_null(
            corrected, observed, "either", self.text, resolution=self.resolution
        )
        return (
            tested if tested is UNTESTED else replace(tested, chance=band(values, method=self.text))
        )


@record
class Amplified:
    """The `ends` of an amplification: its value by label, and replicates over images.

    Attributes
    ----------
    values : ndarray, shape (labels,)
    names : tuple of str
    replicate : callable or None
        Makes values of bootstrap replicates in the directions of the sample, (replicates, labels).
    drawn_from : bytes
        Images and seed of the replicates: two with the same are paired.
    level : float
    corrected : Corrected or None
        None where directions don't come from the images that the change is measured on.
    """

    values: Floats
    names: Strings
    replicate: Callable[[], Floats] | None
    drawn_from: bytes
    level: float
    corrected: Corrected | None = None

    @cached_property
    def boot(self) -> Floats | None:
        """Values of replicates, made when they are first read."""
        return None if self.replicate is None else self.replicate()

    @property
    def replicates(self) -> Floats | None:
        """Replicates of the corrected number."""
        if self.corrected is None:
            return self.boot
        return None if self.corrected.boot is None else self.corrected.boot[0]

    @property
    def method(self) -> str:
        """How intervals are made from replicates."""
        return PERCENTILE if self.corrected is None else _CENTRED

    def __call__(self, level: float) -> Span:
        """Return the ends of the mean at a confidence level."""
        if self.corrected is not None:
            return self.corrected.ends(level)
        if self.boot is None:
            return ClosedForm(mean_t, (self.values,))(level)
        return ends_of(nan_mean(self.boot))(level)

    def _ends(self, label: int) -> Ends:
        """Return the interval of a label."""
        if self.corrected is not None:
            return partial(self.corrected.ends, label=label)
        return ends_of(self.boot, label)

    def minus(self, other: Amplified) -> Amplified:
        """Return the paired difference."""
        replicates = None
        if self.boot is not None and other.boot is not None:
            replicates = self.boot - other.boot
        return Amplified(
            self.values - other.values,
            self.names,
            None if replicates is None else lambda: replicates,
            self.drawn_from,
            self.level,
        )

    def parts(self, metric: str, null: Null | None) -> Iterator[Part]:
        """Yield a part for each label."""
        for place, (name, value) in enumerate(zip(self.names, self.values.tolist(), strict=True)):
            reason = explain_undefined(value, "no image with the label")
            corrected = np.nan if self.corrected is None else float(self.corrected.values[place])
            observed = value if self.corrected is None else corrected
            yield number(
                metric, value, subject=name, n=0, ends=no_ends if reason else self._ends(place),
                level=self.level, corrected=corrected, reason=reason,
                chance_test=UNTESTED if reason or null is None else null.test(observed, place),
            )  # fmt: skip


def _shares(marks: Booleans, codes: Integers32, groups: int, weights: Floats) -> Floats:
    """Return shares of groups by label, (replicates, labels, groups), from weights of images."""
    member = codes[:, None] == np.arange(groups)
    counts = np.stack([floats(marks.T) @ (row[:, None] * member) for row in weights])
    with unwarned():
        return floats(counts / counts.sum(axis=-1, keepdims=True))


_spec = partial(
    MetricSpec,
    kinds=("review",),
    range=(-1.0, 1.0),
    null_kind=NullHypothesis.SAMPLES,
    interval=(
        "bootstrap over images, of the cross-fitted value; Student's t over labels without images"
    ),
)


@metric(
    _spec(
        name="cooccurrence_amplification",
        aliases=("BiasAmp",),
        definition=(
            "Mean over labels of the rise, from training images to predictions, in the share of "
            "groups that the training images over-represent."
        ),
        direction="Higher: above 0 the model amplifies the bias of its training images.",
        chance="below 0: shares that are high by chance fall back",
        null="training images and predicted images, or labels and predictions, exchange places",
        reference="Zhao et al. 2017",
    )
)
def cooccurrence_amplification(
    training: Cooccurrence,
    predicted: Cooccurrence,
    *,
    margin: float = 0.05,
    paired: bool = False,
    units: Labels | None = None,
    training_units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far predictions tie groups to labels beyond the training images (Zhao et al. 2017).

    Parameters
    ----------
    training, predicted : Cooccurrence
        Of the training images and of predictions, with the same labels and groups.
    margin : float
        Difference of a share that is a violation.
    paired : bool
        Whether both are of the same images in the same order: labels and predictions of each.
    units, training_units : array-like (n,), optional
        What repeats among the predicted images, and among the training images; resampled as a
        whole. Paired images have `units` alone.
    resampling : Bootstrap, Permutation or None
        Replicates over images; published training shares stay as they are.
    rng : int or Generator
        Seed of the replicates.

    Returns
    -------
    Estimate
        In [-1, 1]: mean over labels of the rise in the share of groups whose training share is
        above 1 / groups. Above 0 the model amplifies, below it reduces. A group whose share is
        high by chance falls back, so the published value is below 0 without any change: `.chance`
        is its level where the samples exchange images, or images their labels and predictions.
        `.corrected` chooses groups on half of the images and measures on the other half; interval
        and p, in both directions, are of it. `.by` has every label, and the part `violations`:
        labels in which a share differs by more than the margin, with their number by chance.
        Labels without a share are left out and counted. Published training shares are taken as
        exact; published shares alone have Student's t over labels.

    Raises
    ------
    InputError
        If labels or groups differ, or paired images differ in number.

    References
    ----------
    Zhao et al. 2017, EMNLP, "Men Also Like Shopping".
    """
    if (training.labels, training.groups) != (predicted.labels, predicted.groups):
        raise InputError("predicted: other labels or groups than training; expected the same")
    leans = training.shares > 1.0 / len(training.groups)

    def rise(shares: Floats) -> Floats:
        defined = ~np.isnan(shares + training.shares).any(axis=-1)
        change = np.where(leans, shares - training.shares, 0.0).sum(axis=-1)
        return np.where(defined, change, np.nan)

    replicate, draw_key = None, b""
    marks, codes, n_groups = predicted.marks, predicted.codes, len(predicted.groups)
    if isinstance(resampling, Bootstrap) and marks is not None and codes is not None:
        counted, n_replicates = partial(_shares, marks, codes, n_groups), resampling.replicates
        draws = _Images.of(len(marks), units, rng)
        replicate = partial(draws.replicate, n_replicates, lambda weights: rise(counted(weights)))
        draw_key = draws.name
    amplified = Amplified(
        rise(predicted.shares), training.labels, replicate, draw_key, level_of(resampling)
    )
    null, null_violations = None, None
    samples = _Samples.of(training, predicted, (training_units, units), rng, paired=paired)
    if samples is not None:
        drawn = _draw(samples.units, samples.pairs(), resampling, n_groups)
        amplified = replace(amplified, corrected=drawn.corrected)
        text = _EXCHANGED_ROWS if paired else _EXCHANGED
        null = drawn.null(text, resampling)
        null_violations = drawn.violations(margin, n_groups)
    largest_change = np.abs(predicted.shares - training.shares).max(axis=1)
    n_violations = float((largest_change > margin).sum())
    violations = number(
        "violations", n_violations, n=tally(~np.isnan(largest_change)),
        chance_test=compare_with_null(
            null_violations, n_violations, "higher", "", resolution=resolution_of(resampling)
        ),
    )  # fmt: skip
    return _estimate(
        "cooccurrence_amplification", amplified, resampling, {"margin": margin}, null,
        no_chance=_NO_IMAGES, over_labels=predicted.marks is None, further=[violations],
    )  # fmt: skip


@record
class _Samples:
    """Images of two samples by unit.

    Attributes
    ----------
    first, second : Cooccurrence
    first_unit, second_unit : ndarray of int
        Unit of each image.
    units : Units
    """

    first: Cooccurrence
    second: Cooccurrence
    first_unit: Integers
    second_unit: Integers
    units: Units

    @classmethod
    def of(
        cls,
        first: Cooccurrence,
        second: Cooccurrence,
        units: tuple[Labels | None, Labels | None],
        rng: Seed,
        *,
        paired: bool,
    ) -> _Samples | None:
        """Return the images of both samples, None where either has published shares."""
        if first.marks is None or second.marks is None:
            if paired:
                raise InputError("paired: published shares have no images; expected both counted")
            return None
        n_first, n_second = len(first.marks), len(second.marks)
        second_unit, second_keys = _units(n_second, units[1], "units")
        if paired:
            if n_first != n_second or units[0] is not None:
                raise InputError(
                    f"paired: {n_first} and {n_second} images; expected the same images in both, "
                    "with 'units' alone"
                )
            return cls(first, second, second_unit, second_unit, Units(second_keys, None, rng))
        first_unit, first_keys = _units(n_first, units[0], "training_units", "training\0")
        keys = np.concatenate([first_keys, second_keys])
        of_first = np.arange(len(keys)) < len(first_keys)
        second_unit = second_unit + len(first_keys)
        return cls(first, second, first_unit, second_unit, Units(keys, of_first, rng))

    def pairs(self) -> list[Pair]:
        """Return a pair for each group of each label."""
        return [pair for label in range(len(self.first.labels)) for pair in self._of_label(label)]

    def _of_label(self, label: int) -> Iterator[Pair]:
        members = [
            (unit[labelled], image_set.codes[labelled])
            for image_set, unit in ((self.first, self.first_unit), (self.second, self.second_unit))
            if image_set.marks is not None and image_set.codes is not None
            for labelled in [np.flatnonzero(image_set.marks[:, label] & (image_set.codes >= 0))]
        ]
        rows = np.unique(np.concatenate([unit for unit, _ in members]))
        counts = np.zeros((2, len(rows), len(self.first.groups)))
        for sample_counts, (unit, group) in zip(counts, members, strict=True):
            np.add.at(sample_counts, (np.searchsorted(rows, unit), group), 1.0)
        totals = counts.sum(axis=2)
        for place in range(counts.shape[2]):
            sums = np.stack([counts[0, :, place], totals[0], counts[1, :, place], totals[1]], 1)
            measure = partial(_share_change, groups=counts.shape[2])
            yield Pair(rows, partial(_both, sums, sums[:, [2, 3, 0, 1]]), measure)


def _both(sums: Floats, exchanged: Floats) -> tuple[Floats, Floats]:
    return sums, exchanged


def _share_change(sums: Floats, groups: int) -> Changes:
    """Return the rise of a share from images of a group and a label in both samples."""
    first, n_first, second, n_second = sums.T
    before, after = first / n_first, second / n_second
    ones, zeros = np.ones_like(before), np.zeros_like(before)
    return Changes(
        after - before,
        first - n_first / groups,
        np.stack([ones, -before, zeros, zeros], axis=1),
        np.stack([-1.0 / n_first, before / n_first, 1.0 / n_second, -after / n_second], axis=1),
        opposite=False,
    )


@record
class _Drawn:
    """Cross-fitted changes of a sample, of bootstrap replicates, and of exchanged samples."""

    corrected: Corrected
    exchanged: Replicates | None
    parts: int

    def null(self, text: str, resampling: Resampling | None) -> Null | None:
        """Return the draws of exchanged samples, by label."""
        if self.exchanged is None:
            return None
        exchanged = self.exchanged
        values = _summed(exchanged.side * exchanged.change, self.parts)
        corrected = _summed(exchanged.cross_fitted, self.parts)
        return Null(values, corrected, text, resolution_of(resampling))

    def violations(self, margin: float, groups: int) -> Floats | None:
        """Return how many labels of exchanged samples differ by more than the margin."""
        if self.exchanged is None:
            return None
        change = np.abs(self.exchanged.change)
        return floats((change.reshape(len(change), -1, groups).max(axis=-1) > margin).sum(axis=-1))


def _summed(changes: Floats, parts: int) -> Floats:
    """Return sums over the parts of each label, (replicates, labels)."""
    return floats(changes.reshape(len(changes), -1, parts).sum(axis=-1))


def _draw(
    units: Units, pairs: Sequence[Pair], resampling: Resampling | None, parts: int = 1
) -> _Drawn:
    """Cross-fit the changes of pairs, the pairs of a label next to each other."""
    observed, boot, exchanged = units.observed(pairs), None, None
    if isinstance(resampling, Bootstrap):
        redrawn = units.bootstrap(pairs, resampling.replicates)
        changes = (redrawn.cross_fitted, observed.side * redrawn.change)
        boot = _summed(changes[0], parts), _summed(changes[1], parts)
    if resampling is not None:
        affordable = MAX_DRAWN_CELLS // max(len(units.keys), 1)
        exchanged = units.exchange(pairs, null_draws(resampling, affordable))
    return _Drawn(Corrected(_summed(observed.cross_fitted, parts)[0], boot), exchanged, parts)


@metric(
    _spec(
        name="directional_amplification",
        aliases=("directional bias amplification",),
        definition=(
            "Mean over pairs of attribute and task of the change in the conditional share, signed "
            "by the correlation of the pair."
        ),
        direction="Higher: above 0 predictions follow the correlation further than the labels do.",
        chance="below 0: correlations by chance fall back",
        null="labels and predictions of an image exchange places",
        reference="Wang & Russakovsky 2021",
        errata=(
            "The source's code counts pairs that are exactly independent as 0, its definition as "
            "not correlated; we follow the definition."
        ),
    )
)
def directional_amplification(  # noqa: PLR0913 - one keyword for each choice
    attributes: ArrayLike,
    tasks: ArrayLike,
    predicted: ArrayLike,
    *,
    direction: Direction = "attribute_to_task",
    training: tuple[ArrayLike, ArrayLike] | None = None,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far predictions follow the correlation of attributes and tasks (Wang & Russakovsky 2021).

    Parameters
    ----------
    attributes : array-like of bool, shape (n, a)
        Attributes of each image, such as one column per group.
    tasks : array-like of bool, shape (n, t)
        True labels of each image.
    predicted : array-like of bool, shape (n, t) or (n, a)
        Predicted tasks, or predicted attributes from task to attribute.
    direction : "attribute_to_task" or "task_to_attribute"
        Whether the attribute changes predictions of the task, or the task those of the attribute.
    training : tuple of attributes and tasks, optional
        Training images, whose correlations set the sign of each pair; the test images unless given.
    names : tuple of two sequences of str, optional
        Of attributes and tasks; their numbers unless given.
    units : array-like (n,), optional
        What repeats among the images; resampled as a whole.
    resampling : Bootstrap, Permutation or None
        Replicates over images; the signs of pairs stay as they are.
    rng : int or Generator
        Seed of the replicates.

    Returns
    -------
    Estimate
        In [-1, 1]: mean over pairs of the change in the conditional share, counted positive where
        it goes with the correlation. Above 0 the model amplifies. `.by` has every pair,
        "attribute, task". Pairs without images are left out and counted.

    Raises
    ------
    InputError
        If shapes differ.

    Notes
    -----
    Erratum: the definition counts a pair that is exactly independent as not correlated; the
    source's code counts it as 0. We follow the definition.

    References
    ----------
    Wang & Russakovsky 2021, ICML, "Directional Bias Amplification".
    """
    attribute_marks, task_marks = _marks(attributes, "attributes"), _marks(tasks, "tasks")
    onward = direction == "attribute_to_task"
    condition_marks, true_marks = (
        (attribute_marks, task_marks) if onward else (task_marks, attribute_marks)
    )
    predicted_marks = _marks(predicted, "predicted")
    _check_marks(attribute_marks, task_marks, predicted_marks, onward=onward)
    training_marks = (
        (attribute_marks, task_marks)
        if training is None
        else tuple(map(_marks, training, ("training",) * 2))
    )
    signs = _signs(*training_marks)
    signs = (signs if onward else signs.T)[None]
    change, condition = floats(predicted_marks) - true_marks, floats(condition_marks)

    def moved(weights: Floats, directed: Floats | None = None) -> Floats:
        counted = weights if directed is None else directed
        sums = np.stack([condition.T @ (row[:, None] * change) for row in counted])
        with unwarned():
            shift = signs * sums / (weights @ condition)[:, :, None]
        flat = shift if onward else shift.swapaxes(1, 2)
        return floats(flat.reshape(len(weights), -1))

    draws, replicate = _Images.of(len(attribute_marks), units, rng), None
    if isinstance(resampling, Bootstrap):
        replicate = partial(draws.replicate, resampling.replicates, moved)
    first, second = names or (None, None)
    labels = tuple(
        f"{attribute}, {task}"
        for attribute in _names(first, attribute_marks.shape[1])
        for task in _names(second, task_marks.shape[1])
    )
    values = moved(np.ones((1, len(attribute_marks))))[0]
    amplified = Amplified(values, labels, replicate, draws.name, level_of(resampling))
    if training is None:
        marks = condition_marks, true_marks, predicted_marks
        pairs = _conditional_pairs(*marks, draws.unit, onward=onward)
        drawn = _draw(Units(draws.keys, None, rng), pairs, resampling)
        amplified = replace(amplified, corrected=drawn.corrected)
        null = drawn.null(_EXCHANGED_ROWS, resampling)
    else:
        null = draws.exchange(resampling, moved)
    return _estimate(
        "directional_amplification", amplified, resampling, {"direction": direction}, null
    )


def _signs(attributes: Booleans, tasks: Booleans) -> Floats:
    """Return 1 for each pair of attribute and task that is positively correlated, else -1."""
    joint_counts = integers(attributes.T) @ integers(tasks)
    independent_counts = attributes.sum(axis=0)[:, None] * tasks.sum(axis=0)
    return np.where(joint_counts * len(attributes) > independent_counts, 1.0, -1.0)


def _conditional_pairs(
    condition: Booleans, truth: Booleans, predicted: Booleans, unit: Integers, *, onward: bool
) -> list[Pair]:
    """Return a pair for each attribute and task, in this order."""
    n_units = int(unit.max(initial=-1)) + 1

    def add(marks: Floats) -> Floats:
        return floats(np.bincount(unit, marks, n_units))

    def sums_of(columns: tuple[int, int]) -> tuple[Floats, Floats]:
        member, true, guess = (
            floats(marks[:, column])
            for marks, column in zip(
                (condition, truth, predicted), (*columns, columns[1]), strict=True
            )
        )
        members, rows, change = add(member), add(np.ones(len(unit))), add(member * (guess - true))
        sums, exchanged = (
            np.stack([add(member * label), members, add(label), rows, sign * change], axis=1)
            for label, sign in ((true, 1.0), (guess, -1.0))
        )
        return sums, exchanged

    columns = [
        (place, other) for place in range(condition.shape[1]) for other in range(truth.shape[1])
    ]
    columns = columns if onward else sorted(columns, key=lambda pair: (pair[1], pair[0]))
    return [Pair(slice(None), partial(sums_of, pair), _conditional_change) for pair in columns]


def _conditional_change(sums: Floats) -> Changes:
    """Return the change of a conditional share from sums over images.

    The sums are images with both, with the condition, with the label, all images, and the
    predicted less the true labels of images with the condition.
    """
    both, members, labelled, rows, difference = sums.T
    condition, label, change = members / rows, labelled / rows, difference / members
    leaning, zeros = (both * rows - members * labelled) / rows, np.zeros_like(both)
    of_row = condition * label - leaning / rows
    return Changes(
        change,
        leaning,
        np.stack([np.ones_like(both), -label, -condition, of_row, zeros], axis=1),
        np.stack([zeros, -change / members, zeros, zeros, 1.0 / members], axis=1),
        opposite=True,
    )


@metric(
    MetricSpec(
        name="amplification_change",
        kinds=("review",),
        range=(-2.0, 2.0),
        harm="either",
        definition="Amplification of the second model minus that of the first, on the same images.",
        direction="Either: below 0 the second model amplifies less.",
        chance=f"none: {_NO_CHANCE}",
        interval="percentile bootstrap over images; Student's t over labels without images",
        reference="Zhao et al. 2017; Wang & Russakovsky 2021",
    )
)
def amplification_change(before: Estimate, after: Estimate) -> Estimate:
    """Paired change of an amplification: after minus before.

    Parameters
    ----------
    before, after : Estimate
        What `cooccurrence_amplification` or `directional_amplification` returned for two models,
        on the same images with the same `units`, `resampling` and `rng`; or for published shares
        of the same labels.

    Returns
    -------
    Estimate
        In [-2, 2]; below 0 the second model amplifies less. `.by` has every label.

    Raises
    ------
    InputError
        If the estimates are of other metrics, labels or images.
    """
    first, second = before.ends, after.ends
    if not isinstance(first, Amplified) or not isinstance(second, Amplified):
        raise InputError("before, after: expected amplification estimates with an interval")
    same = (first.names, first.drawn_from, before.metric, dict(before.params)) == (
        second.names, second.drawn_from, after.metric, dict(after.params)
    )  # fmt: skip
    if not same or (first.boot is None) != (second.boot is None):
        raise InputError(
            "before, after: other labels, images, parameters or seeds; expected the same, so that "
            "they are paired"
        )
    return _estimate(
        "amplification_change",
        second.minus(first),
        Bootstrap(),
        {**before.params, "metric": before.metric},
        None,
        over_labels=first.boot is None,
    )


@record
class _Images:
    """Bootstrap weights of images, by unit."""

    unit: Integers
    keys: Words
    seed: Seed
    name: bytes

    @classmethod
    def of(cls, n: int, units: Labels | None, rng: Seed) -> _Images:
        unit, keys = _units(n, units, "units")
        draw = unit_counts(rng, keys[:1], range(64)).tobytes() if n else b""
        return cls(unit, keys, rng, keys[unit].tobytes() + draw)

    def replicate(self, replicates: int, statistic: Callable[[Floats], Floats]) -> Floats:
        """Return the statistic of every replicate, shape (replicates, labels)."""
        blocks = []
        for start, size in block_sizes(replicates, len(self.unit)):
            times = unit_counts(self.seed, self.keys, range(start, start + size))
            blocks.append(statistic(floats(times[:, self.unit])))
        return np.concatenate(blocks)

    def exchange(
        self, resampling: Resampling | None, statistic: Callable[[Floats, Floats], Floats]
    ) -> Null | None:
        """Return draws in which units exchange labels and predictions, directions fixed."""
        if resampling is None or not len(self.unit):
            return None
        blocks = []
        draws = null_draws(resampling, MAX_DRAWN_CELLS // len(self.unit))
        for _, swapped in Units(self.keys, None, self.seed).exchanged(draws):
            directed = 1.0 - 2.0 * swapped[:, self.unit]
            blocks.append(statistic(np.ones_like(directed), directed))
        values = np.concatenate(blocks)
        return Null(values, values, _EXCHANGED_ROWS, resolution_of(resampling))


def _units(n: int, units: Labels | None, subject: str, prefix: str = "") -> tuple[Integers, Words]:
    """Return the unit of each image and the keys of units; each image unless they are named."""
    if units is None:
        places = np.arange(n)
        named = unit_keys([f"{prefix}{place}" for place in places.tolist()])
        return places, named if prefix else place_keys(places)
    unit, names = unit_codes(units, n, subject)
    return unit, unit_keys([f"{prefix}{name}" for name in names])


def _check_marks(
    attributes: Booleans, tasks: Booleans, predicted: Booleans, *, onward: bool
) -> None:
    """Check that marks are of the same images, and predictions of the marks that they predict."""
    check_lengths({"attributes": len(attributes), "tasks": len(tasks)})
    name, true = ("tasks", tasks) if onward else ("attributes", attributes)
    if predicted.shape != true.shape:
        raise InputError(f"predicted: shape {predicted.shape}; expected {true.shape}, as {name}")


def _marks(values: ArrayLike, subject: str) -> Booleans:
    marks = np.asarray(values)
    if marks.ndim != 2 or not np.isin(marks, (0, 1)).all():
        raise InputError(
            f"{subject}: shape {marks.shape}; expected true or false, (images, labels)"
        )
    return marks.astype(bool)


def _names(names: Sequence[str] | None, n_columns: int) -> Strings:
    labels = tuple(map(str, range(n_columns) if names is None else names))
    if len(labels) != n_columns:
        raise InputError(f"names: {len(labels)} names for {n_columns} columns")
    return labels


def _estimate(
    metric: str,
    amplified: Amplified,
    resampling: Resampling | None,
    params: Fields,
    null: Null | None,
    *,
    no_chance: str = _NO_CHANCE,
    over_labels: bool = False,
    further: Sequence[Part] = (),
) -> Estimate:
    defined = ~np.isnan(amplified.values)
    value = float(amplified.values[defined].mean()) if defined.any() else np.nan
    corrected = np.nan
    if amplified.corrected is not None:
        corrected = float(nan_mean(amplified.corrected.values))
    images = None if over_labels else amplified.replicates
    method = bootstrap_method(images, resampling, "images", kind=amplified.method)
    if over_labels and resampling is not None:
        method = _OVER_LABELS
    interval = defined.any() and resampling is not None and (over_labels or images is not None)
    test = UNTESTED
    if null is not None:
        test = null.test(value if amplified.corrected is None else corrected)
    return make_estimate(
        metric,
        value,
        {"labels": tally(defined)},
        method,
        **test.fields(no_chance),
        params=params,
        by=[*amplified.parts(metric, null), *further],
        excluded={"labels without images": tally(~defined)},
        unit="label" if over_labels else "image",
        reason="" if defined.any() else "no label has images in both",
        ends=amplified if interval else no_ends,
        corrected=corrected,
    )
