"""Models of transformers that see image and text together: BLIP matching and BridgeTower."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.batching import Batches
from equipoise.models.hf_loading import Source, image_facts, text_facts
from equipoise.models.info import ModelInfo
from equipoise.models.preparing import Preparation
from equipoise.models.runtimes import Placement

Floats = NDArray[np.float32]
Tensors = dict[str, Any]


def _blip_sees(model: Any, images: Tensors) -> Tensors:
    # The image's own tower does not depend on the text, so it runs once for all texts.
    return {"seen": model.vision_model(pixel_values=images["pixel_values"]).last_hidden_state}


def _blip_matches(model: Any, seen: Tensors, texts: Tensors) -> Any:
    states = model.text_encoder(
        input_ids=texts["input_ids"],
        attention_mask=texts["attention_mask"],
        encoder_hidden_states=seen["seen"],
        encoder_attention_mask=seen["seen"].new_ones(seen["seen"].shape[:2]).long(),
    ).last_hidden_state
    return model.itm_head(states[:, 0])


def _bridgetower_sees(_: Any, images: Tensors) -> Tensors:
    return images


def _bridgetower_matches(model: Any, seen: Tensors, texts: Tensors) -> Any:
    return model(**seen, **texts).logits


@dataclass(frozen=True)
class Family:
    """What differs between the families.

    Attributes
    ----------
    name, loader : str
        As it stands in `ModelInfo.family`; the class of transformers.
    sees : callable
        From the model and tensors of images to what texts are matched with.
    matches : callable
        From the model, rows of that and tensors of as many texts to two logits a pair: no match,
        match.
    """

    name: str
    loader: str
    sees: Callable[[Any, Tensors], Tensors]
    matches: Callable[[Any, Tensors, Tensors], Any]


FAMILIES = {
    "BlipForImageTextRetrieval": Family(
        "blip-matching", "BlipForImageTextRetrieval", _blip_sees, _blip_matches
    ),
    "BridgeTowerForImageAndTextRetrieval": Family(
        "bridgetower-matching",
        "BridgeTowerForImageAndTextRetrieval",
        _bridgetower_sees,
        _bridgetower_matches,
    ),
}


@dataclass(frozen=True)
class HfPairScorer:
    """A model of transformers that matches images with texts; made by `load_model`."""

    info: ModelInfo
    model: Any
    prepare: Preparation
    tokenizer: Any
    text_settings: dict[str, Any]
    family: Family
    placement: Placement
    image_batches: Batches
    pair_batches: Batches

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        """Return the probability that an image and a text match, of every pair.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.
        texts : sequence of m str
            A text longer than the model reads is cut.

        Returns
        -------
        ndarray of float32, shape (n, m)
            From 0 to 1, higher matches better; NaN where the model gives NaN.
        """
        empty = np.empty((0, len(texts)), dtype=np.float32)
        if not texts:
            return np.empty((len(images), 0), dtype=np.float32)
        tokens = self._tokens(texts)
        rows = self.image_batches.map(lambda batch: self._rows(batch, tokens), images)
        return np.concatenate([empty, *rows])

    def _tokens(self, texts: Sequence[str]) -> Tensors:
        found = self.tokenizer(list(texts), return_tensors="pt", **self.text_settings)
        return self.placement.put(found)

    def _rows(self, images: Sequence[Any], tokens: Tensors) -> Floats:
        inputs = self.prepare(images)
        with self.placement.torch.inference_mode():
            seen = self.family.sees(self.model, self.placement.put(inputs))
            pairs = list(product(range(len(images)), range(len(tokens["input_ids"]))))
            parts = self.pair_batches.map(lambda some: self._pairs(some, seen, tokens), pairs)
        return np.concatenate(parts).reshape(len(images), -1)

    def _pairs(self, pairs: Sequence[tuple[int, int]], seen: Tensors, tokens: Tensors) -> Floats:
        rows, columns = ([pair[side] for pair in pairs] for side in (0, 1))
        logits = self.family.matches(
            self.model,
            {name: value[rows] for name, value in seen.items()},
            {name: value[columns] for name, value in tokens.items()},
        )
        match = logits.float().softmax(dim=-1)[:, 1]
        return np.asarray(match.cpu().numpy(), dtype=np.float32)


def load_pair_scorer(source: Source) -> HfPairScorer:
    """Load a checkpoint whose architecture is in `FAMILIES`."""
    family = FAMILIES[source.checkpoint.architecture]
    model = source.model(family.loader)
    images, tokenizer = source.part("AutoImageProcessor"), source.part("AutoTokenizer")
    positions = model.config.text_config.max_position_embeddings
    settings = {
        "padding": True,
        "truncation": True,
        "max_length": min(tokenizer.model_max_length, positions),
        "return_token_type_ids": False,
    }
    prepare = source.preparation(images)
    facts = image_facts(images) | prepare.facts | text_facts(tokenizer, settings)
    return HfPairScorer(
        info=source.info(family.name, facts),
        model=model,
        prepare=prepare,
        tokenizer=tokenizer,
        text_settings=settings,
        family=family,
        placement=source.placement,
        image_batches=source.placement.batches(),
        pair_batches=source.placement.batches(),
    )
