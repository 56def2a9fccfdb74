"""Trend, gender difference, alignment, correlation, LOESS: sources, brute force, bad input."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from equipoise.core.errors import InputError
from equipoise.metrics.associations.alignment import alignment
from equipoise.metrics.associations.outside import correlation, correlation_p_value, loess
from equipoise.metrics.associations.words import ImageSimilarities, gender_difference, trend
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from mandal_tables import A2
from prediction_rows import part

# Mandal 2024, Table A.2: mean similarities of images of men and women from nine regions.
WORDS = A2["positive"], A2["negative"]
FEW = Bootstrap(replicates=200, permutations=200)


def images(seed: int, shift: float = 0.0, n: int = 240) -> ImageSimilarities:
    rng = np.random.default_rng(seed)
    group, region = rng.choice(["f", "m"], n), rng.choice(["EA", "LA"], n)
    scores = rng.normal(size=(n, 4)) + shift * (group == "m")[:, None] * np.array([1, 1, 0, 0])
    return ImageSimilarities(scores, ["good", "kind", "bad", "sly"], group, region)


LISTS = ["good", "kind"], ["bad", "sly"]


def test_table_a2_gives_trend_and_gender_difference() -> None:
    found = trend(A2["similarity"], *WORDS, regions=A2["regions"])
    for index, group in enumerate(("Man", "Woman")):
        values = [row[index]["value"] for row in found.by["by_group"].to_pylist()]
        assert values == pytest.approx(A2["trend"][group], abs=1e-12)
    assert found.value == pytest.approx(np.mean([*A2["trend"].values()]), abs=1e-12)
    assert found.by["subject"].to_pylist() == A2["regions"]
    apart = gender_difference(A2["similarity"], *WORDS, regions=A2["regions"])
    assert apart.by["value"].to_pylist() == pytest.approx(A2["gender_difference"], abs=1e-12)
    assert apart.no_chance.startswith("similarities are given as means: pass ImageSimilarities")


@pytest.mark.parametrize(
    ("r", "p", "printed"), [(-0.62, 0.075, 0.007), (-0.84, 0.005, 0.003), (-0.78, 0.013, 0.0012)]
)
def test_erratum_p_values_printed_with_table_a2_do_not_follow_from_nine_regions(
    r: float, p: float, printed: float
) -> None:
    found = correlation_p_value(r, 9)
    assert round(found, 3) == p
    assert abs(found - printed) > 1e-3


def test_images_give_the_same_as_their_means() -> None:
    one = images(1)
    scores, group, region = (np.asarray(v) for v in (one.scores, one.groups, one.regions))
    means = {
        g: {
            word: [scores[(group == g) & (region == r), i].mean() for r in ("EA", "LA")]
            for i, word in enumerate(one.words)
        }
        for g in ("f", "m")
    }
    for metric in (trend, gender_difference):
        found, plain = metric(one, *LISTS, resampling=FEW), metric(means, *LISTS)
        assert found.value == pytest.approx(plain.value, abs=1e-12)
        assert found.by["value"].to_pylist() == pytest.approx(plain.by["value"].to_pylist())
        assert found.interval().low < found.value < found.interval().high


def test_gender_difference_grows_with_the_planted_shift_and_is_valid_without() -> None:
    values = [gender_difference(images(2, s), *LISTS, resampling=None).value for s in (0, 1, 2)]
    assert values == sorted(values)
    strong = gender_difference(images(2, 2.0), *LISTS, resampling=FEW)
    assert strong.p_value is not None
    assert strong.p_value < 0.01
    draws = [
        gender_difference(images(s, n=60), *LISTS, resampling=Permutation(99), rng=s).p_value
        for s in range(150)
    ]
    assert np.mean(np.array(draws) <= 0.1) <= 0.1 + 4 * (0.09 / 150) ** 0.5


def test_order_of_images_and_names_of_groups_change_nothing() -> None:
    one = images(3)
    order = np.random.default_rng(0).permutation(240)
    pick = [np.asarray(v)[order] for v in (one.scores, one.groups, one.regions)]
    turned = ImageSimilarities(pick[0], one.words, pick[1], pick[2])
    first, second = (gender_difference(o, *LISTS, resampling=FEW) for o in (one, turned))
    assert (first.value, first.p_value, first.interval()) == (
        second.value,
        second.p_value,
        second.interval(),
    )


def test_units_are_resampled_and_missing_images_counted() -> None:
    one = images(4)
    scores, groups = np.asarray(one.scores).copy(), np.asarray(one.groups, dtype=object)
    scores[0, 0], groups[1] = np.nan, None
    given_ = ImageSimilarities(
        scores, one.words, groups, one.regions, [str(i // 2) for i in range(240)]
    )
    found = gender_difference(given_, *LISTS, resampling=FEW)
    assert found.excluded == {"no finite similarity": 1, "missing group, region or unit": 1}
    assert found.unit == "unit"
    assert sum(found.n.values()) == 238


def test_a_region_with_one_group_has_no_difference() -> None:
    one = ImageSimilarities([[1.0], [2.0], [4.0]], ["w"], [*"fmf"], ["A", "A", "B"])
    found = gender_difference(one, ["w"], [], resampling=None)
    rows = found.by.to_pylist()
    assert found.value == 1.0
    assert math.isnan(rows[1]["value"])
    assert rows[1]["reason"] == "fewer than two groups"
    assert rows[1]["by_group"][1]["note"] == "no images"


@pytest.mark.parametrize(
    ("similarities", "lists", "message"),
    [
        (
            A2["similarity"],
            (["smart", "smart"], []),
            "'smart' occurs more than once; each word bel",
        ),
        (A2["similarity"], (["smart"], ["smart"]), "'smart' occurs more than once"),
        (
            A2["similarity"],
            (["bold"], []),
            "similarities of 'Man': no word 'bold'; expected all of",
        ),
        (A2["similarity"], ([], []), "positive and negative: no words; expected at least one"),
        ({}, (["w"], []), "similarities: no groups; expected a mapping of group to words"),
        (
            {"a": {"w": [1, 2]}, "b": {"w": [1]}},
            (["w"], []),
            "groups have different numbers of reg",
        ),
        ({"a": {"w": [1, 2], "v": [1]}}, (["w"], ["v"]), "words have different numbers of regions"),
        (
            ImageSimilarities([[1.0]], ["w"], ["a", "b"]),
            (["w"], []),
            "groups: 2 labels; expected 1",
        ),
        (
            ImageSimilarities([[1.0]], ["w", "v"], ["a"]),
            (["w"], []),
            r"expected \(images, 2 words\)",
        ),
        (
            ImageSimilarities([[math.nan]], ["w"], ["a"]),
            (["w"], []),
            "none of 1 images has a group",
        ),
        (ImageSimilarities([[1.0]], ["w"], ["a"]), (["v"], []), "words: no word 'v'; expected all"),
    ],
)
def test_bad_similarities(similarities: Any, lists: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trend(similarities, *lists)


def test_gender_difference_needs_two_groups_and_draws() -> None:
    with pytest.raises(InputError, match=r"similarities: groups \['a'\]; expected at least two"):
        gender_difference({"a": {"w": 1.0}}, ["w"], [])
    with pytest.raises(InputError, match="resampling=Exact: not for gender_difference"):
        gender_difference(images(0), *LISTS, resampling=Exact())
    with pytest.raises(InputError, match="regions: 1 names; expected 9, as similarities"):
        trend(A2["similarity"], *WORDS, regions=["all"])


def numbers(n: int, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n).round(1), rng.normal(size=n).round(1) + 0.05


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("statistic", ["mean", "rank"])
def test_alignment_against_all_permutations(statistic: Any, seed: int) -> None:
    preference, hypothesis = numbers(6, seed)

    def measured(expected: Any) -> float:
        if statistic == "mean":
            return float(np.mean(preference * np.sign(expected)))
        return float(spearmanr(preference, expected).statistic)

    found = alignment(preference, hypothesis, statistic=statistic)
    null = np.array([measured(np.array(some)) for some in permutations(hypothesis)])
    assert found.value == pytest.approx(measured(hypothesis), abs=1e-12)
    assert found.p_value == pytest.approx(np.mean(null >= found.value - 1e-12), abs=1e-12)
    assert found.chance is not None
    assert found.chance.mean == pytest.approx(null.mean(), abs=1e-12)


@pytest.mark.parametrize("statistic", ["mean", "rank"])
def test_alignment_finds_planted_favourites(statistic: Any) -> None:
    rng = np.random.default_rng(1)
    hypothesis = rng.choice([-1.0, 1.0], 60) * rng.uniform(0.5, 1, 60)
    values = [
        alignment(s * hypothesis + rng.normal(size=60), hypothesis, statistic=statistic)
        for s in (0.0, 1.0, 4.0)
    ]
    assert [one.value for one in values] == sorted(one.value for one in values)
    assert values[2].p_value is not None
    assert values[2].p_value < 0.01


def test_alignment_reads_mappings_and_counts_what_is_left_out() -> None:
    found = alignment(
        {"nurse": -1.0, "doctor": 2.0, "cook": math.nan, "clerk": 1.0},
        {"nurse": -3.0, "doctor": 1.0, "cook": 1.0, "clerk": 0.0, "pilot": 1.0},
    )
    assert found.value == 1.5
    assert found.excluded == {
        "in one of preferences and hypothesis only": 1,
        "no finite number": 1,
        "no direction in the hypothesis": 1,
    }
    assert part(found.by, "alignment", "negative")["value"] == 1.0


def test_alignment_with_one_direction_cannot_be_tested() -> None:
    found = alignment([1.0, 2.0], [1, 1])
    assert found.p_value == 1.0
    assert (
        found.reason == "the hypothesis is the same for all subjects: permuting it changes nothing"
    )


@pytest.mark.parametrize(
    ("preferences", "hypothesis", "keywords", "message"),
    [
        ([1.0], [1.0, 2.0], {}, r"preferences \(1,\) and hypothesis \(2,\): expected one number"),
        ({"a": 1.0}, [1.0], {}, "expected two mappings or two arrays"),
        ([1.0], [0.0], {}, "alignment: 0 subjects with a preference and a hypothesis; expected at"),
        ([1.0], [1.0], {"statistic": "sum"}, "statistic='sum': expected 'mean' or 'rank'"),
        (
            range(12),
            range(12),
            {"statistic": "rank", "resampling": Exact()},
            "12 subjects have 479",
        ),
    ],
)
def test_bad_alignment(preferences: Any, hypothesis: Any, keywords: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        alignment(preferences, hypothesis, **keywords)


@given(st.integers(0, 1000), st.integers(4, 30))
def test_correlations_are_scipys(seed: int, n: int) -> None:
    x, y = numbers(n, seed)
    found = correlation(x, y)
    for name, theirs in (("pearson", pearsonr(x, y)), ("spearman", spearmanr(x, y))):
        mine = part(found.by, name, "")
        if math.isnan(mine["value"]):
            assert len({*x}) == 1 or len({*y}) == 1
            continue
        assert mine["value"] == pytest.approx(theirs.statistic, abs=1e-12)
        assert mine["p_value"] == pytest.approx(theirs.pvalue, abs=1e-9)


def test_correlation_leaves_out_incomplete_pairs_and_says_when_there_is_none() -> None:
    found = correlation([1, 2, 3, math.nan], [2, 4, 6, 1])
    assert found.value == 1.0
    assert found.p_value == 0.0
    assert found.excluded == {"no two finite numbers": 1}
    assert correlation([1, 2], [1, 2]).reason == "fewer than three pairs"
    assert correlation([1, 1, 1], [1, 2, 3]).reason == "all x or all y are equal"
    with pytest.raises(InputError, match=r"x \(2,\) and y \(1,\): expected one number each"):
        correlation([1, 2], [1])
    with pytest.raises(InputError, match="r=2, n=9: expected r between -1 and 1, and at least 3"):
        correlation_p_value(2, 9)


def test_loess_is_weighted_least_squares_of_the_nearest() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=25), rng.normal(size=25)
    found = loess(x, y, span=0.5)
    for at in (-0.1, 0.2, 0.9):
        distance = np.abs(x - at)
        weight = np.clip(1 - (distance / np.sort(distance)[12]) ** 3, 0, None) ** 3
        line = np.polyfit(x, y, 1, w=np.sqrt(weight))
        assert found(at)[0] == pytest.approx(np.polyval(line, at), abs=1e-9)


def test_loess_keeps_lines_and_ties() -> None:
    x = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    assert loess(x, 2 * x + 1).fitted == pytest.approx(2 * np.sort(x) + 1)
    assert loess([1, 1, 1, 2], [1, 2, 3, 9], span=0.5)(1.0)[0] == 2.0
    with pytest.raises(InputError, match="span=0: expected a share of the data"):
        loess(x, x, span=0)
    with pytest.raises(InputError, match="loess: 2 pairs of finite numbers; expected at least 3"):
        loess([1, 2], [1, 2])
