"""Each format is read as its source describes it, and everything left out is counted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError
from equipoise.data import (
    CollapseRows,
    DollarStreetColumns,
    ImageSet,
    PataCaption,
    read_celeba,
    read_coco_instances,
    read_dollar_street,
    read_fairface,
    read_huggingface,
    read_pata_captions,
    read_plain,
    read_visogender,
    read_visual_genome,
    read_visual_genome_images,
)
from image_files import (
    CELEBA,
    COCO_INSTANCES,
    DOLLAR_STREET,
    FORMATS,
    VG_IMAGES,
    VG_OBJECTS,
    Format,
    celeba_csv,
    hugging_face,
    write_csv,
    write_json,
)

BY_NAME = {one.name: one for one in FORMATS}


def read(name: str, folder: Path) -> ImageSet:
    return BY_NAME[name].read(folder, None)


def columns(images: ImageSet) -> dict[str, list[str | None]]:
    return {name: column.values.tolist() for name, column in images.columns.items()}


def labels(images: ImageSet) -> set[tuple[str, str]]:
    table = images.label_table()
    return {*zip(table["image_id"], table["label"], strict=True)}


def test_captions_of_coco(tmp_path: Path) -> None:
    images = read("COCO captions", tmp_path)
    assert images.ids.tolist() == ["139", "25", "7", "9"]
    assert columns(images)["file_name"][0] == "000000000139.jpg"
    assert columns(images)["width"] == ["640"] * 4
    assert images.captions is not None
    assert images.captions.image.tolist() == [0, 0, 1, 2, 3]
    assert images.captions.texts[2] == "A MAN'S giraffe — eating leaves"
    assert images.counts == {
        "images": 4, "captions": 5, "empty_captions": 1, "images_without_captions": 0,
    }  # fmt: skip
    (digest,) = images.inputs.values()
    assert (digest["rows"], digest["bytes"]) == (6, (tmp_path / "coco.json").stat().st_size)


def test_instances_of_coco(tmp_path: Path) -> None:
    images = read("COCO instances", tmp_path)
    assert labels(images) == {
        ("139", "person"), ("139", "chair"), ("25", "giraffe"), ("9", "chair"),
    }  # fmt: skip
    assert images.boxes is not None
    assert images.boxes.corners[1].tolist() == [0, 0, 10, 20]
    assert images.boxes.label.values.tolist()[:3] == ["chair", "person", "person"]
    assert images.counts == {
        "images": 4, "instances": 5, "crowds": 1, "pairs": 4, "categories": 4,
        "categories_without_images": ["toothbrush"], "images_without_labels": 1,
    }  # fmt: skip


def test_hugging_face_without_a_column_of_ids(tmp_path: Path) -> None:
    images = read_huggingface(hugging_face(tmp_path / "h.arrow"))
    assert images.ids.tolist() == ["0", "1", "2"]
    assert columns(images)["gender"] == ["Male", "Female", "Male"]
    assert columns(images)["race"] == ["East Asian", "Latino_Hispanic", None]
    assert images.counts["missing"]["race"] == 1


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"label": [7]}, {}, r"column 'label', row 1: the number 7 is no class. Expected: 0 to 1"),
        ({"id": [""]}, {"id": "id"}, r"column 'id', row 1: 1 empty id"),
        ({}, {"id": "name"}, r"column 'name': "),
        ({}, {"image": "photo"}, r"column 'photo': "),
    ],
)
def test_what_is_wrong_in_a_table_of_hugging_face(
    tmp_path: Path, columns: dict[str, Any], given: dict[str, str], said: str
) -> None:
    features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"image": [b"x"], **columns}).replace_schema_metadata(told)
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=said):
        read_huggingface(tmp_path / "t.parquet", **given)


def test_coco_without_sizes_or_file_names(tmp_path: Path) -> None:
    bare = {**COCO_INSTANCES, "images": [{"id": i} for i in ("139", 25.0, 9, 7)]}
    assert columns(read_coco_instances(write_json(tmp_path / "c.json", bare))) == {}


def test_objects_of_visual_genome(tmp_path: Path) -> None:
    images = read("Visual Genome", tmp_path)
    assert columns(images) == {
        "width": ["100"] * 5, "height": ["100"] * 5, "coco_id": ["139", None, "9", None, "77"],
    }  # fmt: skip
    assert ("1", "watch.n.01") in labels(images)
    assert ("3", "tree.n.01") in labels(images)
    assert images.boxes is not None
    assert "tree.n.01" not in {*images.boxes.label.values}
    assert images.counts == {
        "images": 5, "objects": 9, "objects_without_label": 1, "boxes_without_area": 1,
        "images_without_labels": 1, "images_without_objects_file": 1,
    }  # fmt: skip


def test_names_of_visual_genome_and_its_first_version(tmp_path: Path) -> None:
    old = [{"id": one["image_id"], "objects": one["objects"]} for one in VG_OBJECTS]
    path = write_json(tmp_path / "objects.json", old)
    assert ("1", "clock") in labels(read_visual_genome(path, labels="names"))
    for one in old[0]["objects"]:
        del one["synsets"]
    try:
        images = read_visual_genome(write_json(path, old))
        assert images.counts["objects_without_label"] == 4
    finally:
        for one, synsets in zip(
            old[0]["objects"],
            (["man.n.01"], ["woman.n.01"], ["clock.n.01", "watch.n.01"]),
            strict=True,
        ):
            one["synsets"] = synsets


def test_images_of_visual_genome(tmp_path: Path) -> None:
    images = read_visual_genome_images(write_json(tmp_path / "image_data.json", VG_IMAGES))
    assert images.counts == {"images": 6, "in_coco": 3}
    assert columns(images)["coco_id"] == ["139", None, "9", None, "77", None]


def test_fairface(tmp_path: Path) -> None:
    images = read("FairFace", tmp_path)
    assert images.ids.tolist() == ["val/1.jpg", "val/10.jpg", "val/2.jpg"]
    assert columns(images)["race"] == ["East Asian", None, "Latino_Hispanic"]
    assert images.labels is None
    assert images.counts["missing"] == {"age": 0, "gender": 0, "race": 1, "service_test": 0}


def test_the_real_sample_of_fairface(shared_dir: Path) -> None:
    path = shared_dir / "data" / "fairface3k" / "labels.csv"
    images = read_fairface(path, id="image_id")
    frame = pl.read_csv(path)
    assert images.counts["images"] == len(frame)
    genders = dict(zip(images.ids, columns(images)["gender"], strict=True))
    assert genders == {str(one): text for one, text in frame.select("image_id", "gender").rows()}


def test_dollar_street(tmp_path: Path) -> None:
    images = read("Dollar Street", tmp_path)
    assert columns(images) == {
        "country": ["Lebanon", "Norway", "Burundi", "Atlantis"],
        "region": ["Asia", "Europe", "Africa", None],
        "income": ["60", "4000.5", "59.9", None],
        "file": ["assets/a.jpg", "assets/b.jpg", "assets/c.jpg", "assets/d.jpg"],
    }
    assert labels(images) == {
        ("5d4b", "hand back"), ("5d4b", "hands"),
        ("5d4c", "bed"), ("5d4c", "pillow"), ("5d4c", "bedrooms"),
    }  # fmt: skip
    assert images.counts == {
        "rows": 5, "images": 4, "pairs": 5, "rows_without_labels": 2,
        "missing": {"country": 0, "region": 1, "income": 1, "file": 0},
    }  # fmt: skip
    (step,) = images.steps
    assert step.counts == {"rows_collapsed": 1}
    assert step.description == (
        "an image listed in several rows (the same id) is one image with all labels"
    )


def test_rows_of_one_file_collapse_to_the_first_id(tmp_path: Path) -> None:
    rows = [list(row) for row in DOLLAR_STREET]
    rows[2][0] = "9"
    images = read_dollar_street(write_csv(tmp_path / "d.csv", rows), collapse=CollapseRows("file"))
    assert images.ids.tolist() == ["5d4b", "5d4c", "5d4d", "5d4e"]
    rows[2][0] = "1"
    images = read_dollar_street(write_csv(tmp_path / "d.csv", rows), collapse=CollapseRows("file"))
    assert images.ids.tolist() == ["1", "5d4b", "5d4d", "5d4e"]
    assert ("1", "bedrooms") in labels(images)


def test_columns_of_dollar_street_can_have_other_names(tmp_path: Path) -> None:
    named = DollarStreetColumns("i", "c", "r", "m", "l", "f")
    path = write_csv(tmp_path / "d.csv", [[*"icrmlf"], ["1", "Chad", "af", "5", "bed", "a.jpg"]])
    assert columns(read_dollar_street(path, columns=named))["country"] == ["Chad"]


@pytest.mark.parametrize(
    "name", ["SocialCounterfactuals", "SocialCounterfactuals, Parquet"], ids=["csv", "parquet"]
)
def test_social_counterfactuals(name: str, tmp_path: Path) -> None:
    images = read(name, tmp_path)
    assert images.counts == {"images": 8, "sets": 3, "incomplete_sets": 1}
    first = "images/s1_Bf.jpg" if name == "SocialCounterfactuals" else "s1/Black female"
    assert images.ids[0] == first
    assert {n: values[0] for n, values in columns(images).items()} == {
        "set": "s1",
        "subject": "web developer",
        "caption": "A photo of a Black female Web Developer",
        "attributes": "race × gender",
        "gender": "female",
        "race": "Black",
        "physical": None,
    }


def test_visogender(tmp_path: Path) -> None:
    images = read("VisoGender", tmp_path)
    assert images.ids.tolist() == ["OP_1", "OP_2"]
    assert columns(images)["participant_gender"] == ["woman", None]
    assert images.counts == {
        "rows": 3, "images": 2, "rows_without_url": 1, "repeated_urls": 1,
        "missing": {"sector": 0, "specialisation": 0, "occupation": 0, "gender": 0,
                    "participant": 0, "participant_gender": 1},
    }  # fmt: skip


def test_visogender_of_one_person(tmp_path: Path) -> None:
    header = ["IDX", "Sector", "Specialisation", "Occupation", "Object",
              "URL type (Type NA if can't find)", "LICENSE OK?", "Occupation_Gender"]  # fmt: skip
    row = ["OO_1", "education", "institutional", "teacher", "board", "https://x", "Yes", "man"]
    images = read_visogender(write_csv(tmp_path / "o.tsv", [header, row], "\t"))
    assert columns(images)["object"] == ["board"]
    assert "participant" not in images.columns


def test_pata(tmp_path: Path) -> None:
    images = read("PATA", tmp_path)
    assert columns(images) == {
        "scene": ["car", "fashion_show", "office"],
        "race": ["black", "eastasian", "black"],
        "gender": ["male", "female", "male"],
        "age": ["old", "young", "old"],
        "url": [f"https://example.org/{n}.jpg" for n in (2, 1, 2)],
    }
    assert images.counts == {"lines": 4, "images": 3, "repeated_lines": 1, "repeated_urls": 1}


def test_captions_of_pata(tmp_path: Path) -> None:
    scene = {
        "long": "photo of {age}, {race} {gender} working", "short": "office",
        "pos": {"races": ["photo of a millionaire"], "gender": [], "age": []},
        "neg": {"races": [], "gender": ["photo of an under-achiever"], "age": []},
    }  # fmt: skip
    path = write_json(tmp_path / "captions.json", [scene])
    assert read_pata_captions(path) == (
        PataCaption("office", "gender", "negative", "photo of an under-achiever"),
        PataCaption("office", "race", "positive", "photo of a millionaire"),
    )


def test_celeba(tmp_path: Path) -> None:
    images = read("CelebA", tmp_path)
    assert columns(images) == {"Male": ["not Male", "not Male", "Male"]}
    assert labels(images) == {
        ("000001.jpg", "Smiling"), ("000001.jpg", "Young"), ("000002.jpg", "5_o_Clock_Shadow"),
    }  # fmt: skip
    assert images.counts == {
        "images": 3, "attributes": 4, "pairs": 3, "images_without_labels": 1,
    }  # fmt: skip


def test_celeba_as_a_csv_is_the_same(tmp_path: Path) -> None:
    images = read("CelebA", tmp_path)
    same = read_celeba(celeba_csv(tmp_path, CELEBA))
    for found in (columns, labels):
        assert found(same) == found(images)
    assert same.counts == images.counts
    renamed = (tmp_path / "list_attr_celeba.csv").rename(tmp_path / "attributes.txt")
    assert columns(read_celeba(renamed)) == columns(images)


# The first lines of both files as they are downloaded; the official one ends its second line so.
CELEBA_NAMES = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose "
    "Black_Hair Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee "
    "Gray_Hair Heavy_Makeup High_Cheekbones Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard "
    "Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks Sideburns Smiling Straight_Hair "
    "Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young"
)
CELEBA_ROW = (
    "000001.jpg -1  1  1 -1 -1 -1 -1 -1 -1 -1 -1  1 -1 -1 -1 -1 -1 -1  1  1 -1  1 -1 -1  1 -1 -1  "
    "1 -1 -1 -1  1  1 -1  1 -1  1 -1 -1  1"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list_attr_celeba.txt", f"1\n{CELEBA_NAMES} \n{CELEBA_ROW}\n"),
        (
            "list_attr_celeba.csv",
            f"image_id,{','.join(CELEBA_NAMES.split())}\n{','.join(CELEBA_ROW.split())}\n",
        ),
    ],
)
def test_celeba_as_it_is_downloaded(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    images = read_celeba(tmp_path / name)
    assert columns(images) == {"Male": ["not Male"]}
    assert {label for _, label in labels(images)} == {
        "Arched_Eyebrows", "Attractive", "Brown_Hair", "Heavy_Makeup", "High_Cheekbones",
        "Mouth_Slightly_Open", "No_Beard", "Pointy_Nose", "Smiling", "Straight_Hair",
        "Wearing_Earrings", "Wearing_Lipstick", "Young",
    }  # fmt: skip
    assert images.counts["attributes"] == 40


def test_attributes_of_celeba_are_chosen(tmp_path: Path) -> None:
    read("CelebA", tmp_path)
    path = tmp_path / "list_attr_celeba.txt"
    images = read_celeba(path, attributes={"Young": ("young", "old")})
    assert columns(images) == {"Young": ["young", "old", "old"]}
    assert ("000003.jpg", "Male") in labels(images)


def test_plain_tables(tmp_path: Path) -> None:
    images = read("plain table", tmp_path)
    assert columns(images) == {"gender": ["M", "F", None]}
    assert labels(images) == {("a", "dog"), ("b", "cat"), ("b", "dog")}
    assert images.counts == {
        "rows": 4, "images": 3, "missing": {"gender": 1}, "pairs": 3, "rows_without_label": 1,
    }  # fmt: skip
    frame = pl.DataFrame({"id": [2, 1], "age": [30, None]})
    images = read_plain(frame, id="id", columns=("age",))
    assert columns(images) == {"age": [None, "30"]}
    assert images.labels is None


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_every_set_goes_on_as_items_and_matrix(one: Format, tmp_path: Path) -> None:
    images = one.read(tmp_path, None)
    items = images.items()
    assert items.ids.tolist() == images.ids.tolist()
    assert items.inputs == images.inputs
    for name, column in items.columns.items():
        assert column.tolist() == images.columns[name].values.tolist()
    if images.labels is not None:
        matrix = images.label_matrix()
        assert matrix.counts["items_without_row"] == 0
        assert int(matrix.take(matrix.names).sum()) == len(images.labels.image)
        for name in matrix.names:
            assert {*np.unique(matrix.labels(name))} <= {0, 1}
