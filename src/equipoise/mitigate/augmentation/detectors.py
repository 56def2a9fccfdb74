"""Face detectors of OpenCV: the cascade that it ships with, or YuNet from a file of its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Floats
from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.mitigate.augmentation.faces import Image, Regions

_CASCADE = "haarcascade_frontalface_default.xml"


@dataclass(frozen=True)
class CascadeDetector:
    """The frontal face cascade that OpenCV 4 ships with.

    Attributes
    ----------
    neighbours : int
        Overlapping hits that make a face; fewer find more faces, and more false ones.
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
        cascade = cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / _CASCADE))

        def faces(image: Image) -> Any:
            grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
            side = max(int(self.smallest * min(grey.shape)), 1)
            return cascade.detectMultiScale(
                grey, 1.1, minNeighbors=self.neighbours, minSize=(side, side)
            )

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
        if not Path(self.model).is_file():
            raise ModelError(
                f"{self.model}: no such file; expected the ONNX file of YuNet, as OpenCV's model "
                "zoo publishes it"
            )
        try:
            detector = cv2.FaceDetectorYN.create(str(self.model), "", (320, 320), self.score)

            def faces(image: Image) -> Any:
                detector.setInputSize((image.shape[1], image.shape[0]))
                _, found = detector.detect(np.ascontiguousarray(image[..., ::-1]))
                return () if found is None else found[:, :4]

            return _largest(images, faces)
        except cv2.error as error:
            first = str(error).strip().splitlines()[0]
            raise ModelError(
                f"{self.model}: OpenCV cannot use it as a YuNet face detector ({first})"
            ) from None


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError("cv2", "explain") from error
    return cv2


def _largest(images: Sequence[Image], faces: Callable[[Image], Any]) -> Regions:
    ends: Floats = np.zeros((len(images), 4))
    for place, image in enumerate(images):
        boxes = np.asarray(faces(image), dtype=np.float64).reshape(-1, 4)
        if len(boxes):
            left, top, width, height = boxes.T
            # Equal areas: the upper, then the left one, whatever the order of the hits.
            best = np.lexsort((left, top, -width * height))[0]
            ends[place] = np.concatenate([boxes[best, :2], boxes[best, :2] + boxes[best, 2:]])
    return Regions.of(ends, [image.shape[:2] for image in images])
