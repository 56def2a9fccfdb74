"""Share of responses without a usable answer."""

from __future__ import annotations

from numpy.typing import ArrayLike

from equipoise.core import Estimate, GroupLabels, Labels, NullHypothesis
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.numbers.means import mean_value
from equipoise.metrics.numbers.order_inconsistency import tested_above
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling

_EXPECTED = 0.1
FEW_ANSWERS = 0.9
"""Share without a usable answer from which on, in every group, a model gives few answers."""


@metric(
    MetricSpec(
        name="unusable_share",
        title="Share without a usable answer",
        kinds=("answers", "questions"),
        unit="share",
        neutral=None,
        of_one_answer=True,
        group_label="share without a usable answer",
        definition=(
            "Share of responses that can't be used: missing, unknown, refused, ambiguous or "
            "without a class. It is a finding if every group has a share of at least "
            f"{FEW_ANSWERS:.0%}."
        ),
        direction="Higher: fewer responses can be compared, whatever groups the images show.",
        threshold=0.0,
        gravest="detected",
        verdict_title="Few answers",
        threshold_reason="the null hypothesis is a model that answers",
        chance="10 %",
        interval="Wilson, rows or units by their design effect",
        null="at most 10 % of the responses can't be used",
        null_kind=NullHypothesis.SHARES,
        reference="equipoise",
        sentence="No usable answer{model} {direction}.",
    )
)
def unusable_share(
    values: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Share of responses without a usable answer, tested against a model that answers.

    Parameters
    ----------
    values : array-like, shape (n,)
        1 of a response that can't be used, 0 of another; of several responses to an item, the
        share that can't. NaN where asking failed.
    groups : array-like (n,), mapping of attribute to labels, or Groups, optional
    units : array-like (n,), optional
        Unit of each response, such as the person shown.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.

    Returns
    -------
    Estimate
        In [0, 1]. Chance: 10 %; p: an exact binomial test of as many responses as are
        independent. `.by` has one part, with the share of each group.

    Raises
    ------
    InputError
        When lengths differ.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.unusable_share([1] * 60 + [0] * 40).value
    0.6
    """
    mean = mean_value("unusable_share", values, groups, units=units, resampling=resampling)
    return tested_above(
        _EXPECTED, mean, values, groups, units, resampling=resampling, of="a model that answers",
        counted="responses",
    )  # fmt: skip
