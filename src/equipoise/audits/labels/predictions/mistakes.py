"""Wrong labels of each group, in words and as rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from equipoise.audits.findings import Place, UncorrectedFinding, parts, without_verdict
from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.labels.predictions.config import MistakeOptions
from equipoise.core.sentences import Sentence, named
from equipoise.core.wording import shortened
from equipoise.metrics.labels import count as count_labels
from equipoise.metrics.labels.rates import DemographicParity
from equipoise.metrics.labels.table import Counts
from equipoise.metrics.measure import measure
from equipoise.report.text import count
from equipoise.stats.resampling import Resampling

_MOST = 2


def with_mistakes(
    drafts: Iterable[UncorrectedFinding], counts: Counts
) -> Iterator[UncorrectedFinding]:
    """Yield findings; effect sizes of mistakes name labels and counts, and stand last.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design.
    counts : Counts
        Its rows by truth and prediction.
    """
    effects, texts = list[UncorrectedFinding](), dict[str, Sentence]()
    for draft in drafts:
        formulation = draft.finding.parameters.get("formulation")
        if formulation is not None and draft.finding.by_group:
            effects.append(draft)
        else:
            yield draft
    of_classes = [
        draft.finding
        for draft in effects
        if draft.finding.subject in counts.classes
        and draft.finding.parameters["formulation"] == "separation"
    ]
    for finding in sorted(of_classes, key=lambda finding: np.nan_to_num(finding.value)):
        # The mean has the mistakes of the class with the largest effect.
        texts[finding.subject] = texts[""] = describe_labels(counts, finding.subject)
    for draft in effects:
        yield draft.changed(direction=texts.get(draft.finding.subject, Sentence()))


def describe_labels(counts: Counts, subject: str) -> Sentence:
    """Say which wrong label a group has more often than the others; "" without one.

    Of the groups, those that are farthest above the others.
    """
    subject_code = counts.classes.index(subject)
    of_class = counts.truth == subject_code
    labels, table = counts.prediction[of_class], counts.table[of_class]
    usable = counts.groups.usable
    sizes = np.where(usable, table.sum(axis=0), 0.0)
    wrong = np.where(usable, table, 0.0)[labels != subject_code]
    wrong_labels = labels[labels != subject_code]
    if not len(wrong) or np.count_nonzero(sizes) < 2:
        return Sentence()
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = wrong / sizes
        others = (wrong.sum(axis=1, keepdims=True) - wrong) / (sizes.sum() - sizes)
    excess = np.nan_to_num(shares - others)
    most = excess.argmax(axis=0)
    by_excess = sorted(range(len(sizes)), key=lambda group: -excess[most[group], group])
    parts = list[Sentence]()
    for group in by_excess[:_MOST]:
        place = most[group]
        if excess[place, group] > 0.0:
            label = shortened(counts.classes[wrong_labels[place]])
            times = f"{count(wrong[place, group])} of {count(sizes[group])}"
            name, verb = named(counts.groups.names[group]), "" if parts else " is called"
            start = "" if not parts else " and "
            parts.append(Sentence(start, name, f"{verb} “{label}” ({times})"))
    if not parts:
        return Sentence()
    return Sentence(f"instead of “{shortened(subject)}”, ", *parts)


def describe_mistakes(
    design: LabelDesign,
    options: MistakeOptions,
    place: Place,
    resampling: Resampling | None,
    seed: int,
) -> Iterator[UncorrectedFinding]:
    """Yield the rate by group of each group's most frequent wrong labels of some classes."""
    target, label = design.target, design.label
    for subject in options.of:
        rows = target.equals(subject) & (label.codes >= 0)
        if not rows.any():
            continue
        labels, groups = label.take(rows), design.groups.take(rows)
        units = None if design.units is None else design.units.take(rows)
        counts = count_labels(labels, labels, groups, units=units)
        frequent = _most_frequent(counts, subject, options.top)
        estimate = measure(counts, [DemographicParity()], resampling, seed)[0]
        for draft in parts(estimate, place, metric="mistake_rate"):
            if (wrong := draft.finding.subject) in frequent:
                pair = draft.changed(subject=f"{subject} | {wrong}", part_of=subject)
                yield without_verdict(pair, "descriptive: the most frequent wrong labels")


def _most_frequent(counts: Counts, subject: str, top: int) -> set[str]:
    """Return the wrong labels that are among the `top` most frequent of any usable group."""
    by_label = counts.by_prediction(counts.observed)[0]
    wrong = np.array([name != subject for name in counts.classes])
    shown = np.where(wrong[:, None] & counts.groups.usable, by_label, 0.0)
    places = np.argsort(-shown, axis=0, kind="stable")[:top]
    occurs = np.take_along_axis(shown, places, axis=0) > 0
    return {counts.classes[place] for place in places[occurs].tolist()}
