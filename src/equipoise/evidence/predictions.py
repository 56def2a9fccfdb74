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
import pyarrow.parquet as pq

from equipoise.core.errors import RunError

if TYPE_CHECKING:
    from equipoise.data import ModelPredictions, PredictionData, Predictions

Codes = Mapping[str, int]
_KEY = b"equipoise"
_IMAGE_COLUMNS = ("image_id", "target", "unit")
_PREDICTIONS = pa.schema(
    [
        ("image_id", pa.string()),
        ("version", pa.string()),
        ("rank", pa.int32()),
        ("label", pa.string()),
        ("score", pa.float64()),
        ("state", pa.string()),
    ]
)


def write_predictions(run: Path, data: PredictionData) -> None:
    """Write `images.parquet` and one `predictions/<model>.parquet` per model.

    An image has one row per version of the labels and rank. A model that gave probabilities has
    them all, in the order of the classes, in a column `probabilities` of the rows of rank 1.

    Parameters
    ----------
    run : Path
        The directory that `new_run` yields.
    data : PredictionData
    """
    _write(run / "images.parquet", _images(data), _about(data))
    (run / "predictions").mkdir(exist_ok=True)
    for name, model in data.models.items():
        about = {
            "model": name,
            "without_label": model.without_label,
            "versions": {
                version: {"scale": made.scale, "top": made.top is not None}
                for version, made in model.versions.items()
            },
        }
        _write(run / "predictions" / file_name(name), _predictions(data, model), about)


def file_name(model: str) -> str:
    """Return the file name of a model's predictions; a name may hold any character."""
    return f"{quote(model, safe=' ')}.parquet"


def _about(data: PredictionData) -> dict[str, Any]:
    return {
        "attributes": {name: _column(name) for name in data.attributes},
        "classes": [*data.classes],
        "models": [*data.models],
        "inputs": {name: dict(facts) for name, facts in data.inputs.items()},
        "counts": dict(data.counts),
    }


def _column(attribute: str) -> str:
    return f"attribute {attribute}" if attribute in _IMAGE_COLUMNS else attribute


def _images(data: PredictionData) -> pa.Table:
    columns = {"image_id": _texts(data.ids), "target": _texts(data.target)}
    columns |= {_column(name): _texts(labels) for name, labels in data.attributes.items()}
    if data.unit is not None:
        columns["unit"] = _texts(data.unit)
    return pa.table(columns)


def _texts(labels: npt.NDArray[Any]) -> pa.Array:
    return pa.array(labels.tolist(), pa.string())


def _predictions(data: PredictionData, model: ModelPredictions) -> pa.Table:
    classes = {label: code for code, label in enumerate(data.classes)}
    parts = [
        _version(data.ids, model.state, name, made, classes)
        for name, made in model.versions.items()
    ]
    return pa.concat_tables(parts, promote_options="default")


def _version(
    ids: npt.NDArray[Any],
    state: npt.NDArray[Any],
    name: str,
    made: Predictions,
    classes: Codes,
) -> pa.Table:
    top = made.label[:, None] if made.top is None else made.top
    n, ranks = top.shape
    columns = {
        "image_id": _texts(np.repeat(ids, ranks)),
        "version": pa.array([name] * (n * ranks), pa.string()),
        "rank": pa.array(np.tile(np.arange(1, ranks + 1, dtype=np.int32), n)),
        "label": _texts(top.ravel()),
        "score": pa.nulls(n * ranks, pa.float64()),
        "state": _texts(np.repeat(state, ranks)),
    }
    table = pa.table(columns, schema=_PREDICTIONS)
    if made.probabilities is None:
        return table
    return _with_scores(table, top, made.probabilities, classes)


def _with_scores(
    table: pa.Table, top: npt.NDArray[Any], probabilities: npt.NDArray[np.float64], classes: Codes
) -> pa.Table:
    n, ranks = top.shape
    codes = np.array([classes.get(label, -1) for label in top.ravel().tolist()], dtype=np.int64)
    scores = np.repeat(probabilities, ranks, axis=0)[np.arange(n * ranks), codes]
    rows: list[list[float] | None] = [None] * (n * ranks)
    rows[::ranks] = probabilities.tolist()
    table = table.set_column(
        table.schema.get_field_index("score"), "score", pa.array(scores, mask=codes < 0)
    )
    return table.append_column(
        "probabilities", pa.array(rows, pa.list_(pa.float64(), len(classes)))
    )


def _write(path: Path, table: pa.Table, about: Mapping[str, Any]) -> None:
    facts = json.dumps(about, ensure_ascii=False, sort_keys=False, default=str)
    pq.write_table(table.replace_schema_metadata({_KEY: facts.encode()}), path)


def read_predictions(run: str | Path) -> PredictionData:
    """Read back what `write_predictions` wrote.

    Raises
    ------
    RunError
        When a file is missing, damaged, or not of this form.
    """
    from equipoise.data import PredictionData

    folder = Path(run)
    table, about = _read(folder / "images.parquet")
    try:
        return PredictionData(
            ids=_ids(table["image_id"]),
            target=_labels(table["target"]),
            classes=tuple(about["classes"]),
            attributes={
                name: _labels(table[column]) for name, column in about["attributes"].items()
            },
            unit=_labels(table["unit"]) if "unit" in table.column_names else None,
            models={name: _read_model(folder, name, table.num_rows) for name in about["models"]},
            inputs=about["inputs"],
            counts=about["counts"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder}: its predictions are damaged ({error}). To do: run the audit again"
        ) from None


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise RunError(f"{path}: missing from the run. To do: run the audit again") from None
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{path}: cannot be read: {error}. To do: run the audit again") from None
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise RunError(f"{path}: not written by equipoise. To do: run the audit again")
    return table, json.loads(metadata[_KEY])


def _ids(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    return np.array(column.to_pylist(), dtype=np.str_)


def _labels(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    labels = np.empty(len(column), dtype=object)
    labels[:] = column.to_pylist()
    return labels


def _read_model(folder: Path, name: str, n: int) -> ModelPredictions:
    from equipoise.data import ModelPredictions

    table, about = _read(folder / "predictions" / file_name(name))
    versions = dict(_read_versions(table, about["versions"], n))
    rows = table.filter(pc.equal(table["version"], next(iter(versions))))
    state = _labels(rows["state"]).reshape(n, -1)[:, 0].copy()
    return ModelPredictions(versions=versions, state=state, without_label=about["without_label"])


def _read_versions(
    table: pa.Table, versions: Mapping[str, Any], n: int
) -> Iterator[tuple[str, Predictions]]:
    from equipoise.data import Predictions

    for version, facts in versions.items():
        rows = table.filter(pc.equal(table["version"], version))
        top = _labels(rows["label"]).reshape(n, -1)
        yield (
            version,
            Predictions(
                label=top[:, 0].copy(),
                top=top if facts["top"] else None,
                probabilities=_read_probabilities(rows),
                scale=facts["scale"],
            ),
        )


def _read_probabilities(rows: pa.Table) -> npt.NDArray[np.float64] | None:
    if "probabilities" not in rows.column_names:
        return None
    first = rows.filter(pc.equal(rows["rank"], 1))["probabilities"].combine_chunks()
    if first.null_count:
        return None
    size = first.type.list_size
    return np.asarray(first.flatten(), dtype=np.float64).reshape(len(first), size)
