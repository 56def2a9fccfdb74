"""Model outputs for a run's images: embeddings, media, hidden objects."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import ValidationError

from equipoise.audits.concepts.config import Config as Concepts
from equipoise.audits.images import AuditImages
from equipoise.audits.kind import audit_of
from equipoise.audits.labels.predictions.config import Config as Predictions
from equipoise.audits.labels.predictions.config import ModelConfig
from equipoise.audits.outputs import Models
from equipoise.config.fields import RunConfig
from equipoise.config.images import CORNERS
from equipoise.core import (
    Bytes,
    ConfigError,
    DataError,
    Floats,
    Groups,
    Integers,
    Progress,
    record,
)
from equipoise.data import ArraySource, Items, load_vectors
from equipoise.data.labels import Outputs
from equipoise.evidence import Decoding, ImageError, Pictures
from equipoise.evidence.examples import BOXES, FOLDER, IMAGES
from equipoise.evidence.pictures import Source, pixels
from equipoise.metrics import explained_disparity, labelled_share_gap
from equipoise.metrics.measure import Drawing
from equipoise.models.registry import is_code
from equipoise.report.store import base_of
from equipoise.review.disparities import Disparity
from equipoise.review.labels import consensus, read_labels
from equipoise.review.questions import UNSURE
from equipoise.review.results import tabulate_shares
from equipoise.review.sampling import drawn_strata, read_draws
from equipoise.review.seeing import Row
from equipoise.review.thumbnails import find_images_section, find_pictures, index_pictures
from equipoise.stats.resampling import Resampling

Read = Callable[[], pl.Series]
"""Reads a column of a cause, shape (n,): null where missing."""
MEDIUM = "medium"
MEDIA = {
    "photograph": ("a photograph", "a photo"),
    "painting": ("a painting",),
    "drawing": ("a drawing", "a sketch"),
    "rendering": ("a computer rendering",),
    "black and white": ("a black and white photograph",),
    "sign": ("a sign",),
}
"""Answers of the question `medium` with the prompts of the zero-shot probe."""


@record
class HiddenObjects:
    """Pictures with each object painted over in the picture's mean grey.

    Attributes
    ----------
    source : Source
    boxes : ndarray of int64, shape (n, 4)
        Left, top, right and bottom in pixels, in the order of the source.
    """

    source: Source
    boxes: Integers

    def read(self, place: int) -> bytes:
        """Return a picture as PNG; other files unchanged."""
        from PIL import Image

        data = self.source.read(place)
        try:
            levels: Bytes = pixels(data, Decoding()).copy()
        except ImageError:
            return data
        left, top, right, bottom = self.boxes[place]
        levels[top:bottom, left:right] = round(levels.mean())
        buffer = io.BytesIO()
        Image.fromarray(levels).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()

    def where(self, place: int) -> str:
        """Return the location of a picture, for messages."""
        return self.source.where(place)

    def take(self, places: Sequence[int]) -> HiddenObjects:
        """Return some of the pictures."""
        return HiddenObjects(self.source.take(places), self.boxes[[*places]])


@record
class Probe:
    """Outputs of models and boxes of data sets, for the images of a disparity.

    Attributes
    ----------
    run : Path
    disparity : Disparity
    folder : Path or None
        Of the pictures, in place of that of the config.
    allow_pickle, trust_remote_code : bool
        Whether models may run code. What the config of the run allows doesn't count: somebody else
        may have written it.
    progress : callable or None
    """

    run: Path
    disparity: Disparity
    folder: Path | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    progress: Progress | None = None

    @cached_property
    def models(self) -> Models:
        """The model runner, with the store of the run's config."""
        return Models(self.disparity.images.config, base_of(self.run), self.progress)

    @cached_property
    def source_images(self) -> AuditImages | None:
        """The images of the config, or None if it names no images."""
        section = find_images_section(self.disparity.images.config)
        return None if section is None else self.models.read_images(section)

    @cached_property
    def pictures(self) -> Pictures:
        """Pictures of the run, by the ids of the run."""
        pictures = find_pictures(self.run, self.folder)
        places = index_pictures(pictures)
        names = sorted(name for name in self.disparity.ids.tolist() if name in places)
        selected = pictures.take([places[name] for name in names])
        return replace(selected, ids=np.array(names, dtype=object))

    @cached_property
    def label_boxes(self) -> pl.DataFrame | None:
        """Boxes of labels, with the ids of images, or None if the run has none."""
        folder = self.run / FOLDER
        if not (folder / BOXES).is_file():
            return None
        ids = pl.read_parquet(folder / IMAGES, columns=["image_id"])["image_id"]
        table = pl.read_parquet(folder / BOXES).cast({"label": pl.String})
        return table.with_columns(image_id=ids[table["place"]])

    def find_model(self, option: str, name: str) -> RunConfig:
        """Return a model of the run, or a model by its name for `load_model`.

        Raises
        ------
        ConfigError
            If the run has no such model, it has no prefix, or it runs code that the user doesn't
            allow.
        """
        section = getattr(self.disparity.images.config, "models", {}).get(name)
        if isinstance(section, RunConfig):
            if section.model is None:
                raise ConfigError(
                    f"{option} {name}: the run has its outputs from a file; expected a model that "
                    "can be run. To do: name one such as hf:openai/clip-vit-base-patch32"
                )
            self._check_trust(option, name, section)
            return section
        try:
            return RunConfig(
                model=name,
                allow_pickle=self.allow_pickle,
                trust_remote_code=self.trust_remote_code,
            )
        except ValidationError as error:
            raise ConfigError(f"{option} {name}: {error.errors()[0]['ctx']['error']}") from None

    def _check_trust(self, option: str, name: str, section: RunConfig) -> None:
        """Refuse a model of the run that may run code, unless the user allows it."""
        coded = section.trust_remote_code or is_code(str(section.model).partition(":")[0])
        needs = {
            "trust_remote_code": (coded, "runs Python code"),
            "allow_pickle": (section.allow_pickle, "reads pickles, which can run code"),
        }
        for key, (needed, risk) in needs.items():
            if needed and not getattr(self, key):
                raise ConfigError(
                    f"{option} {name}: the run names the model {section.called}, which {risk}. To "
                    f"do: if you trust the author of {self.run}, add --{key.replace('_', '-')}"
                )

    def embed_images(self, name: str, ids: Path | None, id_column: str) -> tuple[Integers, Floats]:
        """Return places of images and their unit embeddings, from a file or a model.

        Parameters
        ----------
        name : str
            A file, or a model; stored embeddings of a model are reused.
        ids : Path or None
            Ids of the rows of a file that has none.
        id_column : str
            Of a table.
        """
        source: ArraySource | Outputs
        models = getattr(self.disparity.images.config, "models", {})
        if name in models or (":" in name and not Path(name).exists()):
            section = self.find_model("--embeddings", name)
            source = self.models.embed_images(name, section, self.pictures)
        else:
            table = name.endswith((".parquet", ".csv"))
            source = ArraySource(Path(name), ids=ids, id=id_column if table else None)
        items = Items("images", "image_id", self.disparity.ids, {}, {}, {})
        vectors = load_vectors(source, items, max_unmatched=1.0)
        places = np.flatnonzero(vectors.usable)
        units = np.asarray(vectors.take(places), dtype=np.float64)
        return places, units / np.linalg.norm(units, axis=1, keepdims=True)

    def predict_media(self, name: str) -> pl.Series:
        """Return the medium of each image by a zero-shot model; null where it failed."""
        from equipoise.audits.labels.predictions.audit import predict_labels

        base = self.find_model("--medium", name)
        fields = {key: getattr(base, key) for key in RunConfig.model_fields}
        section = ModelConfig(**fields, vocabulary=MEDIA, templates=("{}",), k=1)
        outputs = predict_labels(self.models, name, section, self.pictures)
        assert outputs.labels is not None  # noqa: S101 - it has the vocabulary
        first = pl.Series(outputs.labels.values[:, 0].tolist(), dtype=pl.String)
        return self.disparity.align(outputs.ids, first)

    def correct_media(self, media: pl.Series, seed: int) -> list[Row]:
        """Return the share of each medium by group, corrected by human labels.

        The errors of the probe may depend on the group: within a group and a medium by the probe,
        the share is that of the images that people labelled, a random sample of these.
        """
        labels = read_labels(self.run).filter(pl.col("answer") != UNSURE, question=MEDIUM)
        answers = consensus(labels).drop_nulls()
        labelled_media = self.disparity.align(answers["image_id"], answers["answer"])
        disparity, draws = self.disparity, read_draws(self.run, MEDIUM)
        level: list[str | None] = [""] * len(media)
        if draws:
            level = drawn_strata(self.run, disparity.images, draws)
        table = pl.DataFrame({"medium": media, "level": level, "about": disparity.about})
        cell = pl.concat_str("medium", "level", separator=" / ")
        strata = table.select(pl.when("about").then(cell)).to_series().to_list()
        rows = list[Row]()
        for name in MEDIA:
            if name in labelled_media.to_list():
                outcome = (labelled_media == name).cast(pl.Float64).fill_null(np.nan).to_numpy()
                gap = labelled_share_gap(outcome, strata, disparity.groups, rng=seed)
                rows += tabulate_shares(name, gap)
        return rows

    def find_boxes(self, columns: Mapping[str, Read]) -> Floats:
        """Return left, top, right and bottom of the object of each image, shape (n, 4).

        Columns of these names; else crops; else of the data set's boxes with the label of the
        image the largest. NaN where an image has none.
        """
        objects = pl.DataFrame({
            "image_id": self.disparity.ids.tolist(), "label": self.disparity.labels.tolist(),
        })  # fmt: skip
        if {*CORNERS} <= columns.keys():
            boxes = objects.with_columns(columns[name]().alias(name) for name in CORNERS)
        elif self.pictures.crops is not None:
            boxes = pl.DataFrame(self.pictures.crops, CORNERS)
            boxes = boxes.with_columns(image_id=pl.Series(self.pictures.ids))
        elif self.label_boxes is not None:
            size = (pl.col("right") - pl.col("left")) * (pl.col("bottom") - pl.col("top"))
            boxes = self.label_boxes.join(objects, on=["image_id", "label"]).sort(
                size, descending=True
            )
        else:
            raise ConfigError(
                "no boxes of objects: expected crops, a data set with boxes, or columns "
                f"{', '.join(CORNERS)} in pixels"
            )
        first = boxes.unique("image_id", keep="first", maintain_order=True)
        joined = objects.join(first, on="image_id", how="left", maintain_order="left").select(
            CORNERS
        )
        return joined.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()

    def predict_without_objects(self, boxes: Floats) -> Floats:
        """Return the outcome of each image when the model doesn't see the object.

        NaN for images without a box, and for images outside the finding.

        Raises
        ------
        ConfigError
            If the run has no model to run, or its images are crops.
        DataError
            If no image has a box.
        """
        disparity, model = self.disparity, self.disparity.finding.model
        section, config = self.find_model("--mask", model), disparity.images.config
        assert isinstance(config, Predictions | Concepts)  # noqa: S101 - others have no outcomes
        if self.pictures.crops is not None:
            raise ConfigError(
                "--mask: the images are crops, and hiding the object would hide them whole. To do: "
                "audit the whole images"
            )
        has_box = disparity.about & ~np.isnan(boxes).any(axis=1)
        rows = {name: row for row, name in enumerate(disparity.ids.tolist()) if has_box[row]}
        pictures = self.pictures.take(
            [place for place, name in enumerate(self.pictures.ids) if name in rows]
        )
        if not len(pictures):
            raise DataError("no image has a box of its object", file=pictures.name)
        image_boxes = boxes[[rows[name] for name in pictures.ids]].clip(0)
        corners = np.append(
            np.floor(image_boxes[:, :2]), np.ceil(image_boxes[:, 2:]), axis=1
        ).astype(np.int64)
        without_objects = replace(pictures, source=HiddenObjects(pictures.source, corners))
        store = config.extraction.store / "without_objects"
        model_config = config.model_copy(update={
            "models": {model: section},
            "data": config.data.model_copy(update={"max_unmatched": 1.0}),
            "extraction": config.extraction.model_copy(update={"store": store}),
        })  # fmt: skip
        models, kind = (
            Models(model_config, base_of(self.run), self.progress),
            audit_of(config.audit),
        )
        assert self.source_images is not None  # noqa: S101 - predictions and concepts have images
        models.sets["images"] = replace(self.source_images, locate=lambda: without_objects)
        loaded = kind.load(model_config, models)
        outcome = disparity.compute_outcome(kind.examples(model_config, loaded)[model], loaded.ids)
        return np.where(np.isin(disparity.ids, pictures.ids), outcome, np.nan)


