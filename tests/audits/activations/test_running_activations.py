"""The audit of activations from pictures and models: maps are made, kept, shown, and counted."""

import io
from functools import cache

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise import audits, report
from equipoise.audits import parse_config
from equipoise.core import ConfigError, ModelError, Verdict
from equipoise.explain import maps
from equipoise.explain.overlays import SIDE
from equipoise.planted.scenes.render import render
from tools.planted.measures import load_cnn
from tools.planted.readers import LABELS, draw_agreeing, glyph_boxes, train_reader

N = 72


@pytest.fixture(scope="module")
def reader():
    import torch

    torch.set_num_threads(1)
    return cache(train_reader)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Scenes in which hue and frame agree, with the box of each glyph."""
    folder = tmp_path_factory.mktemp("pictures")
    factors = draw_agreeing(N, seed=7)
    boxes = glyph_boxes(factors)
    for row, image in enumerate(render(factors)):
        Image.fromarray(image).save(folder / f"{row:03d}.png")
    pl.DataFrame(
        {
            "id": [f"i{row:03d}" for row in range(N)],
            "file": [f"{row:03d}.png" for row in range(N)],
            "side": [LABELS[side] for side in factors.frame],
            "half": ["a", "b"] * (N // 2),
            **{name: boxes[:, place] for place, name in enumerate("ltrb")},
        }
    ).write_csv(folder / "images.csv")
    return folder


def config(
    folder,
    models,
    store,
    *,
    blur=(),
    part=None,
    **data,
):
    return parse_config(
        {
            "audit": "activations",
            "data": {
                "images": {"table": str(folder / "images.csv"), "id": "id", "path": "file",
                           "root": str(folder)},
                "groups": ["half"],
                "regions": {"glyph": dict(zip(("left", "top", "right", "bottom"), "ltrb",
                                              strict=True))},
                "target": "side",
                **data,
            },
            "models": models,
            "blur": blur,
            "extraction": {"store": str(store), "part": part},
            "resampling": {"replicates": 200},
        }
    )  # fmt: skip


def run(*args, **data):
    return audits.run(config(*args, **data))


def test_shares_follow_the_part_that_each_model_reads(pictures, reader, tmp_path):
    models = {name: {"model": reader(name)} for name in ("glyph", "frame")}
    result = run(pictures, models, tmp_path / "store")
    shares = {
        f.model: f
        for f in result.findings
        if (f.metric, f.aggregate) == ("activation_share", "value")
    }
    assert shares["glyph"].ci_low > 0.5
    assert shares["frame"].ci_high < 0.3
    gaps = [
        f
        for f in result.findings
        if f.metric == "activation_share" and f.aggregate == "difference" and not f.reason
    ]
    assert all(gap.verdict is not Verdict.DISPARITY for gap in gaps)
    assert result.manifest.models["glyph"]["name"] == "reads the glyph"
    rows = result.tables["gallery"].to_pylist()
    assert {row["section"] for row in rows} == {"glyph, half", "frame, half"}
    assert len(rows) == 2 * 2 * 4
    picture = Image.open(io.BytesIO(rows[0]["image"]))
    assert (picture.format, picture.size) == ("JPEG", (SIDE, SIDE))
    assert rows[0]["caption"].startswith("i000: ")
    out = tmp_path / "run"
    out.mkdir()
    report.write(result, out)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('<figure><img src="data:image/jpeg;base64,') == len(rows)
    assert report.read(out).tables["gallery"].equals(result.tables["gallery"])


def shown(result):
    """Pixels of each picture, by image."""
    return {
        row["caption"].split(":")[0]: np.asarray(Image.open(io.BytesIO(row["image"])), np.int64)
        for row in result.tables["gallery"].to_pylist()
    }


def test_regions_are_blurred_in_pictures_and_in_nothing_else(pictures, reader, tmp_path):
    frame = pl.read_csv(pictures / "images.csv", schema_overrides={"file": pl.String})
    empty = pl.when(pl.col("id") == "i001").then(None)
    frame.with_columns(
        file=pl.format("{}/{}", pl.lit(str(pictures)), pl.col("file")),
        **{name: empty.otherwise(pl.col(name)) for name in "ltrb"},
    ).write_csv(tmp_path / "images.csv")
    images = {"table": str(tmp_path / "images.csv"), "id": "id", "path": "file", "root": "/"}
    arguments = (pictures, {"m": {"model": reader("glyph")}}, tmp_path / "s")
    plain, part, all_blurred = (
        run(*arguments, images=images, blur=blur) for blur in ([], ["glyph"], "all")
    )
    assert repr(plain.findings) == repr(part.findings) == repr(all_blurred.findings)
    assert not any(note.startswith("Blurred") for note in plain.manifest.notes)
    assert "Blurred on this page only; models saw it clearly: glyph." in part.manifest.notes
    assert part.manifest.resolved["blur"] == ["glyph"]
    before, after, all_pixels = shown(plain), shown(part), shown(all_blurred)
    with Image.open(pictures / "000.png") as picture:
        scale = SIDE / picture.width
    for name, *box in frame.select("id", *"ltrb").rows():
        if name not in before:
            continue
        left, top, right, bottom = (round(edge * scale) for edge in box)
        changed = np.abs(after[name] - before[name]).max(axis=2)
        assert changed[top:bottom, left:right].max() > 25
        # A JPEG spreads what changed over blocks of 16 pixels.
        changed[max(top - 16, 0) : bottom + 16, max(left - 16, 0) : right + 16] = 0
        assert changed.max() > 25 if name == "i001" else changed.max() < 5
        assert np.abs(all_pixels[name] - before[name]).max() > 25
    # Nobody said where its glyph is.
    assert (all_pixels["i001"] == after["i001"]).all()


def test_maps_are_kept(pictures, reader, tmp_path, monkeypatch):
    real, calls = maps.activation_maps, []

    def counted(model, images, *args, **options):
        calls.append(len(images))
        return real(model, images, *args, **options)

    monkeypatch.setattr(maps, "activation_maps", counted)
    section = {"model": reader("glyph")}
    first = run(pictures, {"glyph": section}, tmp_path / "store", part=24)
    second = run(pictures, {"glyph": section}, tmp_path / "store", part=24)
    assert calls == [24] * 3
    assert repr(second.findings) == repr(first.findings)
    for change in ({"method": "layercam"}, {"target": LABELS[0]}):
        calls.clear()
        models = {"glyph": section | change}
        other = run(pictures, models, tmp_path / "store", part=24, min_group_size=2)
        assert calls == [24] * 3
        assert other.findings[0].value != first.findings[0].value


def test_impossible_questions_are_refused_before_anything_runs(pictures, reader, tmp_path):
    store = tmp_path / "s"
    with pytest.raises(ConfigError, match=r"models\.m: reads the glyph has no label 'dog'"):
        run(pictures, {"m": {"model": reader("glyph"), "target": "dog"}}, store)
    with pytest.raises(ConfigError, match=r"models\.m: reads the glyph answers no questions"):
        run(pictures, {"m": {"model": reader("glyph"), "question": "who ?"}}, store)
    with pytest.raises(ModelError, match=r"has no layers that can be looked into"):
        run(pictures, {"m": {"model": load_cnn("null")}}, store)
    with pytest.raises(ModelError, match=r"failed on each of .*'i000': ModelError: reads"):
        run(pictures, {"m": {"model": reader("glyph"), "layer": "nowhere"}}, store)
    assert not [*store.glob("activations/*/part-*.parquet")]  # it is tried again
