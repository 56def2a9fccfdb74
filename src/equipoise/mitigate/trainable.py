"""A dual encoder as a torch module for training: vectors with gradients, and a folder to load."""

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
from equipoise.mitigate.recipe import RECORD
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
        A copy: the encoder stays as it is.
    device : str
    computes : str
        "float32", or the dtype of autocast in the towers.
    images, texts : callable
        From n images or texts to a tensor of float32, (n, dimension), not normalised.
    write : callable
        Writes the weights and all that belongs to them into a folder.
    prefix : str
        Prefix of the name that loads such a folder.
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
        """Factor from a cosine to a logit, as a tensor."""
        return self.model.logit_scale.exp()

    @property
    def bias(self) -> Any:
        """Constant added to a logit, of models trained with one; else None."""
        return getattr(self.model, "logit_bias", None)

    def weights(self, towers: Towers) -> dict[str, Any]:
        """Return the parameters to train, by name; the others are frozen."""
        chosen = {}
        for name, weight in self.model.named_parameters():
            tower = "images" if name.startswith(_IMAGES) else "texts"
            trained = towers == "both" or (not name.startswith(_SCALES) and tower == towers)
            weight.requires_grad_(trained)
            if trained:
                chosen[name] = weight
        return chosen

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the towers run."""
        if self.computes == "float32":
            return nullcontext()
        context: AbstractContextManager[Any] = self.torch.autocast(
            self.device.partition(":")[0], dtype=getattr(self.torch, self.computes)
        )
        return context

    def save(self, folder: Path, record: Mapping[str, Any]) -> None:
        """Write a folder that `load_model` opens, with the record of the model."""
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
    if not isinstance(encoder, HfDualEncoder | OpenClipEncoder):
        raise ModelError(
            f"{encoder.info.name} is a {type(encoder).__name__}, whose weights cannot be trained "
            "here. To do: name a dual encoder of hf: or open_clip:, or use a recipe that trains "
            "nothing (prompt_ensemble, direction_removal)"
        )
    # No dropout while training: its draws would be part of the state to resume from.
    model = copy.deepcopy(encoder.model).float().eval()
    device = encoder.placement.device
    if computes == "auto":
        computes = "float32" if device == "cpu" else "bfloat16"
    parts = _of_open_clip if isinstance(encoder, OpenClipEncoder) else _of_transformers
    return Trainable(encoder.placement.torch, model, device, computes, *parts(encoder, model))


def _of_transformers(encoder: Any, model: Any) -> tuple[Any, ...]:
    family, device = encoder.family, encoder.placement.device

    def images(some: Sequence[Any]) -> Any:
        inputs = {
            name: value.to(device) if hasattr(value, "to") else value
            for name, value in encoder.prepare(some).items()
        }
        return family.vector(model.get_image_features(**inputs)).float()

    def texts(some: Sequence[str]) -> Any:
        words = [text.lower() if family.lowercase else text for text in some]
        tokens = encoder.tokenizer(words, return_tensors="pt", **encoder.text_settings)
        return family.vector(model.get_text_features(**tokens.to(device))).float()

    def write(folder: Path) -> None:
        from equipoise.models.hf import find_checkpoint

        info = encoder.info
        options = Options(info.name, revision=info.revision, allow_pickle=True)
        _copy_settings(find_checkpoint(info.name.partition(":")[2], options).folder, folder)
        with quiet(transformers()):
            model.save_pretrained(folder)

    return images, texts, write, "hf"


def _of_open_clip(encoder: Any, model: Any) -> tuple[Any, ...]:
    device = encoder.placement.device

    def images(some: Sequence[Any]) -> Any:
        return model.encode_image(encoder.prepare(some)["pixel_values"].to(device)).float()

    def texts(some: Sequence[str]) -> Any:
        return model.encode_text(encoder.tokenizer(list(some)).to(device)).float()

    def write(folder: Path) -> None:
        from safetensors.torch import save_file

        _write_settings(encoder, folder)
        weights = {name: value.contiguous().clone() for name, value in model.state_dict().items()}
        save_file(weights, folder / WEIGHTS[0])

    return images, texts, write, "open_clip"


def _write_settings(encoder: OpenClipEncoder, folder: Path) -> None:
    info = encoder.info
    target = info.name.partition(":")[2]
    if Path(target).is_dir():
        _copy_settings(Path(target), folder)
    elif target.startswith("hf-hub:"):
        options = Options(info.name, revision=info.revision, fetch=False)
        kept = fetched(target.removeprefix("hf-hub:"), options, [SETTINGS, "*.json", "*.txt"])
        _copy_settings(kept, folder)
    else:
        settings = {
            "model_cfg": open_clip().get_model_config(str(info.preprocessing["architecture"])),
            "preprocess_cfg": dict(info.preprocessing["image_settings"]),
        }
        text = json.dumps(settings, indent=1, sort_keys=True)
        (folder / SETTINGS).write_text(f"{text}\n", encoding="utf-8")


def _copy_settings(source: Path, folder: Path) -> None:
    """Copy the files beside the weights: tokenizer, image processor, templates."""
    for pattern in ("*.json", "*.txt", "*.model", "*.jinja"):
        for path in sorted(source.glob(pattern)):
            if path.name != RECORD and not path.name.endswith(".index.json"):
                shutil.copyfile(path, folder / path.name)
