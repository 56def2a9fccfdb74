"""Training that can be stopped anywhere: its state on disk, its draws a function of the step."""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import ModelError, RunError
from equipoise.evidence import leftovers
from equipoise.evidence.store import locked, write
from equipoise.mitigate.recipe import Progress, refuse_occupied
from equipoise.mitigate.record import made, reloaded
from equipoise.mitigate.trainable import Trainable
from equipoise.models.wrapped import Wrapping, save_wrapped

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

STATE = "state.safetensors"


@dataclass(frozen=True)
class Plan:
    """How long to train, and when to look and to write.

    Attributes
    ----------
    steps : int
        Most steps.
    learning_rate : float
        Of AdamW, the same in every step.
    look_every : int
        Steps between two looks at the validation loss.
    patience : int
        Looks without a better loss after which training stops.
    save_every : int
        Steps between two writings of the state.
    """

    steps: int
    learning_rate: float
    look_every: int
    patience: int
    save_every: int


@dataclass
class State:
    """Where training stands after some steps."""

    step: int = 0
    best: float = math.inf
    best_step: int = 0
    worse: int = 0
    losses: tuple[tuple[int, float], ...] = ()


def fitted(
    subject: Trainable,
    weights: Mapping[str, Any],
    plan: Plan,
    *,
    loss: Callable[[int], Any],
    validation: Callable[[], Any] | None,
    record: Mapping[str, Any],
    out: Path,
    progress: Progress | None,
) -> str:
    """Train weights, write the model, and return its name.

    The state lies in ``<out>.training`` meanwhile, in one file that is replaced when it is whole.
    A process that is killed and started again goes on from it; on a CPU it ends in the same
    weights, bit for bit. Where there is a validation loss, the weights with the lowest one are
    kept, which may be those that training began with.

    Parameters
    ----------
    subject : Trainable
    weights : mapping of str to torch.nn.Parameter
        Those that are trained.
    plan : Plan
    loss : callable
        Of a step's batch, which depends on the number of the step alone.
    validation : callable, optional
        Loss on subjects that are not trained on.
    record : mapping
        From `record_of`: everything that decides the result. A model of it is taken as it is, a
        state of another is refused.
    out : Path
        Folder of the model.
    progress : callable, optional

    Raises
    ------
    RunError
        When something lies at `out`, another process trains there, or the state is of another
        training.
    ModelError
        When the loss is not finite.
    """
    name = f"{subject.prefix}:{out}"
    folder = out.with_name(f"{out.name}.training")
    if made(out, record):
        # A run that was killed after it wrote the model leaves its state behind.
        shutil.rmtree(folder, ignore_errors=True)
        return name
    refuse_occupied(out)
    with locked(folder):
        runner = _Fit(subject, dict(weights), plan, str(record["digest"]), folder / STATE)
        runner.resume()
        runner.run(loss, validation, progress)
        state = runner.state
        told = {
            **record,
            "steps": state.step,
            "kept_step": state.best_step if validation else state.step,
            "validation": [list(one) for one in state.losses],
        }
        publish(out, lambda partial: subject.save(partial, told))
    shutil.rmtree(folder, ignore_errors=True)
    return name


def wrapped(
    out: Path, base: DualEncoder, record: Mapping[str, Any], make: Callable[[], Wrapping]
) -> DualEncoder:
    """Write a wrapped model, unless it is there already, and load it.

    Parameters
    ----------
    out : Path
        Folder of the model.
    base : DualEncoder
    record : mapping
        From `record_of`; a model of it is taken as it is, and nothing is made.
    make : callable
        Returns what is done to the base, its record this one or more than this one.

    Raises
    ------
    RunError
        When something else lies at `out`; nothing is made then, either.
    """
    if not made(out, record):
        refuse_occupied(out)
        wrapping = make()
        publish(out, lambda partial: save_wrapped(partial, base.info, wrapping, at=out))
    return reloaded(f"equipoise:{out}", base)


