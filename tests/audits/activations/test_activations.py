"""The audit of activations on maps made elsewhere: what was planted is found, the unusual told."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.examples import written_again
from equipoise import audits
from equipoise.audits.config import parse_config
from equipoise.core import AuditResult, ConfigError, DataError, Verdict
from equipoise.core.finding import Family

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "activations"
N = 80


def table(**more: Any) -> pl.DataFrame:
    """Images of 100 x 100 pixels with one box of a tenth each, anywhere."""
    rng = np.random.default_rng(0)
    left, top = rng.integers(0, 70, (2, N))
    columns = {
        "image": [f"i{k:02d}" for k in range(N)],
        "gender": ["man", "woman"] * (N // 2),
        "l": left, "t": top, "r": left + 30, "b": top + 30,
    }  # fmt: skip
    return pl.DataFrame({**columns, **more})


def maps(*, men: float = 4.0, women: float = 4.0) -> np.ndarray:
    """Maps of 10 x 10 cells that follow the box as strongly as is said."""
    found, images = np.random.default_rng(1).random((N, 10, 10)), table()
    for row, (left, top) in enumerate(zip(images["l"], images["t"], strict=True)):
        strength = women if row % 2 else men
        found[row, top // 10 : top // 10 + 3, left // 10 : left // 10 + 3] += strength
    return found.reshape(N, -1)


FRAMES = np.tile([0.0, 0.0, 100.0, 100.0], (N, 1))
REGION = {"left": "l", "top": "t", "right": "r", "bottom": "b"}


def values(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
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
        found[key] = {**found[key], **value} if isinstance(found.get(key), dict) else value
    return found


def run(**changes: Any) -> AuditResult:
    return audits.run(parse_config(values(**changes)))


@pytest.mark.parametrize("step", [audits.plan, audits.run])
def test_a_plan_refuses_the_groups_that_its_audit_refuses(step: Any) -> None:
    message = (
        r"ours, face: fewer than two groups of gender have 41 or more images with a region and a "
        r"map \(man: 40, woman: 40\)\. Expected: at least two groups of that size\. To do: choose "
        r"other groups, or lower data\.min_group_size\.$"
    )
    with pytest.raises(DataError, match=message):
        step(parse_config(values(data={"min_group_size": 41})))


def test_a_model_that_looks_at_one_groups_region_is_found() -> None:
    result = run()
    share, gap, beyond = result.findings
    assert (gap.metric, gap.subject, gap.groups) == ("activation_share_gap", "face", "gender")
    assert gap.verdict is Verdict.DISPARITY
    assert gap.family is Family.LEAF
    assert gap.direction == (
        "share of the map: lowest for woman (14.5\u00a0%), highest for man (34.8\u00a0%)"
    )
    assert {one.group: one.n for one in gap.by_group} == {"man": 40, "woman": 40}
    assert share.family is Family.DESCRIPTIVE
    assert share.verdict is Verdict.NONE
    assert share.reason.startswith("where a model looks is no disparity in itself")
    assert (beyond.version, beyond.verdict) == ("beyond the area", Verdict.NONE)
    rows = {row["group"]: row for row in result.tables["activation_shares"].to_pylist()}
    assert rows["man"]["share"] - rows["woman"]["share"] == pytest.approx(gap.value)
    assert rows["man"]["low"] > rows["man"]["chance_high"] > rows["man"]["area"] - 0.05
    assert "gallery" not in result.tables


def test_a_model_that_looks_alike_has_no_disparity() -> None:
    alike = {"models": {"ours": {"maps": {"file": maps()}, "frames": {"file": FRAMES}}}}
    gap = run(**alike).findings[1]
    assert gap.verdict is Verdict.BELOW_THRESHOLD


def test_boxes_are_shares_of_the_map_without_frames() -> None:
    shares = table().with_columns((pl.col(name) / 100).alias(name) for name in "ltrb")
    there = run(
        models={"ours": {"maps": {"file": maps(women=0.5)}}},
        data={"images": {"table": shares, "id": "image"}},
    )
    assert [one.value for one in there.findings] == [one.value for one in run().findings]


def test_images_without_a_share_are_told() -> None:
    cells = maps(women=0.5)
    cells[0] = 0.0
    left = table()["l"].cast(pl.Float64).to_list()
    left[2] = None
    result = run(
        data={"images": {"table": table(l=left), "id": "image"}, "unit": "gender"},
        models={"ours": {"maps": {"file": cells}, "frames": {"file": FRAMES}}},
    )
    notes = " ".join(result.manifest.notes)
    assert "ours, face: 1 images have no share (no region)." in notes
    assert "ours, face: 1 images have no share (no activation)." in notes
    assert result.findings[0].n == N - 2


def test_regions_of_unequal_area_are_told() -> None:
    wide = table()["r"].to_list()
    wide = [min(100, right + 40 * (row % 2)) for row, right in enumerate(wide)]
    result = run(data={"images": {"table": table(r=wide), "id": "image"}})
    assert any("so more of any map lies in it" in note for note in result.manifest.notes)


def test_a_plan_counts_what_would_be_compared() -> None:
    planned = audits.plan(parse_config(values()))
    assert planned.tests == 1
    assert planned.models == [
        {"model": "ours", "with_map": N, "without": 0, "rows": 10, "columns": 10}
    ]
    (one,) = planned.comparisons
    assert one["compared"] == 2
    assert one["smallest_groups"] == [40, 40]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": {"ours": {}}}, r"models\.ours: 'maps' is missing\. To do: name the file of"),
        (
            {"models": {"ours": {"model": "hf:x/y", "maps": {"file": "a.npy"}}}},
            r"models\.ours: 'model' and 'maps' are given; expected",
        ),
        (
            {"models": {"ours": {"maps": {"file": "a.npy"}, "layer": "x"}}},
            r"models\.ours: 'layer' is about a model to run, and no 'model' is given",
        ),
        (
            {"models": {"ours": {"model": "hf:x/y"}}},
            r"models\.ours\.target: required, and missing: what the model is asked for",
        ),
        (
            {"models": {"ours": {"maps": {"file": "a.npy"}, "grid": [0, 4]}}},
            r"'grid' is \[0, 4\]; expected rows and columns, 1 or more",
        ),
        ({"gate": [{"metric": "activation_share_gap", "max": 0.1, "model": "theirs"}]},
         r"gate\[0\]\.model: given 'theirs'\. Allowed: ours"),
    ],
)  # fmt: skip
def test_configurations_are_checked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(values() | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": {"images": {"table": table(l=["x"] * N), "id": "image"}}},
            r"column 'l', row 1: 'x' is no number\. Expected: the edge of a box in pixels",
        ),
        (
            {"data": {"images": {"table": table(r=[0] * N), "id": "image"}}},
            r"column 'l', row 1: the box ends before it begins\. Expected: left < right",
        ),
        (
            {"data": {"min_group_size": 41}},
            r"ours, face: fewer than two groups of gender have 41 or more images with a region",
        ),
        (
            {"models": {"ours": {"maps": {"file": maps()[:, :99]}}}},
            r"maps of 99 cells, which are no 9 × 9\. To do: give their rows and columns as 'grid'",
        ),
        (
            {"models": {"ours": {"maps": {"file": maps()}, "frames": {"file": FRAMES[:, :3]}}}},
            r"frames of 3 numbers, and 0 images with a map and none\. Expected: left, top, right",
        ),
        (
            {"models": {"ours": {"maps": {"file": maps()}, "overlays": "none.parquet"}}},
            r"none\.parquet: it cannot be read\. Expected: a Parquet file",
        ),
    ],
)
def test_data_are_checked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blur": "fase"}, r"blur: given 'fase'\. Allowed: face; did you mean 'face'"),
        ({"blur": ["face", "face"]}, r"blur: 'face' appears more than once"),
        ({"blur": True}, r"blur: given True; expected 'all', or a list of names of data\.regions"),
        (
            {
                "blur": "all",
                "models": {"ours": {"maps": {"file": maps()}, "overlays": "o.parquet"}},
            },
            r"models\.ours\.overlays: pictures made elsewhere are shown as they are, and 'blur' is "
            r"given\. To do: blur them where they are made, or leave one out",
        ),
    ],
)
def test_what_cannot_be_blurred_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(**changes)


def test_the_example_is_what_its_script_makes(tmp_path: Path) -> None:
    names = ["frames.npy", "images.csv", "inspector.npy", "recruiter.npy"]
    assert written_again(EXAMPLE, tmp_path) == names
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 200_000
