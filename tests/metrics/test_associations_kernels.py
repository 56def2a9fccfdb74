"""Kernels of associations: whole sums of any size, unit vectors, members in both sets."""

import math
from fractions import Fraction

import numpy as np
import pytest

from equipoise.metrics.associations.kernels import add_chosen, differences
from equipoise.metrics.associations.resampling import replicate_blocks
from equipoise.metrics.associations.space import embed, exact_mean, shared_members
from equipoise.metrics.associations.weat import weat
from equipoise.stats.resampling import Bootstrap


def cloud(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e300, 5e-324])
def test_exact_means_are_exact_at_any_size_and_in_any_order(size: float) -> None:
    rows, tiny = cloud(0, 50, 7) * size, Fraction(5e-324)
    found = exact_mean(rows)
    for column, mean in zip(rows.T, found, strict=True):
        exact = sum(map(Fraction, column.tolist()), Fraction(0)) / 50
        assert abs(Fraction(float(mean)) - exact) <= Fraction(np.abs(rows).max()) / 2**48 + tiny
    assert (exact_mean(rows[::-1]) == found).all()
    assert (exact_mean(np.zeros((3, 2))) == 0).all()


def test_sums_of_chosen_members_are_those_of_their_bits() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(-(2**50), 2**50, size=(2, 192))
    words = rng.integers(1 << 64, size=(30, 3), dtype=np.uint64)
    found = np.empty((30, 2), dtype=np.int64)
    add_chosen(words, values, found)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
    assert (found == bits @ values.T).all()


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 4), (7, 1)])
@pytest.mark.parametrize("bits", [0, 61, -960, 1130])
def test_differences_of_means_are_those_of_fractions(n: int, m: int, bits: int) -> None:
    sums, total = np.random.default_rng(n).integers(-(2**60), 2**60, size=(40, 2)), np.array([5, 0])
    found = np.empty(sums.shape)
    differences(sums, total, n, m, bits, found)
    for column, rows in enumerate(sums.T.tolist()):
        apart = [Fraction(one, n) - Fraction(int(total[column]) - one, m) for one in rows]
        exact = [float(one / Fraction(2) ** bits) for one in apart]
        assert found[:, column] == pytest.approx(exact, rel=1e-15, abs=5e-324)


def test_a_vector_is_the_same_whatever_stands_beside_it() -> None:
    rows, others = cloud(2, 6, 70), {"a": cloud(3, 2, 70)}
    plain = embed({"x": rows}, others)["x"].vectors
    mixed = np.insert(rows, [0, 3, 3, 6], 0.0, axis=0)
    mixed[4] = np.inf
    found = embed({"x": mixed}, others)["x"]
    assert (found.vectors == plain).all()
    assert found.rows.tolist() == [1, 2, 3, 6, 7, 8]
    assert (found.given, dict(found.dropped)) == (
        10,
        {"not a number or infinite": 1, "zero vector": 3},
    )
    scaled = rows * np.ldexp(1.0, [0, 900, -900, 1, -1060, 0])[:, None]
    assert embed({"x": scaled}, others)["x"].vectors == pytest.approx(plain, abs=1e-3)
    assert (embed({"x": scaled[:4]}, others)["x"].vectors == plain[:4]).all()
    assert plain @ plain.T == pytest.approx(
        (rows @ rows.T) / np.outer(*[np.linalg.norm(rows, axis=1)] * 2), abs=1e-13
    )


def test_members_of_both_sets_are_counted_as_vectors() -> None:
    rows = cloud(4, 8, 5)
    sets = embed(
        {"x": rows[:5], "y": np.concatenate([3.0 * rows[3:], rows[3:4], -rows[:1]])},
        {"a": np.ones((1, 5))},
    )
    assert shared_members(sets["x"], sets["y"]) == 2
    assert shared_members(sets["y"], sets["x"]) == 3
    # The same first number is not the same vector.
    axes = embed({"x": [[1, 0, 0]], "y": [[1, 0, 0.0]]}, {"a": [[0, 1, 0]], "b": [[0, 0, 1]]})
    assert shared_members(axes["x"], axes["y"]) == 1
    assert shared_members(axes["a"], axes["b"]) == 0
    assert math.isclose(float(axes["a"].vectors[0, 1]), 1.0)


def test_replicates_are_the_effect_sizes_of_sets_drawn_anew() -> None:
    x, y, a, b = (cloud(seed, n, 6) for seed, n in ((1, 7), (2, 9), (3, 5), (4, 8)))
    found = weat(x, y, a, b, resampling=Bootstrap(replicates=300, permutations=10), rng=5)
    sets = embed({"x": x, "y": y}, {"a": a, "b": b})
    weights = next(replicate_blocks(sets, (), 300, 5))
    effects = [
        weat(
            *(
                np.repeat(rows, weights[name][one].astype(int), axis=0)
                for name, rows in zip("xyab", (x, y, a, b), strict=True)
            ),
            resampling=None,
        ).value
        for one in range(20)
    ]
    assert found.ends.replicates[:20] == pytest.approx(effects, abs=1e-12)  # type: ignore[attr-defined]
