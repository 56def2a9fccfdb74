"""Running models for kinds of audit that still read tables of outputs; see `audits.outputs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.outputs import LiveModels, Outputs
from equipoise.audits.running.runner import Offer, Ran

if TYPE_CHECKING:
    from equipoise.audits.running.config import RunConfig
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts


class Live(LiveModels):
    """Runs models, see `runner.Runner`."""

    def offer(self, name: str, given: RunConfig, *allowed: Offer) -> Offer:
        """Return what a model is; refuse one that is none of what is allowed."""
        return self.capability(name, given, *allowed)

    def images(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images"
    ) -> Ran:
        """Embed images: with a dual encoder, or the features of a classifier."""
        return _ran(self.embed_images(name, given, pictures, on=what), "embedding")

    def texts(self, name: str, given: RunConfig, prompts: Prompts, *, what: str = "queries") -> Ran:
        """Embed the names of prompts, each as the mean of the unit vectors of its prompts."""
        return _ran(self.embed_texts(name, given, prompts, on=what), "embedding")

    def scores(
        self, name: str, given: RunConfig, pictures: Pictures, texts: Sequence[str], *,
        what: str = "images",
    ) -> Ran:  # fmt: skip
        """Score each image with each text."""
        return _ran(self.score_pairs(name, given, pictures, texts, on=what), "values")

    def probabilities(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images",
        expected: Sequence[str] = (),
    ) -> Ran:  # fmt: skip
        """Give each image a probability per class."""
        return _ran(self.predict(name, given, pictures, on=what, expected=expected), "values")

    def answers(
        self, name: str, given: RunConfig, pictures: Pictures, question: str, *,
        what: str = "images",
    ) -> Ran:  # fmt: skip
        """Ask about each image."""
        return _ran(self.answer(name, given, pictures, question, on=what), "answer")


def _ran(outputs: Outputs, column: str) -> Ran:
    cells: Any
    if outputs.labels is not None:
        cells = pa.array(outputs.labels.values[:, 0], pa.string())
    else:
        values = outputs.numbers
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel())
        cells = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    table = pa.table({"id": outputs.ids.to_arrow().cast(pa.string()), column: cells})
    requested = () if outputs.requested is None else tuple(outputs.requested.tolist())
    return Ran(
        outputs.model, outputs.on, table, outputs.info, requested, outputs.names, outputs.failed,
        outputs.inputs, outputs.identical,
    )  # fmt: skip
