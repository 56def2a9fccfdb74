"""The six models of the colour world: their training cells, published figures and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from equipoise.models.onnx import load_onnx_classifier
from equipoise.planted.colours.render import COLOURS, SHAPES, ColourImages

TRAIN_PER_CELL = 3000
"""Training images of each shape in each colour, before a variant's cell is thinned."""

SOURCE = "Albuquerque et al. 2024 (SkewSize), dSprites, ResNet18"


@dataclass(frozen=True)
class Variant:
    """One model of the colour world.

    Attributes
    ----------
    name : str
        Also the name of its weight file.
    strength : {"none", "mild", "medium", "strong"}
        How much of the bias was planted.
    shape, colour : str or None
        The cell whose training images were thinned; None for the model trained on everything.
    kept : int
        Training images left in that cell, of `TRAIN_PER_CELL`.
    truth : str
        What an audit of the model should find.
    published : tuple of float
        Cramér's V of colour × prediction within each class, in the order of `SHAPES`: what
        `SOURCE` prints for the model trained the same way.
    seed : int
        Of the initial weights and the order of the training images. With seed 0 nearly every green
        ellipse is called a heart where none is trained on, and V is near 1: a label that is never
        predicted leaves the table. The source's 0.7 needs mistakes on both other shapes.
    source : str
        Table and row of `published`.
    """

    name: str
    strength: str
    shape: str | None
    colour: str | None
    kept: int
    truth: str
    published: tuple[float, float, float]
    seed: int
    source: str


VARIANTS = TypeAdapter(tuple[Variant, ...]).validate_json(
    Path(__file__).with_name("variants.json").read_bytes()
)

WEIGHTS = Path(__file__).parent / "weights"


def predict_table(scene: ColourImages, names: Sequence[str]) -> dict[str, NDArray[np.str_]]:
    """Predict every image with some models.

    Parameters
    ----------
    scene : ColourImages
        n images, from `render_test_set`.
    names : sequence of str
        Of `VARIANTS`.

    Returns
    -------
    dict of str to ndarray of length n
        ``image_id``, ``shape``, ``colour``, and for each variant ``predicted_<name>`` (a shape).
    """
    factors = scene.factors
    table = {
        "image_id": np.array(scene.image_id),
        "shape": np.array(SHAPES)[factors.shape],
        "colour": np.array(COLOURS)[factors.colour],
    }
    for name in names:
        model = load_onnx_classifier(WEIGHTS / f"{name}.onnx", SHAPES)
        best = model.predict_proba(scene.images).argmax(axis=1)
        table[f"predicted_{name}"] = np.array(model.labels)[best]
    return table
