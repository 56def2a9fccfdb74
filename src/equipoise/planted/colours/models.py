"""The six models of the colour world: their training cells, published figures and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.models.onnx import OnnxClassifier, load_onnx_classifier
from equipoise.planted.colours.render import COLOURS, SHAPES, ColourImages

TRAIN_PER_CELL = 3000
"""Training images of each shape in each colour, before a variant's cell is thinned."""

SOURCE = "Albuquerque et al. 2024 (SkewSize), dSprites, ResNet18"


@dataclass(frozen=True)
class Published:
    """Figures of the source for the model trained the same way.

    Attributes
    ----------
    place : str
        Table and row in `SOURCE`.
    effect_sizes : tuple of float
        Cramér's V of colour × prediction within each class, in the order of `SHAPES`.
    accuracy, worst_group_accuracy, gap : float or None
        Over all classes, groups are colours; None where the source prints none.
    """

    place: str
    effect_sizes: tuple[float, float, float]
    accuracy: float | None = None
    worst_group_accuracy: float | None = None
    gap: float | None = None


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
    published : Published
        What the source found.
    seed : int
        Of the initial weights and the order of the training images.
    """

    name: str
    strength: str
    shape: str | None
    colour: str | None
    kept: int
    truth: str
    published: Published
    seed: int = 0

    def kept_in(self, shape: str, colour: str) -> int:
        """Return how many training images of a cell this model saw.

        Raises
        ------
        ValueError
            If there is no such shape or colour.
        """
        if shape not in SHAPES or colour not in COLOURS:
            raise ValueError(
                f"there is no cell {shape!r} in {colour!r}: shapes are {', '.join(SHAPES)}, "
                f"colours {', '.join(COLOURS)}"
            )
        return self.kept if (shape, colour) == (self.shape, self.colour) else TRAIN_PER_CELL


def _without_green(shape: str, published: Published, seed: int = 0) -> Variant:
    return Variant(
        name=f"without_green_{shape}",
        strength="strong",
        shape=shape,
        colour="green",
        kept=0,
        truth=f"Green images of class {shape} are called something else; no other class is biased.",
        published=published,
        seed=seed,
    )


def _few_green_ellipses(strength: str, kept: int, published: Published) -> Variant:
    return Variant(
        name=f"{strength}_green_ellipse",
        strength=strength,
        shape="ellipse",
        colour="green",
        kept=kept,
        truth="Some green ellipses are called something else; no other class is biased.",
        published=published,
    )


VARIANTS = (
    Variant(
        name="complete",
        strength="none",
        shape=None,
        colour=None,
        kept=TRAIN_PER_CELL,
        truth="Mistakes do not depend on colour in any class.",
        published=Published("Table 1, none removed", (0.006, 0.020, 0.024), 0.998, 0.996, 0.002),
    ),
    _without_green(
        "square", Published("Table 1, class 0", (0.705, 0.012, 0.017), 0.888, 0.666, 0.222)
    ),
    # With seed 0 nearly every green ellipse is called a heart, and V is near 1: a label that is
    # never predicted leaves the table. The source's 0.7 needs mistakes on both other shapes.
    _without_green(
        "ellipse",
        Published("Table 1, class 1", (0.012, 0.703, 0.011), 0.891, 0.653, 0.238),
        seed=1,
    ),
    _without_green(
        "heart", Published("Table 1, class 2", (0.032, 0.009, 0.700), 0.888, 0.664, 0.224)
    ),
    _few_green_ellipses("mild", 250, Published("Table 2, 5k left", (0.002, 0.253, 0.017))),
    _few_green_ellipses("medium", 25, Published("Table 2, 2k left", (0.013, 0.492, 0.032))),
)

STRENGTHS = ("complete", "mild_green_ellipse", "medium_green_ellipse", "without_green_ellipse")
"""Names of the variants of class ellipse, from no bias to the strongest."""


WEIGHTS = Path(__file__).parent / "weights"

Column = NDArray[np.str_] | NDArray[np.float64] | NDArray[np.float32]


def load_variant(name: str, *, threads: int = 1) -> OnnxClassifier:
    """Load one shipped model.

    Parameters
    ----------
    name : str
        Name of a variant in `VARIANTS`.
    threads : int
        Threads for one operator.

    Returns
    -------
    OnnxClassifier
        Its labels are `SHAPES`.

    Raises
    ------
    ValueError
        If there is no such variant.
    """
    names = [variant.name for variant in VARIANTS]
    if name not in names:
        raise ValueError(f"there is no variant {name!r}; there are {', '.join(names)}")
    return load_onnx_classifier(WEIGHTS / f"{name}.onnx", SHAPES, threads=threads)


def predict_table(
    scene: ColourImages, names: Sequence[str] | None = None, *, threads: int = 1
) -> dict[str, Column]:
    """Predict every image with every model.

    Parameters
    ----------
    scene : ColourImages
        n images, from `render_test_set`.
    names : sequence of str, optional
        Which variants to run; all six by default.
    threads : int
        Threads for one operator.

    Returns
    -------
    dict of str to ndarray of length n
        ``image_id``, ``shape`` and ``colour`` (names), ``scale``, ``rotation`` (radians), ``x``,
        ``y``, and for each variant ``predicted_<name>`` (a shape) and ``score_<name>`` (its
        probability, float32 in [1/3, 1]).
    """
    factors = scene.factors
    table: dict[str, Column] = {
        "image_id": np.array(scene.image_id),
        "shape": np.array(SHAPES)[factors.shape],
        "colour": np.array(COLOURS)[factors.colour],
        "scale": factors.scale,
        "rotation": factors.rotation,
        "x": factors.x,
        "y": factors.y,
    }
    for name in [variant.name for variant in VARIANTS] if names is None else names:
        model = load_variant(name, threads=threads)
        scores = model.predict_proba(scene.images)
        table[f"predicted_{name}"] = np.array(model.labels)[scores.argmax(axis=1)]
        table[f"score_{name}"] = scores.max(axis=1)
    return table
