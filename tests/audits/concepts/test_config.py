"""The configuration of audits of concepts: versions, and what is refused."""

import pytest

from equipoise.audits import parse_config
from equipoise.audits.concepts.config import Config
from equipoise.core import ConfigError

BASE = {
    "audit": "concepts",
    "data": {
        "images": {"table": "images.csv", "id": "image"},
        "groups": ["gender", ["gender", "skin"]],
        "labels": {"file": "labels.csv"},
    },
    "models": {"m": {"file": "scores.csv", "maps": {"narrow": {"chef": "cook"}}}},
}


def config(**changes):
    parsed = parse_config(BASE | changes, source="c")
    assert isinstance(parsed, Config)
    return parsed


def versions(**changes):
    return {version.name: version for version in config(**changes).every_version}


def test_defaults_follow_the_published_protocol():
    assert config().resampling.replicates == 250
    assert config(resampling={"seed": 3}).resampling.replicates == 250
    assert config().primary == "average_precision"
    assert config(choices={"metric": "auroc"}).primary == "auroc"
    assert [*versions()] == ["baseline"]


def test_a_version_starts_from_the_choices():
    by_name = versions(
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
    assert by_name["a"].choices.ratio == 4
    assert by_name["a"].choices.prevalence == "observed"
    assert [*by_name["b"].choices.where] == ["box", "year"]
    assert by_name["c"].choices.terms["gender"] == {}
    assert [*by_name["c"].choices.terms["skin"]] == ["dark"]
    assert [*by_name["b"].changes] == ["where"]
    assert by_name["c"].description == "terms: {gender: {}}; columns: {skin: tone}"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"versions": {"a": {}}}, "versions.a: changes nothing"),
        ({"versions": {"baseline": {"ratio": 3}}}, "versions: 'baseline'"),
        ({"versions": {"a": {"ratio": 2.5, "prevalence": "hall"}}}, "versions.a: ratio 2.5"),
        ({"versions": {"a": {"metric": "false_positive_rate"}}}, "versions.a: metric"),
        ({"choices": {"terms": {"gendr": {"M": ["man"]}}}}, "choices.terms: given 'gendr'"),
        ({"choices": {"terms": {"gender": {"M": ["x"], "F": ["x"]}}}}, "terms.gender: 'x'"),
        ({"choices": {"where": {"box": {"min": 2, "max": 1}}}}, "choices.where.box: 'min' 2.0"),
        ({"data": BASE["data"] | {"labels": {}}}, "data: labels.file: required"),
    ],
)
def test_a_wrong_config_names_the_key(changes, named):
    with pytest.raises(ConfigError) as raised:
        config(**changes)
    assert named in str(raised.value)
