"""Folders that balance a generator: what its prompts become."""

import json

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.models import Sampling, load_generator
from equipoise.models.balanced import BalancedGenerator
from equipoise.models.wrapped import (
    SETTINGS,
    SHIFTS,
    Draws,
    Rule,
    ValueCaptions,
    Wrapping,
    save_wrapped,
)
from equipoise.planted.scenes import diffusion
from painters import Painter

RED, BLUE = (ValueCaptions(hue, (Rule("a {}", (f"a {hue} {{}}",)),)) for hue in ("red", "blue"))
DRAWS = Draws((RED, BLUE), ("red", "blue"))
FEW = Sampling(steps=3, guidance=1.0)


@pytest.fixture(scope="module")
def pipeline():
    return diffusion.load_generator("cpu")


def saved(folder, balance):
    folder.mkdir()
    base = load_generator(f"diffusers:{diffusion.WEIGHTS}", device="cpu")
    save_wrapped(folder, base.info, balance)
    return base, load_generator(f"equipoise:{folder}", device="cpu")


def test_neutral_prompts_become_captions_in_equal_shares():
    painter = Painter()
    model = BalancedGenerator(painter.info, painter, DRAWS)
    model.generate(["a solid star"] * 400, seeds=range(400), sampling=FEW)
    red = painter.asked.count("a red solid star")
    assert red + painter.asked.count("a blue solid star") == 400
    assert abs(red - 200) < 40
    first = [*painter.asked]
    model.generate(["a solid star"] * 400, seeds=range(400), sampling=FEW)
    assert painter.asked[400:] == first


@pytest.mark.parametrize("prompt", ["a red solid star", "Blue things", "the solid star"])
def test_other_prompts_stay(prompt):
    painter = Painter()
    BalancedGenerator(painter.info, painter, DRAWS).generate(
        [prompt] if "star" in prompt else [f"a solid star, {prompt}"], seeds=[3], sampling=FEW
    )
    assert prompt in painter.asked[0]
    assert painter.asked[0].count("red") + painter.asked[0].lower().count("blue") <= 1


def test_a_folder_loads_by_name_and_gives_the_images_of_captions(tmp_path):
    base, model = saved(tmp_path / "balanced", Wrapping(draws=DRAWS))
    assert model.info.key != base.info.key
    seeds, prompts = [0, 1, 2, 3], ["a solid star"] * 4
    texts = [*map(DRAWS.text, prompts, seeds)]
    expected = base.generate(texts, seeds=seeds, sampling=FEW)
    np.testing.assert_array_equal(model.generate(prompts, seeds=seeds, sampling=FEW), expected)


def test_a_shift_of_nothing_changes_nothing(tmp_path):
    still = Wrapping(draws=DRAWS, shifts=np.zeros((2, 1, 128), dtype=np.float32))
    base, model = saved(tmp_path / "still", still)
    options = {"seeds": [4, 5], "sampling": Sampling(steps=3, guidance=2.0)}
    plain = base.generate(["a solid star"] * 2, **options)
    np.testing.assert_array_equal(model.generate(["a solid star"] * 2, **options), plain)


def test_strength_moves_the_embedding(pipeline):
    half = BalancedGenerator(pipeline.info, pipeline, Draws((RED, BLUE), ("red",), 0.5))
    full = BalancedGenerator(pipeline.info, pipeline, Draws((RED, BLUE), ("red",)))
    none = pipeline.generate(["a solid star"], seeds=[7], sampling=FEW)[0].astype(float)
    halfway, full_change = (
        model.generate(["a solid star"], seeds=[7], sampling=FEW)[0].astype(float)
        for model in (half, full)
    )
    assert 0 < np.abs(halfway - none).mean() < np.abs(full_change - none).mean()


def test_a_caption_that_is_too_long_is_refused(pipeline):
    long = ValueCaptions("red", (Rule("a {}", ("a red " + "very " * 20 + "{}",)),))
    model = BalancedGenerator(pipeline.info, pipeline, Draws((long, long), ("red",)))
    with pytest.raises(ModelError):
        model.generate(["a solid star"], seeds=[1], sampling=FEW)


def test_damaged_folders_are_refused(tmp_path):
    still = Wrapping(draws=DRAWS, shifts=np.zeros((3, 1, 128), dtype=np.float32))
    with pytest.raises(ModelError, match=SHIFTS):
        saved(tmp_path / "three", still)
    path = tmp_path / "three" / SETTINGS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_weights_sha256": "0"}))
    with pytest.raises(ModelError, match="another model"):
        load_generator(f"equipoise:{tmp_path / 'three'}", device="cpu")
