"""Audits of generation from captions to a data set, with tiny models."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from equipoise import audits
from equipoise.core import AuditResult, ConfigError, DataError, ModelError, Verdict
from generation_models import Guard, Looker, Painter

SHAPES = ["square", "circle", "star", "moon"]
COLOURS = ["red", "green", "blue"]


def config(painter: Any, looker: Any = None, **more: Any) -> Any:
    looker = looker or Looker()
    values: dict[str, Any] = {
        "audit": "generation",
        "captions": {"subjects": SHAPES, "attributes": {"hue": COLOURS}},
        "generator": {"model": painter, "candidates": 6, "seed": 1},
        "filters": {
            "similarity": {"model": looker, "threshold": 0.8, "pairs": None},
            "attributes": {"templates": "a {} thing", "thresholds": {"hue": 1.0}},
        },
        "min_group_size": 5,
        "resampling": {"replicates": 100},
    }
    return audits.parse_config(values | more)


@pytest.fixture
def biased() -> Painter:
    return Painter(wrong="blue", share=0.5)


def shares(result: AuditResult, check: str) -> dict[str, float]:
    """Share that a check rejects, by group."""
    return {
        row["group"]: row["share"]
        for row in result.tables["rejections"].to_pylist()
        if row["check"] == check and not row["attributes"]
    }


def test_a_group_that_a_model_cannot_draw_is_found(biased: Painter, tmp_path: Path) -> None:
    result = audits.run(config(biased), base=tmp_path)
    by_group = shares(result, "caption similarity")
    assert by_group["red"] == by_group["green"] == 0.0
    assert 0.2 < by_group["blue"] < 0.8
    found = {f.subject: f for f in result.findings if f.metric == "rejection_gap"}
    gap = found["caption similarity"]
    assert gap.verdict == Verdict.DISPARITY
    assert gap.value == pytest.approx(by_group["blue"])
    assert gap.direction.endswith(f"highest for blue ({100 * by_group['blue']:.1f}\xa0%)")
    # What is left has as many images of each: nothing to be seen of it any more.
    assert found["hue shown"].value == 0.0


def test_a_second_run_makes_and_looks_at_nothing(biased: Painter, tmp_path: Path) -> None:
    looker = Looker()
    first = audits.run(config(biased, looker), base=tmp_path)
    assert (biased.calls, looker.seen) == (72, 72)
    again = audits.run(config(biased, looker), base=tmp_path)
    assert (biased.calls, looker.seen) == (72, 72)
    assert again.findings == first.findings
    other = config(biased, looker)
    stricter = other.filters.similarity.model_copy(update={"threshold": 0.9})
    filters = other.filters.model_copy(update={"similarity": stricter})
    audits.run(other.model_copy(update={"filters": filters}), base=tmp_path)
    assert (biased.calls, looker.seen) == (72, 72)


def test_the_kept_sets_are_a_data_set_that_other_audits_read(
    biased: Painter, tmp_path: Path
) -> None:
    result = audits.run(config(biased), base=tmp_path)
    (folder,) = (tmp_path / "evidence" / "sets").iterdir()
    table = pq.read_table(folder / "images.parquet")
    kept = result.tables["stages"].to_pylist()[-1]
    assert table.num_rows == kept["images_after"]
    assert len({*table["set"].to_pylist()}) == kept["sets_after"] < 24
    counts = table.group_by("hue").aggregate([("hue", "count")])["hue_count"].to_pylist()
    assert len({*counts}) == 1
    assert any(folder.name in note for note in result.manifest.notes)
    images = {"table": folder / "images.parquet", "id": "image_id", "path": "file", "root": folder}
    probe = audits.parse_config(
        {
            "audit": "retrieval",
            "data": {"images": images, "groups": ["hue"], "subject": "subject", "sets": "set"},
            "queries": {
                "table": pa.table({"prompt": [f"a blue {one}" for one in SHAPES],
                                   "subject": SHAPES}),
                "id": "prompt", "subject": "subject",
            },
            "models": {"looker": {"model": Looker()}},
            "resampling": {"replicates": 50},
        }
    )  # fmt: skip
    assert audits.run(probe, base=tmp_path).findings


def test_refused_images_are_a_check_of_their_own(tmp_path: Path) -> None:
    result = audits.run(config(Painter(refused="green star")), base=tmp_path)
    assert shares(result, "image made") == pytest.approx({"red": 0.0, "green": 0.25, "blue": 0.0})
    stages = result.tables["stages"].to_pylist()
    assert (stages[0]["stage"], stages[0]["sets_rejected"]) == ("complete", 6)
    assert [row["kept"] for row in result.tables["subjects"].to_pylist()] == [6, 6, 6, 0]
    reasons = {
        row["reason"] for row in result.tables["filter_images"].to_pylist()
        if row["check"] == "image made" and not row["passed"]
    }  # fmt: skip
    assert all(one.startswith("refused") for one in reasons)
    assert len(reasons) == 1


def test_content_is_off_unless_asked_for_and_rejects_by_label(tmp_path: Path) -> None:
    off = audits.run(config(Painter()), base=tmp_path)
    assert any("filters.content" in note for note in off.manifest.notes)
    filters = {"content": {"model": Guard(), "unsafe": ["unsafe"]}}
    on = audits.run(config(Painter(), filters=filters), base=tmp_path)
    assert shares(on, "content") == {"red": 0.0, "green": 0.0, "blue": 1.0}
    assert on.tables["stages"].to_pylist()[-1]["sets_after"] == 0
    assert "No set is kept." in on.manifest.notes
    assert not any("filters.content" in note for note in on.manifest.notes)


def colours(data: bytes) -> int:
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    return len(np.unique(pixels.reshape(-1, 3), axis=0))


def test_the_gallery_has_small_pictures_of_kept_and_rejected_sets(
    biased: Painter, tmp_path: Path
) -> None:
    result = audits.run(config(biased, gallery=1), base=tmp_path)
    rows = result.tables["gallery"].to_pylist()
    assert [row["section"] for row in rows] == ["Kept"] * 3 + ["Rejected by similarity"] * 3
    assert all(row["image"].startswith(b"\x89PNG") for row in rows)
    assert any(row["caption"].startswith("blue: cosine with the caption") for row in rows[3:])
    coarse = audits.run(config(biased, gallery=1, blur="all"), base=tmp_path)
    assert coarse.findings == result.findings
    shown = coarse.tables["gallery"].to_pylist()
    assert [row["image_id"] for row in shown] == [row["image_id"] for row in rows]
    for before, after in zip(rows, shown, strict=True):
        assert colours(before["image"]) > 36 >= colours(after["image"])
    assert "gallery" not in audits.run(config(biased, gallery=0), base=tmp_path).tables


def test_a_plan_runs_no_model_and_counts_every_candidate(biased: Painter, tmp_path: Path) -> None:
    looker = Looker()
    plan = audits.plan(config(biased, looker), base=tmp_path)
    assert (biased.calls, looker.seen) == (0, 0)
    counts = [(run["model"], run["on"], run["items"], run["to_do"]) for run in plan.runs]
    assert counts == [
        ("generator", "captions", 72, 72),
        ("similarity", "images", 72, 72),
        ("similarity", "captions", 12, None),
        ("similarity", "values", 3, None),
    ]
    details = plan.details
    assert [details[key] for key in ("sets", "candidates", "images")] == [4, 24, 72]
    assert details["kinds"] == [
        {"attributes": "hue", "sets": 4, "images_per_set": 3, "candidates": 24, "images": 72}
    ]
    assert (details["filters"], details["off"]) == (["similarity", "attributes"], ["content"])
    assert {row["group"]: row["images"] for row in plan.groups} == dict.fromkeys(COLOURS, 24)
    # "image made", "caption similarity" and "hue shown"; no set is rejected before models run.
    assert plan.tests == 3
    result = audits.run(config(biased, looker), base=tmp_path)
    assert result.manifest.counts["images"]["rows"] == 72
    done = audits.plan(config(biased, looker), base=tmp_path)
    assert [run["to_do"] for run in done.runs[:2]] == [0, 0]


def test_groups_that_stay_too_small_are_an_error_before_images_are_made(tmp_path: Path) -> None:
    painter = Painter()
    with pytest.raises(DataError) as caught:
        audits.run(config(painter, min_group_size=25), base=tmp_path)
    assert "min_group_size" in str(caught.value.fix)
    assert painter.calls == 0


def test_findings_name_the_generator_and_images_made_before_do_not(
    biased: Painter, tmp_path: Path
) -> None:
    result = audits.run(config(biased), base=tmp_path)
    assert {f.model for f in result.findings} == {biased.info.name}
    assert {*result.manifest.models} == {"generator", "similarity"}
    (folder,) = (tmp_path / "evidence" / "generations").iterdir()
    again = config(biased).model_dump()
    again |= {"images": {"generations": folder}, "attributes": ["hue"], "name": None}
    del again["captions"], again["generator"]
    again["filters"] = {"similarity": {"model": Looker(), "threshold": 0.8, "pairs": None}}
    read = audits.run(audits.parse_config(again), base=tmp_path)
    assert {f.model for f in read.findings} == {"images"}
    assert shares(read, "caption similarity") == shares(result, "caption similarity")


def test_thresholds_are_learned_from_labels(biased: Painter, tmp_path: Path) -> None:
    first = audits.run(config(biased), base=tmp_path)
    shown = {
        row["set"]: row["value"] for row in first.tables["filter_sets"].to_pylist()
        if row["check"] == "hue shown"
    }  # fmt: skip
    labels = pa.table({"set": [*shown], "hue": [["no", "yes"][n >= 3] for n in shown.values()]})
    about = {"templates": "a {} thing", "labels": {"table": labels, "id": "set",
                                                   "columns": {"hue": "hue"}}}  # fmt: skip
    filters = {"similarity": {"model": Looker(), "threshold": -1.0, "pairs": None},
               "attributes": about}  # fmt: skip
    result = audits.run(config(biased, filters=filters), base=tmp_path)
    (row,) = result.tables["thresholds"].to_pylist()
    assert (row["threshold"], row["learned"], row["agreement"]) == (3, True, 1.0)
    (finding,) = [f for f in result.findings if f.metric == "threshold_accuracy"]
    assert finding.value == 1.0
    assert finding.verdict == Verdict.NONE


def test_a_model_of_another_kind_names_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"filters\.similarity\.model: .* is a classifier"):
        audits.run(config(Painter(), Guard()), base=tmp_path)
    filters = {"content": {"model": Looker(), "unsafe": ["unsafe"]}}
    with pytest.raises(ConfigError, match=r"filters\.content\.model: .* is a dual encoder"):
        audits.run(config(Painter(), filters=filters), base=tmp_path)
    filters = {"content": {"model": Guard(), "unsafe": ["gore"]}}
    with pytest.raises(ConfigError, match="filters.content.unsafe: 'gore' is no label"):
        audits.run(config(Painter(), filters=filters), base=tmp_path)


class Broken(Looker):
    """An encoder that fails on every image."""

    def embed_images(self, images: Any) -> Any:
        raise RuntimeError("out of order")


def test_a_model_that_fails_names_its_key(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^filters\.similarity\.model: "):
        audits.run(config(Painter(), Broken()), base=tmp_path)


def test_a_threshold_that_does_not_fit_is_an_error_before_images_are_made(tmp_path: Path) -> None:
    painter = Painter()
    filters = {
        "similarity": {"model": Looker(), "threshold": 0.8},
        "attributes": {"thresholds": {"hue": 4}},
    }
    with pytest.raises(ConfigError, match=r"filters\.attributes\.thresholds\['hue'\]\['hue'\]: 4"):
        audits.run(config(painter, filters=filters), base=tmp_path)
    assert painter.calls == 0


def test_pictures_that_cannot_be_read_cost_their_sets(tmp_path: Path) -> None:
    from PIL import Image

    rows = []
    for number in range(30):
        for colour in COLOURS:
            name = f"{number}-{colour}"
            if (number, colour) != (3, "red"):
                paint = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
                Image.new("RGB", (8, 8), paint[colour]).save(tmp_path / f"{name}.png")
            rows.append({"image_id": name, "set": str(number), "caption": f"a {colour} thing",
                         "hue": colour, "file": f"{name}.png"})  # fmt: skip
    made = audits.parse_config(
        {
            "audit": "generation",
            "images": {"table": pa.Table.from_pylist(rows), "path": "file"},
            "attributes": ["hue"],
            "filters": {"similarity": {"model": Looker(), "threshold": 0.8, "pairs": None}},
            "resampling": {"replicates": 50},
        }
    )
    result = audits.run(made, base=tmp_path)
    stages = result.tables["stages"].to_pylist()
    assert [row["sets_after"] for row in stages] == [29, 29]
    assert shares(result, "image made")["red"] == pytest.approx(1 / 30)
    assert result.tables["failures"].num_rows
    assert result.manifest.counts["images"]["states"] == {"image": 89, "unreadable": 1}
    reasons = {row["reason"] for row in result.tables["filter_images"].to_pylist()}
    assert "unreadable: no vector of the image" in reasons
    assert len([*(tmp_path / "evidence" / "sets").iterdir()]) == 1
