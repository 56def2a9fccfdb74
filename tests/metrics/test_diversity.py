"""Diversity: goldens, brute force, jackknife, chance, kernels on odd arrays, bad input."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_distances

from equipoise.core import InputError
from equipoise.metrics import (
    iss_cross,
    iss_difference,
    iss_intra,
    mean_distance,
    mean_distances,
)
from equipoise.metrics.vectors import diversity
from equipoise.metrics.vectors.diversity import Sets, exchanged, principal_components
from equipoise.stats import Permutation
from equipoise.stats.streams import keys, shuffle
from goldens import Golden

GOLDEN = Golden("diversity.json")


def cloud(seed, n=30, d=6, shift=0.0):
    rows = np.random.default_rng(seed).standard_normal((n, d))
    rows[:, 0] += shift
    return rows


def mean_off_diagonal(rows):
    return float(cosine_distances(rows)[np.triu_indices(len(rows), 1)].mean())


@pytest.fixture
def small_spans(monkeypatch):
    """Cut even small sets into many spans and blocks."""
    monkeypatch.setattr(diversity, "_CHUNK", 2000)
    monkeypatch.setattr(diversity, "_BLOCK", 700)


def test_goldens():
    for rows, intra, with_self in zip(
        GOLDEN["sets"], GOLDEN["intra"], GOLDEN["intra_with_self"], strict=True
    ):
        assert iss_intra(rows).value == pytest.approx(intra, abs=1e-12)
        assert iss_intra(rows, include_self=True).value == pytest.approx(with_self, abs=1e-12)
    assert iss_cross(GOLDEN["sets"]).value == pytest.approx(GOLDEN["cross"], abs=1e-12)


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 10**6))
def test_agrees_with_all_pairs(n, d, seed):
    sets = {name: cloud(seed + i, n + i, d) for i, name in enumerate("abc")}
    within = [mean_off_diagonal(rows) for rows in sets.values()]
    crosses = [cosine_distances(a, b).mean() for a, b in combinations(sets.values(), 2)]
    estimate = iss_cross(sets, resampling=None)
    assert estimate.value == pytest.approx(np.mean(crosses), abs=1e-12)
    assert [part.value for part in estimate.parts] == pytest.approx([*within, *crosses], abs=1e-12)
    subjects = [part.subject for part in estimate.parts]
    assert subjects == ["a", "b", "c", "a × b", "a × c", "b × c"]
    matrix = np.array(mean_distances(sets)["distance"].to_pylist()).reshape(3, 3)
    assert (matrix == matrix.T).all()
    assert matrix[np.triu_indices(3, 1)] == pytest.approx(crosses, abs=1e-12)
    assert np.diag(matrix) == pytest.approx(within, abs=1e-12)
    difference = iss_difference(sets, resampling=None)
    differences = [a - b for a, b in combinations(within, 2)]
    assert [part.value for part in difference.parts] == pytest.approx(differences, abs=1e-12)
    assert abs(difference.value) == pytest.approx(np.abs(differences).max(), abs=1e-12)


def test_scale_does_not_matter():
    rows = cloud(0, 1000)
    extreme = rows * np.geomspace(1e-100, 1e100, 1000)[:, None]
    assert iss_intra(extreme).value == pytest.approx(iss_intra(rows).value, abs=1e-12)


def jackknifed(left_out):
    return (len(left_out) - 1) / len(left_out) * np.square(left_out - np.mean(left_out)).sum()


def test_jackknife_is_the_one_that_deletes_each_image():
    sets = {"a": cloud(1, 12, shift=1.0), "b": cloud(2, 9), "c": cloud(3, 7)}
    errors, variance = {}, 0.0
    for name, set_rows in sets.items():
        shorter = [np.delete(set_rows, i, 0) for i in range(len(set_rows))]
        errors[name] = jackknifed([iss_intra(rows).value for rows in shorter]) ** 0.5
        without = [iss_cross({**sets, name: rows}, resampling=None).value for rows in shorter]
        variance += jackknifed(without)
        estimate = iss_intra(set_rows)
        half = stats.t.ppf(0.975, len(set_rows) - 1) * errors[name]
        assert estimate.interval().high == pytest.approx(min(2.0, estimate.value + half), rel=1e-9)
    cross = iss_cross(sets, resampling=Permutation(10))
    assert cross.ends.error == pytest.approx(np.sqrt(variance), rel=1e-9)
    for part in [part for part in cross.parts if part.metric == "mean_distance"]:
        pair = mean_distance({name: sets[name] for name in part.subject.split(" × ")})
        interval = pair.interval()
        assert (pair.value, interval.low, interval.high) == pytest.approx(
            (part.value, part.low, part.high)
        )
    difference = iss_difference({name: sets[name] for name in "ab"})
    error = np.hypot(errors["a"], errors["b"])
    freedom = error**4 / (errors["a"] ** 4 / 11 + errors["b"] ** 4 / 8)
    p = 2 * stats.t.sf(abs(difference.value) / error, freedom)
    assert difference.p_value == pytest.approx(p, rel=1e-9)
    half = stats.t.ppf(0.95, freedom) * error
    low, high = difference.ends(0.9)
    assert (low, high) == pytest.approx(
        (difference.value - half, difference.value + half), rel=1e-9
    )
    assert difference.chance.high == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)
    turned = iss_difference({"b": sets["b"], "a": sets["a"]})
    assert (turned.value, turned.p_value) == (-difference.value, difference.p_value)


def sum_of(rows):
    return diversity.unit_sums([rows], ["rows"])[0]


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_intervals_cover_the_mean_of_the_population(shift):
    # E cos of independent images is the squared length of the mean unit vector.
    truth = 1.0 - float((sum_of(cloud(99, 400_000, 4, shift)).mean ** 2).sum())
    intervals = [iss_intra(cloud(seed, 25, 4, shift)).interval() for seed in range(300)]
    assert np.mean([interval.low <= truth <= interval.high for interval in intervals]) > 0.92


def test_chance_of_cross_is_the_pooled_mean_and_its_test_is_valid():
    estimate = iss_cross([cloud(5), cloud(6, 20)], resampling=Permutation(200), rng=3)
    assert estimate.chance.mean == iss_intra(np.concatenate([cloud(5), cloud(6, 20)])).value
    ps = [
        iss_cross([cloud(i, 10), cloud(1000 + i, 14)], resampling=Permutation(99)).p_value
        for i in range(200)
    ]
    assert 0.01 < np.mean(np.array(ps) <= 0.05) < 0.1
    distant = iss_cross([cloud(5), cloud(6, shift=1.5)], resampling=Permutation(999))
    assert distant.p_value == 0.001
    assert distant.excess > 0.05


def test_equally_diverse_sets_that_lie_apart_are_rarely_told_apart():
    ps = []
    for seed in range(200):
        a, b = cloud(2 * seed, shift=3.0), cloud(2 * seed + 1, shift=3.0)[:, ::-1]
        ps.append(iss_difference({"a": a, "b": b}).p_value)
    assert np.sum(np.array(ps) <= 0.05) <= stats.binom.ppf(0.999, 200, 0.05)
    three = {name: cloud(shift, 60, shift=shift) for name, shift in (("a", 9), ("b", 6), ("c", 2))}
    estimate = iss_difference(three)
    assert (estimate.params["pair"], estimate.value) == ("a − c", estimate.parts[1].value)
    assert estimate.value < 0
    assert estimate.p_value == pytest.approx(3 * estimate.parts[1].p_value)


def test_principal_components():
    rows = cloud(0)
    # All components only centre and turn the rows.
    projected_value = iss_intra(principal_components({"x": rows}, 6)["x"]).value
    assert projected_value == pytest.approx(iss_intra(rows - rows.mean(axis=0)).value, abs=1e-12)
    signs = np.sign(PCA(1).fit_transform(rows)[:, 0])
    expected = 1 - np.mean([a * b for a, b in combinations(signs, 2)])
    assert iss_intra(principal_components({"x": rows}, 1)["x"]).value == pytest.approx(
        expected, abs=1e-12
    )


def test_zero_rows_are_left_out_and_counted():
    rows, zeros = np.concatenate([cloud(0), np.zeros((2, 6))]), {"zero vectors": 2}
    estimate = iss_intra(rows)
    assert (estimate.value, estimate.excluded) == (iss_intra(cloud(0)).value, zeros)
    # Centred, a row of zeros would gain a direction.
    projected = iss_intra(principal_components({"x": rows}, 3)["x"])
    assert projected.value == iss_intra(principal_components({"x": cloud(0)}, 3)["x"]).value
    for estimate in (projected, iss_cross([rows, cloud(1)]), iss_difference([rows, cloud(1)])):
        assert estimate.excluded == zeros
        assert not estimate.parts or estimate.parts[0].excluded[0].count == 2
    assert iss_cross([np.zeros((3, 6)), rows]).reason


def test_too_few_or_equal_images_have_no_value_or_no_interval():
    assert (iss_intra(cloud(0, 1)).estimable, iss_intra(cloud(0, 2)).estimable) == (False, True)
    for estimate in (
        iss_intra(cloud(0, 2)),
        iss_intra(cloud(0), resampling=None),
        iss_cross([cloud(0, 1), cloud(1)]),
        iss_difference([cloud(0, 2), cloud(1)]),
        iss_difference([cloud(0), cloud(1)], resampling=None),
    ):
        assert estimate.estimable
        assert np.isnan(estimate.interval().low)
    assert not iss_difference([cloud(0, 1), cloud(1)]).estimable
    same = iss_difference({"a": np.ones((5, 3)), "b": np.ones((5, 3))})
    assert same.value == pytest.approx(0.0, abs=1e-15)
    assert same.p_value is None
    assert same.reason


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: iss_intra([[1.0, np.nan]]), ".*row 0"),
        (lambda: iss_intra([["a"]]), ".*type"),
        (lambda: iss_cross([cloud(0)]), "sets: 1"),
        (lambda: iss_difference([cloud(0)]), "sets: 1"),
        (lambda: iss_cross([cloud(0), cloud(0, d=5)]), r"sets of different dimensions \[5, 6\]"),
        (lambda: iss_cross({"x": cloud(0), "y": [[1, 2, 3, 4, 5, np.inf]]}), r"sets\['y'\]"),
        (lambda: principal_components({"x": cloud(0)}, 7), "components=7"),
        (lambda: exchanged([np.ones((1, 2))] * 65537, [1] * 65537, 1, 0), "sets: 65537"),
    ],
)
def test_bad_input(call, where):
    with pytest.raises(InputError, match=f"^{where}"):
        call()


def unit(rows):
    double = rows.astype(np.float64)
    return np.asarray(double / np.linalg.norm(double, axis=1, keepdims=True))


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f4", "uint8", "longdouble"])
def test_sums_are_those_of_numpy_for_every_type(kind):
    rows = (100 * np.abs(cloud(3, 150, 70))).astype(kind)
    total = sum_of(rows)
    assert total.total == pytest.approx(unit(rows).sum(axis=0), rel=1e-13)
    assert (total.count, total.zeros) == (150, 0)
    for other in (rows.astype(np.float64), np.asfortranarray(rows), np.repeat(rows, 2, 1)[:, ::2]):
        assert (sum_of(other).total == total.total).all()


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize("d", [5, 70])
def test_exchanges_are_those_of_the_labels(d, monkeypatch):
    sets = [cloud(i, n, d) for i, n in enumerate((30, 75, 12))]
    sets[1][[0, 40, 74]] = 0.0
    counts = [30, 72, 12]
    rows = unit(np.concatenate(sets)[np.concatenate(sets).any(axis=1)])
    labels = np.tile(np.repeat(np.arange(3, dtype=np.uint32), counts), (10, 1))
    shuffle(keys(7, "exchange", n_streams=10), labels)
    expected = []
    for line in labels:
        means = np.stack([rows[line == code].mean(axis=0) for code in range(3)])
        expected.append(1 - (means @ means.T)[np.triu_indices(3, 1)].mean())
    values = exchanged(sets, counts, 10, 7)
    assert values == pytest.approx(expected, abs=1e-13)
    monkeypatch.setattr(diversity, "_TOGETHER", 3)
    monkeypatch.setenv("EQUIPOISE_THREADS", "2")
    assert (exchanged(sets, counts, 10, 7) == values).all()
    assert (exchanged(sets, counts, 4, 7) == values[:4]).all()


def large_sets():
    """Sets of unequal sizes with skewed rows, one with rows of zeros."""
    rng = np.random.default_rng(8)
    sets = [rng.gamma(4.0, size=(n, 5)) + np.arange(5) for n in (4_200, 5_000, 12_000)]
    sets[0][[3, 77]] = 0.0
    return {name: rows.astype(np.float16) for name, rows in zip("abc", sets, strict=True)}


def test_exchanges_of_large_sets_are_drawn_from_moments(monkeypatch):
    sets = large_sets()
    named_sets = Sets.of(sets, Permutation())
    values, text = named_sets.exchanges(4_000, 1)
    assert text == "4000 exchanges drawn from the moments of the images"
    rows = exchanged(list(sets.values()), [4_198, 5_000, 12_000], 2_000, 1)
    assert stats.ks_2samp(values, rows).pvalue > 0.01
    assert values.std() == pytest.approx(rows.std(), rel=0.1)
    for quantile in (0.025, 0.5, 0.975):
        ends = stats.mstats.mquantiles(rows, [max(quantile - 0.01, 0.0), quantile + 0.01])
        assert ends[0] < np.quantile(values, quantile) < ends[1]
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    assert (Sets.of(sets, Permutation()).exchanges(1_000, 1)[0] == values[:1_000]).all()
    assert "permutations" in Sets.of({**sets, "few": sets["a"][:100]}, None).exchanges(9, 1)[1]


def test_sets_that_were_summed_give_what_their_arrays_give():
    sets = {name: cloud(seed, 20 + seed) for seed, name in enumerate("abc")}
    named_sets = Sets.of(sets, Permutation())
    two_sets = {name: sets[name] for name in "ca"}

    def numbers(estimate):
        return repr(
            (
                estimate.value,
                estimate.interval(),
                estimate.chance,
                estimate.p_value,
                estimate.parts,
                estimate.excluded,
            )
        )

    for metric in (iss_cross, iss_difference):
        assert numbers(metric(named_sets.only("ca"))) == numbers(metric(two_sets))
    assert numbers(iss_intra(named_sets.only("b"))) == numbers(iss_intra(sets["b"]))
    assert mean_distances(named_sets) == mean_distances(sets)
    with pytest.raises(InputError, match="sets: 1;"):
        iss_cross(named_sets.only("a"))
