"""Systematic preference: its definition, both nulls, its intervals and its limits."""

import numpy as np
import pytest

from equipoise.metrics import cosine_scores, preference_strength, systematic_preference
from equipoise.stats import Bootstrap, Permutation

FEW = Bootstrap(100, 100, resolution=0.05)


def world(seed, subjects=20, images=160, *, shared=0.0, own_bias=0.0, shift=0.0):
    """Scores of every image for every subject, and groups; `shift` favours the second group."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(images) % 2)
    noise = np.sqrt(1 - shared) * rng.standard_normal((subjects, images))
    liked = shift + own_bias * rng.standard_normal((subjects, 1))
    return np.sqrt(shared) * rng.standard_normal(images) + noise + liked * group, group


def blocks(seed, n_blocks, *, likeness=0.9, images=160):
    """Vectors of blocks of four queries, and of images."""
    rng = np.random.default_rng(seed)
    texts = np.sqrt(likeness) * np.repeat(rng.standard_normal((n_blocks, 64)), 4, axis=0)
    texts += np.sqrt(1 - likeness) * rng.standard_normal(texts.shape)
    return texts, rng.standard_normal((images, 64)), np.arange(images) % 2


def groups_of(estimate):
    return [part for part in estimate.parts if part.metric == "systematic_preference"]


def test_it_is_the_mean_over_subjects_of_the_mean_over_their_queries():
    scores, group = world(0, 9)
    subjects = np.repeat(np.arange(6), [1, 1, 1, 1, 2, 3])
    estimate = systematic_preference(scores, group, k=10, subjects=subjects, resampling=FEW)
    top = group[np.argsort(-scores, axis=1)[:, :10]].mean(axis=1) - group.mean()
    by_subject = [top[subjects == subject].mean() for subject in range(6)]
    first, second = groups_of(estimate)
    assert second.value == pytest.approx(np.mean(by_subject))
    assert (first.value, estimate.value) == (-second.value, abs(second.value))
    # Of two groups all three are one fact.
    assert first.p_value == second.p_value == estimate.p_value
    strength = {
        part.subject: part for part in estimate.parts if part.metric == "preference_strength"
    }
    assert strength[""].value == pytest.approx(np.mean(np.abs(by_subject)))
    assert strength["3"].by_group[1].value == pytest.approx(by_subject[3])
    alone = preference_strength(scores, group, k=10, subjects=subjects, resampling=FEW)
    part = strength[""]
    numbers = (alone.value, alone.chance.mean, alone.chance.high, alone.p_value)
    assert numbers == (part.value, part.chance, part.chance_high, part.p_value)
    assert [other.value for other in alone.parts] == [
        other.value for name, other in strength.items() if name
    ]


def test_too_few_subjects_or_groups_are_not_estimable():
    scores, group = world(0, 5)
    for estimate in (
        systematic_preference(scores, group, k=10, resampling=FEW),
        systematic_preference(scores[0], group, k=10, resampling=FEW),
        systematic_preference(np.tile(scores, (2, 1)), group * 0, k=10, resampling=FEW),
    ):
        assert np.isnan(estimate.value)
        assert estimate.reason
        assert estimate.p_value is None


@pytest.mark.parametrize("options", [{"shared": 0.3}, {"own_bias": 0.6}])
def test_neither_shared_images_nor_preferences_of_single_queries_are_systematic(options):
    p, low, high = [], [], []
    for seed in range(60):
        estimate = systematic_preference(*world(seed, **options), k=16, resampling=FEW, rng=seed)
        p.append(estimate.p_value)
        low.append(groups_of(estimate)[1].low)
        high.append(groups_of(estimate)[1].high)
    assert np.mean(np.array(p) <= 0.05) <= 0.12
    assert np.mean((np.array(low) <= 0) & (np.array(high) >= 0)) >= 0.92


@pytest.mark.parametrize(("groups", "liked"), [(6, 2.0), (3, 2.0), (6, 1.0)])
def test_favourites_of_single_subjects_are_not_systematic(groups, liked):
    """Of many groups, one that is nobody's favourite looks avoided by all."""
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group = np.arange(120) % groups
        favourite = rng.integers(groups, size=(24, 1))
        scores = rng.standard_normal((24, 120)) + liked * (group == favourite)
        estimate = systematic_preference(scores, group, k=12, resampling=FEW, rng=seed)
        p.append([estimate.p_value, *(part.p_value for part in groups_of(estimate))])
    overall, *by_group = (np.array(p) <= 0.05).mean(axis=0)
    assert overall <= 0.12
    assert np.mean(by_group) <= 0.08


