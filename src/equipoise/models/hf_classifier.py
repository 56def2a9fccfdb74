"""Image classifiers of transformers: ViT, ResNet, ConvNeXt and their like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.batching import Batches
from equipoise.models.heads import last_linear, no_features, seen_by
from equipoise.models.hf_loading import Source, image_facts
from equipoise.models.info import ModelInfo
from equipoise.models.preparing import Preparation
from equipoise.models.towers import Tower

Floats = NDArray[np.float32]
LOADER = "AutoModelForImageClassification"


@dataclass(frozen=True)
class HfClassifier:
    """An image classifier of transformers; made by `load_model`."""

    info: ModelInfo
    labels: tuple[str, ...]
    model: Any
    prepare: Preparation
    tower: Tower
    multi_label: bool
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
        logits = self.tower(self.prepare(images))[0]
        found = logits.sigmoid() if self.multi_label else logits.softmax(dim=-1)
        return np.asarray(found.numpy(), dtype=np.float32)

    def _features(self, images: Sequence[Any]) -> Floats:
        seen = self.tower(self.prepare(images))[1:]
        if not seen:
            raise no_features(self.info.name)
        return np.asarray(seen[0].numpy(), dtype=np.float32)


def _outputs(head: Any, model: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Logits, and what the last layer sees where there is one."""
    if head is None:
        return (model(**inputs).logits,)
    output, seen = seen_by(head, lambda: model(**inputs))
    return output.logits, seen


def load_classifier(source: Source) -> HfClassifier:
    """Load a checkpoint that transformers knows as an image classifier."""
    model = source.model(LOADER)
    images = source.part("AutoImageProcessor")
    head = last_linear(source.placement.torch, getattr(model, "classifier", None))
    multi_label = model.config.problem_type == "multi_label_classification"
    prepare = source.preparation(images)
    tower = source.tower(model, partial(_outputs, head), prepare)
    facts = image_facts(images) | prepare.facts
    facts |= {"probabilities": "sigmoid" if multi_label else "softmax"}
    return HfClassifier(
        info=source.info(
            model.config.model_type,
            facts,
            tower,
            dimension=None if head is None else head.in_features,
        ),
        labels=tuple(model.config.id2label[index] for index in range(model.config.num_labels)),
        model=model,
        prepare=prepare,
        tower=tower,
        multi_label=multi_label,
        batches=source.placement.batches(),
    )
