"""Changes of withheld subjects by each recipe, tested, and the conclusion that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from equipoise.core.wording import number
from equipoise.mitigate.measuring import ACCURACY, GAP, NDKL, RANKS, Measured, Numbers
from equipoise.stats.chance import benjamini_hochberg, sign_flips
from equipoise.stats.intervals import mean_t
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

HALFWAY = 0.5
"""Share of the way to the floor at which a recipe transfers."""

MARGIN = 0.02
"""Largest allowed fall of accuracy or a recall."""

ALPHA = 0.05
REPLICATES, FLIPS = 2000, 100_000
FEWEST = 6
"""Fewest units with which flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""
_TIE = 1e-12
_NAMED = 3

_NAMES = {
    NDKL: "NDKL",
    GAP: "similarity gap in logits",
    ACCURACY: "zero-shot accuracy",
    **{f"{kind}_recall_at_{k}": f"{kind} retrieval R@{k}" for kind in ("image", "text")
       for k in RANKS},
}  # fmt: skip


@dataclass(frozen=True)
class Paired:
    """A mean before and after, over units.

    Attributes
    ----------
    n : int
        Units.
    before, after, difference : float
        Means over units; after less before.
    low, high : float
        Student's 95 % interval of the difference, as when models are compared; NaN with fewer than
        `FEWEST` units, of which the test can show nothing either.
    p_value : float
        Two-sided, of differences whose signs are exchangeable; NaN with fewer than two units.
    test : str
    """

    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    test: str


def paired(before: npt.ArrayLike, after: npt.ArrayLike, *, seed: int) -> Paired:
    """Compare numbers of the same units.

    Parameters
    ----------
    before, after : array-like of float, shape (units,)
        Units in which either is NaN are left out.
    seed : int
    """
    pair = _complete(before, after)
    n = len(pair)
    if n == 0:
        return Paired(0, *(math.nan,) * 6, "none: no unit has both numbers")
    apart = pair[:, 1] - pair[:, 0]
    low, high = mean_t(apart) if n >= FEWEST else (math.nan, math.nan)
    first, second = pair.mean(axis=0).tolist()
    p_value, test = math.nan, "none: fewer than two units"
    if n > 1:
        flips = sign_flips(apart, permutations=FLIPS, seed=seed)
        signs = "all" if flips.method == "exact" else f"{FLIPS} draws of the"
        p_value, test = flips.value, f"{signs} signs of the differences"
    return Paired(n, first, second, second - first, float(low), float(high), p_value, test)


def _complete(*columns: npt.ArrayLike) -> Floats:
    """Return units with all numbers, (units, columns)."""
    units = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    return np.asarray(units[~np.isnan(units).any(axis=1)])


