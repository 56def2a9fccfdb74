"""What docs/data-formats.md tells a stranger to do works, word for word, and audits read it."""

import re
from pathlib import Path

import polars as pl

import equipoise.data
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

PAGE = (Path(__file__).parents[2] / "docs" / "data-formats.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_rules_of_captions_become_versions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "annotations").mkdir()
    write_json(tmp_path / "annotations" / "captions_val2017.json", COCO_CAPTIONS)
    write_json(tmp_path / "annotations" / "instances_val2017.json", COCO_INSTANCES)
    exec(compile(PYTHON[0], "page", "exec"), {})  # the page's own words
    printed = capsys.readouterr().out
    assert "gender by whole words of any caption, without case" in printed
    assert "gender (person passed over)" in pl.read_parquet_schema("images.parquet")


def test_the_other_code_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "images_v2.csv", DOLLAR_STREET)
    write_json(tmp_path / "objects.json", VG_OBJECTS)
    write_json(tmp_path / "image_data.json", VG_IMAGES)
    write_csv(tmp_path / "imagenet1k.csv", [["label", "class"], ["phones", "cellphone"]])
    scope = {}
    for block in PYTHON[1:]:
        exec(compile(block, "page", "exec"), scope)
    assert FORMATS["lines"].takes("ending")
    FORMATS.remove("lines")
    assert scope["street"].table["continent"].to_list() == ["Asia", "Europe"]
    assert "gender (large boxes)" in scope["genome"].columns
    assert capsys.readouterr().out.splitlines() == ["{'phones': ('cellphone',)}", "hot dog"]


def test_every_count_on_the_page_is_real():
    source = "".join(
        path.read_text("utf-8") for path in Path(equipoise.data.__file__).parent.rglob("*.py")
    )
    table = PAGE.split("What happens to unusual input:")[1].split("\n\n")[1]
    counts = [*re.findall(r"`([a-z]+(?:_[a-z]+)+)`", table), "crowds"]
    assert len(counts) > 8
    assert [count for count in counts if f'"{count}"' not in source] == []
