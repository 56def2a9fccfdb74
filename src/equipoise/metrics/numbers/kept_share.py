"""How many of the requested sets pass every filter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Ends, Estimate, InputError, Labels, NullHypothesis, floats, unwarned
from equipoise.core.arguments import real_numbers
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import ends_of, replicates_text
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.intervals import ClosedForm, wilson
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import Seed, seed_of, unit_counts, unit_keys

FEWEST_CAPTIONS = 10
"""Fewest sets of captions to resample."""


@metric(
    MetricSpec(
        name="kept_share",
        null_kind=NullHypothesis.WITHIN_SETS,
        kinds=("generation",),
        unit="share",
        title="Share of sets kept",
        harm="lower",
        definition=(
            "Share of the requested sets that pass every filter. A rejected set takes its images "
            "of every group along."
        ),
        direction="Lower: more is generated for each set kept.",
        chance="none: a set belongs to no group",
        interval="Wilson; over ten or more caption sets, resampled",
        reference="Howard et al. 2024, SocialCounterfactuals, Table 11",
    )
)
def kept_share(
    kept: ArrayLike,
    *,
    captions: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of sets that are kept.

    Parameters
    ----------
    kept : array-like of bool, shape (n,)
        Whether each set passes every filter.
    captions : array-like, shape (n,), optional
        Set of captions of each set, whose sets are resampled together; each its own unless given.
    resampling : Bootstrap, Permutation or None
        A bootstrap resamples sets of captions; without one the interval is Wilson's.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], lower: more is generated for each set kept. Interval: percentile bootstrap over
        ten sets of captions or more, else Wilson's. No chance level: a set belongs to no group.

    Raises
    ------
    InputError
        When there is no set, or lengths differ.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, Table 11.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.kept_share([True, False, True, True], captions=["a", "a", "b", "b"])
    <kept_share 0.750 [0.301, 0.954]; n = 4>
    """
    values = real_numbers(kept, "kept")
    if not len(values):
        raise InputError(f"kept: shape {values.shape}; expected whether each set is kept, (n,)")
    labels = np.arange(len(values)) if captions is None else captions
    owner, names = unit_codes(labels, len(values), "captions", of="kept")
    counts = np.stack([np.bincount(owner, values), np.bincount(owner)], axis=1)
    total = counts.sum(axis=0)
    ends: Ends = ClosedForm(wilson, (float(total[0]), float(total[1])))
    method, unit = "Wilson", "set"
    resampled_captions = len(names) >= FEWEST_CAPTIONS and 0 < total[0] < total[1]
    if isinstance(resampling, Bootstrap) and resampled_captions:
        replicates = range(resampling.replicates)
        resampled = floats(unit_counts(seed_of(rng), unit_keys(names), replicates)) @ counts
        with unwarned():
            shares = resampled[:, 0] / resampled[:, 1]
        ends, unit = ends_of(shares), "caption set"
        method = replicates_text(shares, "caption sets")
    return make_estimate(
        "kept_share",
        float(total[0] / total[1]),
        {"sets": int(total[1])},
        method,
        no_chance="a set is kept or rejected for all groups alike: there is nothing to exchange",
        unit=unit,
        ends=ends,
    )
