"""The audit of activations on maps from files: planted gaps are found; bad input is refused."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.audits import parse_config
from equipoise.core import ConfigError, DataError, Family, Verdict

N = 80


def table(**more):
    """Images of 100 x 100 pixels with one box of a tenth each, anywhere."""
    rng = np.random.default_rng(0)
    left_edges, top = rng.integers(0, 70, (2, N))
    columns = {
        "image": [f"i{k:02d}" for k in range(N)],
        "gender": ["man", "woman"] * (N // 2),
        "l": left_edges, "t": top, "r": left_edges + 30, "b": top + 30,
    }  # fmt: skip
    return pl.DataFrame({**columns, **more})


def maps(*, men=4.0, women=4.0):
    """Return maps of 10 x 10 cells that follow the box with the given strength."""
    cells, images = np.random.default_rng(1).random((N, 10, 10)), table()
    for row, (left_edge, top) in enumerate(zip(images["l"], images["t"], strict=True)):
        strength = women if row % 2 else men
        cells[row, top // 10 : top // 10 + 3, left_edge // 10 : left_edge // 10 + 3] += strength
    return cells.reshape(N, -1)


FRAMES = np.tile([0.0, 0.0, 100.0, 100.0], (N, 1))
REGION = {"left": "l", "top": "t", "right": "r", "bottom": "b"}


def values(**changes):
    config = {
        "audit": "activations",
        "data": {
            "images": {"table": table(), "id": "image"},
            "groups": ["gender"],
            "regions": {"face": REGION},
        },
        "models": {"ours": {"maps": {"file": maps(women=0.5)}, "frames": {"file": FRAMES}}},
        "resampling": {"replicates": 200},
    }
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(config.get(key), dict) else value
    return config


def run(**changes):
    return audits.run(parse_config(values(**changes)))


def test_a_model_with_more_activation_on_the_region_of_a_group_is_a_disparity():
    result = run()
    share, gap, beyond = result.findings
    assert (gap.metric, gap.aggregate, gap.subject, gap.groups) == (
        "activation_share",
        "difference",
        "face",
        "gender",
    )
    assert gap.verdict is Verdict.DISPARITY
    assert gap.family is Family.LEAF
    assert {estimate.group: estimate.n for estimate in gap.by_group} == {"man": 40, "woman": 40}
    assert share.family is Family.DESCRIPTIVE
    assert share.verdict is Verdict.NONE
    assert share.reason.startswith("where a model looks is no disparity in itself")
    assert (beyond.version, beyond.verdict) == ("beyond the area", Verdict.NONE)
    rows = {row["group"]: row for row in result.tables["activation_shares"].to_pylist()}
    assert rows["man"]["share"] - rows["woman"]["share"] == pytest.approx(gap.value)
    assert rows["man"]["low"] > rows["man"]["chance_high"] > rows["man"]["area"] - 0.05
    assert "gallery" not in result.tables


def test_images_without_a_share_are_noted():
    cells = maps(women=0.5)
    cells[0] = 0.0
    left_edges = table()["l"].cast(pl.Float64).to_list()
    left_edges[2] = None
    result = run(
        data={"images": {"table": table(l=left_edges), "id": "image"}, "unit": "gender"},
        models={"ours": {"maps": {"file": cells}, "frames": {"file": FRAMES}}},
    )
    notes = " ".join(result.manifest.notes)
    assert "(no region)" in notes
    assert "(no activation)" in notes
    assert result.findings[0].n == N - 2


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"models": {"ours": {}}}, "models.ours"),
        ({"models": {"ours": {"model": "hf:x/y", "maps": {"file": "a.npy"}}}}, "models.ours"),
        ({"models": {"ours": {"model": "hf:x/y"}}}, "models.ours.target"),
        ({"blur": "fase"}, "blur"),
    ],
)
def test_a_wrong_config_is_refused(changes, key):
    with pytest.raises(ConfigError) as caught:
        parse_config(values() | changes)
    assert str(caught.value).startswith(f"configuration: {key}:")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"data": {"images": {"table": table(l=["x"] * N), "id": "image"}}}, ("l", 1)),
        ({"data": {"images": {"table": table(r=[0] * N), "id": "image"}}}, ("l", 1)),
        ({"models": {"ours": {"maps": {"file": maps()[:, :99]}}}}, (None, None)),
        ({"data": {"min_group_size": 41}}, (None, None)),
    ],
)
def test_bad_data_are_refused(changes, place):
    for step in (audits.plan, audits.run):
        with pytest.raises(DataError) as caught:
            step(parse_config(values(**changes)))
        assert (caught.value.column, caught.value.row) == place
        assert caught.value.fix or caught.value.expected


def test_a_model_without_any_activation_is_skipped_and_listed():
    plain = values()
    (name, section), *_ = plain["models"].items()
    blank = {**section, "maps": {**section["maps"], "file": section["maps"]["file"] * 0}}
    config = audits.parse_config(plain | {"models": {name: section, "blank": blank}})
    for notes in (audits.plan(config).notes, audits.run(config).manifest.notes):
        assert any("blank" in note and "not measured" in note for note in notes)
    assert {finding.model for finding in audits.run(config).findings} == {name}
    alone = audits.parse_config(plain | {"models": {"blank": blank}})
    with pytest.raises(DataError):
        audits.run(alone)
