"""Groups from captions, boxes and columns: what each rule does, says and counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.data import (
    ALL_BOXES,
    AT_LEAST_600_PIXELS,
    LARGE_BOXES,
    BandGroups,
    BoxGroups,
    BoxSize,
    CaptionGroups,
    ImageSet,
    Rule,
    ValueGroups,
    continents,
    design_choices,
    hall_boxes,
    hall_captions,
    income_bands,
    lexicon,
    read_coco_captions,
    read_dollar_street,
    read_plain,
    read_visual_genome,
)
from equipoise.data.caption_groups import folded, pattern_of
from image_files import COCO_CAPTIONS, DOLLAR_STREET, FORMATS, write_csv, write_json

GENDER = {"woman": ("woman", "she"), "man": ("Man", "he")}


def captioned(folder: Path, *captions: str) -> ImageSet:
    annotations = [
        {"id": n, "image_id": n, "caption": text} for n, text in enumerate(captions, start=10)
    ]
    images = [{"id": n} for n in range(10, 11 + len(captions))]
    value = {"images": images, "annotations": annotations}
    return read_coco_captions(write_json(folder / "c.json", value))


def values(images: ImageSet, rule: Any) -> list[str | None]:
    found: list[str | None] = rule(images).column(rule.name).values.tolist()
    return found


def left_out(images: ImageSet, rule: Any) -> dict[str, int]:
    counts: dict[str, int] = rule(images).steps[-1].counts["left_out"]
    return {reason: count for reason, count in counts.items() if count}


@pytest.mark.parametrize(
    ("caption", "found"),
    [
        ("A man.", True),
        ("A MAN", True),
        ("the man's dog", True),
        ("the man’s dog", True),
        ("'man'", True),
        ("man,woman", True),
        ("(man)", True),
        ("man - made", True),
        ("A man--alone", True),
        ("a woman", False),
        ("manly", False),
        ("a man-made lake", False),
        ("a ten-man team", False),
        ("man_made", False),
        ("mañ", False),
        ("", False),
    ],
)
def test_a_term_is_a_whole_word(caption: str, found: bool) -> None:
    assert (pattern_of(("man",)).search(folded(caption)) is not None) == found


def test_terms_of_several_words_and_of_other_scripts() -> None:
    pattern = pattern_of(("young  adult", "STRASSE", "cafe\u0301"))
    for text in ("a young\nadult", "die Straße", "a CAFÉ."):
        assert pattern.search(folded(text))
    assert not pattern.search(folded("younger adult"))


@given(st.lists(st.sampled_from(["man", "woman", "he", "boat", "person"]), max_size=5))
def test_words_are_those_between_spaces(words: list[str]) -> None:
    text = " ".join(words)
    assert (pattern_of(("man", "he")).search(text) is not None) == bool({"man", "he"} & {*words})


def test_groups_by_captions(tmp_path: Path) -> None:
    images = captioned(tmp_path, "A woman", "he and she", "a boat", "A person, a man")
    rule = CaptionGroups("gender", GENDER, ("person",))
    assert values(images, rule) == ["woman", None, None, "man", None]
    step = rule(images).steps[-1]
    assert step.counts == {
        "groups": {"man": 1, "woman": 1},
        "left_out": {"no caption": 1, "terms of several groups": 1, "no term of a group": 1},
        "images_with_neutral_terms": 1,
    }
    assert step.description == rule.description == (
        "gender by whole words of any caption, without case (man: he, man; woman: she, woman); "
        "terms of several groups: no group; person is passed over"
    )  # fmt: skip


def test_neutral_terms_can_mean_no_group(tmp_path: Path) -> None:
    images = captioned(tmp_path, "A woman", "he and she", "a boat", "A person, a man")
    rule = CaptionGroups("gender", GENDER, ("person",), "no group", "a source", "strict")
    assert values(images, rule) == ["woman", None, None, None, None]
    assert left_out(images, rule) == {
        "no caption": 1, "a term that names no group": 1, "terms of several groups": 1,
        "no term of a group": 1,
    }  # fmt: skip
    assert rule.name == "gender (strict)"
    assert rule.description.endswith("person means no group (a source)")


def test_terms_of_any_caption_count(tmp_path: Path) -> None:
    images = read_coco_captions(write_json(tmp_path / "c.json", COCO_CAPTIONS))
    assert values(images, hall_captions()) == ["woman", "man", None, None]
    assert left_out(images, hall_captions()) == {
        "terms of several groups": 1, "no term of a group": 1,
    }  # fmt: skip
    strict = hall_captions(neutral_means="no group", version="strict")
    assert values(images, strict) == [None, "man", None, None]


def test_the_terms_for_parents_and_children_can_be_dropped(tmp_path: Path) -> None:
    images = captioned(tmp_path, "a mother", "her son", "her")
    assert values(images, hall_captions()) == ["woman", None, "woman", None]
    v3 = hall_captions(parents_and_children=False, version="V3")
    assert values(images, v3) == [None, "woman", "woman", None]
    assert dict(v3.terms)["man"] == ("boy", "boys", "he", "him", "his", "man", "mans", "men")


def genome(folder: Path) -> ImageSet:
    return next(one for one in FORMATS if one.name == "Visual Genome").read(folder, None)


# Image 1: a man of 9 %, a woman of 1 %; 2: a woman of 9 %, a man of 4 %; 3: a girl of 4 %;
# 4: a father of 25 %; 5: nothing.
@pytest.mark.parametrize(
    ("size", "expected", "reasons"),
    [
        (ALL_BOXES, [None, None, "woman", "man", None], {"terms of several groups": 2}),
        (AT_LEAST_600_PIXELS, ["man", "woman", None, "man", None],
         {"only boxes that are too small": 1}),
        (LARGE_BOXES, ["man", None, None, "man", None],
         {"only boxes that are too small": 1,
          "a box of another group that is not small enough to be ignored": 1}),
    ],
    ids=lambda value: value.name if isinstance(value, BoxSize) else "",
)  # fmt: skip
def test_groups_by_boxes_of_a_size(
    size: BoxSize, expected: list[str | None], reasons: dict[str, int], tmp_path: Path
) -> None:
    images = genome(tmp_path)
    assert values(images, hall_boxes(size)) == expected
    assert left_out(images, hall_boxes(size)) == {**reasons, "no term of a group": 1}


def test_sizes_count_the_boxes_they_ignore(tmp_path: Path) -> None:
    images = genome(tmp_path)
    ignored = [
        hall_boxes(size)(images).steps[-1].counts["boxes_ignored"]
        for size in (ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES)
    ]
    assert ignored == [0, 3, 1]


def test_a_box_at_the_bound_counts(tmp_path: Path) -> None:
    box = {"x": 0, "y": 0, "w": 20, "h": 30, "names": ["man"], "synsets": ["man.n.01"]}
    objects = [{"image_id": 1, "objects": [box]}]
    sizes = [{"image_id": 1, "width": 100, "height": 120}]
    images = read_visual_genome(
        write_json(tmp_path / "o.json", objects), write_json(tmp_path / "i.json", sizes)
    )
    for size in (AT_LEAST_600_PIXELS, LARGE_BOXES):
        assert values(images, hall_boxes(size)) == ["man"]


def test_groups_of_the_source_without_parents_and_children(tmp_path: Path) -> None:
    v3 = hall_boxes(parents_and_children=False)
    assert values(genome(tmp_path), v3) == [None, None, "woman", None, None]


DESCRIPTIONS = {
    ALL_BOXES: "gender by boxes (man: man.n.01): all boxes; boxes of several groups: no group",
    AT_LEAST_600_PIXELS: "gender by boxes (man: man.n.01): boxes of at least 600 pixels; "
    "boxes of several groups: no group",
    LARGE_BOXES: "gender by boxes (man: man.n.01): at least one box of 5% of the image; boxes "
    "under 2% are ignored; one between of another group: no group; boxes of several "
    "groups: no group",
}


@pytest.mark.parametrize("size", DESCRIPTIONS, ids=lambda size: size.name)
def test_rules_of_boxes_say_what_they_do(size: BoxSize) -> None:
    assert BoxGroups("gender", {"man": ["man.n.01"]}, size).description == DESCRIPTIONS[size]


def street(folder: Path) -> ImageSet:
    return read_dollar_street(write_csv(folder / "d.csv", DOLLAR_STREET))


def test_continents_and_incomes(tmp_path: Path) -> None:
    images = street(tmp_path)
    assert values(images, continents()) == ["Asia", "Europe", "Africa", None]
    assert continents()(images).steps[-1].counts == {
        "groups": {"Africa": 1, "Asia": 1, "Europe": 1},
        "left_out": {"the cell is empty": 0, "a value of no group": 1},
        "values_without_group": 1, "values_without_group_examples": ["Atlantis"],
    }  # fmt: skip
    assert values(images, income_bands()) == ["level 2", "level 4", "level 1", None]
    assert left_out(images, income_bands()) == {"the cell is empty": 1}
    quartiles = income_bands("quartiles", version="quartiles")
    assert values(images, quartiles) == [
        "first quartile",
        "fourth quartile",
        "first quartile",
        None,
    ]
    assert income_bands().description == (
        "income band by the column income: level 1 below 60, level 2 below 240, level 3 below 960, "
        "level 4 960 and above (Gapminder's four income levels (2, 8 and 32 dollars a day), times "
        "30 days)"
    )


def test_values_merge_without_case_and_spaces() -> None:
    frame = pl.DataFrame(
        {"id": ["1", "2", "3"], "race": ["East Asian ", "southeast asian", "Black"]}
    )
    images = read_plain(frame, id="id", columns=("race",))
    rule = ValueGroups("race", "race", {"Asian": ["East Asian", "Southeast Asian"]}, "", "merged")
    assert values(images, rule) == ["Asian", "Asian", None]
    assert rule.description == "race by the column race: Asian: east asian, southeast asian"


def test_every_country_has_one_continent() -> None:
    countries = [
        one for ones in lexicon("continents").section("continents").values() for one in ones
    ]
    assert len({one.casefold() for one in countries}) == len(countries) > 200


RULES: list[Callable[[], Rule]] = [
    hall_captions,
    hall_boxes,
    lambda: hall_boxes(LARGE_BOXES),
    continents,
    income_bands,
]


@pytest.mark.parametrize("make", RULES)
def test_the_same_rule_made_twice_is_one(make: Callable[[], Rule]) -> None:
    assert make() == make()
    assert (hash(make()), make().description) == (hash(make()), make().description)


def test_different_rules_say_different_things() -> None:
    rules = [make() for make in RULES]
    assert len({*rules}) == len({rule.description for rule in rules}) == len(rules)


def test_the_order_of_groups_and_terms_does_not_matter() -> None:
    a = CaptionGroups("g", {"a": ["x", "y"], "b": ["z"]}, ["p", "q"])
    b = CaptionGroups("g", {"b": ["Z"], "a": ["y", "x"]}, ["q", "p"])
    assert a == b
    assert a.description == b.description


def test_rules_become_versions_of_design_choices() -> None:
    large, small = hall_boxes(LARGE_BOXES, version="large"), hall_boxes(version="all")
    assert design_choices(large, small) == {
        "large": {"columns": {"gender": "gender (large)"}},
        "all": {"columns": {"gender": "gender (all)"}},
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CaptionGroups("g", {}), "terms are empty; expected at least one group"),
        (lambda: CaptionGroups("g", {"a": []}),
         "the group 'a' has no terms or an empty one; expected some"),
        (lambda: CaptionGroups("g", {"a": [" "]}),
         "the group 'a' has no terms or an empty one; expected some"),
        (lambda: CaptionGroups("g", {"a": ["X"], "b": ["x"]}),
         "'x' is in the groups 'a' and 'b'; expected it in one"),
        (lambda: CaptionGroups("g", {"a": ["x"]}, ["X"]),
         "'x' is neutral and in a group; expected one of the two"),
        (lambda: CaptionGroups("g", {"a": ["x"]}, (), "unsure"),
         "neutral_means is 'unsure'; expected 'nothing' or 'no group'"),
        (lambda: BoxSize("b", ignored=0.5, needed=0.1),
         "the sizes of 'b' are 0 pixels and the shares 0.5 and 0.1; expected 0 or more pixels, and "
         "shares from 0 to 1 with ignored at most needed"),
        (lambda: BandGroups("g", "c", (1.0, 1.0), ("a", "b", "c")),
         "bounds are (1.0, 1.0); expected rising numbers"),
        (lambda: BandGroups("g", "c", (1.0,), ("a", "a")),
         "names are ('a', 'a'); expected 2 different ones, one more than bounds"),
        (lambda: income_bands("deciles"),
         "there is no scheme 'deciles'; expected one of levels, quartiles"),
        (lambda: design_choices(hall_boxes()),
         "the rule of 'gender' has no version; it is the baseline: leave it out"),
        (lambda: design_choices(hall_boxes(version="v"), hall_captions(version="v")),
         "two rules have the version 'v'; expected different ones"),
        (lambda: lexicon("hall"), "there is no lexicon 'hall'; expected one of continents, "
         "hall_2023, howard_2024, income, mandal_2024_gender, mandal_2024_prompts, "
         "mandal_2024_regions, mandal_2024_words"),
        (lambda: lexicon("howard_2024").section("race"),
         "the lexicon 'howard_2024' has no section 'race' of lists; expected one of none"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (hall_captions(), "images (data frame) has no captions; read the file of captions"),
        (hall_boxes(),
         "images (data frame) has no boxes; read a file of objects or instances"),
        (continents("nation"),
         "images (data frame) has no column 'nation'; expected one of 'country', 'income'"),
        (income_bands(), "images (data frame), column 'income': 'much' is no number; expected "
         "numbers"),
        (continents(attribute="country"), "images (data frame) has a column 'country' already; "
         "expected another name: give the rule a 'version'"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_the_images(rule: Any, message: str) -> None:
    frame = pl.DataFrame({"id": ["1"], "country": ["Chad"], "income": ["much"]})
    images = read_plain(frame, id="id", columns=("country", "income"))
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        rule(images)


def test_shares_need_the_sizes_of_images(tmp_path: Path) -> None:
    genome(tmp_path)
    images = read_visual_genome(tmp_path / "objects.json")
    assert values(images, hall_boxes(AT_LEAST_600_PIXELS))[0] == "man"
    with pytest.raises(InputError, match="needs; for Visual Genome read image_data.json too$"):
        hall_boxes(LARGE_BOXES)(images)


def test_an_image_without_area_is_an_error(tmp_path: Path) -> None:
    sizes = [{"image_id": 1, "width": 0, "height": 9}]
    images = read_visual_genome(
        write_json(tmp_path / "o.json", [{"image_id": 1, "objects": []}]),
        write_json(tmp_path / "i.json", sizes),
    )
    with pytest.raises(InputError, match="the image '1' has no width or height above 0$"):
        hall_boxes(LARGE_BOXES)(images)
