"""What a cause explains of a disparity between two groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from equipoise.core import (
    Booleans,
    Chance,
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    Labels,
    NullHypothesis,
    Part,
    Strings,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import real_numbers
from equipoise.core.labels import Encoded
from equipoise.metrics.building import (
    bootstrap_method,
    compare_with_chance,
    ends_of,
    explain_undefined,
    number,
)
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.labels.table import Counts, count
from equipoise.metrics.measure import DEFAULT, Draws, Measure, measure
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, MetricSpec, make_estimate
from equipoise.stats.association import Association
from equipoise.stats.intervals import divide
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed

How: TypeAlias = Literal["reweight", "remove"]
"""Whether groups get one distribution of a cause, or affected images are left out."""
_SIDES = ("group", "others")
# More different outcomes than this are drawn as levels with their means: what varies within a level
# is a few thousandths of the variance. Values are exact.
_LEVELS = 64
SUPPORT = 5
"""Images of each group below which a stratum says nothing of their difference."""
# Bins of numbers: images of the smaller side for each, the fewest and the most. Wide bins leave
# a part of the cause unexplained.
_OF_BIN, _FEWEST, _MOST = 20, 5, 40
_NULL = "the cause does not matter: it is shuffled within each group"
_NUMBERS = "explained", "disparity", "disparity_without_cause", "explained_share"


@record
class _Rows:
    """Complete rows, as numbers.

    `side` is 0 in the group and 1 in the others, and `stratum` indexes `strata`. `level` is the
    level of each outcome, and `means` are the means of levels.
    """

    names: tuple[str, str]
    side: Integers
    strata: Strings
    stratum: Integers
    outcome: Floats
    level: Integers
    means: Floats
    weight: Floats | None
    complete: Booleans
    excluded: dict[str, int]

    @classmethod
    def of(
        cls,
        outcome: ArrayLike,
        groups: GroupLabels,
        cause: ArrayLike | Labels,
        group: str,
        bins: int | None,
        weights: ArrayLike | None,
    ) -> _Rows:
        """Check rows, and leave out incomplete ones."""
        image_groups = Groups.of(groups)
        names, side = _sides(image_groups, group)
        numbers = _numbers(outcome)
        values = numbers if numbers is not None else np.array([math.inf])
        if values.shape != side.shape or np.isinf(values).any():
            raise InputError(
                f"outcome: expected {len(side)} finite numbers or booleans, as in groups; None "
                "where an image has none"
            )
        least = min(_count_sides(side))
        stratum, strata = _strata(cause, bins or min(max(least // _OF_BIN, _FEWEST), _MOST))
        if len(stratum) != len(side):
            raise InputError(f"cause: {len(stratum)} values; expected {len(side)}, as in groups")
        no_outcome, no_cause = np.isnan(values), stratum < 0
        complete = ~no_outcome & ~no_cause & (side >= 0)
        excluded = {
            "no group, or one that is not compared": tally(side < 0),
            "no outcome": tally(no_outcome & (side >= 0)),
            "no cause": tally(no_cause & ~no_outcome & (side >= 0)),
        }
        weight = None if weights is None else real_numbers(weights, "weights")
        if weight is not None and weight.shape != side.shape:
            raise InputError(f"weights: shape {weight.shape}; expected {side.shape}, as in groups")
        values = values[complete]
        level = _levels(values)
        means = divide(np.bincount(level, values), floats(np.bincount(level)))
        return cls(
            names, side[complete], strata, stratum[complete], values, level, means,
            None if weight is None else weight[complete], complete, excluded,
        )  # fmt: skip

    def counts(self, units: Labels | None) -> Counts:
        """Count side, outcome and stratum: causes are what null hypotheses exchange."""
        side = Encoded(self.side.astype(np.int32), _SIDES)
        levels = tuple((name,) for name in self.strata)
        strata = Groups(("cause",), levels, self.stratum.astype(np.int32), named=False)
        complete_units = None if units is None else _complete_labels(units, self.complete)
        names = tuple(map(str, range(len(self.means))))
        if self.weight is None:
            return count(
                side, Encoded(self.level.astype(np.int32), names), strata, units=complete_units
            )
        level_names = np.array(names)[self.level, None]
        return count(side, level_names, strata, weights=self.weight[:, None], units=complete_units)

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        """Weights of images and sums of outcomes, (1, sides, strata), exactly."""
        places, shape = self.side * len(self.strata) + self.stratum, (1, 2, len(self.strata))
        weight = np.ones(len(places)) if self.weight is None else self.weight
        # The order of rows must not change what is added.
        order = np.lexsort((weight, self.outcome, places))
        sums = np.zeros((2, math.prod(shape)))
        for row, values in zip(sums, (weight, weight * self.outcome), strict=True):
            np.add.at(row, places[order], values[order])
        return sums[0].reshape(shape), sums[1].reshape(shape)


def _complete_labels(labels: Labels, complete: Booleans) -> Encoded:
    codes, names = encode(labels, subject="units")
    if len(codes) != len(complete):
        raise InputError(f"units: {len(codes)} labels; expected {len(complete)}, as in groups")
    return Encoded(codes[complete], names)


def _sides(groups: Groups, group: str) -> tuple[tuple[str, str], Integers]:
    """Return both groups' names, and 0, 1 or -1 (neither) for each row."""
    group = group and groups.display_name(group)
    usable = [name for name, large in zip(groups.names, groups.usable, strict=True) if large]
    if (not group and len(usable) != 2) or (group and (group not in usable or len(usable) < 2)):
        raise InputError(
            f"first={group!r}: expected one of {', '.join(usable) or 'no'} groups that have at "
            f"least {groups.min_size} rows; leave it out if there are two groups"
        )
    first = groups.names.index(group or usable[0])
    side = np.where(groups.large < 0, -1, np.where(groups.codes == first, 0, 1))
    other_names = [name for name in usable if name != groups.names[first]]
    return (groups.names[first], other_names[0] if len(other_names) == 1 else OTHERS), integers(
        side
    )


