"""The prefix ``edited:``: a model with some components changed at run time."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, PlainValidator, TypeAdapter

from equipoise.core import Floats32, ModelError, record
from equipoise.core.files import read_regular
from equipoise.core.writing import write
from equipoise.models.hub import refuse_revision
from equipoise.models.images import Images, as_rgb, pillow_images
from equipoise.models.info import ModelInfo
from equipoise.models.preprocessing import Recipe, read_transformers
from equipoise.models.protocols import Classifier, DualEncoder, Model, PairScorer
from equipoise.models.registry import (
    Options,
    Preview,
    absolute,
    adapter,
    find_adapter,
    load_nested,
    relative,
)
from equipoise.models.runtimes import Placement
from equipoise.models.runtimes import torch as imported_torch
from equipoise.models.towers import torch_only

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Mode = Literal["clamp", "balance", "remove", "reverse"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""What a changed component becomes: its mean, what balances opposing sets, 0, or its reflection."""


def _array(value: npt.ArrayLike | None) -> Floats32 | None:
    return None if value is None else np.asarray(value, dtype=np.float32)


Array = Annotated[Floats32 | None, PlainValidator(_array)]


@record
class Site:
    """Components in a layer of a model: units, or directions and features of units.

    Attributes
    ----------
    layer : str
        Name of the layer in the module.
    axis : int
        Where units lie in the tensor: 1 (channels first) or -1.
    units : tuple of int
        Places of the units; () takes all.
    sets : tuple of int
        Which of the opposing sets each component belongs to.
    means, spreads : tuple of float
        Mean and standard deviation of each component over images. Of a head that is recorded,
        means of its units.
    side : "output" or "input"
        Whether the tensor is the output or the first input of the layer.
    first : bool
        Whether only the first place counts, such as a class token.
    read, write : ndarray of float32, shape (k, units), optional
        Component c of k is the dot product of the units with ``read[c]``, and a change of it is
        added to them along ``write[c]``. None: the units themselves.
    bias, thresholds : ndarray of float32, shape (k,), optional
        Added to a component; a component at or below its threshold is 0.
    name : str
        Of a part of the layer, such as "head 3 of layer 2".
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    layer: str
    axis: int = -1
    units: tuple[int, ...] = ()
    sets: tuple[int, ...] = ()
    means: tuple[float, ...] = ()
    spreads: tuple[float, ...] = ()
    side: Literal["output", "input"] = "output"
    first: bool = False
    read: Array = None
    write: Array = None
    bias: Array = None
    thresholds: Array = None
    name: str = ""

    def __len__(self) -> int:
        """Return the number of components that change."""
        return len(self.means)

    def select(self, places: Sequence[int]) -> "Site":
        """Return the site with only some components, by unit number or position."""
        if self.read is None:
            return replace(self, units=tuple(places))
        read, write, bias, thresholds = (
            None if array is None else array[[*places]]
            for array in (self.read, self.write, self.bias, self.thresholds)
        )
        return replace(self, read=read, write=write, bias=bias, thresholds=thresholds)

    def hook(self, module: "Module", change: Callable[["Tensor"], "Tensor | None"]) -> Any:
        """Call a function with the layer's tensor at each run; it may replace the tensor.

        Returns
        -------
        torch.utils.hooks.RemovableHandle
        """

        def replaced(tensors: "Tensor | tuple[Tensor, ...]") -> Any:
            if not isinstance(tensors, tuple):
                return change(tensors)
            new = change(tensors[0])
            return None if new is None else (new, *tensors[1:])

        if self.side == "input":
            return module.register_forward_pre_hook(lambda _, inputs: replaced(inputs))
        return module.register_forward_hook(lambda _, _inputs, output: replaced(output))

    def components(self, values: "Tensor") -> "Tensor":
        """Return the components, (..., k), of a tensor with its units last.

        Raises
        ------
        ModelError
            When the layer has fewer units, or another number than directions and features read.
        """
        width = values.shape[-1]
        if self.units and max(self.units) >= width:
            raise ModelError(
                f"the layer {self.layer!r} has {width} units, and unit "
                f"{max(self.units)} was to be changed"
            )
        values = values[..., [*self.units]] if self.units else values
        if self.read is None:
            return values
        if self.read.shape[1] != values.shape[-1]:
            raise ModelError(
                f"the layer {self.layer!r} has {values.shape[-1]} units; expected "
                f"{self.read.shape[1]}, which a direction or feature is read of"
            )
        active = values @ values.new_tensor(self.read).T
        if self.bias is not None:
            active = active + values.new_tensor(self.bias)
        if self.thresholds is not None:
            active = active * (active > values.new_tensor(self.thresholds))
        return active

    def pool(self, tensor: "Tensor") -> "Tensor":
        """Return components averaged over places, or at the first place, shape (n, k)."""
        values = tensor.movedim(self.axis, -1)
        values = values.reshape(len(tensor), -1, values.shape[-1])
        return self.components(values[:, :1] if self.first else values).float().mean(dim=1)

    def change(self, mode: Mode, tensor: "Tensor") -> "Tensor":
        """Return the tensor of the site with its components changed."""
        changed_tensor = tensor.clone().movedim(self.axis, -1)
        values = changed_tensor[:, :1] if self.first else changed_tensor
        active = self.components(values)
        new = self._target(active, mode)
        places = [*self.units] if self.units else slice(None)
        if self.write is not None:
            new = values[..., places] + (new - active) @ values.new_tensor(self.write)
        values[..., places] = new
        return changed_tensor.movedim(-1, self.axis)

    def _target(self, active: "Tensor", mode: Mode) -> "Tensor":
        """Return the target values of the components, shape (..., k)."""
        if mode == "remove":
            return active * 0.0
        means, spreads = active.new_tensor([self.means, self.spreads])
        if mode == "clamp":
            return means.expand_as(active)
        if mode == "reverse":
            return 2.0 * means - active
        # Each set is shifted until all are equally active, in standard deviations.
        standard, shift = (active - means) / spreads, active * 0.0
        members: dict[int, list[int]] = {}
        for position, opposing_set in enumerate(self.sets):
            members.setdefault(opposing_set, []).append(position)
        groups = [members[name] for name in {*self.sets}]
        levels = [standard[..., positions].mean(dim=-1, keepdim=True) for positions in groups]
        # A set without an opponent in its layer goes to its own mean.
        shared = sum(levels) / len(levels) if len(levels) > 1 else 0.0
        for positions, level in zip(groups, levels, strict=True):
            shift[..., positions] = shared - level
        return (standard + shift) * spreads + means


@record
class Insides:
    """A model's torch module, with the function that prepares its images.

    Attributes
    ----------
    model : object
        As it was loaded.
    torch : module
        The library.
    module : torch.nn.Module
        The whole of it, all towers.
    recipe : Recipe or None
        How an image is resized and cut before the model sees it; None where that is not known.
    backend : str
        What runs its tower for images: hooks see what torch runs, and nothing else.
    """

    model: Any
    torch: Any
    module: Any
    recipe: Recipe | None
    backend: str
    prepare: Callable[[Images], Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return str(self.model.info.name)

    def inputs(self, images: Images) -> dict[str, "Tensor"]:
        """Return the module's inputs for images, on its device."""
        inputs = self.prepare(as_rgb(images))
        weight = next(iter(self.module.parameters()))
        placement = Placement(str(weight.device), str(weight.dtype).partition(".")[2], self.torch)
        return placement.put(inputs)

    def layer(self, name: str) -> "Module":
        """Return a layer by its name.

        Raises
        ------
        ModelError
            When there is none of that name; it names the nearest, else the last.
        """
        layers = dict(self.module.named_modules())
        if name and name in layers:
            return layers[name]
        suggestions = get_close_matches(name, layers, n=6, cutoff=0.5) or [*layers][-6:]
        raise ModelError(
            f"{self.name} has no layer {name!r}. To do: name one of its {len(layers) - 1} layers, "
            f"such as {', '.join(map(repr, suggestions))}."
        )

    def need_torch(self, purpose: str) -> None:
        """Refuse a model with an image tower on another backend.

        Raises
        ------
        ModelError
            When it does; `why` says what torch is needed for.
        """
        if self.backend != "torch":
            raise ModelError(
                f"{self.name} runs on {self.backend}, and {purpose} needs torch. "
                "To do: backend: torch."
            )


