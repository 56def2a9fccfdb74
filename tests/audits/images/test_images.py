"""From a section of images to items, labels and pictures, and the page about its keys."""

import io
import json
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image
from pydantic import ValidationError

from equipoise.audits.images import open_images
from equipoise.config.files import parse_yaml
from equipoise.config.images import RULES, CropConfig, PicturesConfig, SampleConfig
from equipoise.core import ConfigError, DataError
from equipoise.data import load_items
from image_files import (
    COCO_CAPTIONS,
    COCO_INSTANCES,
    VG_IMAGES,
    VG_OBJECTS,
    VISOGENDER,
    pata,
    write_csv,
    write_json,
)
from yaml_keys import page_keys, yaml_blocks

COCO = {
    "format": "coco",
    "files": {"captions": "captions.json", "instances": "instances.json"},
    "root": "val2017",
}


def png(shade, size=(4, 3)):
    sink = io.BytesIO()
    Image.new("RGB", size, (shade, shade, shade)).save(sink, "PNG")
    return sink.getvalue()


def place_files(root, names):
    """Write a picture under each name, each of another shade."""
    for shade, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(shade))


def section(**values):
    return PicturesConfig.model_validate(values)


def frame(images):
    return images.table.frame


@pytest.fixture
def coco(tmp_path):
    write_json(tmp_path / "captions.json", COCO_CAPTIONS)
    write_json(tmp_path / "instances.json", COCO_INSTANCES)
    (tmp_path / "val2017").mkdir()
    return tmp_path


def test_a_plain_table_stays_unchanged_and_its_path_column_locates_files(tmp_path):
    write_csv(tmp_path / "t.csv", [["id", "file"], ["b", "b.png"], ["a", "in/a.png"]])
    place_files(tmp_path / "photos", ["in/a.png", "b.png"])
    config = section(table="t.csv", id="id", path="file", root="photos")
    images = open_images(config, tmp_path)
    assert images.table is None
    assert (images.labels, images.inputs, images.counts, images.steps) == (None, {}, {}, ())
    assert images.pictures.ids.tolist() == ["a", "b"]
    assert [images.pictures.read(place) for place in (0, 1)] == [png(0), png(1)]


def test_crops_of_a_table_are_columns_of_whole_pixels(tmp_path):
    crop = {side: side[0] for side in ("left", "top", "right", "bottom")}
    header = ["id", "file", "l", "t", "r", "b"]
    config = section(table="t.csv", id="id", path="file", crop=crop)
    write_csv(tmp_path / "t.csv", [header, ["x", "a.png", "1", "0", "3", "2"]])
    pictures = open_images(config, tmp_path).pictures
    assert pictures.crops.tolist() == [[1, 0, 3, 2]]
    write_csv(tmp_path / "t.csv", [header, ["x", "a.png", "1", "0", "3.5", "2"]])
    with pytest.raises(DataError, match=r"column 'r', row 1: the cell is '3.5'. Expected: a whole"):
        _ = open_images(config, tmp_path).pictures


def test_rules_make_columns_of_a_table(tmp_path):
    rows = [["name", "age", "sex"], ["b", "7", "F"], ["a", "40", "M"], ["c", "", "F"]]
    write_csv(tmp_path / "t.csv", rows)
    bands = {"rule": "band_groups", "attribute": "life", "column": "age", "bounds": [18],
             "names": ["young", "old"]}  # fmt: skip
    config = section(table="t.csv", id="name", rules=[bands])
    images = open_images(config, tmp_path, columns=("life", "sex"))
    assert images.id == "name"
    items = load_items(images.source(tmp_path, ("life", "sex")))
    assert items.ids.tolist() == ["a", "b", "c"]
    assert items.columns["life"].tolist() == ["old", "young", None]
    assert items.columns["sex"].tolist() == ["M", "F", "F"]
    assert [*images.inputs] == [str(tmp_path / "t.csv")]
    assert images.counts["steps"][0]["counts"]["groups"] == {"old": 1, "young": 1}
    assert len(images.steps) == 1