def _count_sides(side: Integers) -> list[int]:
    """Return the rows of each side, the group and the others."""
    sizes: list[int] = np.bincount(side[side >= 0], minlength=len(_SIDES)).tolist()
    return sizes


def _numbers(values: ArrayLike | Labels) -> Floats | None:
    """Return numbers or booleans, NaN where missing; None of anything else."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        kinds = _types(array) - {type(None)}
        if not all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
            return None
    elif array.dtype.kind not in "biuf":
        return None
    return floats(array)


def _strata(cause: ArrayLike | Labels, bins: int) -> tuple[Integers, Strings]:
    """Return the stratum of each row, -1 where missing: numbers fall into bins of equal size."""
    array = np.asarray(cause)
    if array.ndim != 1:
        raise InputError(f"cause: shape {array.shape}; expected one value per row, shape (n,)")
    if array.dtype.kind == "b":
        return _encoded(array)
    numbers = None
    if not _boolean(array):
        numbers = _numbers(array)
    if numbers is None:
        return _encoded(cause)
    if numbers.ndim != 1 or np.isinf(numbers).any():
        raise InputError(f"cause: expected {len(numbers)} finite numbers, or labels")
    starts, place = _binned(numbers, bins)
    single = len(starts) == len(np.unique(numbers[~np.isnan(numbers)]))
    if single:
        bin_names = [f"{start:g}" for start in starts.tolist()]
    else:
        bin_names = [f"from {start:.4g} to {end:.4g}" for start, end in pairwise(starts.tolist())]
        bin_names += [f"from {start:.4g}" for start in starts[-1:].tolist()]
    return np.where(np.isnan(numbers), -1, place), tuple(bin_names)


def _encoded(cause: Labels) -> tuple[Integers, Strings]:
    codes, names = encode(cause, subject="cause")
    return integers(codes), names


def _binned(numbers: Floats, bins: int) -> tuple[Floats, Integers]:
    """Return where bins of equally many numbers start, and the bin of each; few have their own."""
    defined = numbers[~np.isnan(numbers)]
    starts = np.unique(defined)
    if len(starts) > bins:
        starts = np.unique(np.quantile(defined, np.arange(bins) / bins, method="lower"))
    return starts, np.searchsorted(starts, numbers, side="right") - 1


def _levels(outcome: Floats) -> Integers:
    """Return the level of each outcome: bins of equally many and of equal width, cut together."""
    starts, place = _binned(outcome, _LEVELS)
    if len(np.unique(outcome)) <= _LEVELS:
        return place
    widths = np.linspace(outcome.min(), outcome.max(), _LEVELS, endpoint=False)
    return np.searchsorted(np.union1d(starts, widths), outcome, side="right") - 1


def _boolean(array: NDArray[np.generic]) -> bool:
    return array.dtype.kind == "O" and _types(array) <= {bool, type(None)}


def _types(array: NDArray[np.generic]) -> set[type]:
    return {type(value) for value in array.tolist()}


class _Explained(Measure):
    """Δ − Δ_c, Δ, Δ_c, their ratio, then the difference within each stratum."""

    null = "class"
    resamples = True
    compares = False

    def __init__(self, rows: _Rows, adjustment: How) -> None:
        self.rows, self.adjustment = rows, adjustment

    def totals(self, counts: Counts, tables: Floats) -> tuple[Floats, Floats]:
        """Return images and sums of outcomes, (r, sides, strata)."""
        if tables is counts.observed:
            return self.rows.totals
        shape = (len(tables), len(_SIDES), tables.shape[2])
        images, sums = np.zeros(shape), np.zeros(shape)
        for outcome, (truth, predicted) in enumerate(
            zip(counts.truth.tolist(), counts.prediction.tolist(), strict=True)
        ):
            side, mean = _SIDES.index(counts.classes[truth]), self._means[counts.classes[predicted]]
            images[:, side] += tables[:, outcome]
            if mean:
                sums[:, side] += tables[:, outcome] * mean
        return images, sums

    @cached_property
    def _means(self) -> dict[str, float]:
        return {str(level): mean for level, mean in enumerate(self.rows.means.tolist())}

    @cached_property
    def supported(self) -> Booleans:
        """Return a mask of strata that are compared, or that stay."""
        if self.adjustment == "remove":
            return np.array([name == "False" for name in self.rows.strata])
        shape = len(_SIDES), len(self.rows.strata)
        images = np.zeros(shape)
        np.add.at(images, (self.rows.side, self.rows.stratum), 1.0)
        return np.asarray((images >= SUPPORT).all(axis=0))

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the numbers of each table."""
        n, sums = self.totals(counts, tables)
        supported = self.supported
        share = divide(sums, n)
        differences = share[:, 0] - share[:, 1]
        overall = divide(sums.sum(axis=2), n.sum(axis=2))
        if self.adjustment == "remove":
            remaining = divide(sums[..., supported].sum(axis=2), n[..., supported].sum(axis=2))
            without = remaining[:, 0] - remaining[:, 1]
        else:
            shared = supported & (n > 0).all(axis=1)
            weight = np.where(shared, n.sum(axis=1), 0.0)
            without = divide(
                (weight * np.where(shared, differences, 0.0)).sum(axis=1), weight.sum(axis=1)
            )
        disparity = overall[:, 0] - overall[:, 1]
        explained = disparity - without
        with unwarned():
            ratio = np.where(disparity == 0.0, np.nan, explained / disparity)
        return np.column_stack([explained, disparity, without, ratio, differences])

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Return the explained disparity with its parts."""
        rows, supported = self.rows, self.supported
        value = float(draws.observed[0])
        permutations = draws.null_text.partition("; ")[2]
        draws = replace(draws, null_text=f"{_NULL}; {permutations}")
        chance_test = compare_with_chance(draws, 0, "either")
        if len(set(rows.stratum.tolist())) < 2:
            value, reason = math.nan, "the cause is the same everywhere"
        else:
            reason = explain_undefined(value, "no stratum has enough images of both groups")
        params: dict[str, str | int] = {
            "how": self.adjustment,
            "strata": len(supported),
            "strata without common support": 0,
        }
        unsupported, n_unsupported = ~supported[rows.stratum], 0
        if self.adjustment == "remove":
            for name, n in zip(rows.names, _count_sides(rows.side[unsupported]), strict=True):
                params[f"removed of {name}"] = n
        else:
            params["strata without common support"] = tally(~supported)
            n_unsupported = tally(unsupported & (rows.side >= 0))
        return make_estimate(
            "explained_disparity",
            value,
            dict(zip(rows.names, _count_sides(rows.side), strict=True)),
            bootstrap_method(draws.boot, DEFAULT if draws.intervals else None, f"{counts.unit}s"),
            params=params,
            **chance_test.fields(reason or "resampling is off"),
            by=self._parts(counts, draws, supported),
            excluded={**rows.excluded, "without common support": n_unsupported},
            unit=counts.unit,
            reason=reason,
            ends=no_ends if reason else ends_of(draws.boot, 0),
        )

    def _parts(self, counts: Counts, draws: Draws, supported: Booleans) -> list[Part]:
        n, sums = (array[0] for array in self.totals(counts, counts.observed))
        values = divide(sums, n)
        parts = []
        for place, name in enumerate(_NUMBERS[1:], start=1):
            ends, value, reason = ends_of(draws.boot, place), float(draws.observed[place]), ""
            if name == "explained_share":
                low, high = ends_of(draws.boot, 1)(draws.level)
                if not (low > 0.0 or high < 0.0):
                    ends, value = no_ends, math.nan
                    reason = "the interval of the disparity holds 0"
            parts.append(
                number(name, value, ends=ends, level=draws.level, n=round(n.sum()), reason=reason)
            )
        for place, stratum in enumerate(self.rows.strata):
            by_group = tuple(
                GroupValue(name, (name,), round(n[side, place]), float(values[side, place]),
                           math.nan, math.nan, "")
                for side, name in enumerate(self.rows.names)
            )  # fmt: skip
            too_few_images = f"fewer than {SUPPORT} images of one group"
            reason = "removed" if self.adjustment == "remove" else too_few_images
            parts.append(
                number("disparity_in_stratum", float(draws.observed[len(_NUMBERS) + place]),
                       subject=stratum, ends=ends_of(draws.boot, len(_NUMBERS) + place),
                       level=draws.level, n=round(n[:, place].sum()), by_group=by_group,
                       reason="" if supported[place] else reason)
            )  # fmt: skip
        return parts


@metric(
    MetricSpec(
        name="explained_disparity",
        aliases=("Kitagawa decomposition", "Oaxaca-Blinder decomposition"),
        null_kind=NullHypothesis.CAUSE,
        kinds=("review",),
        title="Explained disparity",
        unit="number",
        range=ANY_NUMBER,
        harm="either",
        definition=(
            "Difference between two groups, minus that after both get the same distribution of a "
            "cause, or after affected images are removed."
        ),
        direction=(
            "Either: with the sign of the disparity the cause widens it, with the other sign it "
            "hides a part of it."
        ),
        chance="mean over causes shuffled within each group: as many random images are removed",
        interval="percentile bootstrap over images or units, paired",
        null="the cause does not matter within a group",
        reference="Kitagawa 1955; Hall et al. 2023, section 6",
    )
)
def explained_disparity(  # noqa: PLR0913 - one keyword for each choice
    outcome: ArrayLike,
    groups: GroupLabels,
    cause: ArrayLike | Labels,
    *,
    how: How = "reweight",
    first: str = "",
    bins: int | None = None,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How much of a disparity between two groups a cause explains.

    Parameters
    ----------
    outcome : array-like of bool or numbers, shape (n,)
        Such as whether the prediction of each image is right; None or NaN where it has none.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        Small groups are left out, see `Groups.of`.
    cause : array-like of labels or numbers, shape (n,)
        Such as the medium of each image or the size of its object. More than `bins` different
        numbers fall into bins of equally many images. None and NaN are missing.
    how : "reweight" or "remove"
        "reweight" gives both groups the distribution of the cause over all of their images.
        "remove" leaves out the images whose cause is True.
    first : str
        Group that is compared with all others; may be left out where there are two.
    bins : int, optional
        At least 2. By default one for every 20 images of the smaller side, from 5 to 40.
    weights : array-like, shape (n,), optional
        Weight of each image, such as the inverse of its probability to be in the sample.
    units : array-like, shape (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Δ − Δ_c in units of the outcome: the difference between the groups, less that without the
        cause. It has the sign of Δ where the cause widens the disparity, and the other sign where
        the cause hides a part of it. Interval: percentile bootstrap, paired. Chance and p: the
        cause is shuffled within each group, so that as many random images are removed, or groups
        are reweighted by a cause without meaning. `.by` has "disparity" (Δ),
        "disparity_without_cause" (Δ_c), "explained_share" (their ratio, only where the interval of
        Δ excludes 0) and "disparity_in_stratum" of each value of the cause. Strata with fewer than
        five images of a group have no common support: they count in Δ alone, and in `.excluded`.

    Raises
    ------
    InputError
        When lengths differ, the outcome is no number, there are more than two groups and no
        `first`, nothing is complete, or `how` is "remove" and the cause is not boolean.

    Notes
    -----
    A cause that says which images are removed may itself follow from the outcome. It then explains
    without being a cause.

    References
    ----------
    Kitagawa 1955, JASA 50, 1168-1194 (standardisation); Hall et al. 2023, section 6.

    Examples
    --------
    Half of the women's images are paintings, and all of the paintings are missed.

    >>> from equipoise import metrics as m
    >>> groups, medium = ["men", "women"] * 40, ["photo", "photo", "photo", "painting"] * 20
    >>> right = [True, True, True, False] * 20
    >>> m.explained_disparity(right, groups, medium, resampling=None)
    <explained_disparity 0.500; n = 80 in 2 groups>
    """
    if how not in ("reweight", "remove"):
        raise InputError(f"how={how!r}: expected reweight or remove")
    if bins is not None and bins < 2:
        raise InputError(f"bins={bins}: expected at least 2")
    rows = _Rows.of(outcome, groups, cause, first, bins, weights)
    if how == "remove" and not {*rows.strata} <= {"True", "False"}:
        raise InputError(
            f"cause: {', '.join(rows.strata[:3])}; expected True or False, to remove images"
        )
    counts = rows.counts(units)
    return measure(counts, [_Explained(rows, how)], resampling, rng)[0]


