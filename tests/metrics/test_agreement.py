"""Krippendorff's alpha: the published example, an independent implementation, its limits."""

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import krippendorff_alpha

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": 4 coders, 12 units; 0 is missing.
CODERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)


def long(table):
    coder, unit = np.nonzero(table)
    return table[coder, unit], unit, coder


def plain(table):
    """Alpha by its definition: over all ordered pairs of labels, within and across units."""
    units = [[label for label in unit if label] for unit in table.T]
    units = [unit for unit in units if len(unit) > 1]
    everything = [label for unit in units for label in unit]
    n = len(everything)
    within = sum(
        (unit[i] != unit[j]) / (len(unit) - 1)
        for unit in units
        for i in range(len(unit))
        for j in range(len(unit))
        if i != j
    )
    across = sum(a != b for a in everything for b in everything)
    return 1 - (within / n) / (across / (n * (n - 1)))


def test_the_published_example():
    estimate = krippendorff_alpha(*long(CODERS))
    assert round(estimate.value, 3) == 0.743
    assert estimate.n == {"items": 11}
    assert estimate.params == {"labels": 40}
    assert estimate.excluded == {"items with one label": 1}
    assert estimate.interval().low < 0.743 < estimate.interval().high


@pytest.mark.parametrize("seed", range(5))
def test_an_independent_implementation(seed):
    table = np.random.default_rng(seed).integers(0, 4, (3, 30))
    assert krippendorff_alpha(*long(table)).value == pytest.approx(plain(table), abs=1e-12)


def test_perfect_agreement_leaves_a_doubt_and_one_label_alone_no_value():
    truth = np.arange(20) % 2 + 1
    estimate = krippendorff_alpha(*long(np.stack([truth, truth])))
    assert estimate.value == 1.0
    assert 0.6 < estimate.interval().low < 1.0 == estimate.interval().high
    unanimous = krippendorff_alpha(*long(np.ones((2, 20), dtype=int)))
    assert not unanimous.estimable
    assert unanimous.reason == "all labels are alike"
    assert krippendorff_alpha(*long(CODERS[:1])).reason == "no item has two labels"


def test_a_labeller_answers_an_item_once():
    with pytest.raises(InputError, match="twice"):
        krippendorff_alpha([1, 2], ["x", "x"], ["me", "me"])


def test_intervals_hold_the_agreement_of_the_population():
    rng = np.random.default_rng(3)

    def drawn(items):
        truth = rng.integers(1, 3, items)
        wrong = rng.random((2, items)) < 0.15
        return np.where(wrong, 3 - truth, truth)

    population = krippendorff_alpha(*long(drawn(60_000)), resampling=None).value
    intervals = [krippendorff_alpha(*long(drawn(100))).interval() for _ in range(100)]
    coverage = np.mean([interval.low <= population <= interval.high for interval in intervals])
    assert coverage >= 0.89
