"""docs/data.md says what the code does."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.config.fields import ArrayConfig, RowsConfig, TableConfig
from equipoise.config.files import parse_yaml
from equipoise.data import (
    ArraySource,
    ItemSource,
    LabelSource,
    PredictionSource,
    load_items,
    load_matrix,
    load_predictions,
    load_vectors,
)
from yaml_keys import page_keys, yaml_blocks

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "data.md").read_text("utf-8")


def test_every_count_is_in_the_docs():
    table = pa.table({"id": [1, 2], "y": ["a", "b"], "a": [1, 0], "b": [0, 1]})
    items = load_items(ItemSource(table, "id", ("y",)))
    data = load_predictions(
        LabelSource(table, "id", "y", ("y",)),
        {"one": PredictionSource(table, "y", probabilities={"a": "a", "b": "b"})},
    )
    model = data.counts["models"]["one"]
    names = {*data.counts["labels"], *model, *model["versions"]["default"], *items.counts}
    for load in (load_vectors, load_matrix):
        names |= {*load(ArraySource(table, columns=("a", "b")), items).counts}
    section = PAGE.split("## What is counted\n")[1].split("##")[0]
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", section)] == []


def test_every_step_of_a_table_is_in_the_docs_in_its_order():
    section = PAGE.split("## Tables as tools write them\n")[1].split("\n## ")[0]
    steps = parse_yaml(yaml_blocks(section)[0].encode(), "page")[0]["table"]
    assert [*steps] == [*TableConfig.model_fields]
    for step, value in steps.items():
        place = {} if step in ("file", "folder") else {"file": "results.json"}
        assert TableConfig.model_validate({**place, step: value})


def test_every_key_of_rows_and_matrices_is_in_the_docs():
    keys = page_keys(PAGE)
    assert {*RowsConfig.model_fields, *ArrayConfig.model_fields} <= keys
    blocks = [parse_yaml(block.encode(), "page")[0] for block in yaml_blocks(PAGE)]
    (matrices,) = (block for block in blocks if "embedder" in block)
    assert all(ArrayConfig.model_validate(matrix) for matrix in matrices.values())


def test_the_example_runs(tmp_path, monkeypatch):
    labels, predictions, _ = re.findall(r"```csv\n(.+?)```", PAGE, re.DOTALL)
    (tmp_path / "labels.csv").write_text(labels)
    (tmp_path / "model.csv").write_text(predictions)
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0], scope)
    assert scope["right"].tolist() == [True, False]


def test_the_example_of_arrays_runs(tmp_path, monkeypatch):
    genders = pa.table({"image": ["a", "b", "c"], "gender": ["female", "male", "female"]})
    pq.write_table(genders, tmp_path / "images.parquet")
    np.save(tmp_path / "clip.npy", np.eye(3, dtype=np.float16))
    (tmp_path / "clip_ids.txt").write_text("c\nb\na\n")
    (tmp_path / "scores.csv").write_text("image,cat\na,0.5\nb,0.25\nc,\n")
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[1], scope)
    assert scope["embeddings"].tolist() == [[0, 0, 1], [1, 0, 0]]
    np.testing.assert_array_equal(scope["cat"], [0.5, 0.25, np.nan])
