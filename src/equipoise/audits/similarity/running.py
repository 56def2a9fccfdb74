"""What is run before an audit of similarity: that of retrieval, and the model's own scale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from equipoise.audits.retrieval import running as retrieval
from equipoise.audits.similarity.config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from equipoise.audits.config_rankings import ModelConfig as Ran
    from equipoise.audits.config_rankings import RankingAudit
    from equipoise.audits.running.prepared import Prepared
    from equipoise.audits.running.runner import Runner
    from equipoise.audits.similarity.config import Config


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, see `equipoise.audits.retrieval.running.prepare`.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model is of another kind.
    """
    prepared = retrieval.prepare(cast("RankingAudit", config), runner)
    if prepared.config is config:
        return prepared
    ready = cast("Config", prepared.config)
    models = {
        name: _scaled(one, config.models[name], prepared.models.get(name, {}))
        for name, one in ready.models.items()
    }
    notes = (*prepared.notes, *_replaced(config, prepared.models))
    return replace(prepared, config=ready.model_copy(update={"models": models}), notes=notes)


def _replaced(config: Config, infos: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, info in infos.items():
        given, own = config.models[name].scale, info.get("scale")
        if None not in (given, own) and given != own:
            yield (
                f"{name}: models.{name}.scale, {given:g}, stands in place of the model's own, "
                f"{own:.4g}: gaps in logits are not those that the model itself sees."
            )


def _scaled(ready: Ran, asked: ModelConfig, info: Mapping[str, Any]) -> ModelConfig:
    """Return a model with the scale that was given, or that it has itself for its cosines."""
    own = info.get("scale") if ready.images is not None else None
    return ModelConfig(
        images=ready.images,
        queries=ready.queries,
        scores=ready.scores,
        scale=asked.scale if asked.scale is not None else own,
    )
