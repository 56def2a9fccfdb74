"""Train a classifier, epoch by epoch, so that a killed training goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise import __version__
from equipoise.core.errors import InputError, MissingExtraError, ModelError
from equipoise.mitigate.augmentation.datasets import Faces, PlainFaces
from equipoise.mitigate.augmentation.networks import network
from equipoise.stats.streams import stream

Floats = NDArray[np.float32]

_AT_ONCE = 256


@dataclass(frozen=True)
class Schedule:
    """How a network is trained.

    Attributes
    ----------
    epochs, batch : int
    learning_rate, weight_decay : float
        Of AdamW; the rate falls to 0 along a cosine after a tenth of the steps.
    """

    epochs: int = 10
    batch: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2 or self.learning_rate <= 0 or self.weight_decay < 0:
            raise InputError(
                f"{self}: expected at least 1 epoch, a batch of at least 2, a learning rate above "
                "0 and a weight decay of at least 0"
            )


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


def digest_of(biased: Faces, balanced: Faces, seed: int) -> str:
    """Name what decides the states of an experiment, beside its jobs: images, seed, libraries."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "hf") from error
    digest = sha256(json.dumps([seed, __version__, str(torch.__version__)]).encode())
    for faces in (biased, balanced):
        digest.update(json.dumps([faces.labels.tolist(), faces.groups.tolist()]).encode())
        for values in (np.asarray(faces.images), faces.regions.boxes, faces.regions.found):
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()[:16]


def train(
    job: Job, data: PlainFaces, checkpoint: Path, told: Callable[[int], None] | None = None
) -> Any:
    """Return a trained network; a checkpoint that lies there is taken up.

    Parameters
    ----------
    job : Job
    data : PlainFaces
        Images and labels; its `epoch` is set.
    checkpoint : Path
        Where the state is kept after every epoch.
    told : callable, optional
        Told the number of epochs done, after each.

    Returns
    -------
    torch.nn.Module
        The same weights on a CPU whether it was interrupted or not.

    Raises
    ------
    ModelError
        When the checkpoint is of another training, or the loss is no number.
    """
    import torch

    pixels = np.asarray(data.faces.images[0])
    module = network(job.name, len(job.classes), pixels.shape[0], seed=job.seed).train()
    steps = -(-len(data) // job.schedule.batch) * job.schedule.epochs
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=job.schedule.learning_rate, weight_decay=job.schedule.weight_decay
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share(step, steps))
    done = _taken_up(checkpoint, job, module, optimizer, rate)
    targets = _codes(data.faces.labels, job.classes)
    for epoch in range(done, job.schedule.epochs):
        data.epoch = epoch
        # What a network draws itself (dropout) follows from the seed and the epoch, too.
        torch.manual_seed(1_000_003 * job.seed + epoch)
        order = stream(job.seed, "order", epoch).permutation(len(data))
        for start in range(0, len(order), job.schedule.batch):
            rows = order[start : start + job.schedule.batch]
            # Batch normalisation knows no batch of one.
            if len(rows) > 1:
                _step(module, optimizer, data, rows, targets)
            rate.step()
        _keep(checkpoint, job, epoch + 1, module, optimizer, rate)
        if told is not None:
            told(epoch + 1)
    return module.eval()


def _share(step: int, steps: int) -> float:
    warm = max(steps // 10, 1)
    if step < warm:
        return (step + 1) / warm
    return float(0.5 * (1 + np.cos(np.pi * (step - warm) / max(steps - warm, 1))))


def _codes(labels: Sequence[object] | NDArray[Any], classes: tuple[str, ...]) -> NDArray[np.int64]:
    places = {name: place for place, name in enumerate(classes)}
    return np.array([places[str(label)] for label in labels], dtype=np.int64)


def _step(
    module: Any, optimizer: Any, data: PlainFaces, rows: NDArray[np.int64], targets: Any
) -> None:
    import torch

    images = as_floats([data.changed(int(row)) for row in rows])
    loss = torch.nn.functional.cross_entropy(
        _logits(module, images), torch.from_numpy(targets[rows])
    )
    if not torch.isfinite(loss):
        raise ModelError("the loss is no number. To do: lower the learning rate")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _logits(module: Any, images: Floats) -> Any:
    """Return logits, also of networks that return them with other things."""
    import torch

    made = module(torch.from_numpy(images))
    return getattr(made, "logits", made)


def as_floats(images: Sequence[NDArray[np.uint8]]) -> Floats:
    """Return images of one size as (n, 3, height, width), from −1 to 1."""
    floats = np.stack(images).astype(np.float32)
    return np.ascontiguousarray((floats / 127.5 - 1.0).transpose(0, 3, 1, 2))


def _keep(checkpoint: Path, job: Job, epochs: int, module: Any, optimizer: Any, rate: Any) -> None:
    """Write the state under another name first: what lies there is whole."""
    import torch

    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    partial = checkpoint.with_name(f"{checkpoint.name}.{os.getpid()}.partial")
    state = {
        "job": repr(job), "epochs": epochs, "module": module.state_dict(),
        "optimizer": optimizer.state_dict(), "rate": rate.state_dict(),
    }  # fmt: skip
    torch.save(state, partial)
    partial.replace(checkpoint)


def _taken_up(checkpoint: Path, job: Job, module: Any, optimizer: Any, rate: Any) -> int:
    import torch

    if not checkpoint.exists():
        return 0
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        known = state["job"]
    except Exception as error:  # noqa: BLE001 - torch raises errors of many kinds
        raise ModelError(
            f"{checkpoint}: no state of a training ({type(error).__name__}). To do: delete it"
        ) from None
    if known != repr(job):
        raise ModelError(f"{checkpoint}: the state of another training. To do: delete it")
    module.load_state_dict(state["module"])
    optimizer.load_state_dict(state["optimizer"])
    rate.load_state_dict(state["rate"])
    return int(state["epochs"])


@dataclass(frozen=True, eq=False)
class Said:
    """What a network says of images.

    Attributes
    ----------
    codes : ndarray of int64, shape (n,)
        Place of the class that it gives.
    features : ndarray of float32, shape (n, dimension)
        What its last layer sees.
    """

    codes: NDArray[np.int64]
    features: Floats


def say(module: Any, images: Sequence[NDArray[np.uint8]]) -> Said:
    """Run a trained network over images of one size."""
    import torch

    seen: list[Any] = []
    last = [part for part in module.modules() if isinstance(part, torch.nn.Linear)][-1]
    hook = last.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    codes = []
    try:
        with torch.inference_mode():
            for start in range(0, len(images), _AT_ONCE):
                part = as_floats([*images[start : start + _AT_ONCE]])
                codes.append(_logits(module, part).argmax(dim=1).numpy())
    finally:
        hook.remove()
    features = torch.cat([one.reshape(len(one), -1) for one in seen]).numpy()
    return Said(np.concatenate(codes), features)
