"""How often a model's answer changes with the order of the options."""

import numpy as np

from equipoise.core import Floats
from equipoise.metrics.numbers.row_metric import RowMetric
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec


@metric(
    MetricSpec(
        name="order_inconsistency",
        aliases=("position bias",),
        kinds=("questions",),
        unit="share",
        neutral=None,
        of_one_answer=True,
        group_label="share of answers that change with the order",
        clause="{model} changes its answer with the order of the options for {groups}",
        definition=(
            "Share of pairs of orders, in which each option stands at another position, that get "
            "different options; mean over items and wordings. Of two options: the share of "
            "questions whose answer changes with the order."
        ),
        direction="Higher: answers follow the position of the options, not the picture.",
        threshold=0.0,
        threshold_reason="the null hypothesis is a model that answers at random",
        chance="1 − 1/k for random answers among k options",
        interval="Student's t with the variance between items or units",
        null="answers are random: no more of them change than among k options at random",
        reference="Zheng et al. 2024, ICLR; Xiao et al. 2024 (GenderBias-VL)",
        sentence="Answers by position{model}: {direction}.",
    ),
    form=RowMetric.of,
)
def order_inconsistency(answers: Floats) -> Floats:
    """Share of pairs of orders with different answers, by row.

    Parameters
    ----------
    answers : ndarray, shape (n, orders)
        Number of the option that was chosen in each order; NaN without an answer. In each order
        every option stands at another position.
    """
    changed, pairs = np.zeros(len(answers)), np.zeros(len(answers))
    for second in range(1, answers.shape[1]):
        for first in range(second):
            both = ~np.isnan(answers[:, first] + answers[:, second])
            pairs += both
            changed += both & (answers[:, first] != answers[:, second])
    return np.where(pairs > 0, changed / np.maximum(pairs, 1), np.nan)
