"""The images behind the findings of a run, as `equipoise review` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import AuditResult, Finding, Objects, RunError, record
from equipoise.evidence import LABELS
from equipoise.evidence.examples import FOLDER, GROUPS, IMAGES
from equipoise.evidence.predictions import file_name
from equipoise.metrics.counts.comparisons import OTHERS
from equipoise.report import read

ALL = "all images"
"""Outcome of every image, and the group of findings that compare none."""


@dataclass(frozen=True)
class Shown:
    """An image on a page.

    Attributes
    ----------
    place : int
        Row of the image in the run.
    image_id, label, outcome : str
    score : float or None
    """

    place: int
    image_id: str
    label: str
    outcome: str
    score: float | None


@dataclass(frozen=True)
class GroupOfImages:
    """Images of one group that match, and those of them on this page."""

    name: str
    total: int
    images: tuple[Shown, ...]


@dataclass(frozen=True)
class Selection:
    """Which images of a finding to show.

    Attributes
    ----------
    outcome : str
        "" for the first that the finding has.
    label : str
        Other label to show alone; "" for every label.
    group : str
        Group to show alone; "" for every group.
    cause : str
        Value of a cause to show alone, such as "medium: painting"; "" for every value.
    order : str
        "random", "highest score" or "lowest score".
    page, size : int
        From 0, and images per group.
    """

    outcome: str = ""
    label: str = ""
    group: str = ""
    cause: str = ""
    order: str = "random"
    page: int = 0
    size: int = 12


VALUES = "cause_values.parquet"
"""File of the labels with the value of each cause that was tried, by image."""
# Values of a cause beyond which nobody chooses one.
_MOST_VALUES = 30
# Beginnings of the names of metrics that false alarms decide.
_OF_FALSE_ALARMS = ("false_positive", "true_negative", "precision", "false_discovery")
ORDERS = ("random", "highest score", "lowest score")


@record
class Examples:
    """Findings of a run and the images behind them.

    Attributes
    ----------
    run : Path
    result : AuditResult
    """

    run: Path
    result: AuditResult

    @classmethod
    def of(cls, run: Path) -> Examples:
        """Open a run; its images are read when they are first shown.

        Raises
        ------
        RunError
            If it is no run, or nothing said where its images are.
        """
        result = read(run)
        if not (run / FOLDER / IMAGES).is_file():
            raise RunError(
                f"{run}: this run has no images to show. To do: say where they are with `root:` "
                "or `path:` under data.images, and run the audit again"
            )
        return cls(run, result)

    @cached_property
    def images(self) -> pl.DataFrame:
        """The order and groups of every image; row numbers are places."""
        table = pl.scan_parquet(self.run / FOLDER / IMAGES)
        names = [name for name in table.collect_schema() if name.startswith(GROUPS)]
        return table.select("order", *names).collect()

    def __len__(self) -> int:
        """Return the number of images."""
        return self.images.height

    @cached_property
    def image_ids(self) -> pl.Series:
        """Ids of the images by place."""
        return pl.read_parquet(self.run / FOLDER / IMAGES, columns=["image_id"])["image_id"]

    @property
    def ids(self) -> Objects:
        """Ids of the images, shape (n,)."""
        return np.array(self.image_ids.to_list(), dtype=object)

    def group_names(self, groups: str) -> pl.Series:
        """Return the group of each image; one of all images where the run has no such groups."""
        column = f"{GROUPS}{groups}"
        if column in self.images.columns:
            return self.images[column].cast(pl.String)
        return pl.repeat(ALL, len(self), dtype=pl.String, eager=True)

    @lru_cache(maxsize=4)  # noqa: B019 - a server has one of these, for as long as it lives
    def rows(self, model: str, subject: str) -> pl.DataFrame:
        """Return the examples of a subject: of all subjects where it is empty."""
        path = self.run / FOLDER / file_name(model)
        if not path.is_file():
            places = pl.int_range(self.images.height, dtype=pl.UInt32, eager=True).alias("place")
            empty = pl.lit(None, pl.String)
            columns = {name: empty.alias(name) for name in ("subject", "label")}
            return places.to_frame().with_columns(
                outcome=pl.lit(ALL), score=pl.lit(None, pl.Float32), **columns
            )
        table = pl.scan_parquet(path)
        known = table.select(pl.col("subject").cast(pl.String).unique()).collect()
        if subject in known["subject"]:
            table = table.filter(pl.col("subject").cast(pl.String) == subject)
        texts = pl.col("subject", "outcome", "label").cast(pl.String)
        return table.with_columns(texts).collect()

    def outcomes(self, finding: Finding) -> dict[str, int]:
        """Return the outcomes of a finding's images with their numbers, the most telling first."""
        counts = self.rows(finding.model, finding.subject)["outcome"].value_counts()
        first = ("miss", "false alarm", "labelled")
        if finding.metric.startswith(_OF_FALSE_ALARMS):
            first = ("false alarm", "miss", "labelled")
        order = {name: place for place, name in enumerate(first)}
        found = {str(name): int(many) for name, many in counts.iter_rows()}
        return dict(sorted(found.items(), key=lambda one: (order.get(one[0], 9), one[0])))

    def labels(self, finding: Finding, outcome: str) -> list[str]:
        """Return the other labels of images with an outcome, the most frequent first."""
        rows = self.rows(finding.model, finding.subject).filter(pl.col("outcome") == outcome)
        counts = rows["label"].drop_nulls().value_counts(sort=True)
        return [name for name in counts["label"].to_list() if name != finding.subject]

    def causes(self) -> list[str]:
        """Return the causes that were tried with their values, such as "medium: painting"."""
        path = self.run / LABELS / VALUES
        if not path.is_file():
            return []
        table, found = pl.read_parquet(path).drop("image_id"), list[str]()
        for column in table:
            values = sorted(map(str, column.drop_nulls().unique().to_list()))
            if len(values) <= _MOST_VALUES:
                found += [f"{column.name}: {value}" for value in values]
        return found

    def _having(self, cause: str) -> pl.Series:
        """Return whether each image has the value of a cause."""
        table = pl.read_parquet(self.run / LABELS / VALUES)
        own = table.select("image_id", has=_is(table, cause))
        return self.image_ids.to_frame().join(
            own, on="image_id", how="left", maintain_order="left"
        )["has"]

    def groups(self, finding: Finding) -> list[str]:
        """Return the names of the groups that a finding compares."""
        if f"{GROUPS}{finding.groups}" not in self.images.columns:
            return [ALL]
        if finding.group:
            return [finding.group, OTHERS]
        return [one.group for one in finding.by_group] or [ALL]

    def select(self, finding: Finding, selection: Selection) -> Iterator[GroupOfImages]:
        """Yield the images of each group side by side.

        Parameters
        ----------
        finding : Finding
        selection : Selection
        """
        rows = self.rows(finding.model, finding.subject)
        rows = rows.filter(pl.col("outcome") == selection.outcome)
        if selection.label:
            rows = rows.filter(pl.col("label") == selection.label)
        if selection.cause:
            rows = rows.filter(self._having(selection.cause)[rows["place"]])
        groups = self.groups(finding)
        names = self.group_names("" if groups == [ALL] else finding.groups)
        places = rows["place"]
        rows = rows.with_columns(order=self.images["order"][places], group=names[places])
        by = {"random": "order", "highest score": "score", "lowest score": "score"}
        rows = rows.sort(
            by[selection.order], "order", descending=[selection.order == "highest score", False],
            nulls_last=True,
        )  # fmt: skip
        for name in groups:
            if selection.group not in ("", name):
                continue
            mine = pl.col("group") != finding.group if name == OTHERS else pl.col("group") == name
            own = rows.filter(mine)
            start = selection.page * selection.size
            yield GroupOfImages(name, own.height, self._shown(own[start : start + selection.size]))

    def _shown(self, rows: pl.DataFrame) -> tuple[Shown, ...]:
        ids = self.facts(rows["place"].to_list())
        return tuple(
            Shown(place, ids[place][0], label or "", outcome, score)
            for place, label, outcome, score in rows.select(
                "place", "label", "outcome", "score"
            ).iter_rows()
        )

    def facts(self, places: Sequence[int]) -> dict[int, tuple[str, str | None]]:
        """Return the id and the file of some images, by place."""
        table = pl.scan_parquet(self.run / FOLDER / IMAGES, row_index_name="place")
        chosen = table.filter(pl.col("place").is_in([*places])).select("place", "image_id", "file")
        return {place: (name, file) for place, name, file in chosen.collect().iter_rows()}


def _is(table: pl.DataFrame, cause: str) -> pl.Expr:
    """Return whether an image has a value: names of causes and values may have colons."""
    fits = [
        pl.col(name).cast(pl.String) == cause.removeprefix(f"{name}: ")
        for name in table.columns
        if name != "image_id" and cause.startswith(f"{name}: ")
    ]
    return pl.any_horizontal(fits).fill_null(value=False)
