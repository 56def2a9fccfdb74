"""How many more images would decide an inconclusive finding."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from scipy import special

from equipoise.core import Finding, GroupValue
from equipoise.metrics.spec import chance_spread, spec_of_finding

# Beyond so many times today's images, more of them are no advice.
_MOST_TIMES = 100
_MOST_NUMBERS = 1e5
_DIFFERENCE = "a difference as large as the threshold"


class WantedImages(NamedTuple):
    """Extra images that would decide a finding.

    Attributes
    ----------
    more : float
        Number of images; NaN where it is unknown or too large.
    groups : str
        Groups of the images; "" without a number, or where images of all groups decide.
    text : str
        Both in words; "" where the groups' intervals are unknown.
    """

    more: float
    groups: str
    text: str


def images_wanted(finding: Finding, threshold: float, cutoff: float) -> WantedImages:
    """Return the extra images that would decide a finding, their groups and a text.

    At a power of 80 % against a difference as large as the threshold, and at the p-value from
    which on the family's findings count now. From the spread of the two groups farthest apart; or
    of shares of one whole, from the chance level, where shares are those that are expected.

    Parameters
    ----------
    finding : Finding
        Inconclusive, with the intervals of its groups.
    threshold : float
        The smallest difference that matters.
    cutoff : float
        The largest p-value that would be significant.

    Returns
    -------
    WantedImages
        NaN and no group where more than a hundred times today's images are needed, or where
        today's have this power and yet leave the verdict open: another number can't be told.
    """
    groups = [
        group_value
        for group_value in finding.by_group
        if group_value.n > 1
        and not group_value.note
        and not math.isnan(group_value.high - group_value.low)
    ]
    if len(groups) < 2 or not threshold > 0.0 or not cutoff > 0.0:
        return WantedImages(math.nan, "", "")
    if finding.unit == "subject":
        text = "more subjects would decide, rather than more images of each"
        return WantedImages(math.nan, "", text)
    spec = spec_of_finding(finding)
    if spec.of_whole or spec.expectation:
        return _images_of_whole(finding, threshold, cutoff)
    return _images_of_groups(finding, groups, threshold, cutoff)


def _images_of_whole(finding: Finding, threshold: float, cutoff: float) -> WantedImages:
    """Return the extra images of all groups that would decide about their shares of one whole.

    The chance level is drawn at the shares that are expected. Its spread falls with the root of
    the number of images, and the threshold counts from its mean.
    """
    if not finding.chance_high > finding.chance:
        return WantedImages(math.nan, "", "")
    times = (_detectable_excess(finding, cutoff) / threshold) ** 2
    if times > _MOST_TIMES:
        return _too_many()
    return _wanted(math.ceil((times - 1.0) * finding.n), "")


def _detectable_excess(finding: Finding, cutoff: float) -> float:
    """Return the excess over chance that today's images detect with a power of 80 %.

    A number to both sides of chance is taken to be normal. One that can't be negative is taken for
    the length of a vector of independent normal numbers: as many as have the ratio of the end of
    the chance level to its mean.
    """
    power = NormalDist().inv_cdf(0.8)
    if spec_of_finding(finding).value_harm == "either" or not finding.chance > 0.0:
        spread = chance_spread(finding, "either")
        return spread * (NormalDist().inv_cdf(1.0 - cutoff / 2.0) + power)
    few, many = 1.0, _MOST_NUMBERS
    while many - few > 1e-3 * few:
        middle = math.sqrt(few * many)
        wide = special.chdtri(middle, 0.05) ** 0.5 / _mean_length(middle)
        few, many = (middle, many) if wide > finding.chance_high / finding.chance else (few, middle)
    scale = finding.chance / _mean_length(few)
    return float(scale * (special.chdtri(few, cutoff) ** 0.5 + power) - finding.chance)


def _mean_length(numbers: float) -> float:
    """Return the mean of a chi distribution."""
    return math.sqrt(2.0) * math.exp(
        math.lgamma((numbers + 1.0) / 2.0) - math.lgamma(numbers / 2.0)
    )


def _wanted(n_more: int, groups: str) -> WantedImages:
    """Return extra images; unknown where today's have the power already, and decided nothing."""
    if n_more < 1:
        return WantedImages(math.nan, "", "")
    of = f" of {groups}" if groups else ""
    return WantedImages(
        float(n_more), groups, f"about {n_more} more images{of} would show {_DIFFERENCE}"
    )


def _too_many() -> WantedImages:
    text = f"more than {_MOST_TIMES} times as many images would be needed"
    return WantedImages(math.nan, "", text)


def _images_of_groups(
    finding: Finding, groups: Sequence[GroupValue], threshold: float, cutoff: float
) -> WantedImages:
    """Return the extra images of two groups that would decide about their difference."""
    lowest = min(groups, key=lambda group_value: group_value.value)
    # Of equal groups, another one.
    others = (group_value for group_value in groups if group_value is not lowest)
    ends = lowest, max(others, key=lambda group_value: group_value.value)
    normal = NormalDist()
    width = 2.0 * normal.inv_cdf(0.5 + finding.level / 2.0)
    # The variance of one image of each group; Wilson's intervals are those of z² more images.
    more_rows = (width / 2.0) ** 2
    spread = {
        group_value.group: (group_value.n + more_rows)
        * ((group_value.high - group_value.low) / width) ** 2
        for group_value in ends
    }
    limiting, other = sorted(
        ends, key=lambda group_value: -spread[group_value.group] / group_value.n
    )
    target_variance = (threshold / (normal.inv_cdf(1.0 - cutoff / 2.0) + normal.inv_cdf(0.8))) ** 2
    remaining = target_variance - spread[other.group] / other.n
    if remaining > 0.0 and (size := spread[limiting.group] / remaining) <= _MOST_TIMES * limiting.n:
        n_more, wanted_groups = math.ceil(size) - limiting.n, limiting.group
    else:
        times = (
            sum(spread[group_value.group] / group_value.n for group_value in ends) / target_variance
        )
        if times > _MOST_TIMES:
            return _too_many()
        n_more, wanted_groups = (
            math.ceil((times - 1.0) * (limiting.n + other.n)),
            f"{ends[0].group} and {ends[1].group}",
        )
    return _wanted(n_more, wanted_groups)
