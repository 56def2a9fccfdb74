"""The images of every generator: made now, found in the store, stood in for, or made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.running.live import Live
from equipoise.core.errors import ConfigError, DataError
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.running.runner import Runner
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_generators import GeneratorConfig, MadeConfig
    from equipoise.evidence.pictures import Pictures, Source

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("image_id", "prompt", "state", "seed")]
    + [("guidance", pa.float64())]
)
"""What is known of each image that was asked for."""

IMAGE, REFUSED, FAILED = "image", "refused", "failed"


@dataclass(frozen=True, eq=False)
class Batch:
    """Images of one generator that models look at together.

    Attributes
    ----------
    generator, name : str
        Of the generator, and of the batch in messages and the plan.
    table : pyarrow.Table
        `SCHEMA`; a row for each image that was asked for.
    prefix : str
        What stands before the ids of `pictures` in the table.
    pictures : Pictures or None
        None where nothing says where they are.
    inputs, info : mapping
        Files that were read, and what the generator is.
    pending : mapping
        In a plan: what is to be made.
    """

    generator: str
    name: str
    table: pa.Table = field(repr=False)
    prefix: str = ""
    pictures: Pictures | None = field(default=None, repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    pending: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Nowhere:
    """Pictures that a plan only counts."""

    def read(self, place: int) -> bytes:
        raise OSError(f"picture {place} is not made yet")

    def where(self, place: int) -> str:
        return f"picture {place}, not made yet"

    def take(self, places: Sequence[int]) -> Source:  # noqa: ARG002 - none of them is there
        return self


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
            yield _elsewhere(config, name, given.images, runner)
            continue
        asked = config.prompts.texts
        for guidance in given.guidance:
            for role in ("attributes", "targets"):
                texts = [text for text, one in asked.items() if one == role]
                if texts and (role == "targets" or config.pairs):
                    many = getattr(config.prompts.counts, role)
                    yield _made(name, given, guidance, (role, texts, many), runner)


def _made(
    name: str,
    given: GeneratorConfig,
    guidance: float,
    asked: tuple[str, Sequence[str], int],
    runner: Runner,
) -> Batch:
    role, texts, many = asked
    prefix = f"{guidance:g}: "
    what = f"{name}, {role} at guidance {guidance:g}"
    if not isinstance(runner, Live):
        return _stand_in(name, given, what, prefix, guidance, texts, many)
    from equipoise.counterfactuals import generate_prompts

    progress = runner.progress
    telling = None
    if progress is not None:
        told = progress

        def telling(step: str, done: int, total: int | None) -> None:
            told(f"{what}: {step}", done, total)

    found = generate_prompts(
        pa.table({"prompt_id": texts, "prompt": texts}),
        given.model,
        runner.store,
        images=many,
        seed=given.seed,
        sampling=given.sampling(guidance),
        options=_options(given, runner),
        max_failures=runner.config.extraction.max_failures,
        progress=telling,
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


def _options(given: GeneratorConfig, runner: Live) -> Any:
    from equipoise.evidence.asking import RunOptions

    every = runner.config.extraction
    return RunOptions(
        device=given.device or every.device,
        dtype=given.dtype or every.dtype,
        revision=given.revision,
        allow_pickle=given.allow_pickle,
        trust_remote_code=given.trust_remote_code,
    )


def _stand_in(
    name: str,
    given: GeneratorConfig,
    what: str,
    prefix: str,
    guidance: float,
    texts: Sequence[str],
    many: int,
) -> Batch:
    from equipoise.evidence.pictures import sorted_by_id

    asked = [(f"{text}/{number:03d}", text) for text in texts for number in range(many)]
    rows = [
        {"image_id": prefix + one, "prompt": text, "state": IMAGE, "seed": one,
         "guidance": guidance}
        for one, text in asked
    ]  # fmt: skip
    called = given.model if isinstance(given.model, str) else given.model.info.name
    pending = {
        "runs": called, "items": len(rows), "in_store": None, "to_do": None, "numbers": None,
        "bytes": None,
    }  # fmt: skip
    pictures = sorted_by_id(what, [one for one, _ in asked], _Nowhere(), None)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Batch(name, what, table, prefix, pictures, pending=pending)


def _elsewhere(config: Config, name: str, given: MadeConfig, runner: Runner) -> Batch:
    place = f"generators.{name}.images"
    items = load_items(given.source(runner.base, given.columns), what=place)
    prompts = items.columns[given.prompt].tolist()
    known = config.prompts.texts
    table = pa.table(
        {
            "image_id": items.ids.tolist(),
            "prompt": prompts,
            "state": states_of(given, items.columns),
            "seed": _column(items.columns, given.seed),
            "guidance": pa.array(guidance_of(items, given), pa.float64()),
        },
        schema=SCHEMA,
    )
    if not {*known} & {*prompts}:
        raise DataError(
            f"no row has a prompt of the configuration; the first has {prompts[0]!r}",
            file=items.name,
            column=given.prompt,
            expected=f"prompts word for word, such as {next(iter(known))!r}",
            fix="write prompts.template as it was, or name another column",
        )
    return Batch(name, name, table, "", _pictures(given, items, table, runner), items.inputs)


def states_of(given: MadeConfig, columns: Mapping[str, Any]) -> list[str]:
    """Return what became of every image that was asked for: "image", "refused" or "failed"."""
    if given.state is None:
        return [IMAGE] * len(columns[given.prompt])
    names = {**dict.fromkeys(given.refused, REFUSED), **dict.fromkeys(given.made, IMAGE)}
    return [names.get(one or "", FAILED) for one in columns[given.state].tolist()]


def _column(columns: Mapping[str, Any], name: str | None) -> pa.Array:
    many = len(next(iter(columns.values())))
    return pa.array(columns[name].tolist() if name else [None] * many, pa.string())


def guidance_of(items: Items, given: MadeConfig) -> list[float | None]:
    """Return the strength of guidance of every image.

    Raises
    ------
    DataError
        When a cell is no number.
    """
    if given.guidance is None:
        return [None] * len(items)
    found: list[float | None] = []
    for row, text in enumerate(items.columns[given.guidance].tolist(), start=1):
        try:
            found.append(float(text))
        except (TypeError, ValueError):
            raise DataError(
                f"the guidance is {text!r}",
                file=items.name,
                column=given.guidance,
                row=row,
                expected="a number",
                fix="fill it in, or leave the column out",
            ) from None
    return found


def _pictures(given: MadeConfig, items: Any, table: pa.Table, runner: Runner) -> Pictures | None:
    if given.path is None:
        return None
    from equipoise.evidence import pictures_of_table

    made = np.flatnonzero(np.array(table["state"].to_pylist()) == IMAGE).tolist()
    paths = items.columns[given.path]
    for row in made:
        if paths[row] is None:
            raise DataError(
                "the image has no file",
                file=items.name,
                column=given.path,
                row=row + 1,
                expected="a path, or a state that says why there is no image",
                fix="fill it in, or name the state under 'refused'",
            )
    root = runner.base / (given.root or "")
    ids = [str(items.ids[row]) for row in made]
    return pictures_of_table(
        ids, [str(paths[row]) for row in made], root=root, name=items.name, column=given.path
    )


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
