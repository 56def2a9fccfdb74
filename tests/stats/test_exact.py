"""Enumerated tables: against every permutation of the rows."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import hypergeom

from equipoise.core.errors import InputError
from equipoise.stats.exact import exact_tables

Table = np.ndarray


def by_rows(table: Table, strata: Table) -> Counter[tuple[int, ...]]:
    """Every permutation of the rows' groups that keeps strata, as tables with their counts."""
    outcomes = np.repeat(np.arange(len(table)), table.sum(axis=1))
    groups = np.concatenate([np.repeat(np.arange(table.shape[1]), row) for row in table])
    found: Counter[tuple[int, ...]] = Counter()
    for order in permutations(range(len(groups))):
        if (strata[outcomes[[*order]]] == strata[outcomes]).all():
            drawn = np.zeros_like(table)
            np.add.at(drawn, (outcomes, groups[[*order]]), 1)
            found[tuple(drawn.ravel().tolist())] += 1
    return found


@pytest.mark.parametrize(
    ("table", "strata"),
    [
        ([[2, 1], [1, 2]], [0, 0]),
        ([[2, 0, 1], [1, 2, 1]], [0, 0]),
        ([[1, 1], [0, 2], [2, 1]], [0, 0, 0]),
        ([[1, 1], [2, 0], [1, 0], [0, 2]], [0, 1, 0, 1]),
        ([[1, 1], [2, 0], [0, 3]], [5, 2, 5]),
        ([[0, 0], [2, 1]], [0, 0]),
        ([[3]], [0]),
    ],
)
def test_tables_and_weights_are_those_of_all_permutations(
    table: list[list[int]], strata: list[int]
) -> None:
    tables, weights = exact_tables(np.array(table, float), np.array(strata), limit=1000)
    expected = by_rows(np.array(table), np.array(strata))
    found = dict(
        zip(map(tuple, tables.reshape(len(tables), -1).astype(int).tolist()), weights, strict=True)
    )
    assert found.keys() == expected.keys()
    assert len(tables) == len(expected)
    total = sum(expected.values())
    for cells, count in expected.items():
        assert found[cells] == pytest.approx(count / total, abs=1e-14)


tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 3)),
    elements=st.integers(0, 4).map(float),
)


@given(tables, st.randoms(use_true_random=False))
def test_margins_are_kept_and_weights_sum_to_one(table: Table, random: object) -> None:
    strata = np.array([random.randrange(2) for _ in table])  # type: ignore[attr-defined]
    found, weights = exact_tables(table, strata, limit=100_000)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(np.unique(found, axis=0)) == len(found)
    assert (found >= 0).all()
    assert (found == table).all(axis=(1, 2)).any()
    assert (found.sum(axis=2) == table.sum(axis=1)).all()
    for name in set(strata.tolist()):
        inside = strata == name
        assert (found[:, inside].sum(axis=1) == table[inside].sum(axis=0)).all()


def test_two_by_two_is_the_hypergeometric_distribution() -> None:
    found, weights = exact_tables(np.array([[12.0, 3.0], [8.0, 30.0]]), np.zeros(2, int), limit=99)
    expected = hypergeom.pmf(found[:, 0, 0], 53, 20, 15)
    np.testing.assert_allclose(weights, expected, rtol=1e-10)


def test_renamed_groups_give_the_same_tables_in_the_same_order() -> None:
    table = np.array([[3.0, 1.0, 2.0], [0.0, 4.0, 1.0]])
    found, weights = exact_tables(table, np.zeros(2, int), limit=1000)
    order = [2, 0, 1]
    renamed, same = exact_tables(table[:, order], np.zeros(2, int), limit=1000)
    assert (renamed == found[:, :, order]).all()
    assert same.tolist() == weights.tolist()


def message(limit: int) -> str:
    return (
        f"^resampling=Exact: more than {limit} rearrangements of the groups; "
        r"use Permutation\(\), or Exact\(limit=...\) with a larger limit$"
    )


def test_the_limit_is_the_number_of_tables() -> None:
    table, strata = np.array([[4.0, 4.0], [4.0, 4.0]]), np.zeros(2, int)
    assert len(exact_tables(table, strata, limit=9)[0]) == 9
    with pytest.raises(InputError, match=message(8)):
        exact_tables(table, strata, limit=8)


def test_the_limit_is_that_of_all_strata_together() -> None:
    table, strata = np.full((4, 2), 4.0), np.array([0, 0, 1, 1])
    assert len(exact_tables(table, strata, limit=81)[0]) == 81
    with pytest.raises(InputError, match=message(80)):
        exact_tables(table, strata, limit=80)


@pytest.mark.parametrize("shape", [(3000, 2), (2, 3000), (1500, 4)])
def test_large_tables_are_refused_and_not_walked_through(shape: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=message(1000)):
        exact_tables(np.ones(shape), np.zeros(shape[0], int), limit=1000)
    many = np.repeat(np.arange(shape[0] // 2), 2)
    with pytest.raises(InputError, match=message(1000)):
        exact_tables(np.ones(shape) * 3, many, limit=1000)


def test_one_group_has_one_table() -> None:
    table = np.ones((2000, 1))
    found, weights = exact_tables(table, np.zeros(2000, int), limit=1)
    assert (found == table).all()
    assert weights.tolist() == [1.0]


def test_many_strata_with_few_tables() -> None:
    table = np.tile([[1.0, 0.0], [0.0, 1.0]], (150, 1))
    strata = np.repeat(np.arange(150), 2)
    strata[4:] += 1000 * (np.arange(296) % 2)
    found, weights = exact_tables(table, strata, limit=10)
    assert len(found) == 4
    assert weights.tolist() == [0.25] * 4
