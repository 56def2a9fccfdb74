"""Random streams: the published generator, uniform, and the same for the same names."""

import numpy as np
import pytest
from scipy import stats

from equipoise.stats.streams import philox, stream, unit_keys, unit_uniforms

KEYS = unit_keys([f"unit {index}" for index in range(500)])

# Known answers of philox4x32-10 from Random123 1.14, tests/kat_vectors: counter, key, output.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip

STREAM = [3344948120, 3141028135, 2711724048]
UNIFORMS = [0.23654836639048604, 0.9205164422290398, 0.5464870439674526, 0.3195558858266634]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN)
def test_philox_gives_the_published_answers(counter: str, key: str, output: str) -> None:
    cells = [np.array([word, word], dtype=np.uint64) for word in words(counter)]
    found = philox(cells, (words(key)[0], words(key)[1]))
    assert [word.tolist() for word in found] == [[word, word] for word in words(output)]


def test_philox_leaves_its_counter_alone() -> None:
    counter = [np.array([1], dtype=np.uint64) for _ in range(4)]
    philox(counter, (0, 0))
    assert [word.tolist() for word in counter] == [[1]] * 4


def test_a_seed_means_the_same_numbers_in_every_version() -> None:
    assert stream(7, "bootstrap", 0).integers(1 << 32, size=3).tolist() == STREAM
    found = unit_uniforms(7, "bootstrap", unit_keys(["a", "b"]), range(2))
    assert found.ravel().tolist() == UNIFORMS


def test_streams_differ_by_seed_name_and_index() -> None:
    names = [(7, "a", 0), (8, "a", 0), (7, "b", 0), (7, "a", 1), (7, "a"), (-7, "a", 0)]
    assert len({stream(*name).random() for name in names}) == len(names)


def test_numpy_integers_name_the_same_stream() -> None:
    found = stream(np.int64(7), "a", np.int64(3))  # type: ignore[arg-type]
    assert found.random() == stream(7, "a", 3).random()


def test_the_number_of_a_unit_depends_on_nothing_else() -> None:
    every = unit_uniforms(1, "x", KEYS, range(40))
    some = unit_uniforms(1, "x", KEYS[[7, 3]], range(20, 25))
    assert some.tolist() == every[20:25][:, [7, 3]].tolist()
    assert unit_uniforms(1, "x", KEYS, range(2**33, 2**33 + 1)).tolist() != every[:1].tolist()


def test_other_seeds_and_names_give_other_numbers() -> None:
    first = unit_uniforms(1, "x", KEYS, range(2))
    for other in (unit_uniforms(2, "x", KEYS, range(2)), unit_uniforms(1, "y", KEYS, range(2))):
        assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.15


def test_uniform_over_units_and_over_replicates() -> None:
    found = unit_uniforms(3, "x", KEYS, range(200))
    assert found.min() >= 0.0
    assert found.max() < 1.0
    for numbers in (found.ravel(), found[:, 0], found[0]):
        assert stats.kstest(numbers, "uniform").pvalue > 0.001
    # Neighbours in either direction are uncorrelated: 100 000 pairs, standard error 0.003.
    assert abs(np.corrcoef(found[1:].ravel(), found[:-1].ravel())[0, 1]) < 0.015
    assert abs(np.corrcoef(found[:, 1:].ravel(), found[:, :-1].ravel())[0, 1]) < 0.015


def test_keys_are_names_digests() -> None:
    names = ["a", "b", "a", "é", "\ud800", ""]
    keys = unit_keys(names)
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 5
    assert unit_keys(np.array(names[:4])).tolist() == keys[:4].tolist()
    assert unit_keys([]).tolist() == []


def test_a_name_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        stream(0, "shares", 0.4)  # type: ignore[arg-type]