def test_a_folder_names_images_by_path_and_groups_by_its_folders(tmp_path):
    place_files(tmp_path / "net", ["sketch/dog/1.png", "real/dog/1.png", "real/cat/2.png"])
    (tmp_path / "net" / "real" / "list.txt").write_text("no picture")
    images = open_images(
        section(folder="net", levels=["domain", "class"]), tmp_path, columns=("domain",)
    )
    assert frame(images).rows() == [
        ("real/cat/2.png", "real", "cat"),
        ("real/dog/1.png", "real", "dog"),
        ("sketch/dog/1.png", "sketch", "dog"),
    ]
    assert images.counts["read"] == {"images": 3, "files_left_out": 1}
    assert images.pictures.read(2) == png(0)
    with pytest.raises(DataError, match=r"the image 'real/cat/2.png' is in 2 folders"):
        open_images(section(folder="net", levels=["a", "b", "c"]), tmp_path)


def test_captions_and_instances_of_coco_with_rules_in_order(coco):
    rules = [
        {"rule": "hall_captions"},
        {"rule": "hall_captions", "version": "lenient", "neutral_means": "nothing"},
        {"rule": "leave_out_labels", "labels": "person", "why": "everyone in a group is one"},
        {"rule": "leave_out_unlabelled"},
    ]
    images = open_images(section(**COCO, rules=rules), coco, columns=("gender", "gender (lenient)"))
    table = frame(images)
    assert table["image_id"].to_list() == ["139", "25", "9"]
    assert table["gender"].to_list() == [None, "man", None]
    assert table["gender (lenient)"].to_list() == ["woman", "man", None]
    assert images.labels.rows() == [("139", "chair"), ("25", "giraffe"), ("9", "chair")]
    assert {Path(name).name for name in images.inputs} == {"captions.json", "instances.json"}
    assert len(images.steps) == 5


def test_crops_of_boxes_are_pictures_of_their_own(coco):
    place_files(coco / "val2017", [f"{number:012}.jpg" for number in (25, 9, 139)])
    config = section(**COCO, rules=[{"rule": "hall_captions"}], crop={"labels": ["chair"]})
    images = open_images(config, coco, columns=("gender", "image"))
    assert frame(images)["image_id"].to_list() == ["139#0", "9#0"]
    assert frame(images)["image"].to_list() == ["139", "9"]
    assert images.pictures.crops.tolist() == [[1, 2, 31, 42], [5, 5, 10, 10]]
    assert images.pictures.read(1) == png(1)


def test_files_of_rules_are_among_the_inputs(coco):
    write_json(coco / "image_data.json", VG_IMAGES)
    (coco / "blurred.txt").write_text("7\n\n999\n")
    (coco / "classes.csv").write_text("label,class\nchair,folding chair\ngiraffe,animal\n")
    rules = [
        {"rule": "leave_out_visual_genome", "file": "image_data.json"},
        {"rule": "leave_out_images", "file": "blurred.txt", "why": "they are blurred"},
        {"rule": "class_mapping", "file": "classes.csv", "name": "wide"},
    ]
    images = open_images(section(**COCO, rules=rules), coco)
    assert frame(images)["image_id"].to_list() == ["25"]
    assert images.labels.rows() == [("25", "animal")]
    rows = {Path(name).name: record["rows"] for name, record in images.inputs.items()}
    assert rows["image_data.json"] == 3
    assert (rows["blurred.txt"], rows["classes.csv"]) == (2, 2)
    assert all(len(record["sha256"]) == 64 for record in images.inputs.values())


def test_a_rule_that_does_not_fit_the_data_is_named_by_its_place(coco):
    place = r"^data.images.rules\[0\] \(continents\): .* has no column 'country'"
    with pytest.raises(ConfigError, match=place):
        open_images(section(**COCO, rules=[{"rule": "continents"}]), coco)


