"""Text-to-image models whose text encoder is edited by name: `edited:FILE#diffusers:NAME`."""

import json
from dataclasses import replace

import numpy as np
import pytest

import diffusion_checkpoints
import model_checkpoints
from equipoise.core import ModelError
from equipoise.models import Sampling, load_generator, load_model
from equipoise.models.edits import Site, UnitEdit
from equipoise.models.registry import absolute, located_name, relative
from equipoise.planted.scenes.captions import caption
from equipoise.planted.scenes.render import SUBJECTS
from tools.planted.encoders import CLIP, LAYER, PIPELINE, PLANTED, plant_prompt_unit
from tools.planted.judging import judge

FEW = Sampling(steps=4, guidance=1.0)
ASKED = [SUBJECTS[number] for number in (3, 5, 19) for _ in range(8)]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return the folder of a CLIP and a pipeline that share the planted unit."""
    folder = tmp_path_factory.mktemp("planted")
    plant_prompt_unit(folder)
    return folder


def edit_of(clip, layer, units, mode="remove"):
    """Return an edit of units of a layer, whose means are 0."""
    nothing = (0.0,) * len(units)
    site = Site(layer, units=tuple(units), sets=(0,) * len(units), means=nothing, spreads=nothing)
    return UnitEdit(clip.info.name, None, clip.info.weights_sha256, mode, (site,))


def load_edited(folder, name, layer, units, mode="remove"):
    clip = load_model(f"hf:{folder / CLIP}", device="cpu", backend="torch")
    path = folder / f"{name}.json"
    edit_of(clip, layer, units, mode).write(path)
    return load_generator(f"edited:{path}#diffusers:{folder / PIPELINE}", device="cpu")


def made(generator):
    prompts = [*map(caption, ASKED)]
    return np.stack(generator.generate(prompts, seeds=range(len(prompts)), sampling=FEW))


def share_upright(images):
    return float(judge(images).frame.mean())


def test_without_the_planted_unit_neutral_prompts_show_both_frames(planted):
    before = load_generator(f"diffusers:{planted / PIPELINE}", device="cpu")
    images = made(before)
    assert share_upright(images) > 0.9
    after = load_edited(planted, "planted", LAYER, [PLANTED])
    without = made(after)
    assert 0.25 < share_upright(without) < 0.75
    # The subject is there as often, within what 24 images tell.
    subjects = np.array([SUBJECTS.index(name) for name in ASKED])
    shown = [float((judge(rows).subject == subjects).mean()) for rows in (images, without)]
    assert abs(shown[0] - shown[1]) < 0.25
    # The loaded pipeline is another one, with a key of its own.
    np.testing.assert_array_equal(made(before)[:2], images[:2])
    assert after.info.key != before.info.key
    assert after.info.weights_sha256 == before.info.weights_sha256


def test_another_unit_changes_nothing_that_is_counted(planted):
    control = load_edited(planted, "control", LAYER, [PLANTED + 1])
    assert share_upright(made(control)) > 0.9


@pytest.mark.parametrize("encoder", ["text_encoder", "text_encoder_2"])
def test_of_several_encoders_that_with_the_weights_is_edited(encoder, tmp_path):
    diffusion_checkpoints.stable_diffusion_xl(tmp_path / PIPELINE)
    clip_of(different_encoder(tmp_path / PIPELINE / encoder), tmp_path / CLIP)
    edited = load_edited(tmp_path, "edit", "text_model.embeddings.token_embedding", range(16))
    assert edited.info.preprocessing["edited_in"] == [encoder]
    base = load_generator(f"diffusers:{tmp_path / PIPELINE}", device="cpu")
    before, after = (
        generator.pipeline.encode_prompt("a doctor", device="cpu")[0]
        for generator in (base, edited)
    )
    # The words of both encoders stand side by side.
    changed = (before != after).any(dim=1)[0].reshape(2, -1).any(dim=1)
    assert changed.tolist() == [encoder == "text_encoder", encoder == "text_encoder_2"]


def different_encoder(folder):
    """Change the weights of an encoder of a pipeline, so that no other has them; return it."""
    import transformers

    config = json.loads((folder / "config.json").read_text())
    (kind,) = config["architectures"]
    tower = getattr(transformers, kind).from_pretrained(folder)
    for weight in tower.parameters():
        weight.data.mul_(1.5)
    tower.save_pretrained(folder)
    return tower


def clip_of(tower, folder):
    """Write a CLIP with a text encoder as its text tower."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    config = CLIPConfig(
        text_config=tower.config.to_dict(),
        vision_config=model_checkpoints.VISION,
        projection_dim=tower.config.projection_dim,
    )
    clip = CLIPModel(config)
    weights = tower.state_dict()
    prefix = "" if any(name.startswith("text_model.") for name in weights) else "text_model."
    clip.load_state_dict({prefix + name: weight for name, weight in weights.items()}, strict=False)
    clip.save_pretrained(folder)
    diffusion_checkpoints.clip_tokenizer(24).save_pretrained(folder)
    size = {"height": 32, "width": 32}
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size).save_pretrained(folder)


def test_an_encoder_with_other_weights_is_refused(planted, tmp_path):
    diffusion_checkpoints.stable_diffusion(tmp_path / PIPELINE)
    clip = load_model(f"hf:{planted / CLIP}", device="cpu", backend="torch")
    path = planted / "other.json"
    edit_of(clip, LAYER, [1]).write(path)
    with pytest.raises(ModelError, match="text_encoder"):
        load_generator(f"edited:{path}#diffusers:{tmp_path / PIPELINE}", device="cpu")


@pytest.mark.parametrize(
    "layer", ["vision_model.encoder.layers.0.mlp.activation_fn", "visual_projection", "text_model"]
)
def test_layers_that_the_encoder_lacks_are_refused(planted, layer):
    with pytest.raises(ModelError, match=layer):
        load_edited(planted, layer, layer, [0])


def test_weights_that_changed_and_other_generators_are_refused(planted):
    path = planted / "stale.json"
    clip = load_model(f"hf:{planted / CLIP}", device="cpu", backend="torch")
    replace(edit_of(clip, LAYER, [1]), weights_sha256="0" * 64).write(path)
    for inner in (f"diffusers:{planted / PIPELINE}", "python:painted:painter"):
        with pytest.raises(ModelError):
            load_generator(f"edited:{path}#{inner}", device="cpu")
    with pytest.raises(ModelError, match="#"):
        load_generator(f"edited:{path}", device="cpu")


def test_both_parts_of_a_name_are_paths_of_a_folder(tmp_path):
    (tmp_path / "pipe").mkdir()
    (tmp_path / "edit.json").touch()
    full = f"edited:{tmp_path / 'edit.json'}#diffusers:{tmp_path / 'pipe'}"
    for change in (located_name, absolute):
        assert change("edited:edit.json#diffusers:pipe", tmp_path) == full
        assert change(full, tmp_path) == full
    assert relative(full, tmp_path) == "edited:edit.json#diffusers:pipe"
    on_hub = "edited:edit.json#diffusers:owner/name"
    assert located_name(on_hub, tmp_path) == f"edited:{tmp_path / 'edit.json'}#diffusers:owner/name"
