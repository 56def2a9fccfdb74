"""Predictions of several models on the same rows: paired replicates, and models swapped.

Rows are counted by true class, every model's label and group. One resampled table then gives
every model's table, so differences between models are paired; under the null hypothesis that
two models are alike, exchanging their labels on any row changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from equipoise.core import (
    Ends,
    Estimate,
    Facts,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    Integers32,
    Labels,
    NullHypothesis,
    Part,
    Strings,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    record,
    tally,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.labels import Encoded
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    compare_with_null,
    folded,
    folded_ends,
    number,
    replicates_text,
)
from equipoise.metrics.labels.table import Counts, count, recoded, sum_by
from equipoise.metrics.measure import DEFAULT, NO_REPLICATES
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate
from equipoise.stats.draws import ItemSampler, TableSampler, block_sizes, group_order
from equipoise.stats.intervals import divide, mean_t, percentile, wilson
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, null_draws
from equipoise.stats.streams import Seed, stream, unit_uniforms


@record
class Joint:
    """Counts by true class, every model's label and group, over rows that all models answered.

    Attributes
    ----------
    counts : Counts
        Its predicted label is the combination of all models' labels.
    models : tuple of str
    classes : tuple of str
        Every label that occurs as truth or prediction.
    truth : ndarray of int64, shape (outcomes,)
    labels : ndarray of int64, shape (outcomes, models)
        Indices into `classes`.
    """

    counts: Counts
    models: Strings
    classes: Strings
    truth: Integers
    labels: Integers

    def alone(self, model: int) -> Seen:
        """Return what one model shows of the outcomes."""
        keys, index = _distinct([self.truth, self.labels[:, model]])
        table = sum_by(index, keys.shape[1], self.counts.observed)[0]
        return Seen(self._counts(keys, table), index)

    def pair(self, first: int, second: int) -> Pair:
        """Return two models' labels with every outcome that swapping them can reach."""
        truth, first_labels, second_labels = (
            self.truth,
            self.labels[:, first],
            self.labels[:, second],
        )
        keys, inverse = _distinct(
            [truth, first_labels, second_labels], [truth, second_labels, first_labels]
        )
        direct, mirrored = np.split(inverse, 2)
        partner = np.empty(keys.shape[1], dtype=np.int64)
        partner[direct], partner[mirrored] = mirrored, direct
        single_keys, index = _distinct(keys[[0, 1]], keys[[0, 2]])
        places = np.split(index, 2)
        joint = sum_by(direct, keys.shape[1], self.counts.observed)
        model_tables = [
            sum_by(outcome_places, single_keys.shape[1], joint)[0] for outcome_places in places
        ]
        counts = self._counts(single_keys, 0.5 * (model_tables[0] + model_tables[1]))
        return Pair(
            self,
            counts,
            direct,
            partner,
            [Seen(counts, outcome_places) for outcome_places in places],
        )

    def _counts(self, keys: Integers, table: Floats) -> Counts:
        return replace(
            self.counts,
            classes=self.classes,
            truth=keys[0],
            prediction=keys[1],
            sampler=TableSampler(table),
        )


def _combine(codes: Integers, n_classes: int) -> tuple[Integers, Integers]:
    """Return the distinct columns of codes, sorted, and the place of each column among them.

    Codes of a column are one number where it has room for them, which sorts fifty times as fast.
    """
    shape = (n_classes,) * len(codes)
    if math.prod(shape) > np.iinfo(np.int64).max:
        return _distinct(codes)
    numbers, index = np.unique(np.ravel_multi_index(tuple(codes), shape), return_inverse=True)
    return np.stack(np.unravel_index(numbers, shape)), index


def _distinct(*blocks: Sequence[Integers] | Integers) -> tuple[Integers, Integers]:
    """Return the distinct columns of blocks, sorted, and the place of each column among them."""
    keys, index = np.unique(np.hstack(blocks), axis=1, return_inverse=True)
    return keys, index.ravel()


