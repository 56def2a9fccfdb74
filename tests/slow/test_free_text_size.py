"""Free text of many classes: findings are as many as classes ask for, not as texts."""

import time

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.report import write

CLASSES, ROWS, MODELS = 148, 29_600, 3


@pytest.mark.slow
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("kind", ["predictions", "answers"])
def test_many_classes_of_free_text(kind, groups, tmp_path):
    rng = np.random.default_rng(0)
    jobs = [f"{a}{b} worker" for a in "abcdefghijklm" for b in "nopqrstuvwxy"][:CLASSES]
    truth, group = np.repeat(np.arange(CLASSES), ROWS // CLASSES), rng.integers(0, groups, ROWS)
    frame = pl.DataFrame({
        "id": [f"i{index}" for index in range(ROWS)], "job": [jobs[code] for code in truth],
        "gender": [("female", "male", "other")[code] for code in group],
    })  # fmt: skip
    column, models = "prediction" if kind == "predictions" else "answer", {}
    for name in range(MODELS):
        predicted = np.where(rng.random(ROWS) < 0.6, truth, rng.integers(0, CLASSES, ROWS))
        texts = [
            f"{('She', 'He', 'They')[g]} is one of {i}, a {jobs[s]}" if i % 30 else f"someone, {i}"
            for i, (s, g) in enumerate(zip(predicted, group, strict=True))
        ]
        table = frame.select("id").with_columns(said=pl.Series(texts))
        models[f"m{name}"] = {"table": table, column: "said", "normalize": {}}
    data = {"table": frame, "id": "id", "groups": ["gender"], "target": "job"}
    config = audits.parse_config({"audit": kind, "data": data, "models": models})
    started = time.process_time()
    result = audits.run(config)
    write(result, tmp_path)
    # Twenty seconds on two cores.
    assert time.process_time() - started < 40
    assert len(result.findings) <= 5000
    files = tmp_path / "findings.json", tmp_path / "findings.parquet"
    assert sum(file.stat().st_size for file in files) < 10e6
