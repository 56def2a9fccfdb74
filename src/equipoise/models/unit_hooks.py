"""Units of a layer, and the hook that changes them while a module runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from equipoise.core.errors import ModelError

Mode = Literal["clamp", "balance"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""What becomes of a unit: its mean, or what makes the opposing sets equally active."""


@dataclass(frozen=True)
class LayerEdit:
    """Units of one layer.

    Attributes
    ----------
    layer : str
        Its name in the module.
    axis : int
        Where units lie in what the layer gives: 1 (channels first) or -1.
    units : tuple of int
        Their places.
    sets : tuple of int
        Which of the opposing sets each belongs to.
    means, spreads : tuple of float
        Mean and standard deviation of each over images.
    """

    layer: str
    axis: int
    units: tuple[int, ...]
    sets: tuple[int, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]


def hook_of(one: LayerEdit, mode: Mode, torch: Any) -> Any:
    """Return what replaces the output of a layer."""

    def hook(_module: Any, _inputs: Any, output: Any) -> Any:
        changed = output.clone().movedim(one.axis, -1)
        if max(one.units) >= changed.shape[-1]:
            raise ModelError(
                f"the layer {one.layer!r} has {changed.shape[-1]} units, and unit "
                f"{max(one.units)} was to be changed"
            )
        units = torch.tensor(one.units, device=output.device)
        means, spreads = (
            torch.tensor(values, device=output.device, dtype=output.dtype)
            for values in (one.means, one.spreads)
        )
        if mode == "clamp":
            changed[..., units] = means
        else:
            changed[..., units] = _balanced(changed[..., units], one.sets, means, spreads, torch)
        return changed.movedim(-1, one.axis)

    return hook


def _balanced(given: Any, sets: Sequence[int], means: Any, spreads: Any, torch: Any) -> Any:
    """Shift each set until all are equally active, in standard deviations from their means."""
    standard = (given - means) / spreads
    names = sorted(set(sets))
    members = [torch.tensor([one == name for one in sets], device=given.device) for name in names]
    active = torch.stack([standard[..., one].mean(dim=-1) for one in members], dim=-1)
    # A set without an opponent in its layer goes to its own mean.
    wanted = active.mean(dim=-1, keepdim=True) if len(names) > 1 else torch.zeros_like(active)
    which = torch.tensor([names.index(one) for one in sets], device=given.device)
    return (standard + (wanted - active)[..., which]) * spreads + means