def rank_causes(  # noqa: PLR0913 - one keyword for each choice
    outcome: ArrayLike,
    groups: GroupLabels,
    causes: Mapping[str, ArrayLike | Labels],
    *,
    how: Mapping[str, How] | None = None,
    first: str = "",
    bins: int | None = None,
    weights: Mapping[str, ArrayLike] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> pa.Table:
    """Rank causes by the part of a disparity that each explains alone.

    Parameters
    ----------
    outcome, groups, first, bins, units, resampling, rng
        As of `explained_disparity`.
    causes : mapping of str to array-like, shape (n,)
    how : mapping of str to "reweight" or "remove", optional
        By cause; "reweight" unless given.
    weights : mapping of str to array-like, shape (n,), optional
        By cause, where a sample of the images has it.

    Returns
    -------
    pyarrow.Table
        One row per cause, the first explains most: `cause`, `how`, `explained` with `low`, `high`,
        `chance`, `chance_low`, `chance_high` and `p_value`; `explains`; `disparity` and `without`
        with their ends; `share`; `n`, `strata`, `without_support` (images) and `reason`. A cause
        explains where its interval at the level of all causes together (Bonferroni) excludes 0 on
        the side of the disparity, the interval of the disparity excludes 0, and p is at most
        1 - level. Causes that explain come first. Causes overlap: their numbers don't add up.
        `beyond`: the cause before it that leaves it nothing to explain, where groups have the same
        distribution of that one, and `association`, Cramér's V of the two.

    Raises
    ------
    InputError
        As `explained_disparity`.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> groups = ["men", "women", "men", "women", "women"] * 20
    >>> causes = {"painting": [0, 1, 0, 0, 1] * 20, "sign": [0, 0, 0, 1, 1] * 20}
    >>> table = m.rank_causes([1, 0, 1, 1, 0] * 20, groups, causes)
    >>> table["cause"].to_pylist()
    ['painting', 'sign']
    """
    level, rows = level_of(resampling), list[dict[str, Cell]]()
    hows, image_weights = how or {}, weights or {}

    def row_of(name: str, values: ArrayLike, weight: ArrayLike | None) -> dict[str, Cell]:
        estimate = explained_disparity(
            values, groups, causes[name], how=hows.get(name, "reweight"), first=first, bins=bins,
            weights=weight, units=units, resampling=resampling, rng=rng,
        )  # fmt: skip
        return _row(name, estimate, level, len(causes))

    rows.extend(row_of(name, outcome, image_weights.get(name)) for name in causes)
    rows.sort(key=_rank)
    leading = dict[str, _Rows]()
    for row in rows:
        if not row["explains"]:
            break
        name = str(row["cause"])
        weight = image_weights.get(name)
        cause_rows = _Rows.of(outcome, groups, causes[name], first, bins, weight)
        for other, other_rows in leading.items():
            rest = _without_cause(other_rows, hows.get(other, "reweight"), weight)
            if not row_of(name, *rest)["explains"]:
                row |= {"beyond": other, "association": _association(cause_rows, other_rows)}
                break
        else:
            leading[name] = cause_rows
    return pa.Table.from_pylist(rows, _SCHEMA)


def _without_cause(
    rows: _Rows, adjustment: How, weights: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return outcomes and weights of images where a cause no longer differs between groups.

    Outcomes are NaN, and weights 0, where images are removed or a group has too few with the same
    value of the cause.
    """
    outcome, weight = nans(len(rows.complete)), np.zeros(len(rows.complete))
    stays = _Explained(rows, adjustment).supported[rows.stratum]
    row_weight = np.ones(len(rows.side)) if rows.weight is None else rows.weight
    if adjustment == "reweight":
        sums = np.zeros((len(_SIDES), len(rows.strata)))
        np.add.at(sums, (rows.side[stays], rows.stratum[stays]), row_weight[stays])
        shares = divide(np.broadcast_to(sums.sum(axis=0), sums.shape), sums)
        row_weight = row_weight * np.where(stays, shares[rows.side, rows.stratum], 0.0)
    outcome[rows.complete] = np.where(stays, rows.outcome, np.nan)
    weight[rows.complete] = np.where(stays, row_weight, 0.0)
    return outcome, weight if weights is None else weight * (floats(weights) > 0)


def _association(first: _Rows, second: _Rows) -> float:
    """Return Cramér's V of two causes over the images that have both."""
    table = np.zeros((len(first.strata), len(second.strata)))
    both = first.complete & second.complete
    np.add.at(
        table, (first.stratum[both[first.complete]], second.stratum[both[second.complete]]), 1.0
    )
    return float(Association.of(table).cramers_v)


_TEXTS, _WHOLE = ("cause", "how", "reason", "beyond"), ("n", "strata", "without_support")
_FIELDS = (
    "cause", "how", "explains", "explained", "low", "high", "chance", "chance_low", "chance_high",
    "p_value", "share", "disparity", "disparity_low", "disparity_high", "without", "without_low",
    "without_high", "n", "strata", "without_support", "reason", "beyond", "association",
)  # fmt: skip
_TYPES = {
    **dict.fromkeys(_TEXTS, pa.string()), **dict.fromkeys(_WHOLE, pa.int64()),
    "explains": pa.bool_(),
}  # fmt: skip
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in _FIELDS])

