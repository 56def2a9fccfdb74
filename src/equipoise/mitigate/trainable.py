"""A dual encoder that is a torch module, as training sees it: vectors with gradients, a folder."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equipoise.core.errors import ModelError
from equipoise.mitigate.record import RECORD
from equipoise.models.hf import HfDualEncoder
from equipoise.models.hub import fetched
from equipoise.models.open_clip import SETTINGS, WEIGHTS, OpenClipEncoder
from equipoise.models.options import Options
from equipoise.models.runtimes import open_clip, quiet, transformers

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

Towers = Literal["both", "texts", "images"]
_IMAGES = ("vision_model.", "visual_projection.", "visual.", "image_model.", "image_projection.")
_SCALES = ("logit_scale", "logit_bias")


@dataclass(frozen=True, eq=False)
class Trainable:
    """A copy of a model in float32, and how it turns images and texts into vectors.

    Attributes
    ----------
    torch : module
    model : torch.nn.Module
        A copy: the encoder it was made of stays as it is.
    device : str
    computes : str
        "float32", or what autocast computes the towers with.
    images, texts : callable
        From n images or texts to a tensor of float32, (n, dimension), not normalised.
    write : callable
        Writes the weights and all that belongs to them into a folder.
    prefix : str
        Of the name that loads such a folder.
    """

    torch: Any
    model: Any
    device: str
    computes: str
    images: Callable[[Sequence[Any]], Any]
    texts: Callable[[Sequence[str]], Any]
    write: Callable[[Path], None]
    prefix: str

    @property
    def scale(self) -> Any:
        """What makes a logit of a cosine, as a tensor."""
        return self.model.logit_scale.exp()

    @property
    def bias(self) -> Any:
        """What is added to a logit, of models trained with one; else None."""
        return getattr(self.model, "logit_bias", None)

    def weights(self, towers: Towers) -> dict[str, Any]:
        """Return the parameters that are trained, by name; the others are frozen."""
        chosen = {
            name: weight for name, weight in self.model.named_parameters() if _trained(name, towers)
        }
        for weight in self.model.parameters():
            weight.requires_grad_(False)
        for weight in chosen.values():
            weight.requires_grad_(True)
        return chosen

    def autocast(self) -> AbstractContextManager[Any]:
        """Return what the towers run in."""
        if self.computes == "float32":
            return nullcontext()
        kind = self.device.partition(":")[0]
        context: AbstractContextManager[Any] = self.torch.autocast(
            kind, dtype=getattr(self.torch, self.computes)
        )
        return context

    def save(self, folder: Path, record: Mapping[str, Any]) -> None:
        """Write a folder that `load_model` opens, with a record of how it came about."""
        self.write(folder)
        text = json.dumps(dict(record), indent=1, ensure_ascii=True, sort_keys=True)
        (folder / RECORD).write_text(f"{text}\n", encoding="utf-8")


def trainable(encoder: DualEncoder, computes: str = "auto") -> Trainable:
    """Copy a model for training.

    Parameters
    ----------
    encoder : DualEncoder
        Of ``hf:`` or ``open_clip:``.
    computes : str
        "float32"; "bfloat16" or "float16" for autocast; "auto": bfloat16 on a GPU, else float32.

    Raises
    ------
    ModelError
        If it is no torch module of these libraries.
    """
    if isinstance(encoder, HfDualEncoder):
        return _of_transformers(encoder, computes)
    if isinstance(encoder, OpenClipEncoder):
        return _of_open_clip(encoder, computes)
    raise ModelError(
        f"{encoder.info.name} is a {type(encoder).__name__}, whose weights cannot be trained here. "
        "To do: name a dual encoder of hf: or open_clip:, or use a recipe that trains nothing "
        "(prompt_ensemble, direction_removal)"
    )


def _computes(device: str, asked: str) -> str:
    if asked != "auto":
        return asked
    return "float32" if device == "cpu" else "bfloat16"


def _copied(encoder: Any) -> Any:
    # No dropout while training: what is drawn then would be part of the state to resume from.
    return copy.deepcopy(encoder.model).float().eval()


def _of_transformers(encoder: HfDualEncoder, computes: str) -> Trainable:
    model, device = _copied(encoder), encoder.placement.device
    family = encoder.family

    def images(some: Sequence[Any]) -> Any:
        inputs = {
            name: value.to(device) if hasattr(value, "to") else value
            for name, value in encoder.prepare(some).items()
        }
        return family.vector(model.get_image_features(**inputs)).float()

    def texts(some: Sequence[str]) -> Any:
        given = [text.lower() for text in some] if family.lowercase else list(some)
        tokens = encoder.tokenizer(given, return_tensors="pt", **encoder.text_settings)
        return family.vector(model.get_text_features(**tokens.to(device))).float()

    def write(folder: Path) -> None:
        _copy_settings(_checkpoint(encoder), folder)
        with quiet(transformers()):
            model.save_pretrained(folder)

    torch = encoder.placement.torch
    return Trainable(torch, model, device, _computes(device, computes), images, texts, write, "hf")


def _checkpoint(encoder: HfDualEncoder) -> Path:
    from equipoise.models.hf import find_checkpoint

    name = encoder.info.name
    options = Options(name, revision=encoder.info.revision, allow_pickle=True)
    return find_checkpoint(name.partition(":")[2], options).folder


def _copy_settings(source: Path, folder: Path) -> None:
    """Copy what travels with the weights: tokenizer, image processor, templates."""
    for pattern in ("*.json", "*.txt", "*.model", "*.jinja"):
        for path in sorted(source.glob(pattern)):
            if path.name != RECORD and not path.name.endswith(".index.json"):
                shutil.copyfile(path, folder / path.name)


def _of_open_clip(encoder: OpenClipEncoder, computes: str) -> Trainable:
    model, device = _copied(encoder), encoder.placement.device
    torch = encoder.placement.torch

    def images(some: Sequence[Any]) -> Any:
        return model.encode_image(encoder.prepare(some)["pixel_values"].to(device)).float()

    def texts(some: Sequence[str]) -> Any:
        return model.encode_text(encoder.tokenizer(list(some)).to(device)).float()

    def write(folder: Path) -> None:
        from safetensors.torch import save_file

        _open_clip_settings(encoder, folder)
        weights = {name: one.contiguous().clone() for name, one in model.state_dict().items()}
        save_file(weights, folder / WEIGHTS[0])

    computed = _computes(device, computes)
    return Trainable(torch, model, device, computed, images, texts, write, "open_clip")


def _open_clip_settings(encoder: OpenClipEncoder, folder: Path) -> None:
    target = encoder.info.name.partition(":")[2]
    if Path(target).is_dir():
        _copy_settings(Path(target), folder)
        return
    if target.startswith("hf-hub:"):
        options = Options(encoder.info.name, revision=encoder.info.revision, fetch=False)
        kept = fetched(target.removeprefix("hf-hub:"), options, [SETTINGS, "*.json", "*.txt"])
        _copy_settings(kept, folder)
        return
    facts = encoder.info.preprocessing
    config = open_clip().get_model_config(str(facts["architecture"]))
    told = {"model_cfg": config, "preprocess_cfg": dict(facts["image_settings"])}
    text = json.dumps(told, indent=1, sort_keys=True)
    (folder / SETTINGS).write_text(f"{text}\n", encoding="utf-8")


def _trained(name: str, towers: Towers) -> bool:
    if name.startswith(_SCALES):
        return towers == "both"
    of_images = name.startswith(_IMAGES)
    return towers == "both" or of_images == (towers == "images")
