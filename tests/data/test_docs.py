"""docs/data.md says what the code does."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "data.md").read_text("utf-8")
# Pinned in test_bad_input.py, since they depend on the file system.


def test_every_count_of_arrays_is_in_the_docs():
    table = pa.table({"id": [1, 2], "x": [0.5, 1.0]})
    items = load_items(ItemSource(table, "id", ("x",)))
    vectors = load_vectors(ArraySource(table), items)
    matrix = load_matrix(ArraySource(table), items)
    section = PAGE.split("## What is counted\n")[1].split("##")[0]
    names = {*items.counts, *vectors.counts, *matrix.counts}
    assert [name for name in sorted(names) if f"`{name}`" not in section] == []


def test_every_count_is_in_the_docs():
    frame = {"id": [1, 2], "y": ["a", "b"], "a": [1, 0], "b": [0, 1]}
    table = pa.table(frame)
    shares = {"a": "a", "b": "b"}
    data = load_predictions(
        LabelSource(table, "id", "y", ("y",)),
        {
            "one": PredictionSource(table, "y", probabilities=shares),
            "two": PredictionSource(table, probabilities=shares),
        },
    )
    models = data.counts["models"].values()
    versions = [name for model in models for name in model["versions"]["default"]]
    names = {*data.counts["labels"], *data.counts["models"]["one"], *versions}
    section = PAGE.split("## What is counted")[1].split("##")[0]
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", section)] == []


def test_the_example_runs(tmp_path, monkeypatch):
    labels, predictions = re.findall(r"```csv\n(.+?)```", PAGE, re.DOTALL)
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
