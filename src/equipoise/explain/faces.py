"""Faces in pictures: where the cascade that OpenCV 4 ships with finds them."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.core import Bytes, Integers, ModelError
from equipoise.evidence.pictures import ImageError, Pictures, decode
from equipoise.models import runtimes

_CASCADE = "haarcascade_frontalface_default.xml"
_CORNERS = ("left", "top", "right", "bottom")
_NO_BOX = (None,) * len(_CORNERS)
FACES = {"image_id": pl.String, "face": pl.String, "faces": pl.Int64} | dict.fromkeys(
    _CORNERS, pl.Int64
)
"""Columns of the table of faces, with their types."""


def find_faces(image: Bytes, *, hits: int = 5) -> Integers:
    """Return the frontal faces of a picture.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    hits : int
        Overlapping hits that make a face; fewer find more faces, and more of what is none.

    Returns
    -------
    ndarray of int64, shape (faces, 4)
        Left, top, right and bottom in pixels, right and bottom outside. A side has at least a tenth
        of the picture's shorter one.

    Raises
    ------
    MissingExtraError
        If OpenCV is not installed.
    ModelError
        If it is of version 5 or later, which has no cascades.

    References
    ----------
    Viola & Jones 2001.
    """
    cv2, cascade = _cascade()
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    side = max(int(0.1 * min(grey.shape)), 1)
    detections = cascade.detectMultiScale(grey, 1.1, minNeighbors=hits, minSize=(side, side))
    boxes = np.asarray(detections, dtype=np.int64).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    return boxes


@cache
def _cascade() -> tuple[Any, Any]:
    """Return OpenCV and its cascade."""
    cv2 = runtimes.imported("cv2", "explain")
    if not hasattr(cv2, "CascadeClassifier"):
        raise ModelError(
            f"OpenCV {cv2.__version__} has no cascade classifier. To do: install a 4.x "
            "(pip install 'opencv-python-headless<5'), or name columns of boxes"
        )
    return cv2, cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / _CASCADE))


def largest_faces(pictures: Pictures, *, margin: float = 0.0) -> pl.DataFrame:
    """Return the largest face of each picture.

    Parameters
    ----------
    pictures : Pictures
    margin : float
        Share of a face's width and height that is added on each side, within the picture.

    Returns
    -------
    polars.DataFrame
        One row per picture, in their order: `image_id`; `face`: "yes", "no", or "unreadable";
        `faces`, how many there are; `left`, `top`, `right` and `bottom` of the largest, in pixels
        of the picture turned upright, null where there is none.
    """
    rows = []
    for place, name in enumerate(pictures.ids.tolist()):
        try:
            image = decode(pictures.read(place))
        except (OSError, ImageError):
            rows.append((name, "unreadable", 0, *_NO_BOX))
            continue
        boxes = find_faces(image)
        if not len(boxes):
            rows.append((name, "no", 0, *_NO_BOX))
            continue
        sides = boxes[:, 2:] - boxes[:, :2]
        largest = int(sides.prod(axis=1).argmax())
        added = np.rint(margin * sides[largest]).astype(np.int64)
        low = np.maximum(boxes[largest, :2] - added, 0)
        high = np.minimum(boxes[largest, 2:] + added, image.shape[1::-1])
        rows.append((name, "yes", len(boxes), *low.tolist(), *high))
    return pl.DataFrame(rows, FACES, orient="row")
