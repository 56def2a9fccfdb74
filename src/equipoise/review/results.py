"""Results of labels: agreement, shares by group, thresholds of filters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import Booleans, ConfigError, Estimate, Floats, InputError
from equipoise.data.problems import check_ids
from equipoise.data.tables import open_table, read_table
from equipoise.metrics import krippendorff_alpha, labelled_share_gap
from equipoise.metrics.numbers.threshold_accuracy import learned_threshold
from equipoise.report.text import plural
from equipoise.review.labellers import SETTLED
from equipoise.review.labels import consensus, disagreements, look_up_values, read_labels
from equipoise.review.questions import UNSURE, Question
from equipoise.review.sampling import (
    RunImages,
    choose_level,
    drawn_strata,
    read_draws,
    strata_in_words,
)
from equipoise.review.seeing import Row, compare_values, share_answers


@dataclass(frozen=True)
class Results:
    """Results of a question's labels, as rows of tables.

    Attributes
    ----------
    agreement : list of dict
        Krippendorff's alpha and the agreement on each answer.
    disagreements : list of dict
        Images to settle, with the answer of each labeller.
    errors : list of dict
        Share of the counted answer by group, estimated for all images.
    estimates : list of dict
        Accuracy, rates and base rates of the model by group, where answers are classes.
    answers : list of dict
        Share of each answer, of all images and of each group.
    values : list of dict
        Precision, recall and F1 of each value of an attribute, by the run's groups and by its
        filter; where answers say which value people see.
    thresholds : list of dict
        Score that best separates the counted answer from the others, and each group's share kept.
    notes : tuple of str
    """

    agreement: list[Row]
    disagreements: list[Row]
    errors: list[Row]
    estimates: list[Row]
    answers: list[Row]
    values: list[Row]
    thresholds: list[Row]
    notes: tuple[str, ...]


def conclude(
    run: Path, images: RunImages, question: Question, *, scores: Path | None = None, seed: int = 0
) -> Results:
    """Return the results of a question's labels.

    Parameters
    ----------
    run : Path
    images : RunImages
    question : Question
    scores : Path, optional
        Table of `image_id` and columns of scores, to learn thresholds; the model's own
        probability unless given.
    seed : int

    Raises
    ------
    ConfigError
        If nobody has answered the question, or its answers are about other groups.
    DataError
        If the table of scores can't be read.
    """
    labels = read_labels(run).filter(pl.col("question") == question.name)
    decided = labels.filter(pl.col("answer") != UNSURE)
    if decided.is_empty():
        raise ConfigError(
            f"{run}: no labels for {question.name!r}. To do: run 'equipoise label sample', and "
            "read the answers with 'equipoise label read'"
        )
    agreed = consensus(decided)
    draws = read_draws(run, question.name)
    level = draws[0].level if draws else choose_level(images, agreed.height)
    strata = drawn_strata(run, images, draws) if draws else images.strata(level)
    counted_gap = labelled_share_gap(
        images.outcome(agreed, question.counted), strata, images.groups, rng=seed
    )
    # Those of the groups and of what else is known, for numbers of all groups together.
    cells = [
        None if stratum is None or code < 0 else f"{code} / {stratum}"
        for code, stratum in zip(images.groups.codes.tolist(), strata, strict=True)
    ]
    share = f"share of {question.counted!r}"
    return Results(
        agreement=[*_measure_agreement(labels)],
        disagreements=disagreements(labels).to_dicts(),
        errors=[*tabulate_shares(share, counted_gap)],
        estimates=[*_estimate_metrics(images, agreed, question, strata, seed)],
        answers=[*share_answers(images, agreed, question, cells, seed)],
        values=[*compare_values(run, images, agreed, question, cells, seed)],
        thresholds=[*_learn_thresholds(images, agreed, question, scores)],
        notes=tuple(_write_notes(labels, agreed, level, sampled=bool(draws))),
    )


def _write_notes(
    labels: pl.DataFrame, agreed: pl.DataFrame, level: str, *, sampled: bool
) -> Iterator[str]:
    people = labels.filter(pl.col("labeller") != SETTLED)["labeller"].n_unique()
    yield f"{plural(agreed.height, 'image')} labelled by {plural(people, 'person', 'people')}"
    if undecided := agreed["answer"].null_count():
        yield (
            f"{plural(undecided, 'image')} without a majority left out. They aren't a random "
            "sample. To do: run 'equipoise label settle'"
        )
    if unsure := labels.filter(pl.col("answer") == UNSURE).height:
        yield f"{plural(unsure, 'answer')} of {UNSURE!r} count as no label"
    yield f"strata: {strata_in_words(level)}"
    yield "groups are as the run has them, so differences between groups have no verdict"
    if not sampled:
        yield (
            "no sample was drawn here: within strata the labelled images are taken to be a random "
            "sample"
        )


def _measure_agreement(labels: pl.DataFrame) -> Iterator[Row]:
    answers = labels.filter(pl.col("labeller") != SETTLED)
    columns = answers.select("answer", "image_id", "labeller").to_dict(as_series=False)
    alpha = krippendorff_alpha(*columns.values())
    interval = alpha.interval()
    yield {
        "measure": "Krippendorff's alpha", "answer": "", "value": alpha.value,
        "low": interval.low, "high": interval.high, "items": alpha.n["items"],
        "reason": alpha.reason,
    }  # fmt: skip
    for part in alpha.parts:
        yield {
            "measure": "pairs that agree", "answer": part.subject, "value": part.value,
            "low": part.low, "high": part.high, "items": part.n, "reason": part.reason,
        }  # fmt: skip


def tabulate_shares(measure: str, gap: Estimate) -> Iterator[Row]:
    """Yield a row per group: the share, and its difference from all other groups."""
    overall, *differences = gap.parts
    for group, difference in zip(overall.by_group, differences, strict=True):
        yield {
            "measure": measure, "group": group.group, "labelled": group.n, "share": group.value,
            "low": group.low, "high": group.high, "against others": difference.value,
            "difference low": difference.low, "difference high": difference.high,
            "note": group.note,
        }  # fmt: skip
    interval = gap.interval()
    yield {
        "measure": measure, "group": "largest difference", "labelled": overall.n,
        "share": gap.value, "low": interval.low, "high": interval.high, "note": gap.reason,
    }  # fmt: skip


def _estimate_metrics(
    images: RunImages,
    agreed: pl.DataFrame,
    question: Question,
    strata: list[str | None],
    seed: int,
) -> Iterator[Row]:
    """Yield accuracy, rates and base rates with the labels as ground truth."""
    truth = _choose_truth(images, agreed, question)
    if truth is None:
        return
    predicted = images.table["prediction"]

    def match(labels: pl.Series, expected: pl.Series | str) -> Floats:
        """Return whether labels are as expected; NaN of images without ground truth."""
        return np.where(truth.is_null(), np.nan, labels.eq_missing(expected))

    def estimate_shares(
        name: str, outcome: Floats, condition: Floats | None = None
    ) -> Iterator[Row]:
        gap = labelled_share_gap(outcome, strata, images.groups, condition=condition, rng=seed)
        return tabulate_shares(name, gap)

    yield from estimate_shares(f"accuracy of {images.model}", match(predicted, truth))
    labelled_classes = {*truth}
    classes = [name for name in images.classes if name in labelled_classes]
    if len(images.classes) == 2:
        # The other class states the same facts.
        positive_class = getattr(getattr(images.config, "data", None), "positive", None)
        classes = [positive_class or images.classes[-1]]
    for name in classes:
        base, positive = match(truth, name), match(predicted, name)
        yield from estimate_shares(f"base rate of {name!r}", base)
        yield from estimate_shares(f"true positive rate of {name!r}", positive, base)
        yield from estimate_shares(f"false positive rate of {name!r}", positive, 1.0 - base)


def _choose_truth(images: RunImages, agreed: pl.DataFrame, question: Question) -> pl.Series | None:
    """Return the labelled class of each image, or None if answers name no class."""
    answers = look_up_values(images.ids.tolist(), agreed["image_id"], agreed["answer"])
    if {*question.answers} - {UNSURE} <= {*images.classes}:
        return answers
    if question.names_label and len(images.classes) == 2:
        label, classes = images.table["target"], [*images.classes]
        other_class = label.replace_strict(classes, classes[::-1], default=None)
        right, wrong = pl.lit(answers == "yes"), pl.lit(answers != "yes")
        return pl.select(pl.when(right).then(label).when(wrong).then(other_class)).to_series()
    return None


def _read_scores(images: RunImages, path: Path | None) -> Mapping[str, Floats]:
    if path is None:
        return images.scores
    names = [name for name in open_table(path, role="scores").names if name != "image_id"]
    table = read_table(path, texts=["image_id"], numbers=names, role="scores")
    ids, row_ids = images.ids.tolist(), table.texts["image_id"]
    check_ids(row_ids, table.name)
    return {
        name: look_up_values(ids, row_ids, column.cast(pl.Float64)).fill_null(np.nan).to_numpy()
        for name, column in table.numbers.items()
    }


def _learn_thresholds(
    images: RunImages, agreed: pl.DataFrame, question: Question, path: Path | None
) -> Iterator[Row]:
    """Yield the threshold of each score that drops the counted answer."""
    bad = images.outcome(agreed, question.counted)
    for name, score in _read_scores(images, path).items():
        usable = ~np.isnan(bad) & ~np.isnan(score)
        good, values = bad[usable] == 0, score[usable]
        # Where good images score lower, the filter keeps low scores.
        low = bool(good.any() and not good.all() and values[good].mean() < values[~good].mean())
        keep, sign = ("at most", -1.0) if low else ("at least", 1.0)
        signed = sign * score
        levels, rank = np.unique(signed[usable], return_inverse=True)
        clusters = images.ids[usable].tolist()
        try:
            learned = learned_threshold(rank + 1, good, len(levels), clusters)
        except InputError as error:
            yield {"score": name, "reason": str(error)}
            continue
        threshold = float(levels[learned.threshold - 1])
        passes = signed >= threshold
        yield {
            "score": name, "keep": keep, "threshold": sign * threshold, "labels": learned.labels,
            "accuracy": learned.accuracy, "low": learned.low, "high": learned.high,
            "majority": learned.majority, "kept": _count_kept(images, passes, ~np.isnan(score)),
            "reason": "",
        }  # fmt: skip


def _count_kept(images: RunImages, passes: Booleans, scored: Booleans) -> dict[str, float]:
    """Return the share of all images of each group that a threshold keeps."""
    shares = {}
    for code, group in enumerate(images.groups.names):
        scored_passes = passes[scored & (images.groups.codes == code)]
        if len(scored_passes):
            shares[group] = float(scored_passes.mean())
    return shares
