"""Find faces with OpenCV: the cascade that it ships with, or YuNet from a file of its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError, MissingExtraError, ModelError
from equipoise.mitigate.augmentation.regions import Regions

Image = NDArray[np.uint8]

CASCADE = "haarcascade_frontalface_default.xml"


@dataclass(frozen=True)
class CascadeDetector:
    """The frontal face cascade that OpenCV 4 ships with.

    Attributes
    ----------
    neighbours : int
        How many overlapping hits make a face; fewer find more, and more that is none.
    smallest : float
        Shortest side of a face, as a share of the image's shorter side.

    References
    ----------
    Viola & Jones 2001.
    """

    neighbours: int = 5
    smallest: float = 0.1

    def __call__(self, images: Sequence[Image]) -> Regions:
        """Return the largest face of each image.

        Raises
        ------
        MissingExtraError
            If OpenCV is not installed.
        ModelError
            If it is of version 5 or later, which has no cascades.
        """
        cv2 = _opencv()
        if not hasattr(cv2, "CascadeClassifier"):
            raise ModelError(
                f"OpenCV {cv2.__version__} has no cascade classifier. To do: install a 4.x "
                "(pip install 'opencv-python-headless<5'), or give YuNetDetector a model file"
            )
        cascade = cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / CASCADE))

        def faces(image: Image) -> NDArray[np.float64]:
            grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
            side = max(int(self.smallest * min(grey.shape)), 1)
            found = cascade.detectMultiScale(
                grey, 1.1, minNeighbors=self.neighbours, minSize=(side, side)
            )
            return np.asarray(found, dtype=np.float64).reshape(-1, 4)

        return _largest(images, faces)


@dataclass(frozen=True)
class YuNetDetector:
    """YuNet from an ONNX file of its weights, as OpenCV's model zoo publishes it.

    Attributes
    ----------
    model : Path
        For example face_detection_yunet_2023mar.onnx.
    score : float
        Least confidence of a face, in (0, 1).

    References
    ----------
    Wu, Peng & Yu 2023, Machine Intelligence Research 20.
    """

    model: Path
    score: float = 0.8

    def __call__(self, images: Sequence[Image]) -> Regions:
        """Return the largest face of each image.

        Raises
        ------
        MissingExtraError
            If OpenCV is not installed.
        ModelError
            If the file is not there or is no such model.
        """
        cv2 = _opencv()
        detector = self._opened(cv2)

        def faces(image: Image) -> NDArray[np.float64]:
            detector.setInputSize((image.shape[1], image.shape[0]))
            _, found = detector.detect(np.ascontiguousarray(image[..., ::-1]))
            return np.zeros((0, 4)) if found is None else np.asarray(found, np.float64)[:, :4]

        try:
            return _largest(images, faces)
        except cv2.error as error:
            raise self._wrong(error) from None

    def _opened(self, cv2: Any) -> Any:
        if not Path(self.model).is_file():
            raise ModelError(
                f"{self.model}: no such file; expected the ONNX file of YuNet, as OpenCV's model "
                "zoo publishes it"
            )
        try:
            return cv2.FaceDetectorYN.create(str(self.model), "", (320, 320), self.score)
        except cv2.error as error:
            raise self._wrong(error) from None

    def _wrong(self, error: Exception) -> ModelError:
        first = str(error).strip().splitlines()[0]
        return ModelError(f"{self.model}: OpenCV cannot use it as a YuNet face detector ({first})")


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError("cv2", "explain") from error
    return cv2


def _largest(images: Sequence[Image], faces: Callable[[Image], NDArray[np.float64]]) -> Regions:
    boxes = np.zeros((len(images), 4), dtype=np.int64)
    found = np.zeros(len(images), dtype=bool)
    for place, image in enumerate(images):
        if image.ndim != 3 or image.shape[2] != 3:
            raise InputError(f"image {place} has the shape {image.shape}; expected (h, w, 3)")
        every = faces(image)
        if not len(every):
            continue
        # Equal areas: the upper, then the left one, whatever the order of the hits.
        left, top, width, height = min(
            every.tolist(), key=lambda one: (-one[2] * one[3], one[1], one[0])
        )
        ends = np.rint((left, top, left + width, top + height)).astype(np.int64)
        limit = (image.shape[1], image.shape[0], image.shape[1], image.shape[0])
        ends = np.clip(ends, 0, limit)
        found[place] = bool((ends[2:] - ends[:2]).min() >= 2)
        boxes[place] = ends * found[place]
    return Regions(boxes, found)