@dataclass(frozen=True)
class Share:
    """Share of the way to a floor.

    Attributes
    ----------
    value, low, high : float
        With its 95 % interval, NaN with fewer than `FEWEST` units: draws of so few lie within
        their own range. A value of NaN is not estimable.
    reason : str
        Why it is not estimable; empty where it is.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


def share_of_way(
    before: npt.ArrayLike, after: npt.ArrayLike, floor: npt.ArrayLike, *, seed: int, name: str
) -> Share:
    """Return the share of the way to a floor, units resampled with all three numbers.

    Parameters
    ----------
    before, after, floor : array-like of float, shape (units,)
        Units in which one is NaN are left out.
    seed : int
    name : str
        Name of the units: the same units are drawn wherever it is the same.

    Returns
    -------
    Share
        Not estimable with fewer than two units, and where the number before is not clear of the
        floor: its excess over it is not above 0, or the 95 % interval of that is not.
    """
    units = _complete(before, after, floor)
    n = len(units)
    if n < 2:
        return Share(reason="fewer than two subjects have all three numbers")
    means = units.mean(axis=0)
    draw = stream(seed, "mitigate", "paired", name, n)
    drawn = draw.multinomial(n, np.full(n, 1.0 / n), size=REPLICATES) @ units / n
    ways = drawn[:, 0] - drawn[:, 2]
    way = float(means[0] - means[2])
    if not (way > _TIE and np.percentile(ways, 2.5) > _TIE):
        return Share(reason="the number before is not clear of the floor")
    # Fewer than 2.5 % of the draws have no way at all; a share of it would have no sign.
    real = ways > _TIE
    shares = (drawn[real, 0] - drawn[real, 1]) / ways[real]
    low, high = (math.nan, math.nan) if n < FEWEST else np.percentile(shares, [2.5, 97.5])
    return Share(float(means[0] - means[1]) / way, float(low), float(high))


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
        Share of the way to the floor.
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
    def _half(self) -> float:
        """Fall that is halfway to the floor; to nothing, where there is none."""
        return HALFWAY * (self.before - (0.0 if math.isnan(self.floor) else self.floor))

    @property
    def reaches(self) -> bool:
        """Whether a bias fell at least halfway to the floor; to nothing, where there is none.

        The test is of the fall; that it went halfway is the estimate, see `clears`. A bias that is
        not clear of the floor has no half.
        """
        return not self.share_reason and self.lowered and self.before - self.after >= self._half

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
        """Whether no fall of a bias is shown, and its interval reaches halfway to the floor.

        So few units that there is no interval leave everything open.
        """
        reaches = math.isnan(self.low) or self.low <= -self._half
        unshown = self.role == "bias" and not self.lowered and not self.share_reason
        return unshown and reaches and self._half > 0

    @property
    def dear(self) -> bool:
        """Whether accuracy or a recall fell by more than the margin."""
        return self.role == "utility" and self.difference < -MARGIN


def assess(
    before: Measured, after: Mapping[str, Measured], floor: Measured | None, *, seed: int = 0
) -> tuple[Row, ...]:
    """Compare the measures before and after each recipe.

    Parameters
    ----------
    before : Measured
        Of the base model.
    after : mapping of str to Measured
        By recipe, of the same subjects, images and queries.
    floor : Measured, optional
        Of a model without the bias.
    seed : int

    Returns
    -------
    tuple of Row
        Biases of all recipes, then utilities; q-values after Benjamini and Hochberg, over all rows
        of either.
    """
    rows: list[Row] = []
    for role in ("bias", "utility"):
        least: Numbers | None = getattr(floor, role, None)
        own = [
            _row(recipe, role, key, getattr(before, role)[key], values,
                 None if least is None else least[key], seed)
            for recipe, measured in after.items()
            for key, values in getattr(measured, role).items()
            if values
        ]  # fmt: skip
        q_values = benjamini_hochberg([row.p_value for row in own]).tolist()
        rows += [replace(row, q_value=q) for row, q in zip(own, q_values, strict=True)]
    return tuple(rows)


def _row(
    recipe: str,
    role: str,
    key: tuple[str, str],
    before: Mapping[str, float],
    after: Mapping[str, float],
    floor: Mapping[str, float] | None,
    seed: int,
) -> Row:
    units = sorted(after)
    numbers = [[values[unit] for unit in units] for values in (before, after)]
    pair, least, share = paired(*numbers, seed=seed), math.nan, Share()
    if floor is not None:
        numbers.append([floor[unit] for unit in units])
        least = sum(numbers[2]) / len(units)
        if role == "bias":
            share = share_of_way(*numbers, seed=seed, name="subjects")
    return Row(
        recipe, role, *key, pair.n, pair.before, pair.after, pair.difference, pair.low, pair.high,
        pair.p_value, math.nan, pair.test, least, share.value, share.low, share.high, share.reason,
    )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The conclusion about one recipe.

    Attributes
    ----------
    recipe : str
    transfers : bool
        Every bias of withheld subjects fell (q < 0.05), by the estimate at least halfway to the
        floor, accuracy was measured, and neither it nor a recall fell by more than the margin on
        any set.
    conclusion : str
        "transfers", "transfers in part", "does not transfer", "costs too much": a bias fell, and
        accuracy or a recall by more than the margin; "price not measured": halfway, without a set
        to measure accuracy on; or "cannot be told": no fall is shown, and an interval leaves open
        that it fell halfway, or no bias is clear of the floor.
    sentence : str
        Sentences without a stop at the end; the first begins in lower case, to follow a colon.
    """

    recipe: str
    transfers: bool
    conclusion: str
    sentence: str


