"""The audit of a data set detects planted disparities, and none in fair data."""

import json
import math
import re
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image
from scipy import stats

from equipoise import audits, report
from equipoise.audits.labels.dataset.config import DATA_SET
from equipoise.audits.labels.dataset.page import PAGE
from equipoise.core import ConfigError, DataError, InputError, MissingExtraError, Verdict
from equipoise.evidence import pictures
from equipoise.metrics import representation, representation_gap
from equipoise.report import GateRule, gate
from equipoise.report.result import first_screen
from equipoise.stats import Bootstrap

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "dataset"
EQUAL = {"shares": {"g": {"a": 1, "b": 1, "c": 1}}}


def run(table, base=Path(), **sections):
    data = {"images": {"table": table, "id": "id"}, "groups": ["g"]} | sections.pop("data", {})
    values = {"audit": "dataset", "data": data, "resampling": {"permutations": 400, "seed": 2}}
    return audits.run(audits.parse_config(values | sections), base=base)


PEOPLE = pl.DataFrame({
    "id": range(400),
    "g": ["a", "b", "c", "c"] * 100,
    "h": ["x"] * 200 + ["y"] * 200,
}).filter(~((pl.col("g") == "a") & (pl.col("h") == "y")))  # fmt: skip
"""Of all crossings of g and h but a and y."""


def fair(seed, n=600):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({
        "id": [f"i{k}" for k in range(n)], "g": rng.choice(["a", "b", "c"], n),
        "label": rng.choice(["x", "y", None], n, p=[0.5, 0.4, 0.1]),
    })  # fmt: skip


def verdicts(result):
    names = ("metric", "groups", "version", "subject", "group")
    return {
        tuple(getattr(finding, name) for name in names): finding.verdict
        for finding in result.findings
    }


def test_the_example_shows_exactly_the_planted_disparities():
    config = audits.load_config(EXAMPLE / "audit.yaml")
    result = audits.run(config, base=EXAMPLE)
    outcomes = verdicts(result)
    dark = "female, dark"
    pair = "gender × skin"
    assert outcomes["representation", pair, "default", dark, dark] == Verdict.DISPARITY
    assert outcomes["representation", "gender", "default", "female", "female"] != Verdict.DISPARITY
    assert outcomes["label_gap", "gender", "occupation", "nurse", ""] == Verdict.DISPARITY
    assert outcomes["label_gap", "gender", "occupation", "chef", ""] != Verdict.DISPARITY
    assert outcomes["missing_rate", "skin", "default", "occupation", ""] == Verdict.DISPARITY
    assert outcomes["iss_difference", "gender", "default", "female − male", ""] == Verdict.DISPARITY
    weather = [verdict for (_, _, version, *_), verdict in outcomes.items() if version == "weather"]
    assert weather
    assert Verdict.DISPARITY not in weather
    row = next(r for r in result.tables["representation"].to_pylist() if r["group"] == dark)
    assert (row["n"], row["share"], row["reference"]) == (40, 0.04, 0.15)
    assert row["ratio"] == pytest.approx(0.04 / 0.15)
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    labels = pl.DataFrame(result.tables["label_shares"]).filter(label="nurse", group="female")
    nurse = labels.row(0, named=True)
    assert nurse["share"] == pytest.approx(nurse["count"] / nurse["n"])
    assert nurse["difference"] == pytest.approx(nurse["share"] - nurse["rest"])
    assert nurse["ratio"] == pytest.approx(nurse["share"] / nurse["rest"])


def test_fair_data_show_no_disparity():
    alarms = 0
    for seed in range(24):
        result = run(fair(seed), data={"labels": ["label"]}, reference=EQUAL)
        alarms += any(finding.verdict == Verdict.DISPARITY for finding in result.findings)
    # At alpha 0.05, 6 of 24 or more happen in 0.1 % of series.
    assert alarms < 6


