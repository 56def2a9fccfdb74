"""`equipoise mitigate`: from a configuration to models and a report."""

import csv
import json
import shutil

import pytest
from PIL import Image

import data_sets
import image_files
from equipoise.audits.config import load_as
from equipoise.audits.group_sources import UNCORRECTED
from equipoise.cli.app import run as command
from equipoise.core import ConfigError, DataError, RunError
from equipoise.mitigate.config import Config
from equipoise.mitigate.loading import load
from equipoise.models import load_model
from equipoise.planted.scenes.captions import caption
from equipoise.planted.scenes.embed import WEIGHTS
from mitigate.scenes import TEXTS, sets

SUBJECTS = [*TEXTS][:6]
CONFIG = f"""
model: "hf:{WEIGHTS / "clip-biased"}"
floor: "hf:{WEIGHTS / "clip-null"}"
images: {{table: sets.csv, root: photos, attributes: [hue, frame]}}
prompts: {{table: prompts.csv}}
recipes:
  ensemble: {{recipe: prompt_ensemble}}
  tuned: {{recipe: contrastive, batch: 24, learning_rate: 3.0e-4}}
zero_shot:
  named: {{table: sets.csv, root: photos, label: subject, templates: ["a {{}}"]}}
retrieval:
  said: {{table: sets.csv, root: photos, neutral_caption: plain}}
withheld: 0.34
output: mitigated
device: cpu
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "photos").mkdir()
    image_sets = sets(per_subject=2).of(SUBJECTS)
    rows = []
    for number in range(len(image_sets)):
        Image.fromarray(image_sets.images[number]).save(folder / "photos" / f"{number:04d}.png")
        rows.append(
            {
                "image_id": f"i{number:04d}", "path": f"{number:04d}.png",
                "subject": image_sets.subject[number], "set": image_sets.set[number],
                "caption": image_sets.caption[number],
                "plain": caption(image_sets.subject[number]),
                **{name: values[number] for name, values in image_sets.attributes.items()},
            }
        )  # fmt: skip
    write(folder / "sets.csv", rows)
    write(
        folder / "prompts.csv",
        [{"subject": s, "prompt": text} for s in SUBJECTS for text in TEXTS[s].neutral],
    )
    return folder


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def project(data, tmp_path):
    for name in ("sets.csv", "prompts.csv", "photos"):
        (tmp_path / name).symlink_to(data / name)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def test_a_command_makes_models_and_a_report(project, capsys):
    assert command(["mitigate", str(project / "c.yaml"), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    out = project / "mitigated"
    assert sorted(path.name for path in out.iterdir()) == [
        "ensemble",
        "report",
        "tuned",
        "withheld.txt",
    ]
    withheld = (out / "withheld.txt").read_text().splitlines()
    for recipe in output["recipes"]:
        assert load_model(recipe["model"], device="cpu").info.dimension == 64
    measures = {row["measure"] for row in output["rows"]}
    assert {"ndkl", "logit_gap", "accuracy", "text_recall_at_1", "image_recall_at_10"} <= measures
    assert {row["about"] for row in output["rows"]} >= {"said", "said, neutral captions"}
    page = (out / "report" / "report.html").read_text()
    assert "Change in disparities and its price" in page
    manifest = json.loads((out / "report" / "manifest.json").read_text())
    assert any(note.startswith("said: ") and "guesses" in note for note in manifest["notes"])
    assert manifest["counts"]["withheld"] == withheld
    assert len(withheld) == 3
    # A second time nothing is written over.
    assert command(["mitigate", str(project / "c.yaml")]) == 2
    assert "never overwritten" in capsys.readouterr().err


BASE = f'model: "hf:{WEIGHTS / "clip-biased"}"'
SEVERAL = f"""
models:
  biased: "hf:{WEIGHTS / "clip-biased"}"
  "null": "hf:{WEIGHTS / "clip-null"}"
