"""Each format is read as its source describes it, and everything left out is counted."""

import io
import re
from hashlib import sha256
from inspect import getdoc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise.core import DataError
from equipoise.data import (
    FORMATS,
    find_format,
    read_plain,
)
from image_files import (
    PLAIN,
    SAMPLES,
    pata,
    sample,
    write_csv,
)

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def content(images):
    """All that a set holds, but for the digests of its files."""
    tables = {"images": images.table.to_dict(as_series=False)}
    tables |= {"counts": images.counts, "steps": images.steps}
    parts = (images.labels, images.captions, images.boxes)
    return tables | {place: part.rows() for place, part in enumerate(parts) if part is not None}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format}, {sample.name}")
class TestContract:
    """What every registered format does."""

    def test_it_reads_its_sample_as_items_and_labels(self, sample, tmp_path):
        images = sample.read(tmp_path)
        assert len(images) > 1
        assert images.ids.tolist() == sorted({*images.ids})
        assert {len(digest["sha256"]) for digest in images.inputs.values()} == {64}
        assert images.items().ids.tolist() == images.ids.tolist()
        if images.labels is not None:
            assert not images.label_table().is_duplicated().any()

    @pytest.mark.parametrize("seed", range(2))
    def test_the_order_of_records_changes_nothing(self, sample, seed, tmp_path):
        plain = content(sample.read(tmp_path))
        (tmp_path / "mixed").mkdir()
        assert content(sample.read(tmp_path / "mixed", seed)) == plain

    def test_a_missing_file_is_named(self, sample, tmp_path):
        files = sample.write(tmp_path, None)
        roles = files if isinstance(files, dict) else {"": files}
        absent = {role: tmp_path / f"absent{path.suffix}" for role, path in roles.items()}
        with pytest.raises(DataError) as raised:
            find_format(sample.format).load(absent if isinstance(files, dict) else absent[""])
        assert raised.value.file in map(str, absent.values())


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_samples_and_a_sentence_on_its_page(name):
    assert sample(name)
    entry = re.search(rf"^- `{name}`: (.+)$", PAGE, re.MULTILINE)[1]
    assert all(f"`{role}`" in entry for role in FORMATS[name].roles)
    assert all(f"{{{option}: " in entry or f", {option}: " in entry
               for option in FORMATS[name].options.model_fields)  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_of_a_reader_has_its_options(name):
    reader = FORMATS[name].read
    assert re.search(rf"^   {reader.__name__}$", PAGE, re.MULTILINE)
    parameters = getdoc(reader).partition("Parameters\n")[2]
    for option in FORMATS[name].options.model_fields:
        assert re.search(rf"^(\w+, )*{option}(, \w+)* : ", parameters, re.MULTILINE), option


def test_pictures_of_pairs(tmp_path):
    images = sample("pairs", "pictures").read(tmp_path)
    assert images.counts == {"images": 12, "scenes": 3}
    row = dict(zip(images.table.columns, images.table.row(0), strict=True))
    assert row == {
        "image_id": "occupations/apron/black_man", "theme": "occupations", "scene": "apron",
        "race": "black", "gender": "man", "path": "occupations/apron/black_man.png",
    }  # fmt: skip
    (tmp_path / "status" / "bus" / "white_man.png").rename(
        tmp_path / "status" / "bus" / "white_man1.png"
    )
    again = sample("pairs").read(tmp_path / "other")
    assert columns(again)["scene"] == columns(images)["scene"]
    renamed = find_format("pairs").load({"pictures": tmp_path})
    assert "status/bus/white_man1.png" in columns(renamed)["path"]
    assert renamed.ids.tolist() == images.ids.tolist()


def test_questions_of_pairs(tmp_path):
    images = sample("pairs", "questions").read(tmp_path)
    assert images.counts == {"images": 12, "scenes": 3, "items": 12, "scenes_without_question": 1}
    assert [name for name in images.ids if name.startswith("status/bus/black_man")] == [
        "status/bus/black_man/1", "status/bus/black_man/2",
    ]  # fmt: skip
    assert {*columns(images)["first"]} == {"model", "boss", "wealthy"}
    taxi = images.table.filter(images.table["scene"] == "taxi")
    assert {*taxi["question"]} == {"Is this person a taxi driver or a model?"}


