"""Image preparation: a library's own steps, and a faster equivalent."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import numpy as np

from equipoise.core import Floats32, InputError
from equipoise.models.images import Image, Images, as_rgb, pillow_images

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from torch import Tensor

Sides = tuple[int, int]
"""Height and width."""

Settings = ParamSpec("Settings")

Library = Callable[[Images], Mapping[str, Any]]
"""A library's own call: from Pillow images to tensors by name."""

PILLOW_MODES = {2: "bilinear", 3: "bicubic"}
KNOWN_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}


@dataclass(frozen=True)
class Recipe:
    """Resized, cut to its centre, put on a scale.

    Attributes
    ----------
    resize : int or (int, int)
        Pixels of the shorter side, the longer one in proportion; or height and width.
    mode : str
        ``bicubic`` or ``bilinear``, with antialiasing.
    crop : (int, int) or None
        Height and width of the centre that is kept.
    rounds : bool
        Whether half a pixel beside the centre is rounded (to even), or cut off.
    pillow : bool
        Whether the library resizes with Pillow; torchvision resizes as torch does.
    mean, std : tuple of 3 float
        In grey levels: what a model sees is (level - mean) / std.
    """

    resize: int | Sides
    mode: str
    crop: Sides | None
    rounds: bool
    pillow: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def size(self) -> Sides | None:
        """Height and width of the model's input; None if they depend on the image."""
        return self.crop or (None if isinstance(self.resize, int) else self.resize)

    def resized(self, height: int, width: int) -> Sides:
        """Return the height and width to which an image is resized."""
        if not isinstance(self.resize, int):
            return self.resize
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)

    def corner(self, height: int, width: int) -> Sides:
        """Return the first row and column that are kept of a resized image."""
        if self.crop is None:
            return 0, 0
        cut = round if self.rounds else math.floor
        return cut((height - self.crop[0]) / 2), cut((width - self.crop[1]) / 2)


class Scale(NamedTuple):
    """The scale that pixels are put on.

    Attributes
    ----------
    mean, std : float or sequence of 3 float
    factor : float
        Grey levels are multiplied by it, before `mean` and `std`.
    """

    mean: Any
    std: Any
    factor: float


def _readable(read: Callable[Settings, Recipe]) -> Callable[Settings, Recipe | None]:
    """Make a reader of settings return None if `Recipe` can't express them."""

    @wraps(read)
    def found(*settings: Settings.args, **named: Settings.kwargs) -> Recipe | None:
        try:
            return read(*settings, **named)
        except (LookupError, TypeError, ValueError):
            return None

    return found


@_readable
def read_transformers(settings: Mapping[str, Any], backend: str) -> Recipe:
    """Read the settings of an image processor of transformers.

    Parameters
    ----------
    settings : mapping
        What `to_json_string` tells.
    backend : str
        ``torchvision`` or ``pil``.

    Returns
    -------
    Recipe or None
        None where they say something that `Recipe` does not.
    """
    steps = {key for key, value in settings.items() if key.startswith("do_") and value}
    if not {"do_resize"} <= steps <= KNOWN_STEPS:
        raise ValueError(f"steps {steps}")
    resize = _sides(settings["size"])
    crop = _pair(_sides(settings["crop_size"])) if "do_center_crop" in steps else None
    if isinstance(resize, int) and settings.get("crop_pct"):  # ConvNeXt's own rule
        sides = resize, resize
        if resize >= 384:
            resize, crop = sides, None
        else:
            resize, crop = int(resize / settings["crop_pct"]), sides
    factor = settings["rescale_factor"] if "do_rescale" in steps else 1.0
    normal = "do_normalize" in steps
    mean, std = (settings["image_mean"], settings["image_std"]) if normal else (0.0, 1.0)
    scale, pillow = Scale(mean, std, float(factor)), backend != "torchvision"
    return _recipe(resize, PILLOW_MODES[settings["resample"]], crop, scale, pillow=pillow)


@_readable
def read_open_clip(settings: Mapping[str, Any]) -> Recipe:
    """Read open_clip's `preprocess_cfg`; None if `Recipe` can't express it."""
    size, shortest = _pair(settings["size"]), {"shortest": True, "squash": False}
    if settings["mode"] != "RGB":
        raise ValueError(f"mode {settings['mode']}")
    return _centre(size, size, settings, shorter=shortest[settings["resize_mode"]])


