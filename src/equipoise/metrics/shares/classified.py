"""Images that a classifier named, with all that is needed to draw their shares again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.metrics.shares.confusion import Confusion, whole
from equipoise.metrics.shares.solving import inverted, likeliest
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

# What is added to each count of an outcome before shares are drawn (Jeffreys), so that what was not
# said is rare and not impossible; to the rates of a class one image in all (Perks), for there a
# half a cell would make a classifier that never erred on 30 images err often.
_SAID = 0.5


@dataclass(frozen=True, eq=False)
class Said:
    """How often each outcome was said of the images whose shares are asked for.

    Attributes
    ----------
    counts : mapping of str to int
    effective : float
        Independent images that tell as much: fewer where images share units.
    left_out : int
        Images without an outcome.
    units : int or None
        Units, where images repeat within them.
    """

    counts: Mapping[str, int]
    effective: float
    left_out: int = 0
    units: int | None = None


def said_of(predicted: Any, units: Any) -> Said:
    """Count outcomes, given as counts or one by one.

    Raises
    ------
    InputError
        When a count is negative or no whole number, or units are given with counts or are more or
        fewer than the images.
    """
    if isinstance(predicted, Mapping):
        if units is not None:
            raise InputError("units: counts have none; give what was said of each image")
        counts = {str(name): whole(count, str(name)) for name, count in predicted.items()}
        return Said(counts, float(sum(counts.values())))
    codes, names = encode(predicted, what="predicted labels")
    known = codes >= 0
    counts = dict(zip(names, np.bincount(codes[known], minlength=len(names)).tolist(), strict=True))
    left_out, n = int((~known).sum()), int(known.sum())
    if units is None or not n:
        return Said(counts, float(n), left_out)
    of, unit_names = encode(units, what="units")
    if len(of) != len(codes):
        raise InputError(f"units: {len(of)}; expected {len(codes)}, one for each image")
    # An image without a unit is one of its own.
    own = np.where(of < 0, len(unit_names) + np.arange(len(of)), of)[known]
    place = np.unique(own, return_inverse=True)[1]
    many = int(place.max()) + 1
    return Said(counts, _effective(codes[known], place, many), left_out, many)


def _effective(codes: Any, unit: Any, many: int) -> float:
    """Return n over the design effect: how much more shares vary between units than images."""
    n = len(codes)
    if many == n:
        return float(n)
    if many == 1:
        return 1.0
    classes = int(codes.max()) + 1
    table = np.bincount(unit * classes + codes, minlength=many * classes).reshape(many, classes)
    shares = table.sum(axis=0) / n
    simple = float((shares * (1.0 - shares)).sum()) / n
    apart = table - shares * table.sum(axis=1, keepdims=True)
    clustered = float((apart**2).sum()) * many / (many - 1) / n**2
    return n / max(clustered / simple, 1.0) if simple > 0 else float(many)


@dataclass(frozen=True, eq=False)
class Classified:
    """Counts of outcomes and of labelled images, from which shares are found and drawn.

    Attributes
    ----------
    classes : tuple of str
        Whose shares are asked for.
    said : ndarray, shape (outcomes,)
        Counts, in the order of the outcomes of `confusion`.
    effective : float
        Independent images.
    confusion : Confusion
    exact : bool
        Whether what is said is taken for true: nothing is corrected.
    constrained : bool
        Whether shares are those of largest likelihood in the simplex, or the plain inverse.
    name : str
        Key of the draws of these images; those of the labelled ones are the same for all.
    """

    classes: tuple[str, ...]
    said: Floats = field(repr=False)
    effective: float
    confusion: Confusion = field(repr=False)
    exact: bool
    constrained: bool
    name: str

    @property
    def kept(self) -> npt.NDArray[np.int64]:
        """Places of the classes among those of the confusion counts."""
        return np.array([self.confusion.classes.index(one) for one in self.classes])

    def found(self) -> Floats:
        """Return the shares of all true classes, shape (classes of the confusion,)."""
        share = self.said / self.said.sum()
        return np.asarray(self._solved(share[None], self.confusion.rates[None])[0])

    def of_classes(self, shares: Floats) -> Floats:
        """Return the shares among the classes that are asked for, shape (r, classes)."""
        some = shares[:, self.kept]
        total = some.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(total > 0, some / total, np.nan))

    def drawn(self, draws: int, seed: int) -> Floats:
        """Return shares as likely as those found, given both sets of images: (draws, classes)."""
        width = len(self.said)
        weight = self.effective / self.said.sum()
        rng = stream(seed, "shares", "counts", self.name)
        share = _normalised(rng.standard_gamma(self.said * weight + _SAID, (draws, width)))
        return self.of_classes(self._solved(share, self._rates(draws, seed)))

    def under(self, target: Floats, draws: int, seed: int) -> Floats:
        """Return shares found where the true ones are `target`: (draws, classes).

        Images and labelled images are both drawn anew, as many as there were.
        """
        rates = self._likely_rates()
        n = max(1, round(self.effective))
        rng = stream(seed, "shares", "null", self.name)
        share = rng.multinomial(n, _whole(self._hypothesis(target) @ rates), size=draws) / n
        if self.exact:
            return self.of_classes(self._solved(share, rates[None]))
        labelled = stream(seed, "shares", "null", "confusion")
        again = np.empty((draws, *rates.shape))
        for row, (count, rate) in enumerate(
            zip(self.confusion.labelled.tolist(), rates, strict=True)
        ):
            again[:, row] = labelled.multinomial(count, _whole(rate), size=draws) / count
        return self.of_classes(self._solved(share, again))

    def _hypothesis(self, target: Floats) -> Floats:
        """Return shares of all true classes: those aside as found, the others as in `target`."""
        if len(self.classes) == len(self.confusion.classes):
            return target
        found = np.clip(self.found(), 0.0, None)
        found /= found.sum()
        found[self.kept] = target * found[self.kept].sum()
        return np.asarray(found)

    def _likely_rates(self) -> Floats:
        """Rates in which what was never seen is rare and not impossible."""
        if self.exact:
            return self.confusion.rates
        return _normalised(self.confusion.counts + 1.0 / self.confusion.counts.shape[1])

    def _rates(self, draws: int, seed: int) -> Floats:
        counts = self.confusion.counts
        if self.exact:
            return np.broadcast_to(self.confusion.rates, (draws, *counts.shape))
        rng = stream(seed, "shares", "confusion")
        return _normalised(
            rng.standard_gamma(counts + 1.0 / counts.shape[1], (draws, *counts.shape))
        )

    def _solved(self, share: Floats, rates: Floats) -> Floats:
        if self.exact:
            return share[:, : len(self.confusion.classes)]
        return likeliest(share, rates) if self.constrained else inverted(share, rates)


def identity(classes: Sequence[str]) -> Confusion:
    """Return the confusion of a classifier that is taken at its word."""
    return Confusion(tuple(classes), tuple(classes), np.eye(len(classes), dtype=np.int64))


def _normalised(values: Floats) -> Floats:
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _whole(shares: Floats) -> Floats:
    """Return shares that sum to 1 in floating point, as multinomial draws want."""
    clipped = np.clip(shares, 0.0, 1.0)
    return np.asarray(clipped / math.fsum(clipped.tolist()))