def test_another_data_set_is_a_sample_and_its_absent_groups_are_counted():
    other = fair(9, 300).with_columns(g=pl.lit("a"))
    result = run(fair(1), reference={"images": {"table": other, "id": "id"}})
    findings = {
        finding.subject: finding
        for finding in result.findings
        if finding.metric == "representation"
    }
    assert findings["a"].value == pytest.approx(math.log((fair(1)["g"] == "a").mean()))
    assert findings["b"].verdict == Verdict.NOT_ESTIMABLE
    assert "exchange their data sets" in findings["a"].null_drawn


def test_shares_are_among_the_groups_that_a_declared_reference_names():
    table = pl.DataFrame({"id": range(400), "g": ["a"] * 150 + ["b"] * 50 + ["other"] * 200})
    result = run(table, reference={"shares": {"g": {"a": 0.5, "b": 0.5}}})
    shares = {
        finding.group: finding.by_group[0].value
        for finding in result.findings
        if finding.metric == "representation"
    }
    assert shares == pytest.approx({"a": 0.75, "b": 0.25})
    assert {excluded.count for finding in result.findings for excluded in finding.excluded} == {200}
    assert any("other (200): 200 of 400" in text for text in result.manifest.warnings)
    assert not any("200 of 400" in note for note in result.manifest.notes)
    (conclusion,) = result.conclusions
    assert (conclusion.group, conclusion.group_value, conclusion.other_value) == ("b", 0.25, 0.5)
    zero = representation_gap(table["g"], {"a": 1, "b": 1, "other": 0})
    assert zero.value == pytest.approx(0.5)
    with pytest.raises(InputError, match="no image has a group of the reference"):
        representation_gap(table["g"], {"c": 1})


def test_without_a_reference_shares_have_no_verdict():
    result = run(fair(1))
    shares = [finding for finding in result.findings if finding.metric.startswith("representation")]
    assert {finding.verdict for finding in shares} == {Verdict.NONE}
    assert any("reference" in note for note in result.manifest.notes)


def test_two_groups_get_a_binomial_test_and_wilson_s_interval():
    women, n = 180, 400
    groups = np.repeat(["f", "m"], [women, n - women])
    draws = Bootstrap(10, 40_000, 0.95, 0.001)
    estimate = representation_gap(groups, {"f": 1, "m": 1}, resampling=draws)
    leaf = next(part for part in estimate.parts if part.subject == "f")
    exact = stats.binomtest(women, n)
    assert estimate.value == pytest.approx(abs(women / n - 0.5))
    assert leaf.value == pytest.approx(math.log(women / n / 0.5))
    assert leaf.p_value == pytest.approx(exact.pvalue, abs=0.006)
    ends = exact.proportion_ci(0.95, "wilson")
    assert (leaf.low, leaf.high) == pytest.approx([math.log(end / 0.5) for end in ends])


def test_intervals_of_groups_state_their_own_method():
    of_sample = {"shares": {"g": {"a": 120, "b": 90, "c": 90}}}
    methods = ("Wilson", "hybrid score interval (Donner & Zou)")
    for reference, method in zip((EQUAL, of_sample), methods, strict=True):
        by_metric = {f.metric: f for f in run(fair(1), reference=reference).findings}
        leaf, gap = by_metric["representation"], by_metric["representation_gap"]
        assert (leaf.method, leaf.interval) == (method, "confidence")
        assert gap.method.endswith("simultaneous over groups")
        shares = reference["shares"]["g"]
        assert representation(fair(1)["g"], shares, subject="a").method == method


def test_each_line_of_the_terminal_names_its_group():
    names = ("a, x", "b, x", "b, y", "c, x", "c, y")
    shares = dict(zip(names, (0.5, 0.05, 0.05, 0.1, 0.3), strict=True))
    reference = {"shares": {"g": {"a": 0.5, "b": 0.1, "c": 0.4}, "g × h": shares}}
    result = run(PEOPLE, data={"groups": ["g", ["g", "h"]]}, reference=reference)
    lines = [remark.line for s in first_screen(result, PAGE).statements for remark in s.others]
    of_shares = [line for line in lines if "of the reference" in line]
    assert len(of_shares) >= 2
    assert {line.partition(":")[0].strip("“”") for line in of_shares} <= {*"abc", *names}


