"""Images of any size to what a model sees, by torch's resizing of 8-bit levels."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.images import Image
from equipoise.models.recipe import Recipe

# Below, bicubic resizing of random levels differs by two from Pillow's at a pixel in a million.
SHRINKS = 1.5


@dataclass(frozen=True)
class Pixels:
    """A recipe, carried out.

    torch resizes levels of 8 bits as they lie in an array, several times as fast as Pillow. What
    torchvision resizes comes out the same, bit for bit. Pillow's is met within one grey level where
    the image shrinks enough; where it does not, or where Pillow may resize the columns first (as it
    does since its version 13, of an image that loses much more height than width), Pillow resizes.
    Each image is one thread's work: the kernel has no threads of its own, and the rest is numpy's.

    Attributes
    ----------
    recipe : Recipe
        With a `size`: all images become equally large.
    torch : module
        The library.
    """

    recipe: Recipe
    torch: Any

    def __call__(self, images: Sequence[Image]) -> Any:
        """Return a tensor of float32, (n, 3, height, width).

        Parameters
        ----------
        images : sequence of n ndarray of uint8, (height, width, 3), contiguous
        """
        found = np.empty((len(images), 3, *(self.recipe.size or (0, 0))), dtype=np.float32)
        places = range(len(images))
        threads = min(self.torch.get_num_threads(), len(images))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                for _ in pool.map(lambda place: self._write(images[place], found[place]), places):
                    pass
        else:
            for place in places:
                self._write(images[place], found[place])
        return self.torch.from_numpy(found)

    def _write(self, image: Image, target: NDArray[np.float32]) -> None:
        """Write one image, resized, cut and put on its scale, into its place of the batch."""
        resized = self._resized(image)
        top, left = self.recipe.corner(*resized.shape[:2])
        height, width = target.shape[1:]
        kept = resized[top : top + height, left : left + width]
        np.copyto(target, kept.transpose(2, 0, 1))
        np.subtract(target, _column(self.recipe.mean), out=target)
        np.divide(target, _column(self.recipe.std), out=target)

    def _resized(self, image: Image) -> Image:
        wanted = self.recipe.resized(*image.shape[:2])
        if wanted == image.shape[:2]:
            return image
        if self.recipe.pillow and not _near_pillow(image.shape[:2], wanted):
            return _by_pillow(image, wanted, self.recipe.mode)
        # torch warns of an array that it could write to by mistake.
        given = self.torch.from_numpy(image if image.flags.writeable else image.copy())
        found = self.torch.nn.functional.interpolate(
            given.permute(2, 0, 1)[None], size=wanted, mode=self.recipe.mode, antialias=True
        )
        return np.asarray(found[0].permute(1, 2, 0).numpy(), dtype=np.uint8)


def _near_pillow(given: tuple[int, ...], wanted: tuple[int, int]) -> bool:
    """Whether torch's levels differ by one from Pillow's at most, whatever the image shows."""
    height, width = given[0] - wanted[0], given[1] - wanted[1]
    shrinks = all(g >= SHRINKS * w for g, w in zip(given, wanted, strict=True))
    return shrinks and height <= 2 * width


def _by_pillow(image: Image, wanted: tuple[int, int], mode: str) -> Image:
    from PIL import Image as pillow  # noqa: N813

    how = pillow.Resampling[mode.upper()]
    return np.asarray(pillow.fromarray(image).resize(wanted[::-1], how), dtype=np.uint8)


def _column(values: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)[:, None, None]
