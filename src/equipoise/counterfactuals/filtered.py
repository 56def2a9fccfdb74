"""Filters in their order: the candidates that are kept, evidence of each check, and a data set."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import Booleans, Fields
from equipoise.core.files import write_table
from equipoise.counterfactuals.candidates import Candidates
from equipoise.counterfactuals.filters import Check, Stage, made_stage
from equipoise.counterfactuals.parts import png
from equipoise.evidence import new_run
from equipoise.evidence.pictures import Pictures, decode

ALL = "all"
TABLE, PICTURES = "images.parquet", "pictures"
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = {"reason": pl.String}


@dataclass(frozen=True, eq=False)
class Filtered:
    """Candidates that went through filters, one after the other.

    Attributes
    ----------
    candidates : Candidates
    filters : tuple of Stage
        In their order, after the stage of complete sets.
    best : int, optional
        Candidates to keep of a set: those most like their captions, which needs the filter of
        similarity. All unless given.
    """

    candidates: Candidates
    filters: tuple[Stage, ...]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage: whether there is an image of every caption, then the filters."""
        return (made_stage(self.candidates), *self.filters)

    @cached_property
    def entering(self) -> tuple[Booleans, ...]:
        """Candidates that reach each stage, and last those that pass them all."""
        reach = [np.ones(len(self.candidates), dtype=bool)]
        for stage in self.stages:
            reach.append(reach[-1] & stage.passed)
        return tuple(reach)

    @cached_property
    def kept(self) -> Booleans:
        """Candidates that are kept, shape (candidates,)."""
        return self.entering[-1]

    def rows(self, stage: int, check: Check) -> Booleans:
        """Return whether each image reached a stage and was checked there."""
        return self.entering[stage][self.candidates.candidate] & ~np.isnan(check.rejected)

    def summary(self) -> pa.Table:
        """Return the losses of each stage, by the attributes that vary together and over all.

        Returns
        -------
        pyarrow.Table
            `attributes` ("all" over all), `stage`, `order`, `sets_before`, `sets_rejected`,
            `sets_after`, `images_before`, `images_rejected`, `images_after`: whole sets, and the
            images in them. Requested: before the first stage. Kept: after the last.
        """
        candidates = self.candidates
        masks, names = self.entering, [stage.name for stage in self.stages]
        combinations = candidates.of_candidates("attributes")
        every = [*candidates.combinations, *([ALL] if len(candidates.combinations) > 1 else [])]
        rows = []
        for combination in every:
            some = (combinations == combination) | (combination == ALL)
            sizes = {"sets": some.astype(np.int64), "images": candidates.sizes * some}
            for order, stage in enumerate(names):
                row: Fields = {"attributes": combination, "stage": stage, "order": order}
                for unit, size in sizes.items():
                    before, after = (int(size[mask].sum()) for mask in masks[order : order + 2])
                    row[f"{unit}_before"] = before
                    row[f"{unit}_rejected"] = before - after
                    row[f"{unit}_after"] = after
                rows.append(row)
        return pa.Table.from_pylist(rows)


def evidence(filtered: Filtered) -> dict[str, pa.Table]:
    """Return the evidence of every stage.

    Parameters
    ----------
    filtered : Filtered

    Returns
    -------
    dict of str to pyarrow.Table
        `filter_images`, `filter_pairs` and `filter_sets`: `stage`, `check`, the `set` (candidate)
        and image or images, `value`, `threshold`, `passed`, and of images and sets a `reason`.
        All candidates are there, those that an earlier stage rejected, too: `reached` says which
        sets came as far.
    """
    tables: dict[str, list[pl.DataFrame]] = {}
    candidates, owner = filtered.candidates, filtered.candidates.candidate
    names = pl.Series(candidates.names, dtype=pl.String)
    ids = pl.Series(candidates.columns["image_id"].tolist(), dtype=pl.String)
    for place, stage in enumerate(filtered.stages):
        for check in stage.checks:
            about = {"stage": pl.lit(stage.name), "check": pl.lit(check.name)}
            images = {
                "set": names.gather(owner),
                "image_id": ids,
                "value": check.value,
                "threshold": np.full(len(ids), check.threshold),
                "passed": check.rejected == 0,
                "reason": check.reason.tolist(),
            }
            numbers = zip(check.set_value, candidates.sizes, check.set_threshold, strict=True)
            reasons = [
                f"{good:g} of {n} images pass, {least:g} needed" for good, n, least in numbers
            ]
            found: dict[str, Fields] = {"filter_images": images}
            if check.pairs is not None:
                first, second, value = check.pairs
                reasons = [f"least alike: {value:.4g}" for value in check.set_value]
                found["filter_pairs"] = {
                    "set": names.gather(owner[first]),
                    "image_id": ids.gather(first),
                    "other_id": ids.gather(second),
                    "value": value,
                    "threshold": np.full(len(value), check.threshold),
                    "passed": value > check.threshold,
                }
            found["filter_sets"] = {
                "set": names,
                "reached": filtered.entering[place],
                "value": check.set_value,
                "threshold": check.set_threshold,
                "passed": check.passed,
                "reason": np.where(check.passed, "", reasons).tolist(),
            }
            for name, columns in found.items():
                table = pl.DataFrame(columns, schema_overrides=_TEXTS).select(pl.all(), **about)
                if name == "filter_images":
                    table = table.filter(~np.isnan(check.rejected))
                tables.setdefault(name, []).append(table)
    return {name: pl.concat(parts).to_arrow() for name, parts in tables.items()}


def write_sets(filtered: Filtered, pictures: Pictures, folder: Path) -> int:
    """Write the images of the kept candidates, and a table that names them.

    Parameters
    ----------
    filtered : Filtered
    pictures : Pictures
        Those of the candidates, by `image_id`.
    folder : Path
        Left as it is where it is there already. It gets `images.parquet`: `image_id`, `file`
        (inside the folder), `set` (the candidate), `caption_set`, and the columns of the
        candidates; and `pictures/*.png`.

    Returns
    -------
    int
        Images of the data set.

    Raises
    ------
    RunError
        When the folder cannot be written.
    """
    candidates = filtered.candidates
    rows = np.flatnonzero(filtered.kept[candidates.candidate])
    if (folder / TABLE).is_file():
        return len(rows)
    place = {name: index for index, name in enumerate(pictures.ids.tolist())}
    files = [f"{PICTURES}/{number:07d}.png" for number in range(len(rows))]
    ids = candidates.columns["image_id"][rows]
    columns: Fields = {
        "image_id": ids,
        "file": np.array(files, dtype=object),
        "set": np.array(candidates.names, dtype=object)[candidates.candidate[rows]],
        "caption_set": candidates.columns["set"][rows],
    }
    for name, column in candidates.columns.items():
        if name not in ("state", "reason", *columns):
            columns[name] = column[rows]
    with new_run(folder) as partial:
        (partial / PICTURES).mkdir()
        for file, image in zip(files, ids.tolist(), strict=True):
            data = pictures.read(place[image])
            (partial / file).write_bytes(data if data.startswith(_PNG) else png(decode(data)))
        table = pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})
        write_table(table, partial / TABLE)
    return len(rows)
