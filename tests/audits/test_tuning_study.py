"""The fine-tuning of SocialCounterfactuals: its settings, and which audit judges which model."""

import json
import re

import pytest
from pydantic import ValidationError

from equipoise.audits.generation.config import GeneratorConfig
from equipoise.audits.studies.study import read_study
from equipoise.mitigate.config import Config

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
