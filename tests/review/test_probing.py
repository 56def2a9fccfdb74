"""Causes that a model, boxes, annotators or WordNet show."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from PIL import Image

from cause_worlds import World
from context_models import BOX, picture
from equipoise.cli.app import run as command
from equipoise.core import DataError
from equipoise.review import add_labels, causes, merge_labels
from equipoise.review.server import application
from equipoise.review.wordnet import UNCLEAR, meanings, read_senses
from review.browser import HOST, TOKEN, ask

N = 600


class Kitchen:
    """Cups and bowls of women and men; men's cups stand more often on a table that tells them."""

    def __init__(self, folder, seed=0):
        rng = np.random.default_rng(seed)
        self.folder = folder
        self.women, self.cup = rng.random(N) < 0.5, rng.random(N) < 0.5
        self.table = self.cup & (rng.random(N) < np.where(self.women, 0.2, 0.9))
        self.faint = rng.random(N) < 0.4
        self.painting = rng.random(N) < np.where(self.women, 0.5, 0.2)
        # The probe takes half of women's paintings for photographs.
        self.seen = self.painting & ~(self.women & (rng.random(N) < 0.5))
        self.ids = [f"{row:03d}.png" for row in range(N)]
        (folder / "photos").mkdir()
        for row, name in enumerate(self.ids):
            pixels = picture(rng, cup=self.cup[row], faint=self.faint[row],
                             context=self.table[row], medium=int(self.seen[row]))  # fmt: skip
            Image.fromarray(pixels).save(folder / "photos" / name)
        corners = dict(zip(("left", "top", "right", "bottom"), BOX, strict=True))
        self.named = np.where(self.women, "foundation", np.where(rng.random(N) < 0.5, "bag", "cup"))
        pl.DataFrame({
            "id": self.ids, "label": np.where(self.cup, "cup", "bowl"),
            "group": np.where(self.women, "women", "men"), "called": self.named, **corners,
        }).write_csv(folder / "images.csv")  # fmt: skip

    def audited(self):
        config = {
            "audit": "predictions",
            "data": {
                "images": {"table": f"{self.folder}/images.csv", "id": "id", "path": "id",
                           "root": f"{self.folder}/photos"},
                "target": "label", "groups": ["group"],
            },
            "models": {"ours": {"model": "python:context_models:glancer"}},
            "extraction": {"store": f"{self.folder}/evidence"},
            "metrics": {"rates": {}}, "resampling": {"replicates": 50},
        }  # fmt: skip
        (self.folder / "audit.yaml").write_text(json.dumps(config))
        run = self.folder / "run"
        assert command(["audit", str(self.folder / "audit.yaml"), "--out", str(run)]) == 0
        return run


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    return Kitchen(tmp_path_factory.mktemp("kitchen"))


@pytest.fixture(scope="module")
def run(kitchen):
    return kitchen.audited()


@pytest.fixture
def called(capsys, run):
    def call(*arguments, code=0):
        chosen = ("--finding", "true_positive_rate", "--subject", "cup", "--json",
                  "--trust-remote-code")  # fmt: skip
        assert command([*map(str, ("causes", run, *chosen, *arguments))]) == code
        out = capsys.readouterr().out
        return json.loads(out) if code == 0 else out

    return call


def test_hidden_objects_show_the_information_of_the_context(called, kitchen):
    output = called("--mask")
    row = next(cause for cause in output["causes"] if cause["cause"] == causes.HIDDEN)
    assert row["explains"]
    # Without its table a cup is seen equally well in both groups.
    assert row["disparity"] < -0.2
    assert abs(row["without"]) < 0.12
    women, men = kitchen.women & kitchen.cup, ~kitchen.women & kitchen.cup
    by_group = {entry["group"]: entry for entry in output[causes.HIDDEN]}
    for name, mask in (("women", women), ("men", men)):
        estimate = by_group[name]
        assert estimate["n"] == mask.sum()
        assert estimate["hidden"] == pytest.approx(kitchen.table[mask].mean())
        visible = (kitchen.table | ~kitchen.faint)[mask].mean()
        assert estimate["visible"] == pytest.approx(visible)
        assert estimate["lost"] == pytest.approx(visible - kitchen.table[mask].mean())
        assert estimate["low"] < estimate["lost"] < estimate["high"]
    difference = by_group["women minus men"]
    assert difference["lost"] == pytest.approx(by_group["women"]["lost"] - by_group["men"]["lost"])
    # The audit's own embeddings and predictions stay in the store.
    assert (kitchen.folder / "evidence" / "without_objects").is_dir()


