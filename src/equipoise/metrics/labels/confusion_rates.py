"""Confusion rates of a class against the rest: of its rows, of others, of predictions."""

from functools import partial

from equipoise.core import Aggregate
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rate_metric import RateMetric
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import PAIRWISE, POINTS, WILSON, MetricSpec
from equipoise.stats.intervals import Pair

_CLASS, _OTHERS = "rows of the class", "rows of other classes"
_rate = partial(
    MetricSpec,
    kinds=("predictions",),
    unit="share",
    of_class=True,
    harm="lower",
    threshold=0.05,
    threshold_reason=POINTS,
    interval=PAIRWISE,
    chance="above 0 for the gap between groups",
    null="groups are exchangeable within each true class",
    reference="Hardt, Price & Srebro 2016 (rates given the truth); Chouldechova 2017 (predictive)",
)


@metric(
    _rate(
        name="true_positive_rate",
        by_default=("predictions",),
        aliases=("tpr", "recall", "sensitivity"),
        comparison_aliases={
            Aggregate.DIFFERENCE: ("equal opportunity", "equal opportunity difference"),
        },
        within_class="always",
        rest_metric="true_positive_rate",
        kinds=("predictions", "concepts"),
        symbol="TPR",
        group_label="true positive rate",
        clause="{model} recognises {subject} for {groups}",
        errors="rest",
        error_clause="{model} misses {subject}",
        definition="Share of rows of a class that are predicted as it.",
        direction="Lower: more members of the class are missed.",
    ),
    form=partial(RateMetric.of, null="class", bases=(_CLASS,)),
)
def true_positive_rate(cells: Cells) -> Pair:
    """Share of rows of a class that are predicted as it."""
    return cells["both"], cells["truth"]


@metric(
    _rate(
        name="false_positive_rate",
        by_default=("predictions",),
        comparison_aliases={Aggregate.DIFFERENCE: ("predictive equality",)},
        aliases=("fpr", "fall-out"),
        rest_metric="false_positive_rate",
        mirror="true_positive_rate",
        kinds=("predictions", "concepts"),
        symbol="FPR",
        harm="higher",
        group_label="false positive rate",
        clause="{model} predicts {subject} wrongly for {groups}",
        errors="value",
        error_clause="{model} predicts {subject} wrongly",
        definition="Share of rows of other classes that are predicted as the class.",
        direction="Higher: the label is given wrongly more often.",
    ),
    form=partial(RateMetric.of, null="class", bases=(_OTHERS,)),
)
def false_positive_rate(cells: Cells) -> Pair:
    """Share of rows of other classes that are predicted as the class."""
    return cells["wrong"], cells["others"]


@metric(
    _rate(
        name="true_negative_rate",
        aliases=("tnr", "specificity"),
        fold="false_positive_rate",
        symbol="TNR",
        group_label="true negative rate",
        clause="{model} rules out {subject} rightly for {groups}",
        errors="rest",
        error_clause="{model} predicts {subject} wrongly",
        definition="1 minus the false positive rate.",
        direction="Lower: the label is given wrongly more often.",
    ),
    form=partial(RateMetric.of, null="class", bases=(_OTHERS,), opposite=false_positive_rate),
)
def true_negative_rate(cells: Cells) -> Pair:
    """Share of rows of other classes that are not predicted as the class."""
    return cells["neither"], cells["others"]


@metric(
    _rate(
        name="false_negative_rate",
        aliases=("fnr", "miss rate"),
        fold="true_positive_rate",
        symbol="FNR",
        harm="higher",
        group_label="false negative rate",
        clause="{model} misses {subject} for {groups}",
        errors="value",
        error_clause="{model} misses {subject}",
        definition="1 minus the true positive rate.",
        direction="Higher: more members of the class are missed.",
    ),
    form=partial(RateMetric.of, null="class", bases=(_CLASS,), opposite=true_positive_rate),
)
def false_negative_rate(cells: Cells) -> Pair:
    """Share of rows of a class that are predicted as another."""
    return cells["missed"], cells["truth"]


