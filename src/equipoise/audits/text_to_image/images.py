"""The images of every generator: made now, found in the store, stood in for, or made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.config_generators import located_generator, options_of
from equipoise.audits.running.live import Live
from equipoise.audits.text_to_image.batches import IMAGE, SCHEMA, Batch
from equipoise.audits.text_to_image.elsewhere import made_elsewhere
from equipoise.core.errors import ConfigError

if TYPE_CHECKING:
    from equipoise.audits.running.config import ExtractionConfig
    from equipoise.audits.running.runner import Runner
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_generators import GeneratorConfig
    from equipoise.evidence.pictures import Pictures


def batches(config: Config, runner: Runner) -> Iterator[Batch]:
    """Yield the images of every generator; a plan makes none.

    Raises
    ------
    ConfigError
        When the model of a generator cannot be used as it is configured.
    DataError
        When a table of images cannot be read.
    ModelError
        When images cannot be made.
    """
    for name, given in config.generators.items():
        if given.images is not None:
            yield made_elsewhere(config, name, given.images, runner)
            continue
        prompts = config.prompts.texts
        for guidance in given.guidance:
            for role in ("attributes", "targets"):
                texts = [text for text, one in prompts.items() if one == role]
                if texts and (role == "targets" or config.pairs):
                    many = getattr(config.prompts.counts, role)
                    asked = role, texts, many
                    yield _made(name, given, guidance, asked, runner, config.extraction)


def _made(
    name: str,
    given: GeneratorConfig,
    guidance: float,
    asked: tuple[str, Sequence[str], int],
    runner: Runner,
    every: ExtractionConfig,
) -> Batch:
    role, texts, many = asked
    what, prefix = _named(name, role, guidance)
    if not isinstance(runner, Live):
        return _stand_in(name, given, guidance, asked, runner.base, every)
    from equipoise.counterfactuals import generate_prompts

    progress = runner.progress
    telling = None
    if progress is not None:
        told = progress

        def telling(step: str, done: int, total: int | None) -> None:
            told(f"{what}: {step}", done, total)

    found = generate_prompts(
        pa.table({"prompt_id": texts, "prompt": texts}),
        located_generator(given.model, runner.base),
        runner.store,
        options=options_of(given, every),
        max_failures=every.max_failures,
        progress=telling,
        **_how(given, guidance, many, every),
    )
    rows = found.table
    ids = [prefix + one for one in rows["image_id"].to_pylist()]
    table = pa.table(
        {
            "image_id": ids,
            "prompt": rows["prompt"],
            "state": rows["state"],
            "seed": rows["seed"].cast(pa.string()),
            "guidance": pa.array([guidance] * len(ids), pa.float64()),
        },
        schema=SCHEMA,
    )
    return Batch(name, what, table, prefix, found.pictures, found.inputs, found.info)


def _how(
    given: GeneratorConfig, guidance: float, many: int, every: ExtractionConfig
) -> dict[str, Any]:
    """Return what decides the images, as `generate_prompts` and `plan_prompts` take it."""
    found = {"images": many, "seed": given.seed, "sampling": given.sampling(guidance)}
    return found if every.part is None else found | {"part": every.part}


def _named(name: str, role: str, guidance: float) -> tuple[str, str]:
    """Return how messages call a batch, and what stands before the ids of its pictures."""
    return f"{name}, {role} at guidance {guidance:g}", f"{guidance:g}: "


def _stand_in(
    name: str,
    given: GeneratorConfig,
    guidance: float,
    prompts: tuple[str, Sequence[str], int],
    base: Path,
    every: ExtractionConfig,
) -> Batch:
    from equipoise.evidence.pictures import NotMade, sorted_by_id

    role, texts, many = prompts
    what, prefix = _named(name, role, guidance)
    asked = [(f"{text}/{number:03d}", text) for text in texts for number in range(many)]
    rows = [
        {"image_id": prefix + one, "prompt": text, "state": IMAGE, "seed": one,
         "guidance": guidance}
        for one, text in asked
    ]  # fmt: skip
    pending = _pending(given, guidance, texts, many, base, every)
    pictures = sorted_by_id(what, [one for one, _ in asked], NotMade(), None)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Batch(name, what, table, prefix, pictures, pending=pending)


def _pending(
    given: GeneratorConfig,
    guidance: float,
    texts: Sequence[str],
    many: int,
    base: Path,
    every: ExtractionConfig,
) -> dict[str, Any]:
    """Say what a generation would do, without loading the model."""
    asked = len(texts) * many
    told: dict[str, Any] = {"in_store": None, "to_do": None, "numbers": None, "bytes": None}
    if not isinstance(given.model, str):
        return {"runs": given.model.info.name, "items": asked, **told}
    from equipoise.counterfactuals import plan_prompts

    found = plan_prompts(
        pa.table({"prompt_id": [*texts], "prompt": [*texts]}),
        located_generator(given.model, base),
        base / every.store,
        **_how(given, guidance, many, every),
    )
    told |= {"in_store": found.present, "to_do": found.to_do, "bytes": found.bytes}
    return {"runs": given.model, "items": asked, **told}


def seen(batch: Batch, why: str) -> Pictures:
    """Return where the pixels of a batch are.

    Raises
    ------
    ConfigError
        When nothing says it.
    """
    if batch.pictures is None:
        raise ConfigError(
            f"generators.{batch.generator}.images: {why} runs on the pictures, and nothing says "
            "where they are. To do: name the column of files under 'path'"
        )
    return batch.pictures
