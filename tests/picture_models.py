"""Small models and pictures for tests of extraction; `python:picture_models:…` names them."""

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from equipoise.models import ModelInfo


def info(name="python:picture_models:means", **more):
    return ModelInfo(name, "means", **({"weights_sha256": "0" * 64, "dimension": 4} | more))


def means(image):
    """The means of the channels and the width: what a test can compute by itself."""
    return [*image.reshape(-1, 3).mean(axis=0).tolist(), float(image.shape[1])]


@dataclass
class Means:
    """Embeds an image as `means`; `act` may raise or change what comes out, image by image."""

    info: ModelInfo = field(default_factory=info)
    act: Callable[[NDArray[np.uint8], list[float]], Any] = lambda _, row: row
    seen: list[int] = field(default_factory=list)

    def embed_images(self, images):
        self.seen.append(len(images))
        rows = [self.act(image, means(image)) for image in images]
        return np.array(rows, dtype=np.float32).reshape(len(images), -1)

    def embed_texts(self, texts):
        rows = [[len(text), ord(text[0]), sum(map(ord, text)), 1] for text in texts]
        return np.array(rows, dtype=np.float32)


def new_means(*, device, dtype):
    return Means()


class Rows(Means):
    """Embeds an image as the means of each of 20 strips, 3 numbers each."""

    def embed_images(self, images):
        rows = [[strip.reshape(-1, 3).mean(axis=0) for strip in np.array_split(image, 20)]
                for image in images]  # fmt: skip
        return np.array(rows, dtype=np.float32).reshape(len(images), -1)


def new_rows(*, device, dtype):
    return Rows(info("python:picture_models:new_rows", dimension=60))


def written(image, kind, **options):
    """The bytes of a picture in a format."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned(orientation):
    """Return the metadata of a camera's orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def write_pictures(folder: Path, n: int, *, size: int = 8) -> None:
    """Write n small PNG files of noise."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for place in range(n):
        pixels = rng.integers(0, 256, (size, size + place % 3, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{place:05d}.png")


class Nodes:
    """Answers where it is: the node of the cluster, whatever the question."""

    info = info("python:picture_models:nodes", dimension=None)

    def answer(self, images, question):
        import ray

        time.sleep(0.2)
        return [ray.get_runtime_context().get_node_id()] * len(images)


def nodes(*, device, dtype):
    """Make a model that answers with its node."""
    return Nodes()


class Letters:
    """Answers with a letter of an option, by the picture."""

    info = info("python:picture_models:letters", dimension=None)

    def answer(self, images, question):
        return ["AB"[int(image.sum()) % 2] for image in images]


def letters(*, device, dtype):
    """Make a model that answers with a letter."""
    return Letters()
