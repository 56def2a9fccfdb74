"""The prefix ``edited:`` of generators: a pipeline with components of its text encoder changed."""

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core import ModelError
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.edits import Insides, UnitEdit, insides, read_edit
from equipoise.models.generators import ImageGenerator
from equipoise.models.registry import INNER, Options, absolute, adapter, find_adapter, load_nested

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_ENCODER = "text_encoder"
_ROUNDING, _NOTHING = 2.0**-8, 1e-7
"""Weights that are stored in bfloat16 or float16 differ by less."""


def edited_generator(
    generator: ImageGenerator, edit: UnitEdit, inside: Insides, *, name: str | None = None
) -> DiffusersGenerator:
    """Return a generator with components of its text encoder changed; the original is unchanged.

    Parameters
    ----------
    generator : DiffusersGenerator
        Of several text encoders, those with the weights of the edit's model are edited.
    edit : UnitEdit
        Of layers of a text tower.
    inside : Insides
        The model of the edit.
    name : str, optional
        Name of the edited generator. Default: its name, the mode and the number of components.

    Raises
    ------
    ModelError
        When the generator has no text encoder, none has the weights of the edit's model, or the
        edit is of a layer that the encoder lacks.
    """
    if not isinstance(generator, DiffusersGenerator):
        raise ModelError(
            f"{generator.info.name} has no text encoder that can be edited. To do: name a model of "
            "diffusers:."
        )
    if inside.model.info.weights_sha256 != edit.weights_sha256:
        raise ModelError(
            f"{inside.name} has other weights than the model whose units were chosen. "
            "To do: choose units of this one."
        )
    pipeline, places = copy(generator.pipeline), dict[str, str]()
    for encoder_name, encoder in _encoders(pipeline):
        prefix = _place_in(inside.module, encoder)
        if prefix is not None:
            places[encoder_name] = prefix
            setattr(pipeline, encoder_name, _hooked(encoder, edit, prefix, generator.info.name))
    if not places:
        names = ", ".join(encoder_name for encoder_name, _ in _encoders(pipeline)) or "none"
        raise ModelError(
            f"no text encoder of {generator.info.name} ({names}) has the weights of {inside.name}, "
            "whose units were chosen. To do: choose units of the model that the encoder is part of."
        )
    facts = {**generator.info.preprocessing, "edited_units": edit.digest, "edited_in": [*places]}
    edited_name = name or f"{generator.info.name} ({edit.mode} {len(edit)})"
    info = replace(generator.info, name=edited_name, preprocessing=facts)
    return DiffusersGenerator(info, pipeline, generator.placement)


def _encoders(pipeline: Any) -> Iterator[tuple[str, "Module"]]:
    """Yield the text encoders of a pipeline with their names."""
    for name, part in sorted(pipeline.components.items()):
        if name.startswith(_ENCODER) and part is not None:
            yield name, part


def _place_in(module: "Module", encoder: "Module") -> str | None:
    """Return what precedes an encoder's names in a model with the same weights, if it has them."""
    weights, parts = dict(module.named_parameters()), dict(encoder.named_parameters())
    first = next(iter(parts))
    name: str
    for name in weights:
        prefix = name.removesuffix(first)
        is_place = name.endswith(first) and (not prefix or prefix.endswith("."))
        if is_place and all(_alike(part, weights.get(prefix + n)) for n, part in parts.items()):
            return prefix
    return None


def _alike(part: "Tensor", weight: "Tensor | None") -> bool:
    """Return whether weights are the same but for rounding."""
    if weight is None or part.shape != weight.shape:
        return False
    stored = part.detach().float()
    return bool(stored.allclose(weight.detach().to(stored), rtol=_ROUNDING, atol=_NOTHING))


def _hooked(encoder: "Module", edit: UnitEdit, prefix: str, name: str) -> "Module":
    """Return an encoder that changes its components; it shares its weights with the original."""
    shared = {id(tensor): tensor for tensor in chain(encoder.parameters(), encoder.buffers())}
    hooked = deepcopy(encoder, shared)
    layers = dict(hooked.named_modules())
    for site in edit.layers:
        layer = site.layer.removeprefix(prefix)
        if not site.layer.startswith(prefix) or not layer or layer not in layers:
            raise ModelError(
                f"the edit changes {site.layer!r}, and the text encoder of {name} lacks this "
                "layer. To do: name an edit of the kind 'texts', or of a layer that it has, such "
                f"as {prefix + [*layers][-1]!r}."
            )
        site.hook(layers[layer], partial(site.change, edit.mode))
    return hooked


@adapter("edited", makes_images=True)
def load(target: str, options: Options) -> DiffusersGenerator:
    """Load a generator with the components changed that a file names.

    Parameters
    ----------
    target : str
        The file, ``#`` and the name of a generator. The model that the file names is loaded to
        compare its weights with those of the text encoders.
    options : Options

    Raises
    ------
    ModelError
        When there is no such file or generator, or the edit isn't of its text encoder.
    """
    file, mark, generator_name = target.partition(INNER)
    if not mark:
        raise ModelError(
            f"{options.name} names no model that makes images. Expected: edited:, the file, "
            f"'{INNER}' and the model, such as edited:study/edits/texts-1.json{INNER}diffusers:…"
        )
    path = Path(file).expanduser()
    edit = read_edit(path)
    generator = load_nested(generator_name, options, makes_images=True)
    chosen = absolute(edit.model, path.parent)
    backend = "torch" if find_adapter(chosen)[0].backends else "auto"
    reference = load_nested(
        chosen, options, backend=backend, revision=edit.revision, device="cpu", dtype="float32"
    )
    return edited_generator(generator, edit, insides(reference), name=options.name)
