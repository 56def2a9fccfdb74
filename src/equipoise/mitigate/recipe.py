"""The bases of recipes: records of fitted models, their folders, and training that resumes."""

import json
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from pydantic import PositiveInt

from equipoise import __version__
from equipoise.config.fields import Dtype, Name, Section, Some
from equipoise.core import AnyArray, ModelError, Progress, RunError
from equipoise.core.files import read_json_file
from equipoise.core.types import Json
from equipoise.core.writing import remove_folder, write
from equipoise.evidence import new_run
from equipoise.evidence.store import lock_folder
from equipoise.mitigate.sets import SubjectTexts, Training, read_content
from equipoise.mitigate.trainable import RECORD, Shifts, Trainable
from equipoise.models import runtimes
from equipoise.models.generators import ImageGenerator
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder, Model
from equipoise.models.registry import Options, find_adapter, is_code
from equipoise.models.wrapped import SETTINGS, Wrapping, save_wrapped

Names = Some[Name]
AnyModel = DualEncoder | ImageGenerator
ModelT = TypeVar("ModelT", bound=AnyModel)


class Recipe(Section, ABC):
    """A way to lower a disparity of a model; its fields are its settings."""

    makes_images: ClassVar[bool] = False
    """Whether the model is a generator, and no dual encoder."""
    recipe: str
    name: str

    def fit(
        self,
        base: ModelT,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        trust_remote_code: bool = False,
        progress: Progress | None = None,
    ) -> ModelT:
        """Learn from the training subjects and write a model with a key of its own.

        Parameters
        ----------
        base : DualEncoder or ImageGenerator
            Not changed.
        training : Training
        out : Path
            Folder of the new model: missing, empty, or with the model of the same record.
        seed : int
        trust_remote_code : bool
            As the base was loaded. A base whose name is Python code is trusted.
        progress : callable, optional

        Returns
        -------
        DualEncoder or ImageGenerator
            Loaded from `out`; `info.name` loads it again.

        Raises
        ------
        InputError
            When the recipe cannot learn from this data.
        RunError
            When `out` holds something else, another process trains there, or the state of a
            training is of another one.
        ModelError
            When the model cannot be trained, or the loss is not finite.
        """
        info = base.info
        name = f"{self._write(base, training, out, seed, progress)}:{out}"
        trusted = trust_remote_code or is_code(info.name.partition(":")[0])
        options = Options(name, info.device, info.dtype, trust_remote_code=trusted)
        if info.backend != "torch":
            options = replace(options, backend=info.backend)
        adapter, folder = find_adapter(name, makes_images=self.makes_images)
        model: ModelT = adapter.load(folder, options)
        return model

    @abstractmethod
    def _write(
        self,
        base: AnyModel,
        training: Training,
        out: Path,
        seed: int,
        progress: Progress | None,
    ) -> str:
        """Write the model unless it is complete; return the prefix of its name."""


class WrappedRecipe(Recipe):
    """A recipe that trains no weights: it changes texts or vectors around a model."""

    def _write(
        self,
        base: AnyModel,
        training: Training,
        out: Path,
        seed: int,
        progress: Progress | None,
    ) -> str:
        record = build_record(self, base, seed, self._inputs(training))
        if not has_model(out, record):
            refuse_occupied(out)
            wrapping = self._wrap(base, training, progress)
            wrapping = replace(wrapping, record={**record, **wrapping.record})
            with new_run(out) as partial:
                save_wrapped(partial, base.info, wrapping, destination=out)
        return "equipoise"

    def _inputs(self, training: Training) -> dict[str, Any]:
        return {"texts": digest_texts(training.texts), "subjects": sorted(training.subjects)}

    @abstractmethod
    def _wrap(self, base: Any, training: Training, progress: Progress | None) -> Wrapping:
        """Return the changes around the base model, and their record."""


def build_record(
    recipe: Recipe,
    base: Model,
    seed: int,
    inputs: Mapping[str, Json],
    torch: "ModuleType | None" = None,
) -> dict[str, Json]:
    """Return the settings and inputs that determine a model."""
    versions = {"equipoise": __version__}
    if torch is not None:
        versions["torch"] = str(torch.__version__)
    record = {
        **recipe.model_dump(),
        "base": {"key": base.info.key, "weights_sha256": base.info.weights_sha256},
        "seed": seed,
        "inputs": inputs,
        "versions": versions,
    }
    return {**record, "digest": _sha256(record)}


