"""The images behind the findings of a run, as `equipoise review` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import AuditResult, Finding, Groups, Objects, RunError, record
from equipoise.evidence import LABELS, read_pictures
from equipoise.evidence.examples import (
    BOXES,
    CAPTION,
    CORNERS,
    FOLDER,
    GROUPS,
    IMAGES,
    LEAST,
    NO_ANSWER,
    WRONG,
    file_of,
    groups_column,
    guidance_name,
    names_files,
)
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.labels.unanswered import counts_unanswered
from equipoise.report import read
from equipoise.review.labels import look_up_values
from equipoise.review.outcomes import counts_false_alarms

ALL = "all images"
"""Outcome of every image, and the group of findings that compare none."""


@dataclass(frozen=True)
class ShownImage:
    """An image on a page.

    Attributes
    ----------
    place : int
        Row of the image in the run.
    image_id : str
    caption : str
        Its label and prediction.
    score : float or None
    """

    place: int
    image_id: str
    caption: str
    score: float | None


@dataclass(frozen=True)
class GroupOfImages:
    """Matching images of one group: their number, and the images of this page."""

    name: str
    total: int
    images: tuple[ShownImage, ...]


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
    low, high : float or None
        Least and largest score to show; images without a score have neither.
    order : str
        "random", "highest score" or "lowest score".
    hide : str
        Area to blur: "faces", "outside" (all but the boxes), "all", or nothing.
    view : str
        "crop" to show only the crop of the image.
    page : int
        From 0.
    size : int
        Images per group; by default as many as fit on the page.
    """

    outcome: str = ""
    label: str = ""
    group: str = ""
    cause: str = ""
    low: float | None = None
    high: float | None = None
    order: str = "random"
    hide: str = ""
    view: str = ""
    page: int = 0
    size: int = 0


