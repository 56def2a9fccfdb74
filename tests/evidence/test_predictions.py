"""Predictions on disk: what is written reads back the same, and other tools can open it."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import RunError
from equipoise.data import LabelSource, PredictionSource, load_predictions
from equipoise.evidence import read_predictions, write_predictions
from equipoise.evidence.predictions import file_name

LABELS = pd.DataFrame(
    {
        "image": ["a", "b", "c", "d"],
        "target": ["x", "y", "x", None],
        "unit": ["p", "p", "q", None],
        "race": ["1", None, "2", "2"],
    }
)


def load(frame, **source):
    labels = LabelSource(LABELS, "image", "target", ("race", "target"), unit="unit")
    return load_predictions(labels, {"../m": PredictionSource(frame, **source)}, max_unmatched=1.0)


def round_trip(data, folder):
    write_predictions(folder, data)
    return read_predictions(folder)


def assert_same(first, second):
    np.testing.assert_equal(asdict(first), asdict(second))


def test_labels_read_back(tmp_path):
    frame = pd.DataFrame({"image": ["a", "b", "d", "e"], "p": ["x", "", "no idea", "x"]})
    data = load(frame, prediction="p", unknown=("no idea",))
    assert_same(data, round_trip(data, tmp_path))
    table = pq.read_table(tmp_path / "predictions" / "..%2Fm.parquet")
    assert table.column_names == ["image_id", "version", "rank", "label", "score", "state"]
    assert table["label"].to_pylist() == ["x", None, None, None]
    assert table["state"].to_pylist() == ["answered", "missing", "unmatched", "unknown"]
    images = pq.read_table(tmp_path / "images.parquet")
    assert images.column_names == ["image_id", "target", "race", "attribute target", "unit"]


def test_probabilities_read_back_with_the_label_s_own_as_score(tmp_path):
    frame = pl.DataFrame({"image": ["a", "b", "c"], "px": [0.9, 0.2, None], "py": [0.1, 0.8, None]})
    data = load(frame, probabilities={"x": "px", "y": "py"})
    assert_same(data, round_trip(data, tmp_path))
    rows = pl.read_parquet(tmp_path / "predictions" / file_name("../m"))
    assert rows["score"].to_list() == [0.9, 0.8, None, None]


def test_ranks_and_versions_keep_their_probabilities(tmp_path):
    frame = pd.DataFrame(
        {
            "image": ["a", "b", "c"],
            "p": ["x", "y", "x"],
            "px": [0.9, 0.2, 0.5],
            "py": [0.1, 0.8, 0.5],
        }
    )
    data = load(
        frame,
        prediction="p",
        probabilities={"x": "px", "y": "py"},
        maps={"as is": {}, "swapped": {"x": "y", "y": "x"}},
    )
    assert_same(data, round_trip(data, tmp_path))


@given(st.text(min_size=1, max_size=50).filter(lambda text: text.isprintable()))
def test_a_model_s_name_stays_inside_its_folder(name):
    assert "/" not in file_name(name)
    assert file_name(name) not in (".", "..")
    assert Path("predictions", file_name(name)).parent == Path("predictions")


def test_missing_or_damaged_evidence_is_reported(tmp_path):
    images = tmp_path / "images.parquet"

    def refusal():
        with pytest.raises(RunError) as raised:
            read_predictions(tmp_path)
        return str(raised.value)

    assert str(images) in refusal()
    images.write_bytes(b"PAR1 and no more")
    assert refusal().startswith(f"{images}: cannot be read: ")
    pq.write_table(pq.read_table(_foreign(tmp_path)), images)
    assert "not written by equipoise" in refusal()
    frame = pd.DataFrame({"image": ["a", "b"], "p": ["x", "y"]})
    write_predictions(tmp_path, load(frame, prediction="p"))
    table = pq.read_table(images)
    pq.write_table(table.drop_columns(["race"]), images)
    assert refusal().startswith(f"{tmp_path}: its predictions are damaged (KeyError: ")


def _foreign(folder):
    path = folder / "foreign.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(path)
    return path