@_readable
def read_timm(settings: Mapping[str, Any]) -> Recipe:
    """Read timm's `resolve_model_data_config`; None if `Recipe` can't express it."""
    channels, *sides = settings["input_size"]
    if channels != 3:
        raise ValueError(f"{channels} channels")
    height, width = size = _pair(sides)
    share, centre = settings.get("crop_pct") or 0.875, {"center": True, "squash": False}
    large = math.floor(height / share), math.floor(width / share)
    return _centre(large, size, settings, shorter=centre[settings.get("crop_mode") or "center"])


@_readable
def read_torchvision(
    resize: int | Sides, crop: Sides | None, interpolation: str, scale: Scale
) -> Recipe:
    """Return torchvision's Resize, CenterCrop, ToTensor and Normalize.

    Parameters
    ----------
    resize, crop
        As in `Recipe`.
    interpolation : str
        ``bicubic`` or ``bilinear``.
    scale : Scale
    """
    return _recipe(resize, interpolation, crop, scale, rounds=True)


def _centre(large: Sides, size: Sides, settings: Mapping[str, Any], *, shorter: bool) -> Recipe:
    """Return the recipe that resizes images and keeps a centre."""
    if shorter and large[0] != large[1]:
        raise ValueError(f"a shorter side of {large}")
    scale = Scale(settings["mean"], settings["std"], 1 / 255)
    resize = large[0] if shorter else large
    return _recipe(resize, settings["interpolation"], size, scale, rounds=True)


def _sides(size: Any) -> int | Sides:
    """Sides of transformers: a number, a shorter side, or a height and a width."""
    if isinstance(size, int):
        return size
    sides = {key: int(value) for key, value in dict(size).items() if value is not None}
    if sides.keys() == {"shortest_edge"}:
        return sides["shortest_edge"]
    if sides.keys() == {"height", "width"}:
        return sides["height"], sides["width"]
    raise ValueError(f"sides {size}")


def _pair(size: Any) -> Sides:
    height, width = (size, size) if isinstance(size, int) else size
    return int(height), int(width)


def _recipe(
    resize: int | Sides,
    mode: str,
    crop: Sides | None,
    scale: Scale,
    *,
    rounds: bool = False,
    pillow: bool = True,
) -> Recipe:
    levels = [
        np.broadcast_to(np.array(values, np.float64) / scale.factor, 3)
        for values in (scale.mean, scale.std)
    ]
    if (
        mode not in PILLOW_MODES.values()
        or not (np.isfinite(levels).all() and levels[1].all())
        # A larger centre than there is would be filled up at its borders.
        or np.greater(crop or 0, resize).any()
    ):
        raise ValueError(f"{mode}, {levels}, the centre {crop} of {resize}")
    mean, std = (tuple(level.tolist()) for level in levels)
    return Recipe(resize, mode, crop, rounds, pillow, mean, std)


def _write_pixels(recipe: Recipe, resized: Image, target: Floats32) -> None:
    """Write a resized image, cut and put on its scale, into its place of a batch."""
    top, left = recipe.corner(*resized.shape[:2])
    height, width = target.shape[1:]
    np.copyto(target, resized[top : top + height, left : left + width].transpose(2, 0, 1))
    mean, std = np.array([recipe.mean, recipe.std], dtype=np.float32)[..., None, None]
    np.subtract(target, mean, out=target)
    np.divide(target, std, out=target)


def _resized_by_pillow(picture: "PillowImage", sides: Sides, mode: str) -> Image:
    from PIL import Image as pillow  # noqa: N813

    resampling = pillow.Resampling[mode.upper()]
    return np.asarray(picture.resize(sides[::-1], resampling), dtype=np.uint8)


