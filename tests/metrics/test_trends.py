"""Trend and gender difference of similarities to words: the source, planted shifts, bad input."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import ImageSimilarities, gender_difference, trend
from equipoise.stats import Bootstrap, Permutation

# Mandal 2024, Table A.2: mean similarities of images of men and women from nine regions.
A2 = json.loads((Path(__file__).parent / "goldens" / "mandal_a2.json").read_text())
WORDS = A2["positive"], A2["negative"]
LISTS = ["good", "kind"], ["bad", "sly"]
FEW = Bootstrap(replicates=200, permutations=200)


def images(seed, shift=0.0, n=240):
    rng = np.random.default_rng(seed)
    group, region = rng.choice(["f", "m"], n), rng.choice(["EA", "LA"], n)
    scores = rng.normal(size=(n, 4)) + shift * (group == "m")[:, None] * np.array([1, 1, 0, 0])
    return ImageSimilarities(scores, [*LISTS[0], *LISTS[1]], group, region)


def test_table_a2_gives_trend_and_gender_difference():
    # An image with the mean similarities of each group and region.
    words, cells = [*WORDS[0], *WORDS[1]], []
    for group, means in A2["similarity"].items():
        for row, region in enumerate(A2["regions"]):
            cells.append((group, region, [means[word][row] for word in words]))
    groups, regions, scores = zip(*cells, strict=True)
    similarities = ImageSimilarities(scores, words, groups, regions)
    estimate = trend(similarities, *WORDS, resampling=None)
    order = [[part.subject for part in estimate.parts].index(region) for region in A2["regions"]]
    by_word = np.array(scores).reshape(2, len(order), 2, -1)
    trends = by_word[:, :, 0].sum(axis=2) - by_word[:, :, 1].sum(axis=2)
    for index, expected in enumerate(trends):
        values = [estimate.parts[place].by_group[index].value for place in order]
        assert values == pytest.approx(expected, abs=1e-12)
    assert estimate.value == pytest.approx(trends.mean(), abs=1e-12)
    difference = gender_difference(similarities, *WORDS, resampling=None)
    values = [difference.parts[place].value for place in order]
    assert values == pytest.approx(abs(np.subtract(*by_word.sum(axis=(2, 3)))), abs=1e-12)


def test_planted_shifts_are_found_and_the_null_is_valid():
    values = [gender_difference(images(2, s), *LISTS, resampling=None).value for s in (0, 1, 2)]
    assert values == sorted(values)
    strong = gender_difference(images(2, 2.0), *LISTS, resampling=FEW)
    assert strong.p_value < 0.01
    draws = [
        gender_difference(images(s, n=60), *LISTS, resampling=Permutation(99), rng=s).p_value
        for s in range(100)
    ]
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 100) ** 0.5


def test_units_are_resampled_and_missing_images_counted():
    similarities = images(4)
    scores, groups = (
        np.asarray(similarities.scores).copy(),
        np.asarray(similarities.groups, dtype=object),
    )
    scores[0, 0], groups[1] = np.nan, None
    units = [str(i // 12) for i in range(240)]
    estimate, alone = (
        trend(ImageSimilarities(scores, similarities.words, groups, None, unit_names), *LISTS)
        for unit_names in (units, None)
    )
    assert estimate.excluded == {"no finite similarity": 1, "missing group, region or unit": 1}
    assert (estimate.unit, alone.unit) == ("unit", "image")
    assert sum(estimate.n.values()) == 238
    assert estimate.value == alone.value
    assert estimate.interval() != alone.interval()


def test_a_region_with_one_group_has_no_difference():
    similarities = ImageSimilarities([[1.0], [2.0], [4.0]], ["w"], [*"fmf"], ["A", "A", "B"])
    estimate = gender_difference(similarities, ["w"], [], resampling=None)
    assert estimate.value == 1.0
    assert math.isnan(estimate.parts[1].value)
    assert estimate.parts[1].reason
    assert estimate.parts[1].by_group[1].note == "no images"


ONE = ImageSimilarities([[1.0]], ["w"], ["a"])


@pytest.mark.parametrize(
    ("similarities", "lists", "where"),
    [
        (ONE, (["w"], ["w"]), "positive and negative: .*'w'"),
        (ONE, ([], []), "positive and negative: no words"),
        (ImageSimilarities([[1.0]], ["w"], ["a", "b"]), (["w"], []), "groups: 2 labels"),
        (ImageSimilarities([[1.0]], ["w", "v"], ["a"]), (["w"], []), "scores: shape"),
        (ImageSimilarities([[math.nan]], ["w"], ["a"]), (["w"], []), "scores: none"),
        (ImageSimilarities([[1.0]], ["w"], ["a"]), (["v"], []), "words: .*'v'"),
    ],
)
def test_bad_similarities(similarities, lists, where):
    with pytest.raises(InputError, match=f"^{where}"):
        trend(similarities, *lists)


def test_gender_difference_needs_two_groups_and_draws():
    with pytest.raises(InputError, match="^groups: "):
        gender_difference(ONE, ["w"], [])
