"""Predicted labels, encoders and summaries: scipy, brute force, nulls, bad input."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import kurtosis, skew

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.associations.encoders import compare_encoders, total_absolute_association
from equipoise.metrics.associations.labels import label_concentration, predicted_label_weat
from equipoise.metrics.associations.scores import association_score
from equipoise.metrics.associations.summary import score_summary
from equipoise.metrics.associations.weat import weat
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from prediction_rows import part

FEW = Bootstrap(replicates=200, permutations=200)
VOCABULARY = [f"word {i:02}" for i in range(20)]


def rows(seed: int, n: int = 300) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    labels = np.array(VOCABULARY)[np.minimum(rng.geometric(0.2, n) - 1, 17)]
    return labels, rng.choice(["f", "m"], n)


def space(seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, 6)), rng.normal(size=(4, 6)), rng.normal(size=(5, 6))


@pytest.mark.parametrize("vocabulary", [None, VOCABULARY])
def test_concentration_of_each_group(vocabulary: list[str] | None) -> None:
    labels, groups = rows(1)
    found = label_concentration(labels, groups, vocabulary=vocabulary, k=3, resampling=FEW)
    for index, group in enumerate("fm"):
        counts = np.unique(labels[groups == group], return_counts=True)[1]
        if vocabulary:
            counts = np.pad(counts, (0, 20 - len(counts)))
        shown = {row["metric"]: row["by_group"][index]["value"] for row in found.by.to_pylist()}
        assert shown["top_share"] == pytest.approx(np.sort(counts)[-3:].sum() / counts.sum())
        assert shown["label_skewness"] == pytest.approx(skew(counts))
        assert shown["label_kurtosis"] == pytest.approx(kurtosis(counts))
    shares = [one["value"] for one in part(found.by, "top_share", "")["by_group"]]
    assert found.value == pytest.approx(abs(shares[0] - shares[1]))
    assert math.isnan(part(found.by, "label_skewness", "")["chance"])


def test_concentration_finds_a_group_described_by_one_label() -> None:
    labels, groups = rows(2)
    labels = labels.astype(object)
    labels[(groups == "f") & (np.random.default_rng(0).random(300) < 0.5)] = VOCABULARY[3]
    found = label_concentration(labels, groups, k=1, resampling=FEW)
    assert found.p_value is not None
    assert found.p_value < 0.01
    labels[:5] = None
    assert label_concentration(labels, groups, resampling=None).excluded == {
        "missing label, group or unit": 5
    }


def test_concentration_of_small_groups_is_within_chance() -> None:
    draws = [
        label_concentration(*rows(s, 40), k=2, resampling=Permutation(99), rng=s).p_value
        for s in range(150)
    ]
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 150) ** 0.5


def test_units_of_labels_move_together() -> None:
    labels, groups = rows(3)
    units = [f"{group}{index // 4}" for index, group in enumerate(groups)]
    found = label_concentration(labels, groups, units=units, resampling=FEW)
    assert found.unit == "unit"
    assert found.method.startswith(
        "resampling spread: percentile bootstrap over units, 200 replicates; not a confidence"
    )


def chosen(labels: Any, groups: Any) -> tuple[list[str], list[str]]:
    """The more frequent half of each group's labels without those of both, spelled out."""
    found = []
    for group in ("f", "m"):
        names, counts = np.unique(labels[groups == group], return_counts=True)
        edge = np.sort(counts)[::-1][math.ceil(len(names) / 2) - 1]
        found.append({*names[counts >= edge].tolist()})
    return sorted(found[0] - found[1]), sorted(found[1] - found[0])


