"""Fréchet distance, inception score, similarity within sets: against plain code and their laws."""

import math
import re

import numpy as np
import pytest
import scipy

from equipoise.core import InputError
from equipoise.metrics import (
    frechet_distance,
    inception_score,
    set_similarity,
)
from equipoise.stats import Bootstrap


def features(n, d, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / math.sqrt(d) + shift


def by_square_roots(one, other, ridge=0.0):
    """The distance as papers have it, with the square root of the product of covariances."""
    first, second = (np.cov(x.T) + ridge * np.eye(x.shape[1]) for x in (one, other))
    root = scipy.linalg.sqrtm(first @ second)
    apart = np.square(one.mean(axis=0) - other.mean(axis=0)).sum()
    return float(apart + np.trace(first + second - 2 * np.real(root)))


# A little of the identity makes covariances of few images whole; its part tends to nothing.
@pytest.mark.parametrize(
    ("n", "m", "d", "ridge", "near"),
    [(40, 60, 5, 0, 1e-8), (200, 30, 12, 0, 1e-8), (80, 80, 1, 0, 1e-8), (9, 12, 30, 1e-10, 1e-3)],
)
def test_frechet_distance_is_that_of_matrix_square_roots(n, m, d, ridge, near):
    one, other = features(n, d), features(m, d, 1, 0.5)
    found, same = (frechet_distance(one, x, resampling=None).value for x in (other, one))
    assert found == pytest.approx(by_square_roots(one, other, ridge), rel=near)
    assert 0.0 <= same < 1e-7


def test_the_extrapolated_distance_has_almost_no_bias():
    values, limits = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one, other = rng.standard_normal((2, 300, 10))
        found = frechet_distance(one, other + 0.3, resampling=Bootstrap(2), rng=seed)
        values.append(found.value)
        limits.append(found.parts[0].value)
    assert np.mean(values) > 0.9 + 0.2
    assert np.mean(limits) == pytest.approx(0.9, abs=0.12)
    found = frechet_distance(one, other, resampling=Bootstrap(50))
    assert found.params["bias"] == pytest.approx(found.value - found.parts[0].value)
    assert found.ends(0.95)[0] < found.value < found.ends(0.95)[1]
    assert found.method.startswith("resampling spread: percentiles of 50 resamples")
    few = frechet_distance(features(10, 3), features(50, 3, 1), resampling=Bootstrap(20))
    assert math.isnan(few.parts[0].value)


def test_units_of_the_frechet_distance_are_resampled_together():
    one = np.repeat(features(30, 4), 5, axis=0)
    other = features(200, 4, 7)
    alone = frechet_distance(one, other, resampling=Bootstrap(60))
    whole = frechet_distance(
        one, other, units=np.repeat(np.arange(30), 5), resampling=Bootstrap(60)
    )
    assert whole.value == alone.value
    widths = [high - low for low, high in (alone.ends(0.95), whole.ends(0.95))]
    assert widths[1] > 1.3 * widths[0]
    assert whole.unit == "unit"


def test_the_inception_score_is_that_of_plain_sums():
    rows = np.random.default_rng(0).dirichlet(np.full(6, 0.4), 50)
    mean = rows.mean(axis=0)
    plain = np.exp(np.mean([scipy.stats.entropy(row, mean) for row in rows]))
    assert inception_score(rows, resampling=None).value == pytest.approx(plain, rel=1e-12)
    assert inception_score(np.eye(5), resampling=None).value == pytest.approx(5.0)
    same = inception_score(np.tile([0.2, 0.8, 0.0], (7, 1)), resampling=Bootstrap(20))
    assert (same.value, same.ends(0.95)[0]) == (1.0, 1.0)


def sets_of(many, size, seed=0):
    """Vectors that share most within their set."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"s{place}" for place in range(many)], size)
    shared = np.repeat(rng.standard_normal((many, 8)), size, axis=0)
    return shared + 0.3 * rng.standard_normal(shared.shape), names


def test_similarity_within_sets_is_that_of_all_pairs():
    vectors, names = sets_of(6, 4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    each = []
    for name in sorted(set(names)):
        own = unit[names == name]
        each.append(np.mean([a @ b for i, a in enumerate(own) for b in own[:i]]))
    found = set_similarity(vectors, names, resampling=Bootstrap(200, 200))
    assert found.value == pytest.approx(np.mean(each))
    assert [part.value for part in found.parts] == pytest.approx(each)
    assert found.metric == "image_similarity"
    assert (found.n, found.params["sets"]) == ({"images": 24}, 6)
    everything = np.mean([a @ b for i, a in enumerate(unit) for b in unit[:i]])
    assert found.chance.mean == pytest.approx(everything, abs=0.02)
    assert found.value > found.chance.high
    assert found.p_value is None
    low, high = found.ends(0.95)
    assert low < found.value < high


def test_vectors_that_all_point_one_way_are_centred():
    vectors, names = sets_of(6, 4)
    away = vectors + 40.0
    found = set_similarity(away, names, centred=True, of="background", resampling=None)
    plain = set_similarity(away - away.mean(axis=0), names, resampling=None)
    assert (found.metric, found.value) == ("background_similarity", plain.value)


def test_what_takes_no_part_in_sets_is_counted():
    vectors, names = sets_of(3, 3)
    vectors[0] = 0.0
    given = [*names[:-1], None]
    given[3:5] = ["alone", None]
    found = set_similarity(vectors, given, resampling=None)
    assert found.excluded == {
        "vectors without a direction": 1, "images without a set": 2, "sets of one image": 2,
    }  # fmt: skip
    assert math.isnan(set_similarity(np.eye(3), ["a", "b", "c"], resampling=None).value)
    assert set_similarity(np.eye(3), ["a", "b", "c"]).reason == "no set has two images"


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
        (lambda: inception_score([[0.5, 0.6]]), "probabilities: row 1"),
        (lambda: inception_score([[0.5, 0.5], [1.5, -0.5]]), "probabilities: row 2"),
        (lambda: set_similarity(np.eye(5), ["a"] * 5, of="colour"), "of='colour'"),
        (lambda: set_similarity(np.eye(5), ["a"] * 4), "vectors, sets and strata"),
        (lambda: set_similarity(np.eye(5), ["a"] * 5, strata=["a"]), "vectors, sets and strata"),
    ],
)
def test_bad_input(call, where):
    with pytest.raises(InputError, match=f"^{re.escape(where)}"):
        call()
