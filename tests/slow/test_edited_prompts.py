"""A planted unit of a text encoder: the shares of neutral prompts before and after its edit."""

import csv
import json

import pytest
from PIL import Image

from equipoise.cli.app import run as command
from equipoise.core import Verdict
from equipoise.planted.scenes.captions import TEMPLATES, caption
from equipoise.planted.scenes.render import FRAMES, SUBJECTS
from equipoise.planted.scenes.sets import render_balanced
from equipoise.report import read
from tools.planted.encoders import CLIP, LAYER, PIPELINE, PLANTED, plant_prompt_unit

pytestmark = pytest.mark.slow(whole=True)

SHOWN = ("hollow square", "hollow triangle", "hollow house", "hollow star", "solid diamond",
         "solid heart")  # fmt: skip
"""Subjects whose frames the generator draws about evenly."""
NEURONS = f"""
model: "hf:{CLIP}"
images: {{table: images.csv, id: id, path: file, root: pictures, group: frame, within: subject,
  caption: caption, neutral_caption: plain}}
concepts: {{square: [a hollow square], house: [a hollow house]}}
kinds: [texts]
texts: {{table: texts.csv, group: frame, layers: [{LAYER}]}}
rank: relevance
mode: [remove, reverse]
counts: [1]
random: 3
replicates: 100
k: 12
output: study
device: cpu
"""
CLASSES = {"frame": [*FRAMES], "subject": [*SHOWN]}
AUDIT = {
    "audit": "text_to_image",
    "prompts": {"targets": [*SHOWN], "template": "a {}", "images": {"targets": 40}},
    "models": {"clip": {"model": f"hf:{CLIP}"}},
    "associations": None,
    "resampling": {"replicates": 200, "permutations": 199},
    "report": {"images": 0},
    "extraction": {"device": "cpu"},
    "shares": [
        {
            "of": of, "model": "clip", "classes": {name: [name] for name in names},
            "templates": templates,
            "labelled": {"table": "images.csv", "id": "id", "path": "file", "root": "pictures",
                         "label": of},
        }
        for (of, names), templates in zip(
            CLASSES.items(), (["a hollow square with {} bars", "a hollow house with {} bars"],
                              ["a {}", "a picture of a {}"]), strict=True,
        )
    ],
}  # fmt: skip
AUDIT["shares"][1]["outside"] = {
    "table": "asked.csv", "group": "class", "value": "share", "name": "prompts", "kind": "census",
}  # fmt: skip
EDITS = {
    "before": f"diffusers:{PIPELINE}",
    "after": f"edited:study/edits/texts-remove-1.json#diffusers:{PIPELINE}",
    "reversed": f"edited:study/edits/texts-reverse-1.json#diffusers:{PIPELINE}",
    "control": f"edited:control.json#diffusers:{PIPELINE}",
}


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Return the folder of the runs of a new user: neurons, then an audit of each generator."""
    folder = tmp_path_factory.mktemp("edited")
    plant_prompt_unit(folder)
    (folder / "pictures").mkdir()
    scenes, rows = render_balanced(2, seed=7), []
    table = scenes.table()
    columns = [table[name] for name in ("image_id", "subject", "hue", "frame")]
    for image, name, *cell in zip(scenes.images, *columns, strict=True):
        if cell[0] in SHOWN:
            Image.fromarray(image).save(folder / "pictures" / f"{name}.png")
            plain = caption(*cell[:2])
            rows.append([name, f"{name}.png", cell[0], cell[2], caption(*cell), plain])
    write(folder / "images.csv", ["id", "file", "subject", "frame", "caption", "plain"], rows)
    texts = [
        [caption(subject, frame=frame, template=template), frame]
        for subject in SUBJECTS
        for frame in FRAMES
        for template in TEMPLATES
    ]
    write(folder / "texts.csv", ["text", "frame"], texts)
    asked = [[target, name, int(target == name)] for target in SHOWN for name in SHOWN]
    write(folder / "asked.csv", ["target", "class", "share"], asked)
    (folder / "neurons.yaml").write_text(NEURONS)
    assert command(["neurons", str(folder / "neurons.yaml")]) == 0
    edit = json.loads((folder / "study" / "edits" / "texts-remove-1.json").read_text())
    assert edit["layers"][0]["units"] == [PLANTED]
    edit["layers"][0]["units"] = [PLANTED + 1]
    (folder / "control.json").write_text(json.dumps(edit | {"model": f"hf:{CLIP}"}))
    for name, model in EDITS.items():
        generator = {"model": model, "guidance": 1, "steps": 10}
        (folder / f"{name}.yaml").write_text(json.dumps(AUDIT | {"generators": {name: generator}}))
        out = str(folder / "runs" / name)
        assert command(["audit", str(folder / f"{name}.yaml"), "--out", out]) == 0
    return folder / "runs"


def findings_of(run, metric, groups):
    return {f.subject: f for f in run.findings if (f.metric, f.groups) == (metric, groups)}


@pytest.mark.parametrize("name", ["before", "control", "reversed"])
def test_shares_of_neutral_prompts_are_a_disparity_with_the_planted_unit(name, audited):
    frames = findings_of(read(audited / name), "share_mad", "frame")
    assert {finding.verdict for finding in frames.values()} == {Verdict.DISPARITY}
    assert frames[""].value > 0.9


def test_without_it_the_interval_holds_chance_at_no_cost(audited):
    runs = {name: read(audited / name) for name in ("before", "after")}
    mean = findings_of(runs["after"], "share_mad", "frame")[""]
    assert mean.ci_low <= mean.chance <= mean.ci_high
    assert mean.verdict is not Verdict.DISPARITY
    lost = [
        sum(finding.value for finding in findings_of(run, "share_gap", "subject").values())
        for run in runs.values()
    ]
    assert (lost[1] - lost[0]) / len(SHOWN) < 0.05


def test_runs_are_compared(audited, capsys):
    before, after = str(audited / "before"), str(audited / "after")
    assert command(["compare", before, after, "--out", str(audited / "compared"), "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["findings"]
