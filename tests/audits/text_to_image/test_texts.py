"""Words beside the prompts of images, prompts of one generator, and what is made of scores."""

import math
import re

import numpy as np
import pytest
import yaml

from equipoise import audits
from equipoise.core import ConfigError
from equipoise.studies.study import read_study
from goldens import Golden
from painted import PROMPTS, Painter, Seer, audit_values, info

LEXICON = Golden("../lexicons/text_to_image_prompts.json")
FEW = {
    "prompts": PROMPTS | {"images": {"attributes": 3, "targets": 6}},
    "shares": [], "resampling": {"replicates": 20, "seed": 3},
}  # fmt: skip


def run(base, associations, **changes):
    values = audit_values(**FEW, associations=associations)
    return audits.run(audits.parse_config(values | changes), base=base)


def values_of(result, metric, version="", **where):
    """Value of each finding of a metric by its subject."""
    return {
        finding.subject: finding.value
        for finding in result.findings
        if finding.metric == metric
        and version in finding.version
        and all(getattr(finding, key) == value for key, value in where.items())
    }


class Reader(Seer):
    """Remembers the texts that it embeds."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def embed_texts(self, texts):
        self.texts += texts
        return super().embed_texts(texts)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A run with words, a template, sides, a further set as neutral and a centre."""
    reader, base = Reader(), tmp_path_factory.mktemp("read")
    associations = {
        "texts": {"red": ["rosy red", "ruby red"], "blue": ["sea blue"]},
        "template": "This is {}", "declared_sides": {"hot": ["fire", "flag"], "cold": ["sea"]},
        "neutral": ["green"], "centre": [0.0, 0.25],
    }  # fmt: skip
    return run(base, associations, models={"seer": {"model": reader}}), reader


def test_texts_are_words_and_prompts_in_their_template(read):
    result, reader = read
    prompts = {f"This is a {text}" for texts in PROMPTS["attributes"].values() for text in texts}
    prompts |= {f"This is a {target}" for target in ("fire", "flag", "sea")}
    words = {f"This is {word}" for word in ("rosy red", "ruby red", "sea blue")}
    assert {*reader.texts} == prompts | words
    # TT of the fire, from what the model gives the texts.
    rows = Seer().embed_texts(["a fire", "rosy red", "ruby red", "sea blue"])
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = units[1:3].mean(axis=0) @ units[0] - units[3] @ units[0]
    assert values_of(result, "association_score", "TT")["fire"] == pytest.approx(expected, abs=1e-6)


def test_the_offset_is_the_size_of_the_mean_of_a_further_set(read):
    result, _ = read
    leans = values_of(result, "mcas", variant="own_lean")
    green = [leans[f"a green {thing}"] for thing in ("thing", "shape")]
    [offset] = values_of(result, "offset").values()
    assert offset == pytest.approx(abs(np.mean(green)))
    angles = {finding.parameters["offset"] for finding in result.findings
              if finding.metric == "xmcas"}  # fmt: skip
    assert angles == {offset}


def test_a_distance_is_from_the_centre(read):
    result, _ = read
    near = {
        row["target"]: row["value"]
        for row in result.tables["xmcas"].to_pylist()
        if (row["part"], row["group"]) == ("similarity", "green") and row["set"] is None
    }
    mcas, distances = values_of(result, "mcas", variant=""), values_of(result, "xmcas_distance")
    assert {*distances} == {"fire", "flag", "sea"}
    for target, distance in distances.items():
        assert distance == pytest.approx(math.hypot(near[target], mcas[target] - 0.25))


def test_scores_are_summarised_by_declared_side(read):
    result, _ = read
    metrics = ("mcas", "diffusion_bias", "bias_amplification", "xmcas", "xmcas_distance")
    for metric in metrics:
        values = values_of(result, metric, variant="")
        by_side = {
            row["declared"]: row
            for row in result.tables["score_summaries"].to_pylist()
            if row["metric"] == metric and row["category"] == "all" and row["direction"] == "both"
        }
        members = {"hot": ("fire", "flag"), "cold": ("sea",), "": ("fire", "flag", "sea")}
        assert {*by_side} == {*members}
        for side, names in members.items():
            row = by_side[side]
            numbers = [values[name] for name in names if np.isfinite(values[name])]
            assert row["targets"] == len(numbers)
            assert row["mean"] == pytest.approx(np.mean(numbers))
            assert (row["minimum"], row["maximum"]) == (min(numbers), max(numbers))


def test_a_generator_has_prompts_of_its_own(tmp_path):
    painted = {"red": ["red balloon"]}
    generators = {
        "plain": {"model": Painter(), "guidance": 1.0, "steps": 1},
        "other": {"model": Painter(), "guidance": 1.0, "steps": 1, "attributes": painted},
    }
    result = run(tmp_path, {"ddof": 0}, generators=generators)
    for model, texts in {"plain": ("a red thing", "a red shape"), "other": ()}.items():
        leans = {*values_of(result, "mcas", model=model, variant="own_lean")}
        assert {text for text in leans if "red" in text} == {*texts}
    assert any("red has one prompt" in note for note in result.manifest.notes)
    config = audits.parse_config(audit_values(**FEW) | {"generators": generators})
    assert config.prompts_of("other").attribute_texts["red"] == ("a red balloon",)
    assert config.prompts_of("other").attribute_texts["blue"] == ("a blue thing", "a blue shape")


