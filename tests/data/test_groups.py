"""Groups from captions, boxes and columns: what each rule does, says and counts."""

import pytest

from equipoise.core import InputError
from equipoise.data import (
    ALL_BOXES,
    AT_LEAST_600_PIXELS,
    LARGE_BOXES,
    BoxGroups,
    BoxSize,
    CaptionGroups,
    continents,
    hall_boxes,
    income_bands,
    read_coco_captions,
    read_dollar_street,
    read_visual_genome,
)
from equipoise.data.groups import fold_text, term_pattern
from image_files import DOLLAR_STREET, sample, write_csv, write_json

GENDER = {"woman": ("woman", "she"), "man": ("Man", "he")}


def captioned(folder, *captions):
    annotations = [
        {"id": n, "image_id": n, "caption": text} for n, text in enumerate(captions, start=10)
    ]
    images = [{"id": n} for n in range(10, 11 + len(captions))]
    value = {"images": images, "annotations": annotations}
    return read_coco_captions(write_json(folder / "c.json", value))


def values(images, rule):
    return rule(images).column(rule.name).to_list()


def left_out(images, rule):
    counts = rule(images).steps[-1].counts["left_out"]
    return {reason: count for reason, count in counts.items() if count}


@pytest.mark.parametrize(
    ("caption", "matches"),
    [
        ("A man.", True),
        ("the man's dog", True),
        ("'man'", True),
        ("A man--alone", True),
        ("a woman", False),
        ("a man-made lake", False),
        ("a ten-man team", False),
        ("mañ", False),
    ],
)
def test_a_term_is_a_whole_word(caption, matches):
    assert (term_pattern(("man",)).search(fold_text(caption)) is not None) == matches


def test_groups_by_captions(tmp_path):
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


def genome(folder):
    return sample("visual_genome").read(folder)


def test_images_with_a_neutral_box_have_no_group_unless_it_is_passed_over(tmp_path):
    shown = {
        "1": ("man.n.01",),
        "2": ("man.n.01", "person.n.01"),
        "3": ("People.n.01", "woman.n.01"),
    }
    box = {"x": 0, "y": 0, "w": 60, "h": 60}
    small = {"x": 0, "y": 0, "w": 5, "h": 5}
    objects = [
        {"image_id": int(image), "objects": [
            {**(box if synset in ("man.n.01", "woman.n.01") else small), "synsets": [synset],
             "names": [synset.partition(".")[0]]} for synset in synsets]}
        for image, synsets in shown.items()
    ]  # fmt: skip
    sizes = [{"image_id": int(image), "width": 100, "height": 120} for image in shown]
    images = read_visual_genome(
        write_json(tmp_path / "o.json", objects), write_json(tmp_path / "i.json", sizes)
    )
    # The size of the neutral box doesn't matter.
    for size in (ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES):
        assert values(images, hall_boxes(size)) == ["man", None, None]
        assert left_out(images, hall_boxes(size)) == {"a term that names no group": 2}
        passed_over = hall_boxes(size, neutral_means="nothing")
        assert values(images, passed_over) == ["man", "man", "woman"]
    assert hall_boxes()(images).steps[-1].counts["images_with_neutral_terms"] == 2
    with pytest.raises(InputError, match="neutral terms"):
        BoxGroups("gender", {"man": ["man.n.01"]}, neutral=["man.n.01"])


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
def test_groups_by_boxes_of_a_size(size, expected, reasons, tmp_path):
    images = genome(tmp_path)
    assert values(images, hall_boxes(size)) == expected
    assert left_out(images, hall_boxes(size)) == {**reasons, "no term of a group": 1}


def test_a_box_at_the_bound_counts(tmp_path):
    box = {"x": 0, "y": 0, "w": 20, "h": 30, "names": ["man"], "synsets": ["man.n.01"]}
    objects = [{"image_id": 1, "objects": [box]}]
    sizes = [{"image_id": 1, "width": 100, "height": 120}]
    images = read_visual_genome(
        write_json(tmp_path / "o.json", objects), write_json(tmp_path / "i.json", sizes)
    )
    for size in (AT_LEAST_600_PIXELS, LARGE_BOXES):
        assert values(images, hall_boxes(size)) == ["man"]


def street(folder):
    return read_dollar_street(write_csv(folder / "d.csv", DOLLAR_STREET))


def test_continents_and_incomes(tmp_path):
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