@pytest.mark.parametrize("seed", range(5))
def test_predicted_labels_give_the_weat_of_the_chosen(seed: int) -> None:
    labels, groups = rows(seed, 80)
    embeddings, a, b = space(seed)
    found = predicted_label_weat(labels, groups, VOCABULARY, embeddings, a, b, resampling=FEW)
    x, y = ([VOCABULARY.index(word) for word in side] for side in chosen(labels, groups))
    if not x or not y:
        assert found.reason.startswith("one group has no labels of its own")
        return
    expected = weat(embeddings[x], embeddings[y], a, b, resampling=None).value
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.by["subject"].to_pylist() == [VOCABULARY[i] for i in (*x, *y)]
    turned = predicted_label_weat(
        labels, groups, VOCABULARY, embeddings, a, b, first="m", resampling=FEW
    )
    assert turned.value == -found.value


def test_weat_of_chosen_labels_has_a_resampling_spread() -> None:
    given = (*rows(6, 80), VOCABULARY, *space(6))
    found = predicted_label_weat(*given, resampling=FEW)
    assert found.method == (
        "resampling spread: percentile bootstrap over images, 200 replicates; not a confidence "
        "interval: each replicate chooses the labels anew, and may compare others"
    )
    alone = predicted_label_weat(*given, resampling=Permutation(99))
    assert alone.method == "none: use Bootstrap()"


def test_order_of_the_vocabulary_changes_nothing() -> None:
    labels, groups = rows(6, 80)
    embeddings, a, b = space(6)
    first = predicted_label_weat(labels, groups, VOCABULARY, embeddings, a, b, resampling=FEW)
    second = predicted_label_weat(
        labels, groups, VOCABULARY[::-1], embeddings[::-1], a, b, resampling=FEW
    )
    assert (first.value, first.p_value) == (second.value, second.p_value)


def test_labels_chosen_with_the_images_they_test_are_no_evidence() -> None:
    draws = []
    for s in range(150):
        found = predicted_label_weat(
            *rows(s, 80), VOCABULARY, *space(s), resampling=Permutation(99), rng=s
        )
        draws.append(1.0 if found.p_value is None else found.p_value)
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 150) ** 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": ["f"] * 300}, r"groups: \['f'\]; expected two groups"),
        ({"groups": ["f"]}, "groups: 1 rows; expected 300, as labels"),
        ({"vocabulary": VOCABULARY[:19]}, "embeddings: 20 rows; expected 19, as vocabulary"),
        ({"vocabulary": [*VOCABULARY[1:], "x"]}, "labels: 'word 00' is not in the vocabulary; add"),
        ({"vocabulary": ["x"] * 20}, "vocabulary: a label occurs twice; expected each label once"),
        ({"embeddings": np.eye(20, 6)}, "embeddings: a label's vector is zero or not finite"),
        ({"first": "w"}, r"first='w': expected one of \['f', 'm'\]"),
        ({"alternative": "up"}, "alternative='up': expected one of"),
        (
            {"resampling": Exact()},
            "resampling=Exact: not for predicted_label_weat; use Permutation",
        ),
        ({"units": ["u"]}, "units: 1 names; expected 300, one per label"),
    ],
)
def test_bad_predicted_labels(change: dict[str, Any], message: str) -> None:
    labels, groups = rows(1)
    embeddings, a, b = space(1)
    given = {
        "labels": labels,
        "groups": groups,
        "vocabulary": VOCABULARY,
        "embeddings": embeddings,
        "a": a,
        "b": b,
    }
    with pytest.raises(InputError, match=message):
        predicted_label_weat(**(given | change))


def test_bad_concentration() -> None:
    with pytest.raises(InputError, match="k=0: expected at least 1"):
        label_concentration(["a"], ["f"], k=0)
    with pytest.raises(InputError, match="labels: no row has a label and a group"):
        label_concentration([None], ["f"])
    assert label_concentration(["a", "b"], ["f", "f"]).reason == (
        "fewer than two groups have images enough"
    )


def encoder(seed: int, d: int, strength: float = 0.0) -> Estimate:
    rng = np.random.default_rng(seed)
    push = strength * np.eye(d)[0]
    targets = {
        name: rng.normal(size=(8, d)) + sign * push
        for name, sign in (("chef", 1), ("nurse", -1), ("judge", 1), ("maid", -1))
    }
    a, b = rng.normal(size=(2, 10, d))
    return total_absolute_association(targets, a + push, b - push, resampling=FEW)


