"""`faces`: the largest face of each image of a folder."""

import json
from pathlib import Path

import matplotlib as mpl
import polars as pl
import pytest
from PIL import Image

AUDIT = """\
audit: diversity
data:
  images:
    table: faces.csv
    id: image_id
    path: image_id
    root: images
    where: {face: "yes"}
    crop: {left: left, top: top, right: right, bottom: bottom}
  sets: [region]
  min_set_size: 2
models: {means: {model: "python:picture_models:new_means"}}
resampling: {replicates: 20, permutations: 99}
"""
with Image.open(Path(mpl.get_data_path()) / "sample_data" / "grace_hopper.jpg") as file:
    PERSON = file.convert("RGB")
GREY = Image.new("RGB", (99, 99), "grey")
SIDES = ("left", "top", "right", "bottom")


def put(image, place):
    path = Path("images", "CEO", place)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def photographs():
    """Pictures of a person, one of nobody, and a broken one, in two regions."""
    for place in ("NA/1.jpg", "EA/1.jpg"):
        put(PERSON, place)
    put(GREY, "EA/2.jpg")
    Path("images/CEO/NA/2.jpg").write_text("none")


def test_faces_are_found_and_failures_counted_by_region(command, project):
    photographs()
    Path("ledger.csv").write_text("file,country,rank\nCEO/NA/1.jpg,US,3\nCEO/NA/9.jpg,US,9\n")
    levels = ("--level", "query", "--level", "region")
    code, out, _ = command("faces", "images", *levels, "--ledger", "ledger.csv", "--json")
    assert code == 0
    assert json.loads(out) == {
        "table": "faces.csv",
        "images": 4,
        "images without a row of the ledger": 3,
        "rows of the ledger without an image": 1,
        "faces": [
            {"query": "CEO", "region": "EA", "face": "no", "images": 1},
            {"query": "CEO", "region": "EA", "face": "yes", "images": 1},
            {"query": "CEO", "region": "NA", "face": "unreadable", "images": 1},
            {"query": "CEO", "region": "NA", "face": "yes", "images": 1},
        ],
    }
    table = pl.read_csv("faces.csv")
    assert table["face"].to_list() == ["yes", "no", "yes", "unreadable"]
    assert table["rank"].to_list() == [None, None, 3, None]
    width, height = PERSON.size
    left, top, right, bottom = (table[side][0] for side in SIDES)
    assert 0.25 * width < left < right < 0.75 * width
    assert top < 0.35 * height < bottom
    assert command("faces", "images")[0] == 2  # the table is there already


def test_a_margin_widens_the_face_within_the_picture(command, project):
    photographs()
    command("faces", "images", "--out", "a.csv")
    command("faces", "images", "--out", "b.csv", "--margin", "9")
    plain, wide = (pl.read_csv(name).row(0, named=True) for name in ("a.csv", "b.csv"))
    assert plain["left"] > 0
    assert [wide[side] for side in SIDES] == [0, 0, *PERSON.size]


def test_an_audit_sees_the_faces_alone(command, project):
    photographs()
    put(PERSON, "EA/3.jpg")
    put(PERSON, "NA/3.jpg")
    command("faces", "images", "--level", "query", "--level", "region")
    Path("audit.yaml").write_text(AUDIT)
    assert command("audit", "audit.yaml", "--out", "run")[0] == 0
    sizes = pl.read_parquet("run/tables/group_sizes.parquet")
    assert sizes["n"].to_list() == [2, 2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--level", "face", "--level", "region"),
        ("--level", "left", "--level", "left"),
        ("--ledger", "ledger.csv"),
        ("--level", "a", "--level", "rank", "--ledger", "ranks.csv"),
        ("--margin", "nan"),
        ("--margin", "inf"),
    ],
)
def test_a_column_that_would_be_there_twice_is_refused_before_a_table_is_written(
    command, project, arguments
):
    photographs()
    Path("ledger.csv").write_text("file,face\nCEO/NA/1.jpg,1\n")
    Path("ranks.csv").write_text("file,rank\nCEO/NA/1.jpg,1\n")
    code, _, err = command("faces", "images", *arguments)
    assert (code, "unexpected" in err, Path("faces.csv").exists()) == (2, False, False)
