"""docs/data.md says what the code does."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.data import (
    ArraySource,
    ItemSource,
    LabelSource,
    Normalization,
    PredictionSource,
    array_files,
    array_ids,
    load_items,
    load_matrix,
    load_predictions,
    load_vectors,
)
from equipoise.data.tables import FORMATS
from equipoise.data.versions import STATES

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "data.md").read_text("utf-8")
# Pinned in test_bad_input.py, since they depend on the file system.
OF_FILES = ("does not exist", "is a directory", "may not be read", "cannot be read")


def errors(title: str = "Errors") -> list[str]:
    """First cells of a table of errors."""
    table = PAGE.split(f"## {title}\n")[1].split("##")[0]
    cells = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    return [error for cell in cells for error in re.findall("`(.+?)`", cell)]


def messages(file: str = "messages.json") -> list[str]:
    pinned: dict[str, str] = json.loads((HERE / file).read_text("utf-8"))
    return [message.split(" Expected: ")[0] for message in pinned.values()]


def test_every_pinned_error_is_in_the_docs() -> None:
    assert [text for text in messages() if not any(error in text for error in errors())] == []


def test_every_error_in_the_docs_is_pinned() -> None:
    known = [*messages(), *OF_FILES]
    stale = [
        error for error in errors() if not any(error in text or text in error for text in known)
    ]
    assert stale == []


def test_every_pinned_error_about_arrays_is_in_the_docs() -> None:
    known = [*errors(), *errors("Errors about arrays")]
    texts = messages("array_messages.json")
    assert [text for text in texts if not any(error in text for error in known)] == []


def test_every_error_about_arrays_in_the_docs_is_pinned() -> None:
    texts = messages("array_messages.json")
    stale = [
        error for error in errors("Errors about arrays") if not any(error in text for text in texts)
    ]
    assert stale == []


def test_formats_of_arrays_and_ids() -> None:
    section = PAGE.split("## Embeddings\n")[1].split("##")[0]
    for formats in (array_files.FORMATS, array_ids.FORMATS):
        assert [name for name in re.findall(r"\.\w+", formats) if f"`{name}`" not in section] == []


def test_every_count_of_arrays_is_in_the_docs() -> None:
    table = pa.table({"id": [1, 2], "x": [0.5, 1.0]})
    items = load_items(ItemSource(table, "id", ("x",)))
    vectors = load_vectors(ArraySource(table), items)
    matrix = load_matrix(ArraySource(table), items)
    section = PAGE.split("## What is counted\n")[1].split("##")[0]
    names = {*items.counts, *vectors.counts, *matrix.counts}
    assert [name for name in sorted(names) if f"`{name}`" not in section] == []


def test_states_formats_and_the_version_of_the_steps() -> None:
    assert [state for state in STATES if f"| `{state}` |" not in PAGE] == []
    assert [name for name in re.findall(r"\.\w+", FORMATS) if f"`{name}`" not in PAGE] == []
    assert f"`{Normalization().version}`" in PAGE


def test_every_count_is_in_the_docs() -> None:
    frame: dict[str, list[Any]] = {"id": [1, 2], "y": ["a", "b"], "a": [1, 0], "b": [0, 1]}
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


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, predictions = re.findall(r"```csv\n(.+?)```", PAGE, re.DOTALL)
    (tmp_path / "labels.csv").write_text(labels)
    (tmp_path / "model.csv").write_text(predictions)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0], scope)
    assert scope["right"].tolist() == [True, False]


def test_the_example_of_arrays_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genders = pa.table({"image": ["a", "b", "c"], "gender": ["female", "male", "female"]})
    pq.write_table(genders, tmp_path / "images.parquet")
    np.save(tmp_path / "clip.npy", np.eye(3, dtype=np.float16))
    (tmp_path / "clip_ids.txt").write_text("c\nb\na\n")
    (tmp_path / "scores.csv").write_text("image,cat\na,0.5\nb,0.25\nc,\n")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[1], scope)
    assert scope["embeddings"].tolist() == [[0, 0, 1], [1, 0, 0]]
    np.testing.assert_array_equal(scope["cat"], [0.5, 0.25, np.nan])
