"""Joining predictions to labels: states, mappings, ranks, probabilities and what is counted."""

import numpy as np
import polars as pl
from numpy.testing import assert_allclose

from equipoise.data import LabelSource, Normalization, PredictionSource, load_predictions

LABELS = pl.DataFrame(
    {"id": ["3", "1", "2", "10"], "y": ["a", "b", "a", None], "g": ["x", "y", None, "y"]}
)


def load(predictions, *, max_unmatched=0.5, **options):
    source = {"prediction": "p"} | options
    frame = pl.DataFrame(predictions, strict=False)
    return load_predictions(
        LabelSource(LABELS, "id", "y", ("g",)),
        {"m": PredictionSource(frame, **source)},
        max_unmatched=max_unmatched,
    )


def default(data):
    return data.models["m"].versions["default"]


def counts_of(data):
    return data.counts["models"]["m"]


def test_states():
    rows = {"id": ["1", "2", "3", "99", "98"], "p": ["b", "no", "?", "a", "x"]}
    data = load(rows, unknown=("?",), refused=("no", "sorry"))
    model = data.models["m"]
    assert model.state.tolist() == ["answered", "unmatched", "refused", "unknown"]
    assert default(data).label.tolist() == ["b", None, None, None]
    assert model.without_label == 2
    assert counts_of(data) == {
        "rows": 5,
        "ids": 5,
        "matched": 3,
        "without_label": 2,
        "states": {"answered": 1, "missing": 0, "unknown": 1, "refused": 1, "unmatched": 1},
        "versions": {"default": {"map_unused": []}},
    }


def test_mappings_side_by_side():
    maps = {"as given": {}, "strict": {"A": "a", "c": "b"}, "wide": {"A": "a", "c": "a", "z": "b"}}
    data = load({"id": [1, 2, 3], "p": ["A", "c", "b"]}, maps=maps, open_vocabulary=True)
    versions = data.models["m"].versions
    assert list(versions) == ["as given", "strict", "wide"]
    assert versions["as given"].label.tolist() == ["A", None, "c", "b"]
    assert versions["strict"].label.tolist() == ["a", None, "b", "b"]
    assert versions["wide"].label.tolist() == ["a", None, "a", "b"]
    assert versions["wide"].scale == ("mapping wide (accc7024): 'A → a', 'c → a', 'z → b'")
    assert counts_of(data)["versions"]["wide"]["map_unused"] == ["z"]


def test_raw_and_normalised_are_both_kept():
    rows = {"id": [1, 2, 3, 10], "p": ["This is B.", "an A!", "physician", "Unknown."]}
    steps = Normalization(synonyms={"a physician": "A"})
    data = load(rows, normalize=steps, unknown=("unknown",))
    versions = data.models["m"].versions
    assert list(versions) == ["raw", "normalised"]
    assert versions["raw"].label.tolist() == ["This is B.", None, "an A!", "physician"]
    # "A" is what the synonym says; the class that reads the same is "a".
    assert versions["normalised"].label.tolist() == ["b", None, "a", "a"]
    assert versions["normalised"].scale == steps.describe()
    assert data.models["m"].state[1] == "unknown"


SHARES = {"id": [1, 2, 3, 10], "a": [0.2, 0.5, None, 0.9], "b": [0.8, 0.5, None, 0.1]}


def test_probabilities_alone_say_the_label():
    data = load(SHARES, prediction=None, probabilities={"b": "b", "a": "a"})
    version = default(data)
    assert version.probability_classes == ("a", "b")
    assert_allclose(version.probabilities, [[0.2, 0.8], [0.9, 0.1], [0.5, 0.5], [np.nan] * 2])
    # Equal probabilities go to the first class.
    assert version.label.tolist() == ["b", "a", "a", None]
    assert data.models["m"].state[3] == "missing"
    assert version.scale == "most probable class; labels as given"


UNLABELLED = pl.DataFrame(
    {"id": ["c", "a", "b"], "group": ["x", "y", None], "unit": ["u", "u", "v"]}
)
ANSWERS = pl.DataFrame({"id": ["a", "b", "c"], "said": ["A cat.", "", "cat"]})


def unlabelled(**more):
    return LabelSource(UNLABELLED, "id", None, ("group",), **more)


def test_answers_are_joined_without_a_true_class():
    model = PredictionSource(ANSWERS, prediction="said", open_vocabulary=True)
    data = load_predictions(unlabelled(unit="unit"), {"m": model})
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.classes == ()
    assert data.target.tolist() == [None, None, None]
    assert data.attributes["group"].tolist() == ["y", None, "x"]
    assert data.models["m"].versions["default"].label.tolist() == ["A cat.", None, "cat"]
    assert data.models["m"].state.tolist() == ["answered", "missing", "answered"]
    assert data.counts["labels"]["missing"] == {"group": 1, "unit": 0}
