"""Maps of activations: over every kind of model, and over what a model really reads."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from equipoise.core import InputError, ModelError
from equipoise.explain import METHODS, activation_maps
from equipoise.explain.maps import find_layer, frame_of, framed
from equipoise.explain.scoring import scoring
from equipoise.metrics import activation_share
from equipoise.models.preprocessing import Recipe
from equipoise.planted.scenes.render import render
from model_checkpoints import TEXTS, images
from tools.planted.measures import load_cnn
from tools.planted.modules import module_classifier
from tools.planted.readers import LABELS, READS, draw_agreeing, glyph_boxes

SEEN = {
    "clip": "vision_model.encoder.layers.1.layer_norm1",
    "siglip": "vision_model.post_layernorm",
    "flava": "image_model.encoder.layer.1.layernorm_before",
    "blip_matching": "vision_model.encoder.layers.1",
    "vit": "vit.layers.1.layernorm_before",
    "convnext": "convnext.encoder.stages.1",
    "resnet": "resnet.encoder.stages.1",
    "blip_vqa": "vision_model.encoder.layers.1",
    "blip_caption": "vision_model.encoder.layers.1",
    "blip_2": "vision_model.encoder.layers.1",
    "blip_2_matching": "vision_model.encoder.layers.1",
    "vilt_matching": "vilt.encoder.layer.1.layernorm_before",
    "vilt_vqa": "vilt.encoder.layer.1.layernorm_before",
    "llava": "model.language_model.layers.0",
    "qwen2_vl": "model.language_model.layers.0",
}
ANSWERERS = ("blip_vqa", "blip_2", "vilt_vqa", "llava", "qwen2_vl")
WHOLE = ("vilt_matching", "vilt_vqa", "qwen2_vl")  # see the whole image
CLASSIFIERS = ("vit", "convnext", "resnet")


def random_images(n=3):
    return [image for image in images() if min(image.shape[:2]) > 10][:n]


def question_of(family, n):
    pool = ["doctor", "nurse", "cook"] if family in CLASSIFIERS else TEXTS
    pool = [f"answer {place}" for place in (3, 7, 9)] if family == "vilt_vqa" else pool
    return list(pool[:n]), "what is this ?" if family in ANSWERERS else ""


@pytest.mark.parametrize("family", SEEN)
def test_every_kind_of_model_is_mapped_at_its_deciding_layer(family, tiny_model):
    targets, question = question_of(family, 3)
    result = activation_maps(tiny_model(family), random_images(), targets, question=question)
    assert result.layer == SEEN[family]
    assert result.maps.shape == (3, 32, 32)
    assert result.maps.dtype == np.float32
    assert (result.maps >= 0.0).all()
    assert result.exact or family in WHOLE
    assert (result.maps.max(axis=(1, 2)) > 0.0).any()
    alone = activation_maps(
        tiny_model(family), random_images(), targets, question=question, batch=1
    )
    np.testing.assert_allclose(result.maps, alone.maps, atol=1e-4)


QUESTION = "what is this ?"
PROMPTS = {
    "blip_2": f"Question: {QUESTION} Answer:",
    "llava": f"user : <image> {QUESTION} assistant :",
    "qwen2_vl": f"user : <|vision_start|><|image_pad|><|vision_end|>{QUESTION} assistant :",
}


@pytest.mark.parametrize("family", PROMPTS)
def test_answers_are_scored_by_the_likelihood_of_the_library(family, tiny_model):
    model, answer = tiny_model(family), "woman and man"
    picture = Image.fromarray(random_images(1)[0])
    inputs = model.processor(images=picture, text=[PROMPTS[family]], return_tensors="pt")
    tokens = model.processor.tokenizer(answer, add_special_tokens=False).input_ids
    expected, words = 0.0, dict(inputs)
    with torch.inference_mode():
        for token in tokens:
            logits = model.model(**words).logits[0, -1]
            expected += logits.log_softmax(0)[token].item()
            for name, value in inputs.items():
                if value.shape == inputs["input_ids"].shape:
                    fill = {"input_ids": token, "attention_mask": 1}.get(name, 0)
                    more = torch.full((1, 1), fill, dtype=value.dtype)
                    words[name] = torch.cat([words[name], more], dim=1)
    scored = scoring(model, [answer], question=QUESTION)
    got = scored.score(scored.inputs(random_images(1)), [answer])
    assert got.tolist() == [pytest.approx(expected, abs=1e-4)]


def test_a_caption_of_blip_2_is_followed_from_its_own_beginning(tiny_model):
    result = activation_maps(tiny_model("blip_2"), random_images(), "woman and man")
    assert (result.maps.max(axis=(1, 2)) > 0.0).any()


@pytest.mark.parametrize("family", ["vilt_matching", "vilt_vqa", "llava", "qwen2_vl"])
def test_tokens_of_a_sequence_are_mapped_to_their_places(family, tiny_model):
    """Change a corner: the tokens of that corner change most."""
    side = 32 if family == "llava" else 64
    pixels = np.random.default_rng(2).integers(0, 256, (32, side, 3), dtype=np.uint8)
    changed = pixels.copy()
    changed[16:, -16:] = 255 - changed[16:, -16:]
    targets, question = question_of(family, 1)
    scored = scoring(tiny_model(family), targets, question=question)
    outputs = []
    for image in (pixels, changed):
        inputs = scored.inputs([image])
        inputs["pixel_values"].requires_grad_(True)
        layer = find_layer(
            scored.inside, lambda inputs=inputs: scored.score(inputs, targets), (32, side),
            name=scored.layer or "vilt.encoder.layer.0.layernorm_before",
            places=scored.places(inputs),
        )  # fmt: skip
        hook = layer.module.register_forward_hook(lambda *arguments: outputs.append(arguments[2]))
        scored.score(inputs, targets)
        hook.remove()
    change = (layer.reshape(outputs[1]) - layer.reshape(outputs[0]))[0].norm(dim=0)
    high, wide = change.shape
    assert wide / high == side / 32
    row, column = divmod(int(change.argmax()), wide)
    assert row >= high // 2
    assert column >= wide - high // 2


def test_maps_of_a_tower_whose_tokens_come_first(tiny_model):
    """BridgeTower: patches, then images, and a processor that is not known."""
    generator = np.random.default_rng(0)
    pictures = [generator.integers(0, 256, (32, 32, 3), dtype=np.uint8) for _ in range(3)]
    result = activation_maps(tiny_model("bridgetower"), pictures, "a dog")
    assert result.layer.startswith("bridgetower.vision_model.visual.transformer.resblocks.")
    assert not result.exact
    alone = activation_maps(tiny_model("bridgetower"), pictures, "a dog", batch=1)
    np.testing.assert_allclose(result.maps, alone.maps, atol=1e-4)


def test_weights_keep_their_gradients_and_have_none_left(tiny_model):
    module = tiny_model("clip").model
    activation_maps(tiny_model("clip"), random_images(1), "a")
    assert all(weight.requires_grad and weight.grad is None for weight in module.parameters())
    assert not any(layer._forward_hooks for layer in module.modules())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_maps(method, reader):
    factors = draw_agreeing(4, seed=3)
    targets = [LABELS[side] for side in factors.frame]
    result = activation_maps(reader("glyph"), render(factors), targets, method=method)
    assert result.method == method
    assert (result.maps.sum(axis=(1, 2)) > 0.0).all()


def test_maps_separate_a_model_that_reads_the_frame_from_a_reader_of_the_glyph(reader):
    factors = draw_agreeing(120, seed=1)
    pictures, boxes = render(factors), glyph_boxes(factors)
    targets = [LABELS[side] for side in factors.frame]
    shares = {}
    for reads in READS:
        model = reader(reads)
        answers = model.predict_proba(pictures).argmax(axis=1)
        assert (answers == factors.frame).all()  # by their answers they are the same
        result = activation_maps(model, pictures, targets)
        shares[reads] = activation_share(result.maps, result.boxes(boxes), targets)
    glyph, frame = shares["glyph"].interval(), shares["frame"].interval()
    area = shares["glyph"].params["area"]
    assert glyph.low > 1.5 * area
    assert frame.high < area
    assert glyph.low > 2.0 * frame.high


def test_models_without_a_torch_module_are_refused():
    with pytest.raises(ModelError, match=r"cnn-null\.onnx has no layers"):
        activation_maps(load_cnn("null"), render(draw_agreeing(1, seed=0)), "solid disc")


@pytest.mark.parametrize(
    ("family", "more", "message"),
    [
        ("siglip2", {}, r"takes images in pieces without a grid, so there is no map of them"),
        ("clip", {"layer": "vision_model.encodr"}, "such as 'vision_model.encoder'"),
        ("clip", {"layer": "visual_projection"}, "visual_projection"),
        ("clip", {"layer": "text_model.encoder"}, "text_model.encoder"),
    ],
)  # fmt: skip
def test_unmappable_models_are_refused(family, more, message, tiny_model):
    with pytest.raises(ModelError, match=message):
        activation_maps(tiny_model(family), random_images(1), "a", **more)


def test_a_layer_that_runs_twice_is_refused():
    twice = torch.nn.ReLU()
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), twice, torch.nn.Conv2d(4, 4, 3), twice,
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2),
    )  # fmt: skip
    model = module_classifier(module, ("a", "b"), name="twice")
    pixels = np.zeros((1, 8, 8, 3), dtype=np.uint8)
    with pytest.raises(ModelError, match="layer '1'"):
        activation_maps(model, pixels, "a", layer="1")
    assert activation_maps(model, pixels, "a").layer == "2"


def test_half_precision_is_refused():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten()).bfloat16()
    model = module_classifier(module, ("a", "b"), name="half")
    with pytest.raises(ModelError, match="half: .* float32"):
        activation_maps(model, np.zeros((1, 8, 8, 3), dtype=np.uint8), "a")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"targets": "astronaut"}, "'astronaut'"),
        ({"targets": ["doctor"] * 2}, "targets: 2 for 1 images"),
        ({"method": "eyes"}, "'eyes'; expected one of gradcam"),
        ({"question": "who ?"}, "question"),
        ({"images": [], "targets": []}, "images: none"),
    ],
)
def test_arguments_are_checked(more, message, tiny_model):
    arguments = {"images": random_images(1), "targets": "doctor"} | more
    with pytest.raises(InputError, match=message):
        activation_maps(
            tiny_model("vit"), arguments.pop("images"), arguments.pop("targets"), **arguments
        )


RECIPE = Recipe(32, "bicubic", (32, 32), False, True, (0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize(
    ("recipe", "size", "frame"),
    [
        (None, (40, 90), (0.0, 0.0, 90.0, 40.0)),
        (RECIPE, (64, 64), (0.0, 0.0, 64.0, 64.0)),
        (RECIPE, (64, 128), (32.0, 0.0, 96.0, 64.0)),
        (RECIPE, (128, 64), (0.0, 32.0, 64.0, 96.0)),
        (dataclasses.replace(RECIPE, resize=(32, 32), crop=None), (64, 128), (0, 0, 128, 64)),
    ],
)
def test_a_map_covers_the_input_of_the_model(recipe, size, frame):
    assert frame_of(recipe, *size) == frame


def test_boxes_in_pixels_become_shares_of_the_input():
    frames = np.array([[32.0, 0.0, 96.0, 64.0], [0.0, 0.0, 10.0, 20.0]])
    boxes = np.array([[32.0, 32.0, 64.0, 64.0], [-5.0, 5.0, 5.0, np.nan]])
    expected = [[0.0, 0.5, 0.5, 1.0], [-0.5, 0.25, 0.5, np.nan]]
    np.testing.assert_array_equal(framed(boxes, frames), expected)
