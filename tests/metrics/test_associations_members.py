"""Members of large sets: vectors made some at a time are those made at once."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from equipoise.metrics.associations import members
from equipoise.metrics.associations.members import dots, exact_mean, similarities
from equipoise.metrics.associations.resampling import mean_vectors
from equipoise.metrics.associations.scores import association_score
from equipoise.metrics.associations.space import embed, shared_members
from equipoise.metrics.chosen_rows import ChosenRows
from equipoise.metrics.diversity.iss import iss_cross
from equipoise.metrics.diversity.subset import diverse_subset
from equipoise.stats.resampling import Bootstrap

TYPES = ["float16", "float32", "float64"]


def cloud(seed: int, n: int, d: int, kind: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(kind)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_KEPT", 0)
    monkeypatch.setattr(members, "_AT_ONCE", 100)


def odd(kind: str) -> np.ndarray:
    """Return rows of which some cannot be used."""
    rows = cloud(1, 40, 9, kind)
    rows[3], rows[17, 2], rows[30] = 0, np.nan, np.inf
    return rows


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("given", [lambda kind: cloud(0, 41, 9, kind), odd])
def test_numbers_of_pieces_are_those_of_the_whole(
    kind: str, given: Callable[[str], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, others = given(kind), cloud(2, 5, 9)
    whole = embed({"x": rows}, {"a": others})["x"]
    vectors, direction = whole.vectors, others[0]
    monkeypatch.setattr(members, "_KEPT", 0)
    monkeypatch.setattr(members, "_AT_ONCE", 100)
    found = embed({"x": rows}, {"a": others})["x"]
    assert len([*found.blocks()]) == 4
    assert (len(found), found.given) == (len(vectors), len(rows))
    assert found.dropped == whole.dropped
    for one, other in (
        (found.vectors, vectors),
        (found.take(np.array([7, 0, 7])), vectors[[7, 0, 7]]),
        (found.mean, exact_mean(vectors)),
        (found.dots(direction), dots(vectors, direction)),
        (found.similarities(others), similarities(vectors, others)),
    ):
        np.testing.assert_array_equal(one, other)
    weights = np.random.default_rng(3).integers(0, 4, (6, len(found))).astype(float)
    np.testing.assert_array_equal(mean_vectors(weights, found), mean_vectors(weights, vectors))


@pytest.mark.usefixtures("in_pieces")
def test_shared_members_of_pieces_are_counted() -> None:
    rows = cloud(4, 80, 5)
    sets = embed({"x": rows[:50], "y": np.concatenate([3 * rows[30:], -rows[:1]])}, {"a": rows})
    assert shared_members(sets["x"], sets["y"]) == 20
    assert shared_members(sets["y"], sets["x"]) == 20
    apart = embed({"x": rows[:30], "y": rows[30:]}, {"a": rows})
    assert shared_members(apart["x"], apart["y"]) == 0


def test_a_large_set_of_halves_is_not_held_as_float64() -> None:
    rows = cloud(5, 40_000, 128, "float16")
    embed({"x": rows[:100]}, {"a": rows[:100]})  # Kernels are compiled.
    tracemalloc.start()
    try:
        found = embed({"x": rows}, {"a": rows[:100]})["x"]
        assert found.mean.shape == (128,)
        assert found.dots(found.mean).shape == (40_000,)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows.nbytes < 1.1e7
    assert peak < 3e7  # As float64 the set has 41 MB.


@pytest.mark.parametrize("kind", [*TYPES, ">f4"])
def test_chosen_rows_of_a_table_stand_for_the_array_of_them(kind: str) -> None:
    table, places = cloud(6, 60, 7, kind), np.random.default_rng(7).permutation(60)[:40]
    a, b, targets = places[:20], places[20:], cloud(8, 3, 7)
    some = Bootstrap(50, 50)
    whole = association_score(targets, table[a], table[b], resampling=some)
    chosen = (ChosenRows(table, rows) for rows in (a, b))
    found = association_score(targets, *chosen, resampling=some)
    assert (found.value, found.interval(), found.p_value) == (
        whole.value,
        whole.interval(),
        whole.p_value,
    )
    sets = {"a": table[a], "b": table[b]}
    same = {"a": ChosenRows(table, a), "b": ChosenRows(table, b)}
    apart = [
        iss_cross(one, components=c, resampling=some) for one in (sets, same) for c in (None, 2)
    ]
    assert [one.value for one in apart[:2]] == [one.value for one in apart[2:]]
    assert [one.p_value for one in apart[:2]] == [one.p_value for one in apart[2:]]
    assert (diverse_subset(sets["a"], 5) == diverse_subset(same["a"], 5)).all()
    assert (same["a"].size, same["a"].shape, same["a"].dtype) == (140, (20, 7), table.dtype)