def test_hidden_objects_need_boxes_of_images(called, kitchen, tmp_path):
    corners = {"left": 4, "top": 4, "right": 12, "bottom": [12, *[None] * (N - 1)]}
    table = pl.DataFrame({"image_id": kitchen.ids, **corners})
    table.drop("bottom").write_csv(tmp_path / "boxes.csv")
    called("--mask", "--table", tmp_path / "boxes.csv", code=2)
    # The first image is the only one with a box.
    table.write_csv(tmp_path / "boxes.csv")
    (row,) = called("--cause", "box size", "--table", tmp_path / "boxes.csv")["causes"]
    assert row["n"] == int(kitchen.cup[0])


def test_hidden_objects_need_a_model_and_whole_images(tmp_path, capsys):
    """The predictions of this world are a file."""
    run = World("small objects", 120).audited(tmp_path)
    assert command(["causes", str(run), "--finding", "accuracy", "--mask"]) == 2
    assert "ours" in capsys.readouterr().err


def test_embeddings_come_from_the_model_of_the_run(called):
    output = called("--embeddings", "ours", "--clusters", "4")
    named = {cause["cause"]: cause for cause in output["causes"]}
    assert named[causes.CLUSTER]["n"] == named[causes.NEIGHBOURS]["n"] > 200
    assert output["clusters"]["p_value"] < 0.05
    # Cups that are faint and have no table look like bowls that are faint.
    assert "mean" in named[causes.NEIGHBOURS]["evidence"]
    called("--embeddings", "theirs:nothing", code=2)


def test_a_probe_without_human_labels_is_noted(run, capsys):
    probe = ("--medium", "python:context_models:medium_probe")
    assert command(["causes", str(run), "--subject", "cup", *probe]) == 0
    assert "--question medium" in capsys.readouterr().out


def test_human_labels_correct_the_probe_of_media(called, run, kitchen):
    rng = np.random.default_rng(5)
    chosen = rng.choice(N, 250, replace=False)
    answers = np.where(kitchen.painting[chosen], "painting", "photograph")
    labels = pl.DataFrame({"image_id": [kitchen.ids[row] for row in chosen], "answer": answers})
    add_labels(run, merge_labels(labels.with_columns(
        question=pl.lit("medium"), labeller=pl.lit("ann"), at=datetime(2026, 11, 28, tzinfo=UTC)
    )))  # fmt: skip
    probe = "python:context_models:medium_probe"
    output = called("--medium", probe)
    (run / "labels" / "labels.parquet").unlink()
    row = next(cause for cause in output["causes"] if cause["cause"].startswith("medium by"))
    shares = {share["value"]: share for share in row["shares"]}
    mask = kitchen.cup & kitchen.women
    assert shares["painting"]["share"] == pytest.approx(kitchen.seen[mask].mean())
    corrected = {
        (entry["measure"], entry["group"]): entry for entry in output[f"medium by {probe}"]
    }
    women = corrected["painting", "women"]
    assert women["low"] <= kitchen.painting[mask].mean() <= women["high"]
    assert abs(women["share"] - kitchen.painting[mask].mean()) < 0.1
    assert kitchen.seen[mask].mean() < women["low"]
    page = ask(application(run, HOST, TOKEN), "/causes/1")[2].decode()
    assert f"<td>{women['share']:.3f}</td>" in page
    assert any(cause["cause"] == "medium" for cause in output["causes"])


