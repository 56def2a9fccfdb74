"""Training that resumes after a kill: its state is on disk, its draws depend on the step alone."""

from __future__ import annotations

import logging
import math
import shutil
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from equipoise.core.errors import ModelError, RunError
from equipoise.evidence import new_run
from equipoise.evidence.store import locked, write
from equipoise.mitigate.recipe import (
    Count,
    Dtype,
    Progress,
    Recipe,
    digest_of_texts,
    has_model,
    record_of,
    refuse_occupied,
    reload,
)
from equipoise.mitigate.sets import Training
from equipoise.mitigate.trainable import Trainable, trainable
from equipoise.models import runtimes
from equipoise.models.info import Facts, Record
from equipoise.models.protocols import DualEncoder

STATE = "state.pt"
_DIGEST = sha256().digest_size


@dataclass(frozen=True)
class Plan:
    """How long to train, and when to check the validation loss and save the state.

    Attributes
    ----------
    weights : mapping of str to torch.nn.Parameter
        Weights to train.
    steps : int
        Most steps.
    learning_rate : float
        Of AdamW, the same in every step.
    look_every : int
        Steps between two checks of the validation loss.
    save_every : int
        Steps between two writings of the state.
    loss : callable
        Loss of a step's batch, which depends on the number of the step alone.
    validation : callable, optional
        Loss on the validation subjects.
    """

    weights: Record
    steps: int
    learning_rate: float
    look_every: int
    save_every: int
    loss: Callable[[int], Any]
    validation: Callable[[], Any] | None


@dataclass
class State:
    """Progress of a training."""

    step: int = 0
    best: float = math.inf
    best_step: int = 0
    worse: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)


class TrainedRecipe(Recipe):
    """A recipe that trains weights.

    The state lies in ``<out>.training`` meanwhile, in one file that is replaced when it is whole.
    A killed training goes on from it; on a CPU it ends in the same weights, bit for bit. With a
    validation loss, the weights with the lowest one are kept, which may be the initial ones.
    """

    patience: Count = 4
    dtype: Dtype = "auto"

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Train on the training subjects; see `Recipe.fit`.

        Raises
        ------
        RunError
            When something lies at `out`, another process trains there, or the state is of another
            training.
        ModelError
            When the model cannot be trained, or the loss is not finite.
        """
        subject = trainable(base, self.dtype)
        plan = self._plan(base, subject, training, seed)
        record = record_of(self, base, seed, self._inputs(training), subject.torch)
        folder = out.with_name(f"{out.name}.training")
        if not has_model(out, record):
            refuse_occupied(out)
            with locked(folder):
                digest, path = str(record["digest"]), folder / STATE
                state = _Fit(subject.torch, plan, self.patience, digest, path).run(progress)
                outcome = {
                    **record,
                    "steps": state.step,
                    "kept_step": state.best_step if plan.validation else state.step,
                    "validation": [list(pair) for pair in state.losses],
                }
                with new_run(out) as partial:
                    subject.save(partial, outcome)
        # A run that was killed after it wrote the model leaves its state behind.
        shutil.rmtree(folder, ignore_errors=True)
        return reload(f"{subject.prefix}:{out}", base)

    def _inputs(self, training: Training) -> Facts:
        return {
            "texts": digest_of_texts(training.texts),
            "validation_texts": digest_of_texts(training.validation),
            "subjects": sorted(training.subjects),
        }

    @abstractmethod
    def _plan(self, base: DualEncoder, subject: Trainable, training: Training, seed: int) -> Plan:
        """Return what is trained, and how."""


class _Fit:
    """Weights, optimizer and counters between two steps."""

    def __init__(self, torch: Any, plan: Plan, patience: int, record: str, path: Path) -> None:
        self.torch, self.plan, self.patience = torch, plan, patience
        self.record, self.path = record, path
        self.weights = plan.weights
        self.optimizer = torch.optim.AdamW(
            [*self.weights.values()], lr=plan.learning_rate, weight_decay=0.0, foreach=False
        )
        self.state, self.best = State(), self._copy()
        if known := read_state(path, record):
            self.state, self.best = State(**known["state"]), known["best"]
            self._restore(known["weights"])
            self.optimizer.load_state_dict(known["optimizer"])

    def run(self, progress: Progress | None) -> State:
        """Train to the end, and leave the best weights in the model."""
        state, plan = self.state, self.plan
        if not state.losses:
            self._validate()
        while state.step < plan.steps and state.worse < self.patience:
            if progress is not None:
                progress("training", state.step, plan.steps)
            self._step()
            if state.step == plan.steps or state.step % plan.look_every == 0:
                self._validate()
            if state.step % plan.save_every == 0:
                own = {
                    "state": vars(state),
                    "weights": self._copy(),
                    "best": self.best,
                    "optimizer": self.optimizer.state_dict(),
                }
                save_state(self.path, self.record, own)
        if plan.validation is not None:
            self._restore(self.best)
        return state

    def _step(self) -> None:
        value = self.plan.loss(self.state.step)
        if not math.isfinite(float(value.detach())):
            raise ModelError(
                f"the loss of step {self.state.step + 1} is not finite. To do: a lower "
                "learning_rate, or dtype: float32"
            )
        self.optimizer.zero_grad(set_to_none=True)
        value.backward()
        self.torch.nn.utils.clip_grad_norm_([*self.weights.values()], 1.0, foreach=False)
        self.optimizer.step()
        self.state.step += 1

    def _validate(self) -> None:
        state = self.state
        if self.plan.validation is None:
            return
        with self.torch.no_grad():
            value = float(self.plan.validation())
        state.losses.append((state.step, value))
        if value < state.best:
            state.best, state.best_step, state.worse = value, state.step, 0
            self.best = self._copy()
        else:
            state.worse += 1

    def _copy(self) -> Facts:
        return {name: weight.detach().clone() for name, weight in self.weights.items()}

    def _restore(self, values: Record) -> None:
        with self.torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(values[name])


def save_state(path: Path, record: str, state: Record) -> None:
    """Write the state of a training after its checksum, whole or not at all."""
    content = BytesIO()
    runtimes.torch("hf").save({"record": record, **state}, content)
    write(path, sha256(content.getvalue()).digest() + content.getvalue())


def read_state(path: Path, record: str) -> Facts | None:
    """Return the state of a training; None without one, or, with a warning, of a damaged one.

    Raises
    ------
    RunError
        If it is of another training.
    """
    if not path.is_file():
        return None
    data = path.read_bytes()
    digest, content = data[:_DIGEST], data[_DIGEST:]
    if sha256(content).digest() != digest:
        logging.getLogger("equipoise").warning("%s is damaged; the training starts again", path)
        return None
    state: Facts = runtimes.torch("hf").load(
        BytesIO(content), map_location="cpu", weights_only=True
    )
    if state["record"] != record:
        raise RunError(
            f"{path}: a training with other data, settings or libraries was stopped here. To do: "
            "remove this file, or name another output"
        )
    return state
