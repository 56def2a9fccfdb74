"""The words of the package are those of their sources."""

import json

import pytest

from equipoise.data import LEXICONS, lexicon


@pytest.mark.parametrize("name", LEXICONS)
def test_every_lexicon_names_its_source(name):
    words = lexicon(name)
    assert len(words.source) > 20
    assert len(words.note) > 20
    assert words.content


META = ("source", "note", "templates")


def source(shared, name):
    return json.loads((shared / "lexicons" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mandal_2024_words", "mandal_words"),
        ("mandal_2024_gender", "gender_words"),
        ("mandal_2024_prompts", "text_to_image_prompts"),
        ("howard_2024", "social_counterfactuals"),
        ("vendrow_2023", "backgrounds"),
        ("cho_2022", "cho_dalleval"),
    ],
)
def test_words_are_those_collected(name, file, shared_dir):
    collected = source(shared_dir, file)
    expected = {key: value for key, value in collected.items() if key not in META}
    assert dict(lexicon(name).content) == expected


def test_terms_of_gender_are_those_collected(shared_dir):
    collected, content = source(shared_dir, "hall_gender_terms"), lexicon("hall_2023").content
    assert content["captions"] == collected["coco_captions"]
    assert content["synsets"] == collected["visual_genome"]
    assert content["neutral"] == {
        "captions": collected["excluded_terms"],
        "synsets": [f"{term}.n.01" for term in collected["excluded_terms"]],
    }
    assert content["class_mapping_examples"] == collected["class_mapping_examples"]
    assert content["dropped_in_v3"] == {
        "captions": collected["dropped_in_v3"]["coco_captions"],
        "synsets": collected["dropped_in_v3"]["visual_genome"],
    }


def test_released_occupations_are_those_of_the_authors(shared_dir):
    path = shared_dir / "goldens" / "papers" / "howard_2024" / "released_occupations.json"
    released = json.loads(path.read_text("utf-8"))
    occupations = lexicon("howard_2024_released").content["occupations"]
    assert occupations == released["occupations"]
    assert len(occupations) == released["distinct but for case"] == 181