TEXTS = pl.col("subject", "outcome", "label").cast(pl.String)
"""Columns of examples as text: their files have each text once."""
_OTHER_LABEL = (
    pl.when(pl.col("outcome") == "miss")
    .then(pl.format("predicted {}", "label"))
    .when(pl.col("outcome") == "false alarm")
    .then(pl.format("labelled {}", "label"))
    .when(pl.col("label") != pl.col("subject"))
    .then("label")
)
VALUES = "cause_values.parquet"
"""File of the labels with the value of each cause that was tried, by image."""
# Values of a cause beyond which nobody chooses one.
_MOST_VALUES = 30
# Images on a page, and the fewest and other labels of a group that it offers.
_ON_A_PAGE, _LEAST_ON_A_PAGE, _MOST_LABELS = 48, 8, 300
ORDERS = ("random", "highest score", "lowest score")
HIDE = {"": "nothing", "faces": "faces", "outside": "all outside the box", "all": "all"}
"""What can be blurred, with its name on the page."""


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
            If it is no run, or its images have no paths.
        """
        result = read(run)
        if not names_files(run):
            raise RunError(
                f"{run}: this run has no images to show. To do: name their folder with `root:` "
                "or `path:` under data.images, and run the audit again"
            )
        return cls(run, result)

    @cached_property
    def images(self) -> pl.DataFrame:
        """The order and groups of every image; row numbers are places."""
        table = self._table
        names = [name for name in table.collect_schema() if name.startswith(GROUPS)]
        return table.select("order", *names).collect()

    def __len__(self) -> int:
        """Return the number of images."""
        return self.images.height

    @cached_property
    def image_ids(self) -> pl.Series:
        """Ids of the images by place."""
        return self._table.select("image_id").collect()["image_id"]

    @property
    def _table(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.run / FOLDER / IMAGES)

    @cached_property
    def has_crops(self) -> bool:
        """Whether the model sees a crop of each image."""
        return bool(self._table.select(pl.col("left").is_not_null().any()).collect().item())

    @cached_property
    def has_boxes(self) -> bool:
        """Whether the data have boxes of labels."""
        return (self.run / FOLDER / BOXES).is_file()

    def boxes(self, place: int, label: str) -> list[tuple[float, ...]]:
        """Return the boxes of a label in an image: left, top, right and bottom in pixels."""
        if not self.has_boxes:
            return []
        of_label = (pl.col("place") == place) & (pl.col("label").cast(pl.String) == label)
        table = pl.scan_parquet(self.run / FOLDER / BOXES).filter(of_label).select(CORNERS)
        return table.collect().rows()

    @property
    def ids(self) -> Objects:
        """Ids of the images, shape (n,)."""
        return np.array(self.image_ids.to_list(), dtype=object)

    @property
    def has_file(self) -> pl.Series:
        """Whether the run has a path of each image."""
        return self._table.select(pl.col("file").is_not_null()).collect()["file"]

    @property
    def choices(self) -> list[str]:
        """Attributes of the groups, joined by " × "; `ALL` without groups."""
        return [column.removeprefix(GROUPS) for column in self.images.columns[1:]] or [ALL]

    def grouped(self, groups: str) -> Groups:
        """Return the group of each image, with the smallest size that the run compares."""
        min_size = pl.read_parquet_metadata(self.run / FOLDER / IMAGES).get(LEAST, "1")
        return Groups.of({groups: self.group_names(groups).to_numpy()}, min_size=int(min_size))

    def group_names(self, groups: str) -> pl.Series:
        """Return the group of each image; `ALL` where the run lacks these groups."""
        column = groups_column(groups)
        if column in self.images.columns:
            return self.images[column]
        return pl.repeat(ALL, len(self), dtype=pl.String, eager=True).cast(pl.Categorical)

    @lru_cache(maxsize=4)  # noqa: B019 - a server has one of these, for as long as it lives
    def rows(self, model: str, subject: str) -> pl.DataFrame:
        """Return the examples of a subject: of all subjects where it is empty."""
        path = file_of(self.run, model)
        if not path.is_file():
            places = pl.int_range(self.images.height, dtype=pl.UInt32, eager=True).alias("place")
            empty = pl.lit(None, pl.String)
            return places.to_frame().with_columns(
                outcome=pl.lit(ALL, pl.Categorical), score=pl.lit(None, pl.Float32),
                subject=empty, label=empty,
            )  # fmt: skip
        table = pl.scan_parquet(path)
        examples = table.filter(pl.col("subject") == subject).collect()
        return examples if examples.height else table.collect()

    def outcomes(self, finding: Finding) -> dict[str, int]:
        """Return the number of images by outcome, the outcomes most at issue first."""
        counts = self.rows(finding.model, finding.subject)["outcome"].value_counts()
        guided = self._guidance.get((finding.model, finding.version), [])
        mistakes = WRONG if counts_false_alarms(finding.metric) else WRONG[::-1]
        unanswered = (NO_ANSWER,) if counts_unanswered(finding.metric) else ()
        totals = {str(name): int(total) for name, total in counts.iter_rows()}
        ordered = dict.fromkeys((*guided, *unanswered, *mistakes, "rejected", *sorted(totals)))
        return {name: totals[name] for name in ordered if name in totals}

    @cached_property
    def _guidance(self) -> dict[tuple[str, str], list[str]]:
        """The outcome that names a strength of guidance, by model and version of findings."""
        table = self.result.tables.get("versions")
        if table is None or "guidance" not in table.column_names:
            return {}
        return {
            (row["model"], row["version"]): [guidance_name(row["guidance"])]
            for row in table.to_pylist()
        }

    def labels(self, finding: Finding, outcome: str) -> list[str]:
        """Return the other labels of images with an outcome, the most frequent first."""
        rows = self.rows(finding.model, finding.subject).filter(pl.col("outcome") == outcome)
        counts = rows["label"].drop_nulls().value_counts(sort=True)
        names = counts["label"].head(_MOST_LABELS).to_list()
        return [name for name in names if name != finding.subject]

    def causes(self) -> list[str]:
        """Return the values of the causes, such as "medium: painting"."""
        path = self.run / LABELS / VALUES
        if not path.is_file():
            return []
        table, choices = pl.read_parquet(path).drop("image_id"), list[str]()
        for column in table:
            values = sorted(map(str, column.drop_nulls().unique().to_list()))
            if len(values) <= _MOST_VALUES:
                choices += [f"{column.name}: {value}" for value in values]
        return choices

    def _has_cause(self, cause: str) -> pl.Series:
        """Return whether each image has the value of a cause."""
        table = pl.read_parquet(self.run / LABELS / VALUES)
        return look_up_values(
            self.image_ids, table["image_id"], table.select(_match_cause(table, cause)).to_series()
        )

    def groups(self, finding: Finding) -> list[str]:
        """Return the names of the groups that a finding compares."""
        if groups_column(finding.groups) not in self.images.columns:
            return [ALL]
        if finding.group:
            return [finding.group, OTHERS]
        return [group.group for group in finding.by_group] or [ALL]

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
        if selection.low is not None:
            rows = rows.filter(pl.col("score") >= selection.low)
        if selection.high is not None:
            rows = rows.filter(pl.col("score") <= selection.high)
        if selection.cause:
            rows = rows.filter(self._has_cause(selection.cause)[rows["place"]])
        groups = self.groups(finding)
        names = self.group_names("" if groups == [ALL] else finding.groups)
        places = rows["place"]
        rows = rows.with_columns(order=self.images["order"][places], group=names[places])
        sort_columns = {"random": "order", "highest score": "score", "lowest score": "score"}
        descending = [selection.order == "highest score", False]
        rows = rows.sort(
            sort_columns[selection.order], "order", descending=descending, nulls_last=True
        )
        start = selection.page * self.size(finding, selection)
        for name in groups:
            if selection.group not in ("", name):
                continue
            in_group = (
                pl.col("group") != finding.group if name == OTHERS else pl.col("group") == name
            )
            matching = rows.filter(in_group)
            page_rows = matching.slice(start, self.size(finding, selection)).with_columns(TEXTS)
            yield GroupOfImages(
                name, matching.height, self._describe_images(page_rows, finding.subject)
            )

    def size(self, finding: Finding, selection: Selection) -> int:
        """Return how many images of each group a page has."""
        columns = 1 if selection.group else len(self.groups(finding))
        return selection.size or max(_LEAST_ON_A_PAGE, _ON_A_PAGE // columns)

    def _describe_images(self, rows: pl.DataFrame, subject: str) -> tuple[ShownImage, ...]:
        # Ids of a million images stay where they are.
        places = rows["place"].unique().sort().to_list()
        ids = dict(zip(places, read_pictures(self.run, places).ids, strict=True))
        # The heading names the subject already.
        is_subject = pl.col("subject") == subject
        captions = rows.select(
            pl.when(is_subject).then(_OTHER_LABEL).otherwise(CAPTION).fill_null("")
        )
        entries = zip(*rows.select("place", "score"), captions.to_series(), strict=True)
        return tuple(
            ShownImage(place, ids[place], caption, score) for place, score, caption in entries
        )


def _match_cause(table: pl.DataFrame, cause: str) -> pl.Expr:
    """Return whether an image has a cause's value; both may hold colons."""
    fits = [
        pl.col(name).cast(pl.String) == cause.removeprefix(f"{name}: ")
        for name in table.columns
        if name != "image_id" and cause.startswith(f"{name}: ")
    ]
    return pl.any_horizontal(fits).fill_null(value=False)
