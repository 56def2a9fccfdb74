"""What is run before an audit of counterfactual sets: that of retrieval, on neutral prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.config_rankings import QueriesConfig
from equipoise.audits.counterfactuals.config import ModelConfig
from equipoise.audits.counterfactuals.layout import laid_out
from equipoise.audits.pictures.known import Known, known, need_pictures
from equipoise.audits.retrieval import running as retrieval
from equipoise.audits.running.asked import to_run
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import load_items

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.config import Config
    from equipoise.audits.counterfactuals.config_quality import QualityConfig
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.audits.running.runner import Ran, Runner

REFERENCE = "quality.reference"


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, see `equipoise.audits.retrieval.running.prepare`.

    Models embed the images of `quality.reference`, too; and pictures are described where
    `quality.layout` asks for it.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, a model is of another kind, or prefixes make a
        prompt twice.
    """
    seen: list[Known[PicturesConfig]] = []

    def prompts(found: Known[PicturesConfig]) -> QueriesConfig | None:
        seen.append(found)
        if config.queries is not None or not to_run(config.models):
            return config.queries
        return _neutral(config, found.items, runner)

    prepared = retrieval.prepare(config, runner, prompts)
    if config.quality is None:
        return prepared
    found = seen[0] if seen else known(config.data.images, runner.base)
    return _with_quality(config, config.quality, prepared, found, runner)


def _neutral(config: Config, images: PicturesConfig, runner: Runner) -> QueriesConfig:
    """Return the neutral prompts of every subject of the images, by subject."""
    from equipoise.counterfactuals.neutral import neutral_prompts

    column = config.data.subject
    items = load_items(images.source(runner.base, (column,)), what="images")
    subjects = sorted({str(one) for one in items.columns[column] if one is not None})
    if not subjects:
        raise ConfigError(
            f"data.subject: no image has a {column!r}; name the column of what images show"
        )
    try:
        table = neutral_prompts(subjects, config.openings)
    except InputError as error:
        raise ConfigError(f"prefixes: {error}") from None
    return QueriesConfig(table=table, id="prompt", subject="subject")


def _with_quality(
    config: Config,
    asked: QualityConfig,
    prepared: Prepared,
    images: Known[PicturesConfig],
    runner: Runner,
) -> Prepared:
    """Add what the section on quality needs of pictures and models."""
    ready: Any = prepared.config
    quality: dict[str, Any] = {}
    models = {name: _of_files(one) for name, one in ready.models.items()}
    ran: list[Ran] = []
    references: dict[str, Known[Any]] = {}
    if asked.reference is not None:
        found = known(asked.reference, runner.base, place=REFERENCE)
        quality["reference"], references["reference"] = found.items, found
        for name, given in to_run(config.models).items():
            one = models[name]
            if one.images is not None:
                pictures = need_pictures(found, why=f"models.{name}.model", place=REFERENCE)
                ran.append(runner.images(name, given, pictures, what="reference"))
                models[name] = one.model_copy(update={"reference": ran[-1].vectors})
    if asked.layout:
        pictures = need_pictures(images, why="quality.layout")
        quality |= {"layout": False, **laid_out(pictures, runner)}
    update = {"quality": asked.model_copy(update=quality), "models": models}
    more = gathered(
        config,
        ready.model_copy(update=update),
        known=references,
        ran=ran,
        members=lambda _: {},
    )
    return _together(prepared, more)


def _of_files(given: Any) -> ModelConfig:
    """Return the files of a model, as one of this audit."""
    if isinstance(given, ModelConfig):
        return given
    return ModelConfig(images=given.images, queries=given.queries, scores=given.scores)


def _together(one: Prepared, more: Prepared) -> Prepared:
    """Return what was prepared first, and what was added to it."""
    counts = {**one.counts, **{key: value for key, value in more.counts.items() if key != "models"}}
    models = {name: dict(held) for name, held in one.counts.get("models", {}).items()}
    for name, held in more.counts.get("models", {}).items():
        models[name] = {**models.get(name, {}), **held}
    return replace(
        more,
        inputs={**one.inputs, **more.inputs},
        counts={**counts, **({"models": models} if models else {})},
        models={**one.models, **more.models},
        failures=pa.concat_tables([one.failures, more.failures]),
        runs=(*one.runs, *more.runs),
        notes=(*one.notes, *more.notes),
    )
