"""Vectors as recipes and measures take them: held once, of length 1, and finite."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.mitigate import ImageSets, SubjectTexts
from equipoise.mitigate.measuring import (
    RetrievalSet,
    Test,
    ZeroShotSet,
    embed_images,
    embed_unit_texts,
)

IMAGES, NUMBERS = 12_000, 512
SUBJECTS = ("nurse", "clerk")
ONCE = IMAGES * NUMBERS * 4


def _vectors(items):
    seeds = [item if isinstance(item, int) else len(item) for item in items]
    first = np.random.default_rng(seeds[0]).standard_normal((len(items), NUMBERS), np.float32)
    return first + 0.1


MODEL = SimpleNamespace(
    info=SimpleNamespace(name="hf:wide", dimension=NUMBERS, scale=1.0),
    embed_images=_vectors,
    embed_texts=_vectors,
)
IMAGE_ROWS = range(IMAGES)


def _column(*values):
    return np.array([values[row * len(values) // IMAGES] for row in range(IMAGES)], dtype=object)


SUBJECT = _column(*SUBJECTS)
HUE = np.array(["red", "blue"] * (IMAGES // 2), dtype=object)
SET = np.array([f"set {row // 2}" for row in range(IMAGES)], dtype=object)
NONE = ImageSets(range(4), SUBJECT[[0, 1, -2, -1]], SET[[0, 1, -2, -1]], SET[:4], {"hue": HUE[:4]})
TEXTS = {
    subject: SubjectTexts(subject, (f"a {subject}",), (f"a red {subject}",), ({},))
    for subject in SUBJECTS
}
SETS = ImageSets(IMAGE_ROWS, SUBJECT, SET, SUBJECT, {"hue": HUE})
ZERO_SHOT = ZeroShotSet(
    "z", IMAGE_ROWS, SUBJECT, {subject: (f"a {subject}",) for subject in SUBJECTS}
)
RETRIEVAL = RetrievalSet("r", IMAGE_ROWS, SUBJECT)


def _peak(test):
    tracemalloc.start()
    try:
        test.measure(MODEL)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("test", "limit"),
    [
        (Test(SETS, TEXTS), 1.3),
        (Test(NONE, TEXTS, (ZERO_SHOT,)), 0.3),
        (Test(NONE, TEXTS, (), (RETRIEVAL,)), 0.3),
    ],
    ids=["sets", "zero shot", "retrieval"],
)
def test_vectors_are_held_once_or_not_at_all(test, limit):
    _peak(Test(NONE, TEXTS))
    assert _peak(test) < limit * ONCE


def model(vectors):
    """Return a model whose images and texts are rows of vectors, by their number."""
    rows = np.array(vectors, dtype=np.float32)

    def embed(items):
        return rows[[int(item) for item in items]]

    return SimpleNamespace(
        info=SimpleNamespace(name="hf:clip", dimension=rows.shape[1]),
        embed_images=embed,
        embed_texts=embed,
    )


@pytest.mark.parametrize("number", [0.0, np.nan, np.inf])
def test_a_vector_that_is_no_direction_is_refused(number):
    bad = model([[1.0, 2.0], [number, number]])
    with pytest.raises(ModelError):
        embed_images(bad, [0, 1])
    with pytest.raises(ModelError):
        embed_unit_texts(bad, ["0", "1"])


def test_an_image_has_every_caption_that_is_listed_for_it():
    """The first image is closest to its second caption, the third to one of the second's."""
    axes = {"a": (0, 1, 0), "b": (1, 0, 0), "c": (0, 1, 0.1), "d": (0, 0.1, 1), "e": (-1, 0.5, 0)}
    model = SimpleNamespace(
        info=SimpleNamespace(name="hf:axes", dimension=3, scale=1.0),
        embed_images=lambda images: np.eye(3, dtype=np.float32)[np.array(images) % 3],
        embed_texts=lambda texts: np.array([axes[text[0]] for text in texts], np.float32),
    )
    captions = np.array(["a", "b", "c", "d", "e"], dtype=object)
    pairs = RetrievalSet("r", range(3), captions, image=np.array([0, 0, 1, 1, 2]))
    hits = Test(NONE, TEXTS, retrieval=(pairs,)).measure(model).utility
    assert hits["text_recall_at_1", "r"] == {"0": 1.0, "1": 0.0, "2": 0.0}
    assert hits["image_recall_at_1", "r"] == {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 0.0}


def test_the_gap_of_three_values_is_the_largest_difference_between_them():
    height = {"red": 1.0, "blue": 0.6, "green": 0.0}
    hues = [*height] * 8
    rows = range(len(hues))

    def embed_images(pictures):
        cosines = np.array([height[hues[row]] for row in pictures])
        return np.column_stack([cosines, np.sqrt(1.0 - cosines**2)]).astype(np.float32)

    encoder = SimpleNamespace(
        info=SimpleNamespace(name="hf:hues", dimension=2, scale=10.0),
        embed_images=embed_images,
        embed_texts=lambda texts: np.array([[1.0, 0.0]] * len(texts), np.float32),
    )
    subject = np.array(["nurse"] * 12 + ["clerk"] * 12, dtype=object)
    set_names = np.array([f"set {row // 3}" for row in rows], dtype=object)
    images = ImageSets(rows, subject, set_names, subject, {"hue": np.array(hues, dtype=object)})
    gaps = Test(images, TEXTS).measure(encoder).bias["logit_gap", "hue"]
    assert gaps == pytest.approx({"nurse": 10.0, "clerk": 10.0})