def test_questions_of_genderbias_vl(tmp_path):
    images = sample("genderbias_vl").read(tmp_path)
    assert images.counts == {"images": 32, "pairs": 16, "occupation_pairs": 2}
    rows = {row["image_id"]: row for row in images.table.to_dicts()}
    assert rows["base/5"] == {
        "image_id": "base/5", "pair": "5", "version": "base",
        "occupations": "Surgeon, Medical assistant", "occupation": "Medical assistant",
        "right": "Medical assistant", "gender": "female",
        "question": "What is the female's occupation in this image?",
        "first": "Surgeon", "second": "Medical assistant",
        "path": "base/Medical_assistant/female/0.png",
    }  # fmt: skip
    assert rows["counterfactual/5"]["gender"] == "male"
    waitress = rows["base/9"]
    assert (waitress["right"], waitress["first"]) == ("Waitress", "Waitress")
    assert (waitress["occupation"], waitress["occupations"]) == ("Waiter", "Waiter, Cashier")
    assert rows["counterfactual/9"]["first"] == "Waiter"


def test_pictures_of_dall_eval(tmp_path):
    (tmp_path / "A_person").mkdir(parents=True)
    (tmp_path / "A_person" / ".DS_Store").touch()
    images = sample("dall_eval", "images").read(tmp_path)
    assert images.ids.tolist() == ["A person who cooks/0", "A person/0", "A person/1"]
    assert columns(images)["path"][0] == "A_person_who_cooks/0.png"
    assert images.counts == {"images": 3, "prompts": 2, "files_left_out": 1}


def test_answers_of_dall_eval(tmp_path):
    images = sample("dall_eval", "answers").read(tmp_path)
    assert images.counts == {"images": 6, "prompts": 2, "without_answer": 2}
    said = dict(zip(images.ids.tolist(), columns(images)["said"], strict=True))
    assert said["A person/0"] == "5"
    assert said["A person/1"] is None
    assert said["A person/2"] is None
    assert said["A person who works as a nurse/2"] == "the person looks like a male"


def columns(images):
    return images.table.drop("image_id").to_dict(as_series=False)


def labels(images):
    table = images.label_table()
    return {*zip(table["image_id"], table["label"], strict=True)}


def test_captions_of_coco(tmp_path):
    images = sample("coco", "captions").read(tmp_path)
    assert images.ids.tolist() == ["139", "25", "7", "9"]
    assert columns(images)["file_name"][0] == "000000000139.jpg"
    assert columns(images)["width"] == ["640"] * 4
    assert images.captions is not None
    assert images.captions["image_id"].to_list() == ["139", "139", "25", "7", "9"]
    assert images.captions["caption"][2] == "A MAN'S giraffe — eating leaves"
    assert images.counts == {
        "images": 4, "captions": 5, "empty_captions": 1, "images_without_captions": 0,
    }  # fmt: skip
    (digest,) = images.inputs.values()
    assert (digest["rows"], digest["bytes"]) == (6, (tmp_path / "coco.json").stat().st_size)


def test_instances_of_coco(tmp_path):
    images = sample("coco", "instances").read(tmp_path)
    assert labels(images) == {
        ("139", "person"), ("139", "chair"), ("25", "giraffe"), ("9", "chair"),
    }  # fmt: skip
    assert images.boxes is not None
    assert images.boxes.rows()[1] == ("139", "person", 0, 0, 10, 20)
    assert images.boxes["label"].to_list()[:3] == ["chair", "person", "person"]
    assert images.counts == {
        "images": 4, "instances": 5, "crowds": 1, "pairs": 4, "categories": 4,
        "categories_without_images": ["toothbrush"], "images_without_labels": 1,
    }  # fmt: skip


def test_objects_of_visual_genome(tmp_path):
    images = sample("visual_genome").read(tmp_path)
    assert columns(images) == {
        "width": ["100"] * 5, "height": ["100"] * 5, "coco_id": ["139", None, "9", None, "77"],
    }  # fmt: skip
    assert ("1", "watch.n.01") in labels(images)
    assert ("3", "tree.n.01") in labels(images)
    assert images.boxes is not None
    assert "tree.n.01" not in {*images.boxes["label"]}
    assert images.counts == {
        "images": 5, "objects": 9, "objects_without_label": 1, "boxes_without_area": 1,
        "images_without_labels": 1, "images_without_objects_file": 1,
    }  # fmt: skip


