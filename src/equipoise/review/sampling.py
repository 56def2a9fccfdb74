"""Samples of a run's images, stratified by group, label and prediction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.audits.config import AuditConfig
from equipoise.audits.labels.predictions.config import Config
from equipoise.core import (
    ConfigError,
    Floats,
    Groups,
    Integers,
    Objects,
    RunError,
    record,
)
from equipoise.core.files import read_json_file
from equipoise.data.problems import listed
from equipoise.evidence import LABELS, keep_labels, read_predictions
from equipoise.metrics.labels.sampled import SampledCells
from equipoise.report import read
from equipoise.review.examples import TEXTS, Examples
from equipoise.review.labels import look_up_values
from equipoise.review.run_configs import config_of_run
from equipoise.stats.streams import stream, unit_keys, unit_uniforms

_DRAWS = "samples.json"
# Columns of every image that form strata, from the finest. A sample uses the finest strata that it
# can fill with two labels each.
LEVELS = {
    "label × prediction": ("target", "prediction"),
    "label × right or wrong": ("target", "right"),
    "right or wrong": ("right",),
    "label × outcome": ("target", "outcome"),
    "outcome × score": ("outcome", "half"),
    "outcome": ("outcome",),
    "label": ("target",),
    "group": (),
}
_IMAGES_PER_STRATUM = 2


@dataclass(frozen=True)
class Draw:
    """A sample of images to label; later samples keep its model, groups and level.

    Attributes
    ----------
    question, model, groups, level : str
    counted : str
        Answer that the sample was planned for.
    size, seed : int
    group : str
        Group to compare with all others; "" for all groups alike.
    answers : tuple of str
        Of the question.
    subject, outcome : str
        Of the images that it was drawn from; "" for all.
    """

    question: str
    model: str
    groups: str
    level: str
    counted: str
    size: int
    seed: int
    group: str = ""
    answers: tuple[str, ...] = ()
    subject: str = ""
    outcome: str = ""


@record
class RunImages:
    """Images of a run, as samples and estimates need them.

    Attributes
    ----------
    config : AuditConfig
    ids : ndarray of str objects, shape (n,)
    groups : Groups
    model : str
    table : polars.DataFrame
        `about`: whether the image is one of the subject and outcome. Columns of `LEVELS` as text,
        null where missing, if the run has them: the label, the prediction and whether both agree;
        the outcome of the finding and the half of its scores.
    scores : mapping of str to ndarray, shape (n,)
        The model's probability of the predicted label, or its score.
    classes : tuple of str
        Classes that the model predicts; empty where it predicts no classes.
    units : ndarray of str objects, shape (n,), or None
        Unit of each image, such as the person shown.
    """

    config: AuditConfig
    ids: Objects
    groups: Groups
    model: str
    table: pl.DataFrame
    scores: Mapping[str, Floats]
    classes: tuple[str, ...]
    units: Objects | None = None

    def restrict(self, chosen: pl.Series) -> RunImages:
        """Return the images with fewer of them open to questions."""
        return replace(self, table=self.table.with_columns(pl.col("about") & chosen))

    @property
    def levels(self) -> list[str]:
        """Names of the strata that separate images, from the finest."""
        included = self.table.filter("about")
        varying = {column.name for column in included if column.n_unique() > 1}
        return [name for name, columns in LEVELS.items() if varying.issuperset(columns)]

    def strata(self, level: str) -> list[str | None]:
        """Return the stratum of each image within its group; None of images left out."""
        columns = [pl.col(name).fill_null("–") for name in LEVELS[level]]
        cell = pl.concat_str([pl.lit("all"), *columns], separator=" / ")
        return self.table.select(pl.when("about").then(cell)).to_series().to_list()

    def outcome(self, answers: pl.DataFrame, counted: str) -> Floats:
        """Return whether the consensus of each image is an answer; NaN without one."""
        agreed = look_up_values(self.ids.tolist(), answers["image_id"], answers["answer"])
        return (agreed == counted).cast(pl.Float64).fill_null(np.nan).to_numpy()


def load_images(
    run: Path, *, model: str = "", groups: str = "", subject: str = "", outcome: str = ""
) -> RunImages:
    """Read the images of a run.

    Parameters
    ----------
    run : Path
    model : str
        Audited model; the only or first one unless given.
    groups : str
        Attributes, joined by " × "; those that the run compares first unless given.
    subject : str
        Class, concept, query or answer whose images alone count; all images unless given.
    outcome : str
        Outcome of images that alone count, such as "miss"; every one unless given.

    Raises
    ------
    RunError
        If it is no run, or it has neither predictions nor images with files.
    ConfigError
        If the run has no such model, groups, subject or outcome.
    """
    result = read(run)
    config = config_of_run(result.manifest.resolved, run)
    if (run / "predictions").is_dir():
        images = _load_predictions(run, config, model, groups)
        if not (subject or outcome):
            return images
        rows = _read_rows(Examples.of(run), images.model, subject, outcome)
    else:
        examples = Examples.of(run)
        models = [*dict.fromkeys(finding.model for finding in result.findings)]
        model, groups = _choose(run, models, examples.choices, model, groups)
        rows = _read_rows(examples, model, subject, outcome)
        images = RunImages(
            config, examples.ids, examples.grouped(groups), model,
            *_describe_images(rows, len(examples), model),
        )  # fmt: skip
        if examples.has_file.any():
            # Images that a generator refused have no file.
            images = images.restrict(examples.has_file)
    if not (subject or outcome):
        return images
    places = pl.int_range(len(images.ids), dtype=pl.UInt32, eager=True)
    return images.restrict(places.is_in(rows["place"].implode()))


def _choose(
    run: Path, models: Sequence[str], choices: Sequence[str], model: str, groups: str
) -> tuple[str, str]:
    """Return the model and the attributes; by default the first of each."""
    model, groups = model or models[0], groups or choices[0]
    for option, name, allowed in (("model", model, models), ("groups", groups, choices)):
        if name not in allowed:
            raise ConfigError(
                f"--{option} {name}: not in {run}; expected one of {', '.join(allowed)}"
            )
    return model, groups


def _load_predictions(run: Path, config: AuditConfig, model: str, groups: str) -> RunImages:
    """Return the images of a run of predictions."""
    data = read_predictions(run)
    assert isinstance(config, Config)  # noqa: S101 - no other kind writes predictions
    choices = {" × ".join(names): names for names in config.data.groups}
    model, groups = _choose(run, [*data.models], [*choices], model, groups)
    attributes = {name: data.coded_attributes[name] for name in choices[groups]}
    version = next(iter(data.models[model].versions.values()))
    target = pl.Series("target", data.coded_target.values.tolist(), pl.String)
    prediction = pl.Series("prediction", version.coded.values.tolist(), pl.String)
    right = pl.when(target.eq_missing(prediction)).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    scores = {}
    if version.probabilities is not None:
        score = np.nan_to_num(version.probabilities, nan=-np.inf).max(axis=1)
        scores[f"probability of {model}"] = np.where(np.isinf(score), np.nan, score)
    return RunImages(
        config, data.ids, Groups.of(attributes, min_size=config.data.min_group_size), model,
        pl.DataFrame([target, prediction]).with_columns(right=right, about=True), scores,
        tuple(data.classes), data.unit,
    )  # fmt: skip


def _read_rows(examples: Examples, model: str, subject: str, outcome: str) -> pl.DataFrame:
    """Return the examples of a subject and an outcome."""
    rows = examples.rows(model, subject).with_columns(TEXTS)
    for column, name in (("subject", subject), ("outcome", outcome)):
        if not name:
            continue
        values = rows[column].drop_nulls().unique().sort().to_list()
        if name not in values:
            raise ConfigError(
                f"--{column} {name}: not in {examples.run}; expected one of {listed(values)}"
            )
        rows = rows.filter(pl.col(column) == name)
    return rows


def _describe_images(
    rows: pl.DataFrame, n: int, model: str
) -> tuple[pl.DataFrame, dict[str, Floats], tuple[str, ...]]:
    """Return the table, scores and classes; few where images have several rows."""
    images = pl.DataFrame({"place": np.arange(n, dtype=np.uint32)}).with_columns(about=True)
    if rows["place"].is_duplicated().any():
        return images, {}, ()
    high = pl.col("score") >= pl.col("score").median().over("outcome")
    half = pl.when(high).then(pl.lit("high")).when(~high).then(pl.lit("low"))
    # Names of subjects are predictions, other labels captions.
    predicted = rows["label"].drop_nulls().is_in(rows["subject"].unique().implode()).all()
    target = pl.col("subject") if predicted else pl.coalesce("label", "subject")
    described = rows.select(
        "place", "outcome", "score", target=target, half=half,
        prediction=pl.when(predicted).then("label"),
    )  # fmt: skip
    table = images.join(described, on="place", how="left", maintain_order="left")
    score = table["score"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    classes = table["prediction"].drop_nulls().unique().sort().to_list()
    scores = {}
    if not np.isnan(score).all():
        scores[f"score of {model}"] = score
    return table, scores, tuple(classes)


def shown_labels(images: RunImages, rows: Sequence[int]) -> list[str]:
    """Return the label of some images, which a question shows.

    Raises
    ------
    ConfigError
        If the run has none, or several for each image.
    """
    if "target" not in images.table.columns or images.table["target"].is_null().all():
        raise ConfigError(
            "the images have no label of their own to judge. To do: choose a class, concept, query "
            "or answer with --subject, or ask another question"
        )
    return images.table["target"].gather([*rows]).fill_null("").to_list()


def read_draws(run: Path, question: str) -> list[Draw]:
    """Return the samples of a question, in order.

    Raises
    ------
    RunError
        If their file is damaged.
    """
    return [draw for draw in _read_all_draws(run) if draw.question == question]


def _read_all_draws(run: Path) -> list[Draw]:
    path = run / LABELS / _DRAWS
    if not path.exists():
        return []
    try:
        return [
            Draw(**facts | {"answers": tuple(facts["answers"])}) for facts in read_json_file(path)
        ]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: cannot be read: {error}. To do: remove it") from None


def choose_level(images: RunImages, size: int) -> str:
    """Return the finest strata that a sample can fill with two images each."""
    for level in images.levels:
        cells = SampledCells.of(np.full(len(images.ids), np.nan), images.strata(level),
                                images.groups)  # fmt: skip
        if _IMAGES_PER_STRATUM * len(cells.sizes) <= size:
            return level
    return "group"


def strata_in_words(level: str) -> str:
    """Name strata with the groups that they are crossed with."""
    return level if level == "group" else f"group × {level}"


def drawn_strata(run: Path, images: RunImages, draws: Sequence[Draw]) -> list[str | None]:
    """Return the stratum of each image by the samples of a question.

    Parameters
    ----------
    run : Path
    images : RunImages
        May have another model, other groups or another subject than the samples.
    draws : sequence of Draw
        Not empty: the first decides.
    """
    draw = draws[0]
    drawn_by = draw.model, draw.groups, draw.subject, draw.outcome
    if drawn_by == (images.model, images.groups.name, "", ""):
        return images.strata(draw.level)
    drawn_from = load_images(
        run, model=draw.model, groups=draw.groups, subject=draw.subject, outcome=draw.outcome
    )
    groups = drawn_from.groups
    group = np.array([*groups.names, None], dtype=object)[groups.codes].tolist()
    columns = {"group": group, "stratum": drawn_from.strata(draw.level)}
    table = pl.DataFrame(columns, dict.fromkeys(columns, pl.String))
    return table.select(pl.concat_str(pl.all(), separator=" / ")).to_series().to_list()


def draw_sample(
    run: Path, images: RunImages, draw: Draw, answers: pl.DataFrame, labels: pl.DataFrame
) -> tuple[Integers, Draw]:
    """Draw images that have no label yet.

    Parameters
    ----------
    run : Path
    images : RunImages
    draw : Draw
        Its level is that of earlier draws, or chosen by size where it has none.
    answers : polars.DataFrame
        Consensus of the question, see `consensus`.
    labels : polars.DataFrame
        Labels of the question; their images are not drawn again.

    Returns
    -------
    ndarray of int, shape (size,)
        Places of the images, in random order.
    Draw
        With its level.

    Raises
    ------
    ConfigError
        If no image is left, or earlier draws are by another model or other groups.
    """
    earlier = read_draws(run, draw.question)
    for option in ("model", "groups"):
        if earlier and getattr(earlier[0], option) != getattr(draw, option):
            raise ConfigError(
                f"--{option} {getattr(draw, option)}: the samples of {draw.question!r} are drawn "
                f"by {getattr(earlier[0], option)}. To do: leave --{option} out"
            )
    level = draw.level or (earlier[0].level if earlier else choose_level(images, draw.size))
    draw = replace(draw, level=level)
    outcome = images.outcome(answers, draw.counted)
    cells = SampledCells.of(outcome, images.strata(draw.level), images.groups)
    sample_sizes = cells.allocate(draw.size, draw.group or None)
    # The first of a fixed order: later draws go on in it.
    rank = unit_uniforms(draw.seed, "label", unit_keys(images.ids.tolist()), range(1))[0]
    labelled = pl.Series(images.ids.tolist(), dtype=pl.String).is_in(labels["image_id"].implode())
    unlabelled = np.flatnonzero(~labelled.to_numpy() & (cells.code >= 0))
    ordered = unlabelled[np.lexsort((rank[unlabelled], cells.code[unlabelled]))]
    code = cells.code[ordered]
    place = np.arange(len(code)) - np.searchsorted(code, code)
    chosen = ordered[place < sample_sizes[code]]
    if not len(chosen):
        raise ConfigError(f"{run}: every image has a label for {draw.question!r}")
    shuffled = stream(draw.seed, "order", len(labels)).permutation(np.sort(chosen))
    return shuffled, draw


def note_draw(run: Path, draw: Draw) -> None:
    """Add a sample to the run's list of samples."""

    def add_draw() -> dict[str, bytes]:
        draws = [asdict(sample) for sample in dict.fromkeys((*_read_all_draws(run), draw))]
        return {_DRAWS: json.dumps(draws, ensure_ascii=False, indent=1).encode()}

    keep_labels(run, add_draw)