def test_annotators_who_disagree_are_a_cause(called, tmp_path, kitchen):
    rows = [
        (name, f"person {place}", "cup" if place < (1 if kitchen.faint[row] else 3) else "bowl")
        for row, name in enumerate(kitchen.ids) for place in range(3)
    ]  # fmt: skip
    table = pl.DataFrame(rows, ["image_id", "annotator", "label"], orient="row")
    table.write_csv(tmp_path / "given.csv")
    (row,) = called("--annotations", tmp_path / "given.csv")["causes"]
    assert row["cause"] == causes.DISAGREE
    # One of three differs from most.
    mask = kitchen.cup & kitchen.women
    assert f"women: mean {1 / 3 * kitchen.faint[mask].mean():.3g}" in row["evidence"]
    table.drop("annotator").write_csv(tmp_path / "given.csv")
    called("--annotations", tmp_path / "given.csv", code=2)


LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by\n" * 3
SYNSETS = {
    "cup": [
        ("06", "03147509", ["cup"], 'a small open container; "he put the cup on the saucer"'),
        ("06", "03147510", ["cup", "loving_cup"], "a large metal vessel with two handles"),
    ],
    "base": [
        ("06", "02797692", ["base", "bag"], "a place that the runner must touch"),
        ("06", "02798117", ["foundation", "base"], "lowest support of a structure; solid"),
        ("09", "05793554", ["basis", "base", "foundation"], "the fundamental assumptions"),
    ],
}


def wordnet(folder):
    """Files in Princeton's layout: offsets are bytes of data.noun."""
    folder.mkdir()
    data, index = LICENCE, LICENCE
    for lemma, senses in sorted(SYNSETS.items()):
        offsets = []
        for file, _, words, gloss in senses:
            offset = len(data.encode())
            listed = " ".join(f"{word} 0" for word in words)
            data += (f"{offset:08d} {file} n {len(words):02x} {listed} 001 @ 00001740 n 0000 "
                     f"| {gloss}  \n")  # fmt: skip
            offsets.append(f"{offset:08d}")
        count = len(senses)
        index += f"{lemma} n {count} 1 @ {count} 1 {' '.join(offsets)}  \n"
    (folder / "data.noun").write_text(data)
    (folder / "index.noun").write_text(index)
    return folder


def test_wordnet_defines_classes(tmp_path):
    senses = read_senses(wordnet(tmp_path / "dict"), ["base", "cup", "hot_dog.n.01", "base.n.02"])
    assert senses["subject"].to_list() == ["base"] * 3 + ["cup"] * 2 + ["base.n.02"] * 3
    assert senses["sense"].to_list() == [1, 2, 3, 1, 2, 1, 2, 3]
    assert senses["definition"][1] == "lowest support of a structure; solid"
    assert senses["definition"][3] == "a small open container"
    assert senses["synonyms"][4].to_list() == ["cup", "loving cup"]
    base = senses.filter(subject="base")
    names = pl.Series(["Foundation", "bag", "base", "sink", None])
    assert meanings(names, base).to_list() == [
        "2: lowest support of a structure; solid", "1: a place that the runner must touch",
        UNCLEAR, UNCLEAR, None,
    ]  # fmt: skip


def test_files_of_several_releases_are_refused(tmp_path):
    folder = wordnet(tmp_path / "dict")
    (folder / "data.noun").write_text("  another licence\n" + (folder / "data.noun").read_text())
    with pytest.raises(DataError) as raised:
        read_senses(folder, ["cup"])
    assert raised.value.file == str(folder)
    with pytest.raises(DataError):
        read_senses(tmp_path, ["cup"])


def test_meanings_and_examples_are_on_the_page(called, run, kitchen, tmp_path):
    table = tmp_path / "called.csv"
    called_cup = ["loving cup" if woman else "mug" for woman in kitchen.women]
    pl.DataFrame({"image_id": kitchen.ids, "called": called_cup}).write_csv(table)
    output = called("--wordnet", wordnet(tmp_path / "dict"), "--table", table, "--cause", "called")
    named = {cause["cause"]: cause for cause in output["causes"]}
    shares = named["meaning by called"]["shares"]
    assert shares[0]["value"] == "2: a large metal vessel with two handles"
    assert (shares[0]["share"], shares[0]["others_share"]) == (1.0, 0.0)
    page = ask(application(run, HOST, TOKEN), "/causes/1")[2].decode()
    assert "a small open container" in page
    assert page.count("/image/small/") == 16
    assert "loving cup" in page
    app = application(run, HOST, TOKEN)
    for hide, count in (("faces", 16), ("outside", 0), ("../x", 0)):
        page = ask(app, f"/causes/1?hide={hide}")[2].decode()
        assert page.count(f"?hide={hide}") == count