@dataclass(frozen=True)
class PillowPixels:
    """A recipe, carried out by Pillow and numpy: a `Library` that needs no torch.

    Attributes
    ----------
    recipe : Recipe
        With a `size`.
    """

    recipe: Recipe

    def __call__(self, pictures: Images) -> dict[str, Floats32]:
        """Return `pixel_values` of Pillow images, float32 (n, 3, height, width)."""
        pixels = np.empty((len(pictures), 3, *(self.recipe.size or (0, 0))), dtype=np.float32)
        for picture, target in zip(pictures, pixels, strict=True):
            sides = self.recipe.resized(picture.height, picture.width)
            _write_pixels(self.recipe, _resized_by_pillow(picture, sides, self.recipe.mode), target)
        return {"pixel_values": pixels}


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

    def __call__(self, images: Sequence[Image]) -> "Tensor":
        """Return a tensor of float32, (n, 3, height, width).

        Parameters
        ----------
        images : sequence of n ndarray of uint8, (height, width, 3), contiguous
        """
        pixels = np.empty((len(images), 3, *(self.recipe.size or (0, 0))), dtype=np.float32)
        threads = min(self.torch.get_num_threads(), len(images))
        with ThreadPoolExecutor(threads or 1) as pool:
            [*(pool.map if threads > 1 else map)(self._write, images, pixels)]
        return self.torch.from_numpy(pixels)

    def _write(self, image: Image, target: Floats32) -> None:
        """Write a prepared image into its place of the batch."""
        _write_pixels(self.recipe, self._resized(image), target)

    def _resized(self, image: Image) -> Image:
        target_sides = self.recipe.resized(*image.shape[:2])
        if target_sides == image.shape[:2]:
            return image
        height, width = (
            before - after for before, after in zip(image.shape, target_sides, strict=False)
        )
        # Torch's levels differ by one from Pillow's at most, whatever the image shows.
        shrinks_enough = (
            min(image.shape[0] / target_sides[0], image.shape[1] / target_sides[1]) >= SHRINKS
        )
        if self.recipe.pillow and not (shrinks_enough and height <= 2 * width):
            from PIL import Image as pillow  # noqa: N813

            return _resized_by_pillow(pillow.fromarray(image), target_sides, self.recipe.mode)
        # torch warns of an array that it could write to by mistake.
        tensor = self.torch.from_numpy(image if image.flags.writeable else image.copy())
        resized = self.torch.nn.functional.interpolate(
            tensor.permute(2, 0, 1)[None], size=target_sides, mode=self.recipe.mode, antialias=True
        )
        return np.asarray(resized[0].permute(1, 2, 0).numpy(), dtype=np.uint8)


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
    library : Library
    recipe : Recipe or None
        What the library's settings say, where `Recipe` can say it.
    fast : Pixels or None
        The fast path, where it gave what the library gave within one grey level.
    """

    name: str
    library: Library
    recipe: Recipe | None = None
    fast: Pixels | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Which of the two runs."""
        return {"prepared_by": "library" if self.fast is None else VERSION}

    def __call__(self, images: Images) -> Mapping[str, "Tensor"]:
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
        for place, array in enumerate(arrays):
            height, width = self.recipe.resized(*array.shape[:2]) if self.recipe else (0, 0)
            if height * width > MOST_PIXELS:
                raise self._refused(array, place, f"resized it would be {width:,} × {height:,}")
        if self.fast is not None:
            return {"pixel_values": self.fast(arrays)}
        try:
            return self.library(pillow_images(arrays))
        except Exception:
            for place, array in enumerate(arrays):
                try:
                    self.library(pillow_images([array]))
                except Exception as error:
                    raise self._refused(array, place, str(error)) from error
            raise

    def _refused(self, array: Image, place: int, reason: str) -> InputError:
        return InputError(
            f"Image {place}, {array.shape[1]} × {array.shape[0]} pixels, cannot be prepared for "
            f"{self.name}: {reason}. To do: leave it out or crop it."
        )


def stack_images(transform: Callable[[Any], Any], torch: ModuleType) -> Library:
    """Return a call that prepares images one at a time and stacks them."""
    return lambda images: {"pixel_values": torch.stack([transform(image) for image in images])}


def preparation(
    name: str,
    library: Library,
    recipe: Recipe | None,
    torch: ModuleType,
) -> Preparation:
    """Choose a model's image preparation, once after loading.

    Parameters
    ----------
    name, library, recipe
        As in `Preparation`.
    torch : module
        The library.

    Returns
    -------
    Preparation
        On the fast path if its results for a few images of several forms differ from the library's
        by one grey level at most.
    """
    if recipe is None or recipe.size is None:
        return Preparation(name, library, recipe)
    fast = Pixels(recipe, torch)
    agree = _agree(fast, library)
    return Preparation(name, library, recipe, fast) if agree else Preparation(name, library)


def _agree(fast: Pixels, library: Library) -> bool:
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
    """Return test images of several shapes: random levels and a smooth ramp."""
    generator = np.random.default_rng(11)
    noise = [generator.integers(0, 256, (*size, 3), dtype=np.uint8) for size in PROBES]
    rows, columns = np.mgrid[0:300, 0:200]
    ramp = np.stack([rows * 255 // 299, columns * 255 // 199, (rows + columns) % 256], axis=2)
    return (*noise, ramp.astype(np.uint8))
