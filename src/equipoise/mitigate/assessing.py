"""What each recipe changed of withheld subjects and at what price, tested and put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equipoise.mitigate.measuring import ACCURACY, Measured
from equipoise.mitigate.pairing import Paired, Share, paired, share_of_way
from equipoise.stats.multiplicity import benjamini_hochberg

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
    def reaches(self) -> bool:
        """Whether a bias fell at least halfway to the floor; to nothing, where there is none.

        Of a bias that is not clear of the floor no half can be told.
        """
        if self.share_reason:
            return False
        floor = 0.0 if math.isnan(self.floor) else self.floor
        return self.lowered and self.before - self.after >= HALFWAY * (self.before - floor)

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


@dataclass(frozen=True)
class Outcome:
    """What is to be said of one recipe.

    Attributes
    ----------
    recipe : str
    transfers : bool
        Every bias of withheld subjects fell at least halfway to the floor (q < 0.05), and neither
        accuracy, which was measured, nor a recall fell by more than the margin on any set.
    conclusion : str
        "transfers", "transfers in part", "does not transfer", "costs too much": a bias fell, and
        accuracy or a recall by more than the margin; "price not measured": halfway, without a set
        to measure accuracy on; or "cannot be told": nothing was seen to fall, and an interval
        leaves open that it fell halfway, or no bias is clear of the floor.
    sentence : str
    """

    recipe: str
    transfers: bool
    conclusion: str
    sentence: str


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


def outcomes(rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """Say of each recipe whether what it does holds for withheld subjects, and at what price."""
    return tuple(
        _outcome(recipe, [row for row in rows if row.recipe == recipe])
        for recipe in dict.fromkeys(row.recipe for row in rows)
    )


def _outcome(recipe: str, rows: Sequence[Row]) -> Outcome:
    every = [row for row in rows if row.role == "bias"]
    # A disparity that is not clear of the floor leaves nothing to lower halfway.
    biases = [row for row in every if not row.share_reason]
    utilities = [row for row in rows if row.role == "utility"]
    reached, lowered = sum(row.reaches for row in biases), sum(row.lowered for row in biases)
    raised = [row for row in every if row.difference > 0 and row.q_value < ALPHA]
    unsure = [row for row in biases if row.open]
    halfway = reached == len(biases)
    conclusion = (
        "costs too much" if lowered and any(row.dear for row in utilities)
        else "transfers in part" if lowered and not halfway
        else "cannot be told" if unsure or not biases
        else "does not transfer" if not lowered
        else "transfers" if any(row.measure == ACCURACY for row in utilities)
        else "price not measured"
    )  # fmt: skip
    said = [f"{reached} of {len(biases)} disparities of withheld subjects fell at least halfway"]
    if lowered > reached:
        said.append(f"{lowered - reached} fell by less")
    if unsure:
        said.append(f"of {len(unsure)} these {unsure[0].n} subjects cannot tell")
    if len(every) > len(biases):
        said.append(f"{len(every) - len(biases)} could not, not being clear of the floor before")
    if raised:
        said.append(f"{len(raised)} rose")
    return Outcome(
        recipe, conclusion == "transfers", conclusion, "; ".join([*said, *_price(utilities)])
    )


def _price(utilities: Sequence[Row]) -> list[str]:
    """Say what accuracy and recall lost at worst, how much more it may be, and what is too much."""
    accuracy = [row for row in utilities if row.measure == ACCURACY]
    recall = [row for row in utilities if row.measure != ACCURACY]
    said = [] if accuracy else ["accuracy was not measured"]
    for rows, changed in ((accuracy, "accuracy changed by"), (recall, "at worst, recall by")):
        if not rows:
            continue
        worst = min(rows, key=lambda row: row.difference)
        lowest = min(row.low for row in rows)
        reach = f", its interval reaches {_points(lowest)}" if lowest < -MARGIN else ""
        said.append(f"{changed} {_points(worst.difference)}{reach}")
    dear = [f"{row.measure.replace('_', ' ')} on {row.about}" for row in utilities if row.dear]
    if dear:
        more = f" and {len(dear) - 1} more" if len(dear) > 1 else ""
        said.append(f"more than {100 * MARGIN:.0f} points were lost in {dear[0]}{more}")
    return said


def _points(difference: float) -> str:
    change = round(100 * difference, 1) + 0.0
    return f"{change:+.1f} points".replace("-", "−") if change else "0 points"
