"""Samples of a run's images: stratified by group, machine label and audited prediction."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.audits.config import AuditConfig, parse_config
from equipoise.audits.predictions.config import Config
from equipoise.core import ConfigError, Floats, Groups, Integers, Objects, RunError, record
from equipoise.evidence import LABELS, keep_labels, read_predictions
from equipoise.metrics.counts.sampled import SampledCells
from equipoise.report import read
from equipoise.review.questions import QUESTIONS
from equipoise.stats.streams import stream, unit_keys, unit_uniforms

_DRAWS = "samples.json"
# From the finest: what is known of all images. The finest with two labels a stratum is taken.
LEVELS = {
    "label × prediction": ("target", "prediction"),
    "label × right or wrong": ("target", "right"),
    "right or wrong": ("right",),
    "group": (),
}
_EACH = 2


@dataclass(frozen=True)
class Draw:
    """A sample that was drawn; later ones of the question keep its model, groups and level.

    Attributes
    ----------
    question, model, groups, level : str
    counted : str
        Answer that the sample was planned for.
    size, seed : int
    group : str
        Group whose difference from all others it was to sharpen; "" for all groups alike.
    answers : tuple of str
        Of the question.
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


@record
class RunImages:
    """Images of a run of predictions, as samples and estimates need them.

    Attributes
    ----------
    config : AuditConfig
    ids : ndarray of str objects, shape (n,)
    groups : Groups
    model : str
    table : polars.DataFrame
        `target`, `prediction` and `right` as text, null where missing.
    score : ndarray, shape (n,), or None
        Probability of the predicted label.
    classes : tuple of str
    units : ndarray of str objects, shape (n,), or None
        Unit of each image, such as the person shown.
    """

    config: AuditConfig
    ids: Objects
    groups: Groups
    model: str
    table: pl.DataFrame
    score: Floats | None
    classes: tuple[str, ...]
    units: Objects | None = None

    def strata(self, level: str) -> list[str]:
        """Return the stratum of each image within its group."""
        names = LEVELS[level]
        if not names:
            return ["all"] * len(self.ids)
        known = [pl.col(name).fill_null("–") for name in names]
        return self.table.select(pl.concat_str(known, separator=" / ")).to_series().to_list()

    def outcome(self, answers: pl.DataFrame, counted: str) -> Floats:
        """Return whether the consensus of each image is an answer; NaN without one."""
        given = dict(answers.drop_nulls().iter_rows())
        found = [given.get(name) for name in self.ids.tolist()]
        return np.array([np.nan if one is None else float(one == counted) for one in found])


def load_images(run: Path, *, model: str = "", groups: str = "") -> RunImages:
    """Read the images of a run.

    Parameters
    ----------
    run : Path
    model : str
        Audited model; the only or first one unless given.
    groups : str
        Attributes, joined by " × "; those that the run compares first unless given.

    Raises
    ------
    RunError
        If it is no run, or not one of predictions.
    ConfigError
        If the run has no such model or groups.
    """
    resolved = read(run).manifest.resolved
    if resolved.get("audit") != "predictions":
        raise RunError(
            f"{run}: a run of {resolved.get('audit')}; expected one of predictions, which has the "
            "labels and predictions of every image. To do: audit predictions of these images"
        )
    config, data = parse_config(resolved, source=str(run / "manifest.json")), read_predictions(run)
    assert isinstance(config, Config)  # noqa: S101 - the kind decides the schema
    choices = {" × ".join(one): one for one in config.data.groups}
    model, groups = model or next(iter(data.models)), groups or next(iter(choices))
    for what, name, known in (("model", model, data.models), ("groups", groups, choices)):
        if name not in known:
            raise ConfigError(f"--{what} {name}: not in {run}; expected one of {', '.join(known)}")
    attributes = {name: data.coded_attributes[name] for name in choices[groups]}
    made = next(iter(data.models[model].versions.values()))
    target, said = (
        pl.Series(name, one.values.tolist(), pl.String)
        for name, one in (("target", data.coded_target), ("prediction", made.coded))
    )
    right = pl.when(target.eq_missing(said)).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    score = None
    if made.probabilities is not None:
        score = np.nan_to_num(made.probabilities, nan=-np.inf).max(axis=1)
        score = np.where(np.isinf(score), np.nan, score)
    return RunImages(
        config, data.ids, Groups.of(attributes, min_size=config.data.min_group_size), model,
        pl.DataFrame([target, said]).with_columns(right=right), score, tuple(data.classes),
        data.unit,
    )  # fmt: skip


def read_draws(run: Path, question: str) -> list[Draw]:
    """Return the samples that were drawn for a question, in order.

    Raises
    ------
    RunError
        If their file is damaged.
    """
    return [one for one in _every_draw(run) if one.question == question]


def known_answers(run: Path, question: str) -> tuple[str, ...]:
    """Return the answers of a question of one's own that was asked before; none of others."""
    known = () if question in QUESTIONS else read_draws(run, question)
    return known[-1].answers if known else ()


def _every_draw(run: Path) -> list[Draw]:
    path = run / LABELS / _DRAWS
    if not path.exists():
        return []
    try:
        return [
            Draw(**one | {"answers": tuple(one["answers"])})
            for one in json.loads(path.read_bytes())
        ]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: cannot be read: {error}. To do: remove it") from None


def choose_level(images: RunImages, size: int) -> str:
    """Return the finest strata of which a sample can hold two images each."""
    for level in LEVELS:
        cells = SampledCells.of(np.full(len(images.ids), np.nan), images.strata(level),
                                images.groups)  # fmt: skip
        if _EACH * len(cells.sizes) <= size:
            return level
    return "group"


def draw_sample(
    run: Path, images: RunImages, draw: Draw, answers: pl.DataFrame, asked: pl.DataFrame
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
    asked : polars.DataFrame
        Labels of the question, whose images are not drawn again.

    Returns
    -------
    ndarray of int, shape (size,)
        Places of the images, in random order.
    Draw
        With its level.

    Raises
    ------
    ConfigError
        If no image is left.
    """
    earlier = [one.level for one in read_draws(run, draw.question)]
    draw = replace(draw, level=draw.level or (earlier or [choose_level(images, draw.size)])[0])
    outcome = images.outcome(answers, draw.counted)
    cells = SampledCells.of(outcome, images.strata(draw.level), images.groups)
    many = cells.allocate(draw.size, draw.group or None)
    # The first of a fixed order: later draws go on in it.
    rank = unit_uniforms(draw.seed, "label", unit_keys(images.ids.tolist()), range(1))[0]
    known = pl.Series(images.ids.tolist(), dtype=pl.String).is_in(asked["image_id"].implode())
    left = np.flatnonzero(~known.to_numpy() & (cells.code >= 0))
    ordered = left[np.lexsort((rank[left], cells.code[left]))]
    code = cells.code[ordered]
    place = np.arange(len(code)) - np.searchsorted(code, code)
    chosen = ordered[place < many[code]]
    if not len(chosen):
        raise ConfigError(f"{run}: every image has a label for {draw.question!r}")
    shuffled = stream(draw.seed, "order", len(asked)).permutation(np.sort(chosen))
    return shuffled, draw


def note_draw(run: Path, draw: Draw) -> None:
    """Write into the run that a sample was drawn."""
    draws = [asdict(one) for one in dict.fromkeys((*_every_draw(run), draw))]
    keep_labels(run, {_DRAWS: json.dumps(draws, ensure_ascii=False, indent=1).encode()})
