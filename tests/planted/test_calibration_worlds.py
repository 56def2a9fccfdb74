"""Worlds of calibration: exchangeable at strength 0, truth that grows, the same bytes again."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.planted.calibration import (
    ConceptWorld,
    EmbeddingWorld,
    LabelWorld,
    PreferenceWorld,
    RankingWorld,
    SetWorld,
    WordWorld,
)
from equipoise.planted.calibration.embeddings import SPREAD
from equipoise.planted.calibration.rankings import POOLS
from equipoise.planted.calibration.repeats import STRUCTURES, Layout
from equipoise.stats.streams import stream

World = Callable[[float], Any]

WORLDS: dict[str, World] = {
    **{
        f"{make.__name__} {kind}": lambda strength, make=make, kind=kind: make(strength, 60, kind)
        for make in (EmbeddingWorld, LabelWorld, WordWorld, ConceptWorld)
        for kind in STRUCTURES
    },
    **{
        f"rankings {kind}": lambda strength, kind=kind: RankingWorld(strength, 60, kind)
        for kind in POOLS
    },
    "concentrate": lambda strength: LabelWorld(strength, 60, planted="concentrate"),
    "prevalence": lambda strength: ConceptWorld(strength, 60, planted="prevalence"),
    "switching": lambda strength: ConceptWorld(strength, 60, planted="switching"),
    "sets": lambda strength: SetWorld(strength, 60),
    "preferences": lambda strength: PreferenceWorld(strength, 60),
}


def arrays(sample: Any) -> dict[str, np.ndarray]:
    values = {field.name: getattr(sample, field.name) for field in fields(sample)}
    return {name: np.asarray(value) for name, value in values.items() if value is not None}


@pytest.mark.parametrize("name", WORLDS)
def test_same_seed_same_bytes_another_sample_another_draw(name: str) -> None:
    world = WORLDS[name](0.5)
    first, again = arrays(world.draw(3, 0)), arrays(world.draw(3, 0))
    other, seed = arrays(world.draw(3, 1)), arrays(world.draw(4, 0))
    assert all(first[key].tobytes() == again[key].tobytes() for key in first)
    assert any(first[key].tobytes() != other[key].tobytes() for key in first)
    assert any(first[key].tobytes() != seed[key].tobytes() for key in first)


@pytest.mark.parametrize("name", WORLDS)
def test_strength_moves_what_is_planted_and_nothing_else(name: str) -> None:
    none, full = (arrays(WORLDS[name](strength).draw(3, 0)) for strength in (0.0, 1.0))
    changed = {key for key in none if none[key].tobytes() != full[key].tobytes()}
    assert changed
    assert changed <= {"images", "label", "scores", "labels", "preference", "sets"}
    for key in ("group", "unit", "queries", "hypothesis", "region"):
        assert key not in changed


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
@pytest.mark.parametrize("name", WORLDS)
def test_a_strength_outside_its_range_is_refused(name: str, strength: float) -> None:
    message = f"^strength={strength}: expected a strength of bias between 0 and 1$"
    with pytest.raises(InputError, match=message):
        WORLDS[name](strength)


def relabelled(layout: Layout, group: np.ndarray) -> Layout:
    return Layout(group, layout.unit, layout.shared)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_noise_does_not_know_the_groups(structure: str) -> None:
    layout = Layout.of(structure, 60, 2, stream(1, "layout"))
    other = relabelled(layout, 1 - layout.group)
    for draw in ("uniforms", "noise"):
        args = (2,) if draw == "noise" else ()
        first, second = (getattr(one, draw)(stream(1, "x"), *args) for one in (layout, other))
        np.testing.assert_array_equal(first, second)


def test_layouts_repeat_as_they_say() -> None:
    alone, persons, sets = (Layout.of(kind, 240, 2, stream(2, kind)) for kind in STRUCTURES)
    assert len(set(alone.unit)) == 240
    sizes = np.bincount(persons.unit)
    assert (sizes.min(), sizes.max()) == (2, 6)
    assert 180 <= len(persons.unit) <= 300
    assert all(len(set(persons.group[persons.unit == one])) == 1 for one in set(persons.unit))
    assert sorted(zip(sets.unit, sets.group, strict=True)) == [
        (unit, group) for unit in range(120) for group in (0, 1)
    ]


@pytest.mark.parametrize(("structure", "shared"), [("clustered", 0.7), ("sets", 0.9)])
def test_images_of_a_unit_are_alike_and_of_unit_variance(structure: str, shared: float) -> None:
    layout = Layout.of(structure, 4000, 2, stream(3, structure))
    noise = layout.noise(stream(4, structure), 8)
    first = np.unique(layout.unit, return_index=True)[1]
    found = np.mean([np.corrcoef(noise[first, i], noise[first + 1, i])[0, 1] for i in range(8)])
    assert abs(found - shared) < 0.02
    assert abs(noise.std() - 1.0) < 0.02


@pytest.mark.parametrize("structure", STRUCTURES)
def test_without_bias_a_group_lies_ahead_half_of_the_time(structure: str) -> None:
    ahead = [
        np.subtract(*(data.of(group)[:, 1].mean() for group in (0, 1))) > 0
        for data in (EmbeddingWorld(0.0, 40, structure).draw(5, one) for one in range(400))
    ]
    # Three standard errors of a share of 400.
    assert abs(np.mean(ahead) - 0.5) < 0.075


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_images_differ_by_the_truth(strength: float) -> None:
    world = EmbeddingWorld(strength, 20_000)
    data = world.draw(6, 0)
    found = data.of(0).mean(axis=0) - data.of(1).mean(axis=0)
    assert world.difference == pytest.approx(SPREAD * strength)
    assert found[1] == pytest.approx(world.difference, abs=0.002)
    assert np.abs(np.delete(found, 1)).max() < 0.002


def test_words_differ_by_the_truth_in_every_region() -> None:
    world = WordWorld(0.8, 30_000)
    data = world.draw(6, 0)
    sums = data.scores.sum(axis=1)
    for region in range(3):
        here = data.region == region
        means = [sums[here & (data.group == group)].mean() for group in (0, 1)]
        assert means[1] - means[0] == pytest.approx(world.difference, abs=0.005)


@pytest.mark.parametrize("planted", ["lean", "concentrate"])
def test_labels_have_the_shares_of_the_truth(planted: Any) -> None:
    world = LabelWorld(1.0, 40_000, planted=planted)
    data = world.draw(6, 0)
    lean = (data.embeddings[:, 1] - data.embeddings[:, 1].mean()) * 0.0
    alike = LabelWorld(0.0, 10, planted=planted).shares(lean)
    np.testing.assert_array_equal(alike[0], alike[1])
    counts = [
        [(data.label[data.group == g] == name).mean() for name in data.vocabulary] for g in (0, 1)
    ]
    common = np.sort(counts, axis=1)[:, -4:].sum(axis=1)
    if planted == "concentrate":
        expected = np.sort(world.shares(lean), axis=1)[:, -4:].sum(axis=1)
        np.testing.assert_allclose(common, expected, atol=0.01)
    else:
        leaning = np.subtract(*counts) @ data.embeddings[:, 1]
        assert leaning > 0.005


@pytest.mark.parametrize("pools", POOLS)
def test_a_ranking_puts_the_first_group_ahead_by_the_strength(pools: Any) -> None:
    data = RankingWorld(0.7, 6000, pools).draw(6, 0)
    first = data.group == 0
    gap = data.scores[..., first].mean() - data.scores[..., ~first].mean()
    assert gap == pytest.approx(0.7, abs=0.08)
    shares = np.bincount(data.group) / len(data.group)
    expected = [0.25] * 4 if pools == "sets" else [1 / 6, 1 / 6, 1 / 3, 1 / 3]
    np.testing.assert_allclose(shares, expected, atol=0.001)


def test_one_pool_has_ties_and_queries_that_rank_alike() -> None:
    scores = RankingWorld(0.0, 600, "shared pool").draw(6, 0).scores
    assert len(np.unique(scores[0])) < 100
    assert np.corrcoef(scores)[0, 1] == pytest.approx(0.5, abs=0.1)


def test_preferences_correlate_with_the_hypothesis_by_the_strength() -> None:
    for strength in (0.0, 0.4, 1.0):
        data = PreferenceWorld(strength, 20_000).draw(6, 0)
        found = np.corrcoef(data.preference, data.hypothesis)[0, 1]
        assert found == pytest.approx(strength, abs=0.02)


@pytest.mark.parametrize("planted", ["recognition", "prevalence", "switching"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_concepts_differ_by_the_truth(planted: Any, structure: Any) -> None:
    world = ConceptWorld(1.0, 16_000, structure, planted)
    data = world.draw(6, 0)
    for group, (share, above) in enumerate(zip(world.prevalences, world.recognition, strict=True)):
        labels, scores = data.labels[data.group == group], data.scores[data.group == group]
        assert labels.mean() == pytest.approx(share, abs=0.02)
        assert scores[labels].mean() - scores[~labels].mean() == pytest.approx(above, abs=0.08)


def test_concepts_are_alike_without_bias_and_differ_as_named() -> None:
    for planted in ("recognition", "prevalence", "switching"):
        none = ConceptWorld(0.0, 60, planted=planted)
        assert none.prevalences == (0.3, 0.3)
        assert none.recognition == (1.5, 1.5)
    assert ConceptWorld(1.0, 60, planted="prevalence").prevalences == pytest.approx((0.4, 0.2))
    assert ConceptWorld(1.0, 60, planted="prevalence").recognition == (1.5, 1.5)
    assert ConceptWorld(1.0, 60).prevalences == (0.3, 0.3)
    assert ConceptWorld(1.0, 60).recognition == pytest.approx((1.5, 0.7))
    switching = ConceptWorld(1.0, 60, planted="switching")
    assert switching.prevalences == pytest.approx((0.15, 0.45))
    assert switching.recognition == pytest.approx((1.5, 1.1))


def test_sets_move_apart_each_its_own_way() -> None:
    means = [one.mean(axis=0) for one in SetWorld(1.0, 30_000).draw(6, 0).sets]
    apart = np.array(means)[:, 1:4]
    np.testing.assert_allclose(apart, 0.25 * np.eye(3), atol=0.02)
