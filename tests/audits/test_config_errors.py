"""The configuration: what is refused, and in which words."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audits.configs import EXAMPLE, message, refusal, values, with_data, with_model
from equipoise.audits.config import load_config, parse_config
from equipoise.cli.making.config import load_making
from equipoise.core.errors import ConfigError


def test_every_problem_is_in_one_message_with_its_line(load: Any) -> None:
    text = EXAMPLE.replace("groups", "grops").replace("seed: 7", "seed: -1, sede: 2")
    assert message(load, text) == (
        "c.yaml: 4 problems\n"
        "  line 2: data.groups: required, and missing\n"
        "  line 6: data.grops: unknown key. Allowed here: target, table, id, images, groups, unit, "
        "map, missing, encoding, delimiter, min_group_size, max_unmatched; did you mean 'groups'?\n"
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
            "groups, subject, version; did you mean 'min'?",
        ),
        (
            "min: 0.6",
            "min: 0.6, on: lowr",
            "c.yaml, line 12: gate[0].on: given 'lowr'; expected 'value', 'lower' or 'upper'; "
            "did you mean 'lower'?",
        ),
        ("seed: 7", "seed: 7, seed: 8", "c.yaml, line 10: the key 'seed' appears twice"),
        (
            "audit: predictions",
            "audit: images",
            "c.yaml, line 1: audit: given 'images'; expected one of predictions, associations, "
            "retrieval, similarity, concepts, diversity, answers, counterfactuals, text_to_image, "
            "generation, activations; did you mean 'text_to_image'?",
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
        ("0.6", ".nan", "c.yaml, line 12: gate[0].min: given nan; expected a finite number"),
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
        ("a: [", "c.yaml, line 1: expected the node content"),
        (b"audit: \xff", "c.yaml: byte 8 is not UTF-8. To do: save the file as UTF-8"),
        ("a\x00b", "c.yaml: not YAML: special characters are not allowed"),
        ("[" * 5000, "c.yaml: nested too deeply; expected at most a few levels"),
        ("a: 1\n---\nb: 2", "c.yaml, line 2: but found another document"),
        ("? [a]\n: b", "c.yaml, line 1: a list or mapping cannot be a key"),
        ('a: 1\nmodels: {"m\\uD800": 1}', "c.yaml, line 2: 'm\\ud800' has a surrogate"),
        (b" " * 4_000_001, "c.yaml: 4000001 bytes; expected a configuration of at most 4000000"),
    ],
)
def test_a_file_that_is_no_configuration(load: Any, content: str | bytes, expected: str) -> None:
    assert message(load, content).startswith(expected)


@pytest.mark.parametrize("read", [load_config, load_making])
def test_a_pipe_or_a_device_is_not_waited_for(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name, kind in (("pipe.yaml", "named pipe"), ("zero.yaml", "device")):
        with pytest.raises(ConfigError) as raised:
            read(tmp_path / name)
        assert str(raised.value) == (
            f"{tmp_path / name}: it is no regular file: a {kind}. To do: write what it gives to a "
            "file, and name that"
        )


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
            with_data(max_unmatched=2),
            "c: data.max_unmatched: given 2; expected less than or equal to 1",
        ),
        (
            values(gate={"metric": "accuracy", "min": 0.5}),
            "c: gate: given {'metric': 'accuracy', 'min': 0.5}; expected a list of mappings, each "
            "with keys of metric, min, max, on, model, groups, subject, version",
        ),
        (with_data(groups=[["a", "a"]]), "c: data.groups[0]: 'a' appears more than once"),
        (
            with_data(table=3),
            "c: data.table: given 3; expected the path of a CSV, Parquet or JSON "
            "lines file, or a data frame",
        ),
        (
            values(models={n: {"table": "t", "prediction": "p"} for n in ("A", "a")}),
            "c: models: 'A' and 'a' differ in case only; expected distinct names",
        ),
        (
            values(metrics={"skewsize": {"min_expectd": 0}}),
            "c: metrics.skewsize.min_expectd: unknown key. Allowed here: statistic, min_expected, "
            "yates, formulation; did you mean 'min_expected'?",
        ),
        (
            values(gate=[{"metric": "accuracy", "min": 0.9, "max": 0.1}]),
            "c: gate[0]: 'min' 0.9 is above 'max' 0.1",
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
            None,
            "c: empty; expected the keys audit, data, models, metrics, extraction, resampling, "
            "testing, gate, report. To do: start from 'equipoise new'",
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
    assert said.startswith("c: testing.thresholds: no metric is called 'cramer'. Allowed: ")
    assert said.endswith("; did you mean 'cramers_v'?")


def test_a_metric_of_another_kind_of_audit_is_told_from_one_that_is_none() -> None:
    said = refusal(values(gate=[{"metric": "ndkl", "max": 0.5}]))
    assert said.startswith(
        "c: gate[0]: 'ndkl' is not measured by audits of predictions. Allowed: accuracy, "
    )
    assert "did you mean" not in said
    said = refusal(values(testing={"thresholds": {"ndkl": 0.5}}))
    assert said.startswith("c: testing.thresholds: 'ndkl' is not measured by audits of predictions")


def test_the_fewest_permutations_that_can_reject_are_allowed() -> None:
    assert parse_config(values(resampling={"permutations": 19})).resampling.permutations == 19


def test_many_problems_are_cut_short() -> None:
    said = refusal(values() | {f"x{i}": 1 for i in range(30)})
    assert said.startswith("c: 30 problems\n")
    assert said.endswith("\n  and 10 more")