@record
class Seen:
    """One model's counts, and where each outcome of several models falls in them."""

    counts: Counts
    index: Integers

    def tables(self, tables: Floats) -> Floats:
        """Turn tables (r, outcomes, groups) of several models into this model's."""
        return sum_by(self.index, len(self.counts.truth), tables)


@record
class Pair:
    """Two models' labels on the same rows.

    Attributes
    ----------
    joint : Joint
    counts : Counts
        The form (true class, one label) that measures read; its table is the mean of
        both models' tables, which swapping them leaves as it is.
    pair_outcome : ndarray of int64
        Where each joint outcome falls among the pair's outcomes.
    partner : ndarray of int64
        The outcome with the two labels swapped.
    views : list of Seen
        What the first and the second model show of the pair's outcomes.
    """

    joint: Joint
    counts: Counts
    pair_outcome: Integers
    partner: Integers
    views: list[Seen]

    def tables(self, tables: Floats) -> Floats:
        """Sum joint tables (r, outcomes, groups) over the pair's outcomes."""
        return sum_by(self.pair_outcome, len(self.partner), tables)

    def swapped(self, replicates: int, seed: Seed) -> Iterator[Floats]:
        """Yield tables in which each row, or unit, swaps the two models with probability 1/2."""
        sampler = self.joint.counts.sampler
        if isinstance(sampler, ItemSampler):
            outcome = self.pair_outcome[sampler.outcome]
            mirrored, unit = self.partner[outcome], sampler.unit[sampler.item]
            size, groups = len(self.partner), sampler.shape[1]
            for start, n_tables in block_sizes(replicates, max(size * groups, len(sampler.keys))):
                replicate = range(start, start + n_tables)
                counted = []
                for flip in unit_uniforms(seed, "swap", sampler.keys, replicate) < 0.5:
                    places = np.where(flip[unit], mirrored, outcome) * groups
                    flat = places + sampler.group[sampler.item]
                    counted.append(np.bincount(flat, sampler.weight, size * groups))
                yield np.reshape(counted, (n_tables, size, groups))
            return
        observed, turned = self._ordered(self.tables(self.joint.counts.observed)[0])
        upper = np.flatnonzero(self.partner > np.arange(len(self.partner)))
        pair_sums = integers(observed[upper] + observed[self.partner[upper]])
        order = group_order(observed)
        for start, size in block_sizes(replicates, observed.size):
            rng = stream(seed, "swap", start)
            tables = np.broadcast_to(observed, (size, *observed.shape)).copy()
            unswapped = rng.binomial(pair_sums[:, order], 0.5, size=(size, *pair_sums.shape))
            tables[:, upper] = unswapped[:, :, np.argsort(order)]
            tables[:, self.partner[upper]] = pair_sums - tables[:, upper]
            yield tables[:, self.partner] if turned else tables

    def _ordered(self, observed: Floats) -> tuple[Floats, bool]:
        """Return the table with its models in an order of their own, and if they swapped places.

        Draws of it are the same whichever model comes first.
        """
        mirrored = observed[self.partner]
        first, second = (table[:, group_order(table)].tobytes() for table in (observed, mirrored))
        return (observed, False) if first <= second else (mirrored, True)


