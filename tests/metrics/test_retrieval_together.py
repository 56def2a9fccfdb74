"""All measures of a ranking in one call; compiled loops of the null against numpy's own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core.errors import InputError
from equipoise.metrics import (
    bias_at_k,
    cosine_scores,
    max_skew,
    min_skew,
    ndkl,
    retrieval_mad,
    retrieval_measures,
    skew_at_k,
)
from equipoise.metrics.retrieval.kernels import draw_first, shuffle
from equipoise.stats.resampling import Bootstrap, Exact

FEW = Bootstrap(replicates=30, permutations=40, resolution=0.05)
NAMES = ("max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "bias_at_k")
FUNCTIONS: dict[str, Any] = {
    "max_skew": max_skew,
    "min_skew": min_skew,
    "skew_at_k": skew_at_k,
    "ndkl": ndkl,
    "retrieval_mad": retrieval_mad,
    "bias_at_k": bias_at_k,
}


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from([None, FEW]))
def test_each_is_what_its_function_returns(
    seed: int, ties: bool, sets: bool, resampling: Any
) -> None:
    rng = np.random.default_rng(seed)
    scores = np.stack([plain.world(seed + i, 60, 3, ties=ties)[0] for i in range(3)])
    common = {
        "groups": rng.integers(0, 3, 60),
        "sets": np.arange(60) // 4 if sets else None,
        "within": np.repeat([0, 1], [10, 50]),
        "resampling": resampling,
        "rng": seed % 5,
    }
    found = retrieval_measures(
        scores, **common, k=6, prefixes=12, measures=NAMES, first="0", second="2", group="1"
    )
    assert tuple(found) == NAMES
    for name, one in found.items():
        extra = {"bias_at_k": {"first": "0", "second": "2"}, "skew_at_k": {"group": "1"}}
        k = 12 if name == "ndkl" else 6
        alone = FUNCTIONS[name](scores, **common, k=k, **extra.get(name, {}))
        assert str(one) == str(alone)
        assert str(one.by) == str(alone.by)


def test_the_default_is_all_but_the_contrast_of_two_groups() -> None:
    scores, groups = plain.world(1, 50, 3, ties=False)
    found = retrieval_measures(scores, groups, k=5, resampling=None)
    assert tuple(found) == NAMES[:5]
    assert found["ndkl"].params["k"] == 5
    vectors = cosine_scores(np.eye(50) + 0.01, [scores])
    again = retrieval_measures(vectors, groups, k=5, measures=["ndkl"], resampling=None)
    assert again["ndkl"].value == pytest.approx(found["ndkl"].value, abs=1e-12)


def test_bad_requests() -> None:
    given = {"scores": [3, 2, 1], "groups": ["a", "b", "a"], "k": 1}
    with pytest.raises(InputError, match=r"^measures: 'skew'; expected some of max_skew, min_skew"):
        retrieval_measures(**given, measures=["skew"])
    with pytest.raises(InputError, match=r"^measures: 'none'; expected some of max_skew, min_skew"):
        retrieval_measures(**given, measures=[])
    with pytest.raises(InputError, match=r"^k=0: expected a whole number of at least 1$"):
        retrieval_measures(**given, prefixes=0)
    with pytest.raises(InputError, match=r"^resampling=Exact: only for max_skew of one query"):
        retrieval_measures(**given, resampling=Exact())


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 10**6))
def test_shuffling_is_that_of_numpy(sizes: list[int], seed: int) -> None:
    size = np.array(sizes)
    first = np.cumsum(size) - size
    labels = np.tile(np.arange(size.sum(), dtype=np.int32), (5, 1))
    expected = labels.copy()
    numpy = np.random.default_rng(seed)
    for start, many in zip(first.tolist(), sizes, strict=True):
        part = expected[:, start : start + many]
        part[:] = numpy.permuted(part, axis=1)
    words = np.random.default_rng(seed).integers(0, 2**64 - 1, 5_000, np.uint64, endpoint=True)
    assert shuffle(labels, first, size, words.view(np.uint32))
    assert labels.tolist() == expected.tolist()
    few = np.zeros(0, dtype=np.uint32)
    assert shuffle(labels, first, size, few) == (max(sizes) == 1)


@given(st.integers(0, 10**6))
def test_drawing_the_first_is_fisher_and_yates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = rng.integers(3, 12, 4)
    first, wanted = np.cumsum(size) - size, np.sort(rng.integers(1, 4, 4))[::-1].copy()
    random = rng.random(6 * wanted.sum())
    state = np.tile(np.arange(size.sum(), dtype=np.int32), (6, 1))
    expected, at = state.copy(), 0
    for step in range(wanted[0]):
        for row in expected:
            for start, many in zip(first[wanted > step], size[wanted > step], strict=True):
                other = start + step + int(random[at] * (many - step))
                row[[start + step, other]] = row[[other, start + step]]
                at += 1
    labels, source = state[0].copy(), rng.integers(0, size.sum(), 9)
    found = np.empty((6, 9), dtype=np.int32)
    draw_first(labels, first, size, wanted, random, source, found)
    assert found.tolist() == expected[:, source].tolist()
    assert labels.tolist() == state[0].tolist()
