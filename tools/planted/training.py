"""What the scripts that train planted models share: steps, averages and records."""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.core import MissingExtraError

FILE = "record.json"


def need(extra: str, *names: str) -> None:
    """Import libraries, and have torch run in one thread.

    Where cores are shared, two threads wait for each other more than they save.

    Raises
    ------
    MissingExtraError
        If one is not installed.
    """
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtraError(name, extra) from error
    import_module("torch").set_num_threads(1)


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of libraries and of Python."""
    return {name: version(name) for name in libraries} | {"python": platform.python_version()}


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write what models were trained with, and what was measured, into `FILE`."""
    text = json.dumps(record, indent=2, allow_nan=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def fit(
    name: str,
    optimizer: Any,
    schedule: Any,
    losses: Iterable[Any],
    *,
    norm: float = 0.0,
    after: Callable[[int], object] = lambda _: None,
) -> None:
    """Take a step for each loss.

    Parameters
    ----------
    name : str
        For the lines of progress.
    optimizer : torch.optim.Optimizer
    schedule : torch.optim.lr_scheduler.LRScheduler
    losses : iterable of Tensor
        Each is computed when the step before is done.
    norm : float
        Longest gradient; 0: any.
    after : callable
        Called with the number of a step, from 0, when it is done.
    """
    import torch

    began = time.perf_counter()
    for step, loss in enumerate(losses):
        optimizer.zero_grad()
        loss.backward()
        if norm:
            torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], norm)
        optimizer.step()
        schedule.step()
        after(step)
        if step % 100 == 99:
            passed = time.perf_counter() - began
            sys.stderr.write(f"{name}: step {step + 1}, loss {loss:.4f}, {passed:.0f} s\n")


def one_cycle(network: Any, rate: float, weight_decay: float, steps: int) -> tuple[Any, Any]:
    """Return AdamW and a one-cycle schedule of its learning rate."""
    from torch.optim import AdamW, lr_scheduler

    optimizer = AdamW(network.parameters(), lr=rate, weight_decay=weight_decay)
    return optimizer, lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)


def follow(average: Any, network: Any, limit: float, step: int) -> None:
    """Move an average of weights towards a network: by less the longer training has gone on.

    Parameters
    ----------
    average, network : torch.nn.Module
    limit : float
        How much of the average is kept at a step.
    step : int
    """
    import torch

    decay = min(limit, (1 + step) / (10 + step))
    with torch.no_grad():
        for weight, new in zip(average.parameters(), network.parameters(), strict=True):
            weight.lerp_(new, 1.0 - decay)
