"""Classifiers by name, trained epoch by epoch, so that a killed training resumes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from equipoise import __version__
from equipoise.audits.config_fields import Section
from equipoise.core import AnyArray, Bytes, Floats32, InputError, Integers, ModelError
from equipoise.mitigate.augmentation.faces import Faces, PlainFaces
from equipoise.mitigate.recipe import digest_of_images, read_state, save_state
from equipoise.models import runtimes
from equipoise.models.towers import last_linear, seen_by
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from torch.nn import Module

# Patches of a ViT beside one another, and their side where these do not divide an image.
_ACROSS, _PATCH = 8, 5
_AT_ONCE = 256


def network(name: str, classes: int, size: int, *, seed: int) -> "Module":
    """Return an untrained classifier.

    Parameters
    ----------
    name : str
        "cnn" or "vit", which train in seconds on a CPU; "timm:resnet18" and the like.
    classes : int
    size : int
        Side of the images in pixels.
    seed : int
        Of the first weights.

    Returns
    -------
    torch.nn.Module
        From (n, 3, size, size) floats to (n, classes), or to an output with `logits`.

    Raises
    ------
    MissingExtraError
        If its library is not installed.
    InputError, ModelError
        If no library has a network of this name, or it cannot take images of this size.
    """
    torch = runtimes.torch("hf")
    library, _, rest = name.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "cnn":
            return _cnn(classes)
        if name == "vit":
            return _vit(classes, size)
        if library != "timm" or not rest:
            raise InputError(f"no network is called {name!r}; expected cnn, vit or timm:NAME")
        timm = runtimes.timm()
        if not timm.is_model(rest):
            raise ModelError(f"timm has no network called {rest!r}")
        try:
            return timm.create_model(rest, num_classes=classes, img_size=size)
        except TypeError:
            # Networks of convolutions take any size, and no argument for it.
            return timm.create_model(rest, num_classes=classes)


def check_networks(names: Sequence[str], size: int) -> None:
    """Build each network once, so that an error comes before any training.

    Raises
    ------
    MissingExtraError, InputError, ModelError
        As `network`.
    """
    for name in names:
        network(name, 2, size, seed=0)


def _cnn(classes: int) -> Any:
    from torch import nn

    def block(channels: int, made: int) -> list[Any]:
        return [nn.Conv2d(channels, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU()]

    return nn.Sequential(
        *block(3, 16), nn.MaxPool2d(2), *block(16, 32), nn.MaxPool2d(2), *block(32, 48),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(48, classes),
    )  # fmt: skip


def _vit(classes: int, size: int) -> Any:
    if size % _ACROSS and size % _PATCH:
        raise ModelError(
            f"vit: images of {size} pixels; expected a multiple of {_ACROSS} or of {_PATCH}"
        )
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128,
        image_size=size, patch_size=_PATCH if size % _ACROSS else size // _ACROSS,
        num_labels=classes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return ViTForImageClassification(config)


class Schedule(Section):
    """Settings of a training.

    Attributes
    ----------
    epochs, batch : int
    learning_rate, weight_decay : float
        Of AdamW; the rate falls to 0 along a cosine after a tenth of the steps.
    """

    epochs: PositiveInt = 10
    batch: Annotated[int, Field(ge=2)] = 64
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.01


@dataclass(frozen=True)
class Job:
    """One training.

    Attributes
    ----------
    name : str
        Of the network.
    classes : tuple of str
        Names in the order of its outputs.
    seed : int
        Of the first weights and the order of images.
    schedule : Schedule
    """

    name: str
    classes: tuple[str, ...]
    seed: int
    schedule: Schedule


def class_codes(classes: Sequence[str], labels: AnyArray) -> Integers:
    """Return the place of each label among the classes."""
    return np.array([classes.index(str(label)) for label in labels], dtype=np.int64)


def digest_of(biased: Faces, balanced: Faces, seed: int) -> str:
    """Return a digest of the images, seed and libraries of an experiment, for its states."""
    facts = [seed, __version__, str(runtimes.torch("hf").__version__)]
    for faces in (biased, balanced):
        columns = faces.labels, faces.groups, faces.regions.boxes, faces.regions.found
        facts.append(digest_of_images(faces.images, *columns))
    return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def train(job: Job, data: PlainFaces, checkpoint: Path) -> "Module":
    """Return a trained network; an existing checkpoint is resumed.

    Parameters
    ----------
    job : Job
    data : PlainFaces
        Images and labels; its `epoch` is set.
    checkpoint : Path
        File of the state, written after every epoch.

    Returns
    -------
    torch.nn.Module
        The same weights on a CPU whether it was interrupted or not.

    Raises
    ------
    ModelError
        When the loss is no number.
    RunError
        When the checkpoint is of another training.
    """
    torch, schedule = runtimes.torch("hf"), job.schedule
    size = np.asarray(data.faces.images[0]).shape[0]
    module = network(job.name, len(job.classes), size, seed=job.seed).train()
    steps = -(-len(data) // schedule.batch) * schedule.epochs
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    parts = {"module": module, "optimizer": optimizer, "rate": rate}
    targets = torch.from_numpy(class_codes(job.classes, data.faces.labels))
    known = read_state(checkpoint, repr(job))
    if known is not None:
        for name, part in parts.items():
            part.load_state_dict(known[name])
    for epoch in range(0 if known is None else known["epochs"], schedule.epochs):
        data.epoch = epoch
        # The network's own draws (dropout) follow from the seed and the epoch, too.
        torch.manual_seed(1_000_003 * job.seed + epoch)
        order = stream(job.seed, "order", epoch).permutation(len(data))
        for start in range(0, len(order), schedule.batch):
            rows = order[start : start + schedule.batch]
            # Batch normalisation knows no batch of one.
            if len(rows) > 1:
                logits = _logits(module, [data.changed(row) for row in rows.tolist()])
                loss = torch.nn.functional.cross_entropy(logits, targets[rows])
                if not torch.isfinite(loss):
                    raise ModelError("the loss is no number. To do: lower the learning rate")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            rate.step()
        state = {name: part.state_dict() for name, part in parts.items()}
        save_state(checkpoint, repr(job), {"epochs": epoch + 1, **state})
    return module.eval()


def _rate(step: int, steps: int) -> float:
    """Return the share of the learning rate in a step."""
    warm = max(steps // 10, 1)
    if step < warm:
        return (step + 1) / warm
    return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(steps - warm, 1))))


def _logits(module: Any, images: Sequence[Bytes]) -> Any:
    """Return logits of images of one size, also of networks that return them with other things."""
    floats = np.stack(images).astype(np.float32) / 127.5 - 1.0
    output = module(
        runtimes.torch("hf").from_numpy(np.ascontiguousarray(floats.transpose(0, 3, 1, 2)))
    )
    return getattr(output, "logits", output)


def predict(module: "Module", images: Sequence[Bytes]) -> tuple[Integers, Floats32]:
    """Run a trained network over images of one size.

    Returns
    -------
    codes : ndarray of int64, shape (n,)
        Place of the class that it gives.
    features : ndarray of float32, shape (n, dimension)
        Input of its last layer.
    """
    torch = runtimes.torch("hf")
    last = last_linear(torch, module)
    codes, features = [], []
    with torch.inference_mode():
        for start in range(0, len(images), _AT_ONCE):
            some = images[start : start + _AT_ONCE]
            logits, seen = seen_by(last, partial(_logits, module, some))
            codes.append(logits.argmax(dim=1).numpy())
            features.append(seen.numpy())
    return np.concatenate(codes), np.concatenate(features)