def outcomes(rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """Conclude for each recipe whether it transfers to withheld subjects, and at what price."""
    return tuple(
        _outcome(recipe, [row for row in rows if row.recipe == recipe])
        for recipe in dict.fromkeys(row.recipe for row in rows)
    )


def _outcome(recipe: str, rows: Sequence[Row]) -> Outcome:
    biases = [row for row in rows if row.role == "bias"]
    utilities = [row for row in rows if row.role == "utility"]
    # A disparity that is not clear of the floor leaves nothing to lower halfway.
    clear = [row for row in biases if not row.share_reason]
    lowered = any(row.lowered for row in clear)
    conclusion = (
        "costs too much" if lowered and any(row.dear for row in utilities)
        else "transfers in part" if lowered and not all(row.reaches for row in clear)
        else "cannot be told" if not clear or any(row.open for row in clear)
        else "does not transfer" if not lowered
        else "transfers" if any(row.measure == ACCURACY for row in utilities)
        else "price not measured"
    )  # fmt: skip
    sentence = ". ".join([_directions(biases), *_tests(biases), *_price(utilities)])
    return Outcome(recipe, conclusion == "transfers", conclusion, sentence)


def named(measure: str) -> str:
    """Return the name of a measure within a sentence."""
    return _NAMES.get(measure, measure.replace("_", " "))


def _directions(biases: Sequence[Row]) -> str:
    """Return "of 3 disparities …, 2 rose (NDKL over hue, 0.2 to 0.3; …) and none fell"."""
    parts = []
    for went, sign in (("fell", -1), ("rose", 1)):
        rows = [row for row in biases if sign * row.difference > 0]
        rows.sort(key=lambda row: math.inf if math.isnan(row.q_value) else row.q_value)
        each = [
            f"{named(row.measure)} over {row.about}, {number(row.before)} to {number(row.after)}"
            for row in rows[:_NAMED]
        ]
        more = [f"{len(rows) - _NAMED} more"] if len(rows) > _NAMED else []
        parts.append(
            f"{len(rows)} {went} ({'; '.join([*each, *more])})" if rows else f"none {went}"
        )
    if same := sum(row.difference == 0 for row in biases):
        parts.append(f"{same} stayed as {'it was' if same == 1 else 'they were'}")
    whose = "disparity" if len(biases) == 1 else "disparities"
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]])
    return f"of {len(biases)} {whose} of withheld subjects, {listed}"


def _tests(biases: Sequence[Row]) -> list[str]:
    """Say which changes are beyond chance, how far they go, and where subjects are too few."""
    if not biases:
        return []
    half = "halfway to the floor"
    if all(math.isnan(row.floor) for row in biases):
        half = "by half"
    fell = [row for row in biases if row.lowered]
    near = sum(bool(row.share_reason) for row in fell)
    changes = (
        [f"{len(fell)} fell{f' ({near} from near the floor)' if near else ''}"] if fell else []
    )
    if rose := sum(row.raised for row in biases):
        changes.append(f"{rose} rose")
    text = f"No change is beyond chance (q < {ALPHA})"
    if changes:
        text = f"Beyond chance (q < {ALPHA}), {' and '.join(changes)}"
    if unsure := [row for row in biases if row.open]:
        it = "it" if len(unsure) == 1 else "they"
        text += f"; of {len(unsure)}, {unsure[0].n} subjects cannot tell whether {it} fell {half}"
    said = [text]
    if near < len(fell):
        reached = [row for row in fell if row.reaches]
        whole = sum(row.clears for row in reached)
        said.append(
            f"By the estimate, {len(reached) or 'none'} of the {len(fell)} that fell did so at "
            f"least {half}, {whole or 'none'} with the whole interval"
        )
    if unclear := sum(bool(row.share_reason) for row in biases):
        said.append(f"{unclear} not clear of the floor before, so that no half can be told")
    return said


def _price(utilities: Sequence[Row]) -> list[str]:
    """Say the worst loss of accuracy and recall, its interval, and which is too much."""
    accuracy = [row for row in utilities if row.measure == ACCURACY]
    recall = [row for row in utilities if row.measure != ACCURACY]
    text = _worst(accuracy, "Accuracy changed by") if accuracy else "Accuracy was not measured"
    if recall:
        text += f"; {_worst(recall, 'recall changed, at worst, by')}"
    dear = [f"{named(row.measure)} on {row.about}" for row in utilities if row.dear]
    if not dear:
        return [text]
    more = f" and {len(dear) - 1} more" if len(dear) > 1 else ""
    return [text, f"More than {100 * MARGIN:.0f} points were lost in {dear[0]}{more}"]


def _worst(rows: Sequence[Row], changed: str) -> str:
    worst = min(row.difference for row in rows)
    lowest = min((row.low for row in rows if not math.isnan(row.low)), default=0.0)
    reach = f" (its interval reaches {_points(lowest)})" if lowest < -MARGIN else ""
    return f"{changed} {_points(worst)}{reach}"


def _points(difference: float) -> str:
    change = round(100 * difference, 1) + 0.0
    return f"{change:+.1f} points".replace("-", "−") if change else "0 points"