def join(
    y_true: Labels,
    predictions: Mapping[str, Labels],
    groups: GroupLabels,
    *,
    units: Labels | None = None,
) -> Joint:
    """Count the rows that every model answered by true class, all labels and group.

    Parameters
    ----------
    y_true : array-like, shape (n,)
    predictions : mapping of str to array-like, shape (n,)
        Best label of each model; missing where it gave none.
    groups : array-like (n,), mapping, or Groups
    units : array-like, shape (n,), optional
        Names of the units that repeat.

    Raises
    ------
    InputError
        With fewer than two models, when lengths differ, or no row is complete.
    """
    if len(predictions) < 2:
        raise InputError(f"predictions: {len(predictions)} models; expected at least two")
    encoded = [encode(y_true, subject="y_true")]
    for name, labels in predictions.items():
        encoded.append(encode(labels, subject=f"predictions[{name!r}]"))
        check_lengths({"y_true": len(encoded[0][0]), f"predictions[{name!r}]": len(encoded[-1][0])})
    classes, columns = recoded(*encoded)
    codes = np.stack(columns)
    complete = (codes >= 0).all(axis=0)
    combined = np.full(codes.shape[1], -1, dtype=np.int32)
    order = _order_of_models(codes[0], codes[1:], len(classes))
    combinations, combined[complete] = _combine(codes[1:][order][:, complete], len(classes))
    combinations = combinations[np.argsort(order)]
    # Classes and combinations are counted under their numbers.
    numbers = tuple(map(str, range(max(len(classes), combinations.shape[1]))))
    truth = Encoded(codes[0].astype(np.int32), numbers)
    labels = Encoded(combined.astype(np.int32), numbers)
    counts = count(truth, labels, Groups.of(groups), units=units)
    place = np.array([int(name) for name in counts.classes])
    model_labels = combinations[:, place[counts.prediction]].T
    return Joint(counts, tuple(predictions), classes, place[counts.truth], model_labels)


def _order_of_models(truth: Integers, labels: Integers, n_classes: int) -> list[int]:
    """Order models by their own labels, so that naming another first doesn't change a draw."""

    def content(model: int) -> tuple[bytes, ...]:
        cells = (truth + 1) * (n_classes + 1) + labels[model] + 1
        return *(part.tobytes() for part in np.unique(cells, return_counts=True)), cells.tobytes()

    return sorted(range(len(labels)), key=content)


# Multiplications that make the exact distribution of swapped differences: a second of work.
_EXACT_WORK = 200_000_000
MODELS = ("trained on balanced data", "trained on imbalanced data")


@record
class _Paired:
    """Right answers of two models on the same images.

    Attributes
    ----------
    right : ndarray of int64, shape (2, images)
        Right answers of each model, summed over the runs.
    by_run : ndarray, shape (2, runs)
        Accuracy of each training run.
    missing : int
        Images without a true class or without some prediction.
    """

    right: Integers
    by_run: Floats
    missing: int

    @property
    def images(self) -> int:
        """How many there are."""
        return int(self.right.shape[1])

    @cached_property
    def most(self) -> int:
        """Answers of a model in all runs."""
        return self.images * len(self.by_run[0])

    @cached_property
    def rates(self) -> Floats:
        """Accuracy of each model."""
        return floats(self.right.sum(axis=1) / self.most)

    def swaps(self, resampling: Resampling, rng: Seed) -> tuple[Floats, Floats | None, str]:
        """Return differences in accuracy when each image may swap the two models.

        All of them with their probabilities where that is feasible, else draws and None; and the
        null hypothesis in words.
        """
        sums = np.abs(self.right[0] - self.right[1])
        sizes, counts = np.unique(sums[sums > 0], return_counts=True)
        null = "the two models are exchangeable on each image"
        lengths = 2 * sizes * counts + 1
        # Multiplications of the convolutions.
        if ((np.cumsum(lengths - 1) + 1)[1:] * lengths[1:]).sum() <= _EXACT_WORK:
            values, weights = _enumerated(sizes, counts)
            return values / self.most, weights, f"{null}; every swap enumerated"
        draws = null_draws(resampling)
        swapped = stream(rng, "swap").binomial(counts, 0.5, size=(draws, len(counts)))
        values = ((2 * swapped - counts) * sizes).sum(axis=1)
        return values / self.most, None, f"{null}; {draws} swaps"

    def replicates(self, n_replicates: int, rng: Seed) -> Floats:
        """Return accuracies of both models on resampled images, shape (many, 2)."""
        # Images of one joint outcome (who was right, how often) are alike.
        kinds, times = np.unique(self.right, axis=1, return_counts=True)
        shares = times / self.images
        resampled = stream(rng, "bootstrap").multinomial(self.images, shares, size=n_replicates)
        return np.stack([(resampled * kind).sum(axis=1) for kind in kinds], axis=1) / self.most


