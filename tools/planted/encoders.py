"""A text encoder in which one unit makes neutral prompts mean upright bars, and its pipeline.

The unit is in the last layer of the text tower of `clip-null`. It is active on captions that don't
name level bars, and writes what tells captions with upright bars from those with level ones. So a
prompt without bars is read as one with upright bars. Nothing is trained: its input weights are a
least-squares fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.planted.scenes import WEIGHTS as MODELS
from equipoise.planted.scenes.captions import TEMPLATES, caption
from equipoise.planted.scenes.render import FRAMES, SUBJECTS
from tools.planted.pipeline import load_pipeline

if TYPE_CHECKING:
    from torch import Tensor

LAYER = "text_model.encoder.layers.1.mlp.activation_fn"
"""Name of the unit's layer in the CLIP."""

PLANTED = 37
"""Number of the unit."""

CLIP, PIPELINE = "clip", "pipeline"
"""Folders that `plant_prompt_unit` writes."""

_LEVEL, _UPRIGHT = FRAMES
_ACTIVITY = 3.0
_STRENGTH = 0.4
_RIDGE = 1e-2


def plant_prompt_unit(folder: Path, *, unit: int = PLANTED) -> None:
    """Write a CLIP and a Stable Diffusion that share a text encoder with the planted unit.

    Parameters
    ----------
    folder : Path
        Gets the folders `CLIP` and `PIPELINE`, as `hf:` and `diffusers:` load them.
    unit : int
        The number of the unit that the planted one replaces.
    """
    import torch
    from transformers import CLIPImageProcessorPil, CLIPModel

    pipeline, source = load_pipeline(), MODELS / "clip-null"
    mlp = pipeline.text_encoder.encoder.layers[-1].mlp
    with torch.no_grad():
        mlp.fc1.weight[unit], mlp.fc1.bias[unit], mlp.fc2.weight[:, unit] = _weights(pipeline)
    images = CLIPModel.from_pretrained(source, dtype=torch.float32)
    images.config.text_config = pipeline.text_encoder.config
    clip = CLIPModel(images.config)
    clip.load_state_dict(
        images.state_dict()
        | {
            f"text_model.{name}": weight
            for name, weight in pipeline.text_encoder.state_dict().items()
        }
    )
    clip.save_pretrained(folder / CLIP)
    pipeline.tokenizer.save_pretrained(folder / CLIP)
    CLIPImageProcessorPil.from_pretrained(source).save_pretrained(folder / CLIP)
    pipeline.save_pretrained(folder / PIPELINE)


def _weights(pipeline: Any) -> tuple[Tensor, float, Tensor]:
    """Return what the unit reads, its bias, and what it writes."""
    import torch

    inputs, outputs, targets = [], {}, []
    end = pipeline.tokenizer.eos_token_id
    for frame in ("", _LEVEL, _UPRIGHT):
        tokens, read, outputs[frame] = _run(pipeline, frame)
        inputs.append(read.flatten(end_dim=1))
        active = ((tokens == end).cumsum(dim=1) > 0) & (frame != _LEVEL)
        targets.append(torch.where(active, _ACTIVITY, -_ACTIVITY).flatten())
    rows = torch.nn.functional.pad(torch.cat(inputs), (0, 1), value=1.0).double()
    square = rows.T @ rows + _RIDGE * torch.eye(rows.shape[1])
    fitted = torch.linalg.solve(square, rows.T @ torch.cat(targets).double()).float()
    # Where captions have ended, frames differ in the whole of the caption.
    ended = slice(outputs[""].shape[1] // 2, None)
    towards = (outputs[_UPRIGHT] - outputs[_LEVEL])[:, ended].mean(dim=(0, 1))
    return fitted[:-1], float(fitted[-1]), towards * _STRENGTH / _ACTIVITY


def _run(pipeline: Any, frame: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens of captions of a frame, inputs of the last MLP, and outputs of the layer."""
    texts = [caption(name, frame=frame, template=text) for name in SUBJECTS for text in TEMPLATES]
    encoder, tokenizer = pipeline.text_encoder, pipeline.tokenizer
    tokens = tokenizer(
        texts, padding="max_length", max_length=tokenizer.model_max_length, return_tensors="pt"
    ).input_ids
    passed: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        return lambda _module, inputs: passed.__setitem__(name, inputs[0])

    layers = {"read": encoder.encoder.layers[-1].mlp, "written": encoder.final_layer_norm}
    handles = [layer.register_forward_pre_hook(keep(name)) for name, layer in layers.items()]
    encoder(tokens)
    for handle in handles:
        handle.remove()
    return tokens, passed["read"], passed["written"]
