"""`equipoise label` on runs of every kind that has images with groups."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from equipoise.cli.app import run
from equipoise.report import read
from equipoise.review import key_of, load_images, read_labels
from review.project import page_data

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Of each kind: options, the strata, and the groups of its estimates.
KINDS = {
    "concepts": (["--subject", "nurse"], "group × outcome × score", {"Female", "Male"}),
    "answers": (["--outcome", "place"], "group × label × prediction", {"Female", "Male"}),
    "retrieval": ([], "group × label", {"man", "woman"}),
    "dataset": ([], "group", {"female", "male"}),
    "diversity": ([], "group", None),
    "generation": (["--subject", "race shown"], "group × outcome × score", None),
    "text_to_image": ([], "group × label × outcome", {"man", "unknown", "woman"}),
}


@pytest.fixture(scope="module", params=KINDS)
def labelled(request, tmp_path_factory):
    """The kind, and a folder with its run."""
    folder = tmp_path_factory.mktemp(request.param) / "example"
    shutil.copytree(EXAMPLES / request.param, folder)
    table = pl.read_csv(folder / "images.csv")
    (folder / "photos").mkdir()
    picture = Image.new("RGB", (8, 6), (90, 40, 20))
    for name in table["image_id"]:
        picture.save(folder / "photos" / f"{name}.png")
    table.with_columns(path=pl.col("image_id") + ".png").write_csv(folder / "images.csv")
    config = yaml.safe_load((folder / "audit.yaml").read_text())
    files = {"path": "path", "root": "photos"}
    if request.param == "generation":
        config["images"] |= files
    elif request.param == "text_to_image":
        config["generators"]["painter"]["images"] |= files
    else:
        images = {"table": "images.csv", "id": "image_id", **files}
        data = {key: value for key, value in config["data"].items() if key not in ("table", "id")}
        config["data"] = data | {"images": images}
    config["resampling"] = {"replicates": 20, "permutations": 20}
    config.pop("gate", None)
    (folder / "few.yaml").write_text(yaml.safe_dump(config))
    assert run(["audit", str(folder / "few.yaml"), "--out", str(folder / "run")]) == 0
    return request.param, folder


def test_labels_give_shares_by_group_that_cover_the_truth(labelled, monkeypatch, capsys):
    kind, folder = labelled
    options, strata, groups = KINDS[kind]
    monkeypatch.chdir(folder.parent)

    def command(name, *arguments):
        capsys.readouterr()
        call = ["label", name, "example/run", *arguments, "--question", "person", *options]
        call.append("--json")
        assert run(call) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    output = command("sample", "--size", "150")
    assert output["strata"] == strata
    about = {options[0][2:]: options[1]} if options else {}
    images = load_images(folder / "run", **about)
    code = images.groups.codes
    rng = np.random.default_rng(1)
    says_no = rng.random(len(code)) < np.where(code == 0, 0.4, 0.1)
    of_key = {key_of(name): says_no[row] for row, name in enumerate(images.ids.tolist())}
    data = page_data(Path("label.html"))
    chosen = images.table["about"].to_numpy()

    def shares(keys):
        rows = [
            {"key": key, "question": data["question"], "answer": "no" if of_key[key] else "yes",
             "labeller": "ann", "at": "2026-11-28T09:00:00Z"}
            for key in keys
        ]  # fmt: skip
        Path("a.json").write_text(json.dumps(rows))
        return {row["group"]: row for row in command("read", "a.json")["errors"][:-1]}

    sampled = shares([image[0] for image in data["images"]])
    assert groups is None or {*sampled} == groups
    true = {
        name: says_no[chosen & (code == place)].mean()
        for place, name in enumerate(images.groups.names)
    }
    for name, estimate in sampled.items():
        assert 0 <= estimate["low"] < estimate["high"] <= 1
        assert abs(estimate["share"] - true[name]) < estimate["high"] - estimate["low"]
    # The next sample draws none of these.
    more = command(
        "sample", "--size", "10", "--out", "next.html", "--sharpen", images.groups.names[0]
    )
    assert more["images"] <= 10
    first = {image[0] for image in data["images"]}
    assert not first & {image[0] for image in page_data(Path("next.html"))["images"]}
    complete = shares([*of_key])
    assert {name: estimate["share"] for name, estimate in complete.items()} == pytest.approx(true)


@pytest.mark.parametrize("labelled", ["dataset"], indirect=True)
def test_labels_of_any_kind_survive_a_new_run_and_go_to_another(labelled, monkeypatch, capsys):
    _, folder = labelled
    monkeypatch.chdir(folder)
    name = load_images(Path("run")).ids[0]
    row = {"key": key_of(name), "question": "good", "answer": "no", "labeller": "ann",
           "at": "2026-11-28T09:00:00Z"}  # fmt: skip
    Path("good.json").write_text(json.dumps([row]))
    assert run(["label", "read", "run", "good.json", "--question", "good"]) == 0
    assert run(["label", "export", "run", "all.csv"]) == 0
    labels = read_labels(Path("run"))
    assert run(["audit", "few.yaml", "--out", "run", "--overwrite"]) == 0
    assert read_labels(Path("run")).equals(labels)
    assert "labels/labels.parquet" in read(Path("run")).manifest.inputs
    assert run(["audit", "few.yaml", "--out", "other"]) == 0
    assert run(["label", "read", "other", "all.csv", "--question", "good"]) == 0
    assert read_labels(Path("other")).equals(labels)
