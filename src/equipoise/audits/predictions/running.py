"""What is run before an audit of predictions: images and a model make a table of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.audits.running.prepared import Prepared

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.audits.pictures.known import Known
    from equipoise.audits.predictions.config import Config
    from equipoise.audits.predictions.config_inputs import ImagesConfig, ModelConfig
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Ran, Runner
    from equipoise.evidence import Pictures

_ID = "image_id"


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, and put tables of what they predict in their places.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model lacks the vocabulary or the question
        that its kind needs.
    """
    run = [name for name, model in config.models.items() if model.model is not None]
    if config.data.images is None and not run:
        return Prepared.nothing(config)
    from equipoise.audits.running.prepared import gathered

    found = known_images(config.data, runner.base)
    data = config.data.tabled(found.items)
    models: dict[str, ModelConfig] = dict(config.models)
    ran: list[Ran] = []
    for name in run:
        pictures = pictures_of(found, name)
        models[name], said = _predicted(runner, name, models[name], pictures)
        ran += said
    ready = config.model_copy(update={"data": data, "models": models})
    return gathered(
        config,
        ready,
        known={"images": found},
        ran=ran,
        members=lambda _: members_of_groups(data, runner.base),
    )


def known_images(data: ImagesConfig, base: Path) -> Known[Any]:
    """Read what is known of the images: of `images`, or of the table of labels."""
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.audits.pictures.known import known

    images = data.images or PicturesConfig.model_construct(
        table=data.table,
        id=data.id,
        missing=data.missing,
        encoding=data.encoding,
        delimiter=data.delimiter,
    )
    return known(images, base, columns=data.columns)


def pictures_of(found: Known[Any], name: str) -> Pictures:
    """Return where the pixels are that a model runs on."""
    from equipoise.audits.pictures.known import need_pictures

    return need_pictures(found, why=f"models.{name}.model")


def members_of_groups(data: ImagesConfig, base: Path) -> Members:
    """Return the ids of the images of every group."""
    from equipoise.audits.config_arrays import located
    from equipoise.audits.running.failed import members_of
    from equipoise.data import ItemSource, load_items

    source = ItemSource(
        table=located(data.table, base),
        id=str(data.id),
        columns=data.attributes,
        missing=data.missing,
        encoding=data.encoding,
        delimiter=data.delimiter,
    )
    items = load_items(source)
    return members_of(items.ids, items.columns, data.groups)


def _predicted(
    runner: Runner, name: str, given: ModelConfig, pictures: Pictures
) -> tuple[ModelConfig, list[Ran]]:
    """Run a model; return its section as that of a table, and what ran."""
    from equipoise.audits.predictions import chosen

    offer = runner.offer(name, given, *chosen.offers(given))
    made = chosen.MAKERS[offer](runner, name, given, pictures)
    table, ranks = chosen.ranked_table(made)
    read: dict[str, Any] = {"top": ranks} if len(ranks) > 1 else {"prediction": ranks[0]}
    section = given.tabled(
        {"": frozenset(pictures.ids.tolist()).difference(made.ids)},
        made.offered,
        table=table,
        id=_ID,
        open_vocabulary=given.open_vocabulary or made.free,
        **read,
    )
    return section, [*made.ran]
