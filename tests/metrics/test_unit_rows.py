"""Halves as float32: every one of the 65,536 that there are."""

import numpy as np

from equipoise.metrics.vector_rows import widened


def test_every_half_is_the_number_that_numpy_makes_of_it():
    all_halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    singles, expected = widened(all_halves), all_halves.astype(np.float32)
    assert singles.dtype == np.float32
    np.testing.assert_array_equal(singles, expected)
    assert (np.signbit(singles) == np.signbit(expected)).all()


def test_halves_of_any_strides_and_byte_order_are_read():
    rows = np.random.default_rng(0).standard_normal((9, 14)).astype(np.float16)
    for halves in (rows[::2, 1::3], rows.T, rows.astype(">f2"), rows[:0]):
        np.testing.assert_array_equal(widened(halves), halves.astype(np.float32))
