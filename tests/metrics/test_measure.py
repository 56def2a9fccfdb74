"""One set of draws for many measures: what is drawn, how many, and what a bare value lacks."""

from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest

from equipoise.core import Aggregate, Estimate, InputError
from equipoise.metrics import count, measure
from equipoise.metrics.building import compare_with_chance
from equipoise.metrics.labels import Null
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.measure import Draws, Measure
from equipoise.stats import Bootstrap, Permutation


def rows(n=200, seed=0, **more):
    rng = np.random.default_rng(seed)
    return count(rng.integers(0, 3, n), rng.integers(0, 3, n), rng.integers(0, 4, n), **more)


@dataclass(frozen=True)
class Probe(Measure):
    """A measure that hands its draws to the test."""

    measured: list[Draws]
    null: Null | None
    resamples: bool = True

    def __call__(self, counts, tables):
        return tables.reshape(len(tables), -1)[:, :3]

    def estimate(self, counts, draws):
        self.measured.append(draws)
        return Estimate("probe", 0.0, {}, "", "")


def probe(counts, resampling, null="rows", **more):
    seen_sizes = []
    measure(counts, [Probe(seen_sizes, null, **more)], resampling, 1)
    return seen_sizes[0]


def test_bootstrap_draws_replicates_and_permutations():
    draws = probe(rows(), Bootstrap(30, 40, level=0.8, resolution=0.5))
    assert draws.boot is not None
    shapes = [null.shape for null in draws.nulls]
    assert (draws.boot.shape, shapes, draws.weights) == ((30, 3), [(40, 3)], None)
    assert (draws.level, draws.resolution, draws.intervals) == (0.8, 0.5, True)
    assert draws.null_text == "groups are exchangeable over all rows; 40 permutations"


def test_groups_that_vary_within_units_have_two_nulls():
    unit = np.repeat(np.arange(40), 5)
    draws = probe(rows(units=unit), Permutation(30))
    assert [null.shape for null in draws.nulls] == [(200, 3), (200, 3)]
    assert "200 of single rows" in draws.null_text
    one_group = count(*np.random.default_rng(0).integers(0, 3, (2, 200)), unit % 3, units=unit)
    assert len(probe(one_group, Permutation(30)).nulls) == 1


@pytest.mark.parametrize(
    ("observed", "harm", "p", "mean"),
    # Of the first null one draw of four is at least 5, of the second none; below 1 it is reversed.
    [(5.0, "higher", 2 / 5, 2.5), (0.5, "lower", 2 / 5, 1.5), (9.0, "higher", 1 / 5, 2.5)],
)
def test_a_number_is_tested_by_the_null_of_the_larger_p(observed, harm, p, mean):
    first, second = np.array([[1.0], [1.0], [2.0], [6.0]]), np.array([[0.0], [1.0], [2.0], [3.0]])
    for nulls in ((first, second), (second, first)):
        chance_test = compare_with_chance(Draws(np.array([observed]), None, nulls), 0, harm)
        assert chance_test.chance is not None
        assert chance_test.p_value == pytest.approx(p)
        # Of equal p-values the first null's.
        expected = mean if p > 1 / 5 else nulls[0].mean()
        assert chance_test.chance.mean == pytest.approx(expected)


def test_the_order_of_rows_changes_nothing_where_groups_vary_within_units():
    rng = np.random.default_rng(5)
    columns = *rng.integers(0, 3, (3, 150)), np.repeat(np.arange(30), 5)
    order = rng.permutation(150)
    measures = [Accuracy(Aggregate.DIFFERENCE, null) for null in ("rows", "class")]

    def tested(truth, label, group, unit):
        estimates = measure(count(truth, label, group, units=unit), measures, Permutation(50), 2)
        return [(estimate.p_value, estimate.chance) for estimate in estimates]

    assert tested(*columns) == tested(*(column[order] for column in columns))


def test_measures_share_their_draws_and_do_not_disturb_each_other():
    counts = rows()
    measures = [Accuracy(Aggregate.DIFFERENCE, "rows"), Accuracy(Aggregate.WORST_GROUP, "class")]
    together = measure(counts, measures, Bootstrap(50, 50), 3)
    for metric, estimate in zip(measures, together, strict=True):
        alone = measure(counts, [metric], Bootstrap(50, 50), 3)[0]
        assert (alone.chance, alone.p_value) == (estimate.chance, estimate.p_value)


def test_permutations_grow_to_the_resolution_within_the_budget(
    monkeypatch,
):
    counts = rows()

    def permutations(resampling):
        (null,) = probe(counts, resampling).nulls
        return len(null)

    assert permutations(Bootstrap(10, 100, resolution=0.1)) == 100
    assert permutations(Permutation(100, resolution=0.003)) == 334
    module = import_module("equipoise.metrics.measure")
    monkeypatch.setattr(module, "MAX_DRAWN_CELLS", 500 * counts.table.size)
    assert permutations(Permutation(100, resolution=1e-9)) == 500
    assert permutations(Permutation(700, resolution=1e-9)) == 700


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bootstrap(0), "^replicates=0: expected a whole number of at least 1; pass resam"),
        (lambda: Bootstrap(10, 0), "^permutations=0: expected a whole number of at least 1"),
        (lambda: Permutation(1.5), "^replicates=1.5: expected a whole number of at least 1"),
        (lambda: Bootstrap(level=0.0), "^level=0.0: expected a share between 0 and 1"),
        (lambda: Bootstrap(resolution=0.0), "^resolution=0.0: expected a p-value above 0, at most"),
        (lambda: Permutation(resolution=1.1), "^resolution=1.1: expected a p-value above 0"),
    ],
)
def test_refused_resampling(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("repeats", [1, 3])
def test_small_groups_are_drawn_as_one(repeats):
    rng = np.random.default_rng(0)
    sizes = np.append([150, 120, 90], np.full(30, 9))
    group = np.repeat(np.arange(len(sizes)), sizes)
    truth = rng.integers(0, 3, len(group))
    prediction = np.where(rng.random(len(group)) < 0.3, (truth + 1) % 3, truth)
    units = np.arange(len(group)) // repeats
    counts = count(truth, prediction, group, units=None if repeats == 1 else units)
    assert len(counts.compared.groups) == 4
    assert counts.compared.table.sum(axis=1).tolist() == counts.table.sum(axis=1).tolist()
    gap, n_permutations = Accuracy(Aggregate.DIFFERENCE, "rows"), 3000
    chance = measure(counts, [gap], Permutation(n_permutations), 1)[0].chance
    blocks = counts.sampler.permute(counts.strata("rows"), n_permutations, 2)
    alone = np.concatenate([gap(counts, tables)[:, 0] for tables in blocks])
    error = 4 * alone.std() * (2 / n_permutations) ** 0.5
    assert chance.mean == pytest.approx(alone.mean(), abs=error)
    assert chance.high == pytest.approx(np.quantile(alone, 0.95), rel=0.1)
