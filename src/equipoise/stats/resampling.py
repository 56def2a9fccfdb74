"""Resampling objects: what a metric is asked to do for its interval and chance level."""

import math
from dataclasses import Field, dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

from equipoise.core import InputError
from equipoise.core.arguments import check_level

DEFAULT_REPLICATES = 1000


class _Checked:
    """Numbers of draws, a confidence level and the finest p-value, checked when they are set."""

    level: float
    resolution: float
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        """Return the call that makes it, without arguments that are the defaults."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            is_count = isinstance(count, Integral) and int(count) >= 1
            if name in ("replicates", "permutations") and not is_count:
                raise InputError(
                    f"{name}={count}: expected a whole number of at least 1; "
                    "pass resampling=None for none"
                )
        check_level(self.level)
        if not 0.0 < self.resolution <= 1.0:
            raise InputError(f"resolution={self.resolution}: expected a p-value above 0, at most 1")


@dataclass(frozen=True, repr=False)
class Bootstrap(_Checked):
    """Intervals by percentile bootstrap where no closed form serves, chance by permutation.

    Attributes
    ----------
    replicates : int
        Bootstrap replicates.
    permutations : int
        Draws of the null distribution, at least.
    level : float
        Confidence level of the parts in `Estimate.by`; `Estimate.interval` takes any level.
    resolution : float
        The finest p-value that matters, such as alpha / (10 tests): permutations grow until
        they resolve it, within a budget; beyond that the tail is fitted, and said so.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> from equipoise.stats import Bootstrap
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.accuracy_gap(true, pred, gender, resampling=Bootstrap(replicates=200, level=0.9))
    <accuracy difference 0.167 [0.101, 0.230]; chance 0.027, p ≤ 0.001, n = 120 in 2 groups>
    """

    replicates: int = DEFAULT_REPLICATES
    permutations: int = DEFAULT_REPLICATES
    level: float = 0.95
    resolution: float = 0.005


@dataclass(frozen=True, repr=False)
class Permutation(_Checked):
    """Chance level and p-value by permutation; intervals only where they have a closed form.

    `resolution` is the finest p-value that matters, see `Bootstrap`.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> from equipoise.stats import Permutation
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.accuracy_gap(true, pred, gender, resampling=Permutation(500)).p_value < 0.01
    True
    """

    replicates: int = DEFAULT_REPLICATES
    level: float = 0.95
    resolution: float = 0.005

    @property
    def permutations(self) -> int:
        """Draws of the null distribution, at least."""
        return self.replicates


Resampling = Bootstrap | Permutation


def null_draws(resampling: Resampling, affordable: float = math.inf) -> int:
    """Return how many draws resolve the finest p-value, within the budget."""
    finest = math.ceil(1.0 / resampling.resolution)
    return max(resampling.permutations, int(min(finest, affordable)))


def level_of(resampling: Resampling | None) -> float:
    """Return the confidence level of parts."""
    return 0.95 if resampling is None else resampling.level


def resolution_of(resampling: Resampling | None) -> float:
    """Return the finest p-value that matters; 0 where none is approximated."""
    return 0.0 if resampling is None else resampling.resolution
