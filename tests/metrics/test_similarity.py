"""Similarity by group: goldens, plain loops, least squares, chance, intervals, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrieval_plain as plain
from equipoise.core import Groups, InputError
from equipoise.metrics import (
    group_effect,
    logit_gap,
    normalized_similarity_mad,
    similarity_gap,
)
from equipoise.metrics.rankings import similarity
from equipoise.metrics.rankings.pools import pools_of
from equipoise.metrics.spec import is_main
from equipoise.stats import Bootstrap, Permutation
from goldens import Golden, cases

TABLE_1 = Golden("chen_dou_table_1.json")
FEW = Bootstrap(replicates=100, permutations=100, resolution=0.05)
GROUPS = np.array(list("abc"))


def effects(estimate, subject=""):
    part = next(p for p in estimate.parts if p.subject == subject and p.metric == estimate.metric)
    return {group.group: group.value for group in part.by_group}


def least_squares(scores, groups, sets):
    """Effects by dummies of groups and sets, one equation an image: an independent route."""
    names, strata = sorted({*groups}), sorted({*sets})
    pairs = zip(groups, sets, strict=True)
    rows = np.array([[g == n for n in names] + [s == t for t in strata] for g, s in pairs])
    coefficients = np.linalg.lstsq(rows.astype(float), np.asarray(scores, dtype=float), rcond=None)[
        0
    ][: len(names)]
    return dict(zip(names, (coefficients - coefficients.mean()).tolist(), strict=True))


def world(seed, sets=20, *, holes=False):
    """Sets of three images that share much; with holes some are missing or there twice."""
    rng = np.random.default_rng(seed)
    set_of, group = np.repeat(np.arange(sets), 3), np.tile(GROUPS, sets)
    scores = np.repeat(3 * rng.standard_normal(sets), 3) + rng.standard_normal(3 * sets)
    scores += 0.5 * (group == "b")
    if holes:
        rows = np.sort(rng.choice(len(scores), len(scores), replace=True))
        rows = np.concatenate([rows, [0, 1, 2]])
        return scores[rows], group[rows], np.array([f"s{number}" for number in set_of[rows]])
    return scores, group, np.array([f"s{number}" for number in set_of])


@given(st.integers(0, 10**6), st.booleans())
def test_within_sets_effects_are_least_squares(seed, holes):
    scores, groups, sets = world(seed, holes=holes)
    estimate = similarity_gap(scores, groups, sets=sets, resampling=None)
    assert effects(estimate) == pytest.approx(least_squares(scores, groups, sets), abs=1e-9)
    if not holes:
        means = similarity_gap(scores, groups, resampling=None)
        assert estimate.value == pytest.approx(means.value, abs=1e-11)


def test_resampled_effects_are_weighted_least_squares(monkeypatch):
    scores, groups, sets = world(3, holes=True)
    sets[:9] = ""  # Images of no set are compared among themselves.
    block = similarity.Effects.of(pools_of(scores, groups, sets=sets), {"sets": sets}, 1.0).blocks[
        0
    ]
    rng = np.random.default_rng(0)
    times = rng.poisson(1.0, int(block.stratum.max()) + 1)[block.stratum]
    times = np.where(block.loose, rng.poisson(1.0, len(times)) + 1, times)
    monkeypatch.setattr(
        similarity, "unit_times", lambda keys, *_: np.stack([times[keys]] * 2, axis=1)
    )
    effects = block.resampled(np.arange(len(times), dtype=np.uint64), 1, 0)[0, 0]
    rows = np.repeat(np.arange(len(times)), times)
    expected = least_squares(block.scores[rows, 0], block.codes[rows], block.stratum[rows])
    assert effects == pytest.approx([*expected.values()], abs=1e-9)


def test_gap_in_logits_and_effects_of_groups_are_metrics_of_their_own():
    scores, groups, sets = world(4)
    shared = {"sets": sets, "resampling": FEW, "rng": 2}
    gap = similarity_gap(scores, groups, scale=3.0, **shared)
    effect = group_effect(scores, groups, group="b", scale=3.0, **shared)
    part = next(
        part
        for part in gap.parts
        if part.metric == "group_effect" and part.by_group[0].group == "b"
    )
    assert str(logit_gap(scores, groups, scale=3.0, **shared)) == str(gap)
    assert (effect.value, effect.interval().low) == (part.value, part.low)
    assert effect.chance.mean == part.chance
    assert effect.value == pytest.approx(effects(gap, part.subject)["b"])
    with pytest.raises(InputError, match="^group='d'"):
        group_effect(scores, groups, group="d", resampling=None)


def test_logits_are_similarities_times_the_scale():
    scores, groups, sets = world(1)
    bare = similarity_gap(scores, groups, sets=sets, resampling=FEW)
    logits = similarity_gap(scores, groups, sets=sets, scale=100.0, resampling=FEW)
    assert logits.metric == "logit_gap"
    assert logits.value == pytest.approx(100 * bare.value, rel=1e-9)
    assert logits.interval().high == pytest.approx(100 * bare.interval().high, rel=1e-6)
    assert logits.p_value == bare.p_value
    assert logits.params["scale"] == 100.0


@pytest.mark.parametrize("metric", [similarity_gap, normalized_similarity_mad])
def test_sets_take_out_what_members_share(metric):
    scores, groups, sets = world(4, 60)
    paired, pooled = metric(scores, groups, sets=sets), metric(scores, groups)
    assert paired.chance.mean < pooled.chance.mean / 2
    widths = [estimate.interval().high - estimate.interval().low for estimate in (paired, pooled)]
    assert widths[0] < 0.7 * widths[1]
    assert (paired.unit, pooled.unit) == ("set", "image")
    if metric is normalized_similarity_mad:
        return
    pool_order = next(p for p in paired.parts if p.variant == "pool_order")
    assert pool_order.value == pytest.approx(paired.value, abs=1e-11)
    assert pool_order.chance == pytest.approx(pooled.chance.mean, rel=0.1)
    assert pool_order.p_value > paired.p_value


def test_photos_of_one_person_are_one_unit():
    rng = np.random.default_rng(5)
    person = np.repeat(np.arange(40), 6)
    group = np.where(person < 20, "a", "b")
    scores = np.repeat(rng.standard_normal(40), 6) + 0.1 * rng.standard_normal(240)
    by_image = similarity_gap(scores, group)
    by_person = similarity_gap(scores, group, units=person)
    assert by_person.unit == "unit"
    assert by_person.chance.mean > 2 * by_image.chance.mean
    assert by_person.interval().high > by_image.interval().high
    mads = [normalized_similarity_mad(scores, group, units=c) for c in (None, person)]
    assert mads[1].chance.mean > 2 * mads[0].chance.mean


def test_sets_lie_within_units():
    scores, groups, sets = world(6)
    unit = np.repeat(np.arange(10), 6)
    wide = similarity_gap(scores, groups, sets=sets, units=unit, resampling=FEW)
    narrow = similarity_gap(scores, groups, sets=sets, resampling=FEW)
    assert (wide.value, wide.p_value) == (narrow.value, narrow.p_value)
    with pytest.raises(InputError, match="^units: set 's0'"):
        similarity_gap(scores, groups, sets=sets, units=np.arange(60))


def test_several_concepts_on_the_same_images_and_on_their_own():
    worlds = [world(seed) for seed in range(3)]
    groups, sets = worlds[0][1:]
    table = np.stack([row for row, _, _ in worlds])
    estimate = similarity_gap(table, groups, sets=sets, queries=["x", "y", "z"], resampling=FEW)
    alone = [similarity_gap(row, groups, sets=sets, resampling=None).value for row in table]
    gaps = [p.value for p in estimate.parts if is_main(p, estimate)]
    assert gaps == pytest.approx(alone, abs=1e-11)
    assert estimate.value == pytest.approx(np.mean(alone), abs=1e-11)
    assert estimate.unit == "query"
    overall = [p for p in estimate.parts if p.metric == "group_effect" and not p.subject]
    assert [p.by_group[0].group for p in overall] == ["a", "b", "c"]
    expected = np.mean([[*effects(estimate, name).values()] for name in "xyz"], axis=0)
    assert [p.value for p in overall] == pytest.approx(expected, abs=1e-11)


def test_every_effect_has_its_own_chance_band():
    scores, groups, sets = world(7, 80)
    estimate = similarity_gap(scores, groups, sets=sets)
    parts = {p.by_group[0].group: p for p in estimate.parts if p.metric == "group_effect"}
    assert {*parts} == {"a", "b", "c"}
    for part in parts.values():
        assert part.chance_low < 0 < part.chance_high
        assert part.low < part.value < part.high
        assert part.chance == pytest.approx(0.0, abs=0.02)
    assert parts["b"].value > parts["b"].chance_high


def test_a_group_under_the_least_size_is_left_out():
    scores, groups, _ = world(10)
    tiny = Groups.of(np.append(groups, "z"), min_size=5)
    without_tiny = similarity_gap(np.append(scores, 99.0), tiny, resampling=None)
    assert without_tiny.value == pytest.approx(
        similarity_gap(scores, groups, resampling=None).value
    )
    assert (
        next(g.note for g in without_tiny.parts[0].by_group if g.group == "z")
        == "fewer than 5 rows"
    )


def test_a_group_of_one_unit_has_no_interval():
    estimate = similarity_gap(np.arange(9.0), [*"aaaabbbb", "c"], resampling=FEW)
    assert math.isnan(estimate.interval().low)
    assert not math.isnan(estimate.value)


def test_equal_scores_and_less_resampling():
    equal = similarity_gap(np.ones(30), np.tile(GROUPS, 10), resampling=FEW)
    assert (equal.value, equal.p_value, equal.interval().high) == (0.0, 1.0, 0.0)
    scores, groups, _ = world(11)
    tested = similarity_gap(scores, groups, resampling=Permutation(99))
    assert tested.p_value is not None
    assert math.isnan(tested.interval().low)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"scale": 0.0}, "scale=0.0"),
        ({"scale": math.nan}, "scale=nan"),
        ({"units": ["a"]}, "units: 1 rows; expected 60"),
    ],
)
def test_bad_input(changes, where):
    scores, groups, _ = world(12)
    with pytest.raises(InputError, match=f"^{where}"):
        similarity_gap(scores, groups, **changes)


@pytest.mark.parametrize("metric", [normalized_similarity_mad, similarity_gap])
def test_what_cannot_be_estimated_says_why(metric):
    small = Groups.of(["a"] * 4 + ["b"], min_size=2)
    alone = metric([1.0, 2, 3], ["a"] * 3, resampling=FEW)
    few = metric([1.0, 2, 3, 4, 5], small, resampling=FEW)
    for estimate in (alone, few):
        assert math.isnan(estimate.value)
        assert (estimate.chance, estimate.reason) == (
            None,
            "fewer than two groups with rows enough",
        )
    unpaired = similarity_gap([1.0, 2, 3, 4], list("aabb"), sets=list("ssuu"), resampling=FEW)
    assert unpaired.excluded["images whose set holds one group"] == 4
    assert unpaired.reason
    mixed = normalized_similarity_mad([[1.0] * 4, [1, 2, 3, 4]], ["a", "b"] * 2, resampling=FEW)
    assert mixed.excluded == {"queries with one group or equal scores": 1}
    assert mixed.value == mixed.parts[1].value


@pytest.mark.parametrize("golden", cases("retrieval.json"))
def test_mad_goldens(golden):
    estimate = normalized_similarity_mad(golden["scores"], golden["groups"], resampling=FEW)
    assert estimate.value == pytest.approx(golden["similarity_mad"], abs=1e-12)
    values = [group.value for group in estimate.parts[0].by_group]
    assert values == pytest.approx(golden["normalized_similarity"], abs=1e-12)


@pytest.mark.parametrize("index", range(5))
def test_the_table_of_chen_and_dou(index):
    """Group sizes follow from the two means: together they are 0. Printed to four digits."""
    _, male, female, _, _, mad, _ = TABLE_1["rows"][index]
    sizes = round(20_000 * female / (female - male)), round(20_000 * male / (male - female))
    means = np.repeat([male, female], sizes)
    noise = np.concatenate([np.linspace(-1, 1, size) for size in sizes])
    noise *= math.sqrt((1 - (means**2).mean()) / (noise**2).mean())
    groups = np.repeat(["male", "female"], sizes)
    estimate = normalized_similarity_mad(means + noise, groups, resampling=None)
    assert estimate.value == pytest.approx(mad, abs=2e-4)
    p = {group.group: group.value for group in estimate.parts[0].by_group}
    assert p == pytest.approx({"male": male, "female": female}, abs=2e-4)


@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
def test_mad_agrees_with_plain_loops(seed, n_groups, ties):
    worlds = [plain.world(seed + i, 25, n_groups, ties=ties) for i in range(3)]
    groups = worlds[0][1]
    scores = np.stack([row for row, _ in worlds])
    expected = [plain.similarity_mad(list(row), list(groups), n_groups) for row in scores]
    estimate = normalized_similarity_mad(scores, groups, resampling=None)
    assert [part.value for part in estimate.parts] == pytest.approx(expected, abs=1e-11)
    assert estimate.value == pytest.approx(np.mean(expected), abs=1e-11)
    long = normalized_similarity_mad(
        scores.ravel(), np.tile(groups, 3), queries=np.repeat([0, 1, 2], 25), resampling=None
    )
    assert long.value == pytest.approx(estimate.value, abs=1e-11)


@pytest.mark.parametrize("clustered", [False, True])
def test_a_small_group_that_spreads_more_is_no_finding(clustered):
    """Spreads of 3 and 1 with equal means: the classic test rejects in 35 % of samples."""
    ps, n_repeats = [], 80
    units = np.repeat([*"ab"], [20, 60] if clustered else [20, 120])
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        scores = np.where(units == "a", 3.0, 1.0) * rng.standard_normal(len(units))
        of = np.repeat(np.arange(len(units)), 3 if clustered else 1)
        clusters = of if clustered else None
        permutation = Permutation(99, resolution=1.0)
        estimate = similarity_gap(
            scores[of], units[of], units=clusters, resampling=permutation, rng=seed
        )
        ps.append(estimate.p_value)
    assert np.mean(np.array(ps) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_repeats)


@pytest.mark.parametrize("paired", [False, True])
def test_each_group_is_held_against_all_others(paired):
    scores, groups, sets = world(1, 60)
    keep = (groups != "c") | (np.arange(len(groups)) < 40)
    scores, groups, sets = scores[keep], groups[keep], sets[keep] if paired else None
    estimate = similarity_gap(scores, groups, sets=sets, resampling=FEW)
    leaves = [part for part in estimate.parts if part.aggregate == "against_rest"]
    assert [leaf.by_group[0].group for leaf in leaves] == [*"abc"]
    for leaf in leaves:
        group_value, rest_value = leaf.by_group
        assert group_value.n + rest_value.n == leaf.n == len(scores)
        assert leaf.value == pytest.approx(group_value.value - rest_value.value)
        assert leaf.low < leaf.value < leaf.high
        if not paired:
            of = groups == group_value.group
            assert leaf.value == pytest.approx(scores[of].mean() - scores[~of].mean(), abs=1e-9)
    two = similarity_gap(scores, np.where(groups == "c", "a", groups), resampling=FEW)
    assert not any(part.aggregate == "against_rest" for part in two.parts)


def test_images_without_a_unit_are_resampled_with_their_set():
    scores, groups, sets = world(3)
    alone = normalized_similarity_mad(scores, groups, sets=sets, resampling=FEW)
    none = [None] * len(scores)
    unnamed = normalized_similarity_mad(scores, groups, sets=sets, units=none, resampling=FEW)
    assert unnamed.interval().high == alone.interval().high