def test_boxes_of_a_data_set_count_objects_and_people(tmp_path, capsys):
    rng, n = np.random.default_rng(2), 400
    women, table = rng.random(n) < 0.5, np.zeros(n, dtype=bool)
    cup = rng.random(n) < 0.5
    table = cup & (rng.random(n) < np.where(women, 0.2, 0.9))
    people = np.where(women, 1, 2)
    (tmp_path / "photos").mkdir()
    images, marks, captions = [], [], []
    for row in range(n):
        name, left, top = f"{row:03d}.png", BOX[0], BOX[1]
        pixels = picture(rng, cup=cup[row], faint=rng.random() < 0.4, context=table[row])
        Image.fromarray(pixels).save(tmp_path / "photos" / name)
        images.append({"id": row, "file_name": name, "width": 16, "height": 16})
        text = "a woman in a kitchen" if women[row] else "a man in a kitchen"
        captions.append({"id": row, "image_id": row, "caption": text})
        boxes = [(1 if cup[row] else 2, [left, top, 8, 8]), (1 if cup[row] else 2, [0, 0, 2, 2])]
        boxes += [(3, [place, 0, 5, 9]) for place in range(people[row])]
        marks += [{"id": len(marks) + place, "image_id": row, "category_id": kind, "bbox": box,
                   "iscrowd": 0} for place, (kind, box) in enumerate(boxes)]  # fmt: skip
    kinds = [{"id": 1, "name": "cup"}, {"id": 2, "name": "bowl"}, {"id": 3, "name": "person"}]
    instances = {"images": images, "annotations": marks, "categories": kinds}
    (tmp_path / "i.json").write_text(json.dumps(instances))
    (tmp_path / "c.json").write_text(json.dumps({"images": images, "annotations": captions}))
    config = {
        "audit": "concepts",
        "data": {
            "images": {
                "format": "coco", "root": f"{tmp_path}/photos",
                "files": {"captions": f"{tmp_path}/c.json", "instances": f"{tmp_path}/i.json"},
                "rules": [{"rule": "hall_captions"}],
            },
            "groups": ["gender"],
        },
        "concepts": ["cup", "bowl"],
        "models": {"ours": {"model": "python:context_models:glancer"}},
        "extraction": {"store": f"{tmp_path}/evidence"},
        "choices": {"min_positives": 20}, "resampling": {"permutations": 50, "replicates": 50},
    }  # fmt: skip
    (tmp_path / "audit.yaml").write_text(json.dumps(config))
    run = str(tmp_path / "run")
    assert command(["audit", str(tmp_path / "audit.yaml"), "--out", run]) == 0
    named = [f"--cause={name}" for name in ("objects", "people", "box size", "box from the left")]
    capsys.readouterr()
    assert (
        command(
            ["causes", run, "--subject", "cup", "--mask", "--trust-remote-code", *named, "--json"]
        )
        == 0
    )
    output = json.loads(capsys.readouterr().out)
    rows = {cause["cause"]: cause for cause in output["causes"]}
    assert rows["people"]["evidence"] == "woman: mean 1; man: mean 2"
    assert rows["objects"]["evidence"] == "woman: mean 3; man: mean 4"
    assert rows["box size"]["evidence"] == "woman: mean 64; man: mean 64"
    assert rows["box from the left"]["reason"] == "the cause is the same everywhere"
    by_group = {entry["group"]: entry for entry in output[causes.HIDDEN]}
    for name, mask in (("woman", women & cup), ("man", ~women & cup)):
        hidden = np.where(table[mask], 0.9, 0.1).mean()
        assert by_group[name]["hidden"] == pytest.approx(hidden, abs=1e-6)
