"""Configs that are refused: the error names the key, its line, and what is allowed."""

import os

import pytest
import yaml

from audits.configs import EXAMPLE, message, refusal, values, with_data, with_model
from audits.live_models.worlds import diversity, retrieval
from equipoise.audits import load_config
from equipoise.core import ConfigError

CAPTIONS = {"format": "coco", "files": {"captions": "c.json"}}
STREET = {"format": "dollar_street", "files": "d.csv"}
FILES = {"images": {"file": "a.npy"}, "queries": {"file": "b.npy"}}


def test_every_problem_is_in_one_message_with_its_line(load):
    lines = message(load, EXAMPLE.replace("groups", "grops").replace("seed: 7", "seed: -1")).split(
        "\n"
    )
    assert lines[0] == "c.yaml: 2 problems"
    assert lines[1].startswith("  line 6: data.grops: unknown key. Allowed here: target, ")
    assert lines[1].endswith("; did you mean 'groups'?")
    assert lines[2] == "  line 10: resampling.seed: given -1; expected at least 0"


def test_an_unknown_key_hides_no_other_problem(load):
    text = EXAMPLE.replace("groups", "grops").replace("seed: 7", "seed: null, sed: 1")
    with pytest.raises(ConfigError) as raised:
        load(f"{text}hypothesis: 1\nmetrics: {{acuracy: true, precison: true}}\n")
    last = len(text.splitlines())
    assert [(problem.line, problem.key) for problem in raised.value.problems] == [
        (6, "data.grops"), (10, "resampling.sed"), (10, "resampling.seed"),
        (last + 1, "hypothesis"), (last + 2, "metrics.acuracy"), (last + 2, "metrics.precison"),
    ]  # fmt: skip
    assert raised.value.key == "data.grops"
    given = [problem for problem in raised.value.problems if problem.key == "resampling.seed"]
    assert "given nothing; expected a whole number" in str(given[0])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "min: 0.6",
            "min: 0.6, on: lowr",
            ", line 12: gate[0].on: given 'lowr'; expected 'value', ",
        ),
        ("seed: 7", "seed: 7, seed: 8", ", line 10: the key 'seed' appears twice"),
        (
            "audit: predictions",
            "audit: prediction",
            ", line 1: audit: given 'prediction'; expected ",
        ),
        ("[race, [race, gender]]", "race", ", line 6: data.groups: given 'race'; expected a list"),
        ("[race, [race, gender]]", "&a [*a]", ", line 6: data.groups[0][0]: given [[[...]]]"),
        ("1000", "true", ", line 10: resampling.replicates: given true; expected a whole number"),
        ("0.6", ".nan", ", line 12: gate[0].min: given .nan; expected a finite number"),
        ("image_id", "!!python/name:os.system x", ", line 4: could not determine a constructor"),
    ],
)
def test_a_problem_names_key_line_and_allowed_values(load, old, new, expected):
    assert expected in message(load, EXAMPLE.replace(old, new, 1))


def test_a_check_of_the_whole_config_names_the_line_of_its_key(load):
    with pytest.raises(ConfigError) as raised:
        load(EXAMPLE.replace("min: 0.6", "min: 0.6, model: no such model", 1))
    assert (raised.value.key, raised.value.line) == ("gate[0].model", 12)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "c.yaml: empty; expected the keys audit, metrics, data, models, "),
        ("a: [", "c.yaml, line 1: "),
        (b"audit: \xff", "c.yaml, line 1: byte 8 of the file is not UTF-8"),
        ("a\x00b", "c.yaml: not YAML: "),
        ("[" * 5000, "c.yaml: nested too deeply"),
        ('a: 1\nmodels: {"m\\uD800": 1}', "c.yaml, line 2: 'm\\ud800' has a surrogate"),
        (b" " * 4_000_001, "c.yaml: 4000001 bytes; expected at most 4000000"),
    ],
)
def test_a_file_that_is_no_configuration(load, content, expected):
    assert message(load, content).startswith(expected)


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name, kind in (
        ("pipe.yaml", "regular file"), ("zero.yaml", "regular file"), ("", "Is a directory"),
        ("no.yaml", "doesn't exist"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=kind) as raised:
            load_config(tmp_path / name)
        assert str(raised.value).startswith(f"{tmp_path / name}: ")


def test_aliases_that_grow_without_bound_are_cut_short(load):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    text = EXAMPLE.replace("gate:", f"report: {{title: [{lines[0][4:]}]}}\ngate:")
    assert len(message(load, "\n".join([*lines, text]))) < 5000
    merged = "\n".join(
        ["m0: &m0 {a: 1}", *(f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}]}}" for i in range(1, 60))]
    )
    assert "m0: unknown key" in message(load, merged)


def gate(**rule):
    return values(gate=[{"metric": "accuracy", "min": 0.5} | rule])


HYPOTHESIS = {"table": "h.csv", "concept": "job"}
REFERENCE = {"images": {"table": "t", "id": "i"}, "models": {"n": {"file": "f"}}}


def sets(**changes):
    images = {"table": "t.csv", "id": "i"}
    base = {"audit": "counterfactuals", "data": {"images": images, "groups": ["g"]}}
    return base | {"models": {"m": {"model": "hf:clip"}}} | changes


def similarity(*hypotheses):
    data = {"images": {"table": "t.csv", "id": "i"}, "groups": ["g", "h"]}
    base = sets() | {"audit": "similarity", "data": data, "hypotheses": [*hypotheses]}
    return base | {"queries": {"table": "q.csv", "id": "q"}}


