"""Predictions of models that are run: the same findings as from a table of predictions."""

from functools import partial

import polars as pl
import pytest

from audits.predictions.models import (
    NAMES,
    Answerer,
    Classifier,
    Encoder,
    Scorer,
    configured,
    numbers,
)
from equipoise import audits
from equipoise.core import ConfigError

MAP = {"crimson": "red", "lime": "green", "navy": "blue"}
WORDS = {"red": ["red", "deep red"], "green": ["green"], "blue": ["blue"]}


config = partial(configured, "predictions", {"target": "colour"})


def predictions(colours, **model):
    """The first-ranked labels of the last version, in the order of the table."""
    data = audits.prepare(config(**model), base=colours).data
    return [*[*data.models["m"].versions.values()][-1].label]


def shown(colours):
    return pl.read_csv(colours / "images.csv")["shown"].to_list()


@pytest.mark.parametrize(
    "model",
    [
        {"model": Encoder(), "vocabulary": [*NAMES]},
        {"model": Encoder(bias=-3.0), "vocabulary": WORDS, "templates": ["{}", "the {} one"]},
        {"model": Scorer(), "vocabulary": WORDS, "templates": "openai_7", "k": 1},
        {"model": Classifier(), "map": MAP},
    ],
    ids=["encoder", "encoder with a bias", "scorer", "classifier"],
)
def test_predictions_are_the_colours_of_the_pictures(colours, model):
    assert predictions(colours, **model) == shown(colours)


def test_answers_are_brought_to_classes_and_unknown_ones_counted(colours):
    settings = {
        "model": Answerer(), "question": "Which colour is it?", "normalize": {},
        "unknown": ["i do not know"],
    }  # fmt: skip
    expected = [None if colour == "blue" else colour for colour in shown(colours)]
    assert predictions(colours, **settings) == expected
    data = audits.prepare(config(**settings), base=colours).data
    assert [*data.models["m"].versions] == ["raw", "normalised"]
    assert data.counts["models"]["m"]["states"]["unknown"] == expected.count(None)


def test_the_findings_equal_the_audit_of_a_table_of_predictions(colours):
    run = audits.run(config(model=Classifier(), map=MAP, k=1), base=colours)
    table = pl.read_csv(colours / "images.csv").rename({"shown": "said"})
    from_table = audits.run(config(table=table, prediction="said"), base=colours)
    assert numbers(run) == numbers(from_table)
    worst = [finding.value for finding in run.findings if finding.aggregate == "worst_group"]
    assert max(worst) < 0.8
    assert run.manifest.models["m"]["name"] == "python:fake:classifier"


@pytest.mark.parametrize(
    "model",
    [
        {"model": Encoder()},
        {"model": Answerer()},
        {"model": Classifier(), "vocabulary": [*NAMES]},
        {"prediction": "p"},
        {"table": "t"},
        {"model": "hf:x", "table": "t"},
        {"table": "t", "prediction": "p", "k": 3},
        {"model": "hf:x", "question": "?", "vocabulary": ["a", "b"]},
        {"model": "hf:x", "vocabulary": ["a"]},
        {"model": "hf:x", "vocabulary": ["a", "b", "a"]},
        {"model": "hf:x", "vocabulary": {"lexicon": "mandal_2024_words"}},
    ],
)
def test_a_section_that_cannot_work_is_refused(colours, model):
    with pytest.raises(ConfigError, match="models.m"):
        audits.run(config(**model), base=colours)
