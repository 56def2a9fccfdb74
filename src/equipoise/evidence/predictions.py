"""Predictions of a run as Parquet files that anyone can open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core.errors import RunError
from equipoise.core.files import read_table, write_table

if TYPE_CHECKING:
    from equipoise.data import ModelPredictions, PredictionData, Predictions
    from equipoise.data.coded import Coded

_KEY = b"equipoise"
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
    _write(run / "images.parquet", _images(data), _about_images(data))
    (run / "predictions").mkdir(exist_ok=True)
    for name, model in data.models.items():
        about = _about_model(name, model)
        _write(run / "predictions" / file_name(name), _predictions(data.ids, model), about)


def file_name(model: str) -> str:
    """Return the file name of a model's predictions; a name may hold any character."""
    return f"{quote(model, safe=' ')}.parquet"


def _about_images(data: PredictionData) -> dict[str, Any]:
    return {
        "attributes": {
            name: {"column": _column(name), "vocabulary": labels.vocabulary}
            for name, labels in data.coded_attributes.items()
        },
        "classes": data.classes,
        "units": None if data.coded_unit is None else data.coded_unit.vocabulary,
        "models": [*data.models],
        "inputs": {name: dict(facts) for name, facts in data.inputs.items()},
        "counts": dict(data.counts),
    }


def _about_model(name: str, model: ModelPredictions) -> dict[str, Any]:
    return {
        "model": name,
        "without_label": model.without_label,
        "failed": model.failed,
        "states": model.coded_state.vocabulary,
        "versions": {version: _about_version(made) for version, made in model.versions.items()},
    }


def _about_version(made: Predictions) -> dict[str, Any]:
    return {
        "scale": made.scale,
        "ranked": made.coded_top is not None,
        "vocabulary": made.vocabulary,
        "probability_classes": made.probability_classes,
        "probabilities": made.probabilities is not None,
    }


def _column(attribute: str) -> str:
    return f"attribute {attribute}" if attribute in _RESERVED else attribute


def _images(data: PredictionData) -> pa.Table:
    columns = {"image_id": _texts(data.ids), "target": _labels(data.coded_target)}
    columns |= {_column(name): _labels(labels) for name, labels in data.coded_attributes.items()}
    if data.coded_unit is not None:
        columns["unit"] = _labels(data.coded_unit)
    return pa.table(columns)


def _texts(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values.tolist(), pa.string())


def _labels(coded: Coded) -> pa.Array:
    codes = coded.codes.ravel()
    return pa.array(coded.vocabulary, pa.string()).take(pa.array(codes, mask=codes < 0))


def _predictions(ids: npt.NDArray[Any], model: ModelPredictions) -> pa.Table:
    names, states = _texts(ids), _labels(model.coded_state)
    parts = [_version(name, made, names, states) for name, made in model.versions.items()]
    return pa.concat_tables(parts, promote_options="default")


def _version(name: str, made: Predictions, ids: pa.Array, states: pa.Array) -> pa.Table:
    labels = made.coded if made.coded_top is None else made.coded_top
    n = len(ids)
    ranks = labels.codes.size // n if n else 1
    rows = np.repeat(np.arange(n), ranks)
    columns = {
        "image_id": ids.take(pa.array(rows)),
        "version": pa.array([name] * len(rows), pa.string()),
        "rank": pa.array(np.tile(np.arange(1, ranks + 1, dtype=np.int32), n)),
        "label": _labels(labels),
        "score": _scores(made, labels.codes.ravel(), rows),
        "state": states.take(pa.array(rows)),
    }
    if made.probabilities is not None:
        columns["probabilities"] = _shares(made.probabilities, ranks)
    return pa.table(columns)


def _scores(made: Predictions, codes: npt.NDArray[np.int32], rows: npt.NDArray[Any]) -> pa.Array:
    """Return the probability of each row's own label; null where there is none."""
    if made.probabilities is None:
        return pa.nulls(len(rows), pa.float64())
    place = {label: column for column, label in enumerate(made.probability_classes)}
    columns = np.array([*(place.get(label, -1) for label in made.vocabulary), -1])[codes]
    scores = made.probabilities[rows, columns]
    return pa.array(scores, mask=(columns < 0) | np.isnan(scores))


def _shares(probabilities: npt.NDArray[np.float64], ranks: int) -> pa.Array:
    n, classes = probabilities.shape
    offsets = np.arange(0, n * classes + 1, classes, dtype=np.int64)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(probabilities.ravel()))
    first = np.arange(n * ranks) % ranks == 0
    return lists.take(pa.array(np.arange(n * ranks) // ranks, mask=~first))


def _write(path: Path, table: pa.Table, about: Mapping[str, Any]) -> None:
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
    from equipoise.data import PredictionData

    table, about = _read(folder / "images.parquet")
    return PredictionData(
        ids=_objects(table["image_id"]),
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


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    try:
        table = read_table(path)
    except FileNotFoundError:
        raise RunError(f"{path}: missing from the run. To do: run the audit again") from None
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{path}: cannot be read: {error}. To do: run the audit again") from None
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise RunError(f"{path}: not written by equipoise. To do: run the audit again")
    return table, json.loads(metadata[_KEY])


def _objects(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _coded(column: pa.ChunkedArray, vocabulary: list[str]) -> Coded:
    from equipoise.data.coded import Coded

    codes = pc.index_in(column, pa.array(vocabulary, pa.string())).combine_chunks()
    return Coded(codes.fill_null(-1).to_numpy(zero_copy_only=False), tuple(vocabulary))


def _read_model(folder: Path, name: str, n: int) -> ModelPredictions:
    from equipoise.data import ModelPredictions

    table, about = _read(folder / "predictions" / file_name(name))
    versions = dict(_read_versions(table, about["versions"], n))
    first = table.filter(pc.equal(table["version"], next(iter(versions))))
    state = _coded(first.filter(pc.equal(first["rank"], 1))["state"], about["states"])
    return ModelPredictions(versions, state, about["without_label"], about.get("failed", 0))


def _read_versions(
    table: pa.Table, versions: Mapping[str, Any], n: int
) -> Iterator[tuple[str, Predictions]]:
    from equipoise.data import Predictions
    from equipoise.data.coded import Coded

    for version, facts in versions.items():
        rows = table.filter(pc.equal(table["version"], version))
        labels = _coded(rows["label"], facts["vocabulary"])
        codes = labels.codes.reshape(n, rows.num_rows // n if n else 1)
        ranked = Coded(codes, labels.vocabulary) if facts["ranked"] else None
        classes = tuple(facts["probability_classes"])
        yield (
            version,
            Predictions(
                coded=Coded(codes[:, 0].copy(), labels.vocabulary),
                coded_top=ranked,
                probabilities=_read_shares(rows, len(classes)) if facts["probabilities"] else None,
                probability_classes=classes,
                scale=facts["scale"],
            ),
        )


def _read_shares(rows: pa.Table, classes: int) -> npt.NDArray[np.float64]:
    first = rows.filter(pc.equal(rows["rank"], 1))["probabilities"].combine_chunks()
    return np.asarray(first.flatten(), dtype=np.float64).reshape(len(first), classes)
