"""What each kind of audit makes of each kind of model, and what it refuses."""

import numpy as np
import polars as pl
import pytest
from PIL import Image

from audits.live_models import fakes
from audits.live_models.worlds import CHOSEN, KINDS, associations, concepts, diversity
from equipoise import audits
from equipoise.core import ConfigError


def pixels(world):
    files = pl.read_csv(world / "images.csv").sort("image_id")["file"]
    return [np.asarray(Image.open(world / "pictures" / file)) for file in files]


def scores(values, world):
    """Return names and scores of the model of an audit of concepts, by image id."""
    matrix = audits.prepare(audits.parse_config(values), base=world).data.models["m"].matrix
    return matrix.names, matrix.take(matrix.names)[np.argsort(matrix.ids.astype(str))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_answers_is_refused(kind, world):
    config = audits.parse_config(KINDS[kind](model=fakes.Answerer()))
    with pytest.raises(ConfigError, match=r"^models\.m\.model: .*answers questions; an audit of"):
        audits.prepare(config, base=world)


def test_diversity_takes_the_input_of_the_last_layer_of_a_classifier(
    world,
):
    data = audits.prepare(audits.parse_config(diversity(model=fakes.Classifier())), base=world).data
    stored = data.models["m"].take(np.argsort(data.ids.astype(str)))
    np.testing.assert_array_equal(stored, fakes.means(pixels(world)))


def test_associations_score_images_with_texts_where_the_model_takes_pairs(world):
    config = audits.parse_config(associations(model=fakes.Scorer()))
    matrix = audits.prepare(config, base=world).data.pairs["m"]["images", "prompts"]
    assert matrix.names == ("q0", "q1", "q2", "q3")
    lengths = pl.read_csv(world / "queries.csv")["text"].str.len_chars().to_numpy()
    expected = fakes.means(pixels(world))[:, :1] / lengths
    places = [sorted(matrix.ids).index(image_id) for image_id in matrix.ids]
    np.testing.assert_allclose(matrix.take(matrix.names), expected[places], rtol=1e-5)
    result = audits.run(config, base=world)
    assert {finding.subject for finding in result.findings} == {*CHOSEN}


@pytest.mark.parametrize(("scale", "unit"), [(1.0, "logit"), (None, "score")])
def test_similarities_of_pairs_are_in_logits_where_their_scale_is_known(scale, unit, world):
    model = fakes.Scorer(fakes.info("scorer", scale=scale))
    values = KINDS["retrieval"](model=model) | {"audit": "similarity"}
    values.pop("ranking")
    result = audits.run(audits.parse_config(values), base=world)
    assert {row["unit"] for row in result.tables["group_effects"].to_pylist()} == {unit}
    unknown = any("the logit scale is unknown" in note for note in result.manifest.notes)
    assert unknown is (scale is None)


def test_concepts_take_the_classes_of_a_classifier_through_its_map(world):
    values = concepts(model=fakes.Classifier(), map={CHOSEN[0]: "red", CHOSEN[1]: "red (2)"})
    values["concepts"] = [*CHOSEN[:2]]
    names, matrix = scores(values, world)
    assert names == ("red", "green", "red (2)")
    expected = fakes.Classifier().predict_proba(pixels(world))
    np.testing.assert_array_equal(matrix, expected)
    result = audits.run(audits.parse_config(values), base=world)
    pairs = "concept_difference"
    subjects = {finding.subject for finding in result.findings if finding.metric != pairs}
    assert subjects - {""} == {*CHOSEN[:2]}


def test_concepts_score_pairs_with_the_prompts_of_their_words(world):
    words = {CHOSEN[0]: ["ab", "abcd"]}
    values = concepts(model=fakes.Scorer(), words=words, templates=["{}!"])
    names, matrix = scores(values, world)
    red = fakes.means(pixels(world))[:, 0]
    by_concept = dict(zip(names, matrix.T, strict=True))
    np.testing.assert_allclose(by_concept[CHOSEN[0]], red * (1 / 3 + 1 / 5) / 2, rtol=1e-5)
    np.testing.assert_allclose(by_concept[CHOSEN[1]], red / (len(CHOSEN[1]) + 1), rtol=1e-5)


def test_concepts_compare_images_with_prompts(world):
    model = fakes.Encoder(fakes.info("encoder", dimension=3, scale=7.0, bias=-2.0))
    names, matrix = scores(concepts(model=model), world)
    images = fakes.means(pixels(world)).astype(float)
    texts = model.embed_texts([f"a photo of a {concept}." for concept in CHOSEN]).astype(float)
    images, texts = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (images, texts)
    )
    chosen = matrix[:, [names.index(concept) for concept in CHOSEN]]
    np.testing.assert_allclose(chosen, images @ texts.T, atol=1e-5)