"""


def test_several_models_learn_from_the_same_subjects(project, capsys):
    (project / "c.yaml").write_text(CONFIG.replace(BASE, SEVERAL))
    assert command(["mitigate", str(project / "c.yaml"), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [*output] == ["biased", "null"]
    out = project / "mitigated"
    lists = {(out / name / "withheld.txt").read_text() for name in output}
    assert len(lists) == 1
    for name, facts in output.items():
        models = {recipe["recipe"]: recipe["model"] for recipe in facts["recipes"]}
        assert models["tuned"] == f"hf:{out / name / 'tuned'}"
    before = [{row["before"] for row in facts["rows"]} for facts in output.values()]
    assert before[0] != before[1]


def test_a_mitigation_of_several_models_goes_on_where_it_stopped(project, capsys):
    (project / "c.yaml").write_text(CONFIG.replace(BASE, SEVERAL))
    assert command(["mitigate", str(project / "c.yaml")]) == 0
    first, second = (project / "mitigated" / name / "report" for name in ("biased", "null"))
    times = [(run / "manifest.json").stat().st_mtime_ns for run in (first, second)]
    shutil.rmtree(second)
    capsys.readouterr()
    assert command(["mitigate", str(project / "c.yaml"), "--plan", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)] == ["null"]
    assert command(["mitigate", str(project / "c.yaml"), "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)] == ["biased", "null"]
    assert (first / "manifest.json").stat().st_mtime_ns == times[0]
    assert (second / "manifest.json").stat().st_mtime_ns > times[1]
    # Of other settings nothing is kept, and nothing is written over.
    text = (project / "c.yaml").read_text().replace("withheld: 0.34", "withheld: 0.5")
    (project / "c.yaml").write_text(text)
    shutil.rmtree(second)
    assert command(["mitigate", str(project / "c.yaml")]) == 2
    assert not second.exists()


def test_attributes_that_a_model_predicted_have_no_verdict(project, capsys):
    tuned = "  tuned: {recipe: contrastive, batch: 24, learning_rate: 3.0e-4}\n"
    sources = "group_sources: {hue: {source: machine}}\n"
    (project / "c.yaml").write_text(CONFIG.replace(tuned, "") + sources)
    assert command(["mitigate", str(project / "c.yaml"), "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["role"] == "bias"]
    intervals = {(row["about"], row["low"] is None) for row in rows}
    assert intervals == {("hue", True), ("frame", True)}
    assert {row["share_reason"] for row in rows if row["about"] == "hue"} == {UNCORRECTED}
    manifest = json.loads((project / "mitigated" / "report" / "manifest.json").read_text())
    assert any(note.startswith("hue: ") for note in manifest["notes"])
    assert not any(note.startswith("frame: ") for note in manifest["notes"])


def test_a_plan_loads_no_model(project, capsys):
    (project / "c.yaml").write_text(CONFIG.replace("clip-biased", "nothing-here"))
    assert command(["mitigate", str(project / "c.yaml"), "--plan", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["sets"], output["images"], output["withheld"]) == (12, 144, 3)
    assert [recipe["steps"] for recipe in output["recipes"]] == [0, 2]
    assert not (project / "mitigated").exists()
    assert command(["mitigate", str(project / "c.yaml"), "--plan"]) == 0
    assert command(["mitigate", str(project / "c.yaml"), "--plan", "--open"]) == 2
    assert "learned from: 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("prompt_ensemble", "prompt_ensembel", "line 7: recipes.ensemble.recipe: given 'prompt_en"),
        ("batch: 24", "bach: 24", "recipes.tuned.bach: unknown key. Allowed here: recipe, name"),
        ("output: mitigated", "", "output: required, and missing"),
        ("  ensemble:", "  a/b:", "expected a name that a folder can have, without slashes"),
        ("  ensemble:", "  report:", "a folder of this name has other content"),
        ("batch: 24", "batch: 1", "recipes.tuned.batch"),
        ("0.34", "1.5", "withheld: given 1.5; expected less than 1"),
        ("attributes: [hue, frame]", "attributes: []", "attributes: given []; expected at least 1"),
        (BASE, "", "expected one of 'model', 'models', not 0 of them"),
        (BASE, BASE + SEVERAL, "expected one of 'model', 'models', not 2 of them"),
        (BASE, "models: {a/b: hf:c}", "expected a name that a folder can have, without slashes"),
        ("device: cpu", "group_sources: {age: {source: machine}}", "group_sources.age"),
    ],
)  # fmt: skip
def test_a_configuration_says_what_is_wrong(project, old, new, message):
    (project / "c.yaml").write_text(CONFIG.replace(old, new))
    with pytest.raises(ConfigError) as raised:
        load_as(project / "c.yaml", Config)
    assert message in str(raised.value)


def test_withheld_subjects_by_name(project):
    (project / "c.yaml").write_text(CONFIG.replace("0.34", "[solid circle]"))
    loaded = load(load_as(project / "c.yaml", Config), base=project)
    assert loaded.split.withheld == ("solid circle",)
    (project / "c.yaml").write_text(CONFIG.replace("0.34", "[nurse]"))
    with pytest.raises(ConfigError, match="^withheld: 'nurse' isn't a subject of the images"):
        load(load_as(project / "c.yaml", Config), base=project)


def rewrite_table(project, name, change):
    rows = list(csv.DictReader((project / name).read_text().splitlines()))
    (project / name).unlink()
    write(project / name, change(rows))


def first(**values):
    return lambda rows: [rows[0] | values, *rows[1:]]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sets.csv", first(subject="solid square"), "has images of 'solid .* expected one subject"),
        ("sets.csv", first(caption=""), "column 'caption', row 1: a cell is missing"),
        ("sets.csv", first(hue="nan"), "sets.csv, column 'hue', row 1: a cell is missing"),
        ("sets.csv", first(frame=" NaN "), "sets.csv, column 'frame', row 1: a cell is missing"),
        ("sets.csv", lambda rows: [row | {"set": row["image_id"]} for row in rows],
         "column 'set': each of 144 sets has one image"),
        ("prompts.csv", lambda rows: rows[3:], "1 subjects of the images have no prompt, such as"),
        ("prompts.csv", first(prompt=""), "column 'prompt', row 1: a cell is missing"),
        ("sets.csv", lambda rows: [row | {"hue": "red"} for row in rows], "column 'hue'"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(project, name, change, message):
    rewrite_table(project, name, change)
    with pytest.raises(DataError, match=message):
        load(load_as(project / "c.yaml", Config), base=project)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read: No such file"), (b"no image", "cannot be decoded: ")],
)
def test_an_image_that_cannot_be_used_is_told_before_a_model_is_loaded(
    project, content, problem, capsys
):
    photos, broken = project / "photos", project / "photos" / "0005.png"
    source = photos.resolve()
    photos.unlink()
    shutil.copytree(source, photos)
    broken.unlink()
    if content is not None:
        broken.write_bytes(content)
    (project / "c.yaml").write_text(CONFIG.replace("clip-biased", "nothing-here"))
    assert command(["mitigate", str(project / "c.yaml")]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"column 'path', row 6: the image {broken} {problem}" in error
    assert not (project / "mitigated").exists()


RELEASED = f"""
model: "hf:{WEIGHTS / "clip-biased"}"
images:
  format: social_counterfactuals
  files: SocialCounterfactuals/data
  attributes: [race, gender]
  where: {{attributes: race × gender}}
