"""The configuration of audits of concepts: versions, crossing, and what is refused."""

from typing import Any

import pytest

from audits.concepts.worlds import small
from equipoise import audits
from equipoise.audits.concepts.config import Config, Version
from equipoise.audits.config import parse_config
from equipoise.core import ConfigError

BASE: dict[str, Any] = {
    "audit": "concepts",
    "data": {
        "images": {"table": "images.csv", "id": "image"},
        "groups": ["gender", ["gender", "skin"]],
        "labels": {"file": "labels.csv"},
    },
    "models": {"m": {"file": "scores.csv", "maps": {"narrow": {"chef": "cook"}}}},
}


def config(**changes: Any) -> Config:
    found = parse_config(BASE | changes, source="c")
    assert isinstance(found, Config)
    return found


def versions(**changes: Any) -> dict[str, Version]:
    return {one.name: one for one in config(**changes).every_version}


def test_defaults_are_those_of_the_published_protocol() -> None:
    assert config().resampling.replicates == 250
    assert config(resampling={"seed": 3}).resampling.replicates == 250
    assert config().primary == "average_precision"
    assert config(choices={"metric": "auroc"}).primary == "auroc"
    assert [*versions()] == ["baseline"]


def test_a_version_starts_from_the_choices() -> None:
    found = versions(
        choices={
            "ratio": 4,
            "min_positives": 30,
            "where": {"box": {"min": 0.1}},
            "terms": {"gender": {"M": ["man"], "F": ["woman"]}, "skin": {"dark": ["d"]}},
        },
        versions={
            "a": {"prevalence": "observed"},
            "b": {"where": {"year": {"values": ["2020", "2021"]}}},
            "c": {"terms": {"gender": {}}, "columns": {"skin": "tone"}},
        },
    )
    assert found["a"].choices.ratio == 4
    assert found["a"].choices.prevalence == "observed"
    assert [*found["b"].choices.where] == ["box", "year"]
    assert found["c"].choices.terms["gender"] == {}
    assert [*found["c"].choices.terms["skin"]] == ["dark"]
    assert found["b"].changed == ("where.year",)
    assert found["c"].changed == ("terms.gender", "columns.skin")


def test_versions_are_described() -> None:
    found = versions(
        choices={"ratio": 4},
        versions={
            "a": {"prevalence": "hall"},
            "b": {"where": {"box": {"min": 0.05, "max": 0.5}}},
            "c": {"terms": {"gender": {"M": ["man", "boy"]}}, "min_positives": 30},
            "d": {"where": {"year": {"values": ["2020"]}}, "map": "narrow"},
            "e": {"columns": {"gender": "sex"}, "metric": "auroc"},
            "f": {"where": {"box": {}}, "terms": {"gender": {}}, "ratio": 3.5},
            "g": {"prevalence": "weighted", "unlabelled": "leave out"},
            "h": {"prevalence": "observed"},
        },
    )
    said = {name: one.description for name, one in found.items()}
    assert said == {
        "baseline": "",
        "a": "samples of fixed prevalence, 4 negatives for each positive",
        "b": "rows whose box is at least 0.05 and at most 0.5",
        "c": "min positives 30; gender by the terms M: man or boy",
        "d": "rows whose year is 2020; the class mapping “narrow”",
        "e": "metric auroc; gender from the column sex",
        "f": "3.5 negatives for each positive; gender as the data have it; rows of any box",
        "g": "prevalence held fixed by weights, 4 negatives for each positive; unlabelled leave "
        "out",
        "h": "prevalence as the data have it",
    }


DECLARED = {
    "observed": {"prevalence": "observed"},
    "hall": {"prevalence": "hall"},
    "boxes": {"where": {"box": {"min": 0.1}}},
    "years": {"where": {"year": {"min": 2000}}},
}


def test_crossing_combines_versions_that_change_different_things() -> None:
    found = versions(versions=DECLARED, cross=True)
    combined = {
        "boxes + years", "observed + boxes", "observed + years", "observed + boxes + years",
        "hall + boxes", "hall + years", "hall + boxes + years",
    }  # fmt: skip
    assert [*found][:5] == ["baseline", *DECLARED]
    assert {*found} == {"baseline", *DECLARED, *combined}
    both = found["observed + boxes + years"].choices
    assert (both.prevalence, [*both.where]) == ("observed", ["box", "year"])
    some = versions(versions=DECLARED, cross=["hall", "boxes"])
    assert [*some][5:] == ["hall + boxes"]


