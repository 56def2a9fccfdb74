"""Units of an image encoder that respond to a group: found, looked at, changed, and measured."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.mitigate.neurons.choosing import choose_units, random_units
    from equipoise.mitigate.neurons.measures import Trial, compare_models
    from equipoise.mitigate.neurons.recording import Recording, record_units
    from equipoise.mitigate.neurons.searching import Found, find_units
    from equipoise.mitigate.neurons.selectivity import Selectivity, selectivity
    from equipoise.mitigate.neurons.sweeping import sweep_units
    from equipoise.models.edits import UnitEdit, edited, read_edit

_HERE = "equipoise.mitigate.neurons"
_HOMES = {
    "Found": f"{_HERE}.searching",
    "Recording": f"{_HERE}.recording",
    "Selectivity": f"{_HERE}.selectivity",
    "Trial": f"{_HERE}.measures",
    "UnitEdit": "equipoise.models.edits",
    "choose_units": f"{_HERE}.choosing",
    "compare_models": f"{_HERE}.measures",
    "edited": "equipoise.models.edits",
    "find_units": f"{_HERE}.searching",
    "random_units": f"{_HERE}.choosing",
    "read_edit": "equipoise.models.edits",
    "record_units": f"{_HERE}.recording",
    "selectivity": f"{_HERE}.selectivity",
    "sweep_units": f"{_HERE}.sweeping",
}

__all__ = [
    "Found",
    "Recording",
    "Selectivity",
    "Trial",
    "UnitEdit",
    "choose_units",
    "compare_models",
    "edited",
    "find_units",
    "random_units",
    "read_edit",
    "record_units",
    "selectivity",
    "sweep_units",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: reading a record needs no model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.mitigate.neurons' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
