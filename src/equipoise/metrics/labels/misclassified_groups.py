"""Rates and shares of groups that a classifier assigned, corrected for its errors.

A classifier's groups mix people of several true groups, so gaps between them are too small. Events
and other rows are each taken back to true groups by the rates of errors on labelled rows, as
`corrected_shares` takes labels back to classes. This supposes that errors depend on the true
group alone, not on the outcome. Then groups that don't differ give assigned groups that don't
either, and a test by exchanging assigned groups stays valid.

Shares of groups have no such test: a population mixed by errors has other shares. Their null
distribution draws images from the population, assigns groups with errors, and corrects again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from equipoise.core import Booleans, Floats, InputError, Integers, floats, integers, record
from equipoise.metrics.building import ends_of
from equipoise.metrics.labels.shares import Confusion, likeliest
from equipoise.stats.intervals import Scored, divide
from equipoise.stats.streams import Seed, stream

DRAWS = 1000
# Intervals that hold together for many groups end where few draws lie.
_DRAWS_OF_SHARES = 4000
# Added to counts of rows before they are drawn anew (Jeffreys).
_SEEN = 0.5


@record
class AssignedGroups:
    """How assigned groups come from true ones.

    Attributes
    ----------
    confusions : tuple of Confusion or None
        For each attribute; None where its values are true.
    values : tuple of tuple of str
        Values of each attribute.
    levels : tuple of tuple of str
        Values of each group.
    seed : int or Generator
    """

    confusions: tuple[Confusion | None, ...]
    values: tuple[tuple[str, ...], ...]
    levels: tuple[tuple[str, ...], ...]
    seed: Seed

    @cached_property
    def rates(self) -> Floats:
        """Share of each assigned group in each true group, shape (1, groups, groups).

        They sum to less than 1 where errors lead to values outside these groups.
        """
        return self._combined([
            np.eye(len(values))[None] if confusion is None else confusion.rates[None]
            for confusion, values in zip(self._arranged, self.values, strict=True)
        ])  # fmt: skip

    @cached_property
    def condition(self) -> float:
        """How far the correction blows errors up; infinite where it can't be made."""
        among = _among(self.rates)[0]
        return float(np.linalg.cond(among)) if np.isfinite(among).all() else math.inf

    @cached_property
    def likely_rates(self) -> Floats:
        """Draws of the rates given the labelled rows, shape (draws, groups, groups)."""
        return self.draw("likely", DRAWS)

    @cached_property
    def repeated_rates(self) -> Floats:
        """Rates of as many rows labelled anew, shape (draws, groups, groups)."""
        return self.draw("repeated", DRAWS)

    @cached_property
    def _arranged(self) -> list[Confusion | None]:
        return [
            None if confusion is None else confusion.arranged(values, ())
            for confusion, values in zip(self.confusions, self.values, strict=True)
        ]

    def draw(self, kind: Literal["likely", "repeated"], draws: int) -> Floats:
        """Draw rates anew, shape (draws, groups, groups)."""
        rates = []
        for place, (confusion, values) in enumerate(zip(self._arranged, self.values, strict=True)):
            if confusion is None:
                rates.append(np.eye(len(values))[None])
                continue
            rng, likely = stream(self.seed, "assigned groups", kind, place), confusion.likely
            if kind == "likely":
                drawn = rng.standard_gamma(likely, (draws, *likely.shape))
            else:
                shares = _normalised(likely)
                drawn = np.stack(
                    [
                        rng.multinomial(n, row, draws)
                        for n, row in zip(confusion.labelled.tolist(), shares, strict=True)
                    ],
                    axis=1,
                ).astype(float)
            rates.append(_normalised(drawn))
        return self._combined(rates)

    @cached_property
    def _smoothed_rates(self) -> Floats:
        """Rates of which `repeated_rates` are draws, shape (1, groups, groups)."""
        return self._combined([
            np.eye(len(values))[None] if confusion is None else _normalised(confusion.likely)[None]
            for confusion, values in zip(self._arranged, self.values, strict=True)
        ])  # fmt: skip

    def _combined(self, rates: Sequence[Floats]) -> Floats:
        """Return rates of groups from those of attributes, whose errors are independent."""
        # A value that no row here has, such as "unknown", is no group.
        square = [
            matrix[:, :, : len(values)] for matrix, values in zip(rates, self.values, strict=True)
        ]
        together = reduce(_kron, square)
        sizes = [len(values) for values in self.values]
        places = [
            np.ravel_multi_index(
                [values.index(level) for values, level in zip(self.values, levels, strict=True)],
                sizes,
            )
            for levels in self.levels
        ]
        return floats(together[:, places][:, :, places])

    def correct(self, events: Floats, n: Floats, rates: Floats) -> tuple[Floats, Floats]:
        """Return shares of events in true groups, and rows of these.

        Parameters
        ----------
        events, n : ndarray, shape (1 or draws, groups)
            Rows with an event, and all rows, of assigned groups.
        rates : ndarray, shape (1 or draws, groups, groups)
        """
        true_events, others = (self._true(counts, rates) for counts in (events, n - events))
        total = true_events + others
        return divide(true_events, total), total

    def correct_shares(self, counts: Floats, rates: Floats) -> Floats:
        """Return shares of true groups from rows of assigned groups; see `correct`."""
        # A group that errors lead outside these groups is rarer here than it is.
        true = divide(self._true(counts, rates), rates.sum(axis=2))
        return _normalised(true)

    def assign(self, shares: Floats) -> Floats:
        """Return shares of assigned groups, of rows that are in one, from those of true groups."""
        return _normalised(shares @ self._smoothed_rates[0])

    def _true(self, counts: Floats, rates: Floats) -> Floats:
        totals = counts.sum(axis=1, keepdims=True)
        draws = max(len(counts), len(rates))
        shares = np.broadcast_to(divide(counts, totals), (draws, counts.shape[1]))
        shares = np.where(np.isnan(shares), 1.0 / counts.shape[1], shares)
        all_rates = np.broadcast_to(_among(rates), (draws, *rates.shape[1:]))
        return floats(totals * likeliest(shares, all_rates))


