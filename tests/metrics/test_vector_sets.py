"""Sets of vectors: exact sums, large sets in pieces, the jackknife, members of both sets."""

import tracemalloc
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from equipoise.metrics import association_score, iss_cross
from equipoise.metrics.vector_rows import ChosenRows
from equipoise.metrics.vectors import sets as vector_sets
from equipoise.metrics.vectors.resampling import Jackknife
from equipoise.metrics.vectors.sets import (
    embed,
    plain_members,
    shared_members,
    unit_members,
)
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import jackknife_t


def cloud(seed, n, d=6, kind="float64"):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(kind)


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e300, 5e-324])
def test_exact_means_are_exact_at_any_size_and_in_any_order(size):
    rows, tiny = cloud(0, 50, 7) * size, Fraction(5e-324)
    set_mean = plain_members(rows).mean
    for column, mean in zip(rows.T, set_mean, strict=True):
        exact = sum(map(Fraction, column.tolist()), Fraction(0)) / 50
        assert abs(Fraction(float(mean)) - exact) <= Fraction(np.abs(rows).max()) / 2**48 + tiny
    assert (plain_members(rows[::-1]).mean == set_mean).all()
    assert (plain_members(np.zeros((3, 2))).mean == 0).all()


def test_a_vector_is_the_same_whatever_stands_beside_it():
    rows, attributes = cloud(2, 6, 70), {"a": cloud(3, 2, 70)}
    plain = embed({"x": rows}, attributes)["x"].vectors
    mixed = np.insert(rows, [0, 3, 3, 6], 0.0, axis=0)
    mixed[4, 0], mixed[9] = np.inf, 1e-200
    members = embed({"x": mixed}, attributes)["x"]
    assert (members.vectors == plain).all()
    assert members.rows.tolist() == [1, 2, 3, 6, 7, 8]
    assert dict(members.dropped) == {"not a number or infinite": 1, "zero vector": 3}
    scaled = rows * np.ldexp(1.0, [0, 400, -400, 1, -1, 0])[:, None]
    assert (embed({"x": scaled}, attributes)["x"].vectors == plain).all()
    assert plain == pytest.approx(rows / np.linalg.norm(rows, axis=1)[:, None], abs=1e-13)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_numbers_of_pieces_are_those_of_the_whole(kind, monkeypatch):
    rows, attribute_rows = cloud(1, 40, 9, kind), cloud(2, 5, 9)
    rows[3], rows[17, 2], rows[30] = 0, np.nan, np.inf
    members = embed({"x": rows}, {"a": attribute_rows})["x"]
    vectors = members.vectors
    monkeypatch.setattr(vector_sets, "_KEPT", 0)
    monkeypatch.setattr(vector_sets, "_AT_ONCE", 100)
    chosen = embed({"x": rows}, {"a": attribute_rows})["x"]
    assert len([*chosen.blocks()]) == 4
    assert chosen.dropped == members.dropped
    for first_value, other in (
        (chosen.vectors, vectors),
        (chosen.take(np.array([7, 0, 7])), vectors[[7, 0, 7]]),
        (chosen.mean, plain_members(vectors).mean),
        (chosen.dots(attribute_rows[0]), members.dots(attribute_rows[0])),
        (chosen.similarities(attribute_rows), plain_members(vectors).similarities(attribute_rows)),
    ):
        np.testing.assert_array_equal(first_value, other)
    assert chosen.similarities(attribute_rows) == pytest.approx(
        vectors @ attribute_rows.T, abs=1e-13
    )


@pytest.mark.parametrize("pieces", [False, True])
def test_members_of_both_sets_are_counted_as_vectors(pieces, monkeypatch):
    if pieces:
        monkeypatch.setattr(vector_sets, "_KEPT", 0)
        monkeypatch.setattr(vector_sets, "_AT_ONCE", 15)
    rows = cloud(4, 8, 5)
    x, y = rows[:5], np.concatenate([3.0 * rows[3:], rows[3:4], -rows[:1]])
    sets = embed({"x": x, "y": y}, {"a": [[1, 1, 1, 0, 0]], "b": [[1, 1, 0, 1, 0]]})
    assert shared_members(sets["x"], sets["y"]) == 2
    assert shared_members(sets["y"], sets["x"]) == 3
    # The same first number is not the same vector.
    assert shared_members(sets["a"], sets["b"]) == 0


