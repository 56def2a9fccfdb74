"""Image classifiers of transformers: ViT, ResNet, ConvNeXt and their like."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.batching import Batches
from equipoise.models.heads import last_linear, seen_by
from equipoise.models.hf_loading import Source, image_facts, prepared
from equipoise.models.info import ModelInfo
from equipoise.models.runtimes import Placement

Floats = NDArray[np.float32]
LOADER = "AutoModelForImageClassification"


@dataclass(frozen=True)
class HfClassifier:
    """An image classifier of transformers; made by `load_model`."""

    info: ModelInfo
    labels: tuple[str, ...]
    model: Any
    image_processor: Any
    multi_label: bool
    placement: Placement
    batches: Batches

    def predict_proba(self, images: Sequence[Any]) -> Floats:
        """Return class probabilities.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            Rows sum to 1, unless the model was trained for several labels an image; NaN where the
            model gives NaN.
        """
        empty = np.empty((0, len(self.labels)), dtype=np.float32)
        return np.concatenate([empty, *self.batches.map(self._probabilities, images)])

    def features(self, images: Sequence[Any]) -> Floats:
        """Return what the last layer sees.

        Parameters
        ----------
        images : sequence of n images

        Returns
        -------
        ndarray of float32, shape (n, dimension)
        """
        empty = np.empty((0, self.info.dimension or 0), dtype=np.float32)
        return np.concatenate([empty, *self.batches.map(self._features, images)])

    def _probabilities(self, images: Sequence[Any]) -> Floats:
        inputs = self._inputs(images)
        with self.placement.torch.inference_mode():
            logits = self.model(**inputs).logits.float()
            found = logits.sigmoid() if self.multi_label else logits.softmax(dim=-1)
            return np.asarray(found.cpu().numpy(), dtype=np.float32)

    def _features(self, images: Sequence[Any]) -> Floats:
        inputs = self._inputs(images)
        head = last_linear(self.placement.torch, getattr(self.model, "classifier", None))
        with self.placement.torch.inference_mode():
            seen = seen_by(head, lambda: self.model(**inputs), self.info.name)
            return np.asarray(seen.float().cpu().numpy(), dtype=np.float32)

    def _inputs(self, images: Sequence[Any]) -> dict[str, Any]:
        found = prepared(self.image_processor, images, self.info.name)
        return self.placement.put(found)


def load_classifier(source: Source) -> HfClassifier:
    """Load a checkpoint that transformers knows as an image classifier."""
    model = source.model(LOADER)
    images = source.part("AutoImageProcessor")
    head = last_linear(source.placement.torch, getattr(model, "classifier", None))
    multi_label = model.config.problem_type == "multi_label_classification"
    facts = image_facts(images) | {"probabilities": "sigmoid" if multi_label else "softmax"}
    return HfClassifier(
        info=source.info(
            model.config.model_type, facts, dimension=None if head is None else head.in_features
        ),
        labels=tuple(model.config.id2label[index] for index in range(model.config.num_labels)),
        model=model,
        image_processor=images,
        multi_label=multi_label,
        placement=source.placement,
        batches=source.placement.batches(),
    )
