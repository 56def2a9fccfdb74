"""The prefix ``meter:``: METER's published checkpoints of CLIP and RoBERTa."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from equipoise.core import ModelError
from equipoise.core.types import Json
from equipoise.models.authors import (
    HEAD,
    Weights,
    count_blocks,
    fill,
    find_file,
    preview,
    read_weights,
    rename_weights,
)
from equipoise.models.hf import processor_facts, processor_preparation
from equipoise.models.hub import LibraryWeights
from equipoise.models.matching import MatchingModel, ScorerFamily, Tensors, margin
from equipoise.models.registry import Options, adapter
from equipoise.models.runtimes import place, transformers
from equipoise.models.runtimes import torch as imported_torch
from equipoise.models.towers import torch_only, tower_info

TOKENS, PAD = "tokenizer.json", "<pad>"
LONGEST = 50
"""Tokens of a text that the authors trained with."""

VISION = "vit_model.visual."
RENAMES = {
    **{f"{VISION}{ours}": f"{VISION}embeddings.{theirs}" for ours, theirs in (
        ("class_embedding", "class_embedding"), ("conv1", "patch_embedding"),
        ("positional_embedding", "position_embedding.weight"),
    )},
    "vit_model.token_embedding": "", "vit_model.positional_embedding": "",
    "vit_model.ln_final": "", "text_transformer.embeddings.position_ids": "",
    "text_transformer.embeddings.token_type_ids": "",
    "mlm_score": "", "vqa_classifier": "", "nlvr2_classifier": "", "snli_classifier": "",
}  # fmt: skip


def _module(library: Any, torch: Any, weights: Weights) -> tuple[Any, int]:
    """Return an empty module of the sizes of some weights, and the side of its images."""
    nn, tower = torch.nn, library.models.bridgetower.modeling_bridgetower
    text_prefix, image_prefix = "text_transformer.embeddings.", f"{VISION}embeddings."
    words, wide = weights[f"{text_prefix}word_embeddings.weight"].shape
    width, _, patch, _ = weights[f"{image_prefix}patch_embedding.weight"].shape
    side = patch * math.isqrt(len(weights[f"{image_prefix}position_embedding.weight"]) - 1)
    hidden = len(weights["cross_modal_text_transform.weight"])
    blocks = count_blocks(weights, f"{VISION}transformer.resblocks")
    text = library.RobertaConfig(
        vocab_size=words, hidden_size=wide, num_attention_heads=wide // HEAD, layer_norm_eps=1e-5,
        num_hidden_layers=count_blocks(weights, "text_transformer.encoder.layer"),
        max_position_embeddings=len(weights[f"{text_prefix}position_embeddings.weight"]),
        type_vocab_size=len(weights[f"{text_prefix}token_type_embeddings.weight"]),
        intermediate_size=4 * wide,
    )  # fmt: skip
    vision = library.BridgeTowerVisionConfig(
        hidden_size=width, num_hidden_layers=blocks, patch_size=patch, image_size=side
    )
    # Masks are added to scores, and the norm's epsilon is that of the authors' configuration.
    cross = library.RobertaConfig(
        hidden_size=hidden, num_attention_heads=hidden // HEAD, intermediate_size=4 * hidden,
        layer_norm_eps=1e-12, attn_implementation="eager",
    )  # fmt: skip
    layers = count_blocks(weights, "cross_modal_text_layers")

    class Meter(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.text_transformer = library.RobertaModel(text)
            self.vit_model = tower.BridgeTowerVisionModel(vision)
            self.token_type_embeddings = nn.Embedding(
                len(weights["token_type_embeddings.weight"]), hidden
            )
            for name, size in (("text", wide), ("image", width)):
                parts = [tower.BridgeTowerBertCrossLayer(cross) for _ in range(layers)]
                setattr(self, f"cross_modal_{name}_transform", nn.Linear(size, hidden))
                setattr(self, f"cross_modal_{name}_layers", nn.ModuleList(parts))
                setattr(self, f"cross_modal_{name}_pooler", tower.BridgeTowerPooler(cross))
            if "rank_output.weight" in weights:
                self.rank_output = nn.Linear(2 * hidden, 1)
            if "itm_score.fc.weight" in weights:
                self.itm_score = tower.BridgeTowerITMHead(2 * hidden)

    return Meter(), side


def _seen(model: Any, inputs: Tensors) -> Tensors:
    visual = model.vit_model.visual
    states = visual.forward_pre(inputs["pixel_values"])
    for block in visual.transformer.resblocks:
        states = block(states)
    states = model.cross_modal_image_transform(visual.forward_post(states))
    return {"states": states + model.token_type_embeddings.weight[1]}


def _match(model: Any, image_states: Tensors, tokens: Tensors) -> Any:
    image, words = image_states["states"], model.text_transformer(**tokens).last_hidden_state
    text = model.cross_modal_text_transform(words) + model.token_type_embeddings.weight[0]
    no_mask = text.new_zeros(1)
    text_mask = (1.0 - tokens["attention_mask"][:, None, None].to(text.dtype)) * -1e4
    for of_text, of_image in zip(
        model.cross_modal_text_layers, model.cross_modal_image_layers, strict=True
    ):
        text, image = (
            of_text(text, image, text_mask, no_mask)[0],
            of_image(image, text, no_mask, text_mask)[0],
        )
    pooled = model.cross_modal_text_pooler(text), model.cross_modal_image_pooler(image)
    pooled_pair = imported_torch("hf").cat(pooled, dim=-1)
    if hasattr(model, "rank_output"):
        return model.rank_output(pooled_pair)[:, 0]
    return margin(model.itm_score(pooled_pair))


FAMILY = ScorerFamily("meter-matching", _match, _seen)


def _find(target: str, options: Options) -> LibraryWeights:
    source = find_file("meter", target, options)
    tokens = source.weights.parent / TOKENS
    if not tokens.is_file():
        raise ModelError(
            f"There is no {tokens}, and METER's checkpoint has no tokenizer. To do: add "
            f"roberta-base's to the folder (hf download roberta-base {TOKENS} --local-dir folder)."
        )
    return replace(source, settings=tokens)


def _identify(target: str, options: Options) -> Mapping[str, Json]:
    return _find(target, options).identity("hf", options)


@adapter("meter", preview=partial(preview, "meter", "scorer"), identify=_identify)
def load(target: str, options: Options) -> MatchingModel:
    """Load a METER that matches images with texts.

    Parameters
    ----------
    target : str
        The file, with the tokenizer.json of roberta-base beside it.
    options : Options
        What was asked.

    Raises
    ------
    MissingExtraError
        If transformers is not installed.
    ModelError
        If there is no such file, it is a pickle, its encoders are others than CLIP and RoBERTa, or
        it has no head for matching.
    """
    library = transformers()
    source = _find(target, options)
    torch_only(options, "a METER")
    placement = place(options.device, options.dtype, "hf", options.backend)
    weights = read_weights(source.weights, placement.torch)
    if not {"rank_output.weight", "itm_score.fc.weight"} & weights.keys():
        raise ModelError(
            f"{options.name} has no head for matching (rank_output, itm_score). To do: name a "
            "checkpoint of pre-training or retrieval, such as meter_clip16_288_roberta_coco.ckpt."
        )
    weights = rename_weights(weights, RENAMES)
    kinds = weights.get("text_transformer.embeddings.token_type_embeddings.weight", ())
    if f"{VISION}embeddings.patch_embedding.weight" not in weights or len(kinds) != 1:
        raise ModelError(
            f"{options.name} has other encoders than CLIP and RoBERTa (Swin and BERT are not "
            "supported). To do: name a checkpoint that the authors published."
        )
    model, side = _module(library, placement.torch, weights)
    fill(model, weights, options.name)
    model = model.to(placement.device, placement.torch_dtype).eval()
    # Its mean, spread and mode are CLIP's by default.
    processor = library.CLIPImageProcessor(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )
    prepare = processor_preparation(processor, options, placement)
    tokenizer = library.PreTrainedTokenizerFast(tokenizer_file=str(source.settings))
    tokenizer.pad_token = PAD
    settings = {
        "padding": True, "truncation": True, "max_length": LONGEST, "return_token_type_ids": False,
    }  # fmt: skip
    info = tower_info(
        options, FAMILY.name, source.files, source.digest, placement, library, scale=1.0, bias=0.0,
        preprocessing=processor_facts(processor, tokenizer, settings) | prepare.facts,
    )  # fmt: skip
    batches = placement.batches(), placement.batches()
    return MatchingModel(info, model, FAMILY, prepare, tokenizer, settings, placement, *batches)