def test_a_large_set_of_halves_is_not_held_as_float64():
    rows = cloud(5, 40_000, 128, "float16")
    embed({"x": rows[:100]}, {"a": rows[:100]})  # Kernels are compiled.
    tracemalloc.start()
    try:
        members = embed({"x": rows}, {"a": rows[:100]})["x"]
        assert members.dots(members.mean).shape == (40_000,)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e7  # As float64 the set has 41 MB.


@pytest.mark.parametrize("kind", ["float16", "float64", ">f4"])
def test_chosen_rows_of_a_table_stand_for_the_array_of_them(kind):
    table, places = cloud(6, 60, 7, kind), np.random.default_rng(7).permutation(60)[:40]
    targets, resampling = cloud(8, 3, 7), Bootstrap(50, 50)
    texts = []
    for a, b in (
        (table[places[:20]], table[places[20:]]),
        (ChosenRows(table, places[:20]), ChosenRows(table, places[20:])),
    ):
        score = association_score(targets, a, b, resampling=resampling)
        numbers = [(x.value, x.p_value) for x in (score, iss_cross([a, b], resampling=resampling))]
        texts.append((numbers, score.interval()))
    assert texts[0] == texts[1]


def test_members_stand_for_their_array():
    targets, a, b = (cloud(seed, 7 + seed) for seed in range(3))
    a[2] = 0.0
    members = unit_members(a)
    estimate = association_score(targets, members, b, resampling=Bootstrap(50, 50))
    plain = association_score(targets, a, b, resampling=Bootstrap(50, 50))
    assert (estimate.value, estimate.p_value, estimate.excluded, estimate.interval()) == (
        plain.value, plain.p_value, plain.excluded, plain.interval(),
    )  # fmt: skip
    assert embed({"x": members}, {"y": b})["x"] is members
    assert np.asarray(members).shape == (7, 6)
    assert np.shape(members) == (8, 6)


@pytest.mark.parametrize("pieces", [False, True])
def test_intervals_leave_out_each_member_of_each_set(pieces, monkeypatch):
    if pieces:
        monkeypatch.setattr(vector_sets, "_KEPT", 0)
        monkeypatch.setattr(vector_sets, "_AT_ONCE", 15)
    named_sets = {name: cloud(seed, 5 + seed) for seed, name in enumerate("tab")}

    def score(resampling=None, **sets):
        return association_score(sets["t"], sets["a"], sets["b"], resampling=resampling)

    without = [
        [
            score(**{**named_sets, name: np.delete(rows, index, axis=0)}).value
            for index in range(len(rows))
        ]
        for name, rows in named_sets.items()
    ]
    estimate = score(Bootstrap(10, 10), **named_sets)
    expected = jackknife_t(estimate.value, without)
    interval = estimate.interval()
    assert [interval.low, interval.high] == pytest.approx([*map(float, expected)], abs=1e-12)


def test_units_are_left_out_of_all_their_sets():
    rows, persons = cloud(1, 24), np.repeat(np.arange(8), 3)
    score = partial(association_score, cloud(2, 1), rows[::2], rows[1::2])
    by_person = score(units={"a": persons[::2], "b": persons[1::2]})
    without = [
        association_score(
            cloud(2, 1), *(rows[side::2][persons[side::2] != index] for side in (0, 1))
        ).value
        for index in range(8)
    ]
    interval, (low, high) = by_person.interval(), jackknife_t(by_person.value, [without])
    assert [interval.low, interval.high] == pytest.approx([float(low), float(high)], rel=1e-9)


def test_draws_have_the_variances_of_the_jackknife():
    left_out = [cloud(3, 40, 3), cloud(4, 9, 3)]
    left_out[0][:, 2] = left_out[0][:, 0]
    left_out[1][:, 2] = left_out[1][:, 0]
    replicates = Jackknife(lambda: (np.arange(3.0), left_out)).draws(20_000, 5)
    parts = [np.cov(rows.T) * (len(rows) - 1) ** 3 / len(rows) ** 2 for rows in left_out]
    assert np.cov(replicates.T) == pytest.approx(sum(parts), rel=0.05, abs=0.3)
    assert replicates[:, 2] - 2.0 == pytest.approx(replicates[:, 0])