def _among(rates: Floats) -> Floats:
    """Return rates of the rows that are in one of these groups by the classifier."""
    return divide(rates, rates.sum(axis=2, keepdims=True))


def _normalised(counts: Floats) -> Floats:
    return divide(counts, counts.sum(axis=-1, keepdims=True))


def _kron(first: Floats, second: Floats) -> Floats:
    """Return Kronecker products of matrices, draw by draw."""
    draws = max(len(first), len(second))
    product = np.einsum(
        "dij,dkl->dikjl", np.broadcast_to(first, (draws, *first.shape[1:])),
        np.broadcast_to(second, (draws, *second.shape[1:])),
    )  # fmt: skip
    return floats(product.reshape(draws, *np.multiply(first.shape[1:], second.shape[1:])))


@record
class CorrectedRates:
    """Shares of events in true groups, with their draws.

    Attributes
    ----------
    observed, n : ndarray, shape (groups,)
        Shares and rows of true groups.
    boot, null : ndarray, shape (draws, groups)
        Shares given the data, and shares where true groups don't differ.
    sizes : ndarray, shape (groups,)
        Independent rows of assigned groups.
    """

    observed: Floats
    n: Integers
    boot: Floats
    null: Floats
    sizes: Floats


def corrected_rates(
    events: Floats, n: Floats, independent: Floats, assigned: AssignedGroups, *names: str
) -> CorrectedRates:
    """Return the shares of events in true groups from counts of assigned groups.

    Parameters
    ----------
    events, n : ndarray, shape (groups,)
        Rows with an event, and all rows, of each assigned group.
    independent : ndarray, shape (groups,)
        How many independent rows say as much as `n`.
    assigned : AssignedGroups
    *names : str
        Of the stream of the draws.

    Raises
    ------
    InputError
        When shapes differ.
    """
    if not events.shape == n.shape == independent.shape == (len(assigned.levels),):
        raise InputError(f"events: shape {events.shape}; expected {len(assigned.levels)} groups")
    observed, totals = assigned.correct(events[None], n[None], assigned.rates)
    weight = divide(independent, n)
    rng = stream(assigned.seed, "assigned groups", *names)
    drawn = [
        rng.standard_gamma(np.nan_to_num(counts * weight) + _SEEN, (DRAWS, len(n)))
        for counts in (events, n - events)
    ]
    boot = assigned.correct(drawn[0], drawn[0] + drawn[1], assigned.likely_rates)[0]
    size = np.maximum(np.rint(np.nan_to_num(independent)), 0.0)
    pooled = float(events.sum() / max(float(n.sum()), 1.0))
    redrawn = floats(rng.binomial(integers(size), min(max(pooled, 0.0), 1.0), (DRAWS, len(n))))
    null = assigned.correct(redrawn, size[None], assigned.repeated_rates)[0]
    return CorrectedRates(observed[0], integers(np.rint(totals[0])), boot, null, size)


@record
class CorrectedShares:
    """Shares of true groups.

    Attributes
    ----------
    assigned : AssignedGroups
    counts : ndarray, shape (groups,)
        Rows of each assigned group.
    rows : float
        How many independent rows say as much.
    compared : ndarray of bool, shape (groups,)
        The groups that shares are among.
    name : str
        Of the stream of the draws.
    """

    assigned: AssignedGroups
    counts: Floats
    rows: float
    compared: Booleans
    name: str

    @cached_property
    def values(self) -> Floats:
        """Shares of the compared groups."""
        return floats(self._correct(self.counts[None], self.assigned.rates)[0])

    def scored(self, level: float) -> Scored:
        """Return the shares with percentile intervals."""
        low, high = np.transpose(
            [ends_of(self._boot, place)(level) for place in range(len(self.values))]
        )
        # Of a share at the border, no draw need reach as far.
        return Scored(self.values, np.minimum(low, self.values), np.maximum(high, self.values))

    def redraw(self, rng: np.random.Generator, shares: Floats, draws: int) -> Floats:
        """Return corrected shares of rows whose compared groups have these true shares."""
        all_shares = self._correct(self.counts[None], self.assigned.rates, compared=False)[0]
        all_shares[self.compared] = shares * all_shares[self.compared].sum()
        assigned = self.assigned.assign(all_shares)
        counts = rng.multinomial(max(round(self.rows), 1), assigned, draws)
        return self._correct(floats(counts), self.assigned.draw("repeated", draws))

    @cached_property
    def _boot(self) -> Floats:
        rng = stream(self.assigned.seed, "assigned groups", "shares", self.name)
        counts = self.counts * self.rows / self.counts.sum() + 1.0 / len(self.counts)
        drawn = rng.standard_gamma(counts, (_DRAWS_OF_SHARES, len(counts)))
        return self._correct(drawn, self.assigned.draw("likely", _DRAWS_OF_SHARES))

    def _correct(self, counts: Floats, rates: Floats, *, compared: bool = True) -> Floats:
        shares = self.assigned.correct_shares(counts, rates)
        return _normalised(shares[:, self.compared]) if compared else shares
