"""Images read back, planned and exported."""

import csv
import json

import pyarrow as pa
import pytest

from equipoise.core import DataError, RunError
from equipoise.counterfactuals import (
    GenerationSettings,
    export_images,
    generate_prompts,
    generate_sets,
    plan,
    read_generated,
    request_captions,
    request_prompts,
)
from equipoise.models import Sampling
from generator_models import Swatches, captions, prompts

NAME = "python:generator_models:swatches"


FORMULAS = ["=1+2", "@SUM(A1)", "\tx", 'a,"b"\nc', " a "]


def test_an_export_has_every_row_and_picture(tmp_path):
    model = Swatches(act=lambda prompt, image: None if "SUM" in prompt else image)
    table = pa.table({"prompt_id": FORMULAS, "prompt": FORMULAS, "-kind": FORMULAS[::-1]})
    generated = generate_prompts(table, model, tmp_path, images=2)
    assert export_images(generated, tmp_path / "out") == len(generated.pictures) == 8
    with (tmp_path / "out" / "metadata.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    for name in generated.table.column_names:
        ours = ["" if cell is None else str(cell) for cell in generated.table[name].to_pylist()]
        assert [row[name] for row in rows] == ours
    files = {row["image_id"]: row["file_name"] for row in rows if row["state"] == "image"}
    assert len({*files.values()}) == 8
    assert {row["file_name"] for row in rows if row["state"] == "refused"} == {""}
    for place, name in enumerate(generated.pictures.ids):
        assert (tmp_path / "out" / files[name]).read_bytes() == generated.pictures.read(place)


def test_a_plan_estimates_from_finished_images(tmp_path):
    generated = generate_sets(
        captions(), NAME, tmp_path, candidates=2, settings=GenerationSettings(part=12)
    )
    more = request_captions(captions(), 5, 0, (0.1, 0.9), None)
    planned = plan(more, NAME, tmp_path, GenerationSettings(part=12))
    assert (planned.present, planned.to_do, planned.folder) == (48, 72, generated.folder)
    parts = sum(path.stat().st_size for path in generated.folder.glob("part-*"))
    assert planned.bytes == round(parts / 48 * 72)
    rate = json.loads((generated.folder / "rate.json").read_text())
    assert rate["images"] == 48
    assert planned.seconds == pytest.approx(rate["seconds"] / 48 * 72)
    # Other prompts by the same model: nothing is there, and it takes as long.
    other = plan(request_prompts(prompts(10), 1, 0), NAME, tmp_path)
    assert (other.sets, other.present, other.to_do, other.folder) == (None, 0, 10, None)
    assert other.seconds == pytest.approx(rate["seconds"] / 48 * 10)
    slower = plan(
        request_prompts(prompts(10), 1, 0),
        NAME,
        tmp_path,
        GenerationSettings(sampling=Sampling(steps=99)),
    )
    assert (slower.bytes, slower.seconds) == (None, None)


def test_an_incomplete_folder_is_refused(tmp_path):
    generated = generate_prompts(prompts(3), Swatches(), tmp_path)
    next(generated.folder.glob("part-*")).unlink()
    with pytest.raises(RunError, match=r"part-00000-.*\.parquet: it is damaged"):
        read_generated(generated.folder)
    facts = json.loads((generated.folder / "manifest.json").read_text())
    for damage in ({"whole": False}, {"parts": 3}, {"parts": [3]}):
        (generated.folder / "manifest.json").write_text(json.dumps(facts | damage))
        for folder in (generated.folder, tmp_path / "nowhere"):
            with pytest.raises(DataError, match="the generation was not finished"):
                read_generated(folder)
    (generated.folder / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="the generation was not finished"):
        read_generated(generated.folder)
