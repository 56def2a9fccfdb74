"""Replicates of sets: drawn in blocks of fixed streams, whatever shares a pass over the vectors."""

from typing import Any

import numpy as np
import pytest

from equipoise.metrics.associations import resampling
from equipoise.metrics.associations.members import unit_members
from equipoise.metrics.associations.resampling import few_at_once, replicate_blocks
from equipoise.metrics.associations.scores import association_score
from equipoise.metrics.associations.weat import sc_weat, weat
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import stream


def cloud(seed: int, n: int, d: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.fixture(params=["together", "apart", "bytes"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks be small, and pass, weights and draws of other sizes than usual."""
    chosen = {
        "together": {"_TOGETHER": 9, "_MANY": 1 << 14, "_DRAWN": 7},
        "apart": {"_TOGETHER": 1, "_MANY": 1 << 14, "_DRAWN": 1 << 18},
        "bytes": {"_TOGETHER": 64, "_MANY": 3, "_DRAWN": 100},
    }[request.param]
    for name, value in {**chosen, "_BLOCK_CELLS": 80}.items():
        monkeypatch.setattr(resampling, name, value)


def drawn(name: str, n: int, replicates: int, size: int, seed: int) -> np.ndarray:
    """Draw each block with the generator of its own stream, and count."""
    lines = []
    for start in range(0, replicates, size):
        many = min(size, replicates - start)
        members = stream(seed, "bootstrap", name, start).integers(n, size=(many, n))
        lines += [np.bincount(line, minlength=n) for line in members]
    return np.array(lines)


@pytest.mark.usefixtures("sizes")
def test_weights_are_those_of_blocks_drawn_one_by_one() -> None:
    sets = {name: unit_members(name, cloud(n, n)) for name, n in (("a", 20), ("b", 9), ("c", 1))}
    found: dict[str, list[np.ndarray]] = {name: [] for name in sets}
    for weights in replicate_blocks(sets, ("c",), 26, 5):
        for name, one in weights.items():
            found[name].append(one)
    # 80 cells for 20 members: 4 replicates to a stream.
    for name, n in (("a", 20), ("b", 9)):
        assert (np.concatenate(found[name]) == drawn(name, n, 26, 4, 5)).all()
    assert (np.concatenate(found["c"]) == 1).all()


def numbers(estimate: Any) -> list[float]:
    rows = estimate.by.to_pylist()
    own = [estimate.value, estimate.interval().low, estimate.interval().high, estimate.p_value]
    return [*own, *(row[name] for row in rows for name in ("value", "low", "high"))]


def every() -> list[list[float]]:
    drawing = Bootstrap(40, permutations=50)
    sets = cloud(1, 12), cloud(2, 7), cloud(3, 19), cloud(4, 15)
    people = {name: [f"{i // 2}" for i in range(n)] for name, n in (("a", 19), ("b", 15))}
    return [
        numbers(association_score(sets[0][:4], *sets[2:], resampling=drawing)),
        numbers(association_score(*sets[:3], resampling=drawing)),
        numbers(association_score(sets[0], *sets[2:], units=people, resampling=drawing)),
        numbers(weat(*sets, resampling=drawing)),
        numbers(sc_weat(sets[0][0], *sets[2:], resampling=drawing)),
    ]


def test_numbers_do_not_depend_on_what_shares_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_BLOCK_CELLS", 80)
    expected = every()
    for together, many, cells in ((1, 1 << 14, 7), (8, 1 << 14, 100), (64, 3, 30)):
        monkeypatch.setattr(resampling, "_TOGETHER", together)
        monkeypatch.setattr(resampling, "_MANY", many)
        monkeypatch.setattr(resampling, "_AT_ONCE", cells)
        monkeypatch.setattr(resampling, "_DRAWN", cells)
        np.testing.assert_equal(every(), expected)


def test_a_statistic_of_every_member_sees_few_replicates_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resampling, "_BLOCK_CELLS", 100)
    held = unit_members("x", cloud(0, 30))
    seen = []

    def statistic(weights: Any) -> np.ndarray:
        seen.append(weights["x"].shape)
        assert (weights["x"].dtype, weights["y"].dtype) == (np.float64, np.uint8)
        return weights["x"].sum(axis=1, keepdims=True)

    times = np.random.default_rng(0).integers(0, 9, (10, 30)).astype(np.uint8)
    found = few_at_once(statistic, {"x": held}, "x")({"x": times, "y": times})
    assert seen == [(3, 30), (3, 30), (3, 30), (1, 30)]
    assert found[:, 0].tolist() == times.sum(axis=1).tolist()
