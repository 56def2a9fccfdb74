"""The examples of docs/images.md and docs/formats.md run unchanged, and audits read the result."""

import re
from pathlib import Path

import polars as pl

from equipoise.data import FORMATS
from image_files import (
    COCO_CAPTIONS,
    COCO_INSTANCES,
    DOLLAR_STREET,
    VG_IMAGES,
    VG_OBJECTS,
    write_csv,
    write_json,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "".join((DOCS / name).read_text("utf-8") for name in ("images.md", "formats.md"))
PYTHON = re.findall(r"```python\n(.*?)```", PAGES, re.DOTALL)


def test_rules_of_captions_become_versions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "annotations").mkdir()
    write_json(tmp_path / "annotations" / "captions_val2017.json", COCO_CAPTIONS)
    write_json(tmp_path / "annotations" / "instances_val2017.json", COCO_INSTANCES)
    exec(compile(PYTHON[0], "page", "exec"), {})  # the page's own words
    printed = capsys.readouterr().out
    assert "gender by whole words of any caption, without case" in printed
    assert "gender (person passed over)" in pl.read_parquet_schema("images.parquet")


def test_the_other_code_of_the_pages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "images_v2.csv", DOLLAR_STREET)
    write_json(tmp_path / "objects.json", VG_OBJECTS)
    write_json(tmp_path / "image_data.json", VG_IMAGES)
    scope = {}
    for block in PYTHON[1:]:
        exec(compile(block, "page", "exec"), scope)
    assert FORMATS["lines"].takes("ending")
    FORMATS.remove("lines")
    assert scope["street"].table["continent"].to_list() == ["Asia", "Europe"]
    assert "gender (large boxes)" in scope["genome"].columns