def image_method(model: Model) -> Callable[[Images], Floats32]:
    """Return the method that runs a model over images.

    Raises
    ------
    ModelError
        When it neither embeds images nor classifies them.
    """
    if isinstance(model, DualEncoder):
        return model.embed_images
    if isinstance(model, Classifier):
        return model.predict_proba
    raise ModelError(
        f"{model.info.name} neither embeds images nor classifies them. "
        "To do: name a dual encoder or a classifier."
    )


def insides(model: Model) -> Insides:
    """Return the torch module inside a model.

    Parameters
    ----------
    model : DualEncoder, Classifier, PairScorer or Answerer
        One of transformers, open_clip or timm; or any other whose `model`
        is a torch module and whose `prepare` makes tensors by name of images.

    Raises
    ------
    ModelError
        When there is none, as in a graph of ONNX.
    MissingExtraError
        When torch is not installed.
    """
    torch = imported_torch("hf")
    module = getattr(model, "model", None)
    if isinstance(module, Model):  # a model that is loaded when it has to run
        return insides(module)
    prepare = getattr(model, "prepare", None)
    recipe = getattr(prepare, "recipe", None)
    processor = getattr(getattr(model, "processor", None), "image_processor", None)
    if prepare is None and processor is not None:
        settings = json.loads(processor.to_json_string())
        recipe = read_transformers(settings, getattr(processor, "backend", ""))

        def prepare(images: Images) -> Mapping[str, Any]:
            inputs: Mapping[str, Any] = processor(images=pillow_images(images), return_tensors="pt")
            return inputs

    if not isinstance(module, torch.nn.Module) or prepare is None:
        raise ModelError(
            f"{model.info.name} has no layers that can be looked into: it isn't a module of torch. "
            "To do: name a model of hf:, open_clip: or timm:, or a factory whose model has the "
            "module as `model` and a `prepare` that makes tensors of images."
        )
    tower = getattr(model, "tower", None)
    backend = tower.placement.backend if tower is not None else "torch"
    return Insides(model, torch, module, recipe, backend, prepare)


