"""The sign-flip test against scipy, its exactness and its validity."""

import numpy as np
import pytest
from scipy.stats import permutation_test

from equipoise.core.errors import InputError
from equipoise.stats.sign_flips import sign_flips


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
def test_it_equals_scipy_where_all_signs_are_enumerated(harm: str) -> None:
    array = np.random.default_rng(3).normal(0.4, 1.0, 10)
    alternative = {"higher": "greater", "lower": "less", "either": "two-sided"}[harm]
    found = permutation_test(
        (array,), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf, alternative=alternative,
    )  # fmt: skip
    assert sign_flips(array, harm=harm).value == pytest.approx(found.pvalue, abs=1e-12)  # type: ignore[arg-type]
    assert sign_flips(array).method == "exact"


def test_ties_count_as_extreme_and_all_of_one_sign_is_the_smallest_p() -> None:
    assert sign_flips([1.0, 1.0, 1.0, 1.0], harm="higher").value == 1 / 16
    assert sign_flips([0.0, 0.0, 0.0]).value == 1.0


def test_drawn_flips_agree_with_all_of_them_and_repeat() -> None:
    array = np.random.default_rng(4).normal(0.3, 1.0, 17)
    drawn = sign_flips(array, permutations=200_000, seed=1)
    signs = 1.0 - 2.0 * ((np.arange(1 << 17)[:, None] >> np.arange(17)) & 1)
    exact = min(
        1.0, 2 * min((signs @ array >= array.sum()).mean(), (signs @ array <= array.sum()).mean())
    )
    assert drawn.value == pytest.approx(exact, abs=0.004)
    assert drawn == sign_flips(array, permutations=200_000, seed=1)


def test_pairs_that_are_alike_change_nothing() -> None:
    array = np.random.default_rng(5).normal(0.5, 1.0, 9)
    assert sign_flips(np.insert(array, [0, 4, 9], 0.0)) == sign_flips(array)
    many = np.append(array, np.zeros(5000))
    assert sign_flips(many) == sign_flips(array)
    assert sign_flips(np.zeros(5000)).value == 1.0


def test_it_is_quiet_under_the_null() -> None:
    random = np.random.default_rng(0)
    p = [sign_flips(random.standard_t(3, 12)).value for _ in range(400)]
    assert np.mean(np.array(p) <= 0.05) <= 0.08


def test_what_cannot_be_tested() -> None:
    assert np.isnan(sign_flips([]).value)
    with pytest.raises(InputError, match="^differences must be finite numbers in one dimension"):
        sign_flips([1.0, np.nan])
