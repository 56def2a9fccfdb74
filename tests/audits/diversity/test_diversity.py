"""The audit of diversity: what was planted is found, and unusual input is told."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.examples import written_again
from equipoise import audits
from equipoise.core import AuditResult, ConfigError, DataError, Finding, Verdict
from equipoise.metrics import iss_cross, iss_difference, iss_intra

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "diversity"
REFERENCE = {"images": {"table": "t", "id": "i"}, "models": {"n": {"file": "f"}}}
COUNTS = {"north": 40, "south": 40, "west": 4}


def vectors(seed: int = 1, spread: float = 0.5) -> np.ndarray:
    """The south is more diverse."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((sum(COUNTS.values()), 6))
    noise[COUNTS["north"] :] *= 2.0
    return np.r_[2.0, np.zeros(5)] + spread * noise


def table() -> pl.DataFrame:
    regions = [name for name, n in COUNTS.items() for _ in range(n)]
    return pl.DataFrame(
        {
            "image": [f"i{k:03d}" for k in range(len(regions))],
            "region": regions,
            "query": ["a", "b"] * (len(regions) // 2),
        }
    )


def config(**changes: Any) -> audits.AuditConfig:
    values: dict[str, Any] = {
        "audit": "diversity",
        "data": {"images": {"table": table(), "id": "image"}, "sets": ["region"]},
        "models": {"m": {"file": vectors()}},
        "resampling": {"permutations": 200, "seed": 3},
    }
    for key, value in changes.items():
        values[key] = values.get(key, {}) | value if isinstance(value, dict) else value
    return audits.parse_config(values)


def run(**changes: Any) -> AuditResult:
    return audits.run(config(**changes))


def by_metric(result: AuditResult) -> dict[tuple[str, str], Finding]:
    return {(f.metric, f.subject): f for f in result.findings}


def test_findings_are_the_metrics_of_the_sets() -> None:
    found = by_metric(run())
    rows = vectors()
    sets = {"north": rows[:40], "south": rows[40:80]}
    assert found["iss_intra", "north"].value == iss_intra(sets["north"]).value
    assert found["iss_cross", ""].value == iss_cross(sets, resampling=None).value
    difference = iss_difference(sets)
    pair = found["iss_difference", "north − south"]
    assert (pair.value, pair.p_value) == (difference.value, difference.p_value)
    assert pair.verdict == Verdict.DISPARITY
    assert pair.direction == (
        f"images of north (ISS intra {sets_value(sets, 'north')}) are more alike than those of "
        f"south ({sets_value(sets, 'south')})"
    )


def sets_value(sets: dict[str, np.ndarray], name: str) -> str:
    return f"{iss_intra(sets[name]).value:.3f}"


def test_a_small_set_is_told_and_not_measured() -> None:
    result = run()
    west = by_metric(result)["iss_intra", "west"]
    assert west.verdict == Verdict.NOT_ESTIMABLE
    assert west.n == 4
    assert west.reason == "fewer than 10 images with an embedding"
    assert "m, region: too small to be measured: west (4)." in result.manifest.notes


def test_each_query_by_itself() -> None:
    result = run(
        data={
            "images": {"table": table(), "id": "image"}, "sets": ["region"], "within": "query",
        },
    )  # fmt: skip
    found = by_metric(result)
    rows, query = vectors()[:80], np.array(["a", "b"] * 40)
    north = rows[:40][query[:40] == "a"]
    assert found["iss_intra", "a: north"].value == iss_intra(north).value
    assert {s for m, s in found if m == "iss_cross"} == {"a", "b"}
    assert {row["within"] for row in result.tables["distances"].to_pylist()} == {"a", "b"}


def test_the_order_of_rows_decides_nothing() -> None:
    order = np.random.default_rng(5).permutation(84)
    shuffled = pl.DataFrame({"image": table()["image"].to_numpy()[order]}).with_columns(
        pl.Series("v", vectors()[order].tolist())
    )
    one = by_metric(run())
    other = by_metric(run(models={"m": {"file": shuffled, "id": "image", "column": "v"}}))
    for key, finding in one.items():
        assert other[key].value == pytest.approx(finding.value, abs=1e-12, nan_ok=True)
        assert other[key].verdict == finding.verdict


def test_embeddings_that_cannot_be_used_are_counted() -> None:
    rows = vectors()
    rows[3], rows[5, 2] = 0.0, np.nan
    notes = run(models={"m": {"file": rows}}).manifest.notes
    assert "m: 1 image has an embedding of zeros and is not used." in notes
    assert "m: 1 image has an embedding that is not finite and is not used." in notes
    assert "m: the embeddings are not of length 1; they are normalised." in notes


def test_normalised_embeddings_are_not_said_to_be_changed() -> None:
    rows = vectors()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    result = run(models={"m": {"file": rows.astype(np.float32)}})
    assert not [note for note in result.manifest.notes if "normalised" in note]


def test_images_without_a_set_are_counted() -> None:
    regions = table().with_columns(
        region=pl.when(pl.col("image") == "i000").then(None).otherwise(pl.col("region"))
    )
    result = run(data={"images": {"table": regions, "id": "image"}, "sets": ["region"]})
    assert "1 image has no region and is in no set of it." in result.manifest.notes
    assert by_metric(result)["iss_intra", "north"].n == 39


def test_a_reference_stands_beside_the_sets() -> None:
    near = vectors(9)[:30]
    names = pl.DataFrame({"image": [f"r{k}" for k in range(30)]})
    result = run(
        references={
            "stock": {"images": {"table": names, "id": "image"}, "models": {"m": {"file": near}}}
        }
    )
    found = by_metric(result)
    distance = found["mean_distance", "north × stock (reference)"]
    sets = {"a": vectors()[:40], "b": near}
    assert distance.value == pytest.approx(iss_cross(sets, resampling=None).value, rel=1e-12)
    assert distance.ci_low < distance.value < distance.ci_high
    assert distance.verdict == Verdict.NONE
    # The reference takes no part in what the sets are compared by.
    assert found["iss_cross", ""].value == by_metric(run())["iss_cross", ""].value
    assert "stock (reference)" in result.tables["distances"].column("set_a").to_pylist()


def test_a_reference_by_another_model_is_refused() -> None:
    names = pl.DataFrame({"image": ["r0", "r1"]})
    with pytest.raises(
        DataError, match=r"embeddings of 4 numbers, and .* has 6\. Expected: embeddings of refere"
    ):
        run(
            references={
                "stock": {
                    "images": {"table": names, "id": "image"},
                    "models": {"m": {"file": np.ones((2, 4))}},
                }
            }
        )


@pytest.mark.parametrize("step", [audits.plan, audits.run])
def test_no_two_sets_of_the_size_asked_for(step: Any) -> None:
    images = {"table": table(), "id": "image"}
    with pytest.raises(DataError, match=r"no choice of sets leaves two with 41 images"):
        step(config(data={"images": images, "sets": ["region"], "min_set_size": 41}))


def test_a_subset_lists_images_of_the_set() -> None:
    result = run(metrics={"subset": 3})
    rows = result.tables["subsets"].to_pylist()
    assert [row["rank"] for row in rows if row["set"] == "north"] == [1, 2, 3]
    assert all(int(row["image_id"][1:]) < 40 for row in rows if row["set"] == "north")


def test_components_are_projected_on_before() -> None:
    result = run(metrics={"components": 2})
    found = by_metric(result)
    rows = vectors()
    sets = {"north": rows[:40], "south": rows[40:80]}
    expected = iss_cross(sets, components=2, resampling=None).value
    assert found["iss_cross", ""].value == pytest.approx(expected, rel=1e-12)
    assert '"components": 2' in found["iss_cross", ""].parameters
    # One number, wherever it stands.
    pair = found["iss_difference", "north − south"]
    matrix = {(r["set_a"], r["set_b"]): r for r in result.tables["distances"].to_pylist()}
    for group in pair.by_group:
        alone = found["iss_intra", group.group].value
        assert alone == pytest.approx(group.value, rel=1e-12)
        assert alone == pytest.approx(matrix[group.group, group.group]["distance"], rel=1e-12)


def test_without_resampling_values_alone() -> None:
    result = run(resampling={"method": "none", "permutations": None})
    assert all(np.isnan(f.p_value) for f in result.findings)
    assert by_metric(result)["iss_intra", "north"].value > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": {"images": {"table": "t", "id": "i"}, "sets": ["r"], "within": "r"}},
            "configuration: data: within: 'r' is one of sets r",
        ),
        (
            {"references": {"s": REFERENCE}},
            "configuration: references.s.models: given 'n'. Allowed: m",
        ),
        (
            {"gate": [{"metric": "iss_cross", "max": 0.5, "groups": "county"}]},
            "configuration: gate[0].groups: given 'county'. Allowed: region",
        ),
        (
            {"gate": [{"metric": "accuracy", "max": 0.5}]},
            "configuration: gate[0]: 'accuracy' is not measured by audits of diversity. "
            "Allowed: iss_intra, iss_cross, iss_difference, mean_distance",
        ),
        (
            {"testing": {"thresholds": {"accuracy": 0.5}}},
            "configuration: testing.thresholds: 'accuracy' is not measured by audits of "
            "diversity. Allowed: iss_intra, iss_cross, iss_difference, mean_distance",
        ),
        (
            {"models": {"m": {"file": "f.npy", "id": "i", "ids": "j.txt"}}},
            "configuration: models.m: id and ids both say where the ids are; give one of them",
        ),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        config(**changes)


