"""Matched prompts: what is learned from sets, and what is refused."""

import json

import numpy as np
import pytest

from equipoise.cli.mitigation_world import CAPTION_TEMPLATES
from equipoise.core import InputError
from equipoise.mitigate import ImageSets, MatchedPrompts
from equipoise.mitigate.closed_form import find_directions, list_values
from equipoise.mitigate.measuring import embed_prompts
from equipoise.models.wrapped import unit_vectors
from mitigate.scenes import LEARNED, TEXTS, WATCHED, WITHHELD, sets, training


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("matched") / "made"


@pytest.fixture(scope="module")
def matched(clip, folder):
    return MatchedPrompts(said=CAPTION_TEMPLATES).fit(clip, training(), folder)


def test_neutral_prompts_of_unseen_subjects_lean_less(clip, matched):
    images = list(sets(seed=2, per_subject=4).of(WITHHELD).images)
    by_set = np.arange(len(images)).reshape(len(WITHHELD), 4, 12)
    spread = []
    for model in (matched, clip):
        queries = embed_prompts(model, [TEXTS[subject].neutral for subject in WITHHELD])
        scores = unit_vectors(model.embed_images(images)) @ queries.T * model.info.scale
        subject_scores = np.stack([scores[by_set[place], place] for place in range(len(WITHHELD))])
        spread.append(subject_scores.mean(axis=1).std(axis=1).mean())
    assert spread[0] < 0.5 * spread[1]


@pytest.mark.usefixtures("matched")
def test_the_record_says_what_was_learned(folder):
    settings = json.loads((folder / "equipoise_model.json").read_text())
    record = settings["record"]
    assert record["weights"] == settings["matching"]["weights"]
    assert sum(record["weights"]) == pytest.approx(1.0)
    assert record["names_a_value"] == []
    assert record["inputs"]["subjects"] == sorted((*LEARNED, *WATCHED))


@pytest.mark.parametrize(
    "said",
    [
        {"hue": CAPTION_TEMPLATES["hue"]},
        {**CAPTION_TEMPLATES, "age": ("a {value} {}",)},
        {**CAPTION_TEMPLATES, "hue": ("a {}",)},
    ],
)
def test_said_is_of_the_attributes_of_the_images(clip, tmp_path, said):
    with pytest.raises(InputError):
        MatchedPrompts(said=said).fit(clip, training(), tmp_path / "made")


def test_the_weights_have_the_least_variance_within_sets(clip, matched):
    """Any other weights that are 0 or above, and 1 in all, vary more within the sets."""
    matching, images = matched.wrapping.matching, training().require_images("all")
    parts = []
    for texts in training().all_texts:
        prompts = np.mean(matching.blocks(clip.embed_texts, texts.neutral), axis=0)
        subject_images = images.of([texts.subject])
        vectors = unit_vectors(clip.embed_images(list(subject_images.images)))
        deviations = subject_images.deviations(matching.cosines(vectors, prompts))
        parts.append(deviations.T @ deviations / len(deviations))
    total = np.mean(parts, axis=0)
    weights = np.array(matching.weights)
    random = np.random.default_rng(0).dirichlet(np.ones(len(weights)), 500)
    assert weights.min() >= 0
    for mix in (1.0, 0.05):
        mixtures = (1 - mix) * weights + mix * random
        assert (
            np.einsum("ni,ij,nj->n", mixtures, total, mixtures) >= weights @ total @ weights
        ).all()


D = 12


def planted():
    """Return sets of five subjects, each at a place of its own, whose age lies on one axis."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(5), 16)
    sign = np.tile([1.0, -1.0], 40)
    places = 0.1 * rng.standard_normal((40, D)).repeat(2, axis=0)
    vectors = places + np.eye(D)[owner] + 0.02 * rng.standard_normal((80, D))
    vectors[:, 6] += sign
    names = [str(subject) for subject in owner], [str(row // 2) for row in range(80)]
    subject, set_names = (np.array(column, dtype=object) for column in names)
    ages = np.where(sign > 0, "old", "young").astype(object)
    return unit_vectors(vectors), ImageSets(vectors, subject, set_names, set_names, {"age": ages})


def test_the_direction_is_that_of_the_axis():
    vectors, sets = planted()
    (row,) = find_directions(vectors, sets, list_values(sets))
    assert abs(row[6]) > 0.99


@pytest.mark.parametrize("column", [["old"] * 80, [None] * 80])
def test_one_value_is_an_error(column):
    _, sets = planted()
    ages = {"age": np.array(column, dtype=object)}
    with pytest.raises(InputError):
        list_values(ImageSets(sets.images, sets.subject, sets.set, sets.caption, ages))
