"""A dual encoder as a torch module for training: vectors with gradients, and a folder to load."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal

from equipoise.core import ModelError, record
from equipoise.core.types import Json
from equipoise.core.writing import copy as copy_file
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.hf import HfDualEncoder
from equipoise.models.hub import fetch_folder
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo, write_settings
from equipoise.models.open_clip import SETTINGS, WEIGHTS, OpenClipEncoder
from equipoise.models.protocols import DualEncoder
from equipoise.models.registry import Options
from equipoise.models.runtimes import open_clip, quiet, saving, transformers
from equipoise.models.wrapped import Draws, Wrapping, save_wrapped

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

RECORD = "mitigation.json"
"""File beside the weights of a trained model."""

Towers = Literal["both", "texts", "images"]
_IMAGES = ("vision_model.", "visual_projection.", "visual.", "image_model.", "image_projection.")
_SCALES = ("logit_scale", "logit_bias")


@record
class Trainable:
    """A copy of a model in float32, and how it turns images and texts into vectors.

    Attributes
    ----------
    encoder : HfDualEncoder or OpenClipEncoder
        Around the copy: the base stays as it is.
    computes : str
        "float32", or the dtype of autocast in the towers.
    """

    encoder: HfDualEncoder | OpenClipEncoder
    computes: str

    @property
    def torch(self) -> ModuleType:
        """The library."""
        library: ModuleType = self.encoder.placement.torch
        return library

    @property
    def model(self) -> "PreTrainedModel":
        """The module to train."""
        model: PreTrainedModel = self.encoder.model
        return model

    @property
    def prefix(self) -> str:
        """Prefix of the name that loads a folder that `save` wrote."""
        return self.encoder.info.name.partition(":")[0]

    def images(self, images: Images) -> "Tensor":
        """Return a tensor of vectors of images, (n, dimension) in float32, not normalised."""
        placement, tower = replace(self.encoder.placement, dtype="float32"), self.encoder.tower
        inputs = placement.put(tower.prepare(images))
        return tower.call(self.model, inputs)[0].float()

    def pixels(self, levels: "Tensor") -> "Tensor":
        """Return vectors of images as `images` does, with gradients of their pixels.

        Parameters
        ----------
        levels : tensor, shape (n, 3, height, width)
            In [0, 1].

        Raises
        ------
        ModelError
            When it is not known how the model resizes images.
        """
        tower = self.encoder.tower
        recipe = tower.prepare.recipe
        if recipe is None or recipe.size is None:
            raise ModelError(
                f"{self.encoder.info.name} prepares images by code of its own, which has no "
                "gradients. To do: name another dual encoder"
            )
        size = recipe.resized(*levels.shape[2:])
        if size != tuple(levels.shape[2:]):
            levels = self.torch.nn.functional.interpolate(
                levels, size=size, mode=recipe.mode, antialias=True
            )
        (top, left), (height, width) = recipe.corner(*size), recipe.size
        levels = levels[:, :, top : top + height, left : left + width]
        mean, std = levels.new_tensor([recipe.mean, recipe.std])[..., None, None]
        inputs = {"pixel_values": (255.0 * levels - mean) / std}
        return tower.call(self.model, inputs)[0].float()

    def texts(self, texts: Sequence[str]) -> "Tensor":
        """Return a tensor of vectors of texts, (n, dimension) in float32, not normalised."""
        return self.encoder.encode(texts).float()

    def weights(self, towers: Towers) -> dict[str, "Tensor"]:
        """Return the parameters to train, by name; the others are frozen."""
        chosen = {}
        for name, weight in self.model.named_parameters():
            tower = "images" if name.startswith(_IMAGES) else "texts"
            trained = towers == "both" or (not name.startswith(_SCALES) and tower == towers)
            weight.requires_grad_(trained)
            if trained:
                chosen[name] = weight
        return chosen

    def autocast(self) -> AbstractContextManager[None]:
        """Return the context in which the towers run."""
        if self.computes == "float32":
            return nullcontext()
        context: AbstractContextManager[None] = self.torch.autocast(
            self.encoder.placement.device.partition(":")[0],
            dtype=getattr(self.torch, self.computes),
        )
        return context

    def save(self, folder: Path, record: Mapping[str, Json]) -> None:
        """Write a folder that `load_model` opens, with the record of the model."""
        _write_settings(self.encoder.info, folder)
        if isinstance(self.encoder, OpenClipEncoder):
            from safetensors.torch import save_file

            state = self.model.state_dict()
            weights = {name: value.contiguous().clone() for name, value in state.items()}
            with saving(folder):
                save_file(weights, folder / WEIGHTS[0])
        else:
            with quiet(transformers()), saving(folder):
                self.model.save_pretrained(folder)
        write_settings(folder / RECORD, record)


@record
class Shifts:
    """Shifts of the embedding of prompts, one for each value of an attribute.

    Attributes
    ----------
    base : DiffusersGenerator
    draws : Draws
    torch : module
    mixed : tensor, shape (combinations, values)
        1 where a combination has a value.
    values : torch.nn.Parameter, shape (values, 1, dimension)
    """

    base: DiffusersGenerator
    draws: Draws
    torch: ModuleType
    mixed: "Tensor"
    values: "Tensor"
    prefix: ClassVar[str] = "equipoise"

    def combined(self) -> "Tensor":
        """Return shifts by combination, (combinations, 1, dimension)."""
        return self.torch.einsum("kv,vtd->ktd", self.mixed, self.values)

    def save(self, folder: Path, record: Mapping[str, Json]) -> None:
        """Write a folder that `load_generator` opens, with the record of the model."""
        shifts = self.combined().detach().cpu().numpy()
        save_wrapped(
            folder, self.base.info, Wrapping(draws=self.draws, shifts=shifts, record=record)
        )


def trainable(encoder: DualEncoder, computes: str = "auto") -> Trainable:
    """Return a copy of a model that can be trained.

    Parameters
    ----------
    encoder : DualEncoder
        Of ``hf:``, ``open_clip:``, ``slip:``, ``laclip:`` or ``alip:``.
    computes : str
        "float32"; "bfloat16" or "float16" for autocast; "auto": bfloat16 on a GPU, else float32.

    Raises
    ------
    ModelError
        If it is no torch module of these libraries.
    """
    if not isinstance(encoder, HfDualEncoder | OpenClipEncoder):
        raise ModelError(
            f"{encoder.info.name} is a {type(encoder).__name__}, whose weights cannot be trained "
            "here. To do: name a dual encoder of hf: or open_clip:, or use a recipe that trains "
            "nothing (prompt_ensemble, matched_prompts)"
        )
    # No dropout while training: its draws would be part of the state to resume from.
    model = copy.deepcopy(encoder.model).float().eval()
    if computes == "auto":
        computes = "float32" if encoder.placement.device == "cpu" else "bfloat16"
    return Trainable(replace(encoder, model=model), computes)


def _write_settings(info: ModelInfo, folder: Path) -> None:
    """Write the files next to the weights: tokenizer, image processor, templates."""
    prefix, _, target = info.name.partition(":")
    hub = target.removeprefix("hf-hub:")
    source = Path(target).expanduser()
    if source.is_file():  # as the prefixes of authors name it: all is in the weights
        return
    if not source.is_dir() and prefix == "open_clip" and hub == target:
        settings = {
            "model_cfg": open_clip().get_model_config(str(info.preprocessing["architecture"])),
            "preprocess_cfg": dict(info.preprocessing["image_settings"]),
        }
        write_settings(folder / SETTINGS, settings)
        return
    patterns = ("*.json", "*.txt", "*.model", "*.jinja")
    if not source.is_dir():
        options = Options(info.name, revision=info.revision, fetch=False)
        source = fetch_folder(hub, options, patterns)
    for path in sorted({path for pattern in patterns for path in source.glob(pattern)}):
        if path.name != RECORD and not path.name.endswith(".index.json"):
            copy_file(path, folder / path.name)
