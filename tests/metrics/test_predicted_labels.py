"""Concentration of predicted labels, and WEAT of them: scipy, brute force, nulls, bad input."""

import math

import numpy as np
import pytest
from scipy.stats import kurtosis, skew

from equipoise.core import InputError
from equipoise.metrics import label_concentration, predicted_label_weat, weat
from equipoise.stats import Bootstrap, Permutation

FEW = Bootstrap(replicates=200, permutations=200)
VOCABULARY = [f"word {i:02}" for i in range(20)]


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    labels = np.array(VOCABULARY)[np.minimum(rng.geometric(0.2, n) - 1, 17)]
    return labels, rng.choice(["f", "m"], n)


def given(seed, n=80):
    rng = np.random.default_rng(seed)
    shapes = {"embeddings": (20, 6), "a": (4, 6), "b": (5, 6)}
    vectors = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    labels, groups = rows(seed, n)
    return {"labels": labels, "groups": groups, "vocabulary": VOCABULARY, **vectors}


@pytest.mark.parametrize("vocabulary", [None, VOCABULARY])
def test_concentration_of_each_group(vocabulary):
    labels, groups = rows(1)
    estimate = label_concentration(labels, groups, vocabulary=vocabulary, k=3, resampling=FEW)
    parts = {part.metric: [group.value for group in part.by_group] for part in estimate.parts}
    for index, group in enumerate("fm"):
        counts = np.unique(labels[groups == group], return_counts=True)[1]
        if vocabulary:
            counts = np.pad(counts, (0, 20 - len(counts)))
        assert parts["top_share"][index] == pytest.approx(np.sort(counts)[-3:].sum() / counts.sum())
        assert parts["label_skewness"][index] == pytest.approx(skew(counts))
        assert parts["label_kurtosis"][index] == pytest.approx(kurtosis(counts))
    # What replicates add to the shape of counts moves no spread away from its number.
    for part in estimate.parts:
        assert part.low <= part.value <= part.high
        assert all(group.low <= group.value <= group.high for group in part.by_group)
    shares = parts["top_share"]
    assert estimate.value == pytest.approx(abs(shares[0] - shares[1]))


def test_concentration_finds_a_group_described_by_one_label():
    labels, groups = rows(2)
    labels = labels.astype(object)
    labels[(groups == "f") & (np.random.default_rng(0).random(300) < 0.5)] = VOCABULARY[3]
    estimate = label_concentration(labels, groups, k=1, resampling=FEW)
    assert estimate.p_value < 0.01
    labels[:5] = None
    missing = label_concentration(labels, groups, resampling=None).excluded
    assert missing == {"missing label, group or unit": 5}
    units = [f"{group}{index // 4}" for index, group in enumerate(groups)]
    clustered = label_concentration(labels, groups, units=units, resampling=FEW)
    assert clustered.unit == "unit"
    assert clustered.method.startswith("resampling spread: percentile bootstrap over units, 200")


def test_p_values_are_valid():
    """Labels that are chosen with the images they test are no evidence."""
    few = Permutation(99)
    draws = []
    for seed in range(120):
        concentration = label_concentration(*rows(seed, 40), k=2, resampling=few, rng=seed)
        chosen = predicted_label_weat(**given(seed), resampling=few, rng=seed)
        draws.append(
            [
                1.0 if estimate.p_value is None else estimate.p_value
                for estimate in (concentration, chosen)
            ]
        )
    assert (np.mean(np.array(draws) <= 0.1, axis=0) <= 0.1 + 4 * (0.09 / 120) ** 0.5).all()


def chosen(labels, groups):
    """The more frequent half of each group's labels, without common labels."""
    effects = []
    for group in ("f", "m"):
        names, counts = np.unique(labels[groups == group], return_counts=True)
        edge = np.sort(counts)[::-1][math.ceil(len(names) / 2) - 1]
        effects.append({VOCABULARY.index(name) for name in names[counts >= edge]})
    return sorted(effects[0] - effects[1]), sorted(effects[1] - effects[0])


