"""Every bad input has one error that says where, what was expected and what to do."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError
from equipoise.data import LabelSource, Normalization, PredictionSource, load_predictions

PLACES = json.loads((Path(__file__).parent / "table_places.json").read_text("utf-8"))
LABELS = b"id,y,g\n1,a,x\n2,b,y\n3,a,y\n"
PREDICTIONS = b"id,p\n1,a\n2,b\n3,b\n"


@dataclass
class Case:
    """One bad input: how it differs from a good one. Its place is in table_places.json."""

    name: str
    labels: bytes = LABELS
    predictions: bytes = PREDICTIONS
    label_file: str = "labels.csv"
    file: str = "predictions.csv"
    label_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_unmatched: float = 0.01


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def probabilities(*rows):
    return {
        "predictions": ("id,a,b\n" + "".join(f"{row}\n" for row in rows)).encode(),
        "options": {"prediction": None, "probabilities": {"a": "a", "b": "b"}},
    }


def run(case, folder):
    """Load a case and return where its error is."""
    (folder / case.label_file).write_bytes(case.labels)
    (folder / case.file).write_bytes(case.predictions)
    labels = {"table": folder / case.label_file, "id": "id", "target": "y", "attributes": ("g",)}
    source = {"table": folder / case.file, "prediction": "p"}
    with pytest.raises(DataError) as error:
        load_predictions(
            LabelSource(**labels | case.label_options),
            {"m": PredictionSource(**source | case.options)},
            max_unmatched=case.max_unmatched,
        )
    assert error.value.fix
    file = str(error.value.file).replace(f"{folder}/", "")
    return [file, error.value.column, error.value.row]


NESTED = parquet(id=["1", "2", "3"], p=[["a"], ["b"], ["c"]])
FILES = [
    Case("missing column", labels=b"id,yy,g\n1,a,x\n"),
    Case("row too short", labels=b'id,y,g\n1,"a\nb",x\n\n2,b\n'),
    Case("quote never closed", labels=b'id,y,g\n1,a,x\n2,b,"y\n3,a,x\n'),
    Case("latin-1", labels='id,y,g\n1,"a\nb",x\n2,é,y\n'.encode("latin-1")),
    Case("utf-16", labels=LABELS.decode().encode("utf-16")),
    Case("unknown encoding", label_options={"encoding": "utf-99"}),
    Case("truncated Parquet", file="p.parquet", predictions=NESTED[:-20]),
    Case("list column", file="p.parquet", predictions=NESTED),
    Case("JSON key twice", file="p.jsonl", predictions=b'{"id":1,"p":"a","p":"b"}\n'),
    Case(
        "nested JSON value", file="p.jsonl", predictions=b'{"id":1,"p":"a"}\n\n{"id":2,"p":["a"]}\n'
    ),
]
IDS = [
    Case("empty id", labels=b"id,y,g\n1,a,x\n ,b,y\n,a,y\n"),
    Case("repeated id", labels=b"id,y,g\n1,a,x\n2,b,y\n3,b,y\n2,a,y\n2,a,x\n"),
    Case("no id matches", predictions=b"id,p\n1.jpg,a\n2.jpg,b\n"),
]
CONTENT = [
    Case("one class", labels=b"id,y,g\n1,a,x\n2,a,y\n"),
    Case("attribute of one value", labels=b"id,y,g\n1,a,x\n2,b,x\n"),
    Case("label outside the classes", predictions=b"id,p\n1,a\n2,c\n3,c\n"),
    Case(
        "nothing answered",
        predictions=b"id,p\n1,no\n2,?\n3,\n",
        options={"refused": ("no",), "unknown": ("?",)},
    ),
    Case("class listed as unknown", options={"unknown": ("b",)}),
    Case(
        "classes that normalise to one",
        labels=b"id,y,g\n1,a,x\n2,A.,y\n3,b,y\n",
        options={"normalize": Normalization(articles=())},
    ),
]
SCORES = [
    Case("text for a probability", **probabilities("1,0.5,0.5", "2,high,0.5")),
    Case("half a row", **probabilities("1,0.5,0.5", "2,,1")),
    Case(
        "no column for a class",
        predictions=b"id,a,c\n1,0.5,0.5\n2,1,0\n3,0,1\n",
        options={"prediction": None, "probabilities": {"a": "a", "c": "c"}},
    ),
    Case(
        "boolean probabilities",
        file="p.parquet",
        predictions=parquet(id=["1"], a=[True], b=[False]),
        options={"prediction": None, "probabilities": {"a": "a", "b": "b"}},
    ),
]
RANKS = []
CASES = [*FILES, *IDS, *CONTENT, *SCORES, *RANKS]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bad_input_has_one_error_with_its_place(case, tmp_path):
    assert run(case, tmp_path) == PLACES[case.name]


def read(table, **options):
    labels = LabelSource(table, "id", "y", ("g",), **options)
    load_predictions(labels, {"m": PredictionSource(table, "y")})


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "labels.csv").write_bytes(LABELS)
    with pytest.raises(DataError, match="did you mean 'labels.csv'?"):
        read(tmp_path / "lables.csv")


FRAMES = {
    "pandas, a column twice": lambda: pd.DataFrame(
        [["1", "a", "b", "x"]], columns=["id", "y", "y", "g"]
    ),
    "pandas, lists": lambda: pd.DataFrame({"id": [1, 2], "y": ["a", ["b"]], "g": ["x", "y"]}),
    "pyarrow, list": lambda: pa.table({"id": [1, 2], "y": [["a"], ["b"]], "g": ["x", "y"]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_bad_data_frames(name):
    with pytest.raises(DataError) as raised:
        read(FRAMES[name]())
    assert [raised.value.file, raised.value.column, raised.value.row] == PLACES[name]
