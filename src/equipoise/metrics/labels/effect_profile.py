"""Records of metrics about mistakes: correlations over classes, wrong labels."""

from collections.abc import Mapping
from functools import partial

from equipoise.core import NullHypothesis
from equipoise.metrics.spec import WILSON, MetricSpec, register

CORRELATES: Mapping[str, str] = {
    "accuracy": "effect_accuracy_correlation",
    "equalized_odds": "effect_odds_correlation",
    "gap": "effect_gap_correlation",
    "demographic_parity": "effect_parity_correlation",
}
"""Metric of the correlation of effect sizes with another number of the classes."""


_correlation = partial(
    MetricSpec,
    kinds=("predictions",),
    range=(-1.0, 1.0),
    harm="either",
    null_kind=NullHypothesis.NORMAL,
    null="classes are independent and both numbers normal",
    chance="none drawn: p, among the parameters, from the t distribution with n − 2 degrees",
    interval="Fisher's z",
    reference="Albuquerque et al. 2024, SkewSize, Figure 5; Fisher 1921",
    symbol="r",
)
_CORRELATED = {
    "accuracy": "accuracy",
    "equalized_odds": "equalized odds",
    "gap": "the accuracy gap",
    "demographic_parity": "demographic parity",
}
register(
    MetricSpec(
        name="mistake_rate",
        kinds=("predictions",),
        unit="share",
        rate=True,
        harm=None,
        group_label="share of images with the wrong label",
        definition="Share of the images of a class that get a particular wrong label.",
        direction="Neither: it says which label a group gets. Descriptive.",
        chance="none: descriptive, of the class's most frequent wrong labels",
        interval=WILSON,
        reference="Albuquerque et al. 2024, SkewSize, Figure 3",
    ),
    *(
        _correlation(
            name=name,
            title=f"Correlation of effect size and {_CORRELATED[other]}",
            definition=(
                f"Pearson's correlation of the effect size with {_CORRELATED[other]}, over classes."
            ),
            direction="Either: near 0 the effect size says something else. Descriptive.",
        )
        for other, name in CORRELATES.items()
    ),
)
