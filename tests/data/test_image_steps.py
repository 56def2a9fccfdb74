"""Declared steps: images and labels left out, two sets joined, crops, tables on disk."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from equipoise.core import InputError
from equipoise.data import (
    CropBoxes,
    IdsFrom,
    ImageSet,
    LeaveOutLabels,
    LeaveOutUnlabelled,
    combine,
    hall_captions,
    leave_out_visual_genome,
    load_items,
    provenance,
    read_coco_captions,
    read_coco_instances,
    read_plain,
    read_visual_genome_images,
    synset_text,
    synset_texts,
    to_tables,
)
from equipoise.data.items import ItemSource
from image_files import COCO_CAPTIONS, COCO_INSTANCES, VG_IMAGES, write_json


def coco(folder: Path) -> ImageSet:
    return combine(
        read_coco_captions(write_json(folder / "captions.json", COCO_CAPTIONS)),
        read_coco_instances(write_json(folder / "instances.json", COCO_INSTANCES)),
    )


def plain(*rows: tuple[str, str | None]) -> ImageSet:
    frame = pl.DataFrame([*rows], schema=["id", "label"], orient="row")
    return read_plain(frame, id="id", label="label")


def test_captions_and_instances_are_combined(tmp_path: Path) -> None:
    images = coco(tmp_path)
    assert images.captions is not None
    assert len(images.need_labels().image) == 4
    assert [*images.inputs] == [str(tmp_path / one) for one in ("captions.json", "instances.json")]
    assert images.steps[-1].counts == {"images": 4, "only_first": 0, "only_second": 0}
    assert images.counts["COCO instances"]["crowds"] == 1


def test_what_only_one_set_has_is_left_out_and_counted() -> None:
    first, second = plain(("1", "a"), ("2", "b"), ("3", "c")), plain(("3", "x"), ("4", "y"))
    both = combine(first, second)
    assert both.ids.tolist() == ["3"]
    assert both.label_table()["label"].to_list() == ["c"]
    assert both.steps[-1].counts == {"images": 1, "only_first": 2, "only_second": 1}


def test_images_of_visual_genome_are_left_out_of_coco(tmp_path: Path) -> None:
    genome = read_visual_genome_images(write_json(tmp_path / "image_data.json", VG_IMAGES))
    images = coco(tmp_path).apply(leave_out_visual_genome(genome))
    assert images.ids.tolist() == ["25", "7"]
    step = images.steps[-1]
    assert step.counts == {"images_left_out": 2, "ids_not_here": 1}
    assert step.description == "images are left out where they are in Visual Genome too"
    assert images.label_table()["label"].to_list() == ["giraffe"]
    assert images.captions is not None
    assert images.captions.image.tolist() == [0, 1]


def test_images_without_labels_are_left_out() -> None:
    images = plain(("1", "a"), ("2", None), ("3", "b")).apply(LeaveOutUnlabelled())
    assert images.ids.tolist() == ["1", "3"]
    assert images.steps[-1].counts == {"images_left_out": 1}


def test_labels_that_define_groups_are_left_out() -> None:
    rule = LeaveOutLabels(frozenset({"man", "boy"}), "they define the groups")
    images = plain(("1", "man"), ("1", "hat"), ("2", "man")).apply(rule)
    assert images.label_table().rows() == [("1", "hat")]
    assert images.steps[-1].counts == {"labels_left_out": 1, "pairs_left_out": 2}
    assert rule.description == "labels are left out where they define the groups: boy, man"
    assert len(images) == 2


def test_the_order_of_steps_is_kept(tmp_path: Path) -> None:
    images = coco(tmp_path).apply(hall_captions(), LeaveOutUnlabelled())
    assert [step.name for step in images.steps] == ["combined", "gender", "unlabelled"]
    assert images.column("gender").values.tolist() == ["woman", "man", None]


def test_images_can_be_named_by_a_column(tmp_path: Path) -> None:
    images = coco(tmp_path)
    named = images.apply(IdsFrom("file_name"))
    assert named.ids.tolist() == [f"{n:012}.jpg" for n in (7, 9, 25, 139)]
    back = named.apply(IdsFrom("original_id"))
    assert back.ids.tolist() == images.ids.tolist()
    assert back.label_table().equals(images.label_table())
    for part in ("captions", "boxes"):
        a, b = getattr(images, part), getattr(back, part)
        assert a.image.tolist() == b.image.tolist()
    assert images.boxes is not None
    assert back.boxes is not None
    assert images.boxes.corners.tolist() == back.boxes.corners.tolist()
    assert named.steps[-1].description == "images are named by the column file_name"
    with pytest.raises(InputError, match="'640' is there twice; expected a name for each image$"):
        images.apply(IdsFrom("width"))
    with pytest.raises(InputError, match="an image has no name there; expected a name for each"):
        images.apply(hall_captions(), IdsFrom("gender"))


def no_labels() -> ImageSet:
    return read_plain(pl.DataFrame({"id": ["1"]}), id="id")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: no_labels().apply(LeaveOutUnlabelled()),
         "images (data frame) has no labels; combine it with a set that has some"),
        (lambda: plain(("1", None)).apply(LeaveOutUnlabelled()),
         "images (data frame): no image is left where images without a label are left out"),
        (lambda: plain(("1", "image_id")).label_table(wide=True),
         "a label is named 'image_id', as the column of ids; write the long table"),
        (lambda: no_labels().column("g"),
         "images (data frame) has no column 'g'; expected one of none, since there are no columns"),
        (lambda: plain(("1", "man")).apply(CropBoxes(frozenset({"man"}))),
         "images (data frame) has no boxes, or no widths and heights of its images"),
        (lambda: CropBoxes(frozenset({"man"}), margin=-1),
         "labels are ['man'], margin is -1 and pixels 0; expected labels, and 0 or more"),
        (lambda: CropBoxes(frozenset()),
         "labels are [], margin is 0 and pixels 0; expected labels, and 0 or more"),
        (lambda: synset_text("dress"),
         "'dress' is no synset; expected a name such as 'dress.n.01'"),
        (lambda: synset_text(".n.01"),
         "'.n.01' is no synset; expected a name such as 'dress.n.01'"),
        (lambda: synset_text("_.n.01"),
         "'_.n.01' is no synset; expected a name such as 'dress.n.01'"),
    ],
)  # fmt: skip
def test_steps_that_cannot_be(run: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        run()


def test_crops_of_persons(tmp_path: Path) -> None:
    rule = CropBoxes(frozenset({"person"}), margin=0.5, pixels=150)
    crops = coco(tmp_path).apply(hall_captions(), rule)
    assert rule.description == (
        "crops of every box of at least 150 pixels of person, with 50% of it added on each side"
    )
    assert crops.ids.tolist() == ["139#0", "139#1"]
    table = crops.image_table()
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


def test_crops_end_at_the_border_and_what_is_outside_is_counted(tmp_path: Path) -> None:
    value = json.loads(json.dumps(COCO_INSTANCES))
    boxes = [[600, 400, 100, 100], [700, 0, 5, 5], [600, 400, 200, 200], [0, 0, 1, 1]]
    for one, box in zip(value["annotations"], boxes, strict=False):
        one |= {"bbox": box, "category_id": 25, "image_id": 25}
    images = read_coco_instances(write_json(tmp_path / "i.json", value))
    crops = images.apply(CropBoxes(frozenset({"giraffe"}), pixels=2))
    corners = crops.image_table().select("left", "top", "right", "bottom").rows()
    assert corners == [("600", "400", "640", "480")]
    assert crops.steps[-1].counts == {
        "boxes": 4, "boxes_too_small": 1, "boxes_outside": 1, "boxes_of_the_same_corners": 1,
        "images_without_crop": 3,
    }  # fmt: skip
    with pytest.raises(InputError, match="leaves no box for crops of every box of at least"):
        images.apply(CropBoxes(frozenset({"giraffe"}), pixels=10**6))


def test_tables_are_written_with_their_provenance(tmp_path: Path) -> None:
    images = coco(tmp_path).apply(hall_captions(), LeaveOutUnlabelled())
    paths = to_tables(images, tmp_path / "a" / "b")
    assert [path.name for path in paths] == ["images.parquet", "labels.parquet", "provenance.json"]
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(p.name for p in paths)
    items = load_items(ItemSource(paths[0], "image_id", ("gender",)))
    assert items.ids.tolist() == images.ids.tolist()
    assert items.columns["gender"].tolist() == ["woman", "man", None]
    assert pl.read_parquet(paths[1]).rows() == images.label_table().rows()
    written = json.loads(paths[2].read_text("utf-8"))
    assert written == json.loads(json.dumps(provenance(images)))
    assert [one["name"] for one in written["steps"]] == ["combined", "gender", "unlabelled"]
    assert written["images"] == 3


def test_wide_labels_and_sets_without_labels(tmp_path: Path) -> None:
    _, labels, _ = to_tables(coco(tmp_path), tmp_path / "wide", wide=True)
    frame = pl.read_parquet(labels)
    assert frame.columns == ["image_id", "chair", "giraffe", "person"]
    assert frame.row(0) == ("139", 1, 0, 1)
    assert frame.row(2) == ("7", 0, 0, 0)
    paths = to_tables(no_labels(), tmp_path / "none")
    assert [path.name for path in paths] == ["images.parquet", "provenance.json"]


def test_the_same_set_has_the_same_bytes(tmp_path: Path) -> None:
    images = coco(tmp_path)
    one, other = (to_tables(images, tmp_path / name) for name in ("one", "other"))
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in other]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dress.n.01", "dress"),
        ("hot_dog.n.02", "hot dog"),
        ("st._bernard.n.01", "st. bernard"),
        ("ex-husband.n.01", "ex-husband"),
        ("quick.a.01", "quick"),
    ],
)
def test_synsets_as_words(name: str, text: str) -> None:
    assert synset_text(name) == text


def test_texts_of_several_synsets_show() -> None:
    assert synset_texts(["dame.n.02", "man.n.01", "dame.n.01"]) == {
        "dame": ("dame.n.01", "dame.n.02"),
        "man": ("man.n.01",),
    }
