"""Images that a live model failed on don't loosen what a file may lack."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from audits.running import worlds
from audits.running.worlds import CHOSEN, IMAGES, QUICK
from equipoise import audits
from equipoise.core.errors import DataError

LACKING, FAILED = 8, 10  # of 96 images: 8.3 % and 10.4 %


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Pictures of which ten can't be decoded, and files of models that lack eight images."""
    worlds.make(tmp_path / "world")
    root = tmp_path / "world"
    for picture in sorted((root / "pictures").iterdir())[:FAILED]:
        picture.write_bytes(b"no picture")
    table = pl.read_csv(root / "images.csv")
    vectors = table.select("image_id").with_columns(a=pl.int_range(pl.len()) + 1.0, b=1.0)
    vectors[:-LACKING].write_csv(root / "vectors.csv")
    scores = table.select("image_id").with_columns(
        [
            (pl.int_range(pl.len()) % (3 + n)).cast(float).alias(name)
            for n, name in enumerate(CHOSEN)
        ]
    )
    scores[:-LACKING].write_csv(root / "scores.csv")
    table.select("image_id", "subject")[:-LACKING].write_csv(root / "labels_of.csv")
    return root


def predictions(**model: Any) -> dict[str, Any]:
    return {
        "audit": "predictions",
        "data": {"images": IMAGES, "target": "subject", "groups": ["frame"]},
        "models": {"m": model or {"model": "hf:clip", "vocabulary": [*CHOSEN]}},
        "resampling": QUICK,
    }


VECTORS = {"file": "vectors.csv", "id": "image_id"}
FILES: dict[str, dict[str, Any]] = {
    "predictions": {"table": "labels_of.csv", "prediction": "subject", "id": "image_id"},
    "diversity": VECTORS,
    "concepts": {"file": "scores.csv", "id": "image_id"},
    "retrieval": {"images": VECTORS, "queries": {"file": "queries_of.csv", "id": "id"}},
}
VALUES = {**worlds.KINDS, "predictions": predictions}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("stored", [False, True])
def test_a_file_that_lacks_images_is_refused_beside_a_model_that_failed_on_some(
    kind: str, stored: bool, world: Path
) -> None:
    pl.DataFrame({"id": [f"q{n}" for n in range(4)], "a": [1.0, 2, 3, 4], "b": 1.0}).write_csv(
        world / "queries_of.csv"
    )
    values = VALUES[kind]() | {"extraction": {"max_failures": 0.2}}
    if stored:
        audits.prepare(audits.parse_config(values), base=world)
    else:
        shutil.rmtree(world / "evidence", ignore_errors=True)
    both = values | {"models": values["models"] | {"file": FILES[kind]}}
    with pytest.raises(DataError) as raised:
        audits.run(audits.parse_config(both), base=world)
    assert f"{LACKING} of 96" in raised.value.problem


@pytest.mark.parametrize("kind", FILES)
def test_images_that_a_live_model_failed_on_are_allowed(kind: str, world: Path) -> None:
    values = VALUES[kind]() | {"extraction": {"max_failures": 0.2}}
    result = audits.run(audits.parse_config(values), base=world)
    failed = result.tables["failures"].to_pylist()
    assert sum(row["n"] for row in failed if not row["group"]) == FAILED
