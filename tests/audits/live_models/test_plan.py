"""Plans of audits that run models: nothing is loaded, and sizes are those of the audit."""

import json
import shutil
from collections import Counter

import pytest

from audits.live_models.worlds import IMAGES, KINDS, diversity
from equipoise import audits
from equipoise.audits.kind import audit_of
from equipoise.audits.model_cache import look_up
from equipoise.core import DataError, ModelError
from equipoise.evidence import RunOptions
from equipoise.models.registry import Preview
from equipoise.planted.scenes.embed import WEIGHTS


@pytest.fixture(autouse=True)
def _nothing_is_loaded(monkeypatch, request):
    def refused(_, name):
        pytest.fail(f"{name} was loaded")

    if "loads" not in request.fixturenames:
        monkeypatch.setattr(RunOptions, "load", refused)


@pytest.fixture
def loads():
    """A test that runs a model first."""


def plan(values, world):
    return audits.plan(audits.parse_config(values, source="c"), base=world)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_before_the_first_run(kind, world):
    planned = plan(KINDS[kind](), world)
    assert planned.runs[0] == {
        "model": "m",
        "on": "images",
        "runs": f"hf:{world / 'clip'}",
        "items": 96,
        "in_store": 0,
        "failed_before": 0,
        "to_do": 96,
        "files_missing": 0,
        "numbers": 64,
        "bytes": 96 * 64 * 4,
    }
    assert "96 items are left to run" in planned.notes[0]
    assert not (world / "evidence").exists()


@pytest.mark.usefixtures("loads")
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_counts_tests_before_a_model_has_run(kind, world):
    before = plan(KINDS[kind](), world)
    assert any("random numbers in place" in note for note in before.notes)
    result = audits.run(audits.parse_config(KINDS[kind]()), base=world)
    tested = Counter(finding.model for finding in result.findings if finding.tested)
    assert Counter(before.tests_by_model) == tested


def test_a_plan_whose_stand_ins_cannot_be_measured_knows_no_number_of_tests(world, monkeypatch):
    def refuse(*_):
        raise DataError("no two images differ")

    monkeypatch.setattr(type(audit_of("diversity")), "measure", refuse)
    planned = plan(diversity(), world)
    assert (planned.tests, planned.tests_by_model) == (None, {"m": None})
    assert planned.values["tests"] is None


@pytest.mark.usefixtures("loads")
def test_a_plan_knows_a_model_by_its_files(world):
    audits.prepare(audits.parse_config(diversity()), base=world)
    shutil.copytree(world / "clip", world / "copy")
    assert plan(diversity(model="hf:copy"), world).runs[0]["to_do"] == 0
    assert plan(diversity() | {"extraction": {"part": 64}}, world).runs[0]["to_do"] == 96
    other = (WEIGHTS / "clip-null" / "model.safetensors").read_bytes()
    (world / "clip" / "model.safetensors").write_bytes(other)
    assert plan(diversity(), world).runs[0]["to_do"] == 96


@pytest.mark.parametrize(
    ("settings", "preview"),
    [
        ({"architectures": ["CLIPModel"], "projection_dim": 8}, Preview("encoder", (), 8)),
        ({"architectures": ["SiglipModel"]}, Preview("encoder")),
        ({"architectures": ["BlipForImageTextRetrieval"]}, Preview("scorer")),
        ({"architectures": ["Blip2ForConditionalGeneration"]}, Preview("answerer")),
        (
            {
                "architectures": ["ViTForImageClassification"],
                "hidden_size": 5,
                "id2label": {"0": "a", "10": "c", "2": "b"},
            },
            Preview("classifier", ("a", "b", "c"), 5),
        ),
        ({"architectures": ["Something"]}, Preview()),
        ({}, Preview()),
    ],
)
def test_settings_of_a_checkpoint_give_its_preview(settings, preview, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert look_up(f"hf:{tmp_path}", RunOptions(), tmp_path)[1] == preview


PATHS = {
    "hf": "../nowhere",
    "open_clip": "../nowhere",
    "timm": "./nowhere",
    "onnx": "nowhere.onnx",
    "slip": "nowhere.safetensors",
    "meter": "nowhere.safetensors",
    "equipoise": "nowhere",
    "edited": "nowhere.json",
}


@pytest.mark.parametrize("prefix", PATHS)
def test_a_plan_refuses_a_model_that_is_not_there(prefix, world):
    values = diversity(model=f"{prefix}:{PATHS[prefix]}")
    with pytest.raises(ModelError, match=r"^models\.m\.model: .*nowhere"):
        plan(values, world)


@pytest.mark.usefixtures("loads")
def test_a_plan_and_an_audit_refuse_a_folder_in_the_same_words(world):
    config = audits.parse_config(diversity(model="hf:../nowhere"))
    messages = []
    for run in (audits.plan, audits.prepare):
        with pytest.raises(ModelError) as raised:
            run(config, base=world)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_a_plan_does_not_look_up_a_hub_id(world):
    assert plan(diversity(model="hf:owner/unknown"), world).runs[0]["to_do"] == 96


def test_a_plan_refuses_images_of_which_no_file_is_there(world):
    values = diversity()
    values["data"] = values["data"] | {"images": IMAGES | {"root": "."}}
    with pytest.raises(DataError, match="96 files of 96 images are missing") as raised:
        plan(values, world)
    assert "root" in raised.value.fix


def test_a_plan_first_notes_missing_files(world):
    first = min((world / "pictures").iterdir())
    first.unlink()
    note = plan(diversity(), world).notes[0]
    assert note.startswith("m: 1 file of 96 images is missing")
    assert first.name in note
