"""Audits of generation from captions to a data set, with tiny models."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.stats
from PIL import Image

from equipoise import audits
from equipoise.audits.runs import page_of
from equipoise.core import ConfigError, DataError, Verdict
from equipoise.data import find_format
from equipoise.data.formats.social_counterfactuals import COLUMNS
from equipoise.report import render
from generation_models import COLOURS, Guard, Looker, Painter

SHAPES = ["square", "circle", "star", "moon"]


def config(painter, looker=None, threshold=0.8, **more):
    similarity = {"model": looker or Looker(), "threshold": threshold, "pairs": None}
    attributes = {"templates": "a {} thing", "thresholds": {"hue": 1.0}}
    values = {
        "audit": "generation",
        "captions": {"subjects": SHAPES, "attributes": {"hue": [*COLOURS]}},
        "generator": {"model": painter, "candidates": 6, "seed": 1},
        "filters": {"similarity": similarity, "attributes": attributes},
        "min_group_size": 5,
        "resampling": {"replicates": 100},
    }
    return audits.parse_config(values | more)


@pytest.fixture
def biased():
    return Painter(wrong="blue", share=0.5)


def rows(result, table):
    return result.tables[table].to_pylist()


def shares(result, check):
    """Share that a check rejects, by group."""
    return {
        row["group"]: row["share"]
        for row in rows(result, "rejections")
        if row["check"] == check and not row["attributes"]
    }


def test_a_group_that_a_model_cannot_draw_is_found(biased, tmp_path):
    looker = Looker()
    result = audits.run(config(biased, looker), base=tmp_path)
    by_group = shares(result, "caption similarity")
    assert by_group["red"] == by_group["green"] == 0.0
    assert 0.2 < by_group["blue"] < 0.8
    findings = {f.subject: f for f in result.findings if f.aggregate == "difference"}
    gap = findings["caption similarity"]
    assert gap.verdict == Verdict.DISPARITY
    assert gap.value == pytest.approx(by_group["blue"])
    assert "highest for blue" in gap.direction
    # What is left has as many images of each: nothing to be seen of it any more.
    assert findings["hue shown"].value == 0.0
    # Neither the same audit nor another threshold makes or looks at an image again.
    repeated = audits.run(config(biased, looker), base=tmp_path)
    assert [*map(repr, repeated.findings)] == [*map(repr, result.findings)]
    audits.run(config(biased, looker, threshold=0.9), base=tmp_path)
    assert (biased.calls, looker.seen) == (72, 72)


def test_the_kept_sets_are_a_data_set_that_other_audits_read(biased, tmp_path):
    result = audits.run(config(biased), base=tmp_path)
    (folder,) = (tmp_path / "evidence" / "sets").iterdir()
    table = pq.read_table(folder / "images.parquet")
    last_stage = rows(result, "stages")[-1]
    assert table.num_rows == last_stage["images_after"]
    assert len({*table["set"].to_pylist()}) == last_stage["sets_after"] < 24
    counts = table.group_by("hue").aggregate([("hue", "count")])["hue_count"].to_pylist()
    assert len({*counts}) == 1
    assert any(folder.name in note for note in result.manifest.notes)
    images = {"table": folder / "images.parquet", "id": "image_id", "path": "file", "root": folder}
    queries = pa.table({"prompt": [f"a blue {shape}" for shape in SHAPES], "subject": SHAPES})
    probe = audits.parse_config(
        {
            "audit": "retrieval",
            "data": {"images": images, "groups": ["hue"], "subject": "subject", "sets": "set"},
            "queries": {"table": queries, "id": "prompt", "subject": "subject"},
            "models": {"looker": {"model": Looker()}},
            "resampling": {"replicates": 50},
        }
    )
    assert audits.run(probe, base=tmp_path).findings


def test_kept_sets_are_written_as_socialcounterfactuals_was_released(tmp_path):
    captions = {"subjects": SHAPES, "attributes": {"size": ["tiny", "big"], "hue": [*COLOURS]}}
    filters = {"similarity": {"model": Looker(), "threshold": 0.8, "pairs": None}}
    values = {"captions": captions, "filters": filters, "write_sets": "social_counterfactuals"}
    released = audits.run(config(Painter(), **values), base=tmp_path)
    (folder,) = (tmp_path / "evidence" / "sets").iterdir()
    (file,) = (folder / "data").iterdir()
    schema = pq.read_schema(file)
    assert [*schema.names] == [*COLUMNS, "image"]
    images = find_format("social_counterfactuals").load(folder / "data")
    last_stage = rows(released, "stages")[-1]
    assert (len(images), images.counts["sets"]) == (
        last_stage["images_after"],
        last_stage["sets_after"],
    )
    assert {*images.column("subject")} == {*SHAPES}
    assert {*images.column("attributes")} == {"size × hue"}
    # The same sets as a folder of pictures: pixel by pixel the same.
    audits.run(config(Painter(), **values | {"write_sets": True}), base=tmp_path)
    other = next(path for path in (tmp_path / "evidence" / "sets").iterdir() if path != folder)
    plain = pq.read_table(other / "images.parquet").to_pylist()
    pictures = pq.read_table(file)["image"].to_pylist()
    assert [picture["bytes"] for picture in pictures] == [
        (other / row["file"]).read_bytes() for row in plain
    ]


def test_sets_of_one_attribute_do_not_fit_the_released_layout(tmp_path):
    with pytest.raises(ConfigError, match="^write_sets: the caption 'A photo of a red circle'"):
        audits.plan(config(Painter(), write_sets="social_counterfactuals"), base=tmp_path)


def quality_of(result):
    metrics = ("frechet_distance", "inception_score")
    return {(f.metric, f.subject): f for f in result.findings if f.metric in metrics}


def test_the_quality_of_all_and_of_kept_images(biased, tmp_path):
    (tmp_path / "real").mkdir()
    real_pictures = [
        swatch(colour, shift) for colour in COLOURS.values() for shift in range(-9, 10, 3)
    ]
    for number, pixels in enumerate(real_pictures):
        Image.fromarray(pixels).save(tmp_path / "real" / f"{number}.png")
    quality = {"model": Guard(), "reference": {"folder": "real"}}
    result = audits.run(config(biased, quality=quality), base=tmp_path)
    measures = quality_of(result)
    kept_images, all_images = (
        measures["frechet_distance", f"{name} images"] for name in ("kept", "all")
    )
    # Wrong colours are rejected, so that the kept images have as many of each, as the real ones.
    assert kept_images.value < all_images.value
    assert all_images.n == 72 + len(real_pictures)
    # Two classes, of which one is a third of the kept images, each 0.9 sure.
    rows = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]])
    score = np.exp(scipy.stats.entropy(rows, rows.mean(axis=0)[None], axis=1).mean())
    assert measures["inception_score", "kept images"].value == pytest.approx(score, rel=1e-5)
    assert all(f.verdict == Verdict.NONE for f in measures.values())
    assert "Quality of the images" in render(result, page_of(result))


def test_an_encoder_has_a_distance_alone_and_a_plan_runs_nothing(tmp_path):
    (tmp_path / "real").mkdir()
    for number in range(4):
        Image.fromarray(swatch((9, 9, 9), number)).save(tmp_path / "real" / f"{number}.png")
    looker = Looker()
    values = config(Painter(), quality={"model": looker, "reference": {"folder": "real"}})
    audits.plan(values, base=tmp_path)
    assert looker.seen == 0
    assert {metric for metric, _ in quality_of(audits.run(values, base=tmp_path))} == {
        "frechet_distance"
    }


def test_a_plan_says_what_share_of_sets_must_pass(tmp_path):
    values = config(Painter())
    (limit,) = audits.plan(values, base=tmp_path).limits
    candidates = audits.plan(values, base=tmp_path).details["candidates"]
    assert limit.numbers["candidates"] == candidates
    assert limit.numbers["kept"] is None
    assert limit.numbers["kept_share_needed"] == 5 / candidates
    assert audits.plan(values, base=tmp_path, kept_share=0.9).limits == ()
    (few,) = audits.plan(values, base=tmp_path, kept_share=0.1).limits
    assert few.numbers["kept"] == round(0.1 * candidates)


def swatch(colour, shift):
    return np.clip(np.full((8, 8, 3), colour) + shift, 0, 255).astype(np.uint8)


def test_refused_images_are_a_check_of_their_own(tmp_path):
    result = audits.run(config(Painter(refused="green star")), base=tmp_path)
    assert shares(result, "image made") == pytest.approx({"red": 0.0, "green": 0.25, "blue": 0.0})
    complete = rows(result, "stages")[0]
    assert (complete["stage"], complete["sets_rejected"]) == ("complete", 6)
    assert [row["kept"] for row in rows(result, "subjects")] == [6, 6, 6, 0]


def test_content_is_off_unless_asked_for_and_rejects_by_label(tmp_path):
    off = audits.run(config(Painter()), base=tmp_path)
    assert any("filters.content" in note for note in off.manifest.notes)
    filters = {"content": {"model": Guard(), "unsafe": ["unsafe"]}}
    on = audits.run(config(Painter(), filters=filters), base=tmp_path)
    assert shares(on, "content") == {"red": 0.0, "green": 0.0, "blue": 1.0}
    assert rows(on, "stages")[-1]["sets_after"] == 0


def colours(data):
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    return len(np.unique(pixels.reshape(-1, 3), axis=0))


def test_the_gallery_has_small_pictures_of_kept_and_rejected_sets(biased, tmp_path):
    sharp, coarse = (
        rows(audits.run(config(biased, gallery=1, blur=blur), base=tmp_path), "gallery")
        for blur in (None, "all")
    )
    assert [row["section"] for row in sharp] == ["Kept"] * 3 + ["Rejected by similarity"] * 3
    assert [row["image_id"] for row in coarse] == [row["image_id"] for row in sharp]
    for before, after in zip(sharp, coarse, strict=True):
        assert colours(before["image"]) > 36 >= colours(after["image"])
    assert "gallery" not in audits.run(config(biased, gallery=0), base=tmp_path).tables


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"min_group_size": 25}, DataError, "min_group_size"),
        (
            {"filters": {"similarity": {"model": Looker(), "threshold": 0.8},
                         "attributes": {"thresholds": {"hue": 4}}}},
            ConfigError, "filters.attributes.thresholds['hue']['hue']: 4",
        ),
        ({"filters": {"similarity": {"model": Guard()}}}, ConfigError, "filters.similarity.model"),
    ],
)  # fmt: skip
def test_errors_come_before_images_are_made(more, error, words, tmp_path):
    painter = Painter()
    with pytest.raises(error) as caught:
        audits.run(config(painter, **more), base=tmp_path)
    assert words in str(caught.value)
    assert painter.calls == 0


def test_findings_name_the_generator_and_images_made_before_do_not(biased, tmp_path):
    first = config(biased)
    result = audits.run(first, base=tmp_path)
    assert {f.model for f in result.findings} == {biased.info.name}
    assert {*result.manifest.models} == {"generator", "similarity"}
    (folder,) = (tmp_path / "evidence" / "generations").iterdir()
    images = {"images": {"generations": folder}, "attributes": ["hue"]}
    repeated = config(biased, captions=None, generator=None, **images)
    read = audits.run(repeated, base=tmp_path)
    assert {f.model for f in read.findings} == {"images"}
    assert shares(read, "caption similarity") == shares(result, "caption similarity")


def existing(folder):
    """Return the config of an audit of 30 sets of plain pictures, which it draws."""
    table = [
        {"image_id": f"{number}-{colour}", "set": str(number), "caption": f"a {colour} thing",
         "hue": colour, "file": f"{number}-{colour}.png"}
        for number in range(30)
        for colour in COLOURS
    ]  # fmt: skip
    for row in table:
        Image.new("RGB", (8, 8), COLOURS[row["hue"]]).save(folder / row["file"])
    images = {"table": pa.Table.from_pylist(table), "path": "file"}
    similarity = {"model": Looker(), "threshold": 0.8, "pairs": None}
    return config(None, captions=None, generator=None, images=images, attributes=["hue"],
                  filters={"similarity": similarity})  # fmt: skip


def test_that_listed_pictures_exist_is_no_finding(tmp_path):
    result = audits.run(existing(tmp_path), base=tmp_path)
    assert {f.subject for f in result.findings if f.tested} == {"caption similarity"}
    assert [row["sets_after"] for row in rows(result, "stages")] == [30, 30]


def test_pictures_that_cannot_be_read_cost_their_sets(tmp_path):
    configured = existing(tmp_path)
    (tmp_path / "3-red.png").unlink()
    result = audits.run(configured, base=tmp_path)
    assert [row["sets_after"] for row in rows(result, "stages")] == [29, 29]
    assert shares(result, "image made")["red"] == pytest.approx(1 / 30)
    assert result.manifest.counts["images"]["states"] == {"image": 89, "unreadable": 1}