def publish(out: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder under another name and rename it: a model is there whole, or not at all.

    Folders that killed runs left half filled are removed.

    Raises
    ------
    RunError
        When something lies there.
    """
    refuse_occupied(out)
    partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        leftovers.sweep(out)
        with leftovers.made(partial):
            fill(partial)
            for path in sorted(partial.rglob("*")):
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
            refuse_occupied(out)
            partial.replace(out)
    except OSError as error:
        raise RunError(
            f"{out}: the model cannot be written there ({error.strerror or error}). To do: free "
            "space, or name another folder"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class _Fit:
    """Weights, optimizer and counters between two steps."""

    def __init__(
        self, subject: Trainable, weights: dict[str, Any], plan: Plan, record: str, path: Path
    ) -> None:
        self.torch, self.weights, self.plan = subject.torch, weights, plan
        self.record, self.path = record, path
        self.optimizer = self.torch.optim.AdamW(
            [*weights.values()], lr=plan.learning_rate, weight_decay=0.0, foreach=False
        )
        self.state = State()
        self.kept = self._copy()

    def run(
        self,
        loss: Callable[[int], Any],
        validation: Callable[[], Any] | None,
        progress: Progress | None,
    ) -> None:
        """Train to the end, and leave the weights that are kept in the model."""
        if validation is not None and not self.state.losses:
            self._look(validation)
        while self.state.step < self.plan.steps and self.state.worse < self.plan.patience:
            if progress is not None:
                progress("training", self.state.step, self.plan.steps)
            self._step(loss)
            last = self.state.step == self.plan.steps
            if validation is not None and (last or self.state.step % self.plan.look_every == 0):
                self._look(validation)
            if self.state.step % self.plan.save_every == 0:
                self.save()
        if validation is not None:
            self._put(self.kept)

    def _step(self, loss: Callable[[int], Any]) -> None:
        found = loss(self.state.step)
        if not math.isfinite(float(found.detach())):
            raise ModelError(
                f"the loss of step {self.state.step + 1} is not finite. To do: a lower "
                "learning_rate, or dtype: float32"
            )
        self.optimizer.zero_grad(set_to_none=True)
        found.backward()
        self.torch.nn.utils.clip_grad_norm_([*self.weights.values()], 1.0, foreach=False)
        self.optimizer.step()
        self.state.step += 1

    def _look(self, validation: Callable[[], Any]) -> None:
        with self.torch.no_grad():
            found = float(validation())
        state = self.state
        state.losses = (*state.losses, (state.step, found))
        if found < state.best:
            state.best, state.best_step, state.worse = found, state.step, 0
            self.kept = self._copy()
        else:
            state.worse += 1

    def _copy(self) -> dict[str, Any]:
        return {name: one.detach().clone() for name, one in self.weights.items()}

    def _put(self, values: Mapping[str, Any]) -> None:
        with self.torch.no_grad():
            for name, one in self.weights.items():
                one.copy_(values[name])

    def save(self) -> None:
        """Write the state, whole or not at all."""
        from safetensors.torch import save

        moments = {
            f"optimizer/{part}/{name}": value
            for name, one in self.weights.items()
            for part, value in self.optimizer.state[one].items()
        }
        tensors = {f"weights/{name}": one.detach() for name, one in self.weights.items()}
        kept = {f"kept/{name}": one for name, one in self.kept.items()}
        told = json.dumps({**vars(self.state), "record": self.record})
        every = {name: one.contiguous().cpu() for name, one in (tensors | kept | moments).items()}
        write(self.path, save(every, {"training": told, "sha256": _digest(told, every)}))

    def resume(self) -> None:
        """Continue from the state on disk, if there is an undamaged one.

        Raises
        ------
        RunError
            If it is of another training.
        """
        read = _read_state(self.path) if self.path.is_file() else None
        if read is None:
            return
        told, tensors = read
        if told.pop("record") != self.record:
            raise RunError(
                f"{self.path.parent}: a training with other data, settings or libraries was "
                "stopped here. To do: remove this folder, or name another output"
            )
        self.state = State(**told)
        self.state.losses = tuple((int(step), float(loss)) for step, loss in told["losses"])
        self._put(_of(tensors, "weights"))
        device = next(iter(self.weights.values())).device
        self.kept = {name: one.to(device) for name, one in _of(tensors, "kept").items()}
        for part in ("step", "exp_avg", "exp_avg_sq"):
            for name, value in _of(tensors, f"optimizer/{part}").items():
                moved = value if part == "step" else value.to(device)
                self.optimizer.state[self.weights[name]][part] = moved


def _read_state(path: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the state of a training and its tensors; None, with a warning, if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] == _digest(metadata["training"], tensors):
            return json.loads(metadata["training"]), tensors
    except (SafetensorError, KeyError, TypeError, ValueError):
        pass
    logging.getLogger("equipoise").warning("%s is damaged; the training starts again", path)
    return None


def _digest(training: str, tensors: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a state: a flipped bit anywhere changes it."""
    digest = sha256(training.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().flatten().numpy().tobytes())
    return digest.hexdigest()


def _of(tensors: Mapping[str, Any], part: str) -> dict[str, Any]:
    start = f"{part}/"
    return {name.removeprefix(start): v for name, v in tensors.items() if name.startswith(start)}
