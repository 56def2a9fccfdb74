"""Orders in which options are shown: all of up to three options, a Latin square of more."""

from functools import cache
from itertools import permutations

from equipoise.audits.labels.questions.config import MOST_OPTIONS

LETTERS = "ABCDEFGHIJ"[:MOST_OPTIONS]
"""Letters of options: as listed in the configuration, and as shown to a model."""

_MOST_PERMUTED = 3

Order = tuple[int, ...]
"""The option at each position, as its place in the configuration."""


@cache
def orders_of(n_options: int) -> tuple[Order, ...]:
    """Return the orders in which so many options are asked, the listed one first.

    Up to three options are asked in every order. Of more, each option stands at each position
    once, and follows every other option equally often where the number of options is even
    (Williams 1949, Australian Journal of Scientific Research A2, 149-168).
    """
    listed = tuple(range(n_options))
    if n_options <= _MOST_PERMUTED:
        return tuple(permutations(listed))
    zigzag = [(place + 1) // 2 * (-1) ** (place + 1) % n_options for place in listed]
    square = [tuple((first + step) % n_options for step in zigzag) for first in listed]
    # Options are renamed, so that the first order is the listed one.
    names = {option: place for place, option in enumerate(square[0])}
    return tuple(tuple(names[option] for option in order) for order in square)


def order_name(order: Order) -> str:
    """Return the letters of options in the order in which they are shown, such as "BA"."""
    return "".join(LETTERS[option] for option in order)
