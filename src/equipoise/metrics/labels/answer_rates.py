"""Shares of rows in a state: right, wrong or without an answer, without a value, with a defect."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Aggregate, GroupLabels, InputError, Labels, encode
from equipoise.core.arguments import check_lengths
from equipoise.core.groups import rows_of
from equipoise.metrics.labels.part import PartMetric
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rate_metric import RateMetric
from equipoise.metrics.labels.rates import demographic_parity
from equipoise.metrics.labels.table import Counts, count, fill_labels
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec
from equipoise.stats.intervals import Pair

RIGHT, WRONG, UNANSWERED, MARKED = "right", "wrong", "unanswered", "marked"
_OTHER = "(other)"


def count_state(
    state: str,
    states: Labels,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    subject: str = "states",
) -> Counts:
    """Count rows in a state, and in any other; errors name the argument `subject`.

    Raises
    ------
    InputError
        When lengths differ, or no row has a state and a group.
    """
    codes, _ = encode(states, subject=subject)
    wanted = np.full(len(codes), state, dtype=object)
    wanted[codes < 0] = None
    all_groups = fill_labels(None, len(codes)) if groups is None else groups
    check_lengths({subject: len(codes), "groups": rows_of(all_groups)})
    return count(wanted, states, all_groups, units=units)


def count_answers(
    state: str,
    y_true: Labels | None,
    y_pred: Labels,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
) -> Counts:
    """Count right, wrong and unanswered rows; without true classes, answered and unanswered ones.

    Raises
    ------
    InputError
        As `count_state`.
    """
    codes, labels = encode(y_pred, subject="y_pred")
    states = np.where(codes < 0, UNANSWERED, "answered").astype(object)
    if y_true is not None:
        true_codes, classes = encode(y_true, subject="y_true")
        check_lengths({"y_true": len(true_codes), "y_pred": len(codes)})
        right = (
            np.array([*classes, ""], dtype=object)[true_codes]
            == np.array([*labels, ""], dtype=object)[codes]
        )
        states[codes >= 0] = np.where(right, RIGHT, WRONG)[codes >= 0]
        states[true_codes < 0] = None
    return count_state(state, states, groups, units=units, subject="y_pred")


def count_marks(
    marks: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    subject: str = "marks",
) -> Counts:
    """Count marked rows and others; errors name the argument `subject`.

    Raises
    ------
    InputError
        When marks are not true or false, or as `count_state`.
    """
    marked = np.asarray(marks)
    if marked.ndim != 1 or marked.dtype != np.bool_:
        raise InputError(f"{subject}: {marked.dtype}, shape {marked.shape}; expected booleans (n,)")
    states = np.where(marked, MARKED, _OTHER)
    return count_state(MARKED, states, groups, units=units, subject=subject)


def count_missing(
    values: Labels, groups: GroupLabels | None = None, *, units: Labels | None = None
) -> Counts:
    """Count rows without a value and others; None, NaN and "" are none.

    Raises
    ------
    InputError
        As `count_state`.
    """
    without = encode(values, subject="values")[0] < 0
    return count_marks(without, groups, units=units, subject="values")


def share_in_state(cells: Cells) -> Pair:
    """Share of rows in the state."""
    return cells["right"], cells["total"]


_share_form = partial(RateMetric.of, bases=("rows",), of_all=True)
_state = partial(
    MetricSpec,
    kinds=("answers", "questions"),
    unit="share",
    threshold=0.05,
    threshold_reason=POINTS,
    direction="Higher: the group gets no answer more often.",
    chance="above 0 for the gap between groups",
    interval=PAIRWISE,
    null="groups are exchangeable over all rows",
    reference="equipoise: rows without an answer are in no other metric",
)
_gap = partial(
    MetricSpec,
    aggregate=Aggregate.DIFFERENCE,
    unit="points",
    of_class=True,
    groups_harm="higher",
    threshold=0.05,
    threshold_reason=POINTS,
    interval=PAIRWISE,
)
unanswered_rate = metric(
    _state(
        name="unanswered_rate",
        aliases=("abstention rate", "no-answer rate"),
        of_state=True,
        state="unanswered",
        of_exclusion=True,
        rest_metric="unanswered_rate",
        kinds=("predictions", "answers", "questions"),
        group_label="share without an answer",
        clause="{model} gives no answer for {groups}",
        definition=(
            "Share of rows without an answer: missing, unknown or refused. Where true classes are "
            "known, of the rows that have one. A text of no class or option, or of several, is an "
            "answer that is unresolved."
        ),
    ),
    form=partial(_share_form, count=partial(count_answers, UNANSWERED)),
)(share_in_state)
unresolved_rate = metric(
    _state(
        name="unresolved_rate",
        of_state=True,
        state="unresolved",
        of_exclusion=True,
        rest_metric="unresolved_rate",
        kinds=("questions",),
        group_label="share of unresolved answers",
        clause="{model} chooses no option, or several, for {groups}",
        definition=(
            "Share of rows with a text that chooses no option, or several. Rows without an answer "
            "count in `unanswered_rate`."
        ),
        direction="Higher: the group's answers can be used less often.",
        reference="equipoise: texts that choose no single option are in no other metric",
    ),
    form=partial(_share_form, count=partial(count_state, "unresolved")),
)(share_in_state)
right_rate = metric(
    _state(
        name="right_rate",
        aliases=("exact match",),
        of_state=True,
        state="right",
        rest_metric="right_rate",
        kinds=("predictions", "answers"),
        harm="lower",
        group_label="share of right predictions",
        clause="{model} gives a right answer for {groups}",
        definition="Share of rows with a true class, answered or not, that are predicted right.",
        direction="Lower: the group gets a right answer less often.",
        reference="equipoise: right, wrong and unanswered rates sum to 1",
    ),
    form=partial(_share_form, count=partial(count_answers, RIGHT)),
)(share_in_state)
wrong_rate = metric(
    _state(
        name="wrong_rate",
        of_state=True,
        state="wrong",
        rest_metric="wrong_rate",
        kinds=("predictions", "answers"),
        group_label="share of wrong predictions",
        clause="{model} gives a wrong answer for {groups}",
        errors="value",
        error_clause="{model} gives a wrong answer",
        definition="Share of rows with a true class, answered or not, that are predicted wrong.",
        direction="Higher: the group gets a wrong answer more often.",
        reference="equipoise: right, wrong and unanswered rates sum to 1",
    ),
    form=partial(_share_form, count=partial(count_answers, WRONG)),
)(share_in_state)
unknown_rate = metric(
    _state(
        name="unknown_rate",
        of_state=True,
        state="unknown",
        rest_metric="unknown_rate",
        group_label="unknown rate",
        clause="{model} says that it does not know for {groups}",
        definition="Share of rows on which the model says that it does not know.",
    ),
    form=partial(_share_form, count=partial(count_state, "unknown")),
)(share_in_state)
refused_rate = metric(
    _state(
        name="refused_rate",
        aliases=("refusal rate",),
        of_state=True,
        state="refused",
        rest_metric="refused_rate",
        group_label="refused rate",
        clause="{model} refuses to answer for {groups}",
        definition="Share of rows on which the model refuses to answer.",
    ),
    form=partial(_share_form, count=partial(count_state, "refused")),
)(share_in_state)
empty_rate = metric(
    _state(
        name="empty_rate",
        of_state=True,
        state="missing",
        rest_metric="empty_rate",
        group_label="empty rate",
        clause="{model} gives an empty answer for {groups}",
        definition="Share of rows with an empty answer. Images that failed are no rows of it.",
    ),
    form=partial(_share_form, count=partial(count_state, "empty")),
)(share_in_state)
answer_gap = metric(
    _gap(
        name="answer_gap",
        of_base_rates=True,
        of_labels=True,
        rest_metric="answer_gap",
        mirror="answer_gap",
        kinds=("answers",),
        group_label="share of answers",
        clause="{model} answers {subject} for {groups}",
        definition=(
            "Largest minus smallest share of the answered rows of a group that get an answer, "
            "after normalisation. Summary: the largest over answers."
        ),
        direction="Higher: one group gets the answer more often than another.",
        chance="above 0, more so for many answers",
        null="groups are exchangeable over all answered rows",
        reference="Calders et al. 2009, of answers in place of classes",
    )
)(PartMetric("answer_gap", partial(demographic_parity, None), of_whole=True))
label_gap = metric(
    _gap(
        name="label_gap",
        of_labels=True,
        rest_metric="label_gap",
        mirror="label_gap",
        kinds=("dataset",),
        group_label="share of images with the label",
        clause="In {model}, {subject} is the label of {groups}",
        definition=(
            "Largest minus smallest share of the labelled images of a group that have the label. "
            "Summary: the largest over labels."
        ),
        direction="Higher: the label goes with one group more often than with another.",
        chance="above 0, more so for many labels",
        null="groups are exchangeable over all labelled images",
        reference="Calders et al. 2009, of labels in place of predictions",
    )
)(PartMetric("label_gap", partial(demographic_parity, None), of_whole=True))
missing_rate = metric(
    _state(
        name="missing_rate",
        aliases=("missingness",),
        rest_metric="missing_rate",
        kinds=("dataset",),
        group_label="share of images without a value",
        clause="In {model}, {subject} is missing for {groups}",
        definition="Share of images without a label or an attribute.",
        direction="Higher: the group's images are annotated less often.",
        reference="equipoise: rows without a value are in no other metric",
    ),
    form=partial(_share_form, count=count_missing),
)(share_in_state)
image_defect_rate = metric(
    _state(
        name="image_defect_rate",
        rest_metric="image_defect_rate",
        kinds=("dataset",),
        group_label="share of images with the defect",
        clause="In {model}, {groups} have the defect {subject}",
        definition=(
            "Share of images that can't be read, are small or elongated, or have the same bytes as "
            "another image."
        ),
        direction="Higher: the group's images are worse.",
        reference="equipoise: losses in a model's preprocessing, and repeats",
    ),
    form=partial(_share_form, count=count_marks),
)(share_in_state)