class Blunt(Seer):
    """Tells texts apart less clearly."""

    def __init__(self):
        weights = "1" * 64
        super().__init__(info("blunt", dimension=4, scale=20.0, bias=None, weights_sha256=weights))

    def embed_texts(self, texts):
        return super().embed_texts(texts) + np.float32(0.5)


def test_values_of_encoders_are_averaged(tmp_path):
    models = {"seer": {"model": Seer()}, "blunt": {"model": Blunt()}}
    gain, bias = "bias_amplification", "diffusion_bias"
    # Diffusion bias is linear where signs agree, so that both ways give the same.
    for average, equal, metrics in (("values", True, (gain, bias)), ("cosines", False, (gain,))):
        result = run(tmp_path, {"average": average}, models=models)
        for metric in metrics:
            single = [values_of(result, metric, name)["sea"] for name in ("seer, ", "blunt, ")]
            together = values_of(result, metric, "all encoders")["sea"]
            assert bool(together == pytest.approx(np.mean(single))) == equal
        # A single draw is no chance level.
        chances = {finding.chance for finding in result.findings if "seer, " in finding.version}
        assert np.isnan([*chances]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"associations": {"texts": {"pink": ["x"]}}}, "associations.texts"),
        ({"associations": {"template": "no place"}}, "associations.template"),
        ({"associations": {"neutral": ["red"]}}, "associations.neutral"),
        ({"associations": {"neutral": ["green", "fire"]}}, "associations.neutral"),
        ({"associations": {"declared_sides": {"a": ["ice"]}}}, "associations.declared_sides"),
        ({"associations": {"declared_sides": {"a": ["sea"], "b": ["sea"]}}}, "more than once"),
        ({"associations": {"centre": [0.3]}}, "associations.centre"),
        ({"associations": {"average": "medians"}}, "associations.average"),
        ({"generators": {"g": {"model": Painter(), "attributes": {"pink": ["x"]}}}},
         "generators.g.attributes"),
    ],
)  # fmt: skip
def test_a_configuration_is_refused(changes, words):
    with pytest.raises(ConfigError) as caught:
        audits.parse_config(audit_values(**changes))
    assert words in str(caught.value)


def configs():
    """The configurations of the study that repeat experiments of the source."""
    bodies = read_study("text-to-image").configs
    return {part: audits.parse_config(yaml.safe_load(bodies[part])) for part in bodies}


GENERATORS = {"dalle_2": "dalle_2", "stable_diffusion": "stable_diffusion"}


def test_prompts_and_words_of_the_study_are_those_collected():
    by_generator, words = LEXICON["attributes_by_generator"], LEXICON["text_attributes"]
    further, prefix = LEXICON["attributes"]["non_binary"], LEXICON["prefix"]
    targets = {
        f"{prefix} {text}"
        for sides in LEXICON["targets"].values()
        for texts in sides.values()
        for text in texts
    }
    for part, config in configs().items():
        for name in config.generators:
            sets = dict(by_generator[GENERATORS.get(name, "stable_diffusion")])
            if part != "audit":
                sets["non_binary"] = further
            prompts = config.prompts_of(name)
            asked = {key: {*texts} for key, texts in prompts.attribute_texts.items()}
            assert asked == {
                key: {f"{prefix} {text}" for text in texts} for key, texts in sets.items()
            }
            of_targets = [texts for by in prompts.target_texts.values() for texts in by.values()]
            assert {text for texts in of_targets for text in texts} == targets
            assert prompts.counts.model_dump() == {"attributes": 16, "targets": 20}
            assert {key: {*texts} for key, texts in config.words.items()} == {
                key: {*words[key]} for key in sets
            }


def test_prompts_and_words_are_those_of_the_appendices_and_tables(shared_dir):
    text = (shared_dir / "papers" / "mandal_2024.txt").read_text(encoding="utf-8")
    for part, start, end in (("audit", "\n## A.4 ", "\n## A.5 "),
                             ("encoders", "\n## A.6 ", "\n# Bibliography")):  # fmt: skip
        appendix = re.sub(r"/<br>", "/", text[text.index(start) : text.rindex(end)])
        printed = re.findall(r"\|\s*(an image of [^|]*?)\s*\|", appendix)
        config = configs()[part]
        for name, place in {"dalle_2": 0, "stable_diffusion": 1}.items():
            asked = {*config.prompts_of(name).texts}
            assert asked == {_of_generator(prompt, place) for prompt in printed}
        table = text[text.index(f"Table {'6' if part == 'audit' else '9'}.1: Examples of Text") :]
        lines = [line.split("|")[1].strip() for line in table.split("\n")[3:7] if "|" in line]
        listed = [{*line.split(", ")} for line in lines if line and not line.startswith("-")]
        assert [{*words} for words in config.words.values()] == listed


def _of_generator(prompt, place):
    """Return the prompt of DALL-E 2 (0) or Stable Diffusion (1), which has a star."""
    first, _, second = prompt.rstrip("*").partition("/")
    return f"an image of a {second}" if place and second else first
