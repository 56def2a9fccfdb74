"""What is run before an audit of generation: captions become images, and images vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.audits.generation import making, reading
from equipoise.audits.generation.config_inputs import ImagesConfig
from equipoise.audits.generation.texts import captions_of, texts_of, values_of
from equipoise.audits.running.asked import array_of, matrix
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.core.errors import ConfigError
from equipoise.evidence.prompts import Prompts, prompts

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.config_filters import FiltersConfig
    from equipoise.audits.running.config import RunConfig
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Ran, Runner
    from equipoise.evidence.pictures import Pictures


def prepare(config: Config, runner: Runner) -> Prepared:
    """Make the images of captions, and run the models that the filters name.

    Raises
    ------
    ConfigError
        When a model is of another kind than its filter needs.
    """
    if config.images is not None and not config.models:
        return Prepared.nothing(config)
    found = None if config.images is not None else making.made(config, runner)
    if found is None:
        table, pictures, _ = reading.read(config, runner.base)
    else:
        table, pictures = found.table, found.pictures
    filters, ran = _filtered(config, table, pictures, runner)
    update: dict[str, Any] = {"filters": filters}
    if found is not None:
        update |= {"attributes": config.types, "name": config.called, **_kept(found)}
    prepared = gathered(
        config,
        config.model_copy(update=update),
        known={},
        ran=ran,
        members=lambda _: _members(config, table),
    )
    return prepared if found is None else _told(prepared, found)


def _kept(found: making.Made) -> dict[str, Any]:
    """Return the images as the audit reads them; a plan keeps what is to be made beside them."""
    if found.folder is not None:
        images = ImagesConfig(generations=found.folder)
        return {"images": images, "captions": None, "generator": None}
    frame = ImagesConfig(
        table=found.table,
        candidate="candidate",
        state="state",
        combination="attributes",
        subject="subject",
    )
    return {"images": frame}


def _told(prepared: Prepared, found: making.Made) -> Prepared:
    """Add the model that makes images to what is told of those that look at them."""
    runs = ({"model": making.NAME, "on": "captions", **found.pending},) if found.pending else ()
    models = {making.NAME: found.info} if found.info else {}
    return replace(
        prepared,
        inputs={**found.inputs, **prepared.inputs},
        models={**models, **prepared.models},
        runs=(*runs, *prepared.runs),
    )


def _members(config: Config, table: pa.Table) -> Members:
    columns = {name: reading.objects(table[name]) for name in config.types}
    return members_of(reading.objects(table["image_id"]), columns, config.compared)


def _filtered(
    config: Config, table: pa.Table, pictures: Pictures | None, runner: Runner
) -> tuple[FiltersConfig, list[Ran]]:
    """Put what models said in place of their names."""
    filters = config.filters
    if pictures is None or not config.models:
        return filters, []
    ran: list[Ran] = []
    update: dict[str, Any] = {}
    alike, content, shown = filters.similarity, filters.content, filters.attributes
    if alike is not None and alike.model is not None:
        with _named("similarity"):
            runner.offer("similarity", alike, "encoder")
            seen = runner.images("similarity", alike, pictures)
            told = runner.texts(
                "similarity", alike, _as_they_are(captions_of(table)), what="captions"
            )
        ran += [seen, told]
        update["similarity"] = without_model(alike, images=seen.vectors, captions=told.vectors)
    if content is not None and content.model is not None:
        with _named("content"):
            said = runner.probabilities("content", content, pictures, expected=content.unsafe)
        ran.append(said)
        scores = array_of(said.table["id"], matrix(said), said.names or content.unsafe)
        update["content"] = without_model(content, scores=scores)
    looks: RunConfig | None = shown
    if shown is not None and shown.model is None and shown.images is None:
        looks = alike
    if shown is not None and looks is not None and looks.model is not None:
        texts = texts_of(shown, values_of(table, config.types))
        with _named("attributes" if looks is shown else "similarity"):
            name = "attributes" if looks is shown else "similarity"
            runner.offer(name, looks, "encoder")
            meant = runner.texts(name, looks, _as_they_are([*texts.values()]), what="values")
            found = {"texts": meant.vectors}
            ran.append(meant)
            if looks is shown:
                own = runner.images(name, looks, pictures)
                ran.append(own)
                found["images"] = own.vectors
        update["attributes"] = without_model(shown, **found)
    return filters.model_copy(update=update), ran


def without_model(section: Any, **found: Any) -> Any:
    """Return a section whose model has run, with what it said."""
    fields: Mapping[str, Any] = type(section).model_fields
    gone = (
        "model", "revision", "device", "dtype", "backend", "allow_pickle", "trust_remote_code",
    )  # fmt: skip
    return section.model_copy(update={name: fields[name].get_default() for name in gone} | found)


def _as_they_are(texts: Sequence[str]) -> Prompts:
    return prompts(tuple(dict.fromkeys(texts)), ("{}",))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the key that a model stands under."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"models.{name}.", f"filters.{name}.", 1)) from None
