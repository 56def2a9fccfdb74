"""Groups exchanged between items whose order says nothing: the null of every ranking metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np

from equipoise.core import Floats, Integers, Integers32, Words32, integers, record
from equipoise.stats.compiled import compiled
from equipoise.stats.exchange import Exchange, varies
from equipoise.stats.streams import Seed, stream
from equipoise.stats.threads import each

Result = TypeVar("Result")

# Labels that a block of draws may hold: bounds the memory, fixed so that the same data give the
# same blocks on every machine.
_BLOCK_LABELS = 4_000_000
# Blocks of draws that a function is applied to at once.
_BLOCKS = 64

# Measured costs in nanoseconds: of a call, of shuffling a label among others, of drawing one.
_CALL, _SHUFFLED, _DRAWN = 5_000, 10, 40
# Labels from which on that alone decides: calls take nothing beside shuffling so many.
_LARGE = 1 << 16
# The largest random word, and how many more are drawn than it should take.
_WORD, _SPARE = 2**64 - 1, 1_000


@record
class LabelExchange:
    """Labels that change places within strata, drawn only for the items that are looked at.

    Attributes
    ----------
    labels : ndarray, shape (labels,)
        Labels of the strata that hold such items, stratum after stratum.
    first, size, n_wanted : ndarray of int64, shape (strata,)
        Where the labels of a stratum begin, how many there are, and how many are drawn; most
        wanted first.
    source : ndarray of int64
        Place in `labels` of each item that is looked at, in any shape.
    """

    labels: Integers32
    first: Integers
    size: Integers
    n_wanted: Integers
    source: Integers

    @classmethod
    def of(cls, codes: Integers32, stratum: Integers, items: Integers) -> LabelExchange:
        """Prepare draws.

        Parameters
        ----------
        codes : ndarray of int32, shape (n,)
            Labels; -1 does not take part.
        stratum : ndarray of int64, shape (n,)
            Labels exchange within a stratum.
        items : ndarray of int64, any shape
            Rows whose labels are looked at; -1 is none.
        """
        rows = in_order(items[items >= 0])
        names, at, inverse, n_wanted = np.unique(
            stratum[rows], return_index=True, return_inverse=True, return_counts=True
        )
        # By the number wanted, then by who comes first: not by the strata's names.
        order = np.lexsort((at, -n_wanted))
        position = np.argsort(order)
        members = np.flatnonzero((codes >= 0) & np.isin(stratum, names))
        owner = position[np.searchsorted(names, stratum[members])]
        labels = codes[members]
        rank = np.argsort(np.argsort(np.bincount(labels), kind="stable"), kind="stable")
        size = np.bincount(owner, minlength=len(names))
        first = np.cumsum(size) - size
        slot = np.empty(len(codes), dtype=np.int64)
        by_stratum = np.argsort(position[inverse], kind="stable")
        start = np.cumsum(n_wanted[order]) - n_wanted[order]
        place = np.arange(len(rows)) - np.repeat(start, n_wanted[order])
        slot[rows[by_stratum]] = np.repeat(first, n_wanted[order]) + place
        source = np.where(items >= 0, slot[items], 0)
        return cls(labels[np.lexsort((rank[labels], owner))], first, size, n_wanted[order], source)

    @cached_property
    def _words(self) -> float:
        """Mean number of random words of a shuffle, with rejected words."""
        last = np.arange(1, int(self.size.max(initial=1)))
        words = 2.0 ** np.ceil(np.log2(last + 1)) / (last + 1)
        return float(np.append(0.0, np.cumsum(words))[self.size - 1].sum())

    def draw(
        self, rng: np.random.Generator, n_draws: int, labels: Integers32 | None = None
    ) -> Integers32:
        """Return labels of the items, shape (many, *shape of the items), by Fisher and Yates.

        A copy of the labels that may change, and is as before after that, spares making one.
        """
        if self._costs_less_whole(n_draws):
            state = np.tile(self.labels, (n_draws, 1))
            # Whole strata are shuffled, with as many random words as it takes.
            expected, words = n_draws * self._words, np.empty(0, dtype=np.uint64)
            while True:
                further = int(expected / 2 + 5 * np.sqrt(expected)) + _SPARE
                extra_words = rng.integers(0, _WORD, further, dtype=np.uint64, endpoint=True)
                words = np.concatenate([words, extra_words])
                random = words.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)
                if shuffle(state, self.first, self.size, random):
                    return state.take(self.source, axis=1)
                state[:] = self.labels
        uniform = rng.random(n_draws * int(self.n_wanted.sum()))
        source = self.source.ravel()
        drawn_labels = np.empty((n_draws, len(source)), dtype=np.int32)
        scratch = self.labels.copy() if labels is None else labels
        draw_first(scratch, self.first, self.size, self.n_wanted, uniform, source, drawn_labels)
        return drawn_labels.reshape(n_draws, *self.source.shape)

    def _costs_less_whole(self, n_draws: int) -> bool:
        """Whether shuffling whole strata is quicker than drawing some labels."""
        if len(self.labels) >= _LARGE:
            return len(self.labels) * _SHUFFLED < int(self.n_wanted.sum()) * _DRAWN
        shuffle_cost = len(self.size) * _CALL + n_draws * len(self.labels) * _SHUFFLED
        steps = int(self.n_wanted.max(initial=0))
        return shuffle_cost < steps * 4 * _CALL + n_draws * int(self.n_wanted.sum()) * _DRAWN

    def evaluate(
        self,
        function: Callable[[Integers32], Result],
        draws: int,
        seed: Seed,
        name: str,
    ) -> list[Result]:
        """Apply a function to blocks of draws, in threads; results are in the order of draws.

        There are none where no stratum holds different labels: no exchange changes anything. What
        a function returns for a draw must not depend on which others are in its block.
        """
        owner = np.repeat(np.arange(len(self.size)), self.size)
        if not ((np.diff(self.labels) != 0) & (np.diff(owner) == 0)).any():
            return []
        size = max(1, _BLOCK_LABELS // max(len(self.labels) + self.source.size, 1))
        starts = range(0, draws, size)
        # Of many labels few are drawn at once, though few may be looked at.
        together = max(1, min(_BLOCKS, _BLOCK_LABELS // max(size * self.source.size, 1)))

        def evaluate_block(part: range) -> Result:
            scratch = self.labels.copy() if len(part) > 1 else None
            blocks = (
                self.draw(stream(seed, name, start), min(size, draws - start), scratch)
                for start in part
            )
            return function(np.concatenate([*blocks]) if len(part) > 1 else next(blocks))

        parts = [starts[at : at + together] for at in range(0, len(starts), together)]
        return each(evaluate_block, parts)


def in_order(items: Integers) -> Integers:
    """Return distinct items in the order in which they first appear."""
    return items[np.sort(np.unique(items, return_index=True)[1])]


UNITS = "groups are exchangeable between units of a pool, within units of several groups"


def exchange_labels(
    function: Callable[[Integers32], Result],
    rows: tuple[Integers32, Integers, Integers | None],
    items: Integers,
    draws: int,
    seed: Seed,
    name: str,
) -> list[Result]:
    """Apply a function to blocks of exchanged labels; units exchange theirs as `Exchange` says.

    Parameters
    ----------
    function : callable
    rows : tuple of ndarray, each of shape (n,)
        Label, stratum within which labels exchange, and unit, from `unit_codes`, or None. A row
        whose label or stratum is -1 does not take part.
    items : ndarray of int64, any shape
        Rows whose labels are looked at; -1 is none.
    draws, seed, name
        How many, and the key of the random streams.

    Returns
    -------
    list
        What the function returned, in the order of the draws; empty where nothing can change.
    """
    codes, stratum, units = rows
    if units is None:
        return LabelExchange.of(codes, stratum, items).evaluate(function, draws, seed, name)
    # Looked at first, in their order, so that permuted rows give the same draws.
    first = in_order(items[items >= 0])
    remaining = np.setdiff1d(np.flatnonzero((codes >= 0) & (stratum >= 0)), first)
    participating = np.concatenate([first, remaining])
    place = np.empty(len(codes), dtype=np.int64)
    place[participating] = np.arange(len(participating))
    source = np.where(items >= 0, place[items], 0)
    labels = integers(codes[participating])
    exchange = Exchange.within(labels, units[participating], stratum[participating])
    if not varies(exchange.pool, exchange.group).any():
        return []
    size = max(1, _BLOCK_LABELS // len(labels))

    def block(start: int) -> Result:
        rng, n_draws = stream(seed, name, start), min(size, draws - start)
        exchanged = [exchange.shuffle(labels, rng)[source] for _ in range(n_draws)]
        return function(np.stack(exchanged).astype(np.int32))

    return each(block, range(0, draws, size))


@compiled("boolean(int32[:, ::1], int64[::1], int64[::1], uint32[::1])")
def shuffle(state: Integers32, first: Integers, size: Integers, random: Words32) -> bool:
    """Shuffle each stratum of each row in place, as numpy's `Generator.permuted` does.

    Parameters
    ----------
    state : ndarray of int32, shape (rows, labels)
    first, size : ndarray of int64, shape (strata,)
        Where the labels of a stratum begin, and how many there are.
    random : ndarray of uint32
        Random words: of each the low bits are taken, and those beyond a bound left out.

    Returns
    -------
    bool
        False where the words were too few.
    """
    cursor, n_words = 0, len(random)
    mask = np.ones(size.max() if len(size) else 1, np.int64)
    for last in range(2, len(mask)):
        mask[last] = 2 * mask[last - 1] + 1 if last > mask[last - 1] else mask[last - 1]
    for stratum in range(len(first)):
        start = first[stratum]
        for row in range(len(state)):
            last = size[stratum] - 1
            while last > 0 and cursor < n_words:
                # Without a branch for a word that is left out: it would be mistaken often.
                place = np.int64(random[cursor]) & mask[last]
                cursor += 1
                accepted = place <= last
                other = start + (place if accepted else last)
                label = state[row, start + last]
                state[row, start + last] = state[row, other]
                state[row, other] = label
                last -= np.int64(accepted)
            if last > 0:
                return False
    return True


@compiled(
    "void(int32[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int32[:, ::1])"
)
def draw_first(
    labels: Integers32,
    first: Integers,
    size: Integers,
    n_wanted: Integers,
    random: Floats,
    source: Integers,
    drawn_labels: Integers32,
) -> None:
    """Draw the first labels of each stratum from all of it, without replacement.

    Labels change places for a draw, and back after it: its cost is that of what is drawn.

    Parameters
    ----------
    labels : ndarray of int32, shape (labels,)
        After each draw as before.
    first, size
        See `shuffle`.
    wanted : ndarray of int64, shape (strata,)
        How many are drawn, most first.
    random : ndarray of float64, shape (draws * sum of wanted,)
        In [0, 1): by step, draw and stratum.
    source : ndarray of int64, shape (m,)
        Places in `labels` that are looked at.
    found : ndarray of int32, shape (draws, m)
        Written.
    """
    steps = n_wanted[0] if len(n_wanted) else 0
    draws, strata = len(drawn_labels), np.zeros(steps, np.int64)
    starts = np.zeros(steps + 1, np.int64)
    for step in range(steps):
        while strata[step] < len(n_wanted) and n_wanted[strata[step]] > step:
            strata[step] += 1
        starts[step + 1] = starts[step] + draws * strata[step]
    partners = np.empty((steps, len(n_wanted)), np.int64)
    for draw in range(draws):
        for step in range(steps):
            for stratum in range(strata[step]):
                target = first[stratum] + step
                at = starts[step] + draw * strata[step] + stratum
                partner = target + np.int64(random[at] * (size[stratum] - step))
                partners[step, stratum] = partner
                labels[target], labels[partner] = labels[partner], labels[target]
        for place in range(len(source)):
            drawn_labels[draw, place] = labels[source[place]]
        for step in range(steps - 1, -1, -1):
            for stratum in range(strata[step]):
                target, partner = first[stratum] + step, partners[step, stratum]
                labels[target], labels[partner] = labels[partner], labels[target]


@compiled("void(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1])")
def group_sums(codes: Integers32, scores: Floats, sums: Floats, counts: Floats) -> None:
    """Add up the scores of each group for every drawing of the groups.

    Parameters
    ----------
    codes : ndarray of int32, shape (draws, n)
    scores : ndarray, shape (n, concepts)
    sums : ndarray, shape (draws, groups, concepts)
        Zeros; added to.
    counts : ndarray, shape (draws, groups)
        Zeros; added to.
    """
    draws, items = codes.shape
    # Some items at a time, whose scores stay in the cache for all draws.
    for start in range(0, items, 256):
        for draw in range(draws):
            for i in range(start, min(start + 256, items)):
                group = codes[draw, i]
                counts[draw, group] += 1.0
                for concept in range(scores.shape[1]):
                    sums[draw, group, concept] += scores[i, concept]
