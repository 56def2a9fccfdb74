"""What is run before an audit of diversity: images become vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.diversity.config import ModelConfig
from equipoise.audits.pictures.known import known, need_pictures
from equipoise.audits.running.asked import to_run
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.data import load_items

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from equipoise.audits.diversity.config import Config, DataConfig, ReferenceConfig
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.audits.pictures.known import Known
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Ran, Runner


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named over the images, and over those of every reference.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model has no vectors of images.
    """
    data, run = config.data, to_run(config.models)
    every = [data.images, *(one.images for one in config.references.values())]
    if not run and all(one.is_plain for one in every):
        return Prepared.nothing(config)
    found = {"images": known(data.images, runner.base, columns=data.columns)}
    ran = _embedded(config, found["images"], "images", "data.images", runner, [*run])
    references: dict[str, ReferenceConfig] = {}
    for name, about in config.references.items():
        place = f"references.{name}.images"
        found[name] = known(about.images, runner.base, place=place)
        given = [model for model in run if model not in about.models]
        said = _embedded(config, found[name], name, place, runner, given)
        vectors = {one.model: one.vectors for one in said}
        update = {"images": found[name].items, "models": {**about.models, **vectors}}
        references[name] = about.model_copy(update=update)
        ran += said
    own = {one.model: ModelConfig(**dict(one.vectors)) for one in ran if one.what == "images"}
    data = data.model_copy(update={"images": found["images"].items})
    models = {**config.models, **own}
    ready = config.model_copy(update={"data": data, "models": models, "references": references})
    return gathered(
        config, ready, known=found, ran=ran, members=lambda what: _members(what, data, runner.base)
    )


def _embedded(
    config: Config,
    found: Known[PicturesConfig],
    what: str,
    place: str,
    runner: Runner,
    models: Sequence[str],
) -> list[Ran]:
    """Run models over one set of images."""
    return [
        runner.images(
            name,
            config.models[name],
            need_pictures(found, place=place, why=f"models.{name}.model"),
            what=what,
        )
        for name in models
    ]


def _members(what: str, data: DataConfig, base: Path) -> Members:
    """Return the images of every group; a reference has none."""
    if what != "images":
        return {}
    items = load_items(data.images.source(base, data.columns), what="images")
    return members_of(items.ids, items.columns, data.sets)
