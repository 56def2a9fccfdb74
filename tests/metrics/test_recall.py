"""Recall at K, beside a plain count and with ties by enumeration."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.metrics import recall_at_k
from equipoise.metrics.rankings.recall import recall_hits
from equipoise.stats.intervals import wilson
from equipoise.stats.resampling import Permutation


def random(seed, images=30, texts=40):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(images, texts)), rng.integers(0, images, texts)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_texts_find_their_image_as_a_plain_count_says(k):
    scores, owner = random(0)
    plain = [owner[t] in np.argsort(-scores[:, t])[:k] for t in range(40)]
    found = recall_at_k(scores, owner, k=k)
    assert found.value == np.mean(plain)
    low, high = wilson(np.array(sum(plain)), np.array(40.0), 0.95)
    interval = found.interval()
    assert (interval.low, interval.high) == pytest.approx((float(low), float(high)))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=6),
    st.integers(1, 6),
)
def test_a_tie_counts_with_its_probability(items, k):
    scores, relevant = (np.array(column)[:, None] for column in zip(*items, strict=True))
    if not relevant.any() or k > len(items):
        return
    orders = [sorted(order, key=lambda one: -one[0])[:k] for order in permutations(items)]
    expected = np.mean([any(right for _, right in best) for best in orders])
    assert recall_hits(scores, relevant, k=k)[0] == pytest.approx(expected)


def test_texts_of_one_image_are_resampled_together():
    scores, owner = random(4, images=10)
    alone = recall_at_k(scores, owner, k=3)
    units = recall_at_k(scores, owner, k=3, units=owner)
    assert units.value == alone.value
    assert units.unit == "unit"
    none = recall_at_k(scores, owner, k=3, units=owner, resampling=Permutation())
    assert np.isnan(none.interval().low)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"k": 41, "to": "texts"}, "k=41"),
        ({"to": "sounds"}, "to is 'sounds'"),
        ({"scores": np.full((30, 40), np.nan)}, "scores"),
        ({"relevant": np.full(40, 30)}, "relevant"),
        ({"relevant": np.zeros((30, 40), bool)}, "40 queries"),
        ({"units": ["a"]}, "units"),
    ],
)
def test_bad_input(change, argument):
    scores, owner = random(5)
    with pytest.raises(InputError, match=f"^{argument}"):
        recall_at_k(**({"scores": scores, "relevant": owner, "k": 1} | change))
