"""Labels and groups of one row that look like a frequent one."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits

ROWS, ODD = 600, 17


def notes_of(column, typo, values):
    rng = np.random.default_rng(3)
    columns = {
        "job": rng.choice(["doctor", "nurse"], ROWS), "gender": rng.choice(["woman", "man"], ROWS),
    }  # fmt: skip
    columns[column] = rng.choice(values, ROWS).astype(object)
    columns[column][ODD - 1] = typo
    frame = pl.DataFrame({"id": np.arange(ROWS).astype(str), **columns, "said": columns["job"]})
    config = {
        "audit": "predictions",
        "data": {"table": frame, "id": "id", "target": "job", "groups": ["gender"]},
        "models": {"m": {"table": frame, "prediction": "said"}},
    }
    return [note for note in audits.plan(audits.parse_config(config)).notes if typo in note]


@pytest.mark.parametrize(
    ("column", "typo", "values"),
    [("job", "docter", ["doctor", "nurse"]), ("gender", "womann", ["woman", "man"])],
)
def test_a_label_of_one_row_that_looks_like_a_frequent_one_is_a_note(column, typo, values):
    [note] = [note for note in notes_of(column, typo, values) if note.startswith(f"{column}: ")]
    assert f"row {ODD} " in note
    assert f"“{values[0]}”" in note


@pytest.mark.parametrize(
    ("typo", "values"),
    [("pilot", ["doctor", "nurse"]), ("n02124", ["n02123", "n02125"])],
)
def test_other_rare_labels_are_none(typo, values):
    assert not [note for note in notes_of("job", typo, values) if "Did you mean" in note]
