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
    """What differs between the families.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    match : callable
        From the module, the tensors of n images that `seen` gives, and those of n texts, to n
        logits: of a match, less that of no match where the model has both.
    seen : callable
        From the module and the tensors of images to what doesn't depend on a text.
    positions : str
        Part of the configuration that says how many tokens a text may have; empty: the whole.
    """

    name: str
    match: Callable[[Any, Tensors, Tensors], "Tensor"]
    seen: Callable[[Any, Tensors], Tensors] = lambda _, inputs: inputs
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
        return np.concatenate(self.image_batches.map(lambda some: self._rows(some, tokens), images))

    def tokens(self, texts: Sequence[str]) -> Tensors:
        """Return the tensors of texts."""
        tokens = self.tokenizer(list(texts), return_tensors="pt", **self.text_settings)
        return self.placement.put(tokens)

    def _rows(self, images: Images, tokens: Tensors) -> Floats32:
        inputs = self.placement.put(self.prepare(images))
        pairs = list(product(range(len(images)), range(len(tokens["input_ids"]))))
        with self.placement.torch.inference_mode():
            seen = self.family.seen(self.model, inputs)

            def matched(some: Sequence[tuple[int, int]]) -> Floats32:
                rows, columns = zip(*some, strict=True)
                logits = self.family.match(
                    self.model,
                    {name: value[[*rows]] for name, value in seen.items()},
                    {name: value[[*columns]] for name, value in tokens.items()},
                )
                return np.asarray(logits.float().cpu().numpy(), np.float32)

            parts = self.pair_batches.map(matched, pairs)
        return np.concatenate(parts).reshape(len(images), -1)


def margin(logits: "Tensor") -> "Tensor":
    """Return logits of a match less those of no match, (n,), of (n, 2)."""
    return logits[:, 1] - logits[:, 0]


def _tower(model: Any, inputs: Tensors) -> Tensors:
    return {"states": model.vision_model(inputs["pixel_values"]).last_hidden_state}


def _beside(states: Any) -> Tensors:
    """Return what a text is read beside: the states of its image."""
    mask = states.new_ones(states.shape[:2]).long()
    return {"encoder_hidden_states": states, "encoder_attention_mask": mask}


def _blip(model: Any, seen: Tensors, tokens: Tensors) -> Any:
    read = model.text_encoder(**tokens, **_beside(seen["states"]))
    return margin(model.itm_head(read.last_hidden_state[:, 0]))


def _blip_2(model: Any, seen: Tensors, tokens: Tensors) -> Any:
    states = seen["states"]
    queries = model.query_tokens.expand(len(states), -1, -1)
    mask = tokens["attention_mask"]
    mask = imported_torch("hf").cat([mask.new_ones(queries.shape[:2]), mask], dim=1)
    read = model.qformer(
        query_embeds=model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries),
        query_length=queries.shape[1],
        attention_mask=mask,
        **_beside(states.to(queries.dtype)),
    ).last_hidden_state
    of_queries = read[:, : queries.shape[1]].to(model.itm_head.weight.dtype)
    return margin(model.itm_head(of_queries).mean(dim=1))


def vilt_places(model: "PreTrainedModel", inputs: Tensors) -> Tensors:
    """Return the tokens of images as ViLT reads them, place by place, and which are no padding.

    The library puts places in a random order, which changes nothing but the last digits.
    """
    torch, own = imported_torch("hf"), model.vilt.embeddings
    functional = torch.nn.functional
    places = own.patch_embeddings(inputs["pixel_values"])
    mask = functional.interpolate(inputs["pixel_mask"][:, None].float(), size=places.shape[2:])
    mask = mask[:, 0].long()
    first, others = own.position_embeddings[:, :1], own.position_embeddings[:, 1:]
    side = math.isqrt(others.shape[1])
    others = others.transpose(1, 2).reshape(1, -1, side, side)
    positions = []
    for high, wide in zip(mask[:, :, 0].sum(1).tolist(), mask[:, 0].sum(1).tolist(), strict=True):
        fitted = functional.interpolate(others, (high, wide), mode="bilinear", align_corners=True)
        rest = (0, places.shape[3] - wide, 0, places.shape[2] - high)
        positions.append(functional.pad(fitted, rest))
    places = places + torch.cat(positions)
    start = (own.cls_token + first).expand(len(places), -1, -1)
    every = torch.cat([start, places.flatten(2).transpose(1, 2)], dim=1)
    return {
        "image_embeds": every,
        "pixel_mask": functional.pad(mask.flatten(1), (1, 0), value=1),
    }


SCORERS = {
    "BlipForImageTextRetrieval": ScorerFamily("blip-matching", _blip, _tower),
    "Blip2ForImageTextRetrieval": ScorerFamily(
        "blip-2-matching", _blip_2, _tower, "qformer_config"
    ),
    "BridgeTowerForImageAndTextRetrieval": ScorerFamily(
        "bridgetower-matching",
        lambda model, seen, tokens: margin(model(**seen, **tokens).logits),
    ),
    "ViltForImageAndTextRetrieval": ScorerFamily(
        "vilt-matching",
        lambda model, seen, tokens: model(**seen, **tokens).logits[:, 0],
        vilt_places,
        "",
    ),
}
"""Families of transformers by architecture."""
