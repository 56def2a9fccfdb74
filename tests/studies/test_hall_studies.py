"""The studies of Hall et al. 2023 on worlds whose truth is planted, in the authors' layout."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from equipoise import audits
from equipoise.audits.concepts.page import sample_size
from equipoise.cli.app import run as command
from equipoise.data import lexicon
from equipoise.evidence.examples import names_files
from equipoise.report.blocks import Table
from equipoise.studies.study import study_files
from image_files import write_csv, write_json

# Of each concept: prevalence beside men and women, and how far its scores are above the others.
HOLDS = {
    "umbrella.n.01": (0.06, 0.22, 1.5, 1.5),
    "dress.n.01": (0.06, 0.28, 1.4, 1.4),
    "hair.n.01": (0.06, 0.27, 1.5, 1.5),
    "earring.n.01": (0.05, 0.25, 2.0, 1.3),
    "helmet.n.02": (0.30, 0.06, 1.3, 2.1),
    "tie.n.01": (0.30, 0.06, 2.3, 1.6),
    "chair.n.01": (0.15, 0.15, 2.4, 1.4),
}
FAILS = {
    "umbrella.n.01": (0.30, 0.05, 1.5, 1.5),
    "dress.n.01": (0.20, 0.20, 1.4, 2.2),
    "hair.n.01": (0.20, 0.20, 1.6, 1.6),
    "earring.n.01": (0.20, 0.20, 1.0, 2.2),
    "helmet.n.02": (0.20, 0.20, 2.4, 1.0),
    "chair.n.01": (0.20, 0.20, 1.2, 2.2),
}


def visual_genome(folder, concepts, count=6000, seed=11):
    """Write objects, sizes and scores: half the images show a man, the others a woman."""
    rng = np.random.default_rng(seed)
    man = np.arange(count) % 2 == 1
    labels, scores = {}, {}
    for name, (of_men, of_women, men, women) in concepts.items():
        labels[name] = rng.random(count) < np.where(man, of_men, of_women)
        scores[name] = rng.normal(size=count) + labels[name] * np.where(man, men, women)
    small, parent = rng.random(count) < 0.1, rng.random(count) < 0.05
    person = rng.random(count) < 0.1
    objects, facts = [], []
    for image in range(count):
        name = ("father.n.01", "man.n.01") if man[image] else ("ma.n.01", "woman.n.01")
        side = 20 if small[image] else 150
        shown = [(name[not parent[image]], side)]
        if person[image]:
            shown.append(("person.n.01", 50))
        shown += [(concept, 30) for concept in concepts if labels[concept][image]]
        boxes = [
            {"synsets": [synset], "h": size, "object_id": 100 * image + place,
             "merged_object_ids": [], "names": [synset.split(".")[0]], "w": size, "y": 1, "x": 1}
            for place, (synset, size) in enumerate(shown)
        ]  # fmt: skip
        objects.append({"image_id": image, "objects": boxes, "image_url": "u"})
        size = {"width": 500, "url": "u", "height": 400, "image_id": image}
        facts.append({**size, "coco_id": None, "flickr_id": None})
    write_json(folder / "image_data.json", facts)
    write_json(folder / "objects.json", objects)
    ids = pl.Series("image_id", [*map(str, range(count))])
    pl.DataFrame([ids, *(pl.Series(*column) for column in scores.items())]).write_parquet(
        folder / "scores.parquet"
    )
    return {"small": small, "parent": parent, "person": person}


def write_study(folder, path, replicates=250):
    """Write the study of Visual Genome for a folder, with its scores in place of CLIP's."""
    values = yaml.safe_load(study_files("hall-vg", path, folder)[path])
    values["models"] = {"clip": {"file": "scores.parquet", "id": "image_id"}}
    values["resampling"] = {"replicates": replicates, "permutations": 200}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")


def run_study(folder):
    """Run the study of Visual Genome on the files of a folder."""
    write_study(folder, folder / "study.yaml")
    return audits.run(audits.load_config(folder / "study.yaml"), base=folder)


def marks(result):
    """The mark of each claim, and of its parts."""
    rows = result.tables["claims"].to_pylist()
    return {" ".join(filter(None, (row["claim"], row["part"]))): row["mark"] for row in rows}


def table(result, name):
    return pl.DataFrame(result.tables[name])


