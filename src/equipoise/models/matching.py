"""Models that see an image and a text together, and say how well the two match."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.core import Floats32
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo
from equipoise.models.preprocessing import Preparation
from equipoise.models.runtimes import Batches, Placement
from equipoise.models.runtimes import torch as imported_torch

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

Tensors = dict[str, Any]


class ScorerFamily(NamedTuple):
    """Differences between the families.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    match : callable
        From the module, the tensors of n images that `encode_images` gives, and those of n texts,
        to n logits: of a match, less that of no match where the model has both.
    encode_images : callable
        From the module and the tensors of images to what doesn't depend on a text.
    positions : str
        Part of the configuration that says how many tokens a text may have; empty: the whole.
    """

    name: str
    match: Callable[[Any, Tensors, Tensors], "Tensor"]
    encode_images: Callable[[Any, Tensors], Tensors] = lambda _, inputs: inputs
    positions: str = "text_config"


@dataclass(frozen=True)
class MatchingModel:
    """A pair scorer on torch; made by `load_model`."""

    info: ModelInfo
    model: Any
    family: ScorerFamily
    prepare: Preparation
    tokenizer: Any
    text_settings: Mapping[str, Any]
    placement: Placement
    image_batches: Batches
    pair_batches: Batches

    def score(self, images: Images, texts: Sequence[str]) -> Floats32:
        """Return the logit that an image and a text match, of every pair.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.
        texts : sequence of m str
            A text longer than the model reads is cut.

        Returns
        -------
        ndarray of float32, shape (n, m)
            Any number, higher matches better; NaN where the model gives NaN.
        """
        if not len(images) or not texts:
            return np.empty((len(images), len(texts)), dtype=np.float32)
        tokens = self.tokens(texts)
        return np.concatenate(
            self.image_batches.map(lambda batch: self._rows(batch, tokens), images)
        )

    def tokens(self, texts: Sequence[str]) -> Tensors:
        """Return the tensors of texts."""
        tokens = self.tokenizer(list(texts), return_tensors="pt", **self.text_settings)
        return self.placement.put(tokens)

    def _rows(self, images: Images, tokens: Tensors) -> Floats32:
        inputs = self.placement.put(self.prepare(images))
        pairs = list(product(range(len(images)), range(len(tokens["input_ids"]))))
        with self.placement.torch.inference_mode():
            image_states = self.family.encode_images(self.model, inputs)

            def matched(batch: Sequence[tuple[int, int]]) -> Floats32:
                rows, columns = zip(*batch, strict=True)
                logits = self.family.match(
                    self.model,
                    {name: value[[*rows]] for name, value in image_states.items()},
                    {name: value[[*columns]] for name, value in tokens.items()},
                )
                return np.asarray(logits.float().cpu().numpy(), np.float32)

            parts = self.pair_batches.map(matched, pairs)
        return np.concatenate(parts).reshape(len(images), -1)


def margin(logits: "Tensor") -> "Tensor":
    """Return logits of a match minus logits of no match, shape (n,)."""
    return logits[:, 1] - logits[:, 0]


def _tower(model: Any, inputs: Tensors) -> Tensors:
    return {"states": model.vision_model(inputs["pixel_values"]).last_hidden_state}


def _cross_attention(states: Any) -> Tensors:
    """Return the image states that a text attends to, with their mask."""
    mask = states.new_ones(states.shape[:2]).long()
    return {"encoder_hidden_states": states, "encoder_attention_mask": mask}


def _blip(model: Any, image_states: Tensors, tokens: Tensors) -> Any:
    output = model.text_encoder(**tokens, **_cross_attention(image_states["states"]))
    return margin(model.itm_head(output.last_hidden_state[:, 0]))


def _blip_2(model: Any, image_states: Tensors, tokens: Tensors) -> Any:
    states = image_states["states"]
    queries = model.query_tokens.expand(len(states), -1, -1)
    mask = tokens["attention_mask"]
    mask = imported_torch("hf").cat([mask.new_ones(queries.shape[:2]), mask], dim=1)
    states_read = model.qformer(
        query_embeds=model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries),
        query_length=queries.shape[1],
        attention_mask=mask,
        **_cross_attention(states.to(queries.dtype)),
    ).last_hidden_state
    of_queries = states_read[:, : queries.shape[1]].to(model.itm_head.weight.dtype)
    return margin(model.itm_head(of_queries).mean(dim=1))


def vilt_places(model: "PreTrainedModel", inputs: Tensors) -> Tensors:
    """Return ViLT's image tokens in order of place, with their mask.

    The library puts places in a random order, which changes nothing but the last digits.
    """
    torch, embeddings = imported_torch("hf"), model.vilt.embeddings
    functional = torch.nn.functional
    places = embeddings.patch_embeddings(inputs["pixel_values"])
    mask = functional.interpolate(inputs["pixel_mask"][:, None].float(), size=places.shape[2:])
    mask = mask[:, 0].long()
    class_position, grid = (
        embeddings.position_embeddings[:, :1],
        embeddings.position_embeddings[:, 1:],
    )
    side = math.isqrt(grid.shape[1])
    grid = grid.transpose(1, 2).reshape(1, -1, side, side)
    positions = []
    for high, wide in zip(mask[:, :, 0].sum(1).tolist(), mask[:, 0].sum(1).tolist(), strict=True):
        fitted = functional.interpolate(grid, (high, wide), mode="bilinear", align_corners=True)
        padding = (0, places.shape[3] - wide, 0, places.shape[2] - high)
        positions.append(functional.pad(fitted, padding))
    places = places + torch.cat(positions)
    start = (embeddings.cls_token + class_position).expand(len(places), -1, -1)
    tokens = torch.cat([start, places.flatten(2).transpose(1, 2)], dim=1)
    return {
        "image_embeds": tokens,
        "pixel_mask": functional.pad(mask.flatten(1), (1, 0), value=1),
    }


SCORERS = {
    "BlipForImageTextRetrieval": ScorerFamily("blip-matching", _blip, _tower),
    "Blip2ForImageTextRetrieval": ScorerFamily(
        "blip-2-matching", _blip_2, _tower, "qformer_config"
    ),
    "BridgeTowerForImageAndTextRetrieval": ScorerFamily(
        "bridgetower-matching",
        lambda model, image_states, tokens: margin(model(**image_states, **tokens).logits),
    ),
    "ViltForImageAndTextRetrieval": ScorerFamily(
        "vilt-matching",
        lambda model, image_states, tokens: model(**image_states, **tokens).logits[:, 0],
        vilt_places,
        "",
    ),
}
"""Families of transformers by architecture."""
