"""Folders that wrap a model: what they may hold, and what is refused."""

import json
import shutil

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.wrapped import (
    MATCHING,
    SETTINGS,
    Attribute,
    Ensemble,
    Matching,
    Rule,
    ValueCaptions,
    Wrapping,
    save_wrapped,
)
from equipoise.planted.scenes.embed import WEIGHTS

ENSEMBLE = Ensemble((Rule("a {}", ("a red {}", "a blue {}")), Rule("a photo", ("red",))), ("red",))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "here" / "wrapped"
    folder.mkdir(parents=True)
    shutil.copytree(WEIGHTS / "clip-null", folder.parent / "clip")
    save_wrapped(folder, base_of(folder).info, Wrapping(ENSEMBLE))
    return folder


def load(folder, **options):
    return load_model(f"equipoise:{folder}", device="cpu", **options)


def base_of(folder):
    return load_model(f"hf:{folder.parent / 'clip'}", device="cpu")


def change(folder, **values):
    path = folder / SETTINGS
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_project_can_be_moved(folder, tmp_path):
    key = load(folder).info.key
    (tmp_path / "here").rename(tmp_path / "there")
    assert load(tmp_path / "there" / "wrapped").info.key == key


@pytest.mark.parametrize("part", ["wrapped", "clip"])
def test_a_folder_without_its_base_says_where_it_looks(folder, tmp_path, part, monkeypatch):
    other = tmp_path / "other" / "place"
    other.mkdir(parents=True)
    (folder.parent / part).rename(other / part)
    folder = other / part if part == "wrapped" else folder
    # What the working directory has in that place is not taken for it.
    (tmp_path / "elsewhere" / "inside").mkdir(parents=True)
    shutil.copytree(WEIGHTS / "clip-null", tmp_path / "elsewhere" / "clip")
    monkeypatch.chdir(tmp_path / "elsewhere" / "inside")
    with pytest.raises(ModelError, match=str(folder.parent / "clip")):
        load(folder)


def test_a_base_that_cannot_be_loaded_is_named_with_the_folder(folder):
    (folder.parent / "clip" / "config.json").unlink()
    base = folder.parent
    message = f"^equipoise:{folder} wraps hf:{base / 'clip'}, which is not loaded: {base}"
    with pytest.raises(ModelError, match=message):
        load(folder)


def test_a_text_is_the_mean_of_its_captions(folder):
    model, base = load(folder), base_of(folder)
    vectors = model.embed_texts(["a star", "a red star", "star"])
    plain = base.embed_texts(["a red star", "a blue star", "star"])
    unit = plain[:2] / np.linalg.norm(plain[:2], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[0], unit.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(vectors[1:], plain[[0, 2]], atol=1e-5)
    assert model.embed_texts([]).shape == (0, 64)


@pytest.mark.parametrize(
    ("text", "captions"),
    [
        ("a star", ("a red star", "a blue star")),
        ("a photo", ("red",)),
        ("a RED star", ("a RED star",)),
        ("a redder star", ("a red redder star", "a blue redder star")),
        ("the star", ("the star",)),
    ],
)
def test_what_a_text_stands_for(text, captions):
    assert ENSEMBLE.captions(text) == captions


def test_another_model_inside_is_refused(folder):
    shutil.rmtree(folder.parent / "clip")
    shutil.copytree(WEIGHTS / "clip-biased", folder.parent / "clip")
    with pytest.raises(ModelError, match="was made of another model than hf:.* its weights differ"):
        load(folder)


def test_code_inside_needs_trust(folder):
    change(folder, base="python:os:getcwd")
    with pytest.raises(ModelError, match="python:os:getcwd, which is Python code"):
        load(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"format": 2},
        {"base": 3},
        {"base": "nothing:here"},
        {"ensemble": {"rules": [{"neutral": 1, "attributed": ["a"]}], "values": []}},
    ],
)
def test_settings_that_say_something_else(folder, values):
    change(folder, **values)
    with pytest.raises(ModelError, match=str(folder)):
        load(folder)


def test_what_is_no_wrapped_model(folder, tmp_path):
    with pytest.raises(ModelError, match=f"holds no {SETTINGS} that can be read"):
        load(tmp_path)
    with pytest.raises(ModelError, match="has no revision"):
        load(folder, revision="main")


def test_a_classifier_is_not_wrapped(folder):
    change(folder, base=f"hf:{WEIGHTS / 'vit-biased'}")
    with pytest.raises(ModelError, match="wraps hf:.*, which isn't a dual encoder"):
        load(folder)


def matched():
    rng = np.random.default_rng(0)
    hues = tuple(ValueCaptions(hue, (Rule("a {}", (f"a {hue} {{}}",)),)) for hue in ("red", "blue"))
    numbers = [rng.standard_normal(shape) for shape in ((64, 2), (2,), (1, 64))]
    numbers[2] /= np.linalg.norm(numbers[2])
    arrays = (array.astype(np.float32) for array in numbers)
    return Matching((Attribute("hue", hues),), (0.5, 0.2, 0.3), *arrays)


@pytest.fixture
def matching(folder):
    folder = folder.parent / "matched"
    folder.mkdir()
    save_wrapped(folder, base_of(folder).info, Wrapping(matching=matched()))
    return folder


def test_a_matching_comes_back_with_its_dimension_and_scale(matching):
    model, base = load(matching), base_of(matching)
    assert model.info.dimension == matched().dimension == 64 * 4 + 1
    assert model.info.scale == pytest.approx(base.info.scale * matched().stretch)
    assert model.info.key != base.info.key
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)

    def logit(model, text):
        vectors = model.embed_images([picture])[0], model.embed_texts([text])[0]
        cosine = vectors[0] @ vectors[1] / np.prod([np.linalg.norm(v) for v in vectors])
        return float(model.info.scale * cosine)

    assert logit(model, "a red star") == pytest.approx(logit(base, "a red star"), abs=1e-4)
    assert logit(model, "a star") != pytest.approx(logit(base, "a star"), abs=1e-2)


@pytest.mark.parametrize("changed", [{}, {**matched().facts, "weights": [1.0]}])
def test_a_matching_of_wrong_settings_is_refused(matching, changed):
    change(matching, matching=changed)
    with pytest.raises(ModelError, match=f"^{matching} .*read: "):
        load(matching)


def test_damaged_numbers_are_refused(matching):
    for damaged in (b"", (matching / MATCHING).read_bytes()[:100]):
        (matching / MATCHING).write_bytes(damaged)
        with pytest.raises(ModelError, match=f"^{matching} cannot be read: "):
            load(matching)
