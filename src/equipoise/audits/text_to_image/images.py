"""The images of every generator: generated now, or read from a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.audits.config_generators import located_generator, options_of
from equipoise.audits.outputs import LiveModels
from equipoise.core.errors import ConfigError, DataError
from equipoise.data import Items, ItemSource, Outputs, load_items
from equipoise.evidence.pictures import NotMade, Pictures, pictures_of_table, sorted_by_id

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_generators import GeneratorConfig, MadeConfig

Objects = npt.NDArray[np.object_]
Rows = Sequence[Mapping[str, Any]]

IMAGE, REFUSED, FAILED = "image", "refused", "failed"


@dataclass(frozen=True, eq=False)
class Batch:
    """Images of one generator that models run on together.

    Attributes
    ----------
    name : str
        What plans and manifests call it.
    rows : list of mapping
        Per requested image `image_id`, `prompt`, `state`, `seed` and `guidance`.
    pictures : Pictures or None
        None where the table has no paths. Their ids lack the prefix.
    place : str
        The section's key in the config, for errors.
    prefix : str
        Makes ids of several strengths of guidance distinct.
    """

    name: str
    rows: Rows = field(repr=False)
    pictures: Pictures | None = field(repr=False)
    place: str
    prefix: str = ""

    def need_pictures(self, model: str) -> Pictures:
        """Return the pictures; refuse to run a model without them."""
        if self.pictures is None:
            raise ConfigError(
                f"{self.place}: models.{model}.model runs on the pictures, and nothing says where "
                "they are. To do: name the column of files under 'path'"
            )
        return self.pictures

    @property
    def by_prompt(self) -> dict[str, list[str]]:
        """Ids of the pictures of each prompt."""
        ids: dict[str, list[str]] = {}
        for row in self.rows:
            name = row["image_id"].removeprefix(self.prefix)
            ids.setdefault(row["prompt"], []).append(name)
        return ids


@dataclass(frozen=True, eq=False)
class GeneratedImages:
    """The images of one generator, a row for each requested image.

    Attributes
    ----------
    items : Items
        With the columns `prompt` and `seed` (the id where the seed is unknown).
    state : ndarray of str objects, shape (n,)
        "image", "refused" or "failed".
    guidance : ndarray of float, shape (n,)
        NaN where unknown.
    seeded : bool
        Whether seeds are known.
    batches : tuple of Batch
    planned : bool
        Whether the images are yet to be generated.
    """

    items: Items
    state: Objects = field(repr=False)
    guidance: npt.NDArray[np.float64] = field(repr=False)
    seeded: bool
    batches: tuple[Batch, ...] = field(repr=False)
    planned: bool = False

    @property
    def prompt(self) -> Objects:
        """The prompt of each image."""
        return np.asarray(self.items.columns["prompt"])

    @property
    def guidances(self) -> tuple[float | None, ...]:
        """Strengths of guidance, weakest first; None alone where none is known."""
        known = sorted({*self.guidance[~np.isnan(self.guidance)].tolist()})
        return tuple(known) or (None,)

    def rows(self, prompts: tuple[str, ...], guidance: float | None) -> npt.NDArray[np.int64]:
        """Return the requested images of some prompts at a strength of guidance."""
        here = np.isin(self.prompt.astype(str), prompts)
        if guidance is not None:
            here &= self.guidance == guidance
        return np.flatnonzero(here)


def images_of(name: str, config: Config, models: Models) -> GeneratedImages:
    """Generate or read the images of one generator; a dry run generates none.

    Raises
    ------
    DataError
        When a table can't be read, has no prompt of the config, or no image.
    ModelError
        When the generator can't be loaded, or fails too often.
    """
    generator = config.generators[name]
    if generator.images is not None:
        return _read(name, generator.images, config, models)
    batches = tuple(_generated(name, generator, config, models))
    rows = [row for batch in batches for row in batch.rows]
    items = _items(rows, f"images of {name}")
    planned = not isinstance(models, LiveModels)
    images = GeneratedImages(items, *_columns(rows), True, batches, planned)
    _need_image(images, "state", (IMAGE,))
    return images


def _generated(
    name: str, generator: GeneratorConfig, config: Config, models: Models
) -> Iterator[Batch]:
    """Yield the images of each strength of guidance, of attributes and of targets."""
    prompts = config.prompts.texts
    for guidance in generator.guidance:
        for role in ("attributes", "targets"):
            texts = [text for text, own in prompts.items() if own == role]
            if not texts or (role == "attributes" and not config.pairs):
                continue
            on = f"{name}, {role} at guidance {guidance:g}"
            how: dict[str, Any] = {
                "images": getattr(config.prompts.counts, role),
                "seed": generator.seed,
                "sampling": generator.sampling(guidance),
            }
            if config.extraction.part is not None:
                how["part"] = config.extraction.part
            run = _generate if isinstance(models, LiveModels) else _planned
            rows, pictures, outputs = run(on, generator, texts, how, models)
            prefix = f"{guidance:g}: "
            models.keep(
                Outputs(
                    model=name, content="images", source=f"generators.{name}.model", on=on,
                    ids=pl.Series("", [row["image_id"] for row in rows], dtype=pl.String),
                    **outputs,
                )
            )  # fmt: skip
            own_rows = [
                {**row, "image_id": prefix + row["image_id"], "guidance": guidance} for row in rows
            ]
            yield Batch(on, own_rows, pictures, f"generators.{name}", prefix)


def _generate(
    on: str, generator: GeneratorConfig, texts: Sequence[str], how: dict[str, Any], models: Models
) -> tuple[Rows, Pictures | None, dict[str, Any]]:
    from equipoise.counterfactuals import generate_prompts

    options, progress = models.config.extraction, models.progress
    if progress is not None:
        how["progress"] = lambda step, done, total: progress(f"{on}: {step}", done, total)
    made = generate_prompts(
        pa.table({"prompt_id": texts, "prompt": texts}),
        located_generator(generator.model, models.base),
        models.store,
        options=options_of(generator, options),
        max_failures=options.max_failures,
        **how,
    )
    rows = made.table.select(["image_id", "prompt", "state", "seed"]).to_pylist()
    return rows, made.pictures, {"info": made.info, "inputs": made.inputs}


def _planned(
    on: str, generator: GeneratorConfig, texts: Sequence[str], how: dict[str, Any], models: Models
) -> tuple[Rows, Pictures | None, dict[str, Any]]:
    """Return a stand-in for each image, and what is to do, without loading the model."""
    from equipoise.counterfactuals import plan_prompts

    ids = [(f"{text}/{number:03d}", text) for text in texts for number in range(how["images"])]
    rows = [{"image_id": id_, "prompt": text, "state": IMAGE, "seed": id_} for id_, text in ids]
    pictures = sorted_by_id(on, [id_ for id_, _ in ids], NotMade(), None)
    pending: dict[str, Any] = {
        "runs": generator.model if isinstance(generator.model, str) else generator.model.info.name,
        "items": len(ids), "in_store": None, "to_do": None, "numbers": None, "bytes": None,
    }  # fmt: skip
    if isinstance(generator.model, str):
        plan = plan_prompts(
            pa.table({"prompt_id": [*texts], "prompt": [*texts]}),
            located_generator(generator.model, models.base),
            models.store,
            **how,
        )
        pending |= {"in_store": plan.present, "to_do": plan.to_do, "bytes": plan.bytes}
    return rows, pictures, {"pending": pending}


def _read(name: str, section: MadeConfig, config: Config, models: Models) -> GeneratedImages:
    items = load_items(section.source(models.base, section.columns), what=f"images of {name}")
    columns = items.columns
    _check_prompts(config, section, items)
    every = [None] * len(items)
    seeds = columns[section.seed].tolist() if section.seed else every
    rows = [
        {"image_id": str(id_), "prompt": prompt, "state": state, "seed": seed, "guidance": guidance}
        for id_, prompt, state, seed, guidance in zip(
            items.ids.tolist(),
            columns[section.prompt].tolist(),
            _states(section, items),
            seeds,
            _guidance(section, items),
            strict=True,
        )
    ]
    known = _items(rows, items.name)
    images = GeneratedImages(
        Items(items.name, known.id, known.ids, known.coded, items.inputs, items.counts),
        *_columns(rows),
        section.seed is not None,
        (Batch(name, rows, _pictures(section, items, rows, models), f"generators.{name}.images"),),
    )
    _need_image(images, section.state, section.made)
    return images


def _items(rows: Rows, name: str) -> Items:
    frame = pa.table(
        {
            "image_id": pa.array([row["image_id"] for row in rows], pa.string()),
            "prompt": pa.array([row["prompt"] for row in rows], pa.string()),
            "seed": pa.array(
                [row["image_id"] if row["seed"] is None else f"seed {row['seed']}" for row in rows],
                pa.string(),
            ),
        }
    )
    return load_items(ItemSource(frame, "image_id", ("prompt", "seed")), what=name)


def _columns(rows: Rows) -> tuple[Objects, npt.NDArray[np.float64]]:
    state = np.array([row["state"] for row in rows], dtype=object)
    guidance = [np.nan if row["guidance"] is None else row["guidance"] for row in rows]
    return state, np.array(guidance, dtype=np.float64)


def _need_image(images: GeneratedImages, column: str | None, states: Sequence[str]) -> None:
    if not (images.state == IMAGE).any():
        raise DataError(
            f"none of {len(images.state)} rows has an image",
            file=images.items.name,
            column=column,
            expected=f"the state {' or '.join(map(repr, states))} in some rows",
            fix="name the states of images that exist under 'made'",
        )


def _check_prompts(config: Config, section: MadeConfig, items: Items) -> None:
    known, prompts = config.prompts.texts, items.columns[section.prompt].tolist()
    if not {*known} & {*prompts}:
        raise DataError(
            f"no row has a prompt of the configuration; the first has {prompts[0]!r}",
            file=items.name,
            column=section.prompt,
            expected=f"prompts word for word, such as {next(iter(known))!r}",
            fix="write prompts.template as it was, or name another column",
        )


def _states(section: MadeConfig, items: Items) -> list[str]:
    if section.state is None:
        return [IMAGE] * len(items)
    names = {**dict.fromkeys(section.refused, REFUSED), **dict.fromkeys(section.made, IMAGE)}
    return [names.get(cell or "", FAILED) for cell in items.columns[section.state].tolist()]


def _guidance(section: MadeConfig, items: Items) -> list[float | None]:
    if section.guidance is None:
        return [None] * len(items)
    numbers: list[float | None] = []
    for row, text in enumerate(items.columns[section.guidance].tolist(), start=1):
        try:
            numbers.append(float(text))
        except (TypeError, ValueError):
            raise DataError(
                f"the guidance is {text!r}",
                file=items.name,
                column=section.guidance,
                row=row,
                expected="a number",
                fix="fill it in, or leave the column out",
            ) from None
    return numbers


def _pictures(section: MadeConfig, items: Items, rows: Rows, models: Models) -> Pictures | None:
    if section.path is None:
        return None
    ids, paths = [], []
    cells = zip(rows, items.columns[section.path].tolist(), strict=True)
    for place, (row, path) in enumerate(cells, start=1):
        if row["state"] != IMAGE:
            continue
        if path is None:
            raise DataError(
                "the image has no file",
                file=items.name,
                column=section.path,
                row=place,
                expected="a path, or a state that says why there is no image",
                fix="fill it in, or name the state under 'refused'",
            )
        ids.append(row["image_id"])
        paths.append(str(path))
    root = models.base / (section.root or "")
    return pictures_of_table(ids, paths, root=root, name=items.name, column=section.path)
