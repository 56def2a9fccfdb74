"""The fine-tuning of SocialCounterfactuals: its settings, and which audit judges which model."""

import json
import math
import re
from collections import Counter
from io import BytesIO

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image
from pydantic import ValidationError

import data_sets
import model_checkpoints
from equipoise import audits
from equipoise.audits.generation.config import GeneratorConfig
from equipoise.cli.app import run as command
from equipoise.mitigate.config import Config
from equipoise.models import load_model
from equipoise.report.blocks import Number, Table
from equipoise.studies.page import source_tables
from equipoise.studies.study import read_study, study_files

STUDY = read_study("social-counterfactuals")
PARSED = dict(zip(STUDY.configs, STUDY.parsed_configs, strict=True))
TUNINGS = {name: values for name, values in PARSED.items() if "recipes" in values}
NAMES = {"race": "Race", "gender": "Gender", "physical": "Physical Char."}


def test_tunings_have_the_printed_settings(shared_dir):
    path = shared_dir / "goldens" / "papers" / "howard_2024" / "protocol.json"
    protocol = json.loads(path.read_text(encoding="utf-8"))["rows"]
    rates = {}
    for values in TUNINGS.values():
        # The names of ImageNet's classes are a file.
        config = Config.model_validate({**values, "zero_shot": {}})
        (recipe,) = config.recipes.values()
        segment = ", ".join(NAMES[name] for name in config.images.attributes)
        rates[f"({segment})"] = recipe.learning_rate
        assert (recipe.epochs, recipe.batch) == (protocol["epochs"], protocol["batch"])
        assert config.withheld == protocol["withheld occupations"]
        # Pairs of an image and its caption, all of the other occupations, without a stop.
        assert (recipe.batches, recipe.captions, recipe.towers) == ("pairs", "given", "both")
        assert config.validation == 0
    assert rates == protocol["learning_rate"]


@pytest.mark.parametrize("name", TUNINGS)
def test_each_tuned_model_is_judged_on_its_own_segment_and_occupations(name):
    tuning, audit = PARSED[name], PARSED[name.replace("tuning", "withheld")]
    images, output = tuning["images"], tuning["output"]
    where = audit["data"]["images"]["where"]
    assert where["attributes"] == images["where"]["attributes"]
    assert where["subject"] == {"file": f"{output}/clip/withheld.txt"}
    assert audit["data"]["groups"][0] == images["attributes"]
    for model, untuned in tuning["models"].items():
        assert audit["models"][model]["model"] == untuned
        assert audit["models"][f"{model} fine-tuned"]["model"] == f"hf:{output}/{model}/tuned"


def test_each_segment_has_a_folder_of_its_own_and_the_same_models():
    assert len({values["output"] for values in TUNINGS.values()}) == len(TUNINGS) == 3
    for name in TUNINGS:
        # ALIP's line is commented out, since its weights are a file that the user brings.
        listed = re.findall(r"^ *(?:# )?(\w+): \"(?:hf|alip):", STUDY.configs[name], re.M)
        assert listed == ["clip", "flava", "alip"]


def test_sets_are_made_as_the_text_says_and_as_released(shared_dir):
    folder = shared_dir / "goldens" / "papers" / "howard_2024"
    released = json.loads((folder / "released_occupations.json").read_text(encoding="utf-8"))
    values = PARSED["making-released"]
    generator = GeneratorConfig.model_validate(values["generator"])
    draws = generator.draws
    assert (draws["shared"], draws["shared_self"], draws["places"]) == ((0, 0), (0.1, 0.9), None)
    assert (draws["candidates"], draws["guidance"], generator.steps) == (100, (7.5, 15.0), 100)
    assert STUDY.words[values["captions"]["subjects"]].by_list == {
        "occupations": released["occupations"]
    }
    # The text: maps of texts are shared in 10 to 90 % of the steps.
    text = GeneratorConfig.model_validate(PARSED["making"]["generator"])
    assert (text.draws["shared"], text.draws["shared_self"]) == ((0.1, 0.9), None)
    assert (text.draws["guidance"], text.steps) == (None, 50)
    assert PARSED["making"]["captions"] == {"source": "howard_2024"}


@pytest.mark.parametrize("guidance", [[15, 7.5], [7.5], "much", [-1, 3]])
def test_guidance_of_other_forms_is_refused(guidance):
    values = PARSED["making-released"]["generator"] | {"guidance": guidance}
    with pytest.raises(ValidationError, match="guidance"):
        GeneratorConfig.model_validate(values)


SEGMENTS = {"tuning": "race-gender", "tuning-physical-gender": "physical-gender",
            "tuning-physical-race": "physical-race"}  # fmt: skip
