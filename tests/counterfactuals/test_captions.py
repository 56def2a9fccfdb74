"""Caption sets: the counts and captions of the source, articles by sound, ids that stay."""

import re
from collections import Counter

import pyarrow.compute as pc
import pytest

from equipoise.core import InputError
from equipoise.counterfactuals import CaptionSets, caption_sets, howard_2024
from equipoise.counterfactuals.articles import agreeing
from equipoise.counterfactuals.captions import SUBJECT_FIRST
from equipoise.data.lexicons import lexicon

GENDER = {"gender": ["male", "female"]}


def captions(sets: CaptionSets) -> list[str]:
    return sets.table["caption"].to_pylist()


def test_counts_are_those_of_the_source() -> None:
    """Howard et al. 2024, section 3.2: 260 subjects give 54,080 captions in 3,120 sets."""
    occupations = lexicon("howard_2024").content["occupations"]
    placeholders = [f"placeholder {number}" for number in range(260 - len(occupations))]
    whole = howard_2024([*occupations, *placeholders])
    assert (len(whole), whole.sets) == (54_080, 3_120)
    assert len(howard_2024()) == 32_448
    of_set = Counter(zip(*(whole.table[c].to_pylist() for c in ("attributes", "set")), strict=True))
    sizes = {name: size for (name, _), size in of_set.items()}
    assert sizes == {"physical-race": 30, "physical-gender": 10, "race-gender": 12}
    assert all(size == sizes[name] for (name, _), size in of_set.items())
    assert pc.count_distinct(whole.table["caption_id"]).as_py() == len(whole)
    assert pc.count_distinct(whole.table["caption"]).as_py() == len(whole)


@pytest.mark.parametrize(
    ("after", "article"),
    [
        ("old doctor", "an"),
        ("obese ceo", "an"),
        ("ceo", "a"),
        ("umpire", "an"),
        ("usher", "an"),
        ("university student", "a"),
        ("unemployed person", "an"),
        ("European", "a"),
        ("honest person", "an"),
        ("one-armed man", "a"),
        ("FBI agent", "an"),
        ("8-year-old child", "an"),
        ("80-year-old man", "an"),
        ("11 year old", "an"),
        ("110-year-old woman", "a"),
        ("18-year-old", "an"),
        ("1 person", "a"),
    ],
)
def test_articles_follow_the_sound(after: str, article: str) -> None:
    assert agreeing("A photo of a", after) == f"A photo of {article}"
    assert agreeing("An", after) == article.capitalize()
    assert agreeing("A photo of the", after) == "A photo of the"
    assert agreeing("Photo of Diana", after) == "Photo of Diana"


def test_traits_stand_before_the_attributes() -> None:
    found = caption_sets(["arrogant"], GENDER, prefixes=["A"], template=SUBJECT_FIRST)
    assert captions(found) == ["An arrogant male person", "An arrogant female person"]


def test_ids_are_the_same_whatever_else_is_asked_for() -> None:
    few = caption_sets(["chef"], GENDER).table
    many = caption_sets(["nurse", "chef"], GENDER, prefixes=["A", "A photo of a"]).table
    ids = dict(zip(many["caption"].to_pylist(), many["caption_id"].to_pylist(), strict=True))
    for row in few.to_pylist():
        assert ids[row["caption"]] == row["caption_id"]
        assert re.fullmatch(r"[\w/-]+", row["caption_id"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"subjects": []}, "subjects is []; expected a list of different words"),
        ({"subjects": "chef"}, "subjects is 'chef'; expected a list of different words"),
        ({"subjects": ["?"]}, "subjects is ['?']; expected a list of different words"),
        (
            {"subjects": ["web developer", "Web-developer"]},
            "subjects has 'Web-developer' twice; expected a list of different words",
        ),
        (
            {"attributes": {"set": ["a"]}},
            "a type of attribute is named 'set', as a column of the table",
        ),
        (
            {"combinations": [("gender", "race")]},
            "the combination ['gender', 'race'] is not of different types of attributes; expected "
            "some of 'gender'",
        ),
        (
            {"combinations": [()]},
            "the combination [] is not of different types of attributes; expected some of 'gender'",
        ),
        (
            {"attributes": {"hue": ["red"]}},
            "the combination ['hue'] has one value of each (hue: 'red'), so that every set would "
            "be one caption; expected two values or more of one of them",
        ),
        (
            {
                "attributes": {"hue": ["red"], "frame": ["round", "square"]},
                "combinations": [("frame", "hue"), ("hue",)],
            },
            "the combination ['hue'] has one value of each (hue: 'red'), so that every set would "
            "be one caption; expected two values or more of one of them",
        ),
        (
            {"template": "{prefix} {subject}"},
            "the template '{prefix} {subject}' has prefix, subject in braces; expected prefix, "
            "attributes, subject, each once",
        ),
        (
            {"template": "{subject} {prefix} {attributes}"},
            "the template '{subject} {prefix} {attributes}' has its prefix later; expected it "
            "first",
        ),
    ],
)
def test_bad_input_is_refused(asked: dict[str, object], said: str) -> None:
    given = {"subjects": ["chef"], "attributes": GENDER, **asked}
    with pytest.raises(InputError) as error:
        caption_sets(given.pop("subjects"), given.pop("attributes"), **given)
    assert str(error.value) == said
