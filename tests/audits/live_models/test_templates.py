"""What `equipoise new` writes and the README shows runs a model on images, once uncommented."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from audits.live_models.worlds import CHOSEN
from equipoise import audits
from equipoise.cli.app import run
from equipoise.config.files import parse_yaml

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
    """Yield the lines of a template that runs a model, without the lines that it replaces.

    The part begins at a comment with "to run a model" and ends with its indentation.
    """
    open_at, replaced = None, set()
    for line in text.splitlines():
        match = re.fullmatch(r"( *)# ( *)(.*)", line)
        begins = match is not None and not match[2] and "# to run a model" in match[3]
        if begins:
            open_at = match[1]
            places = re.search(r"in place of (\w+) and (\w+)", line)
            replaced |= {f"{open_at}{key}:" for key in (places.groups() if places else ())}
        elif match is None or match[1] != open_at or not match[2]:
            open_at = None
        yield f"{match[1]}{match[2]}{match[3]}" if open_at is not None and match else line
    yield from (f"# replaced: {key}" for key in sorted(replaced))


def of_a_model(text):
    """Return the text of a template that runs a model, and its values with only that model."""
    lines = [*uncommented(text)]
    replaced = tuple(line.removeprefix("# replaced: ") for line in lines if "# replaced: " in line)
    remaining = "\n".join(line for line in lines if not (replaced and line.startswith(replaced)))
    values = parse_yaml(remaining.encode(), "template")[0]
    models = {name: model for name, model in values["models"].items() if "model" in model}
    return remaining, values | {"models": models}


@pytest.fixture
def tables(world, monkeypatch):
    """Return the world with the tables that templates and the README name."""
    monkeypatch.chdir(world)
    table = pl.read_csv("images.csv")
    doctor = pl.col("subject").is_in(CHOSEN[:2])
    images = table.with_columns(
        gender=pl.col("frame").replace({"level": "Male", "upright": "Female"}),
        occupation=pl.when(doctor).then(pl.lit("doctor")).otherwise(pl.lit("nurse")),
    ).with_columns(region="frame", group="gender", label="occupation")
    for name in ("images.csv", "labels.csv", "people.csv"):
        images.write_csv(name)
    flags = {job: (pl.col("occupation") == job).cast(pl.Int8) for job in ("doctor", "nurse")}
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
    config = audits.parse_config(parse_yaml(text.encode(), "template")[0])
    assert len(config.models) == 2  # every kind here has models
    assert values["extraction"] == {"store": "evidence", "device": "auto"}
    ((name, model),) = values["models"].items()
    assert model["model"].startswith("hf:")
    model["model"] = {CLIP: "hf:clip"}.get(model["model"], "python:nowhere:make")
    (tables / "run.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    plan = planned(tables / "run.yaml", capsys)
    assert plan["runs"][0]["model"] == name
    assert (plan["runs"][0]["items"], plan["runs"][0]["to_do"]) == (96, 96)


def readme_example():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if CLIP in block)
    return block


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


def test_the_readme_shows_the_commands_of_its_example():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    name = re.match(r"# (\S+\.yaml)\n", readme_example())
    for command in ("plan", "audit"):
        assert f"$ equipoise {command} {name[1]}" in page
