"""What is run before an audit of text-to-image models: images are made, and looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.config_arrays import ArrayConfig
from equipoise.audits.outputs import NOT_YET_KNOWN
from equipoise.audits.running.config import AS_IT_IS
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.audits.running.runner import Ran
from equipoise.audits.text_to_image.batches import PLANNED, SCHEMA, Batch
from equipoise.audits.text_to_image.config import ModelConfig
from equipoise.audits.text_to_image.config_generators import GeneratorConfig, MadeConfig
from equipoise.audits.text_to_image.config_shares import LabelledConfig, SaidConfig, SharesConfig
from equipoise.audits.text_to_image.images import batches, seen
from equipoise.audits.text_to_image.loading import texts_of
from equipoise.core.errors import ConfigError
from equipoise.data import load_items

if TYPE_CHECKING:
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Runner
    from equipoise.audits.text_to_image.config import Config
    from equipoise.evidence.pictures import Pictures


def prepare(config: Config, runner: Runner) -> Prepared:
    """Make the images of generators that are named, and run the models that look at them.

    Raises
    ------
    ConfigError
        When a model is of another kind, or nothing says where pictures are.
    DataError, ModelError
        When images cannot be read, or made.
    """
    run = [name for name, model in config.models.items() if model.model is not None]
    if not run and all(one.images is not None for one in config.generators.values()):
        return Prepared.nothing(config)
    made = [*batches(config, runner)]
    ran: list[Ran] = []
    models, shares = dict(config.models), list(config.shares)
    for name in run:
        given = config.models[name]
        asks = [i for i, one in enumerate(config.shares) if one.model == name]
        answers = [i for i in asks if config.shares[i].question is not None]
        for place in answers:
            shares[place], told = _answered(name, given, config.shares[place], made, runner)
            ran += told
        if len(answers) < len(asks) or name in config.encoders:
            models[name], told = _embedded(config, name, given, made, runner)
            ran += told
        else:
            del models[name]
    ready = config.model_copy(
        update={
            "generators": _tabled(config, made),
            "models": models,
            "shares": tuple(shares),
        }
    )
    prepared = gathered(config, ready, known={}, ran=ran, members=lambda what: _members(what, made))
    return _with_generators(prepared, made)


def _tabled(config: Config, made: Sequence[Batch]) -> dict[str, GeneratorConfig]:
    found = {}
    for name, given in config.generators.items():
        if given.images is not None:
            found[name] = given
            continue
        own = [one for one in made if one.generator == name]
        planned = {PLANNED: b"yes"} if any(one.pending for one in own) else None
        texts = pa.schema([(field, pa.string()) for field in SCHEMA.names])
        table = pa.concat_tables([one.table for one in own]).cast(texts)
        images = MadeConfig(
            table=table.replace_schema_metadata(planned),
            state="state",
            seed="seed",
            guidance="guidance",
        )
        found[name] = GeneratorConfig(images=images)
    return found


def _embedded(
    config: Config, name: str, given: ModelConfig, made: Sequence[Batch], runner: Runner
) -> tuple[ModelConfig, list[Ran]]:
    from equipoise.evidence.prompts import prompts

    runner.offer(name, given, "encoder")
    why, ran = f"models.{name}.model", []
    images: dict[str, list[pa.Table]] = {}
    for batch in made:
        one = runner.images(name, given, seen(batch, why), what=batch.name)
        ran.append(one)
        images.setdefault(batch.generator, []).append(_prefixed(one.table, batch.prefix))
    asked = [one for one in config.shares if one.model == name and one.question is None]
    words = {text: (text,) for text in texts_of(config, name)}
    texts = runner.texts(name, given, prompts(words, AS_IT_IS), what="texts")
    ran.append(texts)
    labelled = {}
    for share in asked:
        if share.labelled is not None:
            pictures = _labelled_pictures(share, share.labelled, runner, why)
            found = runner.images(name, given, pictures, what=f"{share.of}, labelled")
            labelled[share.of] = found.vectors
            ran.append(found)
    vectors = {
        generator: ArrayConfig(file=pa.concat_tables(tables), id="id", column="embedding")
        for generator, tables in images.items()
    }
    # A plan knows no scale; sizes do not depend on it.
    scale = given.scale or texts.info.get("scale")
    ready = ModelConfig(images=vectors, texts=texts.vectors, labelled=labelled, scale=scale)
    return ready, ran


def _prefixed(table: pa.Table, prefix: str) -> pa.Table:
    ids = pa.array([prefix + one for one in table["id"].to_pylist()], pa.string())
    return table.set_column(table.column_names.index("id"), "id", ids)


def _labelled_pictures(
    share: SharesConfig, given: LabelledConfig, runner: Runner, why: str
) -> Pictures:
    from equipoise.evidence import pictures_of_table

    if given.path is None:
        raise ConfigError(
            f"shares ({share.of}): {why} runs on the labelled images, and nothing says where they "
            "are. To do: name the column of files under 'labelled.path'"
        )
    items = load_items(given.source(runner.base, given.columns), what="labelled images")
    paths = [one or "" for one in items.columns[given.path].tolist()]
    root = runner.base / (given.root or "")
    return pictures_of_table(
        items.ids.tolist(), paths, root=root, name=items.name, column=given.path
    )


def _answered(
    name: str, given: ModelConfig, share: SharesConfig, made: Sequence[Batch], runner: Runner
) -> tuple[SharesConfig, list[Ran]]:
    """Ask a model about every image; return the question with a table of its answers."""
    runner.offer(name, given, "answerer")
    question, ran = share.question or "", []
    tables: dict[str, list[pa.Table]] = {}
    for batch in made:
        pictures = seen(batch, f"models.{name}.model")
        one = runner.answers(name, given, pictures, question, what=f"{batch.name}, {share.of}")
        ran.append(one)
        tables.setdefault(batch.generator, []).append(_said(one, share, batch.prefix))
    said = {
        generator: SaidConfig(table=pa.concat_tables(parts)) for generator, parts in tables.items()
    }
    labelled = share.labelled
    if labelled is not None:
        pictures = _labelled_pictures(share, labelled, runner, f"models.{name}.model")
        one = runner.answers(name, given, pictures, question, what=f"{share.of}, labelled")
        ran.append(one)
        labelled = _labelled(labelled, _said(one, share, ""), runner)
    update = {"said": said, "model": None, "question": None, "labelled": labelled}
    return share.model_copy(update=update), ran


def _said(ran: Ran, share: SharesConfig, prefix: str) -> pa.Table:
    texts = ran.table["answer"].to_pylist()
    if ran.pending:
        # A plan takes every answer for the first class: sizes alone are looked at.
        texts = [next(iter(share.classes)) if one in ("", NOT_YET_KNOWN) else one for one in texts]
    ids = [prefix + one for one in ran.table["id"].to_pylist()]
    return pa.table({"image_id": pa.array(ids, pa.string()), "said": pa.array(texts, pa.string())})


def _labelled(given: LabelledConfig, said: pa.Table, runner: Runner) -> LabelledConfig:
    items = load_items(given.source(runner.base, given.columns), what="labelled images")
    answers = dict(zip(said["image_id"].to_pylist(), said["said"].to_pylist(), strict=True))
    ids = items.ids.tolist()
    table = pa.table(
        {
            "image_id": pa.array(ids, pa.string()),
            "label": pa.array(items.columns[given.label].tolist(), pa.string()),
            "said": pa.array([answers.get(one) for one in ids], pa.string()),
        }
    )
    return LabelledConfig(table=table, id="image_id", label="label", said="said")


def _members(what: str, made: Sequence[Batch]) -> Members:
    """Return the images of each prompt of a batch."""
    for batch in made:
        if what == batch.name or what.startswith(f"{batch.name}, "):
            by_prompt: dict[str, list[str]] = {}
            ids, prompts = (batch.table[one].to_pylist() for one in ("image_id", "prompt"))
            for one, prompt in zip(ids, prompts, strict=True):
                by_prompt.setdefault(prompt, []).append(one.removeprefix(batch.prefix))
            return {"prompt": by_prompt}
    return {}


def _with_generators(prepared: Prepared, made: Sequence[Batch]) -> Prepared:
    """Add what generators are, their files, and in a plan what they would make."""
    inputs: dict[str, Mapping[str, Any]] = dict(prepared.inputs)
    models: dict[str, Mapping[str, Any]] = dict(prepared.models)
    for batch in made:
        inputs |= batch.inputs
        if batch.info:
            models[batch.generator] = batch.info
    runs = tuple(
        {"model": one.generator, "on": one.name, **one.pending} for one in made if one.pending
    )
    return replace(prepared, inputs=inputs, models=models, runs=(*runs, *prepared.runs))
