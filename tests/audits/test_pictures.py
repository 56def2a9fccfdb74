"""Pictures of leading findings: which images, how many, drawn how, and blurred on request."""

import base64
import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise import audits
from equipoise.audits.labels.predictions.page import PAGE
from equipoise.core import ConfigError, DataError
from equipoise.core.finding import findings_to_table
from equipoise.report import render

FACE = Path(mpl.get_data_path()) / "sample_data" / "grace_hopper.jpg"
N = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of two groups, one of which a model gets wrong in half of all images."""
    folder = tmp_path_factory.mktemp("images")
    ids = [f"{place:03d}" for place in range(N)]
    for place, name in enumerate(ids):
        shade = np.full((60, 80, 3), place, np.uint8)
        shade[:, :40] = 255 - place
        Image.fromarray(shade).save(folder / f"{name}.png")
    group = ["a", "b"] * (N // 2)
    label = ["cat", "cat", "dog", "dog"] * (N // 4)
    other = {"cat": "dog", "dog": "cat"}
    predicted = [
        other[truth] if mine == "a" and place % 8 < 4 else truth
        for place, (mine, truth) in enumerate(zip(group, label, strict=True))
    ]
    files = [f"{name}.png" for name in ids]
    table = {"image_id": ids, "file": files, "group": group, "label": label, "said": predicted}
    pl.DataFrame(table).write_csv(folder / "labels.csv")
    return folder


def audited(folder, **report):
    values = {
        "audit": "predictions",
        "data": {"images": {"table": "labels.csv", "id": "image_id", "path": "file"},
                 "target": "label", "groups": ["group"]},
        "models": {"m": {"table": "labels.csv", "prediction": "said"}},
        "resampling": {"replicates": 20, "permutations": 99, "seed": 3},
        "report": report,
    }  # fmt: skip
    return audits.run(audits.parse_config(values), base=folder)


def pictures(result):
    return pl.DataFrame(result.tables["gallery"])


def decoded(image):
    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))


def test_wrong_images_of_the_group_that_is_worst_off_are_shown(folder):
    table = pictures(audited(folder))
    labels = pl.read_csv(folder / "labels.csv", schema_overrides={"image_id": pl.String})
    wrong = labels.filter(pl.col("label") != pl.col("said"))["image_id"]
    worst = table.filter(pl.col("group").str.starts_with("a:"))
    assert set(worst["image_id"]) <= {*wrong}
    assert worst.height == 6
    assert worst["group"][0] == (
        f"a: 6 of {len(wrong)} images that m gets wrong, drawn at random with seed 3"
    )
    assert {*worst["caption"]} <= {"cat, predicted dog", "dog, predicted cat"}
    assert worst["section"][0].startswith("m is right for 50.0")
    best = table.filter(pl.col("group").str.starts_with("b:"))
    assert best.height == 6
    assert best["group"][0].startswith("b: 6 of 100 images, drawn")


def test_a_missing_answer_shows_the_images_without_one(folder):
    table = pl.read_csv(folder / "labels.csv", schema_overrides={"image_id": pl.String})
    refused = (pl.col("group") == "a") & (pl.int_range(pl.len()) % 8 < 4)
    table = table.with_columns(said=pl.when(refused).then(pl.lit("no")).otherwise("label"))
    values = {
        "audit": "answers",
        "data": {"images": {"table": "labels.csv", "id": "image_id", "path": "file"},
                 "groups": ["group"]},
        "models": {"m": {"table": table, "answer": "said", "refused": ["no"]}},
        "resampling": {"replicates": 20, "permutations": 99, "seed": 3},
    }  # fmt: skip
    shown = pictures(audits.run(audits.parse_config(values), base=folder))
    worst = shown.filter(pl.col("group").str.starts_with("a:"))
    without = {*table.filter(refused)["image_id"]}
    assert worst["group"][0] == (
        f"a: 6 of {len(without)} images without an answer, drawn at random with seed 3"
    )
    assert {*worst["image_id"][:6]} <= without


def test_the_draw_is_the_same_each_time_and_as_many_as_asked(folder):
    first, again = (pictures(audited(folder)) for _ in range(2))
    assert first.equals(again)
    assert pictures(audited(folder, images=2)).height == 4
    assert "gallery" not in audited(folder, images=0).tables


def test_numbers_do_not_depend_on_pictures(folder, tmp_path):
    with_pictures = audited(folder)
    labels = tmp_path / "labels.csv"
    labels.write_bytes((folder / "labels.csv").read_bytes())
    without = audited(tmp_path)
    assert "gallery" not in without.tables
    tables = [
        pl.DataFrame(findings_to_table(result.findings)) for result in (without, with_pictures)
    ]
    assert tables[0].equals(tables[1])


def test_the_page_has_them_within_two_megabytes(folder):
    page = render(audited(folder), PAGE)
    encoded = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)"', page)
    assert len(encoded) == 12
    assert sum(map(len, encoded)) < 2_000_000
    assert '<a href="#gallery">Pictures</a>' in page
    assert all(max(decoded(base64.b64decode(image)).shape) <= 144 for image in encoded)


def test_all_pictures_are_blurred(folder):
    plain, hidden = pictures(audited(folder)), pictures(audited(folder, blur="all"))
    for before, after in zip(plain["image"], hidden["image"], strict=True):
        assert decoded(before).shape == decoded(after).shape
    page = render(audited(folder, blur="all"), PAGE)
    assert "Every picture is blurred." in page


def test_faces_are_blurred_and_pictures_without_one_are_blurred_whole(folder, tmp_path):
    labels = pl.read_csv(folder / "labels.csv", schema_overrides={"image_id": pl.String})
    labels.write_csv(tmp_path / "labels.csv")
    photograph = Image.open(FACE).convert("RGB").resize((256, 300))
    noise = np.random.default_rng(0).integers(0, 255, (30, 40, 3), np.uint8)
    for place, name in enumerate(labels["file"]):
        picture = photograph if place % 2 == 0 else Image.fromarray(noise).resize((256, 300))
        picture.save(tmp_path / name)
    plain, hidden = (pictures(audited(tmp_path, **options)) for options in ({}, {"blur": "faces"}))
    for group, before, after in zip(plain["group"], plain["image"], hidden["image"], strict=True):
        change = np.abs(decoded(before).astype(int) - decoded(after)).mean(axis=2)
        height, width = change.shape
        # Her eyes and mouth lie around the middle of the upper half of the photograph.
        eyes = change[int(0.3 * height) : int(0.4 * height), int(0.45 * width) : int(0.6 * width)]
        corner = change[-height // 10 :, : width // 10]
        assert eyes.mean() > 5
        assert (corner.mean() > 5) == group.startswith("b:")


@pytest.mark.parametrize("report", [{"images": -1}, {"blur": "eyes"}, {"images": 13}])
def test_other_values_are_refused(report):
    values = {"audit": "predictions", "report": report}
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values)
    assert f"report.{next(iter(report))}" in str(error.value)


def test_rows_that_fit_nothing_name_the_values_of_the_column(tmp_path):
    table = pl.DataFrame({"id": ["a", "b"], "theme": ["jobs", "crime"], "group": ["x", "y"]})
    values = {
        "audit": "answers",
        "data": {"table": table, "id": "id", "groups": ["group"], "where": {"theme": ["job"]}},
        "models": {"m": {"table": table, "answer": "group"}},
    }  # fmt: skip
    with pytest.raises(DataError, match="'theme' has the values 'crime', 'jobs'"):
        audits.run(audits.parse_config(values))
