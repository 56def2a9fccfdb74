"""The configuration: what is read, what is refused, and in which words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.audits.config import Config, load_config, parse_config
from equipoise.audits.config_metrics import THRESHOLDS, EffectSizeOptions
from equipoise.audits.config_yaml import parse_yaml
from equipoise.core.errors import ConfigError

EXAMPLE = """\
audit: predictions
data:
  table: ../shared/data/fairface3k/labels.csv
  id: image_id
  target: gender
  groups: [race, [race, gender]]
models:
  deepface: {table: ../shared/data/fairface3k/deepface.csv, prediction: gender}
  facellm: {table: ../shared/data/fairface3k/facellm.csv, prediction: gender}
resampling: {method: bootstrap, replicates: 1000, seed: 7}
gate:
  - {metric: worst_group_accuracy, min: 0.6}
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a text as c.yaml and load it by that name."""
    monkeypatch.chdir(tmp_path)

    def loaded(content: str | bytes) -> Config:
        raw = content if isinstance(content, bytes) else content.encode()
        Path("c.yaml").write_bytes(raw)
        return load_config("c.yaml")

    return loaded


def message(load: Any, content: str | bytes) -> str:
    with pytest.raises(ConfigError) as raised:
        load(content)
    return str(raised.value)


def outcome(check: Callable[[Any], object], value: Any) -> str:
    """What the check says; anything but a ConfigError passes through and fails the test."""
    try:
        check(value)
    except ConfigError as error:
        return str(error)
    return "accepted"


def values(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "audit": "predictions",
        "data": {"table": "labels.csv", "id": "id", "target": "y", "groups": ["g"]},
        "models": {"m": {"table": "m.csv", "prediction": "p"}},
    }
    return base | changes


def with_model(**keys: Any) -> dict[str, Any]:
    return values(models={"m": {"table": "m.csv", "prediction": "p"} | keys})


def with_data(**keys: Any) -> dict[str, Any]:
    return values(data=values()["data"] | keys)


def refusal(config: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_config(config, source="c")
    return str(raised.value)


def test_the_example_reads_as_it_stands(load: Any) -> None:
    config = load(EXAMPLE)
    assert config.data.groups == (("race",), ("race", "gender"))
    assert [*config.models] == ["deepface", "facellm"]
    assert config.data.table == Path("../shared/data/fairface3k/labels.csv")
    assert (config.resampling.seed, config.resampling.level) == (7, 0.95)
    assert config.gate[0].on == "value"
    assert config.metrics.skewsize == EffectSizeOptions(min_expected=5.0)


def test_the_resolved_configuration_reads_back_as_the_same(load: Any) -> None:
    config = load(EXAMPLE + "metrics: {rates: false, skewsize: {min_expected: 0}}")
    assert parse_config(config.resolved) == config
    assert config.resolved["metrics"]["rates"] is False


def test_yaml_1_1_surprises_are_text(load: Any) -> None:
    config = load(
        EXAMPLE.replace("min: 0.6", "min: 0.6, on: lower, subject: no").replace(
            "deepface: {", "deepface: {map: {yes: on, 70: 1:30, 2024-01-01: 010}, "
        )
    )
    assert (config.gate[0].on, config.gate[0].subject) == ("lower", "no")
    assert config.models["deepface"].map == {"yes": "on", "70": "1:30", "2024-01-01": "010"}


def test_whole_numbers_may_be_labels(load: Any) -> None:
    config = load(EXAMPLE.replace("id: image_id", "id: image_id\n  missing: [-1, NA]"))
    assert config.data.missing == ("-1", "NA")


def test_a_byte_order_mark_and_windows_line_ends_are_read(load: Any) -> None:
    assert load(b"\xef\xbb\xbf" + EXAMPLE.replace("\n", "\r\n").encode()) == load(EXAMPLE)


def test_a_data_frame_is_a_table() -> None:
    frame = pd.DataFrame({"id": [1]})
    config = parse_config(with_data(table=frame))
    assert config.data.table is frame
    assert config.resolved["data"]["table"] == "<DataFrame>"


def test_metrics_are_on_unless_switched_off() -> None:
    metrics = parse_config(
        values(metrics={"rates": False, "accuracy": True, "hit_rate": None, "skewsize": {}})
    ).metrics
    assert metrics.rates is None
    assert metrics.hit_rate is not None
    assert metrics.hit_rate.k == 5
    assert metrics.accuracy is not None
    assert metrics.skewsize == metrics.effect_sizes


def test_a_threshold_replaces_its_default_only() -> None:
    testing = parse_config(values(testing={"thresholds": {"accuracy_gap": 0.1}})).testing
    assert testing.threshold("accuracy_gap") == 0.1
    assert testing.threshold("cramers_v") == THRESHOLDS["cramers_v"]
    assert testing.threshold("skewsize") is None


def test_a_configuration_is_frozen() -> None:
    config = parse_config(values())
    with pytest.raises(ValueError, match="frozen"):
        config.data.id = "other"  # type: ignore[misc]


def test_every_problem_is_in_one_message_with_its_line(load: Any) -> None:
    text = EXAMPLE.replace("groups", "grops").replace("seed: 7", "seed: -1, sede: 2")
    assert message(load, text) == (
        "c.yaml: 4 problems\n"
        "  line 2: data.groups: required, and missing\n"
        "  line 6: data.grops: unknown key. Allowed here: table, id, target, groups, unit, map, "
        "missing, encoding, delimiter, min_group_size, max_unmatched; did you mean 'groups'?\n"
        "  line 10: resampling.seed: given -1; expected greater than or equal to 0\n"
        "  line 10: resampling.sede: unknown key. Allowed here: method, replicates, permutations, "
        "seed, level; did you mean 'seed'?"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "min: 0.6",
            "mn: 0.6, max: 1",
            "c.yaml, line 12: gate[0].mn: unknown key. Allowed here: metric, min, max, on, model, "
            "groups, subject; did you mean 'min'?",
        ),
        (
            "min: 0.6",
            "min: 0.6, on: lowr",
            "c.yaml, line 12: gate[0].on: given 'lowr'; expected 'value', 'lower' or 'upper'; "
            "did you mean 'lower'?",
        ),
        (
            "seed: 7",
            "seed: 7\n  seed: 8",
            "c.yaml, line 10: while parsing: did not find expected ',' or '}'",
        ),
        ("seed: 7", "seed: 7, seed: 8", "c.yaml, line 10: the key 'seed' appears twice"),
        (
            "audit: predictions",
            "audit: images",
            "c.yaml, line 1: audit: given 'images'; expected 'predictions'",
        ),
        (
            "[race, [race, gender]]",
            "race",
            "c.yaml, line 6: data.groups: given 'race'; expected a list",
        ),
        (
            "[race, [race, gender]]",
            "[race, race]",
            "c.yaml, line 6: data.groups: race appears more than once",
        ),
        (
            "1000",
            "true",
            "c.yaml, line 10: resampling.replicates: given True; expected a whole number",
        ),
        (
            "1000",
            "1.5",
            "c.yaml, line 10: resampling.replicates: given 1.5; expected a whole number",
        ),
        ("0.6", ".nan", "c.yaml, line 12: gate[0].min: given nan; expected a finite number"),
        (
            "id: image_id",
            "id: 3",
            "c.yaml, line 4: data.id: given 3; expected text (in quotes where it looks like a "
            "number, true, false or null)",
        ),
        (
            "../shared/data/fairface3k/labels.csv",
            "[]",
            "c.yaml, line 3: data.table: given []; expected the path of a CSV, Parquet or JSON "
            "lines file, or a data frame",
        ),
        (
            "id: image_id",
            "id: !!python/name:os.system x",
            "c.yaml, line 4: the tag 'tag:yaml.org,2002:python/name:os.system' is not allowed; "
            "expected plain YAML",
        ),
    ],
)
def test_a_problem_names_key_line_and_what_is_allowed(
    load: Any, old: str, new: str, expected: str
) -> None:
    said = message(load, EXAMPLE.replace(old, new, 1))
    if "while parsing" in expected:
        assert said.startswith("c.yaml, line 1")
    else:
        assert said == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "c.yaml: empty; expected the keys audit, data, models, "),
        ("[1, 2]", "c.yaml: not a mapping; expected the keys audit, data, models, "),
        ("a: [", "c.yaml, line 1: expected the node content"),
        (b"audit: \xff", "c.yaml: byte 8 is not UTF-8. To do: save the file as UTF-8"),
        ("a\x00b", "c.yaml: not YAML: special characters are not allowed"),
        ("[" * 5000, "c.yaml: nested too deeply; expected at most a few levels"),
        ("a: 1\n---\nb: 2", "c.yaml, line 2: but found another document"),
        ("? [a]\n: b", "c.yaml, line 1: a list or mapping cannot be a key"),
        ("a: " + "9" * 5000, "c.yaml, line 1: '9999"),
        ("a: !!int x", "c.yaml, line 1: 'x' is no integer"),
        (b" " * 4_000_001, "c.yaml: 4000001 bytes; expected a configuration of at most 4000000"),
    ],
)
def test_a_file_that_is_no_configuration(load: Any, content: str | bytes, expected: str) -> None:
    assert message(load, content).startswith(expected)


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        load_config("no.yaml")
    assert str(raised.value) == (
        "no.yaml: no such file. To do: create one with 'equipoise new no.yaml'"
    )
    Path("folder").mkdir()
    with pytest.raises(ConfigError, match=r"^folder: cannot be read: Is a directory$"):
        load_config("folder")


def test_aliases_that_grow_without_bound_are_cut_short(load: Any) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    said = message(load, "\n".join([*lines, EXAMPLE.replace("id: image_id", "id: *a11")]))
    assert "line 16: data.id: given [[[...], [...], [...], [...], ...]" in said
    assert len(said) < 5000
    merged = "\n".join(
        ["m0: &m0 {a: 1}", *(f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}]}}" for i in range(1, 60))]
    )
    assert message(load, merged).endswith("more")


def test_a_list_that_holds_itself(load: Any) -> None:
    said = message(load, EXAMPLE.replace("[race, [race, gender]]", "&a [*a]"))
    assert said.startswith("c.yaml, line 6: data.groups[0][0]: given [[[...]]]; expected text")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            with_model(prediction=None),
            "c: models.m: no prediction. To do: name its column under 'prediction', the columns of "
            "rank 1, 2, ... under 'top', or class to column under 'probabilities'",
        ),
        (
            with_model(top=["a", "b"]),
            "c: models.m: 'prediction' and 'top' are both given; expected one of them",
        ),
        (
            with_model(prediction=None, top=["a"], rank="r"),
            "c: models.m: 'rank' goes with 'prediction' alone: one row per image and rank",
        ),
        (
            with_model(map={"a": "b"}, maps={"x": {"a": "b"}}),
            "c: models.m: 'map' and 'maps' are both given; expected one of them",
        ),
        (
            with_model(unknown=["x"], refused=["x"]),
            "c: models.m: 'x' is listed under more than one of 'missing', 'unknown' and 'refused'",
        ),
        (
            with_model(encoding="klingon"),
            "c: models.m.encoding: given 'klingon'; expected an encoding such as 'utf-8', "
            "'latin-1' or 'cp1252'",
        ),
        (
            with_data(delimiter=";;"),
            "c: data.delimiter: given ';;'; expected one character such as ',', ';' or \"\\t\"",
        ),
        (
            with_data(max_unmatched=2),
            "c: data.max_unmatched: given 2; expected less than or equal to 1",
        ),
        (with_data(groups=[]), "c: data.groups: given []; expected more entries"),
        (with_data(groups=[["a", "a"]]), "c: data.groups[0]: 'a' appears more than once"),
        (with_data(id=""), "c: data.id: given ''; expected a text that is not empty"),
        (with_data(map={}), "c: data.map: given {}; expected more entries"),
        (
            with_data(table=3),
            "c: data.table: given 3; expected the path of a CSV, Parquet or JSON "
            "lines file, or a data frame",
        ),
        (
            values(models={"m": 3}),
            "c: models.m: given 3; expected a mapping",
        ),
        (values(models={}), "c: models: given {}; expected more entries"),
        (
            values(models={n: {"table": "t", "prediction": "p"} for n in ("A", "a")}),
            "c: models: 'A' and 'a' differ in case only; expected distinct names",
        ),
        (
            values(models={"é" * 50: {"table": "t", "prediction": "p"}}),
            f"c: models: the name '{'é' * 40}'… is too long; expected a shorter one",
        ),
        (
            values(metrics={"skewsize": {"min_expectd": 0}}),
            "c: metrics.skewsize.min_expectd: unknown key. Allowed here: statistic, min_expected, "
            "yates, formulation; did you mean 'min_expected'?",
        ),
        (
            values(metrics={"accuracy": {"k": 1}}),
            "c: metrics.accuracy.k: unknown key. This takes no options",
        ),
        (values(metrics={"hit_rate": 3}), "c: metrics.hit_rate: given 3; expected a mapping"),
        (
            values(gate=[{"metric": "accuracy"}]),
            "c: gate[0]: neither 'min' nor 'max' is given; expected at least one of them",
        ),
        (
            values(gate=[{"metric": "accuracy", "min": 0.9, "max": 0.1}]),
            "c: gate[0]: 'min' 0.9 is above 'max' 0.1",
        ),
        (
            values(gate=[{"metric": "accuracy", "min": 0.9, "model": "n"}]),
            "c: gate[0].model: given 'n'. Allowed: m",
        ),
        (
            values(gate=[{"metric": "accuracy", "min": 0.9, "groups": ["g", "h"]}]),
            "c: gate[0].groups: given 'g × h'. Allowed: g",
        ),
        (
            values(resampling={"permutations": 18}),
            "c: resampling.permutations: with 18 no p-value is below 0.0526, and testing.alpha is "
            "0.05; expected at least 19",
        ),
        (
            {1: 2} | values(),
            "c: 1: unknown key. Allowed here: audit, data, models, metrics, resampling, testing, "
            "gate, report",
        ),
        (
            None,
            "c: empty; expected the keys audit, data, models, metrics, resampling, testing, "
            "gate, report. To do: start from 'equipoise new'",
        ),
    ],
)
def test_a_contradiction_or_wrong_value_is_named(config: Any, expected: str) -> None:
    assert refusal(config) == expected


def test_an_unknown_metric_is_named_with_the_nearest() -> None:
    said = refusal(values(gate=[{"metric": "worst_group_acuracy", "min": 0.5}]))
    assert said.startswith("c: gate[0]: no metric is called 'worst_group_acuracy'. Allowed: ")
    assert said.endswith("; did you mean 'worst_group_accuracy'?")
    said = refusal(values(testing={"thresholds": {"cramer": 0.1}}))
    assert said.startswith("c: testing.thresholds: 'cramer' has no threshold. Allowed: ")
    assert said.endswith("; did you mean 'cramers_v'?")


def test_the_fewest_permutations_that_can_reject_are_allowed() -> None:
    assert parse_config(values(resampling={"permutations": 19})).resampling.permutations == 19


def test_many_problems_are_cut_short() -> None:
    said = refusal(values() | {f"x{i}": 1 for i in range(30)})
    assert said.startswith("c: 30 problems\n")
    assert said.endswith("\n  and 10 more")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
TREES = st.recursive(
    SCALARS | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(SCALARS, inner) | st.sets(st.integers()),
    max_leaves=10,
)
KEYS = ("data", "models", "metrics", "resampling", "testing", "gate", "report")


@given(st.fixed_dictionaries({"audit": SCALARS}, optional=dict.fromkeys(KEYS, TREES)) | TREES)
def test_no_value_raises_anything_else(config: Any) -> None:
    assert outcome(parse_config, config)


@given(st.sampled_from(KEYS), st.data())
def test_no_value_inside_a_section_raises_anything_else(section: str, data: st.DataObject) -> None:
    names = {
        "data": [*values()["data"], "map", "missing", "encoding", "delimiter", "unit"],
        "models": ["m"],
        "metrics": ["skewsize", "hit_rate", "equalized_odds"],
        "resampling": ["permutations", "seed", "level"],
        "testing": ["alpha", "thresholds"],
        "report": ["title"],
    }.get(section, ["metric", "min", "groups"])
    part = data.draw(st.dictionaries(st.sampled_from(names), TREES))
    assert outcome(parse_config, values() | {section: [part] if section == "gate" else part})


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    assert outcome(lambda raw: parse_yaml(raw, "c"), content).startswith(
        ("c:", "c, line", "accepted")
    )


@given(st.text(alphabet="!&*<>|%@`'\"[]{}:,-?#~ \nabc019.eE+_yn\t", max_size=40))
def test_no_yaml_like_text_raises_anything_else(text: str) -> None:
    assert outcome(lambda raw: parse_yaml(raw, "c"), text.encode()).startswith(
        ("c:", "c, line", "accepted")
    )
