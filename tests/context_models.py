"""Models that look at the context of an object, and probes of media, for tests of causes."""

from dataclasses import dataclass, field

import numpy as np

from equipoise.models import ModelInfo

SIDE = 16
BOX = (4, 4, 12, 12)
"""Left, top, right and bottom of the object in every picture."""
MEDIA = ("photograph", "painting", "drawing")


def picture(rng, *, cup, faint, context, medium=0):
    """A red or blue object on grey; cups are often on a green table; a pixel says the medium."""
    pixels = rng.integers(90, 110, (SIDE, SIDE, 3)).astype(np.uint8)
    if context:
        pixels[-3:, :, 1] = 230
    left, top, right, bottom = BOX
    if not faint:
        pixels[top:bottom, left:right] = (230, 20, 20) if cup else (20, 20, 230)
    pixels[0, 0] = 80 * medium
    return pixels


def info(name, **more):
    return ModelInfo(f"python:context_models:{name}", "context", weights_sha256="0" * 64, **more)


@dataclass
class Glancer:
    """Calls a picture a cup where it sees red, or else a green table."""

    info: ModelInfo = field(default_factory=lambda: info("glancer"))
    labels: tuple = ("bowl", "cup")

    def predict_proba(self, images):
        return np.array([self.look(np.asarray(image, dtype=float)) for image in images], np.float32)

    def look(self, image):
        left, top, right, bottom = BOX
        red, _, blue = image[top:bottom, left:right].mean(axis=(0, 1))
        table = image[-2:, :, 1].mean() > 170
        cup = red > blue + 50 or (table and not blue > red + 50)
        return [0.1, 0.9] if cup else [0.9, 0.1]

    def features(self, images):
        return np.array([[*np.mean(image, axis=(0, 1)), 1.0] for image in images], np.float32)


def glancer(*, device, dtype):
    return Glancer()


@dataclass
class MediumProbe:
    """Reads the medium from the first pixel."""

    info: ModelInfo = field(default_factory=lambda: info("medium_probe", dimension=4, scale=10.0))

    def embed_images(self, images):
        place = [round(float(np.asarray(image)[0, 0, 0]) / 80) for image in images]
        return np.eye(4, dtype=np.float32)[place]

    def embed_texts(self, texts):
        place = [next((i for i, medium in enumerate(MEDIA) if medium in text), 3) for text in texts]
        return np.eye(4, dtype=np.float32)[place]


def medium_probe(*, device, dtype):
    return MediumProbe()
