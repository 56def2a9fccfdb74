"""What is run before an audit of retrieval: images and queries become vectors, or scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.config_rankings import ModelConfig
from equipoise.audits.pictures.known import known, need_pictures
from equipoise.audits.running.asked import averaged, prompts_of, to_run
from equipoise.audits.running.failed import members_of
from equipoise.audits.running.prepared import Prepared, gathered
from equipoise.data import load_items
from equipoise.evidence.prompts import Prompts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from equipoise.audits.config_rankings import DataConfig, QueriesConfig, RankingAudit
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.audits.pictures.known import Known
    from equipoise.audits.running.failed import Members
    from equipoise.audits.running.runner import Ran, Runner
    from equipoise.evidence.pictures import Pictures


def prepare(
    config: RankingAudit,
    runner: Runner,
    queries: Callable[[Known[PicturesConfig]], QueriesConfig | None] | None = None,
) -> Prepared:
    """Run the models that are named: dual encoders embed, others score images with queries.

    Parameters
    ----------
    config : RankingAudit
    runner : Runner
    queries : callable, optional
        Gives the queries, where they follow from what is known of the images.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model is of another kind.
    """
    run = to_run(config.models)
    if not run and config.data.images.is_plain:
        return Prepared.nothing(config)

    found = known(config.data.images, runner.base, columns=config.data.columns)
    asked = config.queries if queries is None else queries(found)
    models = dict(config.models)
    ran: list[Ran] = []
    for name, given in run.items():
        pictures = need_pictures(found, why=f"models.{name}.model")
        models[name], said = _said(name, given, pictures, asked, runner)
        ran += said
    data = config.data.model_copy(update={"images": found.items})
    return gathered(
        config,
        config.model_copy(update={"data": data, "models": models, "queries": asked}),
        known={"images": found},
        ran=ran,
        members=lambda _: _members(data, runner.base),
    )


def _said(
    name: str,
    given: ModelConfig,
    pictures: Pictures,
    queries: QueriesConfig | None,
    runner: Runner,
) -> tuple[ModelConfig, list[Ran]]:
    assert queries is not None  # noqa: S101 - the schema sees to it
    if runner.offer(name, given, "encoder", "scorer") == "encoder":
        prompts = prompts_of(queries, runner.base, what="queries")
        images, asked = runner.images(name, given, pictures), runner.texts(name, given, prompts)
        return ModelConfig(images=images.vectors, queries=asked.vectors), [images, asked]
    prompts = _by_subject(queries, runner.base)
    scored = runner.scores(name, given, pictures, prompts.texts)
    return ModelConfig(scores=averaged(scored, prompts)), [scored]


def _by_subject(queries: QueriesConfig, base: Path) -> Prompts:
    """Return the prompts of every query, owned by what it asks for."""
    prompts = prompts_of(queries, base, what="queries")
    if queries.subject is None:
        return prompts
    items = load_items(queries.source(base, (queries.subject,)), what="queries")
    subjects = items.columns[queries.subject]
    asked = [one for one in dict.fromkeys(subjects.tolist()) if one is not None]
    kept = [
        (text, asked.index(subjects[owner]))
        for text, owner in zip(prompts.texts, prompts.owner.tolist(), strict=True)
        if subjects[owner] is not None
    ]
    texts, owners = zip(*kept, strict=True)
    return Prompts(texts, np.array(owners, dtype=np.int64), tuple(asked))


def _members(data: DataConfig, base: Path) -> Members:
    items = load_items(data.images.source(base, data.columns), what="images")
    return members_of(items.ids, items.columns, data.groups)
