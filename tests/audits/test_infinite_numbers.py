"""An infinite number in a file is refused with its file, column and row."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import DataError

N, ROW = 200, 6
RNG = np.random.default_rng(0)
TABLE = pl.DataFrame({
    "id": [f"i{place}" for place in range(N)], "y": RNG.choice(["1", "0"], N),
    "g": RNG.choice(["men", "women"], N), "score": RNG.random(N).round(3),
    "size": RNG.normal(size=N).round(3), "guess": RNG.normal(size=N).round(3),
})  # fmt: skip
DATA = {"table": "t.csv", "id": "id", "groups": ["g"]}
SCORED = {"table": "t.csv", "score": "score", "threshold": 0.5}
REGRESSION = {
    "audit": "regression", "data": {**DATA, "target": "size"},
    "models": {"m": {"table": "t.csv", "prediction": "guess"}},
}  # fmt: skip
BAND = {"rule": "band_groups", "attribute": "band", "column": "size", "bounds": [0]}
CASES = {
    "score": (
        {"audit": "predictions", "data": {**DATA, "target": "y", "positive": "1"},
         "models": {"m": SCORED}}, "score",
    ),
    "target": (REGRESSION, "size"),
    "prediction": (REGRESSION, "guess"),
    "band": (
        {"audit": "predictions", "models": {"m": {"table": "t.csv", "prediction": "y"}},
         "data": {"target": "y", "groups": ["band"],
                  "images": {"table": "t.csv", "id": "id",
                             "rules": [{**BAND, "names": ["low", "high"]}]}}}, "size",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "Infinity"])
@pytest.mark.parametrize("case", CASES)
def test_an_infinite_number_is_named_by_its_place(case, cell, tmp_path, monkeypatch):
    config, column = CASES[case]
    monkeypatch.chdir(tmp_path)
    cells = TABLE[column].cast(pl.String).to_list()
    cells[ROW] = cell
    TABLE.with_columns(pl.Series(column, cells)).write_csv("t.csv")
    with pytest.raises(DataError) as refused:
        audits.run(audits.parse_config(config))
    assert (refused.value.file, refused.value.column) == ("t.csv", column)
    assert refused.value.row == ROW + 1 or f"i{ROW}" in refused.value.problem
