"""How often a model answers what a picture doesn't tell."""

from equipoise.core import Floats
from equipoise.metrics.numbers.row_metric import RowMetric, in_unit_interval
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec


@metric(
    MetricSpec(
        name="unsound_rate",
        aliases=("unsound answers",),
        kinds=("questions",),
        unit="share",
        group_label="share of unsound answers",
        clause="{model} answers although the picture doesn't show it for {groups}",
        definition=(
            "Mean over items without a right option of the share of their answers that choose an "
            "option other than the undecided one; refusals and “I don't know” are sound."
        ),
        direction="Higher: the model guesses though the picture doesn't show the answer.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0 for a difference, more so for small groups",
        interval="Wilson, items or units by their design effect",
        null="groups are exchangeable over all items, or between units that have one group",
        reference="equipoise; as the soundness of FairLens, 2026",
    ),
    form=RowMetric.of,
)
def unsound_rate(shares: Floats) -> Floats:
    """Share of each item's answers that choose an option though the picture doesn't tell."""
    return in_unit_interval(shares)
