"""Zero-shot classes against a plain implementation, ties, and what is refused."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.evidence import concept_scores, zero_shot

module = import_module("equipoise.evidence.zero_shot")

RNG = np.random.default_rng(11)
IMAGES = RNG.normal(size=(50, 8)).astype(np.float32)
CLASSES = RNG.normal(size=(7, 8)).astype(np.float32)


def plain_logits(scale, bias):
    images = IMAGES.astype(float) / np.linalg.norm(IMAGES.astype(float), axis=1)[:, None]
    classes = CLASSES.astype(float) / np.linalg.norm(CLASSES.astype(float), axis=1)[:, None]
    return scale * images @ classes.T + bias


def test_classes_are_ranked_by_their_scores():
    logits = plain_logits(14.0, 0.0)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    ranking = zero_shot(IMAGES, CLASSES, scale=14.0, k=7)
    order = np.argsort(-expected, axis=1)
    np.testing.assert_array_equal(ranking.top, order)
    np.testing.assert_allclose(ranking.scores, np.take_along_axis(expected, order, 1), atol=1e-11)


def test_huge_scales_do_not_overflow():
    assert np.isfinite(zero_shot(IMAGES, CLASSES, scale=1e6, k=2).scores).all()


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
def test_of_equal_classes_the_first_is_ranked_first(k):
    # Classes 1, 3 and 4 are one vector, scaled: rounding must not decide between them.
    vector = CLASSES[0]
    classes = np.stack([-vector, vector, CLASSES[1], 3.7 * vector, 0.01 * vector])
    ranking = zero_shot([vector, 0.3 * vector], classes, scale=30.0, k=k)
    assert ranking.top[:, :3].tolist() == [[1, 3, 4][:k]] * 2


@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_ranks_equal_a_stable_sort_also_with_many_ties(k, m, seed):
    rng = np.random.default_rng(seed)
    # Directions on a square: cosines are -1, 0 or 1 exactly.
    square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    images, classes = square[rng.integers(0, 4, 9)], square[rng.integers(0, 4, m)]
    ranking = zero_shot(images, classes, scale=1.0, k=k)
    expected = np.argsort(-(images @ classes.T), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(ranking.top, expected)


@pytest.mark.parametrize("of", ["cosine", "logit", "sigmoid"])
def test_concepts_are_scored_one_by_one(of):
    expected = {
        "cosine": plain_logits(1.0, 0.0),
        "logit": plain_logits(12.0, -3.0),
        "sigmoid": 1 / (1 + np.exp(-plain_logits(12.0, -3.0))),
    }[of]
    scores = concept_scores(IMAGES, CLASSES, scale=12.0, bias=-3.0, of=of)
    np.testing.assert_allclose(scores, expected, atol=1e-10)
    alone = concept_scores(IMAGES, CLASSES[2:3], scale=12.0, bias=-3.0, of=of)
    np.testing.assert_allclose(alone[:, 0], scores[:, 2], atol=1e-10)


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (IMAGES, {"k": 0}, "k is 0; expected at least 1"),
        (IMAGES[:, :5], {}, r"shape \(50, 5\) and the classes \(7, 8\); expected vectors of one"),
        (np.zeros((2, 8)), {}, "the vector of image 0 is zero"),
        (np.full((2, 8), np.inf), {}, "the vector of image 0 is not finite"),
    ],
)
def test_unrankable_input_is_refused(images, options, message):
    with pytest.raises(InputError, match=message):
        zero_shot(images, CLASSES, scale=1.0, **options)
