"""Rates of groups that a classifier assigned, corrected for its errors.

A classifier's groups mix people of several true groups, so gaps between them are too small. Events
and other rows are each taken back to true groups by the rates of errors on labelled rows, as
`corrected_shares` takes labels back to classes. This supposes that errors depend on the true
group alone, not on the outcome. Then groups that don't differ give assigned groups that don't
either, and a test by exchanging assigned groups stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from equipoise.core import Floats, InputError, Integers, floats, integers, record
from equipoise.metrics.counts.shares import Confusion, likeliest
from equipoise.stats.intervals import divide
from equipoise.stats.streams import Seed, stream

DRAWS = 1000
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
        """Share of each assigned group in each true group, shape (1, groups, groups)."""
        return self._combined([
            np.eye(len(values))[None] if confusion is None else confusion.rates[None]
            for confusion, values in zip(self._arranged, self.values, strict=True)
        ])  # fmt: skip

    @cached_property
    def likely_rates(self) -> Floats:
        """Draws of the rates given the labelled rows, shape (draws, groups, groups)."""
        return self._draw("likely")

    @cached_property
    def repeated_rates(self) -> Floats:
        """Rates of as many rows labelled anew, shape (draws, groups, groups)."""
        return self._draw("repeated")

    @cached_property
    def _arranged(self) -> list[Confusion | None]:
        return [
            None if confusion is None else confusion.arranged(values, ())
            for confusion, values in zip(self.confusions, self.values, strict=True)
        ]

    def _draw(self, kind: str) -> Floats:
        rates = []
        for place, (confusion, values) in enumerate(zip(self._arranged, self.values, strict=True)):
            if confusion is None:
                rates.append(np.eye(len(values))[None])
                continue
            rng, likely = stream(self.seed, "assigned groups", kind, place), confusion.likely
            if kind == "likely":
                drawn = rng.standard_gamma(likely, (DRAWS, *likely.shape))
            else:
                shares = likely / likely.sum(axis=1, keepdims=True)
                drawn = np.stack(
                    [
                        rng.multinomial(n, row, DRAWS)
                        for n, row in zip(confusion.labelled.tolist(), shares, strict=True)
                    ],
                    axis=1,
                ).astype(float)
            rates.append(drawn / drawn.sum(axis=2, keepdims=True))
        return self._combined(rates)

    def _combined(self, rates: Sequence[Floats]) -> Floats:
        """Return rates of groups from those of attributes, whose errors are independent."""
        together = reduce(_kron, rates)
        sizes = [len(values) for values in self.values]
        places = [
            np.ravel_multi_index(
                [values.index(level) for values, level in zip(self.values, levels, strict=True)],
                sizes,
            )
            for levels in self.levels
        ]
        # Of rows that are in one of these groups by the classifier.
        among = together[:, places][:, :, places]
        return divide(among, among.sum(axis=2, keepdims=True))

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

    def _true(self, counts: Floats, rates: Floats) -> Floats:
        totals = counts.sum(axis=1, keepdims=True)
        draws = max(len(counts), len(rates))
        shares = np.broadcast_to(divide(counts, totals), (draws, counts.shape[1]))
        shares = np.where(np.isnan(shares), 1.0 / counts.shape[1], shares)
        all_rates = np.broadcast_to(rates, (draws, *rates.shape[1:]))
        return floats(totals * likeliest(shares, all_rates))


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