def _sha256(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_texts(texts: Sequence[SubjectTexts]) -> str:
    """Return a SHA-256 of the texts of subjects."""
    return _sha256(
        [
            [
                subject_texts.subject,
                subject_texts.neutral,
                subject_texts.attributed,
                [*map(dict, subject_texts.values)],
            ]
            for subject_texts in texts
        ]
    )


def digest_images(images: Images, *columns: AnyArray) -> str:
    """Return a SHA-256 of images and of their columns."""
    digest = sha256()
    for column in columns:
        digest.update(json.dumps(column.tolist()).encode())
    for row in range(len(images)):
        digest.update(read_content(images, row))
    return digest.hexdigest()


def has_model(out: Path, record: Mapping[str, Json]) -> bool:
    """Return whether a folder holds the complete model of this record."""
    trained = out / RECORD
    try:
        settings = read_json_file(trained if trained.is_file() else out / SETTINGS)
        return bool(settings.get("record", settings)["digest"] == record["digest"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def refuse_occupied(out: Path) -> None:
    """Refuse to write over anything.

    Raises
    ------
    RunError
        When the folder exists and is not empty, or a file has its name.
    """
    existing_path = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not existing_path.is_dir() or (existing_path == out and any(out.iterdir())):
        raise RunError(
            f"{out}: the folder isn't empty, and a model is never overwritten. To do: name "
            "another folder, or remove this one"
        )


STATE = "state.pt"
# Most steps between two writings of the state.
_SAVE_EVERY = 100
_DIGEST = sha256().digest_size


@dataclass(frozen=True)
class Plan:
    """How long to train, and when to check the validation loss.

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
    loss : callable
        Loss of a step's batch, which depends on the number of the step alone.
    validation : callable, optional
        Loss on the validation subjects.
    """

    weights: Mapping[str, Any]
    steps: int
    learning_rate: float
    look_every: int
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

    patience: PositiveInt = 4
    dtype: Dtype = "auto"

    def _write(
        self,
        base: AnyModel,
        training: Training,
        out: Path,
        seed: int,
        progress: Progress | None,
    ) -> str:
        subject, plan = self._begin(base, training, seed)
        record = build_record(self, base, seed, self._inputs(training), subject.torch)
        folder = out.with_name(f"{out.name}.training")
        if not has_model(out, record):
            refuse_occupied(out)
            with lock_folder(folder):
                digest, path = str(record["digest"]), folder / STATE
                state = _fit_weights(subject.torch, plan, self.patience, digest, path, progress)
                outcome = {
                    **record,
                    "steps": state.step,
                    "kept_step": state.best_step if plan.validation else state.step,
                    "validation": [list(pair) for pair in state.losses],
                }
                with new_run(out) as partial:
                    subject.save(partial, outcome)
        # A run that was killed after it wrote the model leaves its state behind.
        remove_folder(folder)
        return subject.prefix

    def _inputs(self, training: Training) -> dict[str, Any]:
        return {
            "texts": digest_texts(training.texts),
            "validation_texts": digest_texts(training.validation),
            "subjects": sorted(training.subjects),
        }

    @abstractmethod
    def _begin(self, base: Any, training: Training, seed: int) -> tuple[Trainable | Shifts, Plan]:
        """Return the model to train, and the plan."""


def _fit_weights(
    torch: Any, plan: Plan, patience: int, record: str, path: Path, progress: Progress | None
) -> State:
    """Train, or resume training, and restore the best weights."""
    parameters = [*plan.weights.values()]
    optimizer = torch.optim.AdamW(
        parameters, lr=plan.learning_rate, weight_decay=0.0, foreach=False
    )
    state, best = State(), _copied(plan)
    if saved_state := read_state(path, record):
        state, best = State(**saved_state["state"]), saved_state["best"]
        _restore(torch, plan, saved_state["weights"])
        optimizer.load_state_dict(saved_state["optimizer"])

    if not state.losses:
        _validate(torch, plan, state, best)
    while state.step < plan.steps and state.worse < patience:
        if progress is not None:
            progress("training", state.step, plan.steps)
        loss = plan.loss(state.step)
        state.step += 1
        if not math.isfinite(float(loss.detach())):
            raise ModelError(
                f"the loss of step {state.step} is not finite. To do: a lower learning_rate, or "
                "dtype: float32"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=False)
        optimizer.step()
        if state.step == plan.steps or state.step % plan.look_every == 0:
            _validate(torch, plan, state, best)
        if state.step % min(plan.look_every, _SAVE_EVERY) == 0:
            checkpoint = {"state": vars(state), "weights": _copied(plan), "best": best}
            save_state(path, record, checkpoint | {"optimizer": optimizer.state_dict()})
    if plan.validation is not None:
        _restore(torch, plan, best)
    return state


def _validate(torch: Any, plan: Plan, state: State, best: dict[str, Any]) -> None:
    """Check the validation loss where there is one, and keep the best weights."""
    if plan.validation is None:
        return
    with torch.no_grad():
        value = float(plan.validation())
    state.losses.append((state.step, value))
    state.worse += 1
    if value < state.best:
        state.best, state.best_step, state.worse = value, state.step, 0
        best.update(_copied(plan))


def _copied(plan: Plan) -> dict[str, Any]:
    return {name: weight.detach().clone() for name, weight in plan.weights.items()}


def _restore(torch: Any, plan: Plan, values: Mapping[str, Any]) -> None:
    with torch.no_grad():
        for name, weight in plan.weights.items():
            weight.copy_(values[name])


def save_state(path: Path, record: str, state: Mapping[str, Any]) -> None:
    """Write the state of a training after its checksum, whole or not at all."""
    content = BytesIO()
    runtimes.torch("hf").save({"record": record, **state}, content)
    write(path, sha256(content.getvalue()).digest() + content.getvalue())


def read_state(path: Path, record: str) -> dict[str, Any] | None:
    """Return the state of a training; None if missing, or damaged (a warning).

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
    state: dict[str, Any] = runtimes.torch("hf").load(
        BytesIO(content), map_location="cpu", weights_only=True
    )
    if state["record"] != record:
        raise RunError(
            f"{path}: a training with other data, settings or libraries was stopped here. To do: "
            "remove this file, or name another output"
        )
    return state