def within():
    base = diversity(file="f.npy")
    return base | {"data": base["data"] | {"within": "frame"}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (with_model(prediction=None), "models.m: no prediction."),
        (with_model(top=["a", "b"]), "models.m: 'prediction' and 'top' are both given"),
        (with_model(encoding="klingon"), "models.m.encoding: given 'klingon'"),
        (with_data(max_unmatched=2), "data.max_unmatched: given 2; expected at most 1"),
        (with_data(groups=[["a", "a"]]), "data.groups[0]: 'a' appears more than once"),
        (with_data(table=3), "data.table: given 3; expected the path of a file"),
        (with_data(images={"folder": "x"}), "data: 'table' is outside 'images'"),
        (gate(max=0.1), "gate[0]: gate rule on accuracy: min 0.5, max 0.1. To do: "),
        (gate(verdict="disparity"), "gate[0]: gate rule on accuracy: min beside verdict. To do: "),
        (gate(worse_than="runs/a"), "gate[0]: gate rule on accuracy: min beside worse_than. "),
        (gate(verdict="bad"), "gate[0].verdict: given 'bad'; expected 'disparity', 'detected' or "),
        (gate(worse_than=""), "gate[0].worse_than: given ''"),
        (gate(bound="lower"), "gate[0].bound: unknown key"),
        (values(gate=[{"min": 0.5}]), "gate[0]: gate rule on no metric: bounds without a metric"),
        (gate(groups=["g", "h"]), "gate[0].groups: given 'g × h'. Allowed: g"),
        (gate(metric="accuracyy"), "gate[0].metric: 'accuracyy' isn't a metric of audits of "),
        (
            values(models={n: {"table": "t", "prediction": "p"} for n in ("A", "a")}),
            "models: expected names that differ in more than case",
        ),
        (
            values(resampling={"permutations": 18}),
            "resampling.permutations: with 18 no p-value is below 0.0526",
        ),
        (retrieval(model="clip"), "models.m.model: given 'clip'"),
        (retrieval(model="hf:clip", device="gpu"), "models.m.device: given 'gpu'"),
        (retrieval(model="hf:a", **FILES), "models.m: 'model' and 'images' are given"),
        (retrieval(revision="main", **FILES), "models.m: 'revision' is about a model to run"),
        (retrieval() | {"ranking": {"k": "12"}}, "ranking.k[0]: given '12'; expected a whole"),
        (retrieval() | {"ranking": {"desired": "unifrom"}}, "ranking.desired: given 'unifrom'; "),
        (retrieval(images={"file": "f.npy"}), "models.m: given {'images': {'file': 'f.npy'}}; "),
        (sets(queries={"table": "q.csv", "id": "q"}) | {"prefixes": ["A"]}, "'queries' and 'prefi"),
        (similarity(HYPOTHESIS), "hypotheses[0]: neither 'favours' nor 'value' is given"),
        (similarity(HYPOTHESIS | {"favours": "x"}), "hypotheses[0].groups: required where data."),
        (similarity() | {"metrics": ["logit_gap"]}, "metrics[0]: 'logit_gap' has no switch"),
        (within(), "data: within: 'frame' is one of sets frame"),
        (
            diversity(file="f.npy") | {"references": {"s": REFERENCE}},
            "references.s.models: given 'n'. Allowed: m",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_or_wrong_value_is_named(config, expected):
    assert refusal(config).startswith(f"c: {expected}")


def ruled(**rule):
    return {**CAPTIONS, "rules": [rule]}


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ({}, ": given {}; expected one of 'table', 'folder', "),
        ({"folder": "x", "id": "i"}, ": 'id' goes with 'table' or 'format', and 'folder' is given"),
        ({"format": "cocoa", "files": "x"}, ".format: there is no format 'cocoa'; there are "),
        ({"format": "coco", "files": "c.json"}, ": files: coco is read from a mapping"),
        ({**STREET, "id": "x"}, ": 'id' is given, and dollar_street has ids of its own"),
        ({"table": "t.csv", "id": "i", "crop": {"left": "l", "top": "t"}}, ".crop: given "),
        (
            {**CAPTIONS, "crop": {"left": "l", "top": "t", "right": "r", "bottom": "b"}},
            ": crop.left: columns go with 'table'",
        ),
        (ruled(attribute="x"), ".rules[0]: rule: given 'None'. Allowed: "),
        (ruled(rule="hall_caption"), ".rules[0]: rule: given 'hall_caption'. Allowed: "),
        (ruled(rule="hall_captions", neutral_means="nothin"), ".rules[0].neutral_means: given "),
        (
            ruled(rule="box_groups", attribute="a", groups={"x": "man"}, size="mine"),
            ".rules[0].size: given 'mine'; expected 'all boxes', ",
        ),
        (ruled(rule="leave_out_images", why="w"), ".rules[0]: given {'rule': 'leave_out_images'"),
    ],
)  # fmt: skip
def test_images_are_refused_by_their_key(images, expected):
    config = diversity(file="clip.npy")
    assert refusal(config | {"data": config["data"] | {"images": images}}).startswith(
        f"c: data.images{expected}"
    )


@pytest.mark.parametrize(
    ("model", "suggestion"),
    [
        ("../our-clip", "hf:../our-clip"),
        ("openai/clip-vit-base-patch32", "hf:openai/clip-vit-base-patch32"),
        ("./model.onnx", "onnx:./model.onnx"),
        ("openclip:ViT-B-32/openai", "open_clip"),
    ],
)
def test_a_model_without_a_prefix_has_a_single_suggestion(load, model, suggestion):
    text = message(load, yaml.safe_dump(sets(models={"m": {"model": model}})))
    assert text.count("did you mean") == 1
    assert text.endswith(f"did you mean {suggestion!r}?")
