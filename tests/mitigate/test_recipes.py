"""Every recipe: a model with a name and a key of its own, that comes back by its name."""

import json
import sys

import numpy as np
import pytest

from equipoise.cli.mitigation_world import CAPTION_TEMPLATES
from equipoise.core import InputError, ModelError, RunError
from equipoise.mitigate import (
    Contrastive,
    MatchedPrompts,
    PromptEnsemble,
    SubjectTexts,
    SubspaceProjection,
)
from equipoise.mitigate.closed_form import build_ensemble
from equipoise.models import load_model
from equipoise.models.wrapped import unit_vectors
from mitigate.scenes import TEXTS, WITHHELD, sets, training, weights

RECIPES = (
    Contrastive(learning_rate=1e-4),
    PromptEnsemble(),
    MatchedPrompts(said=CAPTION_TEMPLATES),
    SubspaceProjection(),
)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_gives_another_model_that_its_name_opens(recipe, clip, tmp_path):
    image, prompt = sets().images[:1], TEXTS[WITHHELD[0]].neutral[:1]
    before = clip.embed_images(image), clip.embed_texts(prompt)
    fitted = recipe.fit(clip, training(), tmp_path / "made", seed=3)
    assert fitted.info.key != clip.info.key
    again = load_model(fitted.info.name, device="cpu", dtype="float32")
    assert again.info.key == fitted.info.key
    np.testing.assert_array_equal(again.embed_texts(prompt), fitted.embed_texts(prompt))
    np.testing.assert_array_equal(clip.embed_images(image), before[0])
    np.testing.assert_array_equal(clip.embed_texts(prompt), before[1])
    # The same again is taken as it is; another seed would be another model.
    assert recipe.fit(clip, training(), tmp_path / "made", seed=3).info.key == fitted.info.key
    with pytest.raises(RunError, match="isn't empty, and a model is never overwritten"):
        recipe.fit(clip, training(), tmp_path / "made", seed=4)
    assert {path.name for path in tmp_path.iterdir()} == {"made"}


def test_code_in_a_model_that_lies_there_is_not_run(clip, tmp_path):
    """Somebody else may have put it there: its record alone says which model it is."""
    made = tmp_path / "made"
    PromptEnsemble().fit(clip, training(images=False), made)
    settings = made / "equipoise_model.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"base": "python:this:d"}))
    with pytest.raises(ModelError):
        PromptEnsemble().fit(clip, training(images=False), made)
    assert "this" not in sys.modules


def test_only_the_towers_asked_for_move(clip, tmp_path):
    Contrastive(learning_rate=1e-4, towers="texts").fit(clip, training(), tmp_path / "made")
    Contrastive(learning_rate=1e-30, towers="both").fit(clip, training(), tmp_path / "still")
    trained_weights, still = weights(tmp_path / "made"), weights(tmp_path / "still")
    changed_names = {
        name for name in trained_weights if not np.array_equal(trained_weights[name], still[name])
    }
    assert changed_names
    assert all(name.startswith("text") for name in changed_names)


def test_an_ensemble_holds_for_subjects_it_never_saw(clip, tmp_path):
    fitted = PromptEnsemble().fit(clip, training(images=False), tmp_path / "made")
    unseen = TEXTS[WITHHELD[0]]
    mean = unit_vectors(clip.embed_texts(unseen.attributed)).mean(axis=0)
    np.testing.assert_allclose(fitted.embed_texts(unseen.neutral[:1])[0], mean, atol=1e-6)
    for text in (unseen.attributed[0], "nothing of the kind"):
        np.testing.assert_array_equal(fitted.embed_texts([text]), clip.embed_texts([text]))


AGE = {"age": "old"}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("an old man beside a woman", "an old judge beside a woman"),
        ("an old man, a man of letters", "an old judge, a judge of letters"),
        ("an old man's coat", "an old judge's coat"),
        ("one of two old mans", "one of two old judges"),
    ],
)
def test_a_subject_is_found_in_captions_as_a_whole_word(caption, expected):
    man_texts = SubjectTexts("man", ("a man",), (caption, "an old woman"), (AGE, AGE))
    assert build_ensemble([man_texts]).captions("a judge") == (expected,)


@pytest.mark.parametrize("where", ["subject", "neutral", "attributed"])
def test_a_text_with_a_place_of_its_own_is_refused(where):
    texts = {"subject": "nurse", "neutral": "a nurse", "attributed": "an old nurse"}
    texts[where] = "a {} nurse"
    subject, neutral, attributed = texts.values()
    with pytest.raises(InputError, match=f"^'a {{}} nurse', of '{subject}'"):
        build_ensemble([SubjectTexts(subject, (neutral,), (attributed,), (AGE,))])


LEARNS_FROM_IMAGES = (Contrastive(), MatchedPrompts(said=CAPTION_TEMPLATES))


@pytest.mark.parametrize("recipe", LEARNS_FROM_IMAGES, ids=lambda recipe: recipe.name)
def test_what_learns_from_images_needs_them(recipe, clip, tmp_path):
    message = f"^{recipe.name} learns from images, and there are none of its subjects$"
    with pytest.raises(InputError, match=message):
        recipe.fit(clip, training(images=False), tmp_path / "made")


def test_sets_are_never_cut(clip, tmp_path):
    with pytest.raises(InputError, match="^a counterfactual set has 12 images, and a batch 8;"):
        Contrastive(batch=8).fit(clip, training(), tmp_path / "made")