@pytest.fixture(scope="module")
def holding(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holds")
    return visual_genome(folder, HOLDS), run_study(folder)


def test_claims_hold_where_prevalence_and_accuracy_are_planted_so(holding):
    marked = marks(holding[1])
    assert {*marked} >= {f"H{number}" for number in (2, 3, 7, 8, 9, 10)}
    assert [marked[claim] for claim in ("H1 Visual Genome", "H2", "H3")] == ["holds"] * 3
    assert marked["H6 Visual Genome"] == "holds"
    # No image shows these, and people must judge the last.
    assert {marked[claim] for claim in ("H4 wristlet.n.01", "H7", "H10")} == {"can't tell"}


def test_claims_fail_where_the_opposite_is_planted(tmp_path):
    visual_genome(tmp_path, FAILS)
    marked = marks(run_study(tmp_path))
    assert [marked[claim] for claim in ("H1 Visual Genome", "H2", "H3")] == ["doesn't"] * 3


def test_effects_are_read_from_the_baseline_to_the_reliable_evaluation(holding):
    rows = table(holding[1], "choices").filter(version="Reliable", metric="average_precision")
    if "baseline" in rows.columns:
        rows = rows.filter(baseline="baseline")
    effects = dict(rows.select("concept", "effect").iter_rows())
    assert effects == {
        "": "surfaces",
        **dict.fromkeys(("umbrella.n.01", "dress.n.01", "hair.n.01"), "explains"),
        **dict.fromkeys(("earring.n.01", "helmet.n.02"), "switches"),
        "chair.n.01": "stays",
        "tie.n.01": "shrinks",
    }
    signs = rows.filter(pl.col("concept").is_in(["umbrella.n.01", "helmet.n.02"]))
    assert dict(signs.select("concept", pl.col("baseline_value") > 0).iter_rows()) == {
        "umbrella.n.01": False, "helmet.n.02": True,
    }  # fmt: skip


def test_each_evaluation_has_the_images_of_its_boxes_and_terms(holding):
    planted, result = holding
    plain, small, parent = ~planted["person"], planted["small"], planted["parent"]
    expected = {
        "baseline": plain, "V1": plain & ~small, "V2": plain & ~small,
        "V3": plain & ~small & ~parent, "Reliable": plain & ~small & ~parent,
        "Weighted": plain & ~small & ~parent,
    }  # fmt: skip
    groups = table(result, "concept_groups").filter(concept="chair.n.01")
    images = groups.group_by("version", "metric").agg(pl.col("n").sum())
    assert {*images["metric"]} == {
        "average_precision", "true_positive_rate", "false_positive_rate",
    }  # fmt: skip
    assert {(row["version"], row["n"]) for row in images.to_dicts()} == {
        (version, int(mask.sum())) for version, mask in expected.items()
    }


def test_a_pair_of_groups_has_its_signed_difference(holding):
    findings = {
        (finding.subject, finding.version): finding
        for finding in holding[1].findings
        if finding.metric == "concept_difference"
    }
    rows = table(holding[1], "choices").filter(version="Reliable", metric="average_precision")
    for row in rows.to_dicts():
        subject = ": ".join(filter(None, (row["concept"], "man − woman")))
        finding = findings[subject, "Reliable"]
        assert finding.value == pytest.approx(row["value"])
        assert (finding.ci_low, finding.ci_high) == pytest.approx((row["low"], row["high"]))
        assert not finding.tested
    assert ("man − woman (true positive rate)", "V1") in findings


def test_a_folder_without_pictures_leaves_the_report_without_them(holding, tmp_path):
    (note,) = (note for note in holding[1].manifest.notes if "no pictures" in note)
    assert "files" in note
    chairs = {"chair.n.01": (0.3, 0.3, 1.0, 1.0), "dog.n.01": (0.3, 0.3, 1.0, 1.0)}
    visual_genome(tmp_path, chairs, count=800)
    path = tmp_path / "study.yaml"
    write_study(tmp_path, path, replicates=20)
    assert command(["audit", str(path), "--out", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "report.html").is_file()
    assert not names_files(tmp_path / "run")


def test_the_study_finds_what_the_collected_configuration_of_the_protocol_does(
    shared_dir, tmp_path
):
    """On its data with planted effects, every number of the versions that both have is the same."""
    source = shared_dir / "inputs" / "papers" / "hall-paper-protocol"
    subprocess.run([sys.executable, source / "mk.py"], cwd=tmp_path, check=True)
    values = yaml.safe_load((source / "paper.yaml").read_text("utf-8"))
    values["resampling"] = {"replicates": 250, "permutations": 200}
    values.pop("study")
    expected = audits.run(audits.parse_config(values), base=tmp_path)
    result = run_study(tmp_path / "visual_genome")
    names = {"baseline": "baseline", "V1": "V1", "V2": "V2", "V3": "V3", "reliable": "Reliable"}
    numbers = {
        run: {
            (names.get(finding.version), finding.metric, finding.aggregate, finding.subject):
                (finding.value, finding.ci_low, finding.ci_high)
            for finding in audited.findings if names.get(finding.version)
        }
        for run, audited, names in (
            ("collected", expected, names), ("study", result, {n: n for n in names.values()}),
        )
    }  # fmt: skip
    assert numbers["study"] == numbers["collected"]
    rows = table(result, "choices").filter(version="Reliable", metric="average_precision")
    effects = dict(rows.select("concept", "effect").iter_rows())
    planted = {
        "": "surfaces", "umbrella.n.01": "explains", "helmet.n.02": "switches",
        "table.n.02": "surfaces", "chair.n.01": "stays", "dog.n.01": "absent",
    }  # fmt: skip
    assert {concept: effects[concept] for concept in planted} == planted


def test_terms_are_the_printed_ones(shared_dir):
    source = shared_dir / "goldens" / "papers" / "hall_2023" / "table_2.json"
    printed = json.loads(source.read_text("utf-8"))
    words = lexicon("hall_2023")
    for section, key in (("synsets", "visual_genome"), ("captions", "coco_captions")):
        terms = words.section(section)
        assert {group: {*terms[group]} for group in terms} == {
            group: {*listed} for group, listed in printed[key].items()
        }
        dropped = words.section("dropped_in_v3")[section]
        assert {*dropped} == {*printed["bold_dropped_in_v3"][key]}


def test_the_files_of_dollar_street_have_the_printed_classes(shared_dir, tmp_path):
    source = shared_dir / "goldens" / "papers" / "hall_2023" / "figure_10.json"
    written = {
        path.name: text.splitlines()[1:]
        for path, text in study_files("hall-dollar-street", tmp_path / "c.yaml", None).items()
    }
    for topic, classes, of_1k in json.loads(source.read_text("utf-8"))["rows"]:
        (row,) = (line for line in written["22k.csv"] if line.startswith(f"{topic},"))
        synonyms = row.partition(",")[2].strip('"').split(", ")
        assert [name.replace(" ", "_") for name in synonyms] == classes
        (row,) = (line for line in written["1k.csv"] if line.startswith(f"{topic},"))
        assert of_1k in row.replace("cellular telephone, cellular phone, ", "")


def street(folder, topics):
    """Write `images_v2.csv`, in the authors' columns, and scores of two models by class."""
    rng = np.random.default_rng(3)
    countries = (("Burundi", "bi", "af"), ("Brazil", "br", "am"), ("Lebanon", "lb", "as"),
                 ("Norway", "no", "eu"))  # fmt: skip
    rows = [["id", "country.name", "country.id", "region.id", "type", "imageRelPath", "topics",
             "place", "income"]]  # fmt: skip
    shown = []
    for country in countries:
        for topic, count in topics.items():
            for _ in range(count if isinstance(count, int) else count[country[0]]):
                number = f"5d4be077{len(rows):016x}"
                path = f"assets/{number}/{number}.jpg"
                rows.append([number, *country, "image", path, f'["{topic}"]', "x-1", "120.5"])
                shown.append((number, country[0], topic))
    write_csv(folder / "images_v2.csv", rows)
    return rng, shown


def test_classes_follow_the_mapping_of_each_version_and_rare_ones_the_filter(tmp_path):
    """A class that a mapping, the data or a model lacks is left out and counted."""
    few = {"Burundi": 3, "Brazil": 9, "Lebanon": 40, "Norway": 60}
    rng, shown = street(
        tmp_path, {"roofs": 80, "phones": 80, "lock on front door": few, "bikes": 40, "hands": 20}
    )
    mapping = {
        "roofs": ("roof", "tile roof"),
        "phones": ("telephone, phone, telephone set",
                   "cellular telephone, cellular phone, cellphone, cell, mobile phone"),
        "lock on front door": ("lock", "padlock"),
    }  # fmt: skip
    classes = [name for pair in mapping.values() for name in pair]
    classes += ["bicycle, bike, wheel, cycle", "other 1", "other 2", "other 3"]
    for model in ("vit", "tresnet"):
        scores = {name: rng.normal(size=len(shown)) for name in classes}
        for place, (_, country, topic) in enumerate(shown):
            for of_1k, name in enumerate(mapping.get(topic, ())):
                scores[name][place] += 4.0 if country != "Burundi" else 3.0 - 2.0 * of_1k
        ids = {"id": [number for number, *_ in shown]}
        pl.DataFrame(ids | scores).write_parquet(tmp_path / f"{model}.parquet")
    path = tmp_path / "study.yaml"
    for file, text in study_files("hall-dollar-street", path, tmp_path).items():
        file.write_text(text, encoding="utf-8")
    values = yaml.safe_load(path.read_text("utf-8"))
    values["models"] = {
        model: {"file": f"{model}.parquet", "id": "id"} for model in ("vit", "tresnet")
    }
    values |= {"resampling": {"replicates": 100, "permutations": 99}, "report": {"images": 0}}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    result = audits.run(audits.load_config(path), base=tmp_path)
    groups = table(result, "concept_groups").filter(model="vit", reason="")
    compared = {
        version: {*groups.filter(version=version)["concept"]}
        for version in ("baseline", "ImageNet 1K", "Reliable")
    }
    of_22k = {pair[0] for pair in mapping.values()} | {"bicycle, bike, wheel, cycle"}
    assert compared == {
        "baseline": of_22k,
        "ImageNet 1K": {pair[1] for pair in mapping.values()},
        # Of locks there are 3 images in Africa.
        "Reliable": of_22k - {"lock"},
    }
    counts = result.manifest.counts["models"]["vit"]
    # hands, garage, showers' three classes, parking meter and mountain bike.
    assert counts["concepts_without_scores"] == 7
    marked = marks(result)
    assert marked["H8"] == "holds"
    sizes = {
        finding.subject: finding.parameters["fewest_positives"]
        for finding in result.findings
        if finding.metric == "average_precision" and finding.aggregate == "difference"
        and finding.version == "baseline" and finding.model == "vit"
        and "fewest_positives" in finding.parameters
    }  # fmt: skip
    assert {sizes[name] for name in of_22k} == {80, 40, 3}
    # The chart of sizes has each class once, rare ones too.
    (chart_table,) = (block for block in sample_size(result).blocks if isinstance(block, Table))
    assert len(chart_table.rows) == 2 * len(of_22k)
    hits = {
        finding.version: {group.group: group.value for group in finding.by_group}
        for finding in result.findings
        if finding.metric == "hit_rate" and finding.aggregate == "value" and finding.model == "vit"
    }
    assert {*hits} == {"default", "ImageNet 1K"}
    assert set(hits["default"]) == {"Africa", "Americas", "Asia", "Europe"}
    assert hits["ImageNet 1K"]["Africa"] < hits["default"]["Africa"]


def test_dollar_streets_own_classes_of_imagenet_are_labels_too(tmp_path):
    """The layout of images_v2_imagenet_train.csv."""
    from equipoise.data import read_dollar_street

    header = ["id", "country.name", "country.id", "region.id", "type", "imageRelPath", "topics",
              "place", "income", "imagenet_synonyms", "imagenet_sysnet_id"]  # fmt: skip
    path = "assets/5d4bde20cf0b3a0f3f3359f9/5d4bde20cf0b3a0f3f3359f9.jpg"
    row = ["5d4bde20cf0b3a0f3f3359f9", "Burundi", "bi", "af", "image", path]
    rows = [
        header,
        [*row, "['roofs']", "x-1", "26.994581", "['tile roof', 'thatch, thatched roof']",
         "[858, 853]"],
    ]  # fmt: skip
    file = write_csv(Path(tmp_path) / "images_v2_imagenet_train.csv", rows)
    images = read_dollar_street(file, labels="imagenet_synonyms")
    assert images.label_table()["label"].to_list() == ["thatch, thatched roof", "tile roof"]
    assert images.table["region"].to_list() == ["Africa"]
    assert read_dollar_street(file).label_table()["label"].to_list() == ["roofs"]
