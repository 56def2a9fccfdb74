"""Predictions of a run as Parquet files that anyone can open."""

import json
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import Facts, Fields, RunError, floats
from equipoise.core.files import decode_json, read_table, unreadable, write_table
from equipoise.data import Coded, ModelPredictions, PredictionData, Predictions

_KEY = b"equipoise"
_FACTS = ("scale", "vocabulary", "probability_classes", "classes")
_RESERVED = ("image_id", "target", "unit")


def write_predictions(run: Path, data: PredictionData) -> None:
    """Write `images.parquet` and one `predictions/<model>.parquet` per model.

    An image has one row per version of the labels and rank. A model that gave probabilities has
    them all in a column `probabilities` of the rows of rank 1, and the label's own as `score`.

    Parameters
    ----------
    run : Path
        The directory that `new_run` yields.
    data : PredictionData
    """
    ids = pa.array(data.ids.tolist(), pa.string())
    columns = {"image_id": ids, "target": _labels(data.coded_target)}
    attributes: Fields = {}
    for name, labels in data.coded_attributes.items():
        column = f"attribute {name}" if name in _RESERVED else name
        columns[column] = _labels(labels)
        attributes[name] = {"column": column, "vocabulary": labels.vocabulary}
    if data.coded_unit is not None:
        columns["unit"] = _labels(data.coded_unit)
    about: Fields = {
        "attributes": attributes,
        "classes": data.classes,
        "units": None if data.coded_unit is None else data.coded_unit.vocabulary,
        "models": [*data.models],
        "inputs": {name: dict(facts) for name, facts in data.inputs.items()},
        "counts": dict(data.counts),
    }
    _write(run / "images.parquet", pa.table(columns), about)
    for name, model in data.models.items():
        states = _labels(model.coded_state)
        parts: list[pa.Table] = []
        versions: Fields = {}
        for version, predictions in model.versions.items():
            parts.append(_version(version, predictions, ids, states))
            versions[version] = _version_facts(predictions)
        about = {
            "model": name,
            "without_label": model.without_label,
            "failed": model.failed,
            "states": model.coded_state.vocabulary,
            "versions": versions,
        }
        table = pa.concat_tables(parts, promote_options="default")
        _write(run / "predictions" / file_name(name), table, about)


def file_name(model: str) -> str:
    """Return the file name of a model's predictions; a name may hold any character."""
    return f"{quote(model, safe=' ')}.parquet"


def _version_facts(predictions: Predictions) -> Fields:
    """Return what the file says of a version beside its rows."""
    facts = {name: getattr(predictions, name) for name in _FACTS}
    facts["ranked"] = predictions.coded_top is not None
    facts["probabilities"] = predictions.probabilities is not None
    return facts


def _labels(coded: Coded) -> pa.Array:
    codes = coded.codes.ravel()
    return pa.array(coded.vocabulary, pa.string()).take(pa.array(codes, mask=codes < 0))


def _version(name: str, predictions: Predictions, ids: pa.Array, states: pa.Array) -> pa.Table:
    labels = predictions.coded if predictions.coded_top is None else predictions.coded_top
    n = len(ids)
    ranks = labels.codes.size // n if n else 1
    rows, rank = np.arange(n), np.zeros(n, np.int32)
    if ranks != 1:
        rows, rank = rows.repeat(ranks), np.tile(np.arange(ranks, dtype=np.int32), n)
        # With one label a row, millions of rows are not copied.
        ids, states = ids.take(pa.array(rows)), states.take(pa.array(rows))
    columns = {
        "image_id": ids,
        "version": pa.repeat(pa.scalar(name, pa.string()), len(rows)),
        "rank": pa.array(rank + np.int32(1)),
        "label": _labels(labels),
        "score": pa.nulls(len(rows), pa.float64()),
        "state": states,
    }
    if predictions.probabilities is not None:
        # The probability of each row's own label; null where there is none.
        place = {label: column for column, label in enumerate(predictions.probability_classes)}
        places = np.array([*(place.get(label, -1) for label in predictions.vocabulary), -1])
        columns_of_labels = places[labels.codes.ravel()]
        scores = predictions.probabilities[rows, columns_of_labels]
        columns["score"] = pa.array(scores, mask=(columns_of_labels < 0) | np.isnan(scores))
        classes = predictions.probabilities.shape[1]
        offsets = pa.array(np.arange(0, n * classes + 1, classes, dtype=np.int64))
        lists = pa.LargeListArray.from_arrays(offsets, pa.array(predictions.probabilities.ravel()))
        columns["probabilities"] = lists.take(pa.array(rows, mask=rank > 0))
    return pa.table(columns)


def _write(path: Path, table: pa.Table, about: Facts) -> None:
    facts = json.dumps(about, ensure_ascii=False, default=str)
    write_table(table.replace_schema_metadata({_KEY: facts.encode()}), path)


def read_predictions(run: str | Path) -> PredictionData:
    """Read back what `write_predictions` wrote.

    Parameters
    ----------
    run : str or Path
        A run directory.

    Raises
    ------
    RunError
        When a file is missing, damaged, or not of this form.
    """
    folder = Path(run)
    try:
        return _read_data(folder)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder}: its predictions are damaged ({type(error).__name__}: {error}). "
            "To do: run the audit again"
        ) from None


def _read_data(folder: Path) -> PredictionData:
    table, about = _read(folder / "images.parquet")
    ids = np.empty(table.num_rows, dtype=object)
    ids[:] = table["image_id"].to_pylist()
    return PredictionData(
        ids=ids,
        coded_target=_coded(table["target"], about["classes"]),
        coded_attributes={
            name: _coded(table[facts["column"]], facts["vocabulary"])
            for name, facts in about["attributes"].items()
        },
        coded_unit=None if about["units"] is None else _coded(table["unit"], about["units"]),
        models={name: _read_model(folder, name, table.num_rows) for name in about["models"]},
        inputs=about["inputs"],
        counts=about["counts"],
    )


def _read(path: Path) -> tuple[pa.Table, Fields]:
    try:
        table = read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise RunError(f"{path}: not written by equipoise. To do: run the audit again")
    return table, decode_json(metadata[_KEY])


def _coded(column: pa.ChunkedArray, vocabulary: list[str]) -> Coded:
    codes = pc.index_in(column, pa.array(vocabulary, pa.string())).combine_chunks()
    return Coded(codes.fill_null(-1).to_numpy(zero_copy_only=False), tuple(vocabulary))


def _read_model(folder: Path, name: str, n: int) -> ModelPredictions:
    table, about = _read(folder / "predictions" / file_name(name))
    versions = {}
    for version, facts in about["versions"].items():
        rows = table.filter(pc.equal(table["version"], version))
        labels = _coded(rows["label"], facts["vocabulary"])
        codes = labels.codes.reshape(n, rows.num_rows // n if n else 1)
        first = rows.filter(pc.equal(rows["rank"], 1))
        classes, probabilities = tuple(facts["probability_classes"]), None
        if facts["probabilities"]:
            numbers = first["probabilities"].combine_chunks().flatten()
            probabilities = floats(numbers).reshape(n, len(classes))
        versions[version] = Predictions(
            coded=Coded(codes[:, 0].copy(), labels.vocabulary),
            coded_top=Coded(codes, labels.vocabulary) if facts["ranked"] else None,
            probabilities=probabilities,
            probability_classes=classes,
            scale=facts["scale"],
            classes=tuple(facts.get("classes", ())),
        )
    states = table.filter(pc.equal(table["rank"], 1))["state"][:n]
    state = _coded(states, about["states"])
    return ModelPredictions(versions, state, about["without_label"], about.get("failed", 0))