@metric(
    _rate(
        name="precision",
        by_default=("predictions",),
        aliases=("ppv", "positive predictive value"),
        comparison_aliases={Aggregate.DIFFERENCE: ("predictive parity",)},
        of_base_rates=True,
        rest_metric="precision",
        kinds=("predictions", "concepts"),
        symbol="PPV",
        basis="at equal prevalence",
        group_label="precision at equal prevalence",
        clause=(
            "At equal prevalence, when {model} predicts {subject}, it would be right for {groups}"
        ),
        observed_in=("concepts",),
        observed_clause="When {model} predicts {subject}, it is right for {groups}",
        definition=(
            "Share of rows predicted as a class that are of it. Of predictions: at the prevalence "
            "π of all rows, π TPR / (π TPR + (1 − π) FPR), so that groups are compared at equal "
            "prevalence."
        ),
        direction="Lower: the label is wrong more often.",
    ),
    form=partial(
        RateMetric.of, null="class", bases=(_OTHERS, _CLASS), predictions="predictions of the class"
    ),
)
def precision(cells: Cells) -> tuple[Pair, Pair]:
    """Share of rows predicted as a class that are of it."""
    return (cells["wrong"], cells["others"]), (cells["both"], cells["truth"])


@metric(
    _rate(
        name="negative_predictive_value",
        aliases=("npv",),
        of_base_rates=True,
        rest_metric="negative_predictive_value",
        mirror="precision",
        symbol="NPV",
        basis="at equal prevalence",
        group_label="negative predictive value at equal prevalence",
        clause=(
            "At equal prevalence, when {model} rules out {subject}, it would be right for {groups}"
        ),
        definition=(
            "Share of rows not predicted as a class that are not of it, at the prevalence of all "
            "rows."
        ),
        direction="Lower: the absence of the label is wrong more often.",
    ),
    form=partial(
        RateMetric.of,
        null="class",
        bases=(_CLASS, _OTHERS),
        predictions="predictions of other classes",
    ),
)
def negative_predictive_value(cells: Cells) -> tuple[Pair, Pair]:
    """Share of rows predicted as another class that are of another."""
    return (cells["missed"], cells["truth"]), (cells["neither"], cells["others"])


@metric(
    _rate(
        name="selection_rate",
        aliases=("positive rate", "acceptance rate"),
        comparison_aliases={Aggregate.RATIO: ("disparate impact",)},
        of_base_rates=True,
        of_labels=True,
        fold="demographic_parity",
        group_label="selection rate",
        clause="{model} predicts {subject} for {groups}",
        definition="Share of rows predicted as a class.",
        direction=(
            "Lower: the group receives the label less often; whether that harms depends on the "
            "label."
        ),
        null="groups are exchangeable over all rows",
    ),
    form=partial(RateMetric.of, bases=("rows",)),
)
def selection_rate(cells: Cells) -> Pair:
    """Share of rows that are predicted as a class."""
    return cells["prediction"], cells["total"]


@metric(
    _rate(
        name="accuracy",
        aliases=("acc",),
        kinds=("predictions", "answers", "questions"),
        of_class=False,
        group_label="accuracy",
        clause="{model} is right{about} for {groups}",
        errors="rest",
        state="right",
        of_answered=True,
        profile="accuracy",
        error_clause="{model} is wrong{about}",
        definition=(
            "Share of rows whose prediction is the true class; for a class, of its one-vs-rest "
            "decisions."
        ),
        direction="Lower: more rows are predicted wrongly.",
        interval=WILSON,
        chance="none for accuracy itself; its gap between groups has one",
        null=(
            "groups are exchangeable over all rows; within each true class too, unless groups "
            "determine it"
        ),
        reference="Sagawa et al. 2020 (worst group); Albuquerque et al. 2024, section 4 (GAP)",
    ),
    form=partial(RateMetric.of, bases=("rows",), of_all=True),
)
def accuracy(cells: Cells) -> Pair:
    """Share of rows that are predicted correctly."""
    return cells["right"], cells["total"]


@metric(
    _rate(
        name="average_odds",
        comparison_aliases={Aggregate.DIFFERENCE: ("average odds difference", "aod")},
        mirror="average_odds",
        definition="Mean of true and false positive rate of a class.",
        direction="Lower: at the same truth, the group receives the label less often.",
        interval="pairwise hybrid score, simultaneous over groups",
    ),
    form=partial(RateMetric.of, null="class", bases=(_CLASS, _OTHERS)),
)
def average_odds(cells: Cells) -> tuple[Pair, Pair]:
    """Mean of true and false positive rate."""
    return (cells["both"], cells["truth"]), (cells["wrong"], cells["others"])
