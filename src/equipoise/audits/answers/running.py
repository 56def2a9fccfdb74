"""What is run before an audit of answers: images and questions make a table of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.running.prepared import Prepared

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.audits.answers.config import Config, ModelConfig
    from equipoise.audits.running.runner import Ran, Runner
    from equipoise.evidence import Pictures

STAND_IN = "(not yet known)"
"""What a plan takes for every answer of a model that was not asked."""


def prepare(config: Config, runner: Runner) -> Prepared:
    """Ask the models that are named, and put tables of their answers in their places.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model answers no questions.
    """
    run = [name for name, model in config.models.items() if model.model is not None]
    if config.data.images is None and not run:
        return Prepared.nothing(config)
    from equipoise.audits.predictions.running import (
        known_images,
        members_of_groups,
        pictures_of,
    )
    from equipoise.audits.running.prepared import gathered

    found = known_images(config.data, runner.base)
    data = config.data.tabled(found.items)
    models: dict[str, ModelConfig] = dict(config.models)
    ran: list[Ran] = []
    for name in run:
        models[name], said = _answered(runner, name, models[name], pictures_of(found, name))
        ran += said
    return gathered(
        config,
        config.model_copy(update={"data": data, "models": models}),
        known={"images": found},
        ran=ran,
        members=lambda _: members_of_groups(data, runner.base),
    )


def _answered(
    runner: Runner, name: str, given: ModelConfig, pictures: Pictures
) -> tuple[ModelConfig, list[Ran]]:
    """Ask a model; return its section as that of a table, and what ran."""
    import pyarrow as pa

    runner.offer(name, given, "answerer")
    ran = [
        runner.answers(
            name, given, pictures, text, what=f"images, {question}" if question else "images"
        )
        for question, text in given.asked.items()
    ]
    parts = [_table(one, question) for one, question in zip(ran, given.asked, strict=True)]
    several = given.questions is not None
    every = frozenset(pictures.ids.tolist())
    section = given.tabled(
        {
            question: every.difference(one["image_id"].to_pylist())
            for question, one in zip(given.asked, parts, strict=True)
        },
        table=pa.concat_tables(parts),
        answer="answer",
        id="image_id",
        by_question="question" if several else None,
    )
    return section, ran


def _table(ran: Ran, question: str) -> pa.Table:
    """Return a row for every image that did not fail."""
    import pyarrow as pa

    ids, texts = ran.table["id"], ran.table["answer"]
    if ran.pending:
        texts = pa.array([STAND_IN] * len(ids), pa.string())
    names = pa.array([question] * len(ids), pa.string())
    return pa.table({"image_id": ids, "question": names, "answer": texts})
