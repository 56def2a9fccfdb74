"""Models of transformers with one tower for images and one for texts: CLIP, SigLIP, FLAVA."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import ModelError
from equipoise.models.batching import Batches
from equipoise.models.hf_loading import Source, image_facts, text_facts
from equipoise.models.info import ModelInfo
from equipoise.models.preparing import Preparation
from equipoise.models.runtimes import Placement
from equipoise.models.towers import Tower

Floats = NDArray[np.float32]


def _pooled(output: Any) -> Any:
    return output.pooler_output


def _first(output: Any) -> Any:
    # FLAVA projects every token; its contrastive loss sees the first.
    return output.pooler_output[:, 0]


@dataclass(frozen=True)
class Family:
    """What differs between the families.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    loader : str
        The class of transformers.
    vector : callable
        From the output of `get_image_features` or `get_text_features` to vectors.
    padding : bool or str
        How a tokenizer fills up texts; SigLIP was trained with all of one length, without a mask.
    lowercase : bool
        Whether texts are put in lower case first. SigLIP was trained so, and the tokenizer that
        comes with some of its second generation does not do it.
    longest : int
        Most tokens of a text that the model was trained with; the positions it has, if fewer.
    """

    name: str
    loader: str
    vector: Callable[[Any], Any] = _pooled
    padding: bool | str = True
    longest: int = 10_000
    lowercase: bool = False


FAMILIES = {
    "CLIPModel": Family("clip", "CLIPModel"),
    "SiglipModel": Family("siglip", "SiglipModel", _pooled, "max_length", 64, True),
    "Siglip2Model": Family("siglip2", "Siglip2Model", _pooled, "max_length", 64, True),
    "FlavaModel": Family("flava", "FlavaModel", _first, "max_length", 77),
    "FlavaForPreTraining": Family("flava", "FlavaModel", _first, "max_length", 77),
}


@dataclass(frozen=True)
class HfDualEncoder:
    """A dual encoder of transformers; made by `load_model`."""

    info: ModelInfo
    model: Any
    prepare: Preparation
    tower: Tower
    tokenizer: Any
    text_settings: dict[str, Any]
    family: Family
    placement: Placement
    image_batches: Batches
    text_batches: Batches

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return projected vectors of images, not normalised.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.

        Returns
        -------
        ndarray of float32, shape (n, dimension)
            NaN where the model gives NaN.
        """
        return self._stacked(self.image_batches.map(self._images, images))

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return projected vectors of texts, not normalised.

        Parameters
        ----------
        texts : sequence of n str
            A text that is longer than the model reads is cut, with a warning that counts them.

        Returns
        -------
        ndarray of float32, shape (n, dimension)
        """
        if self.family.lowercase:
            texts = [text.lower() for text in texts]
        self._warn_of_long(texts)
        return self._stacked(self.text_batches.map(self._texts, texts))

    def _stacked(self, parts: list[Floats]) -> Floats:
        empty = np.empty((0, self.info.dimension or 0), dtype=np.float32)
        return np.concatenate([empty, *parts])

    def _images(self, images: Sequence[Any]) -> Floats:
        (vectors,) = self.tower(self.prepare(images))
        return np.asarray(vectors.numpy(), dtype=np.float32)

    def _texts(self, texts: Sequence[str]) -> Floats:
        inputs = self.tokenizer(list(texts), return_tensors="pt", **self.text_settings)
        with self.placement.torch.inference_mode():
            output = self.model.get_text_features(**self.placement.put(inputs))
            found = self.family.vector(output)
            return np.asarray(found.float().cpu().numpy(), dtype=np.float32)

    def _warn_of_long(self, texts: Sequence[str]) -> None:
        most = self.text_settings["max_length"]
        tokens = self.tokenizer(list(texts), verbose=False).input_ids if texts else []
        cut = sum(len(ids) > most for ids in tokens)
        if cut:
            warnings.warn(
                f"{self.info.name}: {cut} of {len(texts)} texts are longer than the {most} tokens "
                "that the model reads; the rest of them was cut off.",
                stacklevel=3,
            )


def load_dual_encoder(source: Source) -> HfDualEncoder:
    """Load a checkpoint whose architecture is in `FAMILIES`."""
    family = FAMILIES[source.checkpoint.architecture]
    model = source.model(family.loader)
    images, tokenizer = source.part("AutoImageProcessor"), source.part("AutoTokenizer")
    settings = {
        "padding": family.padding,
        "truncation": True,
        "max_length": min(family.longest, model.config.text_config.max_position_embeddings),
    }
    _check_tokenizer(source, tokenizer, settings)
    prepare = source.preparation(images)
    tower = source.tower(
        model,
        lambda whole, inputs: (family.vector(whole.get_image_features(**inputs)),),
        prepare,
    )
    texts = settings | {"lowercase": family.lowercase}
    return HfDualEncoder(
        info=source.info(
            family.name,
            image_facts(images) | prepare.facts | text_facts(tokenizer, texts),
            tower,
            dimension=_dimension(model),
            scale=math.exp(model.logit_scale.item()),
            bias=model.logit_bias.item() if hasattr(model, "logit_bias") else 0.0,
        ),
        model=model,
        prepare=prepare,
        tower=tower,
        tokenizer=tokenizer,
        text_settings=settings,
        family=family,
        placement=tower.placement,
        image_batches=source.placement.batches(),
        text_batches=source.placement.batches(),
    )


def _check_tokenizer(source: Source, tokenizer: Any, settings: dict[str, Any]) -> None:
    """Refuse a tokenizer that loads and then fails on every text, such as one that can't pad."""
    try:
        tokenizer(["a", "a photo"], return_tensors="pt", **settings)
    except Exception as error:
        raise ModelError(
            f"{source.checkpoint.asked} has no tokenizer that can be loaded: {error}"
        ) from error


def _dimension(model: Any) -> int:
    """Length of a vector: `projection_dim`, or a SigLIP's width of the text tower's last layer."""
    size = getattr(model.config, "projection_dim", None)
    text = model.config.text_config
    return int(size or getattr(text, "projection_size", None) or text.hidden_size)
