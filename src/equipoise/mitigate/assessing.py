"""What each recipe changed of withheld subjects and at what price, tested."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from equipoise.mitigate.measuring import Measured
from equipoise.mitigate.pairing import Paired, Share, paired, share_of_way
from equipoise.stats.chance import benjamini_hochberg

HALFWAY = 0.5
"""Share of the way to the floor from which on a recipe is said to transfer."""

MARGIN = 0.02
"""Most that accuracy or a recall may fall."""

ALPHA = 0.05

_NO_FLOOR = Share(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Row:
    """One number of one recipe, before and after.

    Attributes
    ----------
    recipe, role, measure, about : str
        `role` is "bias" or "utility"; `about` the attribute, or the data set.
    n : int
        Subjects, images or queries.
    before, after, difference, low, high : float
        Means; after less before, with its 95 % interval, NaN where units are too few for one.
    p_value, q_value : float
        Against no difference; q over all recipes.
    test : str
    floor : float
        The same number of a model without the bias, where one was given; NaN without.
    share, share_low, share_high : float
        How much of the way to the floor was gone.
    share_reason : str
        Why that is not estimable, where there is a floor and it is not.
    """

    recipe: str
    role: str
    measure: str
    about: str
    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    q_value: float
    test: str
    floor: float = math.nan
    share: float = math.nan
    share_low: float = math.nan
    share_high: float = math.nan
    share_reason: str = ""

    @property
    def lowered(self) -> bool:
        """Whether a bias fell, beyond what the number of tests may give by chance."""
        return self.role == "bias" and self.difference < 0 and self.q_value < ALPHA

    @property
    def raised(self) -> bool:
        """Whether a bias rose, beyond what the number of tests may give by chance."""
        return self.role == "bias" and self.difference > 0 and self.q_value < ALPHA

    @property
    def reaches(self) -> bool:
        """Whether a bias fell at least halfway to the floor; to nothing, where there is none.

        That it fell is tested; that it went halfway is the estimate, see `clears`. Of a bias that
        is not clear of the floor no half can be told.
        """
        if self.share_reason:
            return False
        floor = 0.0 if math.isnan(self.floor) else self.floor
        return self.lowered and self.before - self.after >= HALFWAY * (self.before - floor)

    @property
    def clears(self) -> bool:
        """Whether a bias went halfway by its whole interval, not by the estimate alone.

        That of the share of the way; without a floor, that of the difference.
        """
        if not self.reaches:
            return False
        return (-self.high / self.before if math.isnan(self.floor) else self.share_low) >= HALFWAY

    @property
    def open(self) -> bool:
        """Whether a bias was not seen to fall, and its interval reaches halfway to the floor.

        So few units that there is no interval leave everything open.
        """
        if self.share_reason:
            return False
        floor = 0.0 if math.isnan(self.floor) else self.floor
        halfway = HALFWAY * (self.before - floor)
        reaches = math.isnan(self.low) or self.low <= -halfway
        return self.role == "bias" and not self.lowered and reaches and halfway > 0

    @property
    def dear(self) -> bool:
        """Whether accuracy or a recall fell by more than the margin."""
        return self.role == "utility" and self.difference < -MARGIN


def assessed(
    before: Measured, after: Mapping[str, Measured], floor: Measured | None, *, seed: int = 0
) -> tuple[Row, ...]:
    """Compare what was measured before and after each recipe.

    Parameters
    ----------
    before : Measured
        Of the model as it was.
    after : mapping of str to Measured
        By recipe, of the same subjects, images and queries.
    floor : Measured, optional
        Of a model without the bias.
    seed : int

    Returns
    -------
    tuple of Row
        Biases of all recipes, then what they can do; q-values after Benjamini and Hochberg, over
        all rows of either.
    """
    biases = [
        row for name, found in after.items() for row in _biases(name, before, found, floor, seed)
    ]
    utilities = [
        row for name, found in after.items() for row in _utilities(name, before, found, floor, seed)
    ]
    return tuple(_corrected(biases) + _corrected(utilities))


def _corrected(rows: list[Row]) -> list[Row]:
    q_values = benjamini_hochberg([row.p_value for row in rows]).tolist()
    return [replace(row, q_value=q) for row, q in zip(rows, q_values, strict=True)]


def _biases(
    recipe: str, before: Measured, after: Measured, floor: Measured | None, seed: int
) -> list[Row]:
    rows = []
    for (measure, about), values in after.bias.items():
        own = before.bias[measure, about]
        pair = _pair(own, values, seed)
        least, share = math.nan, _NO_FLOOR
        if floor is not None:
            units = sorted(values)
            at_floor = [floor.bias[measure, about][name] for name in units]
            least = sum(at_floor) / len(at_floor)
            share = share_of_way(
                [own[name] for name in units], [values[name] for name in units], at_floor,
                seed=seed, name="subjects",
            )  # fmt: skip
        rows.append(_row(recipe, "bias", measure, about, pair, least, share))
    return rows


def _utilities(
    recipe: str, before: Measured, after: Measured, floor: Measured | None, seed: int
) -> list[Row]:
    rows = []
    for (measure, about), values in after.utility.items():
        if not values:
            continue
        pair = _pair(before.utility[measure, about], values, seed)
        other = math.nan
        if floor is not None:
            kept = [floor.utility[measure, about][name] for name in values]
            other = sum(kept) / len(kept)
        rows.append(_row(recipe, "utility", measure, about, pair, other, _NO_FLOOR))
    return rows


def _pair(before: Mapping[str, float], after: Mapping[str, float], seed: int) -> Paired:
    units = sorted(after)
    return paired([before[u] for u in units], [after[u] for u in units], seed=seed)


def _row(
    recipe: str,
    role: str,
    measure: str,
    about: str,
    pair: Paired,
    floor: float,
    share: Share,
) -> Row:
    return Row(
        recipe, role, measure, about, pair.n, pair.before, pair.after, pair.difference, pair.low,
        pair.high, pair.p_value, math.nan, pair.test, floor, share.value,
        share.low, share.high, share.reason,
    )  # fmt: skip
