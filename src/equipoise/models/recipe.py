"""How an image becomes the numbers that a model sees, as the libraries write it in settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    resize: int | tuple[int, int]
    mode: str
    crop: tuple[int, int] | None
    rounds: bool
    pillow: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of what a model sees; None where they depend on the image."""
        return self.crop or (None if isinstance(self.resize, int) else self.resize)

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to which an image is resized."""
        if not isinstance(self.resize, int):
            return self.resize
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)

    def corner(self, height: int, width: int) -> tuple[int, int]:
        """Return the first row and column that are kept of a resized image."""
        if self.crop is None:
            return 0, 0
        spare = height - self.crop[0], width - self.crop[1]
        if self.rounds:
            return round(spare[0] / 2), round(spare[1] / 2)
        return spare[0] // 2, spare[1] // 2


def of_transformers(settings: Mapping[str, Any], backend: str) -> Recipe | None:
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
    mode = PILLOW_MODES.get(settings.get("resample", -1))
    if not steps <= KNOWN_STEPS or "do_resize" not in steps or mode is None:
        return None
    resize = _sides(settings.get("size"), square=False)
    crop = _sides(settings.get("crop_size"), square=True) if "do_center_crop" in steps else None
    if isinstance(crop, int) or ("do_center_crop" in steps and crop is None):
        return None
    if isinstance(resize, int) and settings.get("crop_pct"):  # ConvNeXt's own rule
        side = resize
        resize, crop = (
            ((side, side), None)
            if side >= 384
            else (int(side / settings["crop_pct"]), (side, side))
        )
    factor = settings.get("rescale_factor") if "do_rescale" in steps else 1.0
    normal = "do_normalize" in steps
    mean = settings.get("image_mean") if normal else (0.0, 0.0, 0.0)
    std = settings.get("image_std") if normal else (1.0, 1.0, 1.0)
    if resize is None or not factor:
        return None
    scale = _scale(mean, std, float(factor))
    return _checked(resize, mode, crop, scale, rounds=False, pillow=backend != "torchvision")


def of_open_clip(settings: Mapping[str, Any]) -> Recipe | None:
    """Read the `preprocess_cfg` of a model of open_clip; None where it says something else."""
    size, how = _pair(settings.get("size")), settings.get("resize_mode")
    if size is None or how not in {"shortest", "squash"} or settings.get("mode") != "RGB":
        return None
    if how == "shortest" and size[0] != size[1]:
        return None
    resize, crop = (size[0], size) if how == "shortest" else (size, None)
    scale = _scale(settings.get("mean"), settings.get("std"), 1 / 255)
    mode = str(settings.get("interpolation"))
    return _checked(resize, mode, crop, scale, rounds=True, pillow=True)


def of_timm(settings: Mapping[str, Any]) -> Recipe | None:
    """Read what `resolve_model_data_config` tells of a model; None where it says something else."""
    channels, *sides = settings.get("input_size") or (0,)
    size, share = _pair(sides), settings.get("crop_pct") or 0.875
    how = settings.get("crop_mode") or "center"
    if channels != 3 or size is None or how not in {"center", "squash"}:
        return None
    large = (math.floor(size[0] / share), math.floor(size[1] / share))
    if how == "center" and large[0] != large[1]:
        return None
    scale = _scale(settings.get("mean"), settings.get("std"), 1 / 255)
    resize = large[0] if how == "center" else large
    mode = str(settings.get("interpolation"))
    return _checked(resize, mode, size, scale, rounds=True, pillow=True)


def _sides(size: Any, *, square: bool) -> int | tuple[int, int] | None:
    """Sides of transformers: a number, a shorter side, or a height and a width."""
    if isinstance(size, int):
        return (size, size) if square else size
    told = {key: value for key, value in (size or {}).items() if value is not None}
    if told.keys() == {"shortest_edge"}:
        return int(told["shortest_edge"])
    if told.keys() == {"height", "width"}:
        return int(told["height"]), int(told["width"])
    return None


def _pair(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return size, size
    return (int(size[0]), int(size[1])) if size is not None and len(size) == 2 else None


Levels = tuple[tuple[float, ...], tuple[float, ...]]


def _checked(
    resize: int | tuple[int, int],
    mode: str,
    crop: tuple[int, int] | None,
    scale: Levels | None,
    *,
    rounds: bool,
    pillow: bool,
) -> Recipe | None:
    if mode not in {"bicubic", "bilinear"} or scale is None:
        return None
    smallest = (resize, resize) if isinstance(resize, int) else resize
    # A larger centre than there is would be filled up at its borders.
    if crop is not None and (crop[0] > smallest[0] or crop[1] > smallest[1]):
        return None
    return Recipe(resize, mode, crop, rounds, pillow, *scale)


def _scale(mean: Any, std: Any, factor: float) -> Levels | None:
    """Mean and standard deviation in grey levels, of numbers that were multiplied by a factor."""
    both = _channels(mean), _channels(std)
    if both[0] is None or both[1] is None or 0.0 in both[1]:
        return None
    return tuple(value / factor for value in both[0]), tuple(value / factor for value in both[1])


def _channels(values: Any) -> tuple[float, ...] | None:
    """Three numbers, one for each of red, green and blue."""
    if isinstance(values, int | float):
        values = (values,) * 3
    if not isinstance(values, Sequence) or len(values) != 3:
        return None
    return tuple(float(value) for value in values)
