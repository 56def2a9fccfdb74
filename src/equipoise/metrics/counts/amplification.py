"""Bias amplification: how far predictions go beyond the co-occurrence of groups and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Booleans,
    Estimate,
    Fields,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Integers32,
    Labels,
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
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import (
    bootstrap_method,
    ends_of,
    explain_undefined,
    nan_mean,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import SPECS, MetricSpec, make_estimate, register
from equipoise.stats.draws import block_sizes
from equipoise.stats.intervals import ClosedForm, mean_t
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, place_keys, unit_counts, unit_keys

Direction = Literal["attribute_to_task", "task_to_attribute"]

_NO_CHANCE = "no groups are exchanged; compare the interval with 0"
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
class Amplified:
    """The `ends` of an amplification: its value by label, and replicates over images.

    Attributes
    ----------
    values : ndarray, shape (labels,)
    names : tuple of str
    boot : ndarray, shape (replicates, labels), or None
    drawn_from : bytes
        Images and seed of the replicates: two with the same are paired.
    level : float
    """

    values: Floats
    names: Strings
    boot: Floats | None
    drawn_from: bytes
    level: float

    def __call__(self, level: float) -> Span:
        """Return the ends of the mean at a confidence level."""
        if self.boot is None:
            return ClosedForm(mean_t, (self.values,))(level)
        return ends_of(nan_mean(self.boot))(level)

    def minus(self, other: Amplified) -> Amplified:
        """Return the paired difference."""
        boot = None
        if self.boot is not None and other.boot is not None:
            boot = self.boot - other.boot
        return Amplified(self.values - other.values, self.names, boot, self.drawn_from, self.level)

    def parts(self, metric: str) -> list[Part]:
        """Return a part for each label."""
        parts = []
        for place, (name, value) in enumerate(zip(self.names, self.values.tolist(), strict=True)):
            ends = no_ends if self.boot is None else ends_of(self.boot, place)
            reason = explain_undefined(value, "no image with the label")
            parts.append(
                Part(metric, name, value, *(no_ends if reason else ends)(self.level), reason=reason)
            )
        return parts


def _shares(marks: Booleans, codes: Integers32, groups: int, weights: Floats) -> Floats:
    """Return shares of groups by label, (replicates, labels, groups), from weights of images."""
    member = codes[:, None] == np.arange(groups)
    counts = np.stack([floats(marks.T) @ (row[:, None] * member) for row in weights])
    with unwarned():
        return floats(counts / counts.sum(axis=-1, keepdims=True))


def cooccurrence_amplification(
    training: Cooccurrence,
    predicted: Cooccurrence,
    *,
    margin: float = 0.05,
    units: Labels | None = None,
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
    units : array-like (n,), optional
        What repeats among the predicted images; resampled as a whole.
    resampling : Bootstrap, Permutation or None
        Replicates over predicted images; training shares stay as they are.
    rng : int or Generator
        Seed of the replicates.

    Returns
    -------
    Estimate
        In [-1, 1]: mean over labels of the rise in the share of groups whose training share is
        above 1 / groups. Above 0 the model amplifies, below it reduces. `.by` has every label, and
        the part `violations`: labels in which a share differs by more than the margin. Labels
        without a share are left out and counted. Published shares have Student's t over labels.

    Raises
    ------
    InputError
        If labels or groups differ.

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

    boot, draw_key = None, b""
    marks, codes, n_groups = predicted.marks, predicted.codes, len(predicted.groups)
    if isinstance(resampling, Bootstrap) and marks is not None and codes is not None:
        counted = partial(_shares, marks, codes, n_groups)
        draws = _Images.of(len(marks), units, rng)
        boot = draws.replicate(resampling.replicates, lambda weights: rise(counted(weights)))
        draw_key = draws.name
    largest_change = np.abs(predicted.shares - training.shares).max(axis=1)
    amplified = Amplified(
        rise(predicted.shares), training.labels, boot, draw_key, level_of(resampling)
    )
    violations = Part(
        "violations", "", float((largest_change > margin).sum()), n=tally(~np.isnan(largest_change))
    )
    return _estimate(
        "cooccurrence_amplification", amplified, resampling, {"margin": margin},
        over_labels=predicted.marks is None, further=[violations],
    )  # fmt: skip


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
    if predicted_marks.shape != true_marks.shape or len(attribute_marks) != len(task_marks):
        raise InputError(f"predicted: shape {predicted_marks.shape}; expected {true_marks.shape}")
    training_marks = (
        (attribute_marks, task_marks)
        if training is None
        else tuple(map(_marks, training, ("training",) * 2))
    )
    joint_counts = integers(training_marks[0].T) @ integers(training_marks[1])
    independent_counts = training_marks[0].sum(axis=0)[:, None] * training_marks[1].sum(axis=0)
    signs = np.where(joint_counts * len(training_marks[0]) > independent_counts, 1.0, -1.0)
    signs = (signs if onward else signs.T)[None]
    change, condition = floats(predicted_marks) - true_marks, floats(condition_marks)

    def moved(weights: Floats) -> Floats:
        sums = np.stack([condition.T @ (row[:, None] * change) for row in weights])
        with unwarned():
            shift = signs * sums / (weights @ condition)[:, :, None]
        flat = shift if onward else shift.swapaxes(1, 2)
        return floats(flat.reshape(len(weights), -1))

    draws, boot = _Images.of(len(attribute_marks), units, rng), None
    if isinstance(resampling, Bootstrap):
        boot = draws.replicate(resampling.replicates, moved)
    first, second = names or (None, None)
    labels = tuple(
        f"{attribute}, {task}"
        for attribute in _names(first, attribute_marks.shape[1])
        for task in _names(second, task_marks.shape[1])
    )
    values = moved(np.ones((1, len(attribute_marks))))[0]
    amplified = Amplified(values, labels, boot, draws.name, level_of(resampling))
    return _estimate("directional_amplification", amplified, resampling, {"direction": direction})


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
        raise InputError("before, after: expected what an amplification with an interval returned")
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
        unit, keys = np.arange(n), place_keys(np.arange(n))
        if units is not None:
            unit, names = unit_codes(units, n, "units")
            keys = unit_keys(names)
        draw = unit_counts(rng, keys[:1], range(64)).tobytes() if n else b""
        return cls(unit, keys, rng, keys[unit].tobytes() + draw)

    def replicate(self, replicates: int, statistic: Callable[[Floats], Floats]) -> Floats:
        """Return the statistic of every replicate, shape (replicates, labels)."""
        blocks = []
        for start, size in block_sizes(replicates, len(self.unit)):
            times = unit_counts(self.seed, self.keys, range(start, start + size))
            blocks.append(statistic(floats(times[:, self.unit])))
        return np.concatenate(blocks)


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
    *,
    over_labels: bool = False,
    further: Sequence[Part] = (),
) -> Estimate:
    defined = ~np.isnan(amplified.values)
    value = float(amplified.values[defined].mean()) if defined.any() else np.nan
    method = bootstrap_method(amplified.boot, resampling, "images")
    if over_labels and resampling is not None:
        method = _OVER_LABELS
    interval = (
        defined.any() and (over_labels or amplified.boot is not None) and resampling is not None
    )
    parts = [*amplified.parts(metric), *further]
    return make_estimate(
        metric,
        value,
        {"labels": tally(defined)},
        method,
        no_chance=_NO_CHANCE,
        params=params,
        by=parts,
        excluded={"labels without images": tally(~defined)},
        unit="label" if over_labels else "image",
        reason="" if defined.any() else "no label has images in both",
        ends=amplified if interval else no_ends,
    )


def _spec(name: str, **fields: Any) -> MetricSpec:
    return MetricSpec(
        name=name, kinds=("review",), range=(-1.0, 1.0), chance=f"none: {_NO_CHANCE}",
        interval="percentile bootstrap over images; Student's t over labels without images",
        **fields,
    )  # fmt: skip


register(
    _spec(
        "cooccurrence_amplification",
        definition=(
            "Mean over labels of the rise, from training images to predictions, in the share of "
            "groups that the training images over-represent."
        ),
        direction="Higher: above 0 the model amplifies the bias of its training images.",
        reference="Zhao et al. 2017",
    ),
    _spec(
        "directional_amplification",
        definition=(
            "Mean over pairs of attribute and task of the change in the conditional share, signed "
            "by the correlation of the pair."
        ),
        direction="Higher: above 0 predictions follow the correlation further than the labels do.",
        reference="Wang & Russakovsky 2021",
        errata=(
            "The source's code counts pairs that are exactly independent as 0, its definition as "
            "not correlated; we follow the definition."
        ),
    ),
)
register(
    MetricSpec(
        name="amplification_change",
        kinds=("review",),
        range=(-2.0, 2.0),
        harm="either",
        definition="Amplification of the second model minus that of the first, on the same images.",
        direction="Either: below 0 the second model amplifies less.",
        chance=f"none: {_NO_CHANCE}",
        interval=SPECS["directional_amplification"].interval,
        reference="Zhao et al. 2017; Wang & Russakovsky 2021",
    )
)
