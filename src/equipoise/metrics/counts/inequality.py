"""Intervals of how unequal shares are, of one set of images and of the mean over sets.

The inequality Σ |p_k - 1/K| is 2 max_A (p(A) - |A|/K), the maximum over sets A of classes. The mean
of its estimates lies above the truth by an amount that does not shrink as sets of images are
added, while the spread of that mean does. So both ends are bounds that hold whatever the shares.

**One set of images.** The low end is the largest low end of p(A) - |A|/K over A, at a critical
value that holds for all A which the images can't tell apart; the high end is the largest high end
at the normal one, since it is too low only if that of the truly largest A is.

**A mean, low end.** The larger of two bounds, each with half of the probability of error. The
inequality of mean shares is at most the mean inequality, and equal to it where all sets favour
the same classes. And where A is chosen from all images of a set but one, whether that one is in A
has a mean of at most max_A p(A).

**A mean, high end.** By Jensen's inequality mean |x| <= sqrt(mean x²), and the mean of squares is
estimated without bias: the squared difference less its variance.

Shares of A are bounded numbers of images: their intervals are Clopper's and Pearson's, with n
divided by the design effect. What labelled images leave open is added by its distance from the
estimate (MOVER).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from equipoise.core import Booleans, Floats
from equipoise.stats.intervals import clopper_pearson

# Times that sets of images are drawn again to find how the low end of a mean varies.
_AGAIN = 200
_ROUNDS = 30
# Sets whose spread tells how a mean over them varies.
_MANY = 24
# Added to each count where variances are wanted: outcomes that were not seen may occur.
_UNSEEN = 0.5
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Inequality:
    """Ends of the mean inequality of shares over sets of images, at any level.

    Attributes
    ----------
    said : ndarray, shape (sets, outcomes)
        Shares of outcomes in each set of images.
    n : ndarray, shape (sets,)
        Independent images of each set.
    back : ndarray, shape (classes, outcomes)
        Takes shares of outcomes to those of classes, up to a factor that makes these sum to 1.
    drawn : ndarray, shape (draws, classes, outcomes), or None
        The same from labelled images that are drawn anew; None where there are none.
    rng : function
        Makes the Generator, anew at every call.
    """

    said: Floats
    n: Floats
    back: Floats
    drawn: Floats | None
    rng: Callable[[], np.random.Generator]

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        if len(self.n) == 1:
            low, high = self._together(level)
        else:
            half = (1.0 + level) / 2.0
            low, high = max(self._together(half)[0], self._apart(half)), self._roots(level)
        return max(low, 0.0), min(max(high, 0.0), self.most)

    @property
    def most(self) -> float:
        """The inequality where one class has all images."""
        return 2.0 * (1.0 - 1.0 / len(self.back))

    @cached_property
    def estimate(self) -> float:
        """The mean inequality that squares without bias imply, in [0, most]."""
        if not self._several.any():
            return math.nan
        roots = np.sqrt(np.maximum(self._squares.mean(axis=0), 0.0))
        return min(float(roots.sum()), self.most)

    @cached_property
    def _total(self) -> Floats:
        """What the shares of all classes sum to before they are divided by it, (sets,)."""
        return np.asarray(self.said @ self.back.sum(axis=0))

    @cached_property
    def _shares(self) -> Floats:
        return np.asarray(self.said @ self.back.T / self._total[:, None])

    @cached_property
    def _images(self) -> Floats:
        """What one image of an outcome says of p_k - 1/K, shape (sets, classes, outcomes)."""
        shares, total = self._shares[:, :, None], self._total[:, None, None]
        turned = self.back - shares * self.back.sum(axis=0)
        return np.asarray(turned / total + shares - 1.0 / len(self.back))

    def _labelled(self, chosen: Any, tail: float) -> tuple[float, float]:
        """Return how far labelled images may move the mean of what images say, down and up.

        `chosen` weighs sets, classes and outcomes.
        """
        if self.drawn is None:
            return 0.0, 0.0
        weight = chosen * self.said[:, None, :] / self._total[:, None, None]
        apart = self.drawn - self.back
        moved = np.einsum("bkj,kj->b", apart, weight.sum(axis=0))
        moved -= apart.sum(axis=1) @ (weight * self._shares[:, :, None]).sum(axis=(0, 1))
        low, high = np.quantile(moved, [tail, 1.0 - tail])
        return max(-float(low), 0.0), max(float(high), 0.0)

    def _ends(self, chosen: Booleans, z: float, design: float = 1.0) -> tuple[float, float]:
        """Return the ends of 2 (p(A) - |A|/K), averaged over sets.

        Parameters
        ----------
        chosen : ndarray, shape (1 or sets, classes, 1 or outcomes)
            Whether A has a class, where it is used for images of an outcome.
        z : float
            Critical value.
        design : float
            Images that say as much as one that is independent.
        """
        sets = len(self.n)
        each = 2.0 * (chosen * self._images).sum(axis=1)
        low, high, mean = float(each.min()), float(each.max()), float((each * self.said).sum())
        middle, size = mean / sets, sets**2 / float((1.0 / self.n).sum()) / design
        hits = (middle - low) / max(high - low, _ROUNDING)
        ends = clopper_pearson(size * min(max(hits, 0.0), 1.0), size, 2.0 * special.ndtr(z) - 1.0)
        below, above = (low + (high - low) * float(end) for end in ends)
        down, up = self._labelled(chosen * (2.0 / sets), float(special.ndtr(-z)))
        return middle - math.hypot(middle - below, down), middle + math.hypot(above - middle, up)

    def _together(self, level: float) -> tuple[float, float]:
        """Return the ends of the inequality of the mean shares."""
        apart, classes = self._shares.mean(axis=0) - 1.0 / len(self.back), len(self.back)
        each = np.array(
            [self._ends(one, _critical(level, classes - 1)) for one in _one_hot(classes)]
        )
        unsure = int(((each[:, 0] <= 0.0) & (each[:, 1] >= 0.0)).sum())
        wide, narrow = _critical(level, min(unsure, classes - 1)), _critical(level, 1)
        largest = np.argsort(-apart, kind="stable")
        low = high = -self.most
        for many in range(1, classes):
            chosen = np.isin(np.arange(classes), largest[:many])[None, :, None]
            low = max(low, self._ends(chosen, wide)[0])
            high = max(high, self._ends(chosen, narrow)[1])
        return low, high

    def _apart(self, level: float) -> float:
        """Return the low end where each set may favour classes of its own."""
        seen = self.n[:, None] * self.said + _UNSEEN
        likely = seen / seen.sum(axis=1, keepdims=True)
        many = np.maximum(np.rint(self.n), 1.0)
        drawn = self.rng().multinomial(many.astype(np.int64), likely, (_AGAIN, len(many)))
        again = drawn / many[:, None]
        kept = self._without_one(again, many) * self._images
        found = 2.0 * np.einsum("rmkj,rmj->rm", kept, again)
        chosen = self._without_one(self.said, self.n)
        each = 2.0 * (chosen * self._images).sum(axis=1)
        low, high = float(each.min()), float(each.max())
        hits = min(max((float(found.mean()) - low) / max(high - low, _ROUNDING), 0.0), 1.0)
        independent = (high - low) ** 2 * hits * (1.0 - hits) * float((1.0 / self.n).sum())
        of_sets = float(found.var(axis=0).sum())
        if len(many) >= _MANY:
            shown = (chosen * self._images * self.said[:, None]).sum(axis=(1, 2))
            # What so few sets show may be too little by two of its standard errors.
            wider = 1.0 + 2.0 * math.sqrt(2.0 / len(many))
            of_sets = min(of_sets, wider * 4.0 * len(many) * float(shown.var(ddof=1)))
        design = of_sets / max(independent, _ROUNDING)
        return self._ends(chosen, _critical(level, 1), max(design, 1.0))[0]

    def _without_one(self, said: Floats, n: Floats) -> Booleans:
        """Whether classes exceed 1/K without an image of each outcome: (..., classes, outcomes)."""
        apart = np.einsum("mkj,...mj->...mk", self._images, said)
        rest = n[:, None, None] * apart[..., None] - self._images
        return np.asarray((rest > _ROUNDING) & (n[:, None, None] > 1.0))

    @cached_property
    def _several(self) -> Booleans:
        """Which sets have two independent images, without which no square is known."""
        return self.n >= 2.0

    def _variance(self, said: Floats) -> Floats:
        """Return covariances of what one image says of classes, (sets, classes, classes)."""
        images = self._images[self._several]
        centred = images - np.einsum("mkj,mj->mk", images, said)[:, :, None]
        return np.asarray(np.einsum("mkj,mlj,mj->mkl", centred, centred, said))

    @cached_property
    def _squares(self) -> Floats:
        """Squares of p_k - 1/K without bias, shape (sets with several images, classes)."""
        some = self._several
        apart, n = self._shares[some] - 1.0 / len(self.back), self.n[some, None]
        noise = np.einsum("mkk->mk", self._variance(self.said[some]))
        return np.asarray(apart**2 - noise / (n - 1.0))

    def _roots(self, level: float) -> float:
        """Return the high end: sqrt(x) <= (x / c + c) / 2 whatever c, best near the root."""
        some, z = self._several, _critical(level, 1)
        if not some.any():
            return self.most
        n = self.n[some]
        seen = n[:, None] * self.said[some] + _UNSEEN
        likely = seen / seen.sum(axis=1, keepdims=True)
        apart = np.einsum("mkj,mj->mk", self._images[some], likely)
        noise = self._variance(likely) / n[:, None, None]
        of_set = 4.0 * apart[:, :, None] * apart[:, None] * noise
        of_set += 2.0 * noise**2 * (n / (n - 1.0))[:, None, None]
        squares = np.maximum(self._squares.mean(axis=0), 0.0)
        spread = of_set.sum(axis=0) / len(n) ** 2
        alone = z * np.sqrt(np.diag(spread)) + _ROUNDING
        roots = np.sqrt(squares + alone)
        for _ in range(_ROUNDS):
            weight = 0.5 / roots
            error = math.sqrt(max(float(weight @ spread @ weight), _ROUNDING))
            # Classes whose squares vary less together than alone are not left out.
            roots = np.sqrt(squares + np.maximum(z * spread @ weight / error, alone / len(roots)))
        weight = 0.5 / roots
        error = z * math.sqrt(float(weight @ spread @ weight))
        slope = np.zeros((len(self.n), len(roots), 1))
        slope[some, :, 0] = 2.0 * (self._shares[some] - 1.0 / len(roots)) * weight / len(n)
        up = self._labelled(slope, float(special.ndtr(-z)))[1]
        high = float(roots.sum() / 2.0 + squares @ weight) + math.hypot(error, up)
        known = float(some.mean())
        return known * min(high, self.most) + (1.0 - known) * self.most


def _critical(level: float, freedom: int) -> float:
    """Return the critical value of all contrasts in some dimensions together (Scheffé)."""
    return math.sqrt(2.0 * float(special.gammaincinv(max(freedom, 1) / 2.0, level)))


def _one_hot(classes: int) -> Booleans:
    return np.eye(classes, dtype=bool)[:, None, :, None]
