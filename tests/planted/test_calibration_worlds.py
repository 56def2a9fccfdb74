"""Worlds of calibration: exchangeable at strength 0, truth that grows, the same bytes again."""

from dataclasses import fields

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

WORLDS = {
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


def arrays(sample):
    values = {field.name: getattr(sample, field.name) for field in fields(sample)}
    return {name: np.asarray(value) for name, value in values.items() if value is not None}


@pytest.mark.parametrize("name", WORLDS)
def test_same_seed_same_bytes_another_sample_another_draw(name):
    world = WORLDS[name](0.5)
    first, again = arrays(world.draw(3, 0)), arrays(world.draw(3, 0))
    other, seed = arrays(world.draw(3, 1)), arrays(world.draw(4, 0))
    assert all(first[key].tobytes() == again[key].tobytes() for key in first)
    assert any(first[key].tobytes() != other[key].tobytes() for key in first)
    assert any(first[key].tobytes() != seed[key].tobytes() for key in first)


@pytest.mark.parametrize("name", WORLDS)
def test_strength_moves_what_is_planted_and_nothing_else(name):
    none, full = (arrays(WORLDS[name](strength).draw(3, 0)) for strength in (0.0, 1.0))
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
    for told in (table, dealt):
        counts = told.group_by("place").agg((pl.col("group") == "a").sum()).sort("place")
        assert counts["group"].to_list() == [10, 10, 10]
