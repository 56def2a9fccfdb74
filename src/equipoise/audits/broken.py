"""Warnings about uninformative models: constant, at chance, or failed."""

from collections.abc import Iterable, Iterator

import numpy as np

from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.notes import Note
from equipoise.core import Booleans, Floats, unwarned
from equipoise.core.sentences import named
from equipoise.core.wording import percent
from equipoise.metrics.labels import Counts
from equipoise.stats.intervals import wilson

# Share of one answer, or of one class, from which on it is constant.
_CONSTANT = 0.99
# Share of classes in the top k from which on a hit rate is trivial.
_TRIVIAL = 0.5
_LEAST_K = 2
# Fewer rows tell little, and so does accuracy where one class has more of them.
_FEWEST, _ONE_CLASS = 30, 0.9


def broken(designs: Iterable[LabelDesign]) -> Iterator[Note]:
    """Yield warnings about each model's labels, overall and by group."""
    described: set[tuple[str, str]] = set()
    for design in designs:
        # Texts as they are written are no classes.
        if design.wording:
            continue
        where = design.model if design.version == "default" else f"{design.model}, {design.version}"
        if (design.model, design.version) not in described:
            described.add((design.model, design.version))
            yield from _whole(where, design.overall)
        yield from _groups(where, design)


def trivial_hits(model: str, k: int, classes: int) -> Iterator[Note]:
    """Yield that a hit rate says little: labels in a random order would have one of k / classes."""
    if k >= _TRIVIAL * classes:
        # At k = 1 a hit rate is the accuracy.
        useful = k > 1 and _TRIVIAL * classes > _LEAST_K
        advice = "Lower k." if useful else "Leave hit rates out."
        yield Note(
            model,
            f"with {classes} classes, labels in a random order have a hit rate of "
            f"{percent(k / classes)} at k = {k}: differences between groups say little. {advice}",
        )


def _whole(where: str, counts: Counts) -> Iterator[Note]:
    n_predicted = counts.by_prediction(counts.observed)[0].sum(axis=1)
    rows, most_predicted = n_predicted.sum(), int(n_predicted.argmax())
    if rows < _FEWEST:
        return
    true = counts.by_truth(counts.observed)[0].sum(axis=1)
    if true.max() >= _CONSTANT * rows:
        yield Note(
            where,
            f"{percent(true.max() / rows)} of images are of one class, "
            f"“{counts.classes[true.argmax()]}”, so that accuracy is the share of one answer. Add "
            "images of other classes.",
        )
    elif n_predicted[most_predicted] >= _CONSTANT * rows:
        share = percent(n_predicted[most_predicted] / rows)
        yield Note(
            where,
            f"answers “{counts.classes[most_predicted]}” for {share} of images, so differences "
            "between groups say little. Check how the model is run and its classes.",
        )
    elif not _better_than_chance(counts)[0].any():
        yield Note(
            where,
            "accuracy is no higher than by chance, so differences between groups say little. "
            "Check the labels and how predictions are mapped to them.",
        )


def _groups(where: str, design: LabelDesign) -> Iterator[Note]:
    """Yield groups in which a model fails that works in others."""
    counts = design.counts
    if counts.determines_target:
        return
    better, n = _better_than_chance(counts)
    compared = counts.groups.usable & (n >= _FEWEST)
    failed = np.flatnonzero(compared & ~better)
    if len(failed) and (compared & better).any():
        names = ", ".join(named(counts.groups.names[place]) for place in failed)
        yield Note(
            where, f"accuracy is no higher than by chance for {names}, unlike for other groups."
        )


def _better_than_chance(counts: Counts) -> tuple[Booleans, Floats]:
    """Return whether each group's accuracy is above that of labels at random, and its rows.

    Labels at random have the shares of the group's predictions, whatever the truth. A group of
    almost one class passes: such labels are right as often there as those of a good model.
    """
    table = counts.observed
    n, right = table[0].sum(axis=0), counts.hits(table)[0].sum(axis=0)
    with unwarned():
        truth, prediction_shares = counts.by_truth(table)[0] / n, counts.by_prediction(table)[0] / n
    better = wilson(right, n)[0] > (truth * prediction_shares).sum(axis=0)
    return np.asarray(better | (truth.max(axis=0) > _ONE_CLASS)), n