def test_the_plan_says_what_is_measured() -> None:
    planned = audits.plan(config())
    assert planned.images == 84
    assert planned.sets == [
        {"model": "m", "groups": "region", "within": "", "sets": 2, "smallest": 40, "too_small": 1}
    ]
    assert planned.tests == 2


def test_the_example_finds_what_its_script_plants() -> None:
    config = audits.load_config(EXAMPLE / "audit.yaml")
    found = by_metric(audits.run(config, base=EXAMPLE))
    for other in ("India", "Nigeria"):
        alike = found["iss_difference", f"wedding: {other} − United States"]
        assert alike.verdict == Verdict.DISPARITY
        assert alike.direction.startswith("images of United States")
    street = [f for (metric, subject), f in found.items() if subject.startswith("street")]
    assert not [f for f in street if f.verdict == Verdict.DISPARITY]


def test_the_examples_data_are_what_its_script_writes(tmp_path: Path) -> None:
    names = ["embeddings.npy", "images.csv", "stock.csv", "stock.npy"]
    assert written_again(EXAMPLE, tmp_path) == names


def test_values_with_commas_make_no_set_of_two() -> None:
    named = table().with_columns(
        a=pl.Series(["a, b"] * 42 + ["a"] * 42), b=pl.Series(["c"] * 42 + ["b, c"] * 42)
    )
    result = run(data={"images": {"table": named, "id": "image"}, "sets": [["a", "b"]]})
    sets = {f.subject for f in result.findings if f.metric == "iss_intra"}
    assert len(sets) == 2


def test_images_that_are_all_alike_are_a_tie() -> None:
    result = run(models={"m": {"file": np.ones((84, 6))}})
    cross = by_metric(result)["iss_cross", ""]
    assert cross.p_value == 1.0
    assert cross.verdict != Verdict.DISPARITY