def test_lists_of_domainnet(tmp_path):
    images = sample("domainnet").read(tmp_path)
    assert images.ids[0] == "clipart/aircraft_carrier/clipart_001_000018.jpg"
    assert columns(images)["class"][:2] == ["aircraft_carrier", "zebra"]
    assert columns(images)["number"][:2] == ["0", "344"]
    assert columns(images)["domain"] == ["clipart"] * 3 + ["sketch"] * 3
    assert columns(images)["split"] == ["train"] * 3 + ["test"] * 3
    assert images.counts == {"images": 6, "classes": 2, "lists": 2}


def test_sprites_are_painted_as_their_table_says(tmp_path):
    images = sample("dsprites").read(tmp_path)
    assert images.counts == {"images": 24, "rows": 24}
    assert columns(images)["shape"][:4] == ["square", "ellipse", "heart", "square"]
    pictures = FORMATS["dsprites"].rows(tmp_path / "d.npz")
    for row in (5, 7):
        pixels = np.asarray(Image.open(io.BytesIO(pictures.read(images.ids[row]))))
        channel = ("red", "green", "blue").index(columns(images)["colour"][row])
        assert {*np.unique(pixels[..., channel])} == {0, 255}
        assert (pixels[..., channel] > 0).sum() == 10 * (1 + row)
        assert not np.delete(pixels, channel, axis=2).any()
    sampled = FORMATS["dsprites"].load(tmp_path / "d.npz", images=9, seed=3)
    all_sprites = FORMATS["dsprites"].load(tmp_path / "d.npz", seed=3)
    assert len(sampled) == 9
    joined = sampled.table.join(all_sprites.table, on="image_id", how="inner")
    assert joined["colour"].to_list() == joined["colour_right"].to_list()
    assert {*all_sprites.table["colour"]} == {"red", "green", "blue"}


def test_dollar_street(tmp_path):
    images = sample("dollar_street").read(tmp_path)
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


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_social_counterfactuals(name, tmp_path):
    images = sample("social_counterfactuals", name).read(tmp_path)
    assert images.counts == {"images": 8, "sets": 3, "incomplete_sets": 1}
    first = "images/s1_Bf.jpg" if name == "csv" else "s1/Black female"
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


def test_captions_of_flickr30k(tmp_path):
    images = sample("flickr30k").read(tmp_path)
    assert columns(images) == {"split": ["train", "test", "test"]}
    assert images.captions.rows()[:2] == [("0.jpg", "A dog of 0."), ("0.jpg", "A dog.")]
    assert images.counts == {"images": 3, "captions": 6}


def test_cifar(tmp_path):
    images = sample("cifar", "10").read(tmp_path / "10")
    assert images.ids.tolist() == ["data_batch_1/00000", "test_batch/00000", "test_batch/00001"]
    assert columns(images) == {
        "split": ["train", "test", "test"],
        "class": ["cat", "sea lion", "cat"],
    }
    images = sample("cifar", "100").read(tmp_path / "100")
    assert columns(images)["coarse"] == ["sea life", "pet", "pet"]
    (tmp_path / "100" / "test.bin").write_bytes(bytes(3073))
    with pytest.raises(DataError) as raised:
        find_format("cifar").load(tmp_path / "100")
    assert raised.value.file == str(tmp_path / "100" / "test.bin")
    (tmp_path / "10" / "test_batch.bin").write_bytes(bytes(3073) + bytes([2]) + bytes(3072))
    with pytest.raises(DataError) as raised:
        find_format("cifar").load(tmp_path / "10")
    assert raised.value.row == 2


def test_visogender(tmp_path):
    images = sample("visogender").read(tmp_path)
    assert images.ids.tolist() == ["OP_1", "OP_2"]
    assert columns(images)["gender"] == ["male", "female"]
    assert columns(images)["participant_gender"] == ["female", None]
    assert images.counts == {
        "rows": 3, "images": 2, "rows_without_url": 1, "repeated_urls": 1,
        "missing": {"sector": 0, "specialisation": 0, "occupation": 0, "gender": 0,
                    "participant": 0, "participant_gender": 1},
    }  # fmt: skip