recipes:
  ensemble: {{recipe: prompt_ensemble}}
retrieval:
  flickr: {{format: flickr30k, files: f.json, root: photos, where: {{split: test}}}}
zero_shot:
  cifar: {{format: cifar, files: cifar, label: class, where: {{split: test}}}}
  caltech: {{folder: caltech, levels: [class], label: class, names: {{sea_lion: sea lion}}}}
withheld: 0.5
validation: 0
output: mitigated
"""


def test_the_released_files_and_one_of_their_pairs_of_attributes(tmp_path):
    data_sets.social_counterfactuals_in_pairs(tmp_path)
    data_sets.pictures_of_classes(tmp_path, "caltech", ("cat", "sea_lion"))
    image_files.cifar(tmp_path / "cifar", image_files.CIFAR_NAMES, {"test_batch": [1, 0]})
    image_files.write_json(tmp_path / "f.json", {"images": image_files.FLICKR})
    (tmp_path / "photos").mkdir()
    (tmp_path / "c.yaml").write_text(RELEASED)
    config = load_as(tmp_path / "c.yaml", Config)
    images, texts = (loaded := load(config, base=tmp_path)).test.images, loaded.test.texts
    assert images.subjects == ("doctor", "engineer")
    assert (len(images), len(images.by_set())) == (24, 6)
    assert {*images.attributes["race"]} == {"Black", "White"}
    assert images.images[0].shape[2] == 3
    # Prompts are those of the source, without a table.
    assert texts["engineer"].neutral[1:3] == ("A photo of an engineer", "A picture of an engineer")
    assert loaded.test.retrieval[0].image.tolist() == [0, 0, 1, 1]
    for classes in loaded.test.zero_shot:
        assert [*classes.prompts] == ["cat", "sea lion"]
    cifar = loaded.test.zero_shot[0]
    assert [*cifar.label] == ["sea lion", "cat"]
    assert cifar.images[1][31, 0].tolist() == [1, 0, 9]


def test_captions_of_a_data_set_have_no_neutral_ones(tmp_path):
    data_sets.social_counterfactuals_in_pairs(tmp_path)
    data_sets.pictures_of_classes(tmp_path, "caltech", ("cat", "sea_lion"))
    image_files.cifar(tmp_path / "cifar", image_files.CIFAR_NAMES, {"test_batch": [1, 0]})
    image_files.write_json(tmp_path / "f.json", {"images": image_files.FLICKR})
    (tmp_path / "photos").mkdir()
    text = RELEASED.replace("format: flickr30k,", "format: flickr30k, neutral_caption: plain,")
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError, match="neutral_caption"):
        load(load_as(tmp_path / "c.yaml", Config), base=tmp_path)


def test_sets_that_an_audit_of_generation_wrote(project):
    """A folder whose table names files inside it, and images that `where` leaves out."""
    rows = list(csv.DictReader((project / "sets.csv").read_text().splitlines()))
    folder = project / "kept"
    folder.mkdir()
    (folder / "pictures").symlink_to((project / "photos").resolve())
    table = [{**row, "file": f"pictures/{row.pop('path')}"} for row in rows]
    write(folder / "images.csv", table)
    _, *other_subjects = sorted({row["subject"] for row in rows})
    (project / "some.txt").write_text("\n".join(other_subjects))
    changed = CONFIG.replace(
        "{table: sets.csv, root: photos, attributes: [hue, frame]}",
        "{table: kept/images.csv, path: file, attributes: [hue, frame],"
        " where: {subject: {file: some.txt}}}",
    )
    (project / "c.yaml").write_text(changed)
    loaded = load(load_as(project / "c.yaml", Config), base=project)
    assert list(loaded.test.images.subjects) == other_subjects
    rows = loaded.test.images.images.rows.tolist()
    assert {table[row - 1]["subject"] for row in rows} == {*other_subjects}


def test_a_file_where_the_folder_should_be_is_refused_before_images_are_read(project):
    (project / "mitigated").write_text("a file")
    with pytest.raises(RunError):
        load(load_as(project / "c.yaml", Config), base=project)
