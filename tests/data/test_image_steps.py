"""Declared steps: images and labels left out, two sets joined, crops, tables on disk."""

import polars as pl
import pytest

from equipoise.core import InputError
from equipoise.data import (
    ClassMapping,
    CropBoxes,
    IdsFrom,
    RandomSplit,
    combine,
    hall_captions,
    leave_out_visual_genome,
    read_class_mapping,
    read_coco_captions,
    read_coco_instances,
    read_plain,
    read_visual_genome_images,
)
from image_files import COCO_CAPTIONS, COCO_INSTANCES, VG_IMAGES, write_json


def coco(folder):
    return combine(
        read_coco_captions(write_json(folder / "captions.json", COCO_CAPTIONS)),
        read_coco_instances(write_json(folder / "instances.json", COCO_INSTANCES)),
    )


def test_images_of_visual_genome_are_left_out_of_coco(tmp_path):
    genome = read_visual_genome_images(write_json(tmp_path / "image_data.json", VG_IMAGES))
    images = coco(tmp_path).apply(leave_out_visual_genome(genome))
    assert images.ids.tolist() == ["25", "7"]
    step = images.steps[-1]
    assert step.counts == {"images_left_out": 2, "ids_not_here": 1}
    assert step.description == "images are left out where they are in Visual Genome too"
    assert images.label_table()["label"].to_list() == ["giraffe"]
    assert images.captions is not None
    assert images.captions["image_id"].to_list() == ["25", "7"]


def test_images_can_be_named_by_a_column(tmp_path):
    images = coco(tmp_path)
    named = images.apply(IdsFrom("file_name"))
    assert named.ids.tolist() == [f"{n:012}.jpg" for n in (7, 9, 25, 139)]
    back = named.apply(IdsFrom("original_id"))
    assert back.ids.tolist() == images.ids.tolist()
    for part in ("labels", "captions", "boxes"):
        assert getattr(back, part).equals(getattr(images, part))
    assert named.steps[-1].description == "images are named by the column file_name"
    with pytest.raises(InputError, match="expected a name for each image$"):
        images.apply(IdsFrom("width"))
    with pytest.raises(InputError, match="expected a name for each"):
        images.apply(hall_captions(), IdsFrom("gender"))


def test_a_random_split_depends_on_the_seed_alone(tmp_path):
    rows = "\n".join(f"i{place:03}" for place in range(200))
    (tmp_path / "a.csv").write_text(f"id\n{rows}\n")
    images = read_plain(tmp_path / "a.csv", id="id")
    first, same, other = (
        images.apply(RandomSplit(0.25, seed)).table["split"].to_list() for seed in (1, 1, 2)
    )
    assert first == same != other
    assert first.count("test") == 50
    assert images.apply(RandomSplit(0.25)).steps[-1].counts == {"test": 50, "train": 150}
    with pytest.raises(InputError, match="a column 'split' already"):
        images.apply(RandomSplit(0.5), RandomSplit(0.5))


def test_crops_of_persons(tmp_path):
    rule = CropBoxes(frozenset({"person"}), margin=0.5, pixels=150)
    crops = coco(tmp_path).apply(hall_captions(neutral_means="nothing"), rule)
    assert rule.description == (
        "crops of every box of at least 150 pixels of person, with 50% of it added on each side"
    )
    assert crops.ids.tolist() == ["139#0", "139#1"]
    table = crops.table
    assert table["image"].to_list() == ["139", "139"]
    assert table["gender"].to_list() == ["woman", "woman"]
    corners = table.select("left", "top", "right", "bottom").rows()
    # 10 × 20 at the corner of the image; and 53.05 × 138.01 at (412.8, 157.61).
    assert corners == [("0", "0", "15", "30"), ("386", "88", "493", "365")]
    assert crops.label_table()["label"].to_list() == ["chair", "person"] * 2
    assert crops.steps[-1].counts == {
        "boxes": 2, "boxes_too_small": 0, "boxes_outside": 0, "boxes_of_the_same_corners": 0,
        "images_without_crop": 3,
    }  # fmt: skip


MAPPING = ClassMapping.of(
    "wide", {"phones": ["telephone", "cellphone"], "bikes": "bicycle", "calls": ["telephone"]}
)


def plain(*rows):
    frame = pl.DataFrame([*rows], schema=["id", "label"], orient="row")
    return read_plain(frame, id="id", label="label")


def test_a_mapping_is_read(tmp_path):
    rows = ["class,label", "telephone,phones", "cellphone,phones", "bicycle,bikes"]
    rows += ["telephone,calls", "telephone, phones "]
    (tmp_path / "wide.csv").write_text("\n".join(rows))
    assert read_class_mapping(tmp_path / "wide.csv") == MAPPING


def test_labels_become_classes():
    images = plain(("1", "phones"), ("1", "calls"), ("2", "bikes"), ("3", "roof"), ("4", None))
    mapped = images.apply(MAPPING)
    assert mapped.label_table().rows() == [
        ("1", "cellphone"), ("1", "telephone"), ("2", "bicycle"),
    ]  # fmt: skip
    step = mapped.steps[-1]
    assert step.counts == {
        "labels": 4, "labels_without_class": 1, "labels_without_class_examples": ["roof"],
        "classes": 3, "classes_without_images": 0, "images_without_class": 2,
    }  # fmt: skip
    assert step.description == (
        "labels are the classes of the mapping 'wide' (bikes: bicycle; calls: telephone; phones: "
        "cellphone, telephone)"
    )
