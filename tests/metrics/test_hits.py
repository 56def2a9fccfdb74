"""Hit rate: by hand, against scikit-learn, and its gap against accuracy's machinery."""

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score

from equipoise.core import Groups, InputError
from equipoise.metrics import demographic_parity, hit_rate
from equipoise.stats.intervals import wilson
from prediction_rows import part, random_rows

TOP = [["cup", "bowl"], ["sofa", "chair"], ["bed", "cot"], ["pan", "pot"]]
TRUTHS = [{"bowl", "plate"}, ["stool"], "bed", ("pot",)]
GROUPS = Groups.of(["a", "a", "b", "b"], min_size=1)


def test_any_true_class_among_the_top_is_a_hit():
    estimate = hit_rate(TRUTHS, TOP, GROUPS, k=2, resampling=None)
    assert estimate.value == 0.75
    assert [group["value"] for group in part(estimate.by, "hit_rate", "", "value")["by_group"]] == [
        0.5,
        1.0,
    ]
    assert hit_rate.difference(TRUTHS, TOP, GROUPS, k=2, resampling=None).value == 0.5
    assert hit_rate(TRUTHS, TOP, GROUPS, k=1, resampling=None).value == 0.25


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    scores, y_true = rng.random((300, 8)), rng.integers(0, 8, 300)
    top = np.argsort(-scores, axis=1)
    for k in (1, 3, 5):
        estimate = hit_rate(y_true, top, rng.integers(0, 2, 300), k=k, resampling=None)
        assert estimate.value == pytest.approx(top_k_accuracy_score(y_true, scores, k=k), abs=1e-12)


def test_hit_rate_has_a_wilson_interval_and_only_its_gap_a_chance_level():
    y_true, y_pred, group = random_rows(1)
    estimate = hit_rate(y_true, y_pred, group, k=1)
    hits = (y_true == y_pred).sum()
    assert estimate.interval().low == float(wilson(hits, len(group))[0])
    assert (estimate.chance, estimate.p_value, estimate.harm) == (None, None, "lower")
    gap = hit_rate.difference(y_true, y_pred, group, k=1)
    ends = gap.interval()
    assert gap.p_value > 0.01
    assert ends.low <= gap.value <= ends.high
    # A hit is a label like any other: its parity is the gap.
    parity = demographic_parity(None, np.where(y_true == y_pred, "hit", "miss"), group)
    assert parity.value == gap.value
    assert (ends.low, ends.high) == (
        part(parity.by, "demographic_parity", "hit")["low"],
        part(parity.by, "demographic_parity", "hit")["high"],
    )


def test_missing_truths_and_predictions_are_counted():
    truths = [{"a"}, set(), None, {"b"}, {"b"}]
    top = [["a", None], ["a", "b"], ["a", "b"], [None, ""], ["c", None]]
    groups = Groups.of([*"ggggh"], min_size=1)
    estimate = hit_rate(truths, top, groups, k=2, resampling=None)
    assert estimate.excluded == {"missing true class": 2, "missing prediction": 1}
    assert estimate.value == 0.5


def test_errors():
    for k in (0, 3):
        with pytest.raises(InputError, match=rf"^k={k}: expected 1 to the number of predictions "):
            hit_rate(TRUTHS, TOP, GROUPS, k=k)
    with pytest.raises(InputError, match=r"^top_predictions: 4 rows; .*, as in y_true_sets"):
        hit_rate(["bed"], TOP, GROUPS, k=1)
