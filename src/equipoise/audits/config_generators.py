"""What the schemas of models that make images have in common: their name, and how they are run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import BeforeValidator, Field, PlainSerializer, WrapValidator

from equipoise.audits.config_problems import nearest
from equipoise.audits.running.config import Device, Dtype, ExtractionConfig

if TYPE_CHECKING:
    from equipoise.evidence.asking import RunOptions

_PREFIXES = ("diffusers", "python")


def _generator(value: object) -> object:
    """Take a name, `prefix:rest`, or a loaded model, which says what it is."""
    if hasattr(value, "info") and hasattr(value, "generate"):
        return value
    prefix, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and rest and prefix in _PREFIXES and "\0" not in rest:
        return value
    raise ValueError(
        "expected a name such as 'diffusers:stable-diffusion-v1-5/stable-diffusion-v1-5', with one "
        f"of {', '.join(f'{one}:' for one in _PREFIXES)}"
        f"{nearest(prefix, _PREFIXES) if prefix else ''}"
    )


def _as_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else f"(loaded) {value.info.name}"


def _unless_none(value: object, known: Callable[[object], object]) -> object:
    return None if value is None else known(value)


Generator = Annotated[Any, BeforeValidator(_generator), PlainSerializer(_as_text)]
"""Name of a model that makes images, or a model."""

OptionalGenerator = Annotated[Generator, WrapValidator(_unless_none)]
"""The same, or None where images were made elsewhere."""

Steps = Annotated[int, Field(ge=1, le=10_000)]
"""Denoising steps."""

Guidance = Annotated[float, Field(ge=0, le=1000, strict=False)]
"""Strength of guidance."""

Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Of the noise."""


class Loads(Protocol):
    """A section that says how its model is loaded."""

    @property
    def revision(self) -> str | None:
        """Commit or tag."""

    @property
    def device(self) -> Device | None:
        """Where it runs."""

    @property
    def dtype(self) -> Dtype | None:
        """Precision of its weights."""

    @property
    def allow_pickle(self) -> bool:
        """Whether weights may be pickles."""

    @property
    def trust_remote_code(self) -> bool:
        """Whether code beside the weights may run."""


def options_of(given: Loads, every: ExtractionConfig) -> RunOptions:
    """Return how a model is loaded: as it says, else as the section `extraction` says."""
    from equipoise.evidence.asking import RunOptions

    return RunOptions(
        device=given.device or every.device,
        dtype=given.dtype or every.dtype,
        revision=given.revision,
        allow_pickle=given.allow_pickle,
        trust_remote_code=given.trust_remote_code,
    )


def located_generator(model: Any, base: Path) -> Any:
    """Return the name of a model with a folder beside the configuration in full; a model as it is.

    Parameters
    ----------
    model : str or model
    base : Path
        Folder of the configuration.
    """
    prefix, _, rest = model.partition(":") if isinstance(model, str) else ("", "", "")
    beside = base / rest
    return f"{prefix}:{beside}" if prefix == "diffusers" and beside.exists() else model
