"""Preferences against declared hypotheses and outside figures: brute force, scipy, bad input."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from equipoise.core import InputError
from equipoise.metrics import alignment, correlation, favourite_gap, loess, spearman
from equipoise.stats import Bootstrap, Permutation
from prediction_rows import part


def numbers(n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n).round(1), rng.normal(size=n).round(1) + 0.05


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("statistic", ["mean", "rank"])
def test_alignment_against_all_permutations(statistic, seed):
    preference, hypothesis = numbers(6, seed)

    def measured(expected):
        if statistic == "mean":
            return float(np.mean(preference * np.sign(expected)))
        return float(spearmanr(preference, expected).statistic)

    estimate = alignment(preference, hypothesis, statistic=statistic)
    null = np.array([measured(np.array(order)) for order in permutations(hypothesis)])
    assert estimate.value == pytest.approx(measured(hypothesis), abs=1e-12)
    assert estimate.p_value == pytest.approx(np.mean(null >= estimate.value - 1e-12), abs=1e-12)
    assert estimate.chance.mean == pytest.approx(null.mean(), abs=1e-12)
    low, high = estimate.ends(0.95)
    assert low < estimate.value < high


def test_alignment_reads_mappings_and_counts_what_is_left_out():
    estimate = alignment(
        {"nurse": -1.0, "doctor": 2.0, "cook": math.nan, "clerk": 1.0},
        {"nurse": -3.0, "doctor": 1.0, "cook": 1.0, "clerk": 0.0, "pilot": 1.0},
    )
    assert estimate.value == 1.5
    assert estimate.excluded == {
        "in one of preferences and hypothesis only": 1,
        "no finite number": 1,
        "no direction in the hypothesis": 1,
    }
    assert part(estimate.by, "alignment", "negative")["value"] == 1.0
    same = alignment([1.0, 2.0], [1, 1])
    assert same.p_value == 1.0
    assert same.reason


@pytest.mark.parametrize(
    ("preferences", "hypothesis", "keywords", "where"),
    [
        ([1.0], [1.0, 2.0], {}, "hypothesis: 2 rows; expected 1"),
        ({"a": 1.0}, [1.0], {}, "preferences and hypothesis"),
        ([1.0], [0.0], {}, "alignment: 0 subjects"),
        ([1.0, 2.0], [0.0, 1.0], {"statistic": "rank"}, "alignment: 2 subjects"),
        ([1.0], [1.0], {"statistic": "sum"}, "statistic='sum'"),
    ],
)
def test_bad_alignment(preferences, hypothesis, keywords, where):
    with pytest.raises(InputError, match=f"^{where}"):
        alignment(preferences, hypothesis, **keywords)


EFFECTS = {
    "doctor": {"man": 0.5, "woman": -0.5},
    "nurse": {"man": -0.25, "woman": 0.25},
    "baker": {"man": 0.0, "woman": 0.0},
}
STEREOTYPES = {"doctor": "man", "nurse": "woman", "baker": "man"}


def test_favourite_gap_by_hand():
    estimate = favourite_gap(EFFECTS, STEREOTYPES, rng=3)
    assert estimate.value == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    values = []
    for order in permutations(STEREOTYPES.values()):
        signs = [1 if group == "man" else -1 for group in order]
        values.append((1.0 * signs[0] - 0.5 * signs[1] + 0.0 * signs[2]) / 3)
    assert estimate.p_value == pytest.approx(np.mean(np.array(values) >= estimate.value - 1e-12))
    assert estimate.chance.mean == pytest.approx(np.mean(values))
    # Of several groups, the gap is to the mean of the others.
    three = favourite_gap({"star": {"red": 0.6, "blue": 0.0, "green": -0.6}}, {"star": "red"})
    assert three.value == pytest.approx(0.9)


def test_p_of_favourites_is_valid_and_finds_planted_ones():
    def p(seed, strength):
        rng = np.random.default_rng(seed)
        favourites = {f"c{i}": str(group) for i, group in enumerate(rng.choice([*"abcd"], 24))}
        effects = {
            name: {g: strength * (g == favourites[name]) + rng.standard_normal() for g in "abcd"}
            for name in favourites
        }
        estimate = favourite_gap(
            effects, favourites, resampling=Permutation(99, resolution=0.01), rng=seed
        )
        return estimate.p_value

    alarms = np.mean([p(seed, 0.0) <= 0.1 for seed in range(200)])
    assert alarms <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 200)
    assert np.mean([p(seed, 1.0) <= 0.05 for seed in range(20)]) > 0.9


def test_concepts_without_a_favourite_gap():
    effects = {**EFFECTS, "pilot": {"man": 1.0, "woman": math.nan}, "chef": {"man": 0.0}}
    estimate = favourite_gap(effects, {**STEREOTYPES, "pilot": "man", "clerk": "man"})
    assert estimate.n == {"concepts": 3}
    assert [*estimate.excluded.values()] == [2, 1]
    same = favourite_gap(EFFECTS, dict.fromkeys(EFFECTS, "man"))
    assert same.p_value == 1.0
    assert same.reason
    single = favourite_gap({"nurse": EFFECTS["nurse"]}, STEREOTYPES, resampling=Bootstrap(50, 50))
    assert math.isnan(single.interval().low)
    with pytest.raises(InputError, match="^favourites: "):
        favourite_gap(EFFECTS, {"nurse": "robot"})


@given(st.integers(0, 1000), st.integers(4, 30))
def test_correlations_are_scipys(seed, n):
    x, y = numbers(n, seed)
    estimate = correlation(x, y)
    for name, theirs in (("pearson", pearsonr(x, y)), ("spearman", spearmanr(x, y))):
        mine = part(estimate.by, name, "")
        assert mine["value"] == pytest.approx(theirs.statistic, abs=1e-12)
        assert mine["p_value"] == pytest.approx(theirs.pvalue, abs=1e-9)
    ranked = spearman(x, y)
    assert (ranked.value, ranked.p_value) == (mine["value"], mine["p_value"])
    assert ranked.interval().low == pytest.approx(mine["low"], nan_ok=True)


@pytest.mark.parametrize(
    ("r", "p", "printed"), [(-0.62, 0.075, 0.007), (-0.84, 0.005, 0.003), (-0.78, 0.013, 0.0012)]
)
def test_erratum_printed_p_values_do_not_follow_from_nine_regions(r, p, printed):
    x, other = numbers(9, 3)
    x, other = (series - series.mean() for series in (x, other))
    other -= (other @ x) / (x @ x) * x
    y = r * x / np.linalg.norm(x) + math.sqrt(1 - r * r) * other / np.linalg.norm(other)
    estimate = correlation(x, y).p_value
    assert round(estimate, 3) == p
    assert abs(estimate - printed) > 1e-3


def test_incomplete_and_constant_pairs():
    estimate = correlation([1, 2, 3, math.nan], [2, 4, 6, 1])
    assert (estimate.value, estimate.p_value) == (1.0, 0.0)
    assert estimate.excluded == {"no two finite numbers": 1}
    for x, y in (([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])):
        assert correlation(x, y).reason
        assert math.isnan(correlation(x, y).value)
    with pytest.raises(InputError, match="^y: 1 rows; expected 2"):
        correlation([1, 2], [1])


def test_loess_is_weighted_least_squares_of_the_nearest():
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=25), rng.normal(size=25)
    fit = loess(x, y, span=0.5)
    for at in (-0.1, 0.2, 0.9):
        distance = np.abs(x - at)
        weight = np.clip(1 - (distance / np.sort(distance)[12]) ** 3, 0, None) ** 3
        line = np.polyfit(x, y, 1, w=np.sqrt(weight))
        assert fit(at)[0] == pytest.approx(np.polyval(line, at), abs=1e-9)
    assert loess([1, 1, 1, 2], [1, 2, 3, 9], span=0.5)(1.0)[0] == 2.0
    with pytest.raises(InputError, match="^span=0"):
        loess(x, x, span=0)
    with pytest.raises(InputError, match="^loess: 2 pairs"):
        loess([1, 2], [1, 2])


def test_intervals_of_few_subjects_and_concepts_are_students():
    """Percentiles over 8 subjects hold the mean in 88 %, Student's t in 95 % of samples."""
    rows, signs = np.random.default_rng(4).standard_normal((300, 8)), np.tile([1.0, -1.0], 4)
    n_covered = 0
    for row in rows:
        ends = alignment(row, signs, resampling=Bootstrap(200, 1, resolution=1.0)).interval()
        n_covered += ends.low <= 0.0 <= ends.high
    assert n_covered >= 0.92 * len(rows)
