"""Image classifiers by name, trained epoch by epoch, so that a killed training resumes."""

import json
import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from equipoise import __version__
from equipoise.config.fields import Listed, Name, Section
from equipoise.core import AnyArray, Bytes, Floats32, InputError, Integers, ModelError, Progress
from equipoise.data.problems import listed, nearest
from equipoise.mitigate.augmentation.faces import Faces, PlainFaces
from equipoise.mitigate.recipe import digest_images, read_state, save_state
from equipoise.models import runtimes
from equipoise.models.registry import Options
from equipoise.models.timm import find_weights
from equipoise.models.towers import call_with_input, last_linear
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from torch.nn import Module

# Patches of a ViT beside one another, and their side where these do not divide an image.
_ACROSS, _PATCH = 8, 5
_AT_ONCE = 256


def network(name: str, classes: int, size: int, *, seed: int) -> "Module":
    """Return a classifier to train.

    Parameters
    ----------
    name : str
        "cnn" or "vit", which train in seconds on a CPU; "timm:resnet18" and the like, untrained.
        With a tag of weights ("timm:resnet152.tv_in1k"), or a folder or ``hf-hub:`` id, training
        starts from these weights, with a new last layer for other classes.
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
    library, _, name_in_library = name.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "cnn":
            return _cnn(classes)
        if name == "vit":
            return _vit(classes, size)
        if library != "timm" or not name_in_library:
            near = nearest(name, ("cnn", "vit"))
            hint = f"; did you mean {near!r}?" if near else ""
            raise InputError(f"networks: given {name!r}; expected cnn, vit or timm:NAME{hint}")
        return _timm(name_in_library, classes, size)


_HALF = (0.5, 0.5, 0.5)


def _timm(name: str, classes: int, size: int) -> Any:
    """Return a timm network, pretrained if its name has a tag or is a folder."""
    timm = runtimes.timm()
    create_options: dict[str, Any] = {"pretrained_cfg_overlay": {"mean": _HALF, "std": _HALF}}
    if "." in name or not timm.is_model(name):
        checkpoint = find_weights(timm, name, Options(f"timm:{name}"))
        name, create_options = checkpoint.architecture, {"pretrained": True}
        if not checkpoint.settings:
            create_options["pretrained_cfg_overlay"] = {"file": str(checkpoint.weights)}
    try:
        return timm.create_model(name, num_classes=classes, img_size=size, **create_options)
    except TypeError:
        # Networks of convolutions take any size, and no argument for it.
        return timm.create_model(name, num_classes=classes, **create_options)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"timm:{name} can't be trained on {size} pixels: {error}") from error


def save_network(
    module: "Module", classes: Sequence[str], size: int, folder: Path, name: str
) -> None:
    """Write a trained timm network into a folder that ``timm:FOLDER`` loads.

    Parameters
    ----------
    module : torch.nn.Module
        From `train`.
    classes : sequence of str
        In the order of its outputs.
    size : int
        Side of the images in pixels.
    folder : Path
    name : str
        Of the folder inside; slashes and colons become hyphens.
    """
    with runtimes.saving(folder):
        runtimes.timm().models.save_for_hf(
            module.cpu(), str(folder / re.sub(r"[/\\:]+", "-", name)), safe_serialization=True,
            model_config={"label_names": [*classes]},
            data_config={"input_size": (3, size, size), "interpolation": "bilinear",
                         "crop_pct": 1.0, "crop_mode": "squash"},
        )  # fmt: skip


def check_networks(networks: Iterable[tuple[str, "Schedule"]], size: int) -> None:
    """Build each network, run it once, and look up the layers of its stages.

    Parameters
    ----------
    networks : iterable of (str, Schedule)
        Networks as `network` takes them, with their schedules.
    size : int
        Side of the images in pixels.

    Raises
    ------
    MissingExtraError, InputError, ModelError
        As `network`.
    """
    blank = np.zeros((size, size, 3), np.uint8)
    for name, schedule in networks:
        module = network(name, 2, size, seed=0).eval()
        for stage in schedule.parts:
            _learning(module, stage)
        try:
            with runtimes.torch("hf").inference_mode():
                _logits(module, [blank])
        except (AssertionError, RuntimeError, ValueError) as error:
            raise ModelError(f"{name} can't take images of {size} pixels: {error}") from error


def _cnn(classes: int) -> Any:
    from torch import nn

    def block(in_channels: int, out_channels: int) -> list[Any]:
        return [
            nn.Conv2d(in_channels, out_channels, 3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        ]

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


class Stage(Section):
    """A part of a training, in which some layers learn.

    Attributes
    ----------
    layers : "all", "last", or list of str
        All layers, the last one, or parts by their name in the network (`layer4.2`), with which
        the last layer learns, too.
    epochs : int
    learning_rate : float
    patience : int, optional
        Epochs without a lower validation loss after which the stage ends.
    """

    layers: Literal["all", "last"] | Annotated[Listed[Name], Field(min_length=1)] = "all"
    epochs: PositiveInt = 10
    learning_rate: PositiveFloat = 1e-3
    patience: PositiveInt | None = None


class Schedule(Section):
    """Settings of a training.

    Attributes
    ----------
    epochs, batch : int
    learning_rate, weight_decay : float
        Of AdamW; the rate falls to 0 along a cosine after `warm_up`.
    warm_up : float
        Share of a stage's steps over which the rate rises.
    validation : float
        Share of the training images that is withheld; the weights with the lowest loss on them
        are kept.
    patience : int, optional
        Epochs without a lower validation loss after which training stops.
    stages : list of Stage
        Parts of the training, one after another; each starts from the weights that the one before
        keeps. Without stages all layers learn for `epochs` at `learning_rate`.
    """

    epochs: PositiveInt = 10
    batch: Annotated[int, Field(ge=2)] = 64
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.01
    warm_up: Annotated[float, Field(ge=0, lt=1)] = 0.1
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    patience: PositiveInt | None = None
    stages: Listed[Stage] = ()

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        stage_keys = {"epochs", "learning_rate", "patience"} & self.model_fields_set
        if self.stages and stage_keys:
            raise ValueError(
                f"each stage has its own {', '.join(sorted(stage_keys))}: leave them out"
            )
        if not self.validation and any(stage.patience for stage in self.parts):
            raise ValueError("'patience' needs a share of 'validation' images")
        return self

    @property
    def parts(self) -> Sequence[Stage]:
        """The stages; one of all layers without any."""
        single_stage = Stage(
            epochs=self.epochs, learning_rate=self.learning_rate, patience=self.patience
        )
        return self.stages or (single_stage,)

    def rate(self, steps: int, step: int) -> float:
        """Return the factor of the learning rate in a step, from 0, of a stage's steps."""
        warm = max(int(steps * self.warm_up), 1)
        if step < warm:
            return (step + 1) / warm
        return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(steps - warm, 1))))


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
    data : str
        Digest of the images, where the place of the checkpoint doesn't tell them.
    """

    name: str
    classes: tuple[str, ...]
    seed: int
    schedule: Schedule
    data: str = ""

    @property
    def file(self) -> str:
        """File name of the state; it depends on the schedule and the images."""
        return f"{sha256(repr(self).encode()).hexdigest()[:8]}.pt"


def class_codes(classes: Sequence[str], labels: AnyArray) -> Integers:
    """Return the place of each label among the classes."""
    return np.array([classes.index(str(label)) for label in labels], dtype=np.int64)


def digest_experiment(biased: Faces, balanced: Faces, seed: int) -> str:
    """Return a digest of the images, seed and libraries of an experiment."""
    facts = [seed, __version__, str(runtimes.torch("hf").__version__)]
    for faces in (biased, balanced):
        columns = faces.labels, faces.groups, faces.regions.boxes, faces.regions.has_face
        facts.append(digest_images(faces.images, *columns))
    return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def train(
    job: Job, data: PlainFaces, checkpoint: Path, progress: Progress = lambda *_: None
) -> "Module":
    """Return a trained network; an existing checkpoint is resumed.

    Parameters
    ----------
    job : Job
    data : PlainFaces
        Images and labels; its `epoch` is set.
    checkpoint : Path
        File of the state, written after every epoch.
    progress : callable, optional

    Returns
    -------
    torch.nn.Module
        On a GPU where there is one. On a CPU the same weights whether it was interrupted or not.

    Raises
    ------
    ModelError
        When the loss is no number.
    RunError
        When the checkpoint is of another training.
    """
    size = np.asarray(data.faces.images[0]).shape[0]
    module: Any = network(job.name, len(job.classes), size, seed=job.seed).to(_choose_device())
    places, withheld = _split_rows(job, data)
    state = read_state(checkpoint, repr(job)) or _START
    if "module" in state:
        module.load_state_dict(state["module"])
    rows = TrainingRows(data, places, withheld, _targets(job, data))
    for number in range(state["stage"], len(job.schedule.parts)):
        if state["stage"] < number:
            state = {**state, "stage": number, "epochs": 0, "optimizer": None}
        state = _train_stage(module, job, rows, state, checkpoint, progress)
        if "weights" in state["best"]:
            module.load_state_dict(state["best"]["weights"])
    trained: Module = module.eval()
    return trained


_START: Mapping[str, Any] = {
    "stage": 0, "epochs": 0, "total": 0, "best": {"loss": math.inf, "stage": 0, "epochs": 0},
    "optimizer": None,
}  # fmt: skip
"""State of a training before its first epoch."""


class TrainingRows(NamedTuple):
    """Images of a training, the rows that are learned and withheld, and the class of each."""

    data: PlainFaces
    learned: Integers
    withheld: Integers
    targets: Any


def _split_rows(job: Job, data: PlainFaces) -> tuple[Integers, Integers]:
    """Return the rows to learn with changed copies, and the validation rows."""
    n = len(data.faces)
    n_validation = int(job.schedule.validation * n)
    order = np.arange(n)
    if n_validation:
        order = stream(job.seed, "validation").permutation(n)
    return data.with_copies(order[n_validation:]), order[:n_validation]


def _targets(job: Job, data: PlainFaces) -> Any:
    codes = class_codes(job.classes, data.faces.labels)
    return runtimes.torch("hf").from_numpy(np.concatenate([codes, codes]))


def _train_stage(
    module: Any,
    job: Job,
    rows: TrainingRows,
    state: Mapping[str, Any],
    checkpoint: Path,
    progress: Progress,
) -> Mapping[str, Any]:
    """Train a stage from its state, and return its last state."""
    torch, schedule = runtimes.torch("hf"), job.schedule
    stage = schedule.parts[state["stage"]]
    n_steps = -(-len(rows.learned) // schedule.batch) * stage.epochs
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=stage.learning_rate, weight_decay=schedule.weight_decay
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(schedule.rate, n_steps))
    if state["optimizer"] is not None:
        optimizer.load_state_dict(state["optimizer"])
        rate.load_state_dict(state["rate"])
    for epoch in range(state["epochs"], stage.epochs):
        best, total = state["best"], state["total"]
        since = epoch - (best["epochs"] if best["stage"] == state["stage"] else 0)
        if stage.patience is not None and since >= stage.patience:
            break
        progress(f"training {job.name}", total, sum(part.epochs for part in schedule.parts))
        rows.data.epoch = total
        # The network's own draws (dropout) follow from the seed and the epoch, too.
        torch.manual_seed(1_000_003 * job.seed + total)
        _freeze(module, stage)
        order = stream(job.seed, "order", total).permutation(rows.learned)
        losses = _losses(module, rows.data.training_image, rows.targets, order, schedule.batch)
        _learn(losses, optimizer, rate)
        loss = _validation_loss(module, rows)
        if loss < best["loss"]:
            weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            place = {"stage": state["stage"], "epochs": epoch + 1}
            best = {"loss": loss, "weights": weights, **place}
        state = {
            "stage": state["stage"], "epochs": epoch + 1, "total": total + 1, "best": best,
            "module": module.state_dict(), "optimizer": optimizer.state_dict(),
            "rate": rate.state_dict(),
        }  # fmt: skip
        save_state(checkpoint, repr(job), state)
    return state


def _learn(losses: Iterator[Any], optimizer: Any, rate: Any) -> None:
    for loss in losses:
        if not loss.isfinite():
            raise ModelError("the loss isn't a number. To do: lower the learning rate")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()


def _validation_loss(module: Any, rows: TrainingRows) -> float:
    """Return the mean loss of the withheld images; infinite without any."""
    if not len(rows.withheld):
        return math.inf
    module.eval()
    images = rows.data.faces.images
    with runtimes.torch("hf").inference_mode():
        losses = _losses(
            module, lambda row: np.asarray(images[row]), rows.targets, rows.withheld, _AT_ONCE
        )
        n = len(rows.withheld)
        sizes = np.minimum(_AT_ONCE, n - np.arange(0, n, _AT_ONCE))
        return float(np.average([float(batch_loss) for batch_loss in losses], weights=sizes))


def _choose_device() -> str:
    return runtimes.place("auto", "float32", "hf").device


def _freeze(module: "Module", stage: Stage) -> None:
    """Make the layers of a stage trainable, and freeze the others."""
    module.requires_grad_(requires_grad=False).eval()
    for part in _learning(module, stage):
        part.requires_grad_(requires_grad=True).train()


def _learning(module: "Module", stage: Stage) -> list["Module"]:
    """Return the parts of a network that learn in a stage.

    Raises
    ------
    ModelError
        When a part is not there.
    """
    if stage.layers == "all":
        return [module]
    last = last_linear(runtimes.torch("hf"), module)
    parts: list[Module] = [] if last is None else [last]
    if isinstance(stage.layers, str):
        return parts
    by_name = dict(module.named_modules())
    for name in stage.layers:
        if not name or name not in by_name:
            close = nearest(name, by_name)
            hint = "" if close is None else f" Did you mean {close!r}?"
            raise ModelError(
                f"the network has no part {name!r} that could learn.{hint} To do: name parts as "
                f"they are called in it: {listed([*by_name][1:])}"
            )
        parts.append(by_name[name])
    return parts


def _losses(
    module: Any, image: Callable[[int], Bytes], targets: Any, rows: Integers, batch: int
) -> Iterator[Any]:
    """Yield the mean loss of each batch."""
    entropy = runtimes.torch("hf").nn.functional.cross_entropy
    for places, images in _load_ahead(rows, batch, image):
        # Batch normalisation knows no batch of one.
        if len(places) > 1 or not module.training:
            logits = _logits(module, images)
            yield entropy(logits, targets[places].to(logits.device))


Item = TypeVar("Item")


def _load_ahead(
    rows: Integers, batch: int, make: Callable[[int], Item]
) -> Iterator[tuple[Integers, list[Item]]]:
    """Yield batches of rows and their items; threads load a few batches ahead."""

    def load_batch(places: Integers) -> list[Item]:
        return [make(row) for row in places.tolist()]

    threads = min(os.cpu_count() or 1, 16)
    pending: deque[tuple[Integers, Future[list[Item]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(rows), batch):
            places = rows[start : start + batch]
            pending.append((places, pool.submit(load_batch, places)))
            if len(pending) > threads:
                batch_rows, future = pending.popleft()
                yield batch_rows, future.result()
        for batch_rows, future in pending:
            yield batch_rows, future.result()


def _logits(module: Any, images: Sequence[Bytes]) -> Any:
    """Return logits of images of one size, from any kind of output."""
    settings = getattr(module, "pretrained_cfg", {})
    mean, std = (np.float32(settings.get(name, _HALF)) for name in ("mean", "std"))
    floats = np.stack(images).astype(np.float32) / (255 * std) - mean / std
    pixels = np.ascontiguousarray(floats.transpose(0, 3, 1, 2))
    output = module(runtimes.torch("hf").from_numpy(pixels).to(next(module.parameters()).device))
    return getattr(output, "logits", output)


def outputs(
    module: "Module", images: Sequence[Bytes] | Bytes
) -> Iterator[tuple[Integers, Floats32]]:
    """Run a trained network over images of one size, batch after batch.

    Yields
    ------
    codes : ndarray of int64, shape (batch,)
        Place of the class that it gives.
    features : ndarray of float32, shape (batch, dimension)
        Input of its last layer.
    """
    torch = runtimes.torch("hf")
    last = last_linear(torch, module)
    assert last is not None  # noqa: S101 - a classifier ends in one
    rows = np.arange(len(images))
    with torch.inference_mode():
        for _, batch in _load_ahead(rows, _AT_ONCE, lambda row: np.asarray(images[row])):
            logits, features = call_with_input(last, partial(_logits, module, batch))
            yield logits.argmax(dim=1).cpu().numpy(), features.cpu().numpy()


def predict(module: "Module", images: Sequence[Bytes]) -> tuple[Integers, Floats32]:
    """Run a trained network over images of one size; see `outputs`.

    Returns
    -------
    codes : ndarray of int64, shape (n,)
    features : ndarray of float32, shape (n, dimension)
    """
    codes, features = zip(*outputs(module, images), strict=True)
    return np.concatenate(codes), np.concatenate(features)
