"""What `equipoise new` writes and the README shows runs a model on images, once uncommented."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from audits.live_models.worlds import CHOSEN
from equipoise import audits
from equipoise.audits.config_yaml import parse_yaml
from equipoise.cli.app import run

ROOT = Path(__file__).resolve().parents[3]
KINDS = (
    "predictions",
    "retrieval",
    "similarity",
    "concepts",
    "associations",
    "diversity",
    "answers",
)
CLIP = "hf:openai/clip-vit-base-patch32"
WORDS = (
    *("man", "male", "he", "woman", "female", "she", "physics", "chemistry", "geometry"),
    *("poetry", "dance", "sculpture", "a photo of a doctor", "a photo of a nurse"),
)


def uncommented(text):
    """The lines of a template with what is there to run a model, and without what that replaces.

    That begins where a comment says "to run a model", and goes on as far as lines are indented.
    """
    open_at, replaced = None, set()
    for line in text.splitlines():
        found = re.fullmatch(r"( *)# ( *)(.*)", line)
        begins = found is not None and not found[2] and "# to run a model" in found[3]
        if begins:
            open_at = found[1]
            places = re.search(r"in place of (\w+) and (\w+)", line)
            replaced |= {f"{open_at}{key}:" for key in (places.groups() if places else ())}
        elif found is None or found[1] != open_at or not found[2]:
            open_at = None
        yield f"{found[1]}{found[2]}{found[3]}" if open_at is not None and found else line
    yield from (f"# replaced: {key}" for key in sorted(replaced))


def of_a_model(text):
    """The text with what runs a model, and its values with the models that are to be run alone."""
    lines = [*uncommented(text)]
    replaced = tuple(one.removeprefix("# replaced: ") for one in lines if "# replaced: " in one)
    kept = "\n".join(line for line in lines if not (replaced and line.startswith(replaced)))
    values = parse_yaml(kept.encode(), "template")[0]
    models = {name: one for name, one in values["models"].items() if "model" in one}
    return kept, values | {"models": models}


@pytest.fixture
def tables(world, monkeypatch):
    """The world with tables of the names that the templates and the README give."""
    monkeypatch.chdir(world)
    shown = pl.read_csv("images.csv")
    doctor = pl.col("subject").is_in(CHOSEN[:2])
    images = shown.with_columns(
        gender=pl.col("frame").replace({"level": "Male", "upright": "Female"}),
        occupation=pl.when(doctor).then(pl.lit("doctor")).otherwise(pl.lit("nurse")),
    ).with_columns(region="frame", group="gender", label="occupation")
    for name in ("images.csv", "labels.csv", "people.csv"):
        images.write_csv(name)
    flags = {one: (pl.col("occupation") == one).cast(pl.Int8) for one in ("doctor", "nurse")}
    images.select("image_id", **flags).write_parquet("labels.parquet")
    for name in ("queries.csv", "prompts.csv"):
        pl.DataFrame({"prompt": ["a doctor", "a nurse"]}).write_csv(name)
    pl.DataFrame({"word": [*WORDS]}).write_csv("words.csv")
    return world


def planned(path, capsys):
    capsys.readouterr()
    code = run(["plan", str(path), "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_shows_how_to_run_a_model_on_images(kind, tables, capsys):
    assert run(["new", "new.yaml", "--audit", kind]) == 0
    written = (tables / "new.yaml").read_text(encoding="utf-8")
    text, values = of_a_model(written)
    # Models that are run and those that are read stand side by side.
    both = audits.parse_config(parse_yaml(text.encode(), "template")[0])
    assert len(both.models) == 2  # every kind here has models
    assert values["extraction"] == {"store": "evidence", "device": "auto"}
    ((name, model),) = values["models"].items()
    assert model["model"].startswith("hf:")
    model["model"] = {CLIP: "hf:clip"}.get(model["model"], "python:nowhere:make")
    (tables / "run.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    found = planned(tables / "run.yaml", capsys)
    assert found["runs"][0]["model"] == name
    assert (found["runs"][0]["items"], found["runs"][0]["to_do"]) == (96, 96)


def readme_example():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (found,) = (one for one in blocks if CLIP in one)
    return found


def test_the_example_of_the_readme_runs(tables, capsys):
    text = readme_example()
    assert len(text.splitlines()) <= 20
    Path("photos").symlink_to("pictures")
    values = parse_yaml(text.replace(CLIP, "hf:clip").encode(), "readme")[0]
    vocabulary = values["models"]["clip"]["vocabulary"]
    people = pl.read_csv("people.csv")
    named = dict(zip(sorted({*people["subject"]}), [*vocabulary, *vocabulary], strict=False))
    people.with_columns(occupation=pl.col("subject").replace(named)).write_csv("people.csv")
    values["resampling"] = {"replicates": 20, "permutations": 50}
    path = tables / "photos.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert planned(path, capsys)["runs"][0]["to_do"] == 96
    assert run(["audit", str(path), "--json"]) == 0
    assert (tables / "runs" / "photos" / "report.html").is_file()


def test_the_commands_of_the_readme_are_those_that_were_run():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    name = re.match(r"# (\S+\.yaml)\n", readme_example())
    for command in ("plan", "audit"):
        assert f"$ equipoise {command} {name[1]}" in page