@dataclass(frozen=True)
class UnitEdit:
    """Changes of components of a model: units, directions of heads, features.

    Attributes
    ----------
    model, revision : str, str or None
        Name of the model, and its commit.
    weights_sha256 : str
        Digest of its weights: the edit is of these.
    mode : "clamp", "balance", "remove" or "reverse"
        "clamp": each component gives its mean, whatever the image. "balance": the components of
        each of the opposing sets are shifted, by as much for each in standard deviations, until the
        sets are equally active; a set without an opponent in its layer is shifted to its mean.
        "remove": each component gives 0. "reverse": each component is reflected at its mean.
    layers : tuple of Site
    """

    model: str
    revision: str | None
    weights_sha256: str
    mode: Mode
    layers: tuple[Site, ...]
    format: Literal["equipoise units 1"] = "equipoise units 1"

    @property
    def digest(self) -> str:
        """SHA-256 of every setting that changes the model's outputs."""
        facts = [self.mode, [asdict(site) for site in self.layers]]
        text = json.dumps(facts, sort_keys=True, default=np.ndarray.tolist)
        return hashlib.sha256(text.encode()).hexdigest()

    def __len__(self) -> int:
        """Return the number of components."""
        return sum(map(len, self.layers))

    def write(self, path: Path) -> None:
        """Write the edit as a small file of JSON, which ``edited:path`` names as a model.

        Raises
        ------
        ModelError
            When it cannot be written, or there is such a file that holds another edit.
        """
        facts = asdict(self) | {"model": relative(self.model, path.parent)}
        text = json.dumps(facts, indent=1, default=np.ndarray.tolist) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise ModelError(f"{path} is there and holds something else. To do: name a new file.")
        write(path, text.encode())


