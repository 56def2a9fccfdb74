"""Recall at K, beside a plain count and with ties by enumeration."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.metrics import recall_hits


def random(seed, images=30, texts=40):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(images, texts)), rng.integers(0, images, texts)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_texts_find_their_image_as_a_plain_count_says(k):
    scores, owner = random(0)
    plain = [owner[t] in np.argsort(-scores[:, t])[:k] for t in range(40)]
    assert recall_hits(scores, owner, k=k).tolist() == plain


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=6),
    st.integers(1, 6),
)
def test_a_tie_counts_with_its_probability(items, k):
    scores, relevant = (np.array(column)[:, None] for column in zip(*items, strict=True))
    if not relevant.any() or k > len(items):
        return
    orders = [sorted(order, key=lambda pair: -pair[0])[:k] for order in permutations(items)]
    expected = np.mean([any(right for _, right in best) for best in orders])
    assert recall_hits(scores, relevant, k=k)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"k": 41, "to": "texts"}, "k=41"),
        ({"to": "sounds"}, "to is 'sounds'"),
        ({"scores": np.full((30, 40), np.nan)}, "scores"),
        ({"relevant": np.full(40, 30)}, "relevant"),
        ({"relevant": np.zeros((30, 40), bool)}, "40 queries"),
    ],
)
def test_bad_input(change, argument):
    scores, owner = random(5)
    with pytest.raises(InputError, match=f"^{argument}"):
        recall_hits(**({"scores": scores, "relevant": owner, "k": 1} | change))
