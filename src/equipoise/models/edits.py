"""The prefix ``edited:``: a model some of whose units are changed while it runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import ModelError
from equipoise.models.info import ModelInfo
from equipoise.models.insides import Insides, insides
from equipoise.models.options import Options
from equipoise.models.protocols import Classifier, DualEncoder
from equipoise.models.registry import absolute, adapter, find_adapter, load_nested, relative
from equipoise.models.unit_hooks import MODES, LayerEdit, Mode, hook_of

Floats = npt.NDArray[np.float32]
FORMAT = "equipoise units 1"


@dataclass(frozen=True)
class UnitEdit:
    """What is changed in a model, and in which.

    Attributes
    ----------
    model, revision : str, str or None
        Name of the model, and its commit.
    weights_sha256 : str
        Digest of its weights: the edit is of these.
    mode : "clamp" or "balance"
        "clamp": each unit gives its mean, whatever the image. "balance": the units of each of the
        opposing sets are shifted, by as much for each in standard deviations, until the sets are
        equally active; units of a set that has no opponent in its layer are shifted to their mean.
    layers : tuple of LayerEdit
    """

    model: str
    revision: str | None
    weights_sha256: str
    mode: Mode
    layers: tuple[LayerEdit, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of all that changes what the model gives."""
        facts = [self.mode, [asdict(one) for one in self.layers]]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def __len__(self) -> int:
        """Return the number of units."""
        return sum(len(one.units) for one in self.layers)

    def write(self, path: Path) -> None:
        """Write the edit as a small file of JSON, which ``edited:path`` names as a model.

        Raises
        ------
        ModelError
            When it cannot be written, or there is such a file that holds another edit.
        """
        facts = asdict(self) | {"model": relative(self.model, path.parent)}
        text = json.dumps({"format": FORMAT, **facts}, indent=1) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise ModelError(f"{path} is there and holds something else. To do: name a new file.")
        try:
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise ModelError(f"{path} cannot be written: {error.strerror}.") from error


def read_edit(path: Path) -> UnitEdit:
    """Read what `UnitEdit.write` wrote.

    Raises
    ------
    ModelError
        When there is no such file, or it is of another form.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"There is no file of edited units {path}.") from error
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(told, dict) or told.pop("format", None) != FORMAT:
        raise ModelError(f"{path} holds no edited units ({FORMAT!r}).")
    try:
        layers = tuple(_layer(one) for one in told.pop("layers"))
        found = UnitEdit(**told, layers=layers)
    except (TypeError, KeyError) as error:
        raise ModelError(f"{path} lacks what edited units need: {error}.") from error
    if found.mode not in MODES:
        raise ModelError(f"{path}: there is no mode {found.mode!r}; expected {' or '.join(MODES)}.")
    return found


def _layer(told: dict[str, Any]) -> LayerEdit:
    facts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return LayerEdit(**facts)


@dataclass(frozen=True, eq=False)
class Edited:
    """A model whose units are changed while it runs; made by `edited`.

    Attributes
    ----------
    info : ModelInfo
        With the edit in its key.
    base : DualEncoder or Classifier
        The model as it was, which is left as it is.
    edit : UnitEdit
    inside : Insides
        Its torch module.
    """

    info: ModelInfo
    base: Any = field(repr=False)
    edit: UnitEdit
    inside: Insides = field(repr=False)

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Have the module change its units for as long as this lasts."""
        with ExitStack() as stack:
            for one in self.edit.layers:
                hook = hook_of(one, self.edit.mode, self.inside.torch)
                handle = self.inside.layer(one.layer).register_forward_hook(hook)
                stack.callback(handle.remove)
            yield


class EditedEncoder(Edited):
    """A dual encoder; texts are embedded as before."""

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return vectors of images, (n, dimension), with units changed."""
        with self.changed():
            return self.base.embed_images(images)  # type: ignore[no-any-return]

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return vectors of texts, (n, dimension)."""
        return self.base.embed_texts(texts)  # type: ignore[no-any-return]


class EditedClassifier(Edited):
    """A classifier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(self.base.labels)

    def predict_proba(self, images: Sequence[Any]) -> Floats:
        """Return probabilities of classes, (n, classes), with units changed."""
        with self.changed():
            return self.base.predict_proba(images)  # type: ignore[no-any-return]

    def features(self, images: Sequence[Any]) -> Floats:
        """Return what the last layer sees, (n, dimension), with units changed."""
        with self.changed():
            return self.base.features(images)  # type: ignore[no-any-return]


def edited(
    model: Any, edit: UnitEdit, *, name: str | None = None
) -> EditedEncoder | EditedClassifier:
    """Return a model whose units are changed while it runs; the model itself stays as it is.

    Parameters
    ----------
    model : DualEncoder or Classifier
        That of the edit.
    edit : UnitEdit
    name : str, optional
        What it is called. Default: the model's name, the mode and how many units.

    Raises
    ------
    ModelError
        When it is another model, of another kind, cannot be hooked, or lacks a layer or a unit.
    """
    inside = insides(model)
    inside.need_torch("changing units while it runs")
    if model.info.weights_sha256 != edit.weights_sha256:
        raise ModelError(
            f"{model.info.name} has other weights than the model whose units were chosen "
            f"({edit.model}). To do: choose units of this one."
        )
    for one in edit.layers:
        inside.layer(one.layer)
    facts = {**model.info.preprocessing, "edited_units": edit.digest}
    called = name or f"{model.info.name} ({edit.mode} {len(edit)} units)"
    info = replace(model.info, name=called, preprocessing=facts)
    if isinstance(model, DualEncoder):
        return EditedEncoder(info, model, edit, inside)
    if isinstance(model, Classifier):
        return EditedClassifier(info, model, edit, inside)
    raise ModelError(
        f"{model.info.name} neither embeds images nor classifies them. "
        "To do: name a dual encoder or a classifier."
    )


@adapter("edited")
def load(target: str, options: Options) -> Any:
    """Load a model with the units changed that a file names.

    Parameters
    ----------
    target : str
        The file. A model in a folder that it names may lie beside it.
    options : Options
        What was asked; the model runs on torch.

    Raises
    ------
    ModelError
        When there is no such file, or its model cannot be loaded or is another one.
    """
    if options.backend not in {"auto", "torch"} or options.revision is not None:
        raise ModelError(
            f"{options.name} runs on torch, and its file names the revision; backend "
            f"{options.backend} and revision {options.revision} were asked for. To do: leave both "
            "out."
        )
    path = Path(target).expanduser()
    edit = read_edit(path)
    name = absolute(edit.model, path.parent)
    backend = "torch" if find_adapter(name)[0].backends else "auto"
    model = load_nested(name, options, backend=backend, revision=edit.revision)
    return edited(model, edit, name=options.name)
