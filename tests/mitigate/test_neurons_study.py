"""`equipoise neurons`: from a configuration to edits that name models, and a report."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from equipoise import report
from equipoise.audits.config import load_as
from equipoise.cli.app import run as command
from equipoise.core import ConfigError, InputError, ModelError, Verdict
from equipoise.explain.visualisation import visualise
from equipoise.mitigate.neurons.config import Config
from equipoise.mitigate.neurons.page import PAGE
from equipoise.models import load_model
from equipoise.models.edits import Site
from equipoise.planted import scenes
from equipoise.planted.scenes.captions import caption, neutral_prompts
from equipoise.planted.scenes.render import FRAMES, SUBJECTS
from equipoise.report.result import first_screen
from equipoise.report.words import conclusion_sentence
from tools.planted.units import LAYER, MARKED, PLANTED, draw_marked, planted_unit

CONCEPTS = {
    frame: [
        text
        for favourite in scenes.BIASED.favourites
        if favourite.frame == frame and favourite.frame_strength > 0
        for text in neutral_prompts(favourite.subject)
    ]
    for frame in FRAMES
}
CONFIG = f"""
model: "hf:{scenes.WEIGHTS}/clip-NAME"
images: {{table: images.csv, root: photos, group: frame, within: set, unit: set, label: subject,
  caption: caption, neutral_caption: plain, templates: ["a {{}}"]}}
