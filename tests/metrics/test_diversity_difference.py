"""Differences in diversity: against plain formulas, under the null, and with unusual input."""

import numpy as np
import pytest
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.metrics import iss_difference, iss_intra
from equipoise.stats.resampling import Bootstrap


def images(n: int, spread: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.r_[3.0, np.zeros(7)] + spread * rng.standard_normal((n, 8))


def plain_jackknife(rows: np.ndarray) -> tuple[float, float, int]:
    """ISS_intra, its jackknife standard error and n, by leaving out one row at a time."""
    left_out = [
        iss_intra(np.delete(rows, i, axis=0), resampling=None).value for i in range(len(rows))
    ]
    n = len(rows)
    error = np.sqrt((n - 1) / n * np.square(left_out - np.mean(left_out)).sum())
    return iss_intra(rows, resampling=None).value, float(error), n


def test_the_difference_its_interval_and_p_are_welchs() -> None:
    a, b = images(25, 1.0, 1), images(18, 1.4, 2)
    found = iss_difference({"a": a, "b": b})
    (value_a, error_a, n_a), (value_b, error_b, n_b) = plain_jackknife(a), plain_jackknife(b)
    error = np.hypot(error_a, error_b)
    freedom = error**4 / (error_a**4 / (n_a - 1) + error_b**4 / (n_b - 1))
    assert found.value == pytest.approx(value_a - value_b, rel=1e-12)
    assert found.p_value == pytest.approx(
        2 * stats.t.sf(abs(value_a - value_b) / error, freedom), rel=1e-9
    )
    half = stats.t.ppf(0.95, freedom) * error
    ends = found.interval(0.9)
    assert (ends.low, ends.high) == pytest.approx(
        (found.value - half, found.value + half), rel=1e-9
    )
    assert found.chance is not None
    assert found.chance.mean == 0.0
    assert found.chance.high == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)


def test_swapping_the_sets_turns_the_sign() -> None:
    a, b = images(20, 1.0, 1), images(20, 1.5, 2)
    one, other = iss_difference({"a": a, "b": b}), iss_difference({"b": b, "a": a})
    assert one.value == -other.value
    assert one.p_value == other.p_value
    assert [part.subject for part in one.parts] == ["a − b"]


def test_every_pair_and_the_one_that_differs_most() -> None:
    sets = {"a": images(40, 0.5, 1), "b": images(40, 0.6, 2), "c": images(40, 1.5, 3)}
    found = iss_difference(sets)
    assert [part.subject for part in found.parts] == ["a − b", "a − c", "b − c"]
    assert found.params["pair"] == "a − c"
    assert found.value == found.parts[1].value < 0
    assert found.p_value == pytest.approx(3 * found.parts[1].p_value)
    assert "Bonferroni over 3 pairs" in found.null
    assert [g.value for g in found.parts[1].by_group] == [
        iss_intra(sets[name], resampling=None).value for name in ("a", "c")
    ]


def test_sets_that_are_equally_diverse_and_lie_apart_are_rarely_told_apart() -> None:
    """Location is not diversity: rotated copies of one distribution differ in nothing else."""
    hits = 0
    for seed in range(300):
        a, b = images(30, 1.0, 2 * seed), images(30, 1.0, 2 * seed + 1)[:, ::-1]
        hits += iss_difference({"a": a, "b": b}).p_value <= 0.05
    assert hits <= stats.binom.ppf(0.999, 300, 0.05)


def test_a_planted_difference_is_found() -> None:
    found = iss_difference({"a": images(100, 0.5, 1), "b": images(100, 1.0, 2)})
    assert found.p_value < 1e-6
    assert found.value < -0.1


def test_without_resampling_values_alone() -> None:
    found = iss_difference([images(9, 1, 1), images(9, 2, 2)], resampling=None)
    assert found.p_value is None
    assert found.chance is None
    assert np.isnan(found.interval().low)
    assert found.no_chance == "no resampling was asked for"


def test_sets_too_small_for_a_test() -> None:
    found = iss_difference({"a": images(2, 1, 1), "b": images(9, 1, 2)})
    assert not np.isnan(found.value)
    assert found.p_value is None
    assert found.reason == "fewer than three images with a direction in a set"
    one = iss_difference({"a": images(1, 1, 1), "b": images(9, 1, 2)})
    assert np.isnan(one.value)
    assert one.reason == "fewer than two images with a direction in a set"


def test_images_that_are_all_alike() -> None:
    same = np.ones((5, 3))
    found = iss_difference({"a": same, "b": same})
    assert found.value == pytest.approx(0.0, abs=1e-15)
    assert found.p_value is None
    assert found.reason == "the images of both sets are all alike"


def test_zero_vectors_are_counted() -> None:
    a = np.vstack([images(9, 1, 1), np.zeros((2, 8))])
    found = iss_difference({"a": a, "b": images(9, 1, 2)}, resampling=Bootstrap(10))
    assert found.excluded == {"zero vectors": 2}
    assert found.n == {"a": 9, "b": 9}


def test_one_set_cannot_be_compared() -> None:
    with pytest.raises(InputError, match=r"^sets: one set; expected two or more to compare$"):
        iss_difference({"a": images(9, 1, 1)})
