"""Poisson counts of units: the same numbers in numpy and compiled."""

import numpy as np

from equipoise.stats.poisson import unit_counts, unit_times
from equipoise.stats.streams import unit_keys

KEYS = unit_keys([f"unit {index}" for index in range(5000)])


def test_compiled_and_plain_counts_are_the_same() -> None:
    times = unit_times(KEYS, 12, 7)
    assert (times[:, 0] == 1).all()
    assert (unit_counts(7, KEYS, range(12)) == times[:, 1:].T).all()


def test_counts_are_poisson_with_mean_one() -> None:
    counts = unit_counts(3, KEYS, range(40))
    assert abs(counts.mean() - 1.0) < 0.01
    assert abs(counts.var() - 1.0) < 0.02
    shares = [(counts == k).mean() for k in range(4)]
    assert np.allclose(shares, np.exp(-1.0) / np.array([1, 1, 2, 6]), atol=0.005)


def test_replicates_from_any_on_are_those_of_all_of_them() -> None:
    every = unit_times(KEYS, 12, 7)
    some = unit_times(KEYS, 5, 7, first=4)
    assert (some[:, 0] == 1).all()
    assert (some[:, 1:] == every[:, 5:10]).all()
