"""Worlds of calibration: exchangeable at strength 0, truth that grows, the same bytes again."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from tools.calibration.audits import exchanged
from tools.calibration.worlds import (
    POOLS,
    STRUCTURES,
    ConceptWorld,
    EmbeddingWorld,
    LabelWorld,
    PreferenceWorld,
    RankingWorld,
    SetWorld,
    WordWorld,
)

WORLDS = [
    *(
        partial(make, images=60, structure=kind)
        for make in (EmbeddingWorld, LabelWorld, WordWorld, ConceptWorld)
        for kind in STRUCTURES
    ),
    *(partial(RankingWorld, images=60, pools=kind) for kind in POOLS),
    partial(LabelWorld, images=60, planted="concentrate"),
    partial(ConceptWorld, images=60, planted="prevalence"),
    partial(ConceptWorld, images=60, planted="switching"),
    partial(SetWorld, images=60),
    partial(PreferenceWorld, subjects=60),
]
each_world = pytest.mark.parametrize("make", WORLDS, ids=repr)


def arrays(sample):
    return {name: np.asarray(value) for name, value in vars(sample).items() if value is not None}


@each_world
def test_same_seed_same_bytes_another_sample_another_draw(make):
    world = make(0.5)
    first, again = arrays(world.draw(3, 0)), arrays(world.draw(3, 0))
    other, seed = arrays(world.draw(3, 1)), arrays(world.draw(4, 0))
    assert all(first[key].tobytes() == again[key].tobytes() for key in first)
    assert any(first[key].tobytes() != other[key].tobytes() for key in first)
    assert any(first[key].tobytes() != seed[key].tobytes() for key in first)


@each_world
def test_strength_moves_only_the_planted_effect(make):
    none, full = (arrays(make(strength).draw(3, 0)) for strength in (0.0, 1.0))
    changed = {key for key in none if none[key].tobytes() != full[key].tobytes()}
    assert changed
    assert changed <= {"images", "label", "scores", "labels", "preference", "sets"}
    for key in ("group", "unit", "queries", "hypothesis", "region"):
        assert key not in changed


def test_groups_are_exchanged_whole_within_strata():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({
        "group": np.array([*"ab"])[np.arange(60) // 2 % 2],
        "person": np.arange(60) // 2,
        "place": np.arange(60) // 20,
    })  # fmt: skip
    dealt = exchanged("group", within=("place",), unit="person")(table, rng)
    assert dealt.select("person", "place").equals(table.select("person", "place"))
    assert not dealt.equals(table)
    assert dealt.group_by("person").agg(pl.n_unique("group"))["group"].max() == 1
    for frame in (table, dealt):
        counts = frame.group_by("place").agg((pl.col("group") == "a").sum()).sort("place")
        assert counts["group"].to_list() == [10, 10, 10]