def test_visual_genome_finds_its_files_by_id_in_either_folder(tmp_path):
    write_json(tmp_path / "objects.json", VG_OBJECTS)
    write_json(tmp_path / "image_data.json", VG_IMAGES)
    place_files(tmp_path / "vg", [f"VG_100K/{i}.jpg" for i in (1, 2, 3)] + ["VG_100K_2/4.jpg"])
    files = {"objects": "objects.json", "image_data": "image_data.json"}
    rules = [{"rule": "hall_boxes"}, {"rule": "hall_boxes", "size": "large boxes", "version": "V2"}]
    config = section(format="visual_genome", files=files, root="vg", rules=rules)
    images = open_images(config, tmp_path, columns=("gender (V2)",))
    assert [images.pictures.read(place) for place in range(4)] == [png(shade) for shade in range(4)]
    with pytest.raises(OSError, match=r"5.jpg"):
        images.pictures.read(4)
    place_files(tmp_path / "vg", ["again/1.png"])
    with pytest.raises(DataError, match=r"'VG_100K/1.jpg' and 'again/1.png' could both be the im"):
        _ = open_images(config, tmp_path).pictures


def test_visogender_finds_files_by_id_and_pata_by_line_or_digest(tmp_path):
    write_csv(tmp_path / "v.tsv", VISOGENDER, "\t")
    place_files(tmp_path / "viso", ["OP_1.jpeg", "OP_2.png"])
    viso = open_images(section(format="visogender", files="v.tsv", root="viso"), tmp_path)
    assert viso.pictures.ids.tolist() == ["OP_1", "OP_2"]
    assert viso.pictures.read(1) == png(1)
    # Two addresses end in the same name, which names neither file.
    lines = [
        "office_black_male_old|https://a.org/1.jpg?x=1",
        "car_white_male_old|https://b.org/1.jpg",
    ]
    table = {"format": "pata", "files": pata(tmp_path, lines).name}
    place_files(tmp_path / "lines", ["1.jpg", "2.jpeg"])
    options = {"names": "lines"}
    by_line = open_images(section(**table, root="lines", options=options), tmp_path).pictures
    assert [by_line.read(place) for place in range(2)] == [png(1), png(0)]
    digests = [sha256(line.partition("|")[2].encode()).hexdigest() for line in lines]
    place_files(tmp_path / "digests", [f"{digest}.jpg" for digest in digests])
    by_digest = open_images(section(**table, root="digests"), tmp_path).pictures
    assert [by_digest.read(place) for place in range(2)] == [png(1), png(0)]


def features(**columns):
    return {b"huggingface": json.dumps({"info": {"features": columns}}).encode()}


def rows_with_images(metadata=None):
    images = [{"bytes": png(shade), "path": f"{shade}.png"} for shade in range(12)]
    table = pa.table({
        "image": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "label": pa.array([0, 1, -1] * 4),
        "name": [f"n{11 - i:02}" for i in range(12)],
        "tags": pa.array([["a"]] * 12),
    })  # fmt: skip
    return table.replace_schema_metadata(metadata)


def test_data_sets_of_hugging_face_in_a_file_and_a_folder(tmp_path):
    names = features(label={"names": ["cat", "dog"], "_type": "ClassLabel"})
    table = rows_with_images(names)
    (tmp_path / "parts").mkdir()
    pa.parquet.write_table(table, tmp_path / "parts" / "train-0.parquet")
    pa.parquet.write_table(table, tmp_path / "set.parquet")
    for files in ("parts", "set.parquet"):
        images = open_images(
            section(format="huggingface", files=files), tmp_path, columns=("label",)
        )
        assert frame(images)["image_id"].to_list()[:2] == ["00", "01"]
        assert frame(images)["label"].to_list()[:3] == ["cat", "dog", None]
        missing = {"label": 4, "name": 0}
        assert images.counts["read"] == {
            "images": 12, "missing": missing, "columns_left_out": ["tags"]
        }  # fmt: skip
        assert images.pictures.read(11) == png(11)
        named = open_images(section(format="huggingface", files=files, id="name"), tmp_path)
        assert named.pictures.ids[0] == "n00"
        assert named.pictures.read(0) == png(11)


PAGE = (Path(__file__).parents[3] / "docs" / "images.md").read_text(encoding="utf-8")
BLOCKS = [parse_yaml(block.encode(), "page")[0] for block in yaml_blocks(PAGE)]
ENTRIES = [entry for block in BLOCKS for entry in block.get("rules", ())]