def test_a_group_without_an_image_has_no_share_and_units_widen_intervals():
    groups = np.repeat(["f", "m"], 60)
    estimate = representation_gap(groups, {"f": 1, "m": 1, "x": 2})
    leaf = next(part for part in estimate.parts if part.subject == "x")
    assert leaf.value == leaf.low == -math.inf
    assert leaf.p_value < 0.01
    units = np.arange(120) // 4
    alone, together = (
        representation_gap(groups, {"f": 1, "m": 1}, units=unit_ids) for unit_ids in (None, units)
    )
    assert np.ptp(together.ends(0.95)) > 1.5 * np.ptp(alone.ends(0.95))
    with pytest.raises(InputError, match="at least 0"):
        representation_gap(groups, {"f": -1, "m": 1})


def test_sizes_and_duplicates_are_compared_by_group(tmp_path):
    rng = np.random.default_rng(3)
    rows = []
    for number in range(240):
        group = "ab"[number % 2]
        small = group == "a" and number % 4 == 0
        sides = (40, 40) if small else (260, 250)
        # Each third image of b is a copy.
        seed = 0 if group == "b" and number % 3 == 0 else number + 1
        pixels = np.random.default_rng(seed).integers(0, 255, (*sides[::-1], 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.bmp")
        rows.append({"id": str(number), "g": group, "file": f"{number}.bmp"})
    (tmp_path / "5.bmp").write_bytes(rng.bytes(20))
    pl.DataFrame(rows).write_csv(tmp_path / "images.csv")
    images = {"table": "images.csv", "id": "id", "path": "file"}
    result = run("", tmp_path, data={"images": images})
    findings = {
        finding.subject: finding
        for finding in result.findings
        if finding.metric == "image_defect_rate"
    }
    assert findings["under 50,176 pixels"].value == pytest.approx(0.5)
    assert findings["same bytes as another"].value == pytest.approx(40 / 120, abs=0.01)
    tested = [finding for name, finding in findings.items() if name != "unreadable"]
    assert {finding.verdict for finding in tested if finding.value} == {Verdict.DISPARITY}
    (elongated,) = (name for name in findings if name.startswith("longer than"))
    # No picture is elongated: a rule on the defect passes.
    assert findings[elongated].value == 0.0
    assert not findings[elongated].tested
    rules = [GateRule("image_defect_rate", of="difference", max=0.0, subject=elongated)]
    assert gate(result, rules).exit_code == 0
    assert findings["unreadable"].value == pytest.approx(1 / 120)
    facts = {row["group"]: row for row in result.tables["image_facts"].to_pylist()}
    assert (facts["b"]["n"], facts["b"]["width"], facts["b"]["height"]) == (119, 260, 250)
    for number in range(240):
        (tmp_path / f"{number}.bmp").write_bytes(b"no picture")
    with pytest.raises(DataError) as raised:
        run("", tmp_path, data={"images": images})
    assert "240" in raised.value.problem


def text_of(result):
    """Return the text of the report."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", report.render(result, PAGE))).split())


def images_to_add(result):
    return {(r["groups"], r["group"]): r["add"] for r in result.tables["images_to_add"].to_pylist()}


def test_images_to_add_give_each_group_its_share():
    sizes = {"Female, I-II": 115, "Female, III-IV": 24, "Female, V-VI": 14,
             "Male, I-II": 210, "Male, III-IV": 62, "Male, V-VI": 33}  # fmt: skip
    people = [name.split(", ") for name, n in sizes.items() for _ in range(n)]
    columns = dict(zip(("gender", "skin"), zip(*people, strict=True), strict=True))
    table = pl.DataFrame({"id": range(458), **columns})
    crossed = dict(zip(sizes, (0.2, 0.2, 0.1, 0.2, 0.2, 0.1), strict=True))
    shares = {"gender": {"Female": 1, "Male": 1}, "gender × skin": crossed}
    groups = {"groups": ["gender", "skin", ["gender", "skin"]]}
    result = run(table, data=groups, reference={"shares": shares})
    added = images_to_add(result)
    assert [added["gender × skin", name] for name in sizes] == [95, 186, 91, 0, 148, 72]
    assert added["gender", "Female"] == 152
    # Without a reference there is nothing to match.
    assert {name for name, _ in added} == {"gender", "gender × skin"}
    text = text_of(result)
    assert "with all 458 images kept, add 592 images: 95 of “Female, I-II”" in text
    line = "To match the reference, add 592 images: 186 of “Female, III-IV” and 4 more."
    assert first_screen(result, PAGE).advice == (line,)
    assert line in text
    of_sample = run(table, data=groups, reference={"images": {"table": table, "id": "id"}})
    assert {*images_to_add(of_sample).values()} == {0}
    assert first_screen(of_sample, PAGE).advice == ()


def test_unreadable_files_and_copies_are_named(tmp_path):
    rng = np.random.default_rng(1)
    for number in range(120):
        pixels = rng.integers(0, 255, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.bmp")
    for copy, original in ((1, 0), (2, 0), (11, 10)):
        (tmp_path / f"{copy}.bmp").write_bytes((tmp_path / f"{original}.bmp").read_bytes())
    for number in range(20, 45):
        (tmp_path / f"{number}.bmp").write_bytes(b"no picture")
    table = pl.DataFrame({
        "id": [f"i{k:03}" for k in range(120)], "g": ["a", "b"] * 60,
        "label": [*"xyzxyzxyzxxx"] * 10, "file": [f"{k}.bmp" for k in range(120)],
    }).with_columns(g=pl.when(pl.col("id") == "i011").then(pl.lit("a")).otherwise("g"))  # fmt: skip
    images = {"table": table, "id": "id", "path": "file"}
    result = run("", tmp_path, data={"images": images, "labels": ["label"]})
    rows = {row["image"]: row for row in result.tables["image_files"].to_pylist()}
    unreadable = {name for name, row in rows.items() if row["problem"] == "unreadable"}
    assert unreadable == {f"i{k:03}" for k in range(20, 45)}
    sets = {name: (row["set"], row["contradicts"]) for name, row in rows.items() if row["set"]}
    assert sets == {
        "i000": (1, "g, label"), "i001": (1, "g, label"), "i002": (1, "g, label"),
        "i010": (2, ""), "i011": (2, ""),
    }  # fmt: skip
    text = text_of(result)
    assert "25 files can't be read: i020, " in text
    assert "i039 and 5 more." in text
    assert "5 images of 2 pictures have the same bytes as another, the originals included" in text
    contradicting = "contradict each other in groups or labels: i000, i001 and i002."
    assert contradicting in text


def test_a_plan_names_the_extra_that_opens_images(tmp_path, monkeypatch):
    table = fair(1).with_columns(file=pl.format("{}.bmp", "id"))
    images = {"table": table, "id": "id", "path": "file"}
    for name in table["file"]:
        (tmp_path / name).touch()
    values = {"audit": "dataset", "data": {"images": images, "groups": ["g"]}}
    monkeypatch.setattr(pictures, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pillow"):
        audits.plan(audits.parse_config(values), base=tmp_path)
    unopened = values | {"metrics": {"image_defect_rate": False}}
    assert audits.plan(audits.parse_config(unopened), base=tmp_path).details["images"] == 600


def test_the_shares_of_intersections_in_the_documentation_are_read():
    page = (EXAMPLE.parents[1] / "docs" / "audits" / "dataset.md").read_text("utf-8")
    block = next(text for text in page.split("```yaml") if "gender × skin_type" in text)
    sections = yaml.safe_load(block.split("```")[0])
    crossed = sections["reference"]["shares"]["gender × skin_type"]
    people = [name.split(", ") for name in crossed for _ in range(30)]
    columns = dict(zip(("gender", "skin_type"), zip(*people, strict=True), strict=True))
    table = pl.DataFrame({"id": range(len(people)), **columns})
    result = run(table, data={"groups": ["gender", "skin_type", [*columns]]}, **sections)
    shares = [row for row in result.tables["representation"].to_pylist() if row["group"] in crossed]
    assert {row["group"]: row["reference"] for row in shares} == pytest.approx(crossed)


def test_labels_of_a_data_set_are_compared_one_by_one(tmp_path):
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 640, "height": 480} for k in range(200)]
    captions = [{"id": k, "image_id": k, "caption": f"a {'woman' if k % 2 else 'man'}"}
                for k in range(200)]  # fmt: skip
    kinds = [{"id": 1, "name": "handbag"}, {"id": 2, "name": "chair"}]
    instances = [{"id": k, "image_id": k, "category_id": 1 if k % 2 and k % 10 else 2,
               "bbox": [0, 0, 9, 9], "iscrowd": 0} for k in range(200)]  # fmt: skip
    files = {
        "captions": {"images": images, "annotations": captions},
        "instances": {"images": images, "annotations": instances, "categories": kinds},
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    data = {
        "images": {"format": "coco", "files": {name: f"{name}.json" for name in files},
                   "rules": [{"rule": "hall_captions"}]},
        "groups": ["gender"],
    }  # fmt: skip
    result = run("", tmp_path, data=data)
    findings = {
        finding.subject: finding for finding in result.findings if finding.metric == "label_gap"
    }
    assert {*findings} == {"handbag", "chair"}
    assert findings["handbag"].value == 1.0
    assert findings["handbag"].verdict == Verdict.DISPARITY
    # Without files the sizes are those that the data set states.
    assert {row["width"] for row in result.tables["image_facts"].to_pylist()} == {640}


def test_a_reference_of_other_names_is_refused():
    with pytest.raises(DataError) as raised:
        run(fair(1), reference={"shares": {"g": {"A": 1, "B": 1}}})
    assert "A" in raised.value.problem


@pytest.mark.parametrize(
    ("groups", "reference"),
    [
        (["g"], {"shares": {"g": {"a": 0.2, "b": 0.3, "cc": 0.5}}}),
        (["g"], {"table": pl.DataFrame({"g": ["a", "b", "cc"], "n": [2, 3, 5]}), "count": "n"}),
        (["g"], {"images": {"table": pl.DataFrame({"id": range(3), "g": [*"abC"]}), "id": "id"}}),
        ([["g", "h"]], {"shares": {"g × h": {
            "a, x": 0.2, "b, x": 0.2, "b, y": 0.2, "c, x": 0.2, "cc, y": 0.2}}}),
    ],
)  # fmt: skip
def test_one_misspelt_group_of_a_reference_is_refused(groups, reference):
    with pytest.raises(DataError) as raised:
        run(PEOPLE, data={"groups": groups}, reference=reference, models={})
    wrong, right = ("'C'", "'c'") if "images" in reference else ("'cc", "'c")
    assert wrong in raised.value.problem
    assert f"did you mean {right}" in raised.value.problem


def test_a_crossing_without_an_image_is_no_misspelt_group():
    shares = {"a, x": 0.3, "a, y": 0.2, "b, x": 0.2, "c, x": 0.3}
    result = run(PEOPLE, data={"groups": [["g", "h"]]}, reference={"shares": {"g × h": shares}})
    leaf = next(f for f in result.findings if f.metric == "representation" and f.group == "a, y")
    assert leaf.value == -math.inf
    (warning,) = (text for text in result.manifest.warnings if "no share" in text)
    assert "b, y (50), c, y (100)" in warning


@pytest.mark.parametrize("shares", [(0.4, 0.4, 0.3), (40, 40, 30), (0.4, 0.2, 0.2), (50, 40, 5)])
def test_shares_that_do_not_sum_to_one_are_refused(shares):
    reference = dict(zip("abc", shares, strict=True))
    with pytest.raises(DataError, match=f"sum to {sum(shares):g}"):
        run(fair(1), reference={"shares": {"g": reference}})
    with pytest.raises(InputError, match="sum to"):
        representation_gap(fair(1)["g"], reference)
    if sum(shares) > 2:
        run(fair(1), reference={"shares": {"g": reference}, "kind": "sample"})


@pytest.mark.parametrize("shares", [(1, 1, 1), (0.333, 0.333, 0.333), (33, 33, 33), (400, 10, 3)])
def test_ratios_rounded_shares_and_counts_are_allowed(shares):
    run(fair(1), reference={"shares": {"g": dict(zip("abc", shares, strict=True))}})


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"reference": {}}, "reference"),
        ({"reference": {"table": "t.csv"}}, "count"),
        ({"reference": {"shares": {"h": {"a": 1}}}}, "reference.shares"),
        ({"models": {DATA_SET: {"file": "e.npy"}}}, "models"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(sections, key):
    with pytest.raises(ConfigError, match=key):
        run(fair(1), **sections)


def albums(seed, n):
    """Images of persons in albums, one to four persons in each and ten images of each."""
    rng = np.random.default_rng(seed)
    album = np.repeat(np.arange(n), rng.integers(1, 5, n))
    persons = {"album": album, "g": rng.choice([*"ab"], len(album)),
               "label": rng.choice([*"xyz"], len(album))}  # fmt: skip
    table = pl.DataFrame({name: np.repeat(values, 10) for name, values in persons.items()})
    return table.with_columns(id=pl.format("i{}", pl.int_range(pl.len())))


def test_order_of_the_rows_of_units_does_not_matter():
    table = albums(1, 30)
    of_albums = {"labels": ["label"], "unit": "album"}
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=3)
    first, second = (run(rows, data=of_albums) for rows in (table, shuffled))
    assert repr(first.findings) == repr(second.findings)
    # Also where ids, which order rows, are of another order than albums.
    other_ids = shuffled.with_columns(id=pl.format("i{}", pl.int_range(pl.len())))
    assert repr(run(other_ids, data=of_albums).findings) == repr(first.findings)


def test_three_albums_are_not_enough_data():
    rows = albums(2, 3)
    table = rows.with_columns(g=pl.Series(np.resize([*"ab"], len(rows))))
    result = run(table, data={"labels": ["label"], "unit": "album"})
    tested = {"cramers_v", "label_gap"}
    judged = [finding for finding in result.findings if finding.metric in tested]
    assert {finding.verdict for finding in judged} == {Verdict.INCONCLUSIVE}
    assert all("a has 3, b has 3" in finding.reason for finding in judged)
    assert all(math.isnan(finding.p_value) for finding in judged)
    # What was measured is shown.
    assert all(not math.isnan(finding.value) for finding in judged)


def test_labels_of_a_small_group_are_not_compared_and_its_share_is():
    table = pl.DataFrame({
        "id": range(320), "g": ["a"] * 160 + ["b"] * 140 + ["c"] * 20, "label": [*"xxyz"] * 80,
    })  # fmt: skip
    section = {"images": {"table": table, "id": "id"}, "groups": ["g"], "labels": ["label"]}
    config = audits.parse_config({"audit": "dataset", "data": section, "reference": EQUAL})
    rows = {row["group"]: row for row in audits.plan(config).groups}
    assert (rows["c"]["labels_compared"], rows["c"]["note"]) == (False, "fewer than 30")
    assert "compared" not in rows["c"]
    result = audits.run(config)
    assert verdicts(result)["representation", "g", "default", "c", "c"] == Verdict.DISPARITY
    assert any("labels of groups with fewer than 30 images are not compared: c (20)" in note
               for note in result.manifest.notes)  # fmt: skip
    assert "counted but labels not compared: c (n = 20)" in text_of(result)


def test_a_group_of_few_units_is_left_out_and_named():
    table = albums(3, 60)
    rare = table.with_columns(g=pl.when(pl.col("album") < 3).then(pl.lit("c")).otherwise("g"))
    result = run(rare, data={"labels": ["label"], "unit": "album"})
    gap = next(finding for finding in result.findings
               if (finding.metric, finding.subject) == ("label_gap", ""))  # fmt: skip
    assert [value.group for value in gap.by_group if not value.note] == ["a", "b"]
    assert any("fewer than 10 units are not compared: c (3)" in note
               for note in result.manifest.notes)  # fmt: skip


def represented(result):
    """Return the finding of the largest difference from the reference."""
    return next(f for f in result.findings if f.metric == "representation_gap")


COUNTED = {"g": {"a": 120, "b": 90, "c": 90}}


@pytest.mark.parametrize(
    ("reference", "size"),
    [
        ({"shares": COUNTED}, 300),
        ({"shares": COUNTED, "kind": "sample"}, 300),
        ({"shares": COUNTED, "kind": "census"}, 0),
        ({"shares": {"g": {"a": 40, "b": 30, "c": 30}}}, 0),
        ({"shares": {"g": {"a": 40, "b": 30, "c": 30}}, "kind": "sample"}, 100),
        ({"shares": {"g": {"a": 0.4, "b": 0.3, "c": 0.3}}}, 0),
        ({"table": pl.DataFrame({"g": [*"abc"], "n": [120, 90, 90]}), "count": "n"}, 300),
    ],
)
def test_counts_of_a_reference_are_a_sample_unless_they_are_exact(reference, size):
    result = run(fair(1), reference=reference)
    leaf = next(f for f in result.findings if f.metric == "representation" and f.group == "a")
    assert leaf.by_group[1].n == size
    assert (leaf.by_group[1].low < leaf.by_group[1].value) == (size > 0)
    stated = "kind" in reference or not size
    assert any("kind: census" in note for note in result.manifest.notes) != stated


def test_few_counted_people_widen_the_interval_and_raise_p():
    gaps = [
        represented(run(fair(1), reference={"shares": COUNTED, "kind": kind}))
        for kind in ("sample", "census")
    ]
    widths = [gap.ci_high - gap.ci_low for gap in gaps]
    assert widths[0] > 1.3 * widths[1]
    assert gaps[0].p_value > gaps[1].p_value


def test_a_sample_needs_counts():
    with pytest.raises(DataError, match="census"):
        run(fair(1), reference={"shares": {"g": {"a": 0.5, "b": 0.5}}, "kind": "sample"})
    other = {"images": {"table": fair(9), "id": "id"}, "kind": "sample"}
    with pytest.raises(ConfigError, match="images are a sample"):
        run(fair(1), reference=other)


def test_images_outside_the_reference_are_in_a_note_and_shares_have_one_base():
    table = pl.DataFrame({
        "id": range(1000), "g": ["man"] * 500 + ["woman"] * 220 + ["none of these"] * 280,
    })  # fmt: skip
    result = run(table, reference={"shares": {"g": {"man": 0.5, "woman": 0.5}}})
    shares = {
        finding.group: (finding.by_group[0].value, finding.n)
        for finding in result.findings
        if finding.metric == "representation"
    }
    assert shares == {"man": (500 / 720, 720), "woman": (220 / 720, 720)}
    assert any("280" in text for text in result.manifest.warnings)
    (conclusion,) = (c for c in result.conclusions if c.real)
    assert (conclusion.group, conclusion.group_value) == ("woman", 220 / 720)
