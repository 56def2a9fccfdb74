"""What docs/data-formats.md tells a stranger to do works, word for word, and audits read it."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise.data
from equipoise.audits import load_config, run
from equipoise.data import FORMATS
from image_files import (
    DOLLAR_STREET,
    VG_IMAGES,
    VG_OBJECTS,
    write_csv,
    write_json,
)

PAGE = (Path(__file__).parents[2] / "docs" / "data-formats.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
WORDS = {"man": "A man", "woman": "Her", "person": "A woman and a person", "child": "a mother"}


def write_coco(folder: Path) -> pl.DataFrame:
    """COCO of 480 images in which chairs beside women are found less surely."""
    rng = np.random.default_rng(7)
    kinds = np.repeat([*WORDS], 120)
    chair, dog = rng.random(480) < 0.6, rng.random(480) < 0.5
    images = [{"id": n, "width": 640, "height": 480, "file_name": f"{n}.jpg"} for n in range(480)]
    captions = [
        {"id": n, "image_id": n, "caption": WORDS[kind]} for n, kind in enumerate(kinds.tolist())
    ]
    shown = [(1, np.ones(480, dtype=bool)), (18, dog), (62, chair)]
    marks = [(n, category) for category, there in shown for n in np.flatnonzero(there).tolist()]
    instances = [
        {"id": place, "image_id": n, "category_id": category, "bbox": [0, 0, 9, 9], "iscrowd": 0}
        for place, (n, category) in enumerate(marks)
    ]
    categories = [
        {"id": 1, "name": "person"},
        {"id": 18, "name": "dog"},
        {"id": 62, "name": "chair"},
    ]
    (folder / "annotations").mkdir()
    write_json(
        folder / "annotations" / "captions_val2017.json",
        {"images": images, "annotations": captions},
    )
    write_json(
        folder / "annotations" / "instances_val2017.json",
        {"images": images, "annotations": instances, "categories": categories},
    )
    sureness = np.where(kinds == "man", 2.5, 0.5)
    scores = {"chair": chair * sureness, "dog": dog * 5.0}
    columns = {name: values + rng.normal(size=480) for name, values in scores.items()}
    return pl.DataFrame({"image_id": [str(n) for n in range(480)], **columns})


def test_from_captions_to_an_audit_of_concepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path).write_parquet(tmp_path / "scores.parquet")
    exec(compile(PYTHON[0], "page", "exec"), {})  # the page's own words
    printed = capsys.readouterr().out
    assert "'strict': {'columns': {'gender': 'gender (strict)'}}" in printed
    assert "'no parents': {'columns': {'gender': 'gender (no parents)'}}" in printed
    assert "gender by whole words of any caption, without case" in printed
    (tmp_path / "audit.yaml").write_text(YAML[0])
    result = run(load_config(tmp_path / "audit.yaml"), base=tmp_path)
    found = {
        (one.subject, one.version): one.value
        for one in result.findings
        if one.metric == "average_precision" and one.subject in ("chair", "dog")
    }
    assert {version for _, version in found} >= {"baseline", "strict", "no parents"}
    assert abs(found["chair", "baseline"]) > 0.1
    assert abs(found["dog", "baseline"]) < 0.1
    assert pl.read_parquet("coco/images.parquet")["gender (strict)"].null_count() == 120


def test_the_other_code_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "images_v2.csv", DOLLAR_STREET)
    write_json(tmp_path / "objects.json", VG_OBJECTS)
    write_json(tmp_path / "image_data.json", VG_IMAGES)
    (tmp_path / "imagenet22k.yaml").write_text(YAML[1])
    write_csv(tmp_path / "imagenet1k.csv", [["label", "class"], ["phones", "cellphone"]])
    for block in PYTHON[1:]:
        exec(compile(block, "page", "exec"), {})
    assert FORMATS.pop("lines").takes("ending")
    assert pl.read_parquet("street/images.parquet")["continent"].to_list() == ["Asia", "Europe"]
    assert "gender (large boxes)" in pl.read_parquet_schema("genome/images.parquet")
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "{'same': 0, 'changed': 1, 'only_first': 1, 'only_second': 0} "
        "{'phones': (('telephone',), ())}",
        "hot dog",
    ]


def test_every_count_on_the_page_is_real() -> None:
    source = "".join(
        path.read_text("utf-8") for path in Path(equipoise.data.__file__).parent.rglob("*.py")
    )
    table = PAGE.split("What happens to unusual input:")[1].split("\n\n")[1]
    counts = [*re.findall(r"`([a-z]+(?:_[a-z]+)+)`", table), "crowds"]
    assert len(counts) > 8
    assert [one for one in counts if f'"{one}"' not in source] == []
