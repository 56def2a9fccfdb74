"""The ready configurations of published studies run as they are, with a small model named."""

import polars as pl
import pytest
import yaml

from audits.live_models.worlds import make
from equipoise import audits
from equipoise.cli.commands.new import new_command

REAL = "hf:openai/clip-vit-base-patch32"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Pictures with the columns that the studies ask for; both genders in each region."""
    root = tmp_path_factory.mktemp("studies") / "world"
    make(root)
    images = pl.read_csv(root / "images.csv").select(
        "image_id",
        "file",
        gender=pl.col("frame").replace_strict({"level": "Female", "upright": "Male"}),
        region=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("WE")).otherwise(pl.lit("EA")),
    )
    images.write_csv(root / "images.csv")
    (root / "pictures").rename(root / "images")
    return root


def run(study, world):
    path = world / f"{study}.yaml"
    new_command.callback(path, None, study, False)
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert values["models"] == {"clip": {"model": REAL}}
    values["models"]["clip"]["model"] = "hf:clip"
    values["resampling"] = {"replicates": 30, "permutations": 200}
    return audits.run(audits.parse_config(values), base=world)


def test_trends_by_region(world):
    found = run("trends-by-region", world)
    asked = {"trend", "gender_difference"}
    places = {(f.metric, f.version, f.subject) for f in found.findings if f.metric in asked}
    versions = ("default", "adjectives", "occupations")
    assert places == {(m, v, s) for m in asked for v in versions for s in ("", "EA", "WE")}
    assert found.tables["words"].num_rows == 30 * 2 * 2


def test_predicted_labels(world):
    found = run("predicted-labels", world)
    metrics = {finding.metric for finding in found.findings}
    assert {"predicted_label_weat", "label_concentration", "label_skewness"} <= metrics