def test_total_is_the_sum_of_absolute_scores() -> None:
    rng = np.random.default_rng(1)
    targets = {name: rng.normal(size=(3, 5)) for name in ("p", "q")}
    a, b = rng.normal(size=(2, 4, 5))
    found = total_absolute_association(targets, a, b, resampling=FEW)
    alone = {n: association_score(t, a, b, resampling=FEW) for n, t in targets.items()}
    assert found.value == pytest.approx(sum(abs(one.value) for one in alone.values()), abs=1e-12)
    for name, one in alone.items():
        row = part(found.by, "association_score", name)
        assert row["p_value"] == one.p_value
    assert found.chance is not None
    assert found.chance.mean > 0


def test_total_grows_with_the_planted_strength() -> None:
    totals = [encoder(2, 8, strength) for strength in (0.0, 0.5, 1.5)]
    assert [one.value for one in totals] == sorted(one.value for one in totals)
    assert totals[2].p_value is not None
    assert totals[2].p_value < 0.02


def test_encoders_are_compared_target_by_target() -> None:
    weak, strong = encoder(3, 8), encoder(3, 8, 2.0)
    found = compare_encoders({"weak": weak, "strong": strong})
    assert found.value == pytest.approx(strong.value - weak.value, abs=1e-12)
    # All four targets differ in one direction: 2 of 16 swaps are as extreme.
    assert found.p_value == 2 / 16
    pair = part(found.by, "difference", "weak - strong")
    assert pair["value"] == pytest.approx(-found.value)
    assert pair["low"] < pair["value"] < pair["high"] < 0
    three = compare_encoders({"weak": weak, "strong": strong, "other": encoder(4, 6)})
    assert "random swaps" in three.null
    assert len(three.by) == 6
    same = compare_encoders({"first": weak, "second": weak})
    assert (same.value, same.p_value) == (0.0, 1.0)


def test_bad_encoders() -> None:
    one = encoder(1, 4)
    with pytest.raises(InputError, match=r"encoders: \['e'\]; expected at least two"):
        compare_encoders({"e": one})
    with pytest.raises(InputError, match="'f' is not what total_absolute_association returned"):
        compare_encoders({"e": one, "f": score_summary({"t": 1.0}, {"t": "c"})})
    other = total_absolute_association({"x": np.eye(4)}, np.eye(4)[:2], np.eye(4)[2:])
    with pytest.raises(InputError, match="encoders: measured on different targets"):
        compare_encoders({"e": one, "f": other})
    with pytest.raises(InputError, match="expected named sets, none called 'a' or 'b'"):
        total_absolute_association({"a": np.eye(4)}, np.eye(4), np.eye(4))
    with pytest.raises(InputError, match="3 encoders and 4 targets are too many to enumerate"):
        compare_encoders({"e": one, "f": one, "g": one}, resampling=Exact())


def test_summary_by_category_and_direction() -> None:
    scores = {"chef": 0.2, "nurse": -0.4, "cook": 0.4, "gun": 0.1, "doll": math.nan}
    kinds = dict.fromkeys(("chef", "nurse", "cook"), "job") | {"gun": "thing", "doll": "thing"}
    found = score_summary(scores, kinds)
    assert found.value == pytest.approx(0.075)
    assert found.excluded == {"no finite score": 1}
    assert part(found.by, "mean", "job, a")["value"] == pytest.approx(0.3)
    assert part(found.by, "sd", "job")["value"] == pytest.approx(np.std([0.2, -0.4, 0.4], ddof=1))
    assert part(found.by, "mean", "thing, b")["reason"] == "no target"
    with pytest.raises(InputError, match="categories: none for target 'chef'; expected one for"):
        score_summary({"chef": 1.0}, {})
    with pytest.raises(InputError, match="scores: no finite number; expected one per target"):
        score_summary({}, {})