@pytest.mark.parametrize("block", [block["images"] for block in BLOCKS if "images" in block])
def test_every_example_of_the_page_is_valid(block):
    assert PicturesConfig.model_validate(block)


@pytest.mark.parametrize("schema", [PicturesConfig, CropConfig, SampleConfig])
def test_the_page_names_every_key(schema):
    assert {*schema.model_fields} <= page_keys(PAGE)


@pytest.mark.parametrize("name", RULES)
def test_the_page_shows_every_rule_with_its_parameters(name):
    entries = [entry for entry in ENTRIES if entry["rule"] == name]
    assert {*RULES[name].model_fields} == {key for entry in entries for key in entry}
    for entry in entries:
        if "file" not in entry:
            assert RULES[name].model_validate(entry)


def sampled(folder, **sample):
    """Ids of the images of two cells that a sample takes."""
    rows = [["id", "cell", "rank"], *([f"i{n}", "ab"[n % 2], str(20 - n)] for n in range(12))]
    write_csv(folder / "t.csv", rows)
    images = open_images(section(table="t.csv", id="id", sample=sample), folder, columns=["cell"])
    return [*images.table.frame["id"]]


def test_a_sample_takes_some_images_of_each_cell(tmp_path):
    drawn = sampled(tmp_path, n=2, by="cell")
    assert sorted(int(name[1:]) % 2 for name in drawn) == [0, 0, 1, 1]
    assert sampled(tmp_path, n=2, by="cell") == drawn != sampled(tmp_path, n=2, by="cell", seed=1)
    assert len(sampled(tmp_path, n=100)) == 12


def test_a_sample_takes_the_first_images_by_name_or_rank(tmp_path):
    assert sampled(tmp_path, n=3, order="first") == ["i0", "i1", "i2"]
    assert sampled(tmp_path, n=2, by=["cell"], order="first", rank="rank") == [
        "i10", "i11", "i8", "i9",
    ]  # fmt: skip


def test_every_image_is_drawn_equally_often(tmp_path):
    counts = Counter(name for seed in range(200) for name in sampled(tmp_path, n=3, seed=seed))
    # 200 draws of 3 of 12 images: 50 of each, with a standard deviation of 6.1.
    assert sum(counts.values()) == 600
    assert all(50 - 25 < count < 50 + 25 for count in counts.values())


def test_a_rank_that_is_no_number_and_unknown_columns_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="sample"):
        sampled(tmp_path, n=2, order="first", rank="cell")
    with pytest.raises(DataError, match="column 'place'"):
        sampled(tmp_path, n=2, by="place")
    for wrong in ({"n": 2, "rank": "rank"}, {"n": 2, "order": "first", "seed": 3}, {"n": 0}):
        with pytest.raises(ValidationError):
            section(table="t.csv", id="id", sample=wrong)


def test_columns_of_crops_have_a_margin_up_to_the_border(tmp_path):
    crop = {side: side[0] for side in ("left", "top", "right", "bottom")} | {"margin": 0.25}
    rows = [["id", "l", "t", "r", "b"], ["a.png", 4, 6, 12, 14], ["b.png", 0, 0, 8, 20],
            ["c.png", 4, 4, 8, 30]]  # fmt: skip
    write_csv(tmp_path / "t.csv", rows)
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (20, 20)).save(tmp_path / name)
    config = section(table="t.csv", id="id", path="id", crop=crop)
    pictures = open_images(config, tmp_path).pictures
    # The last one doesn't lie inside its picture, and fails as it stands.
    assert pictures.crops.tolist() == [[2, 4, 14, 16], [0, 0, 10, 20], [4, 4, 8, 30]]


def test_ids_may_be_paths_of_a_sample(tmp_path):
    write_csv(tmp_path / "t.csv", [["id"], ["a.png"], ["b.png"]])
    images = open_images(section(table="t.csv", id="id", path="id", sample={"n": 1}), tmp_path)
    assert len(images.pictures) == 1
