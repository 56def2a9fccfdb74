"""Regression of a model's bias on the data it was trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from equipoise.core import Estimate, Floats, NullHypothesis, Part, Span, nans, no_ends
from equipoise.metrics.rankings.subjects import pairs_of
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, MetricSpec, make_estimate

_METHOD = "Student's t with standard errors that allow for unequal variances (HC3)"
_FEWEST = 4


@metric(
    MetricSpec(
        name="bias_regression",
        null_kind=NullHypothesis.NORMAL,
        kinds=("review",),
        title="Slope of bias on co-occurrence",
        range=ANY_NUMBER,
        harm="either",
        definition="Slope of a model's bias per concept on co-occurrence in its training data.",
        direction="Either: above 0 the bias follows the training data, below it opposes them.",
        chance="none: a slope has no chance level; p is against 0",
        interval=_METHOD,
        null="the bias does not depend on co-occurrence",
        reference="MacKinnon & White 1985",
    )
)
def bias_regression(bias: ArrayLike, cooccurrence: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Slope of a model's bias per concept on co-occurrence in its training data.

    Parameters
    ----------
    bias : array-like, shape (n,)
        Signed bias of the model for each concept, such as the difference in similarity of two
        groups.
    cooccurrence : array-like, shape (n,)
        Co-occurrence of the same groups with each concept in the training data, such as the share
        of captions. Pairs without two finite numbers are left out and counted.
    level : float
        Confidence level of the parts.

    Returns
    -------
    Estimate
        Slope of least squares, in units of bias for each unit of co-occurrence; above 0 the bias
        follows the data. p is two-sided, of no slope. `.by` has "slope", "intercept" (the bias
        of a concept with co-occurrence 0) and "r_squared", the share of the variance over concepts
        that co-occurrence explains. NaN below four concepts, or where all co-occurrences are equal.

    Raises
    ------
    InputError
        When arrays are not of one shape (n,).

    Notes
    -----
    Noise in the co-occurrence of rare concepts draws the slope towards 0.

    References
    ----------
    MacKinnon & White 1985, Journal of Econometrics 29, 305-325; Long & Ervin 2000, The American
    Statistician 54, 217-224.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.bias_regression([0.1, 0.3, 0.2, 0.5], [0.2, 0.5, 0.4, 0.8])
    <bias_regression 0.680 [0.403, 0.957]; p = 0.0088, n = 4>
    """
    y, x, dropped = pairs_of(bias, cooccurrence, ("bias", "cooccurrence"))
    n = len(x)
    reason = ""
    if n < _FEWEST:
        reason = f"fewer than {_FEWEST} concepts"
    elif np.ptp(x) == 0:
        reason = "all co-occurrences are equal"
    values, errors, explained = (nans(2),) * 2 + (np.nan,) if reason else _fit(x, y)

    def ends(place: int, level: float) -> Span:
        half = stdtrit(n - 2, (1.0 + level) / 2.0) * errors[place]
        return float(values[place] - half), float(values[place] + half)

    parts = [
        Part(name, "", float(values[place]), *ends(place, level), n=n, reason=reason)
        for place, name in ((1, "slope"), (0, "intercept"))
    ]
    parts.append(Part("r_squared", "", float(explained), n=n, reason=reason))
    p_value = None
    if not reason and errors[1] > 0:
        p_value = float(2.0 * stdtr(n - 2, -abs(values[1] / errors[1])))
    return make_estimate(
        "bias_regression",
        float(values[1]),
        {"concepts": n},
        _METHOD,
        no_chance=reason or "a slope has no chance level; p is against 0",
        p_value=p_value,
        null_drawn="the bias does not depend on co-occurrence: t distribution with n - 2 degrees",
        by=parts,
        excluded={"no two finite numbers": dropped},
        unit="concept",
        reason=reason,
        ends=no_ends if reason else lambda level: ends(1, level),
    )


def _fit(x: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Return coefficients, their HC3 errors, and the share of variance explained."""
    design = np.stack([np.ones_like(x), x], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    values = inverse @ design.T @ y
    residuals = y - design @ values
    leverage = ((design @ inverse) * design).sum(axis=1)
    # A concept that decides its own fit leaves no residual to scale.
    scaled = residuals / np.maximum(1.0 - leverage, 1e-12)
    covariance = inverse @ (design.T * scaled**2) @ design @ inverse
    total = float(((y - y.mean()) ** 2).sum())
    explained = 1.0 - float((residuals**2).sum()) / total if total else np.nan
    return values, np.sqrt(np.diag(covariance)), explained
