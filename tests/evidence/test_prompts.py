"""Texts of classes and the vectors made of them."""

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.data import filled, templates
from equipoise.evidence import class_vectors, prompts


@pytest.mark.parametrize(("name", "count"), [("openai_80", 80), ("openai_7", 7), ("plain", 1)])
def test_lists_of_templates_have_their_number_and_source(name, count):
    template_list = templates(name)
    assert len(set(template_list.texts)) == count
    assert all(text.count("{}") == 1 for text in template_list.texts)
    assert template_list.source
    assert template_list.note
    assert template_list.licence


def test_the_lists_equal_the_lists_of_open_clip():
    metadata = pytest.importorskip(
        "open_clip.zero_shot_metadata", reason="needs torchvision", exc_type=ImportError
    )
    lists = {"openai_80": "OPENAI_IMAGENET_TEMPLATES", "openai_7": "SIMPLE_IMAGENET_TEMPLATES"}
    for name, attribute in lists.items():
        assert templates(name).texts == tuple(
            template("{}") for template in getattr(metadata, attribute)
        )


def test_a_name_goes_where_its_place_is():
    assert filled("a photo of a {}.", "{dog}") == "a photo of a {dog}."


@pytest.mark.parametrize("template", ["a photo", "{} and {}"])
def test_a_template_has_one_place(template):
    with pytest.raises(InputError, match=r"has \{\} \d times; expected once"):
        filled(template, "dog")


def test_texts_stand_class_by_class():
    class_prompts = prompts({"dog": ("dog", "puppy"), "cat": ("cat",)}, ("a {}", "the {}"))
    assert class_prompts.texts == ("a dog", "the dog", "a puppy", "the puppy", "a cat", "the cat")
    assert class_prompts.owner.tolist() == [0, 0, 0, 0, 1, 1]
    assert class_prompts.names == ("dog", "cat")


def test_classes_may_be_their_own_words():
    assert prompts(("dog", "cat")).texts == ("a photo of a dog.", "a photo of a cat.")


@pytest.mark.parametrize(
    ("classes", "templates"),
    [
        ((), "plain"),
        (("dog", "dog"), "plain"),
        ({"dog": ()}, "plain"),
        ({"dog": ("a", "a")}, "plain"),
        (("dog",), ()),
    ],
)
def test_ambiguous_classes_are_refused(classes, templates):
    with pytest.raises(InputError, match="at least one, each once"):
        prompts(classes, templates)


def test_a_class_is_the_direction_of_the_mean_of_unit_vectors():
    vectors = [[3.0, 0.0], [0.0, 0.5], [0.0, -2.0]]
    half = np.sqrt(0.5)
    np.testing.assert_allclose(
        class_vectors(vectors, [0, 0, 1]), [[half, half], [0.0, -1.0]], atol=1e-15
    )


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "the vector of text 1 is zero: it has no direction"),
        ([[1.0, 0.0], [np.nan, 0.0]], "the vector of text 1 is not finite"),
        ([1.0, 0.0], r"the vectors have shape \(2,\); expected one row for each text"),
    ],
)
def test_vectors_without_a_direction_are_refused(vectors, message):
    with pytest.raises(InputError, match=message):
        class_vectors(vectors, [0, 0])


def test_texts_that_cancel_out_make_no_class():
    with pytest.raises(InputError, match="the vector of class 0 is zero"):
        class_vectors([[1.0, 0.0], [-1.0, 0.0]], [0, 0])