_Codes = tuple[Integers32, Strings]


def _pair(y_true: Any, predictions: Facts) -> _Paired:
    encoded = [encode(y_true, subject="y_true")]
    n = len(encoded[0][0])
    for subject, predicted in predictions.items():
        array = np.atleast_2d(np.asarray(predicted))
        if array.ndim != 2 or array.shape[1] != n:
            raise InputError(
                f"{subject}: shape {np.shape(predicted)}; expected ({n},) or (runs, {n}), as y_true"
            )
        encoded.append(encode(array.ravel(), subject=subject))
    _check_second(*encoded)
    _, (truth, *labels) = recoded(*encoded)
    first, second = (len(codes) // n for codes in labels)
    if first != second:
        raise InputError(f"y_pred_biased: {second} runs; expected {first}, as in y_pred_unbiased")
    model_codes = np.reshape(labels, (2, first, n))
    complete = (truth >= 0) & (model_codes >= 0).all(axis=(0, 1))
    if not complete.any():
        raise InputError("no image has a true class and a prediction of both models; expected one")
    hits = integers(model_codes[:, :, complete] == truth[complete])
    return _Paired(hits.sum(axis=1), hits.sum(axis=2) / complete.sum(), tally(~complete))


def _check_second(truth: _Codes, first: _Codes, second: _Codes) -> None:
    """Refuse a second prediction most of whose labels are no classes, such as groups."""
    codes, labels = second
    unknown = np.array([label not in {*truth[1], *first[1]} for label in labels], dtype=bool)
    present = codes[codes >= 0]
    # With one true class, 1 may stand for right answers and 0 for wrong ones.
    if len(truth[1]) > 1 and len(present) and unknown[present].mean() > 0.5:
        name = labels[int(np.flatnonzero(unknown)[0])]
        raise InputError(
            f"y_pred_biased: most labels aren't classes of y_true or y_pred_unbiased, such as "
            f"{name!r}; expected the predictions of a second model. To do: for the difference "
            "between groups, call accuracy.difference(y_true, y_pred, groups)"
        )


def _enumerated(sizes: Integers, counts: Integers) -> tuple[Floats, Floats]:
    """Return every sum of ±size, and its probability when signs are fair coins."""
    total = np.ones(1)
    for size, times in zip(sizes.tolist(), counts.tolist(), strict=True):
        mass = np.zeros(2 * size * times + 1)
        mass[:: 2 * size] = scipy.stats.binom.pmf(np.arange(times + 1), times, 0.5)
        total = floats(np.convolve(total, mass))
    possible = np.flatnonzero(total > 0)
    sums = floats(possible) - (len(total) - 1) / 2.0
    return sums, total[possible]


@metric(
    MetricSpec(
        name="accuracy_difference",
        null_kind=NullHypothesis.MODELS,
        kinds=("predictions",),
        unit="points",
        definition=(
            "Absolute difference of the accuracies of two models on one test set, one trained on "
            "balanced and one on imbalanced data; also in per cent of the first."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: imbalanced training data cost more accuracy.",
        chance="above 0",
        interval="paired percentile bootstrap over test images",
        null="the two predictions of an image are exchangeable",
        reference="Mandal 2024, chapter 7 (Accuracy Difference); McNemar 1947 (exact test)",
    )
)
def accuracy_difference(
    y_true: Labels,
    y_pred_unbiased: Labels,
    y_pred_biased: Labels,
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Absolute difference in accuracy of two models on one balanced test set.

    Δ = |A_unbiased − A_biased| and %Δ = 100 Δ / A_unbiased, where one model was trained on
    balanced and the other on imbalanced data.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True classes.
    y_pred_unbiased, y_pred_biased : array-like, shape (n,) or (runs, n)
        Labels predicted by the model trained on balanced and the one trained on imbalanced
        data; with repeated training, one row per run, as many for both.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Δ in [0, 1], higher is worse. Interval: paired percentile bootstrap over images of the
        signed difference, folded at 0, so that it can reach 0. Chance: the two models swap
        their predictions on each image with probability 1/2; p is exact (McNemar's
        test for one run) wherever the distribution can be enumerated. `.by` has Δ with the
        accuracy of both models, "percent_difference" = %Δ, and with several runs
        "mean_over_runs": the mean of the differences run by run, with its t-interval, folded.

    Raises
    ------
    InputError
        When lengths or numbers of runs differ, no image is complete, or most labels of the second
        model are those of no class, as those of groups are. `accuracy.difference` compares groups.

    References
    ----------
    Mandal 2024, chapter 7; McNemar 1947; Fay 2010 (exact McNemar test).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.accuracy_difference(true, true, pred)
    <accuracy_difference 0.167 [0.100, 0.233]; chance 0.029, p = 1.9e-06, n = 240 in 2 groups>
    """
    models = {"y_pred_unbiased": y_pred_unbiased, "y_pred_biased": y_pred_biased}
    paired = _pair(y_true, models)
    value, n = abs(float(paired.rates[0] - paired.rates[1])), paired.images
    chance_test, boot, method = UNTESTED, None, NO_REPLICATES
    if resampling is not None:
        differences, weights, text = paired.swaps(resampling, rng)
        chance_test = compare_with_null(np.abs(differences), value, "higher", text, weights=weights)
    if isinstance(resampling, Bootstrap):
        boot = paired.replicates(resampling.replicates, rng)
        method = f"paired {replicates_text(boot, 'images')}"
    ends = no_ends if boot is None else folded_ends(boot[:, 0] - boot[:, 1])
    return make_estimate(
        "accuracy_difference",
        value,
        dict.fromkeys(MODELS, n),
        method,
        params={"runs": paired.by_run.shape[1]},
        **chance_test.fields("resampling is off"),
        by=_parts(paired, boot, ends, chance_test, level_of(resampling)),
        excluded={"missing true class or prediction": paired.missing},
        unit="row",
        ends=ends,
    )


def _parts(
    paired: _Paired, boot: Floats | None, ends: Ends, chance_test: ChanceTest, level: float
) -> Iterator[Part]:
    """Yield the difference with both accuracies, in per cent, and as mean over runs."""
    rates, n = paired.rates, paired.images
    difference = abs(float(rates[0] - rates[1]))
    low = high = nans(2)
    if len(paired.by_run[0]) == 1:
        # Each image is one independent answer.
        low, high = wilson(paired.right.sum(axis=1), n, level)
    elif boot is not None:
        low, high = percentile(boot, level)
    groups = tuple(
        GroupValue(model, (model,), n, *numbers)
        for model, *numbers in zip(MODELS, rates.tolist(), low.tolist(), high.tolist(), strict=True)
    )
    yield number(
        "accuracy_difference",
        difference,
        ends=ends,
        level=level,
        chance_test=chance_test,
        n=n,
        by_group=groups,
    )
    if rates[0] == 0:
        reason = f"the model {MODELS[0]} is never right"
        yield Part("percent_difference", "", np.nan, n=n, reason=reason)
    else:
        of_percent = no_ends(level)
        if boot is not None:
            of_percent = folded_ends(divide(100.0 * (boot[:, 0] - boot[:, 1]), boot[:, 0]))(level)
        percent = 100.0 * difference / float(rates[0])
        yield Part("percent_difference", "", percent, *of_percent, n=n)
    if len(paired.by_run[0]) > 1:
        runs = paired.by_run[0] - paired.by_run[1]
        mean_ends = folded(*(float(end) for end in mean_t(runs, level)))
        yield Part("mean_over_runs", "", abs(float(runs.mean())), *mean_ends, n=len(runs))
