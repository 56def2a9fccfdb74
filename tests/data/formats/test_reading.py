"""Each format is read as its source describes it, and everything left out is counted."""

from pathlib import Path

import polars as pl
import pytest

from equipoise.data import (
    CollapseRows,
    ImageSet,
    PataCaption,
    read_celeba,
    read_dollar_street,
    read_huggingface,
    read_pata_captions,
    read_plain,
)
from image_files import (
    CELEBA,
    DOLLAR_STREET,
    FORMATS,
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


def test_fairface(tmp_path: Path) -> None:
    images = read("FairFace", tmp_path)
    assert images.ids.tolist() == ["val/1.jpg", "val/10.jpg", "val/2.jpg"]
    assert columns(images)["race"] == ["East Asian", None, "Latino_Hispanic"]
    assert images.labels is None
    assert images.counts["missing"] == {"age": 0, "gender": 0, "race": 1, "service_test": 0}


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
