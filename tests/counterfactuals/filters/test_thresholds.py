"""Thresholds that are learned from people's labels."""

from typing import Any

import numpy as np

from equipoise.counterfactuals.filters import learned_threshold


def labelled(seed: int, *, noise: float, sets: int = 60) -> dict[str, Any]:
    """Sets of 12 that people accept from 9 images on, but for some noise."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(3, 13, 4 * sets)
    labels = (shown >= 9) ^ (rng.random(len(shown)) < noise)
    return {
        "shown": shown, "labels": labels, "size": 12,
        "clusters": np.repeat([f"set {n}" for n in range(sets)], 4),
    }  # fmt: skip


def test_the_threshold_that_people_use_is_found() -> None:
    found = learned_threshold(**labelled(0, noise=0.0))
    assert found.threshold == 9
    assert found.agreement == found.accuracy == 1.0
    assert found.low > 0.9
    assert len(found.curve) == 12
    assert found.curve[8] == 1.0


def test_accuracy_is_that_on_labels_it_was_not_chosen_by() -> None:
    """Labels that have nothing to do with what was detected: agreement flatters, accuracy not."""
    agreement, accuracy = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found = learned_threshold(rng.integers(1, 31, 40), rng.random(40) < 0.5, 30)
        agreement.append(found.agreement)
        accuracy.append(found.accuracy)
        assert found.majority >= 0.5
    assert np.mean(agreement) > 0.55
    assert abs(np.mean(accuracy) - 0.5) < 0.06


def test_the_interval_covers_the_accuracy_of_new_labels() -> None:
    covered = 0
    for seed in range(60):
        found = learned_threshold(**labelled(seed, noise=0.15))
        covered += found.low <= 0.85 <= found.high
    assert covered >= 56


def test_labels_of_one_caption_set_stay_in_one_fold() -> None:
    """Every caption set has its own number and label: nothing is to be learned from others."""
    rng = np.random.default_rng(1)
    shown = np.repeat(rng.permutation(20) + 1, 10)
    labels = np.repeat(rng.random(20) < 0.5, 10)
    together = learned_threshold(shown, labels, 20, clusters=shown.astype(str))
    apart = learned_threshold(shown, labels, 20)
    assert together.accuracy < apart.accuracy
    assert together.high - together.low > apart.high - apart.low