OCCUPATIONS = ("doctor", "engineer", "nurse", "pilot", "cook", "author")
PREFIXES = ("A", "A photo of a", "A picture of a", "An image of a")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The folder of three tunings of a tiny CLIP, and the result of the audit of each."""
    root = tmp_path_factory.mktemp("tuned")
    data_sets.social_counterfactuals_in_pairs(root / "data", 4, OCCUPATIONS)
    name = f"hf:{model_checkpoints.clip(root / 'clip')}"
    results = {}
    for path, text in study_files("social-counterfactuals", root / "study.yaml", None).items():
        part = path.stem.removeprefix("study-") or "probing"
        if part not in SEGMENTS:
            continue
        values = yaml.safe_load(text) | {"models": {"clip": name}, "device": "cpu"}
        values.pop("zero_shot", None), values.pop("retrieval", None)
        # A tiny model moves at a larger rate.
        values["recipes"]["tuned"]["learning_rate"] *= 3000
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        assert command(["mitigate", str(path)]) == 0
        audit = yaml.safe_load(
            STUDY.configs[part.replace("tuning", "withheld")].replace("${data}", "data")
        )
        audit["study"] = "social-counterfactuals"
        audit["models"] = {
            "clip": {"model": name},
            "clip fine-tuned": {"model": f"hf:mitigated/{SEGMENTS[part]}/clip/tuned"},
        }
        audit |= {"resampling": {"replicates": 20, "permutations": 99}, "report": {"images": 0}}
        judging = root / f"{SEGMENTS[part]}.yaml"
        judging.write_text(yaml.safe_dump(audit), encoding="utf-8")
        results[SEGMENTS[part]] = audits.run(audits.load_config(judging), base=root)
    return root, results


def ranked(root, segment, model, withheld):
    """Return the attributes of the images of each withheld occupation, as a model ranks them."""
    (file,) = (root / "data" / "SocialCounterfactuals" / "data").iterdir()
    kinds = {*segment.split("-")}
    rows = [row for row in pl.read_parquet(file).to_dicts()
            if {row["a1_type"], row["a2_type"]} == kinds]  # fmt: skip
    order = {}
    for occupation in withheld:
        own = [row for row in rows if row["caption"].endswith(f" {occupation}")]
        pictures = [Image.open(BytesIO(row["image"]["bytes"])).convert("RGB") for row in own]
        images = unit(model.embed_images([np.asarray(picture) for picture in pictures]))
        an = occupation[0] in "aeiou"
        prompts = [
            f"{prefix}{'n' if an and prefix.lower().endswith('a') else ''} {occupation}"
            for prefix in PREFIXES
        ]
        query = unit(model.embed_texts(prompts)).mean(axis=0)
        order[occupation] = [own[place] for place in np.argsort(-(images @ query))]
    return order


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def mean_max_skew(order, k):
    """Mean over occupations of the largest log ratio to an equal share, of four combinations."""
    values = []
    for rows in order.values():
        counts = Counter((row["a1"], row["a2"]) for row in rows[:k])
        values.append(max(math.log(n / k / 0.25) for n in counts.values()))
    return np.mean(values)


def mean_bias(order, k):
    signs = {"male": 1, "female": -1}
    of = [[signs.get(row["a1"], 0) + signs.get(row["a2"], 0) for row in rows[:k]]
          for rows in order.values()]  # fmt: skip
    return np.mean([sum(values) / len(values) for values in of])


def cells(result, table):
    """Return the numbers that the report shows in a table of the source, by row and column."""
    (block,) = [block for block in source_tables(result).blocks
                if isinstance(block, Table) and block.caption.startswith(f"{table}:")]  # fmt: skip
    heads = [column.title.rstrip(" ↑↓") for column in block.columns[1:]]
    return {(row, head): cell.value for row, *line in block.rows
            for head, cell in zip(heads, line, strict=True)
            if isinstance(cell, Number)}  # fmt: skip


ROWS = {
    "race-gender": ("Race, gender", 12),
    "physical-gender": ("Physical characteristics, gender", 10),
    "physical-race": ("Physical characteristics, race", 4),
}


@pytest.mark.parametrize("segment", ROWS)
def test_rows_of_a_tuned_model_are_what_its_own_vectors_give(segment, tuned):
    root, results = tuned
    (row, k), result = ROWS[segment], results[segment]
    folder = root / "mitigated" / segment / "clip"
    withheld = (folder / "withheld.txt").read_text(encoding="utf-8").split("\n")
    withheld = [name for name in withheld if name]
    assert 1 < len(withheld) < len(OCCUPATIONS)
    by_model = {
        "CLIP pre-trained": load_model(f"hf:{root / 'clip'}", device="cpu", dtype="float32"),
        "CLIP debiased": load_model(f"hf:{folder / 'tuned'}", device="cpu", dtype="float32"),
    }
    skews = cells(result, "Table 2")
    for column, model in by_model.items():
        order = ranked(root, segment, model, withheld)
        assert skews[row, column] == pytest.approx(mean_max_skew(order, k))
        if "gender" in segment:
            biases = cells(result, "Table 17")
            assert biases[row, column] == pytest.approx(mean_bias(order, k))
    # No other row is filled from this segment.
    assert {name for name, _ in skews} == {row}
    # Each model ranks in its own way, so that another's numbers would be noticed.
    models = {name: load_model(f"hf:{root / 'mitigated' / name / 'clip' / 'tuned'}", device="cpu",
                               dtype="float32") for name in ROWS}  # fmt: skip
    orders = [[id_of(rows) for rows in ranked(root, segment, model, withheld).values()]
              for model in (*models.values(), by_model["CLIP pre-trained"])]  # fmt: skip
    assert len({str(order) for order in orders}) == len(orders)


def id_of(rows):
    return [(row["counterfactual_set"], row["a1a2"]) for row in rows]
