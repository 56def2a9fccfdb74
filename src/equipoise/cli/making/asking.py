"""From a configuration to images, or to what making them would take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.config_fields import ExtractionConfig

if TYPE_CHECKING:
    from equipoise.cli.making.config import MakingConfig
    from equipoise.counterfactuals import Generated, Planned

Progress = Callable[[str, int, int | None], None]


def generate(config: MakingConfig, base: Path, progress: Progress | None = None) -> Generated:
    """Make what is missing.

    Raises
    ------
    EquipoiseError
        See `generate_sets`.
    """
    from equipoise.counterfactuals import generate_prompts, generate_sets

    more = _how(config) | {"progress": progress}
    model, store = config.generator.located(base), base / config.store
    if config.captions is not None:
        return generate_sets(config.captions.sets(), model, store, **_of_sets(config), **more)
    assert config.prompts is not None  # noqa: S101 - the schema sees to it
    prompts = config.prompts.read(base)
    return generate_prompts(prompts, model, store, images=config.prompts.images, **more)


def plan(config: MakingConfig, base: Path) -> Planned:
    """Say what making the images would take; no model is loaded."""
    from equipoise.counterfactuals import plan_prompts, plan_sets

    more = _how(config)
    model, store = config.generator.located(base), base / config.store
    if config.captions is not None:
        return plan_sets(config.captions.sets(), model, store, **_of_sets(config), **more)
    assert config.prompts is not None  # noqa: S101 - the schema sees to it
    prompts = config.prompts.read(base)
    return plan_prompts(prompts, model, store, images=config.prompts.images, **more)


def _how(config: MakingConfig) -> dict[str, Any]:
    given = config.generator
    return {
        "seed": given.seed,
        "sampling": given.sampling,
        "options": given.options(ExtractionConfig()),
        "part": config.part,
        "max_failures": config.max_failures,
    }


def _of_sets(config: MakingConfig) -> dict[str, Any]:
    return {
        name: getattr(config.generator, name) for name in ("candidates", "shared", "shared_self")
    }
