"""Predictions of models that are run: the same findings as from a table of what they say."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from audits.predictions.models import NAMES, Answerer, Classifier, Encoder, Scorer, painted
from equipoise import audits
from equipoise.core import ConfigError, DataError
from equipoise.core.result import AuditResult

MAP = {"crimson": "red", "lime": "green", "navy": "blue"}
WORDS = {"red": ["red", "deep red"], "green": ["green"], "blue": ["blue"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colours")
    painted(folder)
    return folder


def config(**model: Any) -> Any:
    images = {"table": "images.csv", "id": "id", "path": "file", "root": "pictures"}
    return audits.parse_config(
        {
            "audit": "predictions",
            "data": {"images": images, "target": "colour", "groups": ["group"]},
            "models": {"m": model},
            "resampling": {"replicates": 20, "permutations": 99},
        }
    )


def predictions(folder: Path, **model: Any) -> list[Any]:
    """The first-ranked labels of the last version, in the order of the table."""
    data = audits.load(config(**model), base=folder)
    return [*[*data.models["m"].versions.values()][-1].label]


def shown(folder: Path) -> list[str]:
    return pl.read_csv(folder / "images.csv")["shown"].to_list()


def finding(result: AuditResult, metric: str) -> Any:
    return next(one for one in result.findings if one.metric == metric and not one.subject)


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
def test_what_a_model_sees_in_pictures_is_what_it_predicts(
    folder: Path, model: dict[str, Any]
) -> None:
    assert predictions(folder, **model) == shown(folder)


def test_answers_are_brought_to_classes_and_unknown_ones_counted(folder: Path) -> None:
    asked = {
        "model": Answerer(), "question": "Which colour is it?", "normalize": {},
        "unknown": ["i do not know"],
    }  # fmt: skip
    expected = [None if colour == "blue" else colour for colour in shown(folder)]
    assert predictions(folder, **asked) == expected
    data = audits.load(config(**asked), base=folder)
    assert [*data.models["m"].versions] == ["raw", "normalised"]
    assert data.counts["models"]["m"]["states"]["unknown"] == expected.count(None)


def test_the_findings_are_those_of_a_table_of_what_the_model_says(folder: Path) -> None:
    run = audits.run(config(model=Classifier(), map=MAP, k=1), base=folder)
    table = pl.read_csv(folder / "images.csv").rename({"shown": "said"})
    told = audits.run(config(table=table, prediction="said"), base=folder)
    numbers = ("metric", "subject", "value", "ci_low", "ci_high", "chance", "q_value", "verdict")
    rows = [
        [repr([getattr(one, name) for name in numbers]) for one in result.findings]
        for result in (run, told)
    ]
    assert rows[0] == rows[1]
    assert finding(run, "worst_group_accuracy").value < 0.8
    assert run.manifest.models["m"]["name"] == "python:fake:classifier"


def test_ranks_are_kept_so_that_hits_are_counted(folder: Path) -> None:
    result = audits.run(config(model=Encoder(), vocabulary=[*NAMES], k=2), base=folder)
    rate, gap = finding(result, "hit_rate"), finding(result, "accuracy")
    assert rate.value >= gap.value
    data = audits.load(config(model=Encoder(), vocabulary=[*NAMES], k=9), base=folder)
    assert data.models["m"].versions["default"].top.shape == (120, 3)


def test_pictures_that_the_model_never_saw_are_in_none_of_its_numbers(tmp_path: Path) -> None:
    painted(tmp_path)
    for name in ("p007", "p009"):
        (tmp_path / "pictures" / f"{name}.png").write_bytes(b"no picture")
    result = audits.run(config(model=Encoder(), vocabulary=[*NAMES]), base=tmp_path)
    states = {
        row["state"]: row["count"]
        for row in result.tables["states"].to_pylist()
        if not row["groups"]
    }
    assert states == {"answered": 118, "unmatched": 2}
    assert not [one for one in result.findings if one.metric == "unanswered_rate"]
    failed = [row for row in result.tables["failures"].to_pylist() if row["group"] == "b"]
    assert [(row["stage"], row["n"], row["of"]) for row in failed] == [("decode", 2, 60)]
    notes = [note for note in result.manifest.notes if note.startswith("m:")]
    assert notes[0] == (
        "m: 2 of 120 images failed and are in no number (pictures that could not be decoded: 2)."
    )
    assert not [note for note in notes if "prediction row" in note]


def test_failed_images_are_not_counted_as_rows_without_a_prediction(tmp_path: Path) -> None:
    painted(tmp_path)
    (tmp_path / "pictures" / "p007.png").write_bytes(b"no picture")
    table = pl.read_csv(tmp_path / "images.csv")[1:]
    values = config(model=Encoder(), vocabulary=[*NAMES]).model_dump(mode="python")
    values["models"] = {
        "live": {"model": Encoder(), "vocabulary": [*NAMES]},
        "file": {"table": table, "prediction": "shown"},
    }
    result = audits.run(audits.parse_config(values), base=tmp_path)
    states = {
        (row["model"], row["state"]): row["count"]
        for row in result.tables["states"].to_pylist()
        if not row["groups"]
    }
    assert states["live", "unmatched"] == states["file", "unmatched"] == 1
    notes = [note for note in result.manifest.notes if "no prediction row" in note]
    assert [note.split(":")[0] for note in notes] == ["file"]


def test_a_second_run_asks_the_model_nothing(folder: Path) -> None:
    class Silent(Encoder):
        def embed_images(self, images: Any) -> Any:
            raise AssertionError(images)

        embed_texts = embed_images

    asked = {"vocabulary": [*NAMES], "templates": "openai_80"}
    first = predictions(folder, model=Encoder(), **asked)
    assert predictions(folder, model=Silent(), **asked) == first


@pytest.mark.parametrize(
    "model",
    [
        {"model": Encoder(), "vocabulary": [*NAMES]},
        {"model": Classifier(), "map": MAP},
        {"model": Answerer(), "question": "Which colour is it?"},
        {"model": "python:somewhere:factory"},
    ],
)
def test_a_plan_runs_no_model(folder: Path, model: dict[str, Any]) -> None:
    planned = audits.plan(config(**model), base=folder)
    assert planned.details["rows"] == 120
    assert planned.runs


@pytest.mark.parametrize(
    ("vocabulary", "first"),
    [
        ({"lexicon": "mandal_2024_words", "list": "occupations"}, "accountant"),
        ({"lexicon": "mandal_2024_prompts", "list": "targets.occupations.men"}, "chief executive"),
        ({"file": "words.csv", "column": "class", "words": "word"}, "red"),
        ({"file": "words.csv", "column": "class"}, "red"),
    ],
)
def test_a_vocabulary_may_come_from_a_lexicon_or_a_file(
    tmp_path: Path, vocabulary: Any, first: str
) -> None:
    (tmp_path / "words.csv").write_text("class,word\nred,crimson\nred,scarlet\nblue,navy\n,x\n")
    read = config(model=Encoder(), vocabulary=vocabulary).models["m"].vocabulary.read(tmp_path)
    assert next(iter(read)).startswith(first)
    if "words" in vocabulary:
        assert read == {"red": ("crimson", "scarlet"), "blue": ("navy",)}


@pytest.mark.parametrize("rows", ["", "red,red\n", ",x\nred,\n"])
def test_a_vocabulary_of_a_file_has_two_classes(folder: Path, tmp_path: Path, rows: str) -> None:
    path = tmp_path / "words.csv"
    path.write_text(f"class,word\n{rows or 'red,'}\n")
    vocabulary = {"file": path, "column": "class", "words": "word"}
    with pytest.raises(DataError) as raised:
        audits.plan(config(model=Encoder(), vocabulary=vocabulary), base=folder)
    found = "1 class" if rows.startswith("red") else "0 classes"
    assert str(raised.value) == (
        f"{path}, column 'class': a vocabulary of {found}. Expected: 2 or more classes to choose "
        "between. To do: name the column of classes, or list them under 'vocabulary'."
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"model": Encoder()},
            "models.m: python:fake:encoder is a dual encoder (images and texts in one space) and "
            "needs a 'vocabulary'. To do: list the classes that it chooses between",
        ),
        (
            {"model": Answerer()},
            "models.m: python:fake:answerer is a model that answers questions and needs a "
            "'question'. To do: give what it is asked about each image",
        ),
        (
            {"model": Classifier(), "vocabulary": [*NAMES]},
            "is a classifier; an audit of predictions takes "
            "a dual encoder (images and texts in one space) or a model that scores pairs of an "
            "image and a text",
        ),
    ],
)
def test_a_model_without_what_it_needs_is_refused(
    folder: Path, model: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        audits.run(config(**model), base=folder)
    assert str(raised.value).startswith("models.m")
    assert str(raised.value).endswith(message)


def test_a_table_without_files_cannot_be_run_on(folder: Path) -> None:
    given = audits.parse_config(
        {
            "audit": "predictions",
            "data": {"table": "images.csv", "id": "id", "target": "colour", "groups": ["group"]},
            "models": {"m": {"model": Encoder(), "vocabulary": [*NAMES]}},
        }
    )
    with pytest.raises(ConfigError, match=r"data\.images: models\.m\.model runs on the pictures"):
        audits.run(given, base=folder)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"prediction": "p"}, "'table' is missing. To do: name the table of its predictions"),
        ({"table": "t"}, "no prediction. To do: name its column under 'prediction'"),
        ({"model": "hf:x", "table": "t"}, "'model' and 'table' are given; expected 'model' to run"),
        ({"model": "hf:x", "rank": "r"}, "'model' and 'rank' are given; expected 'model' to run"),
        (
            {"table": "t", "prediction": "p", "k": 3},
            "'k' is about a model to run, and no 'model' is given",
        ),
        (
            {"model": "hf:x", "question": "?", "vocabulary": ["a", "b"]},
            "'question' and 'vocabulary' are both given; expected a question for a model that",
        ),
        (
            {"model": "hf:x", "vocabulary": ["a"]},
            "models.m.vocabulary: given ['a']; expected a list of 2 or more classes, each a text, "
            "each once",
        ),
        (
            {"model": "hf:x", "vocabulary": [["a"], "b"]},
            "expected a list of 2 or more classes, each a text, each once",
        ),
        (
            {"model": "hf:x", "vocabulary": {"a": ["x"], "b": []}},
            "classes: 'b' has the words []; expected a class and one word or more that stand for",
        ),
        ({"model": "hf:x", "vocabulary": ["", "b"]}, "classes: '' has the words ['']; expected a"),
        (
            {"model": "hf:x", "vocabulary": ["a", "b", "a"]},
            "models.m.vocabulary: given ['a', 'b', 'a']; expected a list of 2 or more classes",
        ),
        (
            {"model": "hf:x", "vocabulary": "occupations"},
            "models.m.vocabulary: given 'occupations'; expected classes (a list, or",
        ),
        (
            {"model": "hf:x", "vocabulary": {}},
            "nothing is given; expected classes (a list, or class to words), a 'lexicon' with",
        ),
        (
            {"model": "hf:x", "vocabulary": {"lexicon": "mandal_2024_words", "file": "f.csv"}},
            "'lexicon' and 'file' are given; expected classes (a list, or class to words), a",
        ),
        (
            {"model": "hf:x", "vocabulary": {"lexicon": "mandal_2024_word"}},
            "; did you mean 'mandal_2024_words'?",
        ),
        (
            {"model": "hf:x", "vocabulary": {"lexicon": "mandal_2024_words", "list": "occupation"}},
            "the lexicon 'mandal_2024_words' has no list 'occupation'. Allowed: adjectives_men",
        ),
        (
            {"model": "hf:x", "vocabulary": {"file": "f.csv"}},
            "'column' is missing: the column of the file that names the class",
        ),
        (
            {"model": "hf:x", "vocabulary": {"lexicon": "mandal_2024_words", "column": "c"}},
            "'column' goes with 'file', and 'lexicon' is given",
        ),
        (
            {"model": "hf:x", "vocabulary": {"dog": "puppy"}},
            "models.m.vocabulary.dog: unknown key. Allowed here: classes, lexicon, list, file,",
        ),
    ],
)
def test_what_contradicts_itself_is_named(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(**model)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "data: 'table' is missing. To do: give 'table' and 'id', or 'images'"),
        ({"table": "t"}, "data: 'id' is missing. To do: give 'table' and 'id', or 'images'"),
        (
            {"images": {"folder": "f"}, "missing": ["?"]},
            "data: 'images' and 'missing' are given; expected 'missing' within 'images'",
        ),
    ],
)
def test_images_stand_in_one_place(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        audits.parse_config(
            {
                "audit": "predictions",
                "data": {"target": "y", "groups": ["g"]} | data,
                "models": {"m": {"table": "t", "prediction": "p"}},
            }
        )
    assert message in str(raised.value)
