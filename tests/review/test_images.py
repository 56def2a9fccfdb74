"""The images that the review page shows: of every kind of run, with boxes, blurred on request."""

import io
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from PIL import Image

import data_sets
from concept_worlds import world
from equipoise.cli.app import run as command
from equipoise.evidence import read_pictures
from equipoise.review import find_pictures
from equipoise.review.examples import Examples, Selection
from equipoise.review.server import Thumbnails, application
from generation_models import COLOURS, Looker, Painter
from painted import audit_values
from review.browser import HOST, TOKEN, Links, ask
from review.project import finished

FACE = Path(mpl.get_data_path()) / "sample_data" / "grace_hopper.jpg"
SIDES, BOX = (60, 40), (10, 5, 30, 25)
QUIET = {"replicates": 20, "permutations": 99}


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def noise(folder, ids, size=SIDES):
    """Write pictures of noise, which blurring makes even."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name in ids:
        levels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(levels).save(folder / name)


def predictions(ids, predicted=None):
    """Return labels and predictions of images of two groups; every seventh is wrong."""
    job = ["nurse", "pilot"] * (len(ids) // 2)
    wrong = ["pilot" if label == "nurse" else "nurse" for label in job]
    predicted = [wrong[row] if row % 7 == 0 else job[row] for row in range(len(ids))]
    group = ["men", "men", "women", "women"] * (len(ids) // 4)
    score = [row / len(ids) for row in range(len(ids))]
    corners = zip(("left", "top", "right", "bottom"), BOX, strict=True)
    columns = {"id": ids, "job": job, "said": predicted, "group": group, "score": score}
    return pl.DataFrame(columns).with_columns(pl.lit(edge).alias(name) for name, edge in corners)


def config(images):
    return {
        "audit": "predictions",
        "data": {"images": images, "target": "job", "groups": ["group"], "positive": "nurse"},
        "models": {"ours": {"table": "images.csv", "id": "id", "prediction": "said"}},
        "resampling": QUIET,
    }


@pytest.fixture(scope="module")
def cropped(tmp_path_factory):
    """A run with a relative configuration, in which the model sees a crop of each image."""
    folder = tmp_path_factory.mktemp("cropped")
    ids = [f"{row:03d}.png" for row in range(200)]
    predictions(ids).write_csv(folder / "images.csv")
    noise(folder / "photos", ids)
    shutil.copy(FACE, folder / "photos" / ids[0])
    corners = {side: side for side in ("left", "top", "right", "bottom")}
    images = {"table": "images.csv", "id": "id", "path": "id", "root": "photos", "crop": corners}
    return finished(folder, config(images))


def roughness(part):
    return np.abs(np.diff(part, axis=1)).mean()


def test_a_crop_is_a_box_on_the_whole_image_or_shown_alone(cropped):
    thumbnails = Thumbnails(Examples.of(cropped))
    full_image, crop = pixels(thumbnails.get(3, 240)), pixels(thumbnails.get(3, 240, view="crop"))
    assert full_image.shape == (160, 240, 3)
    assert crop.shape == (20, 20, 3)
    # Four pixels for one: a bright line in a dark one just outside the box.
    line = full_image[60, 35:45]
    assert line.max(axis=0)[0] > 180
    assert line.min(axis=0)[0] < 60


def test_the_outside_of_the_box_is_blurred(cropped):
    thumbnails = Thumbnails(Examples.of(cropped))
    plain, hidden = (pixels(thumbnails.get(3, 240, hide=hide)) for hide in (None, "outside"))
    inside, outside = np.s_[26:94, 46:114], np.s_[110:, 130:]
    assert np.abs(plain[inside] - hidden[inside]).mean() < 8
    assert roughness(hidden[outside]) < 0.3 * roughness(plain[outside])
    everything = pixels(thumbnails.get(3, 240, hide="all"))
    assert roughness(everything[inside]) < 0.5 * roughness(plain[inside])


def test_a_face_is_blurred_and_its_surroundings_are_not(cropped):
    pytest.importorskip("cv2")
    thumbnails = Thumbnails(Examples.of(cropped))
    plain, hidden = (pixels(thumbnails.get(0, 512, hide=hide)) for hide in (None, "faces"))
    changed = (np.abs(plain - hidden).sum(axis=2) > 60).mean()
    assert 0.01 < changed < 0.3


def test_a_run_is_shown_from_any_folder_and_wherever_it_is_moved_with_its_images(
    cropped, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert ask(application(cropped, HOST, TOKEN), "/image/small/3")[0] == 200
    assert len(find_pictures(cropped).read(3)) > 100
    shutil.copytree(cropped.parent, tmp_path / "moved")
    pictures = find_pictures(tmp_path / "moved" / "run")
    assert pictures.read(3) == find_pictures(cropped).read(3)
    assert pictures.crops.tolist() == [[*BOX]] * 200
    assert str(tmp_path / "moved") in pictures.where(3)
    named = ["--finding", "accuracy", "--cause", "score", "--cause", "brightness"]
    assert command(["causes", str(cropped), *named]) == 0


def test_the_page_offers_only_supported_controls(cropped):
    app = application(cropped, HOST, TOKEN)
    page = ask(app, "/finding/0")[2].decode()
    assert "whole with box" in page
    assert "all outside the box" in page
    assert "score from" not in page


def test_an_image_has_a_page_with_its_neighbours(cropped):
    app = application(cropped, HOST, TOKEN)
    address = "/finding/0?order=random&hide=all&view=crop"
    first = [link for link in Links(ask(app, address)[2]).links if link.startswith("/finding/0/")]
    status, _, page = ask(app, first[1])
    assert status == 200
    links = Links(page)
    assert {first[0], first[2]} <= {*links.links}
    assert "hide=all" in links.pictures[0]
    assert "view=crop" in links.pictures[0]


def test_boxes_of_a_data_set_are_drawn_for_the_label_of_the_finding(tmp_path):
    data_sets.coco(tmp_path)
    files = tmp_path / "coco" / "annotations"
    parts = {
        name: [f"{files}/{name}_{part}.json" for part in ("train2017", "val2017")]
        for name in ("captions", "instances")
    }
    images = {
        "format": "coco", "files": parts, "root": str(tmp_path / "coco"), "path": "path",
        "rules": [{"rule": "hall_captions"}],
    }  # fmt: skip
    values = {"audit": "dataset", "data": {"images": images, "groups": ["gender"]}}
    run = finished(tmp_path, values | {"resampling": QUIET})
    examples = Examples.of(run)
    assert examples.boxes(0, "person") == [(1.0, 1.0, 9.0, 10.0)]
    assert examples.boxes(0, "train") == []
    assert not examples.has_crops
    thumbnails = Thumbnails(examples)
    box, none = (pixels(thumbnails.get(0, 200, label=label)) for label in ("person", "train"))
    # With a box a small picture is enlarged.
    assert (max(box.shape), max(none.shape)) == (200, 20)


def test_concepts_have_hits_misses_and_false_alarms(tmp_path):
    scores, labels, group = world(5, n=600, prevalence=(0.3, 0.3))
    ids = [f"{row:03d}.png" for row in range(600)]
    noise(tmp_path / "photos", ids[:1])
    names = [f"c{place}" for place in range(4)]
    pl.DataFrame({"id": ids, "g": group}).write_csv(tmp_path / "images.csv")
    for file, values in (("labels", labels.astype(int)), ("scores", scores)):
        columns = dict(zip(names, values.T, strict=True))
        pl.DataFrame({"id": ids, **columns}).write_csv(tmp_path / f"{file}.csv")
    images = {"table": "images.csv", "id": "id", "path": "id", "root": "photos"}
    values = {
        "audit": "concepts",
        "data": {"images": images, "groups": ["g"], "labels": {"file": "labels.csv", "id": "id"}},
        "models": {"ours": {"file": "scores.csv", "id": "id"}},
        "metrics": ["average_precision"],
        "choices": {"min_positives": 20},
        "resampling": QUIET,
    }
    examples = Examples.of(finished(tmp_path, values))
    finding = next(finding for finding in examples.result.findings if finding.subject == "c2")
    order = np.argsort(-scores[:, 2])
    top = np.isin(np.arange(600), order[: labels[:, 2].sum()])
    expected = {
        "true positive": labels[:, 2] & top,
        "miss": labels[:, 2] & ~top,
        "false alarm": ~labels[:, 2] & top,
    }
    assert examples.outcomes(finding) == {name: rows.sum() for name, rows in expected.items()}
    for outcome, rows in expected.items():
        for shown_group in examples.select(finding, Selection(outcome, size=600)):
            expected_places = np.flatnonzero(rows & (group == shown_group.name))
            assert sorted(image.place for image in shown_group.images) == expected_places.tolist()
    least = float(np.median(scores[expected["miss"], 2]))
    chosen = Selection("miss", low=least, high=least + 0.3, size=600)
    shown_scores = [
        image.score for selected in examples.select(finding, chosen) for image in selected.images
    ]
    assert shown_scores
    assert all(least - 1e-6 <= score <= least + 0.3 + 1e-6 for score in shown_scores)


def places_of(examples, finding, outcome):
    chosen = Selection(outcome, size=1000)
    return {
        group.name: [image.place for image in group.images]
        for group in examples.select(finding, chosen)
    }


def test_generated_images_of_text_to_image_models_are_shown_by_prompt_and_group(tmp_path):
    run = finished(tmp_path, audit_values())
    examples = Examples.of(run)
    finding = next(
        finding
        for finding in examples.result.findings
        if finding.groups == "colour" and finding.subject == "fire"
    )
    by_group = places_of(examples, finding, "guidance 1")
    colours = {}
    pictures = read_pictures(run)
    for name, places in by_group.items():
        assert places
        for place in places:
            red, _, blue = pixels(pictures.read(place)).mean(axis=(0, 1))
            colours.setdefault(name, set()).add("red" if red > blue else "blue")
    assert colours == {"red": {"red"}, "blue": {"blue"}}
    assert {*examples.labels(finding, "guidance 1")} == {"a fire"}
    lean = next(
        finding
        for finding in examples.result.findings
        if finding.by_group and "against" in finding.groups
    )
    assert {*places_of(examples, lean, "guidance 1")} == {"red", "blue"}
    page = ask(application(run, HOST, TOKEN), "/finding/0")[2]
    assert ask(application(run, HOST, TOKEN), Links(page).pictures[0])[0] == 200


def test_generated_sets_are_shown_as_passed_and_rejected(tmp_path):
    values = {
        "audit": "generation",
        "captions": {"subjects": ["square", "circle"], "attributes": {"hue": [*COLOURS]}},
        "generator": {"model": Painter(wrong="blue", share=0.5), "candidates": 6, "seed": 1},
        "filters": {"similarity": {"model": Looker(), "threshold": 0.8, "pairs": None}},
        "min_group_size": 5,
        "resampling": {"replicates": 50},
    }
    run = finished(tmp_path, values)
    examples = Examples.of(run)
    finding = next(
        finding
        for finding in examples.result.findings
        if finding.metric == "rejected_share"
        and finding.aggregate == "difference"
        and finding.subject == "caption similarity"
    )
    rejected = places_of(examples, finding, "rejected")
    assert rejected["blue"]
    assert not rejected["red"]
    assert not rejected["green"]
    pictures = read_pictures(run)
    for place in rejected["blue"]:
        assert pixels(pictures.read(place)).mean(axis=(0, 1)).argmax() != 2
    assert next(iter(examples.outcomes(finding))) == "rejected"
