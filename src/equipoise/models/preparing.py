"""Images prepared for a model: on the fast path where that is the library's own, else by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from equipoise.core.errors import InputError, ModelError
from equipoise.models.images import Image, as_rgb, pillow_images
from equipoise.models.pixels import Pixels
from equipoise.models.recipe import Recipe

CHOICES = ("auto", "library")
VERSION = "equipoise 1"
# Of a recipe that enlarges: 1 × 20,000 pixels would become a thousand million.
MOST_PIXELS = 1 << 26
PROBES = ((480, 640), (640, 480), (900, 200), (100, 67), (5, 7), (3, 40), (61, 61))


@dataclass(frozen=True)
class Preparation:
    """From images to the tensors that a model takes.

    Attributes
    ----------
    name : str
        The model, for messages.
    library : callable
        The library's own call: from Pillow images to tensors by name.
    recipe : Recipe or None
        What the library's settings say, where `Recipe` can say it.
    fast : Pixels or None
        The fast path, where it gave what the library gave within one grey level.
    """

    name: str
    library: Callable[[Sequence[Any]], Mapping[str, Any]]
    recipe: Recipe | None = None
    fast: Pixels | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Which of the two runs."""
        return {"prepared_by": "library" if self.fast is None else VERSION}

    def __call__(self, images: Sequence[Any]) -> Mapping[str, Any]:
        """Return tensors by name.

        Parameters
        ----------
        images : sequence
            See `equipoise.models.images.as_rgb`.

        Raises
        ------
        InputError
            If one cannot be prepared, for example because it is too narrow to be resized; the
            message names the first.
        """
        arrays = as_rgb(images)
        self._refuse_narrow(arrays)
        if self.fast is not None:
            return {"pixel_values": self.fast(arrays)}
        try:
            return self.library(pillow_images(arrays))
        except Exception:
            for place, array in enumerate(arrays):
                self._try_alone(array, place)
            raise

    def _refuse_narrow(self, arrays: Sequence[Image]) -> None:
        if self.recipe is None:
            return
        for place, array in enumerate(arrays):
            height, width = self.recipe.resized(*array.shape[:2])
            if height * width > MOST_PIXELS:
                raise InputError(
                    f"{_told(array, place)} cannot be prepared for {self.name}: resized it would "
                    f"be {width:,} × {height:,} pixels. To do: leave it out or crop it."
                )

    def _try_alone(self, array: Image, place: int) -> None:
        try:
            self.library(pillow_images([array]))
        except Exception as error:
            raise InputError(
                f"{_told(array, place)} cannot be prepared for {self.name}: {error}"
            ) from error


def _told(array: Image, place: int) -> str:
    return f"Image {place}, {array.shape[1]} × {array.shape[0]} pixels,"


def stacked(
    transform: Callable[[Any], Any], torch: Any
) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """Return the library's own call, of one that takes an image at a time."""
    return lambda images: {"pixel_values": torch.stack([transform(image) for image in images])}


def preparation(
    name: str,
    library: Callable[[Sequence[Any]], Mapping[str, Any]],
    recipe: Recipe | None,
    torch: Any,
    *,
    choice: str,
) -> Preparation:
    """Choose how images are prepared, once for a loaded model.

    Parameters
    ----------
    name, library, recipe
        As in `Preparation`.
    torch : module
        The library.
    choice : str
        ``auto``, or ``library`` for the library's own call whatever it costs.

    Returns
    -------
    Preparation
        On the fast path if its results for a few images of several forms differ from the library's
        by one grey level at most.

    Raises
    ------
    ModelError
        If there is no such choice.
    """
    if choice not in CHOICES:
        raise ModelError(
            f"There is no preprocessing {choice!r}. To do: choose one of {', '.join(CHOICES)}."
        )
    if choice == "auto" and recipe is not None and recipe.size is not None:
        fast = Pixels(recipe, torch)
        if _agree(fast, library):
            return Preparation(name, library, recipe, fast)
        return Preparation(name, library)
    return Preparation(name, library, recipe)


def _agree(fast: Pixels, library: Callable[[Sequence[Any]], Mapping[str, Any]]) -> bool:
    for image in probes():
        try:
            expected = dict(library(pillow_images([image])))
        except Exception:  # noqa: BLE001 - what cannot be compared is left to the library
            return False
        if expected.keys() != {"pixel_values"}:
            return False
        theirs, ours = np.asarray(expected["pixel_values"]), fast([image]).numpy()
        if theirs.shape != ours.shape:
            return False
        levels = np.abs(ours - theirs) * np.array(fast.recipe.std)[:, None, None]
        if not levels.max() <= 1.001:  # so that NaN disagrees
            return False
    return True


@cache
def probes() -> tuple[Image, ...]:
    """Return images of several forms: random levels, where a resize differs most, and smooth."""
    generator = np.random.default_rng(11)
    noise = [generator.integers(0, 256, (*size, 3), dtype=np.uint8) for size in PROBES]
    rows, columns = np.mgrid[0:300, 0:200]
    ramp = np.stack([rows * 255 // 299, columns * 255 // 199, (rows + columns) % 256], axis=2)
    return (*noise, ramp.astype(np.uint8))
