"""Classifiers by name, untrained: two small ones of our own, and those of torchvision and timm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core.errors import InputError, MissingExtraError, ModelError

SMALL = ("cnn", "vit")
_WIDTH, _DEPTH, _HEADS = 64, 3, 4
_ACROSS, _PATCH = 8, 5
"""Patches of a ViT beside one another, and their side where these do not divide an image."""


def network(name: str, classes: int, size: int, *, seed: int) -> Any:
    """Return an untrained classifier.

    Parameters
    ----------
    name : str
        "cnn" or "vit", which train in seconds on a CPU; "torchvision:resnet18",
        "timm:vit_tiny_patch16_224" and the like.
    classes : int
    size : int
        Side of the images in pixels.
    seed : int
        Of the first weights.

    Returns
    -------
    torch.nn.Module
        From (n, 3, size, size) floats to (n, classes), or to what has them as `logits`.

    Raises
    ------
    MissingExtraError
        If the library that has it is not installed.
    ModelError
        If no library has a network of this name, or it cannot take images of this size.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "hf") from error
    before = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        return _built(name, classes, size)
    finally:
        torch.set_rng_state(before)


def check_networks(names: Sequence[str], size: int) -> None:
    """Make each network once, so that one that cannot be is told before another is trained.

    Raises
    ------
    MissingExtraError, InputError, ModelError
        As `network`.
    """
    for name in names:
        network(name, 2, size, seed=0)


def _built(name: str, classes: int, size: int) -> Any:
    if name == "cnn":
        return _cnn(classes)
    if name == "vit":
        if size % _ACROSS and size % _PATCH:
            raise ModelError(
                f"vit: images of {size} pixels; expected a multiple of {_ACROSS} or of {_PATCH}"
            )
        return _vit(classes, size)
    library, _, rest = name.partition(":")
    if library == "torchvision" and rest:
        return _of_torchvision(rest, classes, size)
    if library == "timm" and rest:
        return _of_timm(rest, classes, size)
    raise InputError(
        f"no network is called {name!r}; expected {', '.join(SMALL)}, torchvision:NAME or timm:NAME"
    )


def _cnn(classes: int) -> Any:
    from torch import nn

    def block(given: int, made: int) -> list[Any]:
        return [nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU()]

    return nn.Sequential(
        *block(3, 16), nn.MaxPool2d(2), *block(16, 32), nn.MaxPool2d(2), *block(32, 48),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(48, classes),
    )  # fmt: skip


def _vit(classes: int, size: int) -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=_WIDTH,
        num_hidden_layers=_DEPTH,
        num_attention_heads=_HEADS,
        intermediate_size=2 * _WIDTH,
        image_size=size,
        patch_size=_PATCH if size % _ACROSS else size // _ACROSS,
        num_labels=classes,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return ViTForImageClassification(config)


def _of_torchvision(name: str, classes: int, size: int) -> Any:
    try:
        from torchvision.models import get_model, list_models  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("torchvision", "timm") from error
    if name not in list_models():
        raise ModelError(f"torchvision has no network called {name!r}")
    given = {"image_size": size} if name.startswith("vit") else {}
    if name.startswith(("inception", "googlenet")):
        given |= {"aux_logits": False, "init_weights": True}
    return get_model(name, weights=None, num_classes=classes, **given)


def _of_timm(name: str, classes: int, size: int) -> Any:
    try:
        import timm
    except ImportError as error:
        raise MissingExtraError("timm", "timm") from error
    if not timm.is_model(name):
        raise ModelError(f"timm has no network called {name!r}")
    try:
        return timm.create_model(name, pretrained=False, num_classes=classes, img_size=size)
    except TypeError:
        # Networks of convolutions take any size, and no argument for it.
        return timm.create_model(name, pretrained=False, num_classes=classes)