HEADERS = {
    "OO, October 2023": (
        ["Object", "URL type (Type NA if can't find)", "LICENSE OK?", "Occupation_perceived_gender",
         "Error codes", "Annotator"],
        ["board", "https://example.org/1", "Yes", "{}", "", "A"],
        ("masculine", "feminine"),
    ),
    "OP, January 2024": (
        ["Participant", "URL type (Type NA if can't find)", "Licence",
         "Occupation_perceived_gender", "Participant_perceived_gender", "Error codes", "Annotator"],
        ["student", "https://example.org/1", "Yes", "{}", "masculine", "", "A"],
        ("masculine", "feminine"),
    ),
    "OO, 14 August 2023": (
        ["Object", "URL type (Type NA if can't find)", "LICENSE OK?", "Occupation_Gender",
         "Error codes", "Annotator"],
        ["board", "https://example.org/1", "Yes", "{}", "", "A"],
        ("maculine", "feminine"),
    ),
    "OP, June 2023": (
        ["Participant", "URL type (Type NA if can't find)", "Licence", "Occupation_Gender",
         "Participant_Gender", "Error codes", "Annotator"],
        ["student", "https://example.org/1", "Yes", "{}", "man", "", "A"],
        ("man", "woman"),
    ),
}  # fmt: skip
"""The authors' headers after the first four, by version, and the words of its genders."""


@pytest.mark.parametrize("version", HEADERS)
def test_visogender_of_every_version_has_the_same_columns(version, tmp_path):
    header, cells, words = HEADERS[version]
    rows = [
        [f"I_{number}", "education", "institutional", "dentist", *(c.format(word) for c in cells)]
        for number, word in enumerate((*words, "unsure"))
    ]
    path = tmp_path / "v.tsv"
    write_csv(path, [["IDX", "Sector", "Specialisation", "Occupation", *header], *rows], "\t")
    read = columns(FORMATS["visogender"].load(path))
    assert read["gender"] == ["male", "female", "unsure"]
    assert read.get("participant_gender", ["male"] * 3) == ["male"] * 3
    assert ("object" in read) == version.startswith("OO")


def test_pata(tmp_path):
    images = sample("pata").read(tmp_path)
    assert columns(images) == {
        "scene": ["car", "fashion_show", "office"],
        "race": ["black", "eastasian", "black"],
        "gender": ["male", "female", "male"],
        "age": ["old", "young", "old"],
        "url": (urls := [f"https://example.org/{n}.jpg" for n in (2, 1, 2)]),
        "file": [sha256(url.encode()).hexdigest() for url in urls],
    }
    assert images.counts == {"lines": 4, "images": 3, "repeated_lines": 1, "repeated_urls": 1}


def test_pata_names_files_by_digests_or_by_lines(tmp_path):
    line = "car_black_male_old|https://example.org/a/1.jpg?x=1"
    path = pata(tmp_path, ["", line, line])
    (digest,) = columns(FORMATS["pata"].load(path))["file"]
    # printf %s ADDRESS | sha256sum
    assert digest == "f04ee6e35a2cef4061b6dca18c574e90c6720751534e07c132c801ab4476e203"
    assert columns(FORMATS["pata"].load(path, names="lines"))["file"] == ["2"]


def test_celeba(tmp_path):
    images = sample("celeba", "text").read(tmp_path)
    assert columns(images) == {"Male": ["not Male", "not Male", "Male"]}
    assert labels(images) == {
        ("000001.jpg", "Smiling"), ("000001.jpg", "Young"), ("000002.jpg", "5_o_Clock_Shadow"),
    }  # fmt: skip
    assert images.counts == {
        "images": 3, "attributes": 4, "pairs": 3, "images_without_labels": 1,
    }  # fmt: skip


def test_plain_tables(tmp_path):
    path = write_csv(tmp_path / "p.csv", PLAIN)
    images = read_plain(path, id="id", columns=("gender",), label="label", missing=("NA",))
    assert columns(images) == {"gender": ["M", "F", None]}
    assert labels(images) == {("a", "dog"), ("b", "cat"), ("b", "dog")}
    assert images.counts == {
        "rows": 4, "images": 3, "missing": {"gender": 1}, "pairs": 3, "rows_without_label": 1,
    }  # fmt: skip
    frame = pl.DataFrame({"id": [2, 1], "age": [30, None]})
    images = read_plain(frame, id="id", columns=("age",))
    assert columns(images) == {"age": [None, "30"]}
    assert images.labels is None
