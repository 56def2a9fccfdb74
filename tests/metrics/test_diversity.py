"""Diversity: goldens, brute force, shards, coverage of intervals, chance, bad input."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_distances

from equipoise.core.errors import InputError
from equipoise.metrics.diversity.iss import iss_cross, iss_intra, mean_distances
from equipoise.metrics.diversity.subset import diverse_subset
from equipoise.metrics.diversity.sums import UnitSums
from equipoise.stats.resampling import Exact, Permutation
from goldens import Golden
from mandal_tables import A1 as TABLE

GOLDEN = Golden("diversity.json")


def cloud(seed: int, n: int = 30, d: int = 6, shift: float = 0.0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d))
    rows[:, 0] += shift
    return rows


def mean_off_diagonal(rows: Any) -> float:
    return float(
        np.mean([cosine_distances(rows)[i, j] for i, j in combinations(range(len(rows)), 2)])
    )


def test_goldens() -> None:
    for rows, intra, with_self in zip(
        GOLDEN["sets"], GOLDEN["intra"], GOLDEN["intra_with_self"], strict=True
    ):
        assert iss_intra(rows).value == pytest.approx(intra, abs=1e-12)
        assert iss_intra(rows, include_self=True).value == pytest.approx(with_self, abs=1e-12)
    assert iss_cross(GOLDEN["sets"]).value == pytest.approx(GOLDEN["cross"], abs=1e-12)


def test_the_means_of_the_source_and_what_its_headline_rests_on() -> None:
    printed = 0
    without = dict.fromkeys((20, 21, 30, 50), 0)
    for query, intra in TABLE["iss_intra"].items():
        values, cross = np.array(list(intra.values())), TABLE["iss_cross"][query]
        # Some of the printed means are cut off, not rounded.
        assert values.mean() == pytest.approx(TABLE["mean_intra_printed"][query], abs=1e-4)
        printed += int((cross > values).sum())
        for n in without:
            without[n] += int((cross > values * n / (n - 1)).sum())
    assert printed == 30
    # The table does not say how many images a set has.
    assert (without[20], without[21]) == (3, 3)
    assert without[30] > 3
    assert without[50] > without[30]


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 10**6))
def test_agrees_with_all_pairs(n: int, d: int, seed: int) -> None:
    sets = [cloud(seed + i, n + i, d) for i in range(3)]
    assert iss_intra(sets[0]).value == pytest.approx(mean_off_diagonal(sets[0]), abs=1e-12)
    crosses = [cosine_distances(a, b).mean() for a, b in combinations(sets, 2)]
    found = iss_cross(sets, resampling=None)
    assert found.value == pytest.approx(np.mean(crosses), abs=1e-12)
    assert found.by is not None
    assert found.by["value"].to_pylist()[3:] == pytest.approx(crosses, abs=1e-12)


def test_shards_merge_and_scale_does_not_matter() -> None:
    rows = cloud(0, 1000)
    whole = UnitSums.of(rows)
    merged = UnitSums.of(rows[:300]).merge(UnitSums.of(rows[300:] * 1e6))
    assert merged.count == 1000
    assert merged.distance == pytest.approx(whole.distance, abs=1e-14)
    extreme = rows * np.geomspace(1e-300, 1e300, 1000)[:, None]
    assert iss_intra(extreme).value == pytest.approx(whole.distance, abs=1e-12)
    half = rows.astype(np.float16)
    assert iss_intra(half).value == iss_intra(half.astype(np.float64)).value


def test_jackknife_is_the_one_that_deletes_each_image() -> None:
    rows = cloud(1, 12, shift=1.0)
    deleted = np.array([iss_intra(np.delete(rows, i, 0)).value for i in range(12)])
    error = np.sqrt(11 / 12 * ((deleted - deleted.mean()) ** 2).sum())
    assert iss_intra(rows).ends.error == pytest.approx(error, rel=1e-9)  # type: ignore[attr-defined]
    sets = [rows, cloud(2, 9), cloud(3, 7)]
    variance = 0.0
    for index, one in enumerate(sets):
        n = len(one)
        without = [
            iss_cross([*sets[:index], np.delete(one, i, 0), *sets[index + 1 :]], resampling=None)
            for i in range(n)
        ]
        values = np.array([found.value for found in without])
        variance += (n - 1) / n * ((values - values.mean()) ** 2).sum()
    found = iss_cross(sets, resampling=Permutation(10))
    assert found.ends.error == pytest.approx(np.sqrt(variance), rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_intervals_cover_the_mean_of_the_population(shift: float) -> None:
    # E cos of independent images is the squared length of the mean unit vector.
    truth = 1.0 - float((UnitSums.of(cloud(99, 400_000, 4, shift)).mean ** 2).sum())
    covered = 0
    for seed in range(400):
        interval = iss_intra(cloud(seed, 25, 4, shift)).interval()
        covered += interval.low <= truth <= interval.high
    assert covered / 400 > 0.92


def test_chance_of_cross_is_the_pooled_mean_and_its_test_is_valid() -> None:
    found = iss_cross([cloud(5), cloud(6, 20)], resampling=Permutation(200), rng=3)
    assert found.chance is not None
    assert found.chance.mean == iss_intra(np.concatenate([cloud(5), cloud(6, 20)])).value
    ps = [
        iss_cross([cloud(i, 10), cloud(1000 + i, 14)], resampling=Permutation(99)).p_value
        for i in range(300)
    ]
    assert 0.02 < np.mean(np.array(ps) <= 0.05) < 0.09
    apart = iss_cross([cloud(5), cloud(6, shift=1.5)], resampling=Permutation(999))
    assert apart.p_value == 0.001
    assert apart.excess > 0.05


def test_matrix_and_parts() -> None:
    sets = {"a": cloud(0), "b": cloud(1, shift=1.0), "c": cloud(2)}
    table = mean_distances(sets)
    assert table.num_rows == 9
    values = np.array(table["distance"].to_pylist()).reshape(3, 3)
    assert (values == values.T).all()
    assert values[1, 1] == iss_intra(sets["b"]).value
    found = iss_cross(sets, resampling=Permutation(20))
    assert found.by is not None
    assert found.by["subject"].to_pylist() == ["a", "b", "c", "a × b", "a × c", "b × c"]
    assert found.value == pytest.approx(values[np.triu_indices(3, 1)].mean(), abs=1e-12)
    assert found.n == {"a": 30, "b": 30, "c": 30}


def test_principal_components() -> None:
    rows = cloud(0)
    # All components only centre and turn the rows.
    whole = iss_intra(rows, components=6).value
    assert whole == pytest.approx(iss_intra(rows - rows.mean(axis=0)).value, abs=1e-12)
    assert iss_intra(rows, components=1).value == pytest.approx(
        1 - np.mean([np.sign(a * b) for a, b in combinations(first_component(rows), 2)]), abs=1e-12
    )
    assert iss_cross([rows, cloud(1)], components=2, resampling=None).estimable


def first_component(rows: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import PCA

    return np.asarray(PCA(1).fit_transform(rows)[:, 0])


def test_zero_rows_are_left_out_and_counted() -> None:
    rows = np.concatenate([cloud(0), np.zeros((2, 6))])
    found = iss_intra(rows)
    assert (found.value, found.excluded) == (iss_intra(cloud(0)).value, {"zero vectors": 2})
    # Centred, a row of zeros would gain a direction.
    projected = iss_intra(rows, components=3)
    assert projected.value == iss_intra(cloud(0), components=3).value
    assert projected.excluded == {"zero vectors": 2}
    cross = iss_cross([rows, cloud(1)], resampling=Permutation(20))
    assert cross.excluded == {"zero vectors": 2}
    assert cross.by is not None
    assert cross.by["excluded"].to_pylist()[0] == [{"reason": "zero vectors", "count": 2}]
    assert iss_cross([np.zeros((3, 6)), rows]).reason == "a set has no image with a direction"


def test_too_few_images_have_no_value_or_no_interval() -> None:
    one = iss_intra(cloud(0, 1))
    assert (one.estimable, one.reason) == (False, "fewer than two images with a direction")
    two = iss_intra(cloud(0, 2))
    assert two.estimable
    assert np.isnan(two.interval().low)
    single = iss_cross([cloud(0, 1), cloud(1)], resampling=Permutation(50))
    assert single.estimable
    assert np.isnan(single.interval().low)
    bare = iss_intra(cloud(0), resampling=None)
    assert np.isnan(bare.interval().low)


def test_greedy_subset() -> None:
    rows = np.array([[1, 0], [1, 0.1], [0, 0], [-1, 0], [0, 1.0]])
    assert diverse_subset(rows, 2).tolist() == [3, 0]
    assert diverse_subset(rows, 4).tolist()[:2] == [3, 0]
    assert 2 not in diverse_subset(rows, 4)
    many = cloud(0, 200)
    chosen = diverse_subset(many, 10)
    assert len(set(chosen.tolist())) == 10
    assert iss_intra(many[chosen]).value > iss_intra(many).value
    best = max(mean_off_diagonal(rows[list(c)]) for c in combinations([0, 1, 3, 4], 3))
    assert mean_off_diagonal(rows[diverse_subset(rows, 3)]) == pytest.approx(best)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: iss_intra([[1.0, np.nan]]),
            r"^embeddings: NaN or infinite in row 0; expected finite numbers$",
        ),
        (
            lambda: iss_intra([1.0, 2.0]),
            r"^embeddings: shape \(2,\); expected \(n, d\), neither of them 0$",
        ),
        (
            lambda: iss_intra(np.empty((0, 3))),
            r"^embeddings: shape \(0, 3\); expected \(n, d\), neither of them 0$",
        ),
        (
            lambda: iss_intra([[1.0], [1.0, 2.0]]),
            r"^embeddings: rows of different lengths; expected shape \(n, d\)$",
        ),
        (lambda: iss_intra([["a"]]), r"^embeddings: type <U1; expected real numbers$"),
        (
            lambda: iss_cross([cloud(0)]),
            r"^sets: one set; expected two or more, or iss_intra for one$",
        ),
        (lambda: iss_cross([]), r"^sets: none given; expected at least one set of embeddings$"),
        (
            lambda: iss_cross([cloud(0), cloud(0, d=5)]),
            r"^sets of different dimensions \[5, 6\]; expected one embedding space$",
        ),
        (
            lambda: iss_cross({"x": cloud(0), "y": [[1, 2, 3, 4, 5, np.inf]]}),
            r"^sets\['y'\]: NaN or infinite in row 0; expected finite numbers$",
        ),
        (
            lambda: iss_cross([cloud(0), cloud(1)], resampling=Exact()),
            r"^resampling=Exact: not available for iss_cross; use Permutation\(\)$",
        ),
        (
            lambda: iss_intra(cloud(0), components=7),
            r"^components=7: expected 1 to 6, the smaller of images and dimensions$",
        ),
        (
            lambda: diverse_subset(cloud(0), 31),
            r"^size=31: expected 1 to 30, the rows that are not zero$",
        ),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
