"""Training that goes on where it was stopped: state on disk, and draws that depend on the step."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.stats.streams import stream
from equipoise.stats.threads import each


@dataclass
class Training:
    """A network, its optimizer and the moving average of its weights, between two steps.

    Attributes
    ----------
    recipe : dict of str to int or float
        Of which the state is a part: another recipe does not go on from it.
    network : torch.nn.Module
    optimizer : torch.optim.Optimizer
    average : torch.nn.Module or None
        Moving average of the network's weights, where one is kept.
    step : int
        Steps done.
    """

    recipe: dict[str, Any]
    network: Any
    optimizer: Any
    average: Any = None
    step: int = 0

    def save(self, path: Path) -> None:
        """Write the state whole: a process that is killed meanwhile leaves the one before."""
        import torch

        state = {"recipe": self.recipe, "step": self.step} | {
            name: getattr(self, name).state_dict() for name in self._parts()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def resume(self, path: Path) -> None:
        """Take up the state in a file; nothing where there is none.

        Raises
        ------
        ValueError
            If it is the state of another recipe.
        """
        import torch

        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        if state["recipe"] != self.recipe:
            raise ValueError(
                f"{path.name} is a state of another recipe, {state['recipe']}; "
                "delete it, or train into another folder"
            )
        for name in self._parts():
            getattr(self, name).load_state_dict(state[name])
        self.step = state["step"]

    def _parts(self) -> tuple[str, ...]:
        kept = ("network", "optimizer")
        return kept if self.average is None else (*kept, "average")


def train_on(
    training: Training,
    losses_of: Callable[[np.random.Generator], Sequence[Callable[[], Any]]],
    *,
    path: Path,
    steps: int,
    rate: Callable[[int], float],
    every: int = 100,
) -> None:
    """Train to a number of steps, and write the state on the way.

    Parameters
    ----------
    training : Training
        Changed in place; begins at its own step.
    losses_of : callable
        Draws a batch from the generator and gives the losses of its equal parts, not yet computed:
        each part is in a thread of its own. The generator depends on the recipe's seed, the name of
        the file and the step alone, so what is stopped and taken up ends in the same weights.
    path : Path
        File of the state.
    steps : int
        Steps to have done in the end.
    rate : callable
        Learning rate of a step.
    every : int
        Steps between two writings of the state.

    Raises
    ------
    ValueError
        If more steps have been done.
    """
    import torch

    if training.step > steps:
        raise ValueError(f"{path.name} has {training.step} steps, more than the {steps} asked for")
    began, seed = time.perf_counter(), training.recipe["seed"]
    training.network.train()
    while training.step < steps:
        for group in training.optimizer.param_groups:
            group["lr"] = rate(training.step)
        losses = losses_of(stream(seed, "scenes", "diffusion", path.stem, training.step))
        loss = _gradients(training.network, losses)
        torch.nn.utils.clip_grad_norm_(training.network.parameters(), 1.0)
        training.optimizer.step()
        training.step += 1
        if training.average is not None:
            _follow(training)
        if training.step % every == 0 or training.step == steps:
            training.save(path)
            passed = time.perf_counter() - began
            sys.stderr.write(
                f"{path.stem}: step {training.step}, loss {loss:.4f}, {passed:.0f} s\n"
            )


def one_cycle(highest: float, steps: int, warm_up: int) -> Callable[[int], float]:
    """Return the learning rate by step: rising evenly, then falling as a cosine to a hundredth."""

    def rate(step: int) -> float:
        if step < warm_up:
            return highest * (step + 1) / warm_up
        through = (step - warm_up) / max(1, steps - warm_up)
        return float(highest * (0.505 + 0.495 * np.cos(np.pi * through)))

    return rate


def _gradients(network: Any, losses: Sequence[Callable[[], Any]]) -> float:
    """Give every weight the mean gradient of the parts of a batch, summed in their order."""
    import torch

    weights = [*network.parameters()]

    def differentiated(loss_of: Callable[[], Any]) -> tuple[float, Sequence[Any]]:
        loss = loss_of()
        return float(loss.detach()), torch.autograd.grad(loss, weights)

    found = each(differentiated, losses)
    for place, weight in enumerate(weights):
        total = found[0][1][place]
        for _, more in found[1:]:
            total = total + more[place]
        weight.grad = total / len(found)
    return sum(loss for loss, _ in found) / len(found)


def _follow(training: Training) -> None:
    """Move the average towards the network: by less the longer the training has gone on."""
    import torch

    decay = min(training.recipe["average"], (1 + training.step) / (10 + training.step))
    with torch.no_grad():
        for kept, new in zip(
            training.average.parameters(), training.network.parameters(), strict=True
        ):
            kept.lerp_(new, 1.0 - decay)
