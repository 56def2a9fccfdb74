"""Normalised similarity: goldens, the source's table, plain loops, chance, intervals, bad input."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.rankings.similarity import normalized_similarity_mad
from equipoise.stats.resampling import Bootstrap, Exact
from goldens import Golden, cases

TABLE_1 = Golden("chen_dou_table_1.json")
FEW = Bootstrap(replicates=100, permutations=100, resolution=0.05)


def rows(estimate: Estimate) -> list[dict[str, Any]]:
    assert estimate.by is not None
    return estimate.by.to_pylist()


@pytest.mark.parametrize("golden", cases("retrieval.json"))
def test_goldens(golden: dict[str, Any]) -> None:
    found = normalized_similarity_mad(golden["scores"], golden["groups"], resampling=FEW)
    assert found.value == pytest.approx(golden["similarity_mad"], abs=1e-12)
    shown = [group["value"] for group in rows(found)[0]["by_group"]]
    assert shown == pytest.approx(golden["normalized_similarity"], abs=1e-12)


@pytest.mark.parametrize("index", range(5))
def test_the_table_of_chen_and_dou(index: int) -> None:
    """Group sizes follow from the two means: together they are 0. Printed to four digits."""
    _, male, female, _, _, mad, _ = TABLE_1["rows"][index]
    sizes = round(20_000 * female / (female - male)), round(20_000 * male / (male - female))
    means = np.repeat([male, female], sizes)
    noise = np.concatenate([np.linspace(-1, 1, size) for size in sizes])
    noise *= math.sqrt((1 - (means**2).mean()) / (noise**2).mean())
    groups = np.repeat(["male", "female"], sizes)
    found = normalized_similarity_mad(means + noise, groups, resampling=None)
    assert found.value == pytest.approx(mad, abs=2e-4)
    p = {group["group"]: group["value"] for group in rows(found)[0]["by_group"]}
    assert p == pytest.approx({"male": male, "female": female}, abs=2e-4)


@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
def test_agrees_with_plain_loops(seed: int, many: int, ties: bool) -> None:
    worlds = [plain.world(seed + i, 25, many, ties=ties) for i in range(3)]
    groups = worlds[0][1]
    scores = np.stack([one for one, _ in worlds])
    expected = [plain.similarity_mad(list(one), list(groups), many) for one in scores]
    found = normalized_similarity_mad(scores, groups, resampling=None)
    assert [row["value"] for row in rows(found)] == pytest.approx(expected, abs=1e-11)
    assert found.value == pytest.approx(np.mean(expected), abs=1e-11)
    long = normalized_similarity_mad(
        scores.ravel(), np.tile(groups, 3), queries=np.repeat([0, 1, 2], 25), resampling=None
    )
    assert long.value == pytest.approx(found.value, abs=1e-11)


def test_sets_are_resampled_and_exchanged_as_one() -> None:
    rng = np.random.default_rng(1)
    sets = np.repeat(np.arange(50), 4)
    scores = np.repeat(rng.standard_normal(50), 4) + 0.3 * rng.standard_normal(200)
    groups = np.tile(["a", "b", "c", "d"], 50)
    within = normalized_similarity_mad(scores, groups, sets=sets, resampling=FEW)
    pooled = normalized_similarity_mad(scores, groups, resampling=FEW)
    assert (within.unit, pooled.unit) == ("set", "image")
    assert within.chance is not None
    assert pooled.chance is not None
    assert within.chance.mean < pooled.chance.mean / 2
    spread = [one.interval().high - one.interval().low for one in (within, pooled)]
    assert spread[0] < spread[1]


def test_what_has_no_value_says_why() -> None:
    equal = normalized_similarity_mad([1.0] * 6, ["a", "b"] * 3, resampling=FEW)
    assert math.isnan(equal.value)
    assert (equal.reason, equal.no_chance) == ("all scores are equal", "not estimable")
    alone = normalized_similarity_mad([1.0, 2, 3], ["a"] * 3, resampling=FEW)
    assert alone.reason == "fewer than two groups in the pool"
    small = Groups.of(["a"] * 4 + ["b"], min_size=2)
    few = normalized_similarity_mad([1.0, 2, 3, 4, 5], small, resampling=FEW)
    assert few.reason == "fewer than two groups with rows enough"
    mixed = normalized_similarity_mad([[1.0] * 4, [1, 2, 3, 4]], ["a", "b"] * 2, resampling=FEW)
    assert mixed.excluded == {"queries with one group or equal scores": 1}
    assert mixed.value == rows(mixed)[1]["value"]
    missing = normalized_similarity_mad([1.0, 2, 3, 9], ["a", "b", "a", None], resampling=None)
    assert missing.excluded == {"items without a group": 1}
    assert missing.value == pytest.approx(plain.similarity_mad([1, 2, 3], [0, 1, 0], 2))


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^scores, item 2: nan is no finite number"):
        normalized_similarity_mad([1.0, math.nan], ["a", "b"])
    with pytest.raises(InputError, match=r"^resampling=Exact: not available for similarities"):
        normalized_similarity_mad([1.0, 2.0], ["a", "b"], resampling=Exact())
