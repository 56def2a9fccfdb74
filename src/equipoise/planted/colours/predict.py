"""Run the shipped models over images of the colour world."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.models.onnx import OnnxClassifier, load_onnx_classifier
from equipoise.planted.colours.render import COLOURS, SHAPES, ColourImages
from equipoise.planted.colours.variants import VARIANTS

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