def measure_losses(
    disparity: Disparity, hidden: Floats, resampling: Resampling, seed: int
) -> Iterator[Row]:
    """Yield each group's loss when its objects are hidden, then the difference.

    Parameters
    ----------
    disparity : Disparity
    hidden : ndarray, shape (n,)
        Outcomes without the objects.
    resampling : Resampling
        Images or units are resampled with both of their outcomes.
    seed : int

    Yields
    ------
    dict
        `group`, `n`, `visible` and `hidden` (mean outcomes), `lost` with `low` and `high`. The
        outcome that stays comes from the context.
    """
    units = disparity.ids if disparity.images.units is None else disparity.images.units
    measured = ~np.isnan(hidden) & (disparity.groups.large >= 0)
    drawing = Drawing(resampling=resampling, rng=seed)
    repeated = np.tile(np.flatnonzero(measured), 2)
    condition = np.repeat(["visible", "hidden"], measured.sum())
    names = np.array(disparity.groups.names, dtype=object)[disparity.groups.codes[repeated]]
    outcome = np.append(disparity.outcome[measured], hidden[measured])
    by_condition = explained_disparity(
        outcome,
        Groups.of(condition, min_size=1),
        names,
        first="visible",
        units=units[repeated],
        **drawing,
    )
    for part in by_condition.parts:
        if part.metric == "disparity_in_stratum":
            visible, without = part.by_group
            yield {
                "group": part.subject, "n": visible.n, "visible": visible.value,
                "hidden": without.value, "lost": part.value, "low": part.low, "high": part.high,
            }  # fmt: skip
    between_groups = explained_disparity(
        disparity.outcome - hidden, disparity.groups, ["same"] * len(hidden),
        first=disparity.group, units=units, **drawing,
    )  # fmt: skip
    difference = between_groups.parts[0]
    yield {
        "group": f"{disparity.group} minus {disparity.others}", "n": difference.n,
        "lost": difference.value, "low": difference.low, "high": difference.high,
    }  # fmt: skip