Cell: TypeAlias = str | int | float | bool
"""A cell of the table of `rank_causes`."""


def _row(name: str, estimate: Estimate, level: float, causes: int) -> dict[str, Cell]:
    """Return the row of a cause."""
    parts = (
        {part_row["metric"]: part_row for part_row in estimate.by.slice(0, 3).to_pylist()}
        if estimate.by
        else {}
    )
    disparity, without = parts["disparity"], parts["disparity_without_cause"]
    ends, wide = estimate.interval(level), estimate.interval(1.0 - (1.0 - level) / causes)
    p_value = math.nan if estimate.p_value is None else estimate.p_value
    sign = math.copysign(1.0, disparity["value"])
    real = sign * disparity["low" if sign > 0 else "high"] > 0
    explains = real and sign * (wide.low if sign > 0 else wide.high) > 0 and p_value <= 1.0 - level
    chance = estimate.chance or Chance(math.nan, math.nan, math.nan, "")
    return {
        "cause": name,
        "how": str(estimate.params["how"]),
        "explains": bool(explains),
        "explained": estimate.value,
        "low": ends.low,
        "high": ends.high,
        "chance": chance.mean,
        "chance_low": chance.low,
        "chance_high": chance.high,
        "p_value": p_value,
        "share": parts["explained_share"]["value"],
        "disparity": disparity["value"],
        "disparity_low": disparity["low"],
        "disparity_high": disparity["high"],
        "without": without["value"],
        "without_low": without["low"],
        "without_high": without["high"],
        "n": sum(estimate.n.values()),
        "strata": int(estimate.params["strata"]),
        "without_support": estimate.excluded.get("without common support", 0),
        "reason": estimate.reason,
        "beyond": "",
        "association": math.nan,
    }


def _rank(row: Mapping[str, Cell]) -> tuple[bool, float]:
    """Sort causes that explain first, then by size; unknown ones last."""
    size = float(row["explained"]) * math.copysign(1.0, float(row["disparity"]))
    return not row["explains"], math.inf if math.isnan(size) else -size
