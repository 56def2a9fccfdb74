"""Vectors that hold a neutral text against an image through the captions that fit it."""

import json
import math

import numpy as np
import pytest
from pydantic import TypeAdapter

from equipoise.models.wrapped import Attribute, Matching, Rule, Settings, ValueCaptions

D = 6


def said(value, template):
    return ValueCaptions(value, (Rule("a {}", (template, f"see {template}")),))


def embed(texts):
    """Return a vector for each text, the same for the same text, of any length."""
    vectors = [np.random.default_rng([*text.encode()]).standard_normal(D) * 3.0 for text in texts]
    return np.array(vectors, dtype=np.float32).reshape(len(texts), D)


def matching():
    """Attributes whose names do not stand in the order of the alphabet."""
    rng = np.random.default_rng(0)
    rows = np.linalg.qr(rng.standard_normal((D, D)))[0][:2]
    ages = (said(age, f"a {age} {{}}") for age in ("young", "old", "ageless"))
    return Matching(
        (
            Attribute("hue", (said("red", "a red {}"), said("blue", "a blue {}"))),
            Attribute("age", tuple(ages)),
        ),
        (0.2, 0.1, 0.3, 0.4),
        rng.standard_normal((D, 5)).astype(np.float32),
        rng.standard_normal(5).astype(np.float32),
        rows.astype(np.float32),
    )


def images(n=40):
    return (np.random.default_rng(1).standard_normal((n, D)) * 5.0).astype(np.float32)


def unit(vectors):
    wide = np.asarray(vectors, dtype=np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def test_a_cosine_is_the_mean_of_cosines():
    model, text = matching(), "a nurse"
    cosines = unit(model.images(images())) @ unit(model.texts(embed, [text]))[0] * model.stretch
    # The same, image by image, from what the classes say of themselves.
    rows = model.directions.astype(np.float64)
    x, t = unit(images()), unit(embed([text]))[0]
    tell = x @ model.gate.astype(np.float64) + model.offset
    for row, image in enumerate(x):
        cleared = [vector - rows.T @ (rows @ vector) for vector in (image, t)]
        cosine = cleared[0] @ cleared[1] / math.prod(map(np.linalg.norm, cleared))
        terms = [image @ t, cosine]
        for attribute, scores in zip(model.attributes, np.split(tell[row], [2]), strict=True):
            value = attribute.values[int(scores.argmax())].value
            captions = unit(embed([f"a {value} nurse", f"see a {value} nurse"]))
            terms.append(image @ captions.mean(axis=0) / np.linalg.norm(captions.mean(axis=0)))
        assert cosines[row] == pytest.approx(np.dot(model.weights, terms), abs=1e-6)


@pytest.mark.parametrize("text", ["a red nurse", "a nurse with OLD bars", "the nurse", ""])
def test_other_texts_keep_their_cosines(text):
    model = matching()
    cosines = unit(model.images(images())) @ unit(model.texts(embed, [text]))[0] * model.stretch
    np.testing.assert_allclose(cosines, unit(images()) @ unit(embed([text]))[0], atol=1e-6)


def test_all_texts_and_all_images_are_equally_long():
    model = matching()
    texts = model.texts(embed, ["a nurse", "a red nurse", "the nurse", "a doctor"])
    for vectors in (texts, model.images(images())):
        lengths = np.linalg.norm(vectors, axis=1)
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-6)
    assert texts.dtype == np.float32
    assert texts.shape == (4, model.dimension)
    assert model.texts(embed, []).shape == (0, model.dimension)
    assert model.images(images(0)).shape == (0, model.dimension)


def test_what_is_no_vector_stays_none():
    model = matching()
    vectors = np.stack([np.zeros(D), np.full(D, np.nan)]).astype(np.float32)
    for outputs in (
        model.images(vectors),
        model.texts(lambda _: vectors, ["the nurse", "the doctor"]),
    ):
        assert not outputs[0].any()
        assert np.isnan(outputs[1]).any()


def matching_of(facts, numbers):
    settings = {
        "format": 3, "base": "", "base_weights_sha256": "", "ensemble": None, "record": {},
        "matching": facts,
    }  # fmt: skip
    text = json.dumps(settings, sort_keys=True)
    return Matching.from_numbers(TypeAdapter(Settings).validate_json(text).matching, numbers, D)


def test_facts_keep_the_order_of_attributes():
    model = matching()
    again = matching_of(model.facts, model.numbers)
    assert again.attributes == model.attributes
    assert again.weights == model.weights
    np.testing.assert_array_equal(again.images(images()), model.images(images()))


@pytest.mark.parametrize(
    ("numbers", "facts"),
    [
        ({"gate": np.zeros((D, 4))}, {}),
        ({"offset": np.zeros(4)}, {}),
        ({"directions": np.zeros((1, 7))}, {}),
        ({}, {"weights": [0.5, 0.5]}),
        ({}, {"attributes": [{"attribute": "hue", "values": [{"value": 5, "rules": []}]}]}),
    ],
)
def test_what_does_not_belong_together_is_refused(numbers, facts):
    model = matching()
    with pytest.raises(ValueError):  # noqa: PT011
        matching_of({**model.facts, **facts}, {**model.numbers, **numbers})
