"""Vectors of texts: computed once, whole on disk, and never another model's."""

import numpy as np
import pytest

from equipoise.core import InputError, ModelError
from equipoise.evidence import class_vectors, embed_classes, embed_texts, prompts
from equipoise.models import ModelInfo

WORDS = [f"word {number}" for number in range(10)]


class Encoder:
    """Embeds a text as numbers made of its characters; counts what it ran on."""

    def __init__(self, weights="a", fail_after=None):
        self.info = ModelInfo("python:fake:encoder", "fake", weights, dimension=3)
        self.ran = []
        self.fail_after = fail_after

    def embed_texts(self, texts):
        if self.fail_after is not None and len(self.ran) >= self.fail_after:
            raise KeyboardInterrupt
        self.ran += texts
        rows = [[len(text), sum(map(ord, text)), ord(text[-1])] for text in texts]
        return np.asarray(rows, dtype=np.float32)

    embed_images = embed_texts


def test_vectors_follow_the_order_of_the_texts(tmp_path):
    model = Encoder()
    words = [WORDS[3], WORDS[1], WORDS[3]]
    embedded = embed_texts(words, model, tmp_path)
    np.testing.assert_array_equal(embedded.vectors, Encoder().embed_texts(words))
    assert embedded.vectors.dtype == np.float32
    assert embedded.texts == tuple(words)
    assert model.ran == [WORDS[3], WORDS[1]]
    assert embedded.computed == 2
    assert embedded.info["weights_sha256"] == "a"


def test_a_stopped_run_continues_and_computes_nothing_twice(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed_texts(WORDS, Encoder(fail_after=4), tmp_path, part=4)
    model = Encoder()
    embedded = embed_texts(WORDS, model, tmp_path, part=4)
    assert model.ran == WORDS[4:]
    np.testing.assert_array_equal(embedded.vectors, Encoder().embed_texts(WORDS))
    assert not [*tmp_path.rglob("*.partial")]
    second = embed_texts(WORDS, Encoder(fail_after=0), tmp_path, part=4)
    assert (second.computed, second.inputs) == (0, embedded.inputs)
    np.testing.assert_array_equal(second.vectors, embedded.vectors)


def test_classes_are_embedded_by_their_prompts(tmp_path):
    class_prompts = prompts({"dog": ("dog", "puppy"), "cat": ("cat",)}, ("a {}", "the {}"))
    vectors, texts = embed_classes(class_prompts, Encoder(), tmp_path)
    np.testing.assert_array_equal(vectors, class_vectors(texts.vectors, class_prompts.owner))
    assert vectors.shape == (2, 3)


@pytest.mark.parametrize("texts", [[], "dog", ["dog", " "], ["dog", None]])
def test_other_values_are_refused_as_no_text(texts, tmp_path):
    with pytest.raises(InputError, match=r"texts"):
        embed_texts(texts, Encoder(), tmp_path)


def test_a_model_without_a_text_tower_is_refused(tmp_path):
    class Classifier:
        info = Encoder().info

    with pytest.raises(ModelError, match="python:fake:encoder"):
        embed_texts(WORDS, Classifier(), tmp_path)


def test_numbers_that_are_not_finite_are_refused_and_not_kept(tmp_path):
    class Broken(Encoder):
        def embed_texts(self, texts):
            vectors = super().embed_texts(texts)
            vectors[2:4] = np.nan
            return vectors

    with pytest.raises(ModelError, match="'word 2' is not finite"):
        embed_texts(WORDS, Broken(), tmp_path)
    assert not [*tmp_path.rglob("*.parquet")]
