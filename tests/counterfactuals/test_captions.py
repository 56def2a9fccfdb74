"""Caption sets: the counts and captions of the source, articles by sound, ids that stay."""

import re
from collections import Counter

import pyarrow.compute as pc
import pytest

from equipoise.core import InputError
from equipoise.counterfactuals import caption_sets, howard_2024
from equipoise.counterfactuals.captions import agreeing
from equipoise.data import lexicon

GENDER = {"gender": ["male", "female"]}


def captions(sets):
    return sets.table["caption"].to_pylist()


def test_counts_equal_the_source():
    """Howard et al. 2024, section 3.2: 260 subjects give 54,080 captions in 3,120 sets."""
    occupations = lexicon("howard_2024").content["occupations"]
    placeholders = [f"placeholder {number}" for number in range(260 - len(occupations))]
    captions = howard_2024([*occupations, *placeholders])
    assert (len(captions), captions.sets) == (54_080, 3_120)
    assert len(howard_2024()) == 32_448
    of_set = Counter(
        zip(*(captions.table[c].to_pylist() for c in ("attributes", "set")), strict=True)
    )
    sizes = {name: size for (name, _), size in of_set.items()}
    assert sizes == {"physical-race": 30, "physical-gender": 10, "race-gender": 12}
    assert all(size == sizes[name] for (name, _), size in of_set.items())
    assert pc.count_distinct(captions.table["caption_id"]).as_py() == len(captions)
    assert pc.count_distinct(captions.table["caption"]).as_py() == len(captions)


@pytest.mark.parametrize(
    ("after", "article"),
    [
        ("ceo", "a"),
        ("usher", "an"),
        ("European", "a"),
        ("one-armed man", "a"),
        ("FBI agent", "an"),
        ("8-year-old child", "an"),
        ("110-year-old woman", "a"),
        ("18-year-old", "an"),
    ],
)
def test_articles_follow_the_sound(after, article):
    assert agreeing("A photo of a", after) == f"A photo of {article}"
    assert agreeing("An", after) == article.capitalize()
    assert agreeing("A photo of the", after) == "A photo of the"
    assert agreeing("Photo of Diana", after) == "Photo of Diana"


def test_ids_do_not_depend_on_other_subjects():
    small = caption_sets(["chef"], GENDER).table
    large = caption_sets(["nurse", "chef"], GENDER, prefixes=["A", "A photo of a"]).table
    ids = dict(zip(large["caption"].to_pylist(), large["caption_id"].to_pylist(), strict=True))
    for row in small.to_pylist():
        assert ids[row["caption"]] == row["caption_id"]
        assert re.fullmatch(r"[\w/-]+", row["caption_id"])


@pytest.mark.parametrize(
    "changes",
    [
        {"subjects": "chef"},
        {"subjects": ["web developer", "Web-developer"]},
        {"attributes": {"set": ["a"]}},
        {"combinations": [("gender", "race")]},
        {"attributes": {"hue": ["red"]}},
        {"template": "{subject} {prefix} {attributes}"},
        {"templates": {"male": "{prefix} {subject}"}},
        {"templates": {"azure": "{prefix} {attributes} {subject}"}},
    ],
)
def test_bad_input_is_refused(changes):
    settings = {"subjects": ["chef"], "attributes": GENDER} | changes
    with pytest.raises(InputError):
        caption_sets(settings.pop("subjects"), settings.pop("attributes"), **settings)


def test_some_values_stand_elsewhere():
    captions = caption_sets(
        ["sock"],
        {"background": ["on the road", "blue"]},
        template="{prefix} {subject} {attributes}",
        templates={"blue": "{prefix} {attributes} {subject}"},
    ).table["caption"]
    assert captions.to_pylist() == ["A photo of a sock on the road", "A photo of a blue sock"]
