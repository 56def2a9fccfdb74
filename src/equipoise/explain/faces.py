"""Faces in pictures: where the cascade that OpenCV 4 ships with finds them."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import Bytes, Integers, ModelError
from equipoise.models import runtimes

_CASCADE = "haarcascade_frontalface_default.xml"


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
    found = cascade.detectMultiScale(grey, 1.1, minNeighbors=hits, minSize=(side, side))
    boxes = np.asarray(found, dtype=np.int64).reshape(-1, 4)
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
