"""Images that were made elsewhere: a table with a row for each that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.text_to_image.batches import FAILED, IMAGE, REFUSED, SCHEMA, Batch
from equipoise.core.errors import DataError
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.running.runner import Runner
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_generators import MadeConfig
    from equipoise.evidence.pictures import Pictures


def made_elsewhere(config: Config, name: str, given: MadeConfig, runner: Runner) -> Batch:
    """Return the images of a table.

    Raises
    ------
    DataError
        When it cannot be read, or has no prompt of the configuration.
    """
    place = f"generators.{name}.images"
    items = load_items(given.source(runner.base, given.columns), what=place)
    prompts = items.columns[given.prompt].tolist()
    check_prompts(config, given, items)
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
    return Batch(name, name, table, "", _pictures(given, items, table, runner), items.inputs)


def check_prompts(config: Config, given: MadeConfig, items: Items) -> None:
    """Refuse a table of images none of which has a prompt of the configuration.

    Raises
    ------
    DataError
        With the first prompt of both.
    """
    known, prompts = config.prompts.texts, items.columns[given.prompt].tolist()
    if not {*known} & {*prompts}:
        raise DataError(
            f"no row has a prompt of the configuration; the first has {prompts[0]!r}",
            file=items.name,
            column=given.prompt,
            expected=f"prompts word for word, such as {next(iter(known))!r}",
            fix="write prompts.template as it was, or name another column",
        )


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
