"""What is run before an audit of associations: items become vectors, or scores of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.associations.config_inputs import ModelConfig, PairsConfig
from equipoise.audits.associations.loading import needed_columns
from equipoise.audits.associations.sets import sets_of
from equipoise.audits.pictures.known import known, need_pictures
from equipoise.audits.running.asked import averaged, prompts_of, to_run
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.data import load_items

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.config_inputs import TableConfig
    from equipoise.audits.pictures.known import Known
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Offer, Ran, Runner
    from equipoise.evidence.pictures import Pictures


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named over every table.

    Dual encoders embed images and texts, classifiers images; models of pairs score the images of
    each table with the texts of each.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model is of another kind.
    """
    run = to_run(config.models)
    images = {name: one for name, one in config.data.items() if one.kind == "image"}
    if not run and all(one.is_plain for one in images.values()):
        return Prepared.nothing(config)
    found = {
        name: known(one, runner.base, columns=needed_columns(config, name), place=f"data.{name}")
        for name, one in images.items()
    }
    models = dict(config.models)
    ran: list[Ran] = []
    for name, given in run.items():
        models[name], said = _said(config, name, given, found, runner)
        ran += said
    data = {
        name: found[name].items if name in found else table for name, table in config.data.items()
    }
    ready = config.model_copy(update={"data": data, "models": models})
    return gathered(
        config, ready, known=found, ran=ran, members=lambda what: _members(what, ready, runner.base)
    )


def _said(
    config: Config,
    name: str,
    given: ModelConfig,
    found: Mapping[str, Known[TableConfig]],
    runner: Runner,
) -> tuple[ModelConfig, list[Ran]]:
    texts = [table for table, about in config.data.items() if about.kind == "text"]
    allowed: list[Offer] = ["encoder"]
    # A classifier has vectors of images alone, a model of pairs needs both sides.
    allowed += ["classifier"] if found else []
    allowed += ["scorer"] if found and texts else []
    offer = runner.offer(name, given, *allowed)
    pictures = {
        table: need_pictures(one, place=f"data.{table}", why=f"models.{name}.model")
        for table, one in found.items()
    }
    if offer == "scorer":
        return _paired(config, name, given, pictures, runner)
    ran = [runner.images(name, given, one, what=table) for table, one in pictures.items()]
    for table in texts if offer == "encoder" else ():
        prompts = prompts_of(config.data[table], runner.base, what=f"data.{table}")
        ran.append(runner.texts(name, given, prompts, what=table))
    return ModelConfig(embeddings={one.what: one.vectors for one in ran}), ran


def _paired(
    config: Config,
    name: str,
    given: ModelConfig,
    pictures: Mapping[str, Pictures],
    runner: Runner,
) -> tuple[ModelConfig, list[Ran]]:
    pairs, ran = [], []
    for texts in (table for table, about in config.data.items() if about.kind == "text"):
        prompts = prompts_of(config.data[texts], runner.base, what=f"data.{texts}")
        for images, one in pictures.items():
            scored = runner.scores(name, given, one, prompts.texts, what=images)
            read = dict(averaged(scored, prompts))
            pairs.append(PairsConfig(between=(images, texts), **read))
            ran.append(scored)
    return ModelConfig(pairs=tuple(pairs)), ran


def _members(table: str, config: Config, base: Path) -> Members:
    """Return the images of a table in every set, and in every group of a question about it."""
    columns = tuple(needed_columns(config, table))
    items = load_items(config.data[table].source(base, columns), what=table)
    chosen = {name: {table: one[table]} for name, one in config.sets.items() if table in one}
    sets = {
        name: items.ids[by_table[table]].tolist()
        for name, by_table in sets_of(chosen, {table: items}).items()
    }
    asked = [one.groups for one in config.measure if one.images == table and one.groups is not None]
    groups = [(column,) for column in dict.fromkeys(asked)]
    return {"sets": sets, **members_of(items.ids, items.columns, groups)}
