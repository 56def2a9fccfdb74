"""Batches shrink until they fit; nothing is lost, doubled or reordered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import ModelError
from equipoise.models.runtimes import Batches


class TooLargeError(Exception):
    """What a fake model raises when its memory is full."""


class FakeModel:
    """Doubles numbers, as many at once as its memory holds."""

    def __init__(self, holds):
        self.holds = holds
        self.batches = []

    def __call__(self, items):
        if len(items) > self.holds:
            raise TooLargeError(f"out of memory at {len(items)}\nand a long report")
        self.batches.append(len(items))
        return [2 * item for item in items]


def batches(size, freed=None):
    freed = freed if freed is not None else []
    return Batches(size, lambda error: isinstance(error, TooLargeError), lambda: freed.append(1))


@given(count=st.integers(0, 200), size=st.integers(1, 64), holds=st.integers(1, 64))
def test_every_item_comes_out_once_in_order(count, size, holds):
    model, sizes = FakeModel(holds), batches(size)
    parts = sizes.map(model, range(count))
    assert [value for part in parts for value in part] == [2 * item for item in range(count)]
    assert sizes.size <= max(size, 1)
    assert max(model.batches, default=0) <= min(size, holds)


def test_the_size_is_halved_for_good_and_memory_handed_back():
    freed = []
    model, sizes = FakeModel(3), batches(16, freed)
    sizes.map(model, range(10))
    assert sizes.size == 2
    assert freed == [1, 1, 1]
    assert model.batches == [2] * 5
    sizes.map(model, range(4))
    assert model.batches == [2] * 7
    assert freed == [1, 1, 1]


def test_one_item_that_does_not_fit_is_an_error():
    expected = r"^The memory does not hold a batch of one: out of memory at 1 To do: choose device:"
    with pytest.raises(ModelError, match=expected):
        batches(4).map(FakeModel(0), range(4))