texts: {{table: texts.csv, group: frame, within: subject}}
dictionary: {{file: sae.safetensors, layer: vision_model.encoder.layers.1}}
concepts: {json.dumps(CONCEPTS)}
kinds: [heads, units, features, texts]
layers: [vision_model.encoder.layers.2.mlp.activation_fn]
counts: [1]
random: 3
replicates: 100
shown: 1
seeds: 1
steps: 2
k: 20
output: out-NAME
device: cpu
"""


def write(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "photos").mkdir()
    scene_sets = scenes.render_sets(1, seed=3)
    table, coin = (
        scene_sets.table(),
        np.random.default_rng(5).integers(2, size=len(scene_sets.image_id)),
    )
    rows = []
    for row, name in enumerate(scene_sets.image_id):
        Image.fromarray(scene_sets.images[row]).save(folder / "photos" / f"{name}.png")
        attributes = {key: str(table[key][row]) for key in ("frame", "subject", "set")}
        caption_text = caption(attributes["subject"], table["hue"][row])
        attributes["coin"] = str(coin[row])
        rows.append(
            {"image_id": name, "path": f"{name}.png", "caption": caption_text, **attributes}
            | {"plain": caption(attributes["subject"])}
        )
    write(folder / "images.csv", rows)
    texts = [
        {"text": caption(subject, frame=frame), "frame": frame, "subject": subject}
        for subject in SUBJECTS
        for frame in FRAMES
    ]
    write(folder / "texts.csv", texts)
    weights = np.random.default_rng(0).standard_normal((128, 50)).astype(np.float32)
    save_file({"W_enc": weights, "W_dec": weights.T.copy()}, folder / "sae.safetensors")
    return folder


def study(folder, name, text=CONFIG):
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("NAME", name))
    return path


@pytest.fixture(scope="module")
def biased(data, _one_thread):
    assert command(["neurons", str(study(data, "biased"))]) == 0
    return data / "out-biased"


def test_recall_stands_there_with_captions_that_leave_the_attribute_out(biased):
    result = report.read(biased / "report")
    recalls = {
        finding.version: finding.parameters["before"]
        for finding in result.findings
        if finding.metric == "text_recall_at_1"
    }
    assert [*recalls] == ["default", "neutral captions"]
    assert recalls["neutral captions"] > 0.9
    # Captions name one of six hues.
    assert any("16.7 %" in note for note in result.manifest.notes)


def test_a_study_writes_a_report_with_pictures(biased):
    tables = report.read(biased / "report").tables
    page = (biased / "report" / "report.html").read_text(encoding="utf-8")
    for text in ("Bias and price of the edits", "Contributions of heads", "a control at random"):
        assert text in page
    pictures = tables["gallery"].to_pylist()
    assert {row["group"] for row in pictures} == {"Most active", "Least active", "Made for it"}
    components = tables["neurons_components"].to_pylist()
    assert [row["kind"] for row in components] == ["heads", "units", "features", "texts"]
    assert components[0]["component"] == "head 1 of layer 2"
    assert all(row["q_value"] < 0.01 for row in components[:2])
    assert command(["report", str(biased / "report")]) == 0


def test_one_head_takes_the_association_away_at_no_cost(biased):
    rows = report.read(biased / "report").tables["neurons_sweep"].to_pylist()
    by_measure = {(row["kind"], row["measure"]): row for row in rows}
    association = by_measure["heads", "differential_association"]
    assert abs(association["after"]) < 0.1 * association["before"]
    assert abs(association["random"]) < 0.1 * association["before"]
    assert by_measure["heads", "accuracy"]["difference"] >= -0.02
    unit = by_measure["units", "differential_association"]
    assert abs(unit["difference"]) < 0.1 * unit["before"]


def test_the_page_starts_with_the_edit_that_is_concluded_and_its_price(biased):
    result = report.read(biased / "report")
    bias, price, *_ = result.conclusions
    assert (bias.metric, bias.verdict, bias.worse) == (
        "differential_association", Verdict.DISPARITY, "before"
    )  # fmt: skip
    assert price.metric == "accuracy"
    assert price.worse == ""
    rows = result.tables["neurons_sweep"].to_pylist()
    values = {standing.model: standing.value for standing in bias.standings}
    assert (values["before"], values[bias.model]) in [
        (row["before"], row["after"]) for row in rows if row["kind"] == "heads"
    ]
    first, *_ = first_screen(result, PAGE).statements
    assert first.text == conclusion_sentence(result.findings[bias.finding], bias)
    assert len(first.others) >= 1
    units = [conclusion for conclusion in result.conclusions if "units" in conclusion.model]
    assert not units[0].real


def test_edits_name_models(biased):
    rows = report.read(biased / "report").tables["neurons_sweep"].to_pylist()
    pixels = scenes.render_sets(1, seed=4).images[:4]
    base = scenes.load_clip("biased")
    for kind, edit in dict.fromkeys((row["kind"], row["edit"]) for row in rows):
        model = load_model(f"edited:{biased / edit}", device="cpu")
        same = np.array_equal(model.embed_images(pixels), base.embed_images(pixels))
        assert same == (kind == "texts"), kind


def test_a_null_model_stays_quiet(data):
    text = CONFIG.replace("[heads, units, features, texts]", "[heads]")
    for section in ("texts:", "dictionary:"):
        text = "\n".join(line for line in text.splitlines() if not line.startswith(section))
    assert command(["neurons", str(study(data, "null", text)), "--json"]) == 0
    rows = report.read(data / "out-null" / "report").tables["neurons_sweep"].to_pylist()
    (row,) = (row for row in rows if row["measure"] == "differential_association")
    assert max(abs(row["before"]), abs(row["difference"])) < 0.02


def test_groups_without_a_component_leave_nothing_to_edit(data):
    text = CONFIG.replace("[heads, units, features, texts]", "[units]")
    text = text.replace("group: frame, within: set", "group: coin, within: set")
    text = text.replace("clip-NAME", "clip-biased") + "alpha: 1.0e-6\n"
    for section in ("texts:", "dictionary:"):
        text = "\n".join(line for line in text.splitlines() if not line.startswith(section))
    assert command(["neurons", str(study(data, "coin", text))]) == 0
    result = report.read(data / "out-coin" / "report")
    assert not result.tables["neurons_sweep"].num_rows
    page = (data / "out-coin" / "report" / "report.html").read_text(encoding="utf-8")
    assert "nothing was edited" in page
    assert "Audit the edited model" not in page
    assert "Bias and price of the edits" not in page


def test_a_study_is_checked(data, biased):
    with pytest.raises(ConfigError, match="expected both or none"):
        load_as(study(data, "lacks", CONFIG.replace("kinds: [heads, units, ", "kinds: [")
                      .replace("features, ", "")), Config)  # fmt: skip
    assert command(["neurons", str(data / "biased.yaml")]) == 2  # nothing is written over
    assert (biased / "report").is_dir()


def test_an_image_is_made_for_the_planted_unit():
    model, marked = planted_unit(), draw_marked(2)
    synthetic, active = visualise(
        model, Site(LAYER, units=(PLANTED,)), marked.images[0], text="a doctor", seeds=2
    )
    squares = synthetic.reshape(2, 8, 4, 8, 4, 3).mean(axis=(2, 4, 5)).reshape(2, -1)
    assert squares.argmax(axis=1).tolist() == [MARKED, MARKED]
    assert active.min() > 1.5
    again, _ = visualise(
        model, Site(LAYER, units=(PLANTED,)), marked.images[0], text="a doctor", seeds=1
    )
    np.testing.assert_array_equal(again[0], synthetic[0])
    assert not np.array_equal(*synthetic)
    with pytest.raises(InputError):
        visualise(model, Site(LAYER, units=(0,)), marked.images[0], text="a doctor", steps=0)
    with pytest.raises(ModelError):
        visualise(model, Site("acts", units=(0,)), marked.images[0], text="a doctor")
