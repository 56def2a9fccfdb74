"""`equipoise counterfactuals`: a config, what it would take, images, and files of them."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from equipoise.audits.config import load_as
from equipoise.cli.generation import MakingConfig
from equipoise.config.fields import PricesConfig, ServiceConfig
from equipoise.counterfactuals import read_generated
from schema_keys import schema_keys
from yaml_keys import yaml_keys

SETS = """
captions:
  subjects: [doctor, umpire]
  attributes: {gender: [male, female]}
generator: {model: "python:generator_models:swatches", candidates: 3, shared_self: 0.5}
"""
PROMPTS = """
prompts:
  table: four.csv
  images: 2
generator: {model: "python:generator_models:swatches", steps: 5, guidance: 1}
store: kept
part: 3
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sets.yaml").write_text(SETS)
    Path("prompts.yaml").write_text(PROMPTS)
    Path("four.csv").write_text("prompt_id,prompt\na,A cat\nb,A dog\nc,An owl\nd,A hen\n")


def test_from_a_plan_to_files(command):
    code, out, err = command("counterfactuals", "plan", "sets.yaml")
    assert (code, err) == (0, "")
    assert {"sets: 2", "images: 12", "to do: 12", "seconds: –"} <= {*out.splitlines()}
    code, out, err = command("counterfactuals", "generate", "sets.yaml", "--export", "files")
    assert (code, err) == (0, "")
    assert {"images: 12", "computed: 12", "exported: 12"} <= {*out.splitlines()}
    assert len([*Path("files").rglob("*.png")]) == 12
    assert len(Path("files/metadata.csv").read_text().splitlines()) == 13
    assert "to do: 0" in command("counterfactuals", "plan", "sets.yaml")[1].splitlines()


def test_as_json(command):
    code, out, _ = command("counterfactuals", "plan", "prompts.yaml", "--json")
    assert code == 0
    planned = json.loads(out)
    assert (planned["prompts"], planned["sets"], planned["to_do"]) == (4, None, 8)
    code, out, _ = command("counterfactuals", "generate", "prompts.yaml", "--json")
    output = json.loads(out)
    assert (code, output["images"], output["computed"], output["states"]) == (0, 8, 8, {"image": 8})
    table = read_generated(output["folder"]).table
    assert table["prompt"].to_pylist()[::2] == ["A cat", "A dog", "An owl", "A hen"]
    code, out, _ = command("counterfactuals", "generate", "prompts.yaml", "--json")
    assert json.loads(out) == output | {"computed": 0}


def test_a_new_config_is_one_that_can_be_read(command):
    code, out, _ = command("counterfactuals", "new", "mine.yaml")
    assert (code, out.startswith("wrote mine.yaml.")) == (0, True)
    config = load_as(Path("mine.yaml"), MakingConfig)
    assert len(config.captions.sets()) == 12
    assert json.loads(command("counterfactuals", "new", "--json")[1]) == {
        "config": "counterfactuals.yaml"
    }


def test_an_interrupt_says_how_to_go_on(command, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("equipoise.counterfactuals.generate", stop)
    code, out, err = command("counterfactuals", "generate", "sets.yaml")
    assert (code, out) == (130, "")
    assert err == "interrupted; finished images are kept, and the same command resumes from them\n"


GENERATOR = 'generator: {model: "python:generator_models:swatches"}\n'
PROMPT = "prompts: {table: four.csv}\n"
BAD = {
    "expected one of 'captions', 'prompts', not 0 of them": GENERATOR,
    "c.yaml: generator: required": PROMPT,
    "line 1: stoer: unknown key": f"stoer: x\n{GENERATOR}",
    "c.yaml: empty; expected the keys": "",
    "generator.candidates": f'{PROMPT}generator: {{model: "python:a:b", candidates: 3}}\n',
    "nowhere:b failed: ModuleNotFoundError": f'{PROMPT}generator: {{model: "python:nowhere:b"}}\n',
    "'diffusers:": f'{PROMPT}generator: {{model: "hf:x"}}\n',
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said_once(message, command):
    Path("c.yaml").write_text(BAD[message])
    code, out, err = command("counterfactuals", "generate", "c.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err


def test_the_template_names_every_key():
    template = files("equipoise.cli").joinpath("generation_template.yaml")
    served = schema_keys(ServiceConfig) | schema_keys(PricesConfig)
    keys = schema_keys(MakingConfig) - (served - {"seed"})
    assert keys <= yaml_keys(template.read_text(encoding="utf-8"))
