"""Fréchet distance and inception score: against plain code and their laws."""

import math
import re

import numpy as np
import pytest
import scipy

from equipoise.core import InputError
from equipoise.metrics import frechet_distance, inception_score
from equipoise.stats import Bootstrap


def features(n, d, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / math.sqrt(d) + shift


def by_square_roots(sample, reference, ridge=0.0):
    """The distance as papers have it, with the square root of the product of covariances."""
    first, second = (np.cov(x.T) + ridge * np.eye(x.shape[1]) for x in (sample, reference))
    root = scipy.linalg.sqrtm(first @ second)
    mean_difference = np.square(sample.mean(axis=0) - reference.mean(axis=0)).sum()
    return float(mean_difference + np.trace(first + second - 2 * np.real(root)))


# A little of the identity makes covariances of few images whole; its part tends to nothing.
@pytest.mark.parametrize(
    ("n", "m", "d", "ridge", "near"),
    [(40, 60, 5, 0, 1e-8), (200, 30, 12, 0, 1e-8), (80, 80, 1, 0, 1e-8), (9, 12, 30, 1e-10, 1e-3)],
)
def test_frechet_distance_is_that_of_matrix_square_roots(n, m, d, ridge, near):
    first, second = features(n, d), features(m, d, 1, 0.5)
    distance, same = (frechet_distance(first, x, resampling=None).value for x in (second, first))
    assert distance == pytest.approx(by_square_roots(first, second, ridge), rel=near)
    assert 0.0 <= same < 1e-7


def test_replicates_are_moved_to_the_value():
    first, second = features(300, 10), features(300, 10, 1)
    estimate = frechet_distance(first, second, resampling=Bootstrap(50))
    assert estimate.ends(0.95)[0] < estimate.value < estimate.ends(0.95)[1]
    assert estimate.method.startswith("resampling spread: percentiles of 50 resamples")


def test_chance_is_what_parts_of_the_reference_give():
    rng = np.random.default_rng(4)
    reference, shifted = rng.normal(size=(60, 5)), rng.normal(size=(20, 5)) + 9
    estimate = frechet_distance(shifted, reference, resampling=Bootstrap(50))
    # Twenty images of one distribution against forty, wherever those that are judged lie.
    alike = [
        frechet_distance(rows[:20], rows[20:], resampling=None).value
        for rows in (rng.permutation(reference) for _ in range(50))
    ]
    assert estimate.chance.mean == pytest.approx(np.mean(alike), rel=0.15)
    assert estimate.chance.low < estimate.chance.mean < estimate.chance.high < estimate.value
    assert "20 images against the other 40" in estimate.chance.method
    # At most half of the reference; and none where it can't be split.
    more = frechet_distance(rng.normal(size=(50, 5)), reference, resampling=Bootstrap(50))
    assert "30 images against the other 30" in more.chance.method
    assert frechet_distance(shifted, reference[:3], resampling=Bootstrap(50)).chance is None


def test_units_of_the_frechet_distance_are_resampled_together():
    rows = np.repeat(features(30, 4), 5, axis=0)
    other = features(200, 4, 7)
    alone = frechet_distance(rows, other, resampling=Bootstrap(60))
    clustered = frechet_distance(
        rows, other, units=np.repeat(np.arange(30), 5), resampling=Bootstrap(60)
    )
    assert clustered.value == alone.value
    widths = [high - low for low, high in (alone.ends(0.95), clustered.ends(0.95))]
    assert widths[1] > 1.3 * widths[0]
    assert clustered.unit == "unit"


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (
            lambda: frechet_distance(np.zeros((1, 3)), np.eye(3)),
            "features and reference",
        ),
        (lambda: frechet_distance(np.eye(3), np.eye(4)), "features and reference"),
        (lambda: frechet_distance([[1.0], [math.nan]], np.eye(3)), "features: row 2"),
        (lambda: frechet_distance([["a"]] * 2, np.eye(3)), "features: type"),
        (lambda: frechet_distance(np.eye(5), np.eye(5), units=[1, 2, 3]), "units: 3 rows"),
    ],
)
def test_bad_input(call, where):
    with pytest.raises(InputError, match=f"^{re.escape(where)}"):
        call()


def test_inception_score_is_the_exponential_of_mutual_information():
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.full(5, 0.4), 60)
    mean = rows.mean(axis=0)
    plain = np.exp(np.mean([scipy.stats.entropy(row, mean) for row in rows]))
    estimate = inception_score(rows, resampling=Bootstrap(60))
    assert estimate.value == pytest.approx(plain, rel=1e-12)
    low, high = estimate.ends(0.95)
    assert 1.0 <= low < estimate.value < high
    assert inception_score(np.tile(mean, (9, 1)), resampling=None).value == pytest.approx(1.0)
    units = np.repeat(np.arange(12), 5)
    together = inception_score(rows, units=units, resampling=Bootstrap(60))
    assert (together.value, together.unit) == (estimate.value, "unit")


@pytest.mark.parametrize("row", [(0.5, 0.6), (-0.1, 1.1), (math.nan, 1.0)])
def test_rows_that_are_no_distribution_are_refused(row):
    with pytest.raises(InputError, match="^probabilities: row 2"):
        inception_score([(0.5, 0.5), row])
