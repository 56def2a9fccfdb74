"""Audits of generation of images that exist, and configurations that are refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from equipoise import audits, report
from equipoise.cli.runs import page_of
from equipoise.core import ConfigError, DataError, Verdict
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "generation"
CAPTIONS = {"subjects": ["doctor", "nurse"], "attributes": {"gender": ["male", "female"]}}
GENERATED = {"captions": CAPTIONS, "generator": {"model": "diffusers:a/b"}}
TABLE = {
    "images": {"table": "images.csv", "path": "file"}, "attributes": ["gender"]
}  # fmt: skip
CLIP = {"model": "hf:openai/clip-vit-base-patch32"}


@pytest.fixture(scope="module")
def result():
    return audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)


def test_the_page_of_the_example(result):
    html = report.render(result, page_of(result))
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(html))


def test_the_planted_disparities_are_the_only_disparities(result):
    gaps = {(f.subject, f.groups): f for f in result.findings if f.aggregate == "difference"}
    disparities = {
        (subject.partition(",")[0], groups)
        for (subject, groups), gap in gaps.items()
        if gap.verdict == Verdict.DISPARITY
    }
    planted = {("caption similarity", "gender"), ("race shown", "race")}
    assert planted <= disparities <= planted | {("pair similarity", "gender")}
    shares = {part.group: part.value for part in gaps["race shown", "race"].by_group}
    assert min(shares, key=shares.__getitem__) == "White"
    assert shares["White"] == pytest.approx(0.044, abs=5e-4)
    assert shares["Middle Eastern"] == max(shares.values()) == pytest.approx(0.426, abs=5e-4)
    # Combinations of attributes are leaves, and all sets a composite.
    overall = gaps["content", "gender"]
    parts = [gap for key, gap in gaps.items() if key[0].startswith("content, sets of")]
    gender_gaps = [gap for gap in parts if gap.groups == "gender"]
    assert (overall.family.value, {gap.family.value for gap in gender_gaps}) == (
        "composite",
        {"leaf"},
    )
    assert sum(gap.n for gap in gender_gaps) == overall.n
    (stage,) = (
        row
        for row in result.tables["stages"].to_pylist()
        if (row["attributes"], row["stage"]) == ("all", "content")
    )
    assert overall.n == stage["images_before"]
    # From ten sets of captions on these are resampled, not candidates.
    assert overall.unit == "caption set"


def labels(name, value):
    table = pa.table({"set": [name], "shows race": [value]})
    return ("filters", "attributes", "labels"), {"table": table}


def part(key, change):
    read = pa.csv.read_csv if key == "captions" else pa.parquet.read_table
    file = EXAMPLE / ("texts.csv" if key == "captions" else "images.parquet")
    return ("filters", "similarity", key), {"file": change(read(file))}


@pytest.mark.parametrize(
    ("change", "column", "row", "words"),
    [
        (labels("race-gender-cook#0", "perhaps"), "shows race", 1, "perhaps"),
        (labels("x", "yes"), "set", None, "'x'"),
        (labels("race-gender-cook#0", "yes"), None, None, "labels: 1 yes of 1"),
        (part("captions", lambda rows: rows[:20]), None, None, "similarity, captions"),
        (
            part("captions", lambda rows: rows.drop_columns(rows.column_names[-1])),
            None,
            None,
            "in one space",
        ),
        (part("images", lambda rows: rows[:500]), None, None, "extraction.max_failures"),
    ],
)
def test_data_that_cannot_be_used(change, column, row, words):
    def changed(section, keys):
        update = {keys[0]: changed(getattr(section, keys[0]), keys[1:])} if keys else change[1]
        return section.model_copy(update=update)

    config = changed(audits.load_config(EXAMPLE / "audit.yaml"), change[0])
    with pytest.raises((DataError, ConfigError)) as caught:
        audits.prepare(config, base=EXAMPLE)
    assert words in str(caught.value)
    assert getattr(caught.value, "column", None) == column
    assert getattr(caught.value, "row", None) == row


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"captions": CAPTIONS}, "generator: required"),
        (GENERATED | {"attributes": ["gender"]}, "attributes: "),
        (GENERATED | {"images": TABLE["images"]}, "images: "),
        (TABLE | {"images": {"table": "a.csv"}, "filters": {"similarity": CLIP}},
         r"images\.path: required.*filters\.similarity\.model"),
        (TABLE | {"images": {"table": "a", "generations": "b"}}, "'generations' or 'table'"),
        (GENERATED | {"captions": {"source": "howard_2024", "prefixes": ["A"]}}, "'prefixes'"),
        (GENERATED | {"captions": {"subjects": ["a"]}}, "captions: .*'attributes'"),
        (GENERATED | {"captions": CAPTIONS | {"combinations": [["race"]]}}, r"captions: .*race"),
        (GENERATED | {"generator": {"model": "diffusers:a", "shared": [0.9, 0.1]}}, "shared: "),
    ],
)  # fmt: skip
def test_a_configuration_names_its_key(values, key):
    with pytest.raises(ConfigError, match=key):
        audits.parse_config({"audit": "generation", **values})


def test_subjects_are_read_from_a_table(tmp_path):
    (tmp_path / "jobs.csv").write_text("text,list\nbaker,a\npilot,a\n")
    captions = "captions: {subjects: jobs.csv, attributes: {gender: [male, female]}}"
    generator = 'generator: {model: "diffusers:a"}'
    filters = 'filters: {similarity: {model: "hf:a"}}'
    config = tmp_path / "c.yaml"
    config.write_text("\n".join(["audit: generation", captions, generator, filters]))
    assert audits.load_config(config).captions.subjects == ("baker", "pilot")
    (tmp_path / "jobs.csv").write_text("text,list\nbaker,a\n,b\n")
    with pytest.raises(DataError) as caught:
        audits.load_config(config)
    assert (caught.value.column, caught.value.row) == ("text", 2)


ALL = {"thresholds": {"gender": 1.0}}


@pytest.mark.parametrize(
    ("filters", "key"),
    [
        ({"similarity": {"images": {"file": "a.npy"}}}, "similarity: "),
        ({"attributes": CLIP}, "'thresholds'"),
        ({"attributes": ALL}, "attributes: "),
        ({"attributes": CLIP | ALL | {"templates": "a person"}}, "templates: "),
        ({"content": CLIP}, r"content\.unsafe: "),
        ({"content": {"unsafe": ["nsfw"]}}, "content: .*'scores'"),
        ({"similarity": CLIP, "attributes": {"thresholds": {"gender": 1}}}, "attributes.*from 2"),
    ],
)
def test_a_filter_names_its_key(filters, key):
    with pytest.raises(ConfigError, match=rf"filters.*{key}"):
        audits.parse_config({"audit": "generation", **TABLE, "filters": filters})
