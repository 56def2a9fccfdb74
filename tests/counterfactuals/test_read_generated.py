"""Images read back, made elsewhere, planned and exported."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core.errors import DataError
from equipoise.counterfactuals import (
    export_images,
    generate_prompts,
    generate_sets,
    plan_prompts,
    plan_sets,
    read_generated,
)
from equipoise.counterfactuals.generating.parts import png
from equipoise.evidence import decode
from equipoise.models.generators import Sampling
from generator_models import Swatches, captions, prompts, swatch

NAME = "python:generator_models:swatches"


@pytest.mark.parametrize("kind", ["prompts", "sets"])
def test_exported_images_are_read_back(kind, tmp_path):
    model = Swatches(act=lambda prompt, image: None if "female" in prompt else image)
    if kind == "sets":
        made = generate_sets(captions(2), model, tmp_path, candidates=2, shared_self=0.5)
    else:
        made = generate_prompts(prompts(3), model, tmp_path, images=2)
    written = export_images(made, tmp_path / "out")
    assert written == len(made.pictures)
    found = read_generated(tmp_path / "out")
    for name in made.table.column_names:
        ours = made.table[name].to_pylist()
        texts = ["" if one is None else str(one) for one in ours]
        assert found.table[name].to_pylist() in (ours, texts)
    assert found.pictures.ids.tolist() == made.pictures.ids.tolist()
    for place in range(written):
        assert found.pictures.read(place) == made.pictures.read(place)
    with (tmp_path / "out" / "metadata.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == made.table.num_rows
    files = [row["file_name"] for row in rows if row["state"] == "image"]
    assert len({*files}) == written
    assert all((tmp_path / "out" / file).is_file() for file in files)


FORMULAS = [
    "=1+2", "@SUM(A1)", "\tx", 'a,"b"\nc', " a ",
]  # fmt: skip


def test_texts_that_a_spreadsheet_would_run_are_read_back_as_they_were(tmp_path):
    table = pa.table({"prompt_id": FORMULAS, "prompt": FORMULAS, "-kind": FORMULAS[::-1]})
    made = generate_prompts(table, Swatches(), tmp_path)
    export_images(made, tmp_path / "out")
    found = read_generated(tmp_path / "out").table
    for name in ("prompt_id", "prompt", "-kind"):
        assert found[name].to_pylist() == made.table[name].to_pylist()
    with (tmp_path / "out" / "metadata.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [row["prompt"] for row in rows] == made.table["prompt"].to_pylist()


def write_images(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(names):
        (folder / name).write_bytes(png(swatch(name, place)))


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return path


ROWS = [
    {"file_name": "one.png", "prompt": "a doctor", "state": "", "note": "x"},
    {"file_name": "two.png", "prompt": "a nurse", "state": "image", "note": ""},
    {"file_name": "", "prompt": "a doctor", "state": "refused", "note": ""},
    {"file_name": "three.png", "prompt": "a doctor", "state": "", "note": ""},
]


def test_images_made_elsewhere(tmp_path):
    write_images(tmp_path, ["one.png", "two.png", "three.png"])
    write_rows(tmp_path / "metadata.csv", ROWS)
    found = read_generated(tmp_path)
    assert found.table["image_id"].to_pylist() == [
        "prompt-00000/000",
        "prompt-00001/000",
        "prompt-00000/001",
        "prompt-00000/002",
    ]
    assert found.table["state"].to_pylist() == ["image", "image", "refused", "image"]
    assert found.table["note"].to_pylist() == ["x", "", "", ""]
    assert len(found.pictures) == 3
    assert np.array_equal(decode(found.pictures.read(1)), swatch("three.png", 2))
    assert (found.computed, found.info) == (0, {})
    assert next(iter(found.inputs.values()))["rows"] == 4


def test_a_table_with_its_own_ids(tmp_path):
    write_images(tmp_path / "photos", ["one.png", "two.png"])
    rows = [
        {"image_id": "b", "caption_id": "c1", "set": "s", "candidate": 7, "seed": 2**62 + 1,
         "shared": 0.5, "path": "one.png", "prompt": "a doctor"},
        {"image_id": "a", "caption_id": "c2", "set": "s", "candidate": 7, "seed": 3,
         "shared": "", "path": "two.png", "prompt": "a nurse"},
    ]  # fmt: skip
    table = write_rows(tmp_path / "images.csv", rows)
    found = read_generated(table, root=tmp_path / "photos")
    assert found.table.column_names[:6] == [
        "image_id", "caption_id", "prompt", "set", "candidate", "seed",
    ]  # fmt: skip
    assert found.table["seed"].to_pylist() == [2**62 + 1, 3]
    assert found.table["shared"].to_pylist() == [0.5, None]
    assert found.pictures.ids.tolist() == ["a", "b"]


@pytest.mark.parametrize("form", ["parquet", "frame"])
def test_other_forms(form, tmp_path):
    write_images(tmp_path, ["one.png"])
    table = pa.table({"path": [str(tmp_path / "one.png"), None], "prompt": ["a", "a"],
                      "state": [None, "failed"]})  # fmt: skip
    given = table
    if form == "parquet":
        given = tmp_path / "t.parquet"
        pq.write_table(table, given)
    found = read_generated(given)
    assert found.table["state"].to_pylist() == ["image", "failed"]
    assert np.array_equal(decode(found.pictures.read(0)), swatch("one.png", 0))


def test_images_inside_a_table(tmp_path):
    images = [{"bytes": png(swatch("a", place)), "path": None} for place in range(2)]
    columns = {"prompt": ["a", "b", "c"], "state": ["image", "refused", "image"]}
    columns |= {"prompt_id": ["z", "y", "x"], "image": [images[1], None, images[0]]}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "t.parquet")
    found = read_generated(tmp_path / "t.parquet")
    assert found.pictures.ids.tolist() == ["x/000", "z/000"]
    assert np.array_equal(decode(found.pictures.read(1)), swatch("a", 1))


ONE = {"path": "one.png", "prompt": "a"}
BAD = {
    "no column of prompts": ([{"path": "one.png", "text": "a"}], None, None),
    "an empty prompt": ([ONE, ONE | {"prompt": ""}], "prompt", 2),
    "no path and no state": ([ONE | {"path": ""}], "state", 1),
    "an unknown state": ([ONE | {"state": "gone"}], "state", 1),
    "a seed that is text": ([ONE | {"seed": "x"}], "seed", 1),
    "an id twice": ([ONE | {"image_id": "i"}] * 2, "image_id", None),
    "a candidate twice": ([ONE | {"candidate": 3}] * 2, "image_id", None),
    "a path outside the folder": ([ONE | {"path": "../up.png"}], "path", 1),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_cannot_be_read(name, tmp_path):
    rows, column, row = BAD[name]
    with pytest.raises(DataError) as raised:
        read_generated(write_rows(tmp_path / "t.csv", rows))
    assert (raised.value.column, raised.value.row) == (column, row)


def test_a_plan_tells_from_what_was_made(tmp_path):
    made = generate_sets(captions(), NAME, tmp_path, candidates=2, part=12)
    planned = plan_sets(captions(), NAME, tmp_path, candidates=5, part=12)
    assert (planned.present, planned.to_do, planned.folder) == (48, 72, made.folder)
    parts = sum(path.stat().st_size for path in made.folder.glob("part-*"))
    assert planned.bytes == round(parts / 48 * 72)
    rate = json.loads((made.folder / "rate.json").read_text())
    assert rate["images"] == 48
    assert planned.seconds == pytest.approx(rate["seconds"] / 48 * 72)
    whole = plan_sets(captions(), NAME, tmp_path, candidates=2, part=12)
    assert (whole.to_do, whole.bytes, whole.seconds) == (0, 0, 0)
    # Other prompts by the same model: nothing is there, and it takes as long.
    other = plan_prompts(prompts(10), NAME, tmp_path)
    assert (other.sets, other.present, other.to_do, other.folder) == (None, 0, 10, None)
    assert other.seconds == pytest.approx(rate["seconds"] / 48 * 10)
    slower = plan_prompts(prompts(10), NAME, tmp_path, sampling=Sampling(steps=99))
    assert (slower.bytes, slower.seconds) == (None, None)


def test_a_folder_that_is_not_whole(tmp_path):
    made = generate_prompts(prompts(3), Swatches(), tmp_path)
    next(made.folder.glob("part-*")).unlink()
    with pytest.raises(DataError, match=r"part-00000-.*\.parquet is missing. To do: run the gener"):
        read_generated(made.folder)
    facts = json.loads((made.folder / "manifest.json").read_text())
    (made.folder / "manifest.json").write_text(json.dumps(facts | {"whole": False}))
    with pytest.raises(DataError, match="the generation was not finished"):
        read_generated(made.folder)
