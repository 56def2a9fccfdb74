"""The examples for real models and data sets, on small data in the true layout.

A plan reads them as they are, since it loads no model. A run has tiny checkpoints of the real
classes in place of the models, put there as examples/README.md says.
"""

import re
import shutil
from pathlib import Path

import pytest
import yaml

import data_sets
from equipoise import audits

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CLIP = "hf:openai/clip-vit-base-patch32"
BLIP = "hf:Salesforce/blip2-opt-2.7b"
WRITERS = {
    "fairface": data_sets.fairface,
    "occupations": data_sets.social_counterfactuals,
}
FILES = [
    (path.parent.name, path.name) for name in WRITERS for path in (EXAMPLES / name).glob("*.yaml")
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of an example with its small data, each written once."""
    folders = {}

    def of(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            for path in (EXAMPLES / name).glob("*.yaml"):
                shutil.copy(path, folders[name])
            WRITERS[name](folders[name])
        return folders[name]

    return of


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny checkpoint of the real class for each model that the examples name."""
    import model_checkpoints

    folder = tmp_path_factory.mktemp("models")
    return {
        CLIP: f"hf:{model_checkpoints.clip(folder / 'clip')}",
        BLIP: f"hf:{model_checkpoints.blip_2(folder / 'blip')}",
    }


def run(folder, tiny, file="audit.yaml"):
    """Run an example with other models, the way that the page tells users."""
    values = yaml.safe_load((folder / file).read_text(encoding="utf-8"))
    for model in values["models"].values():
        model["model"] = tiny[model["model"]]
    values["resampling"] = {"replicates": 20, "permutations": 99}
    return audits.run(audits.parse_config(values), base=folder)


@pytest.mark.parametrize(("name", "file"), FILES)
def test_an_example_is_planned_as_it_stands_without_a_model(world, name, file):
    folder = world(name)
    planned = audits.plan(audits.load_config(folder / file), base=folder)
    assert planned.runs
    assert all(planned_run["images"] > 0 for planned_run in planned.runs if "images" in planned_run)


# Of each run example: the choices of groups, and some of what is measured.
RUNS = {
    "fairface": ({"race", "race × gender"}, {"accuracy", "demographic_parity"}),
    "occupations": ({"gender", "race"}, {"accuracy", "label_concentration"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs_with_tiny_models(world, tiny, name):
    result = run(world(name), tiny)
    groups, metrics = RUNS[name]
    assert {finding.groups for finding in result.findings} >= groups
    assert {finding.metric for finding in result.findings} >= metrics
    assert {*result.manifest.models} == {finding.model for finding in result.findings} - {""}


def test_the_page_lists_exactly_the_examples():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    linked = {*re.findall(r"\]\((\S+\.yaml)\)", page)}
    assert linked == {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml")}
