"""What is run before an audit of concepts: images become scores by concept."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.concepts.labelling import read_labels
from equipoise.audits.concepts.rows import needed_columns, read_rows
from equipoise.audits.concepts.sources import columns_of
from equipoise.audits.config_arrays import MADE
from equipoise.audits.pictures.known import known, labels_of, need_pictures
from equipoise.audits.running.asked import (
    ID,
    array_of,
    averaged,
    filled_in,
    matrix,
    to_run,
)
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import synset_text
from equipoise.data.tables import NamedFrame
from equipoise.evidence.zero_shot import concept_scores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.config_inputs import DataConfig, LabelsConfig, ModelConfig
    from equipoise.audits.config_arrays import ArrayConfig
    from equipoise.audits.pictures.known import Known
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Ran, Runner
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, for every column that a concept has.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model is of another kind.
    """
    run = to_run(config.models)
    if not run and config.data.images.is_plain:
        return Prepared.nothing(config)
    found = known(config.data.images, runner.base, columns=needed_columns(config))
    labels = _labels(config.data, found)
    data = config.data.model_copy(update={"images": found.items, "labels": labels})
    ready = config.model_copy(update={"data": data})
    models = dict(config.models)
    ran: list[Ran] = []
    asked = _concepts(ready, runner.base) if run else ()
    for name, given in run.items():
        pictures = need_pictures(found, why=f"models.{name}.model")
        models[name], said = _said(name, given, pictures, asked, runner)
        ran += said
    ready = ready.model_copy(update={"models": models})
    return gathered(
        config,
        ready,
        known={"images": found},
        ran=ran,
        members=lambda _: _members(ready, runner.base),
    )


def _labels(given: DataConfig, found: Known[Any]) -> LabelsConfig:
    """Return the labels as given, or those that the data set has."""
    if given.labels.file is not None:
        return given.labels
    labels = NamedFrame(labels_of(found), found.name)
    update = {"file": labels, "id": ID, "concept": "label"}
    return given.labels.model_copy(update=update)


def _concepts(config: Config, base: Path) -> tuple[str, ...]:
    """Return the concepts that a model is to score: those asked for, or all that are labelled."""
    if config.concepts:
        return config.concepts
    images = read_rows(config, base).images
    return tuple(sorted(read_labels(config, images, base, frozenset()).known))


def _said(
    name: str, given: ModelConfig, pictures: Pictures, concepts: tuple[str, ...], runner: Runner
) -> tuple[ModelConfig, list[Ran]]:
    every = [columns_of(given, concepts, chosen) for chosen in (None, *given.maps)]
    columns = tuple(dict.fromkeys(one for listed in every for used in listed for one in used))
    offer = runner.offer(name, given, "encoder", "classifier", "scorer")
    if offer == "classifier":
        _has_classes(name, given)
        ran = [runner.probabilities(name, given, pictures, expected=columns)]
        return _section(given, _by_class(ran[0])), ran
    prompts = _prompts(name, given, columns)
    if offer == "scorer":
        ran = [runner.scores(name, given, pictures, prompts.texts)]
        return _section(given, averaged(ran[0], prompts)), ran
    ran = [
        runner.images(name, given, pictures),
        runner.texts(name, given, prompts, what="concepts"),
    ]
    return _section(given, _compared(name, given, *ran)), ran


def _has_classes(name: str, given: ModelConfig) -> None:
    """Refuse what is about prompts of a model that has none."""
    fields = type(given).model_fields
    for key in ("templates", "words", "score"):
        if getattr(given, key) != fields[key].get_default(call_default_factory=True):
            raise ConfigError(
                f"models.{name}.{key}: {given.called} is a classifier, whose classes are its own; "
                "name them under 'map'"
            )


def _prompts(name: str, given: ModelConfig, columns: tuple[str, ...]) -> Prompts:
    words = {one: given.words.get(one) or (_word(one),) for one in columns}
    return filled_in(words, given.templates, place=f"models.{name}")


def _word(column: str) -> str:
    """Return the words of a synset, and anything else as it is."""
    try:
        return synset_text(column)
    except InputError:
        return column


def _compared(name: str, given: ModelConfig, images: Ran, texts: Ran) -> ArrayConfig:
    """Return the similarity of every image and column."""
    scale, bias = images.info.get("scale"), images.info.get("bias")
    if scale is None and given.score != "cosine":
        raise ConfigError(
            f"models.{name}.score: {given.called} has no scale of its own for a {given.score}; "
            "expected 'cosine'"
        )
    scores = concept_scores(
        matrix(images), matrix(texts), scale=scale or 1.0, bias=bias or 0.0, of=given.score
    )
    return array_of(images.table["id"], scores, texts.table["id"].to_pylist())


def _section(given: ModelConfig, numbers: ArrayConfig) -> ModelConfig:
    """Return the section of a model as that of a table with a column for each name."""
    values = np.asarray(numbers.file["values"].combine_chunks().flatten())
    values = values.reshape(len(numbers.file), -1)
    columns = {name: values[:, place] for place, name in enumerate(numbers.names)}
    table = pa.table({ID: numbers.file["id"], **columns}, metadata=MADE)
    read = {"model": None, "file": table, "id": ID, "templates": "plain", "words": {}}
    return given.model_copy(update=read)


def _by_class(ran: Ran) -> ArrayConfig:
    """Return the probabilities of every class; ImageNet has two that are called "crane"."""
    return array_of(ran.table["id"], matrix(ran), _apart(ran.names))


def _apart(names: Sequence[str]) -> list[str]:
    """Return names with a number where one repeats: two classes of a classifier can be alike."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _members(config: Config, base: Path) -> Members:
    rows = read_rows(config, base)
    groups = [group for group in config.data.groups if {*group} <= {*rows.items.columns}]
    return members_of(rows.images.ids[rows.image], rows.items.columns, groups)