@pytest.mark.parametrize("seed", range(5))
def test_predicted_labels_give_the_weat_of_the_chosen(seed):
    arguments = given(seed)
    estimate = predicted_label_weat(**arguments, resampling=FEW)
    x, y = chosen(arguments["labels"], arguments["groups"])
    if not x or not y:
        assert math.isnan(estimate.value)
        return
    vectors = arguments["embeddings"]
    expected = weat(vectors[x], vectors[y], arguments["a"], arguments["b"], resampling=None).value
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    overall, *scores = estimate.parts
    assert [part.subject for part in scores] == [VOCABULARY[i] for i in (*x, *y)]
    means = {group.group: group.value for group in overall.by_group}
    by_label = {part.subject: part.value for part in scores}
    for group, chosen_labels in (("f", x), ("m", y)):
        values = [by_label[VOCABULARY[i]] for i in chosen_labels]
        assert means[group] == pytest.approx(np.mean(values), abs=1e-12)
    assert estimate.params["difference"] == pytest.approx(means["f"] - means["m"], abs=1e-12)
    sums = sum(by_label[VOCABULARY[i]] for i in x) - sum(by_label[VOCABULARY[i]] for i in y)
    assert estimate.params["statistic"] == pytest.approx(sums, abs=1e-12)
    assert predicted_label_weat(**arguments, first="m", resampling=FEW).value == -estimate.value
    turned = arguments | {"vocabulary": VOCABULARY[::-1], "embeddings": vectors[::-1]}
    again = predicted_label_weat(**turned, resampling=FEW)
    assert (estimate.value, estimate.p_value) == (again.value, again.p_value)
    assert estimate.method.startswith("resampling spread: percentile bootstrap over images, 200")


def test_common_labels_may_stay_in_both_sets():
    words = np.eye(4)
    labels = [*"aaabbc", *"aaaddc"]
    arguments = {
        "labels": labels, "groups": ["f"] * 6 + ["m"] * 6, "vocabulary": [*"abcd"],
        "embeddings": words, "a": words[:1] + words[1:2], "b": words[3:] + 0.5 * words[2:3],
        "resampling": None,
    }  # fmt: skip
    dropped = predicted_label_weat(**arguments)
    shared = predicted_label_weat(**arguments, common_labels="keep")
    assert [part.subject for part in dropped.parts[1:]] == ["b", "d"]
    assert [part.subject for part in shared.parts[1:]] == ["a", "b", "a", "d"]
    assert shared.params["difference"] == pytest.approx(dropped.params["difference"] / 2)
    assert (dropped.excluded != shared.excluded) is True
    with pytest.raises(InputError, match="^common_labels="):
        predicted_label_weat(**arguments, common_labels="none")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"groups": ["f"] * 80}, "groups: "),
        ({"groups": ["f"]}, "groups: 1 rows"),
        ({"vocabulary": VOCABULARY[:19]}, "embeddings: 20 rows"),
        ({"vocabulary": [*VOCABULARY[1:], "x"]}, "labels: 'word 00'"),
        ({"vocabulary": ["x"] * 20}, "vocabulary: "),
        ({"embeddings": np.eye(20, 6)}, "embeddings: "),
        ({"first": "w"}, "groups: .*first='w'"),
        ({"alternative": "up"}, "alternative='up'"),
        ({"alternative": "greater"}, "first: required by alternative='greater'"),
        ({"units": ["u"]}, "units: 1 names"),
    ],
)
def test_bad_predicted_labels(change, where):
    with pytest.raises(InputError, match=f"^{where}"):
        predicted_label_weat(**(given(1) | change))


def test_bad_concentration():
    with pytest.raises(InputError, match="^k=0"):
        label_concentration(["a"], ["f"], k=0)
    with pytest.raises(InputError, match="^labels: "):
        label_concentration([None], ["f"])
    assert label_concentration(["a", "b"], ["f", "f"]).reason
