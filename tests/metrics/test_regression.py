"""Regression of bias on co-occurrence, from captions to the slope."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

from equipoise.core import DataError
from equipoise.data import count_captions
from equipoise.metrics import bias_regression

CAPTIONS = [
    "A doctor. He smiles",
    "the DOCTOR and a man",
    "woman doctor",
    "a doctor, a man and a woman",
    "a doctored photo of a man",
    "nurse, she waits",
    None,
]
CONCEPTS = {"doctor": ["doctor", "doctors"], "nurse": ["nurse"], "pilot": ["air line pilot"]}
GROUPS = {"man": ["man", "he"], "woman": ["woman", "she"]}


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "frame"])
def test_captions_are_counted_by_whole_words(tmp_path, kind):
    frame, path = pl.DataFrame({"caption": CAPTIONS}), tmp_path / f"c.{kind}"
    if kind == "json":
        captions = [{"image_id": 1, "caption": text} for text in CAPTIONS if text]
        path.write_text(json.dumps({"annotations": captions}))
    elif kind != "frame":
        getattr(frame, f"write_{kind}")(path)
    counts = count_captions(frame if kind == "frame" else path, CONCEPTS, GROUPS)
    rows = {(row["concept"], row["group"]): row for row in counts.to_dicts()}
    assert (rows["doctor", "man"]["count"], rows["doctor", "man"]["n"]) == (2, 3)
    assert rows["nurse", "woman"]["share"] == 1.0
    assert rows["pilot", "man"]["n"] == 0
    assert np.isnan(rows["pilot", "man"]["share"])


def test_other_files_and_words_are_refused(tmp_path):
    (tmp_path / "c.json").write_text("{}")
    with pytest.raises(DataError) as error:
        count_captions(tmp_path / "c.json", CONCEPTS, GROUPS)
    assert error.value.file == str(tmp_path / "c.json")
    with pytest.raises(DataError, match="words"):
        count_captions(pl.DataFrame({"caption": CAPTIONS}), {"doctor": []}, GROUPS)


def test_the_slope_is_that_of_scipy():
    rng = np.random.default_rng(0)
    x = rng.random(40)
    y = 0.3 * x - 0.1 + rng.normal(0, 0.05, 40)
    estimate, expected = bias_regression(y, x), stats.linregress(x, y)
    slope, intercept, explained = estimate.parts
    assert estimate.value == slope.value == pytest.approx(expected.slope)
    assert intercept.value == pytest.approx(expected.intercept)
    assert explained.value == pytest.approx(expected.rvalue**2)
    assert estimate.p_value < 1e-6


def test_intervals_hold_the_slope_also_where_the_noise_grows():
    rng, covered = np.random.default_rng(1), []
    for _ in range(300):
        x = rng.random(30)
        interval = bias_regression(0.5 * x + rng.normal(0, 0.02 + 0.3 * x), x).interval()
        covered.append(interval.low <= 0.5 <= interval.high)
    assert np.mean(covered) >= 0.925


def test_too_few_concepts_or_equal_ones_have_no_slope():
    assert bias_regression([1, 2, 3], [1, 2, 3]).reason == "fewer than 4 concepts"
    estimate = bias_regression([1, 2, 3, 4], [1, 1, 1, 1])
    assert (estimate.reason, estimate.p_value) == ("all co-occurrences are equal", None)