def read_edit(path: Path) -> UnitEdit:
    """Read an edit from a file of `UnitEdit.write`.

    Raises
    ------
    ModelError
        When there is no such file, or it is of another form.
    """
    try:
        return TypeAdapter(UnitEdit).validate_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} isn't a file of edited units: {error}.") from error


@record
class Edited:
    """A model with components changed at run time; made by `edited`.

    Attributes
    ----------
    info : ModelInfo
        With the edit in its key.
    base : DualEncoder, Classifier or PairScorer
        The model as it was, which is left as it is.
    edit : UnitEdit
    inside : Insides
        Its torch module.
    """

    info: ModelInfo
    base: Any
    edit: UnitEdit
    inside: Insides

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Have the module change its components for as long as this lasts."""
        with ExitStack() as stack:
            for site in self.edit.layers:
                change = partial(site.change, self.edit.mode)
                stack.callback(site.hook(self.inside.layer(site.layer), change).remove)
            yield


class EditedEncoder(Edited):
    """A dual encoder."""

    def embed_images(self, images: Images) -> Floats32:
        """Return vectors of images, (n, dimension), with components changed."""
        with self.changed():
            return self.base.embed_images(images)  # type: ignore[no-any-return]

    def embed_texts(self, texts: Sequence[str]) -> Floats32:
        """Return vectors of texts, (n, dimension), with components changed."""
        with self.changed():
            return self.base.embed_texts(texts)  # type: ignore[no-any-return]


class EditedScorer(Edited):
    """A model that matches images with texts."""

    def score(self, images: Images, texts: Sequence[str]) -> Floats32:
        """Return probabilities of a match, (n, m), with components changed."""
        with self.changed():
            return self.base.score(images, texts)  # type: ignore[no-any-return]


class EditedClassifier(Edited):
    """A classifier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(self.base.labels)

    def predict_proba(self, images: Images) -> Floats32:
        """Return probabilities of classes, (n, classes), with components changed."""
        with self.changed():
            return self.base.predict_proba(images)  # type: ignore[no-any-return]

    def features(self, images: Images) -> Floats32:
        """Return inputs of the last layer, (n, dimension), with components changed."""
        with self.changed():
            return self.base.features(images)  # type: ignore[no-any-return]


def edited(
    model: Model, edit: UnitEdit, *, name: str | None = None
) -> EditedEncoder | EditedClassifier | EditedScorer:
    """Return a model with components changed at run time; the original is unchanged.

    Parameters
    ----------
    model : DualEncoder, Classifier or PairScorer
        That of the edit.
    edit : UnitEdit
    name : str, optional
        Name of the edited model. Default: the model's name, the mode and the number of components.

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
    for site in edit.layers:
        inside.layer(site.layer)
    facts = {**model.info.preprocessing, "edited_units": edit.digest}
    edited_name = name or f"{model.info.name} ({edit.mode} {len(edit)})"
    info = replace(model.info, name=edited_name, preprocessing=facts)
    if isinstance(model, PairScorer):
        return EditedScorer(info, model, edit, inside)
    image_method(model)
    kind = EditedEncoder if isinstance(model, DualEncoder) else EditedClassifier
    return kind(info, model, edit, inside)


def _preview(target: str) -> Preview:
    read_edit(Path(target).expanduser())
    return Preview()


@adapter("edited", preview=_preview)
def load(target: str, options: Options) -> Model:
    """Load a model with the components changed that a file names.

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
    torch_only(options, "a model with changed units")
    refuse_revision(target, options)
    path = Path(target).expanduser()
    edit = read_edit(path)
    name = absolute(edit.model, path.parent)
    backend = "torch" if find_adapter(name)[0].backends else "auto"
    model = load_nested(name, options, backend=backend, revision=edit.revision)
    return edited(model, edit, name=options.name)