def test_the_resolved_configuration_says_of_versions_what_they_change() -> None:
    resolved = config(versions={"a": {"prevalence": "hall"}}).resolved
    assert resolved["versions"] == {"a": {"prevalence": "hall"}}
    assert resolved["choices"]["ratio"] == 5.0
    audits.parse_config(resolved)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"metrics": ["average_precison"]},
        "c: metrics[0]: given 'average_precison'; expected 'average_precision', 'auroc', "
        "'true_positive_rate', 'false_positive_rate', 'precision' or 'f1'; did you mean "
        "'average_precision'?",
    ),
    (
        {"versions": {"a": {}}},
        "c: versions.a: changes nothing; expected at least one choice",
    ),
    (
        {"versions": {"baseline": {"ratio": 3}}},
        "c: versions: the name 'baseline' is that of the choices; expected another",
    ),
    (
        {"versions": {"a": {"ratio": 2.5, "prevalence": "hall"}}},
        "c: versions.a: ratio 2.5 under prevalence 'hall'; expected a whole number of negatives "
        "to draw for each positive",
    ),
    (
        {"versions": {"a": {"metric": "false_positive_rate"}}},
        "c: versions.a: metric 'false_positive_rate' beside 'average_precision' in the baseline; "
        "of false_positive_rate higher is worse, of the others lower, so that directions cannot "
        "be compared. To do: list it under 'metrics'",
    ),
    (
        {"versions": {"a": {"map": "narow"}}},
        "c: versions.a.map: given 'narow'. Allowed: narrow; did you mean 'narrow'?",
    ),
    (
        {"models": {"m": {"file": "s.csv"}}, "choices": {"map": "narrow"}},
        "c: choices.map: given 'narrow', and neither labels nor a model has 'maps'; expected a "
        "mapping of that name there",
    ),
    (
        {"choices": {"terms": {"gendr": {"M": ["man"]}}}},
        "c: choices.terms: given 'gendr'. Allowed: gender, skin; did you mean 'gender'?",
    ),
    (
        {"choices": {"columns": {"sex": "gender"}}},
        "c: choices.columns: given 'sex'. Allowed: gender, skin",
    ),
    (
        {"choices": {"terms": {"gender": {"M": ["man", "x"], "F": ["x"]}}}},
        "c: choices: terms.gender: 'x' counts as more than one group; expected each value once",
    ),
    (
        {"choices": {"where": {"box": {"min": 2, "max": 1}}}},
        "c: choices.where.box: 'min' 2.0 is above 'max' 1.0",
    ),
    (
        {"choices": {"where": {"box": {"min": 2, "values": ["a"]}}}},
        "c: choices.where.box: 'values' goes without 'min' and 'max'; expected one of the two",
    ),
    (
        {"cross": ["a"], "versions": {"b": {"ratio": 3}}},
        "c: cross: given 'a'. Allowed: b",
    ),
    (
        {"cross": True, "versions": {f"v{i}": {"where": {f"c{i}": {"min": 0}}} for i in range(9)}},
        "c: cross: more than 200 versions in all. To do: list fewer names",
    ),
    (
        {"gate": [{"metric": "concept_disparity", "max": 0.1}]},
        "c: gate[0].metric: given 'concept_disparity'. Allowed: average_precision, auroc, "
        "concept_difference; did you mean 'concept_difference'?",
    ),
    (
        {"gate": [{"metric": "auroc", "max": 0.1, "groups": "skin"}]},
        "c: gate[0].groups: given 'skin'. Allowed: gender, gender × skin",
    ),
    (
        {"models": {"m": {"file": 3}}},
        "c: models.m.file: given 3; expected the path of a Parquet, CSV, .npy, .npz or "
        ".safetensors file, an array or a data frame",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_a_wrong_configuration_is_refused_in_its_own_words(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        config(**changes)
    assert str(raised.value) == message


def test_data_frames_stand_for_files() -> None:
    assert audits.parse_config(small()).resolved["models"]["m"]["file"] == "(in memory)"