def test_a_group_that_all_subjects_avoid_is_found_beside_their_favourites():
    rng = np.random.default_rng(0)
    group = np.arange(240) % 6
    scores = rng.standard_normal((24, 240)) - 1.5 * (group == 0)
    scores += group == rng.integers(1, 6, size=(24, 1))
    estimate = systematic_preference(scores, group, k=24, resampling=Permutation(999))
    p = [part.p_value for part in groups_of(estimate)]
    assert p[0] <= 0.01
    assert min(p[1:]) > 0.05
    assert estimate.p_value <= 0.01


def test_a_preference_on_the_whole_is_found():
    p = [
        systematic_preference(
            *world(seed, own_bias=0.3, shift=0.4), k=16, resampling=Permutation(99)
        )
        for seed in range(10)
    ]
    # Chance likeness of queries takes the power of one world in twenty.
    assert sorted(row.p_value for row in p)[-2] <= 0.05


def test_queries_that_rank_images_alike_count_as_one():
    texts, images, group = blocks(0, 7)
    names = [f"query {place:02}" for place in range(28)]
    order = np.random.default_rng(1).permutation(28)
    estimates = [
        systematic_preference(
            (texts @ images.T)[rows], group, k=16, queries=np.array(names)[rows], resampling=FEW
        )
        for rows in (np.arange(28), order)
    ]
    for estimate in estimates:
        assert estimate.params["independent_subjects"] == 7
        # As of any seven queries, chance likeness takes a little off.
        assert 6.3 <= estimate.params["effective_subjects"] <= 7
        assert estimate.params["subjects"] == 28
    assert estimates[0].value == pytest.approx(estimates[1].value)
    apart = systematic_preference(
        blocks(0, 7, likeness=0.0)[0] @ images.T, group, k=16, resampling=FEW
    )
    assert apart.params["independent_subjects"] == 28


def counted(seed, likeness):
    """Return how many clusters 28 queries have in blocks of four, and how many they count as."""
    texts, images, group = blocks(seed, 7, likeness=likeness)
    params = systematic_preference(texts @ images.T, group, k=16, resampling=None).params
    return params["independent_subjects"], params["effective_subjects"]


def test_queries_too_little_alike_for_a_cluster_count_as_fewer():
    """Likeness of independent queries is noise, which takes little off."""
    weak, independent = (
        np.mean([counted(seed, likeness) for seed in range(8)], axis=0) for likeness in (0.3, 0.0)
    )
    assert weak[0] > 20
    assert weak[1] < 0.75 * weak[0]
    assert independent[0] > 26
    assert independent[1] > 0.85 * independent[0]


def test_fewer_than_six_queries_that_differ_are_not_estimable():
    texts, images, group = blocks(0, 5)
    estimate = systematic_preference(texts @ images.T, group, k=16, resampling=FEW)
    assert np.isnan(estimate.value)
    assert np.isnan(estimate.interval().low)
    assert estimate.p_value is None


def test_paraphrases_of_a_single_prompt_are_no_independent_queries():
    texts, images, group = blocks(0, 1, likeness=0.0)
    same = np.repeat(texts[:1], 12, axis=0)
    same = same + 0.1 * np.random.default_rng(2).standard_normal(same.shape)
    estimate = systematic_preference(same @ images.T, group, k=16, resampling=FEW)
    assert estimate.params["independent_subjects"] == 1


def test_a_preference_for_a_group_alone_makes_no_queries_alike():
    scores, group = world(0, 24, own_bias=2.0)
    estimate = systematic_preference(scores, group, k=16, resampling=FEW)
    assert estimate.params["independent_subjects"] == 24


def test_vectors_say_which_queries_with_images_of_their_own_are_alike():
    texts, images, group = blocks(0, 6, images=24 * 40)
    names = [f"query {place:02}" for place in range(24)]
    scores = cosine_scores(images, texts, names=names)
    estimate = systematic_preference(
        scores, group, k=8, queries=np.repeat(names, 40), resampling=FEW
    )
    assert estimate.params["independent_subjects"] == 6


def test_a_model_without_a_preference_on_the_whole_is_said_to_have_little():
    """Its interval is that of the mean over queries: the pool moves with its images."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.arange(400) % 2)
    estimate = systematic_preference(
        rng.standard_normal((100, 400)), group, k=40, resampling=Bootstrap(200, 20, resolution=1.0)
    )
    assert estimate.interval().high < 0.05
