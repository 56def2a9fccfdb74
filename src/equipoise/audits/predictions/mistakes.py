"""Mistakes in words: what each group is taken for more often than the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from equipoise.audits.findings import UncorrectedFinding
from equipoise.core.sentences import Sentence, named
from equipoise.core.wording import shortened
from equipoise.metrics.counts.table import Counts
from equipoise.report.text import count

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
        texts[finding.subject] = texts[""] = _describe(counts, finding.subject)
    for draft in effects:
        yield draft.changed(direction=texts.get(draft.finding.subject, Sentence()))


def _describe(counts: Counts, subject: str) -> Sentence:
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
