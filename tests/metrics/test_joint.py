"""Several models on the same rows: paired draws and swapped models, against brute force."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats

from equipoise.core import Aggregate, InputError
from equipoise.metrics import count
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.labels.paired import join
from prediction_rows import weights_of

NAN = float("nan")
TRUTH = ["a", "b", "b", "c", "a", None, "b"]
FIRST = ["a", "b", "c", "c", "b", "a", NAN]
SECOND = ["a", "c", "b", "a", "b", "a", "b"]
GROUP = ["x", "y", "x", "y", "x", "x", "y"]


def test_only_rows_that_every_model_answered_are_counted():
    joint = join(TRUTH, {"one": FIRST, "two": SECOND}, GROUP)
    assert joint.models == ("one", "two")
    assert joint.counts.table.sum() == 5
    assert joint.counts.excluded == {"missing true class": 1, "missing prediction": 1}


def split(pair, tables):
    """Tables of the first and of the second model."""
    return [view.tables(tables) for view in pair.views]


def test_a_pair_of_three_models():
    rng = np.random.default_rng(0)
    truth, *labels = rng.integers(0, 3, (4, 60))
    group = rng.integers(0, 2, 60)
    joint = join(truth, dict(zip("abc", labels, strict=True)), group)
    pair = joint.pair(2, 0)
    observed = pair.tables(joint.counts.observed)
    for model, table in zip((2, 0), split(pair, observed), strict=True):
        expected = count(truth, labels[model], group)
        assert weights_of(pair.counts, table[0]) == weights_of(expected, expected.table)


def difference(joint, tables):
    """Accuracy of the first model minus that of the second."""
    pair = joint.pair(0, 1)
    measure = Accuracy(Aggregate.VALUE, None)
    first_values, second_values = (
        measure(pair.counts, model_tables)[:, 0] for model_tables in split(pair, tables)
    )
    return first_values - second_values


def swaps_by_hand(units):
    """The difference of accuracies under every swap of the models on units."""
    right = np.array(
        [[t == x for t, x in zip(TRUTH[:5], labels[:5], strict=True)] for labels in (FIRST, SECOND)]
    )
    frequencies = Counter()
    for flips in product([False, True], repeat=len(set(units))):
        flip = np.array([flips[unit] for unit in units])
        first_right, second_right = np.where(flip, right[::-1], right)
        frequencies[round(float(first_right.mean() - second_right.mean()), 9)] += 1
    return frequencies


@pytest.mark.parametrize("units", [None, [0, 0, 1, 2, 2], [0, 1, 2, 3, 4]])
def test_swaps_have_the_distribution_of_every_swap(units):
    joint = join(TRUTH[:5], {"one": FIRST[:5], "two": SECOND[:5]}, GROUP[:5], units=units)
    tables = np.concatenate([*joint.pair(0, 1).swapped(8000, 3)])
    assert (tables.sum(axis=(1, 2)) == 5).all()
    frequencies = Counter(np.round(difference(joint, tables), 9).tolist())
    expected = swaps_by_hand(units or [0, 1, 2, 3, 4])
    assert frequencies.keys() == expected.keys()
    total = sum(expected.values())
    shares = [expected[value] / total * 8000 for value in frequencies]
    assert stats.chisquare([*frequencies.values()], shares).pvalue > 0.001


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ({"a": [1, 2]}, "^predictions: 1 models; expected at least two$"),
        ({"a": [1], "b": [1, 2]}, r"^predictions\['a'\]: 1 rows; expected 2, as in y_true$"),
        ({"a": [1, 2], "b": [[1, 2]]}, r"^predictions\['b'\]: shape \(1, 2\); expected one label"),
        ({"a": [None, 1], "b": [1, None]}, "^no row has a true class, a prediction and a group"),
    ],
)
def test_refused_input(predictions, message):
    with pytest.raises(InputError, match=message):
        join([1, 2], predictions, ["x", "y"])
