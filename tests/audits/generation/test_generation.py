"""Audits of generation of images that exist, and errors of configurations."""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from equipoise import audits, report
from equipoise.cli.pages import page_of
from equipoise.core import AuditResult, ConfigError, DataError, Verdict
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "generation"
CLIP = "hf:openai/clip-vit-base-patch32"
CAPTIONS = {"subjects": ["doctor", "nurse"], "attributes": {"gender": ["male", "female"]}}
GENERATED = {"captions": CAPTIONS, "generator": {"model": "diffusers:a/b"}}
TABLE = {"images": {"table": "images.csv", "path": "file"}, "attributes": ["gender"]}
SIMILARITY = {"model": CLIP}


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)


def test_the_example_is_what_its_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("make_generation", EXAMPLE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path)
    module.main()
    for file in ("images.csv", "texts.csv", "content.csv", "labels.csv"):
        assert (tmp_path / file).read_bytes() == (EXAMPLE / file).read_bytes(), file
    written, kept = (
        pa.parquet.read_table(folder / "images.parquet") for folder in (tmp_path, EXAMPLE)
    )
    assert written.equals(kept)
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 230_000


def test_the_planted_disparities_are_the_only_disparities(result: AuditResult) -> None:
    disparities = {
        (finding.subject.partition(",")[0], finding.groups): finding
        for finding in result.findings
        if finding.verdict == Verdict.DISPARITY
    }
    planted = {("caption similarity", "gender"), ("race shown", "race")}
    assert planted <= {*disparities} <= planted | {("pair similarity", "gender")}
    shares = {
        part.group: round(part.value, 3)
        for finding in result.findings
        if (finding.subject, finding.groups) == ("race shown", "race")
        for part in finding.by_group
    }
    assert min(shares, key=shares.__getitem__) == "White"
    assert max(shares, key=shares.__getitem__) == "Middle Eastern"
    assert (shares["White"], shares["Middle Eastern"]) == (0.044, 0.426)


def test_combinations_of_attributes_are_leaves_and_all_sets_a_composite(
    result: AuditResult,
) -> None:
    gaps = [finding for finding in result.findings if finding.metric == "rejection_gap"]
    family = {(gap.subject, gap.groups): gap.family.value for gap in gaps}
    whole = next(gap for gap in gaps if (gap.subject, gap.groups) == ("content", "gender"))
    kinds = [
        gap for gap in gaps if gap.groups == "gender" and gap.subject.startswith("content, sets of")
    ]
    assert whole.family.value == "composite"
    assert {gap.family.value for gap in kinds} == {"leaf"}
    assert sum(gap.n for gap in kinds) == whole.n
    assert family["content", "race"] == "leaf"


def test_only_sets_that_reach_a_stage_are_checked(result: AuditResult) -> None:
    (stage,) = (
        row
        for row in result.tables["stages"].to_pylist()
        if (row["attributes"], row["stage"]) == ("all", "content")
    )
    (gap,) = (
        finding
        for finding in result.findings
        if (finding.subject, finding.groups) == ("content", "gender")
    )
    assert gap.n == stage["images_before"]
    # From ten sets of captions on these are resampled, not candidates.
    assert gap.unit == "caption set"


def test_learned_and_fixed_thresholds_stand_together(result: AuditResult) -> None:
    rows = {
        (row["attributes"], row["attribute"]): row
        for row in result.tables["thresholds"].to_pylist()
    }
    learned, fixed = rows["race-gender", "race"], rows["race-gender", "gender"]
    assert (learned["learned"], learned["threshold"], learned["labels"]) == (True, 6, 80)
    assert learned["accuracy"] > learned["majority"]
    assert (fixed["learned"], fixed["threshold"], fixed["labels"]) == (False, 8, None)


def test_the_page_of_the_example(result: AuditResult) -> None:
    html = report.render(result, page_of(result))
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(html))


def changed(*keys: str, **update: Any) -> Any:
    """Return the example's config with a section of its filters changed."""
    config: Any = audits.load_config(EXAMPLE / "audit.yaml")
    sections = [config.filters]
    for key in keys:
        sections.append(getattr(sections[-1], key))
    section = sections.pop().model_copy(update=update)
    for key, owner in zip(reversed(keys), reversed(sections), strict=True):
        section = owner.model_copy(update={key: section})
    return config.model_copy(update={"filters": section})


LABELLED = ("attributes", "labels")


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ({"set": ["race-gender-cook#0"], "shows race": ["perhaps"]}, ("shows race", 1)),
        ({"set": ["x"], "shows race": ["yes"]}, ("set", None)),
    ],
)
def test_labels_that_cannot_be_read(
    rows: Mapping[str, list[str]], place: tuple[str, int | None]
) -> None:
    with pytest.raises(DataError) as caught:
        audits.load(changed(*LABELLED, table=pa.table(rows)), base=EXAMPLE)
    assert (caught.value.column, caught.value.row) == place


def test_too_few_labels() -> None:
    table = pa.table({"set": ["race-gender-cook#0"], "shows race": ["yes"]})
    with pytest.raises(ConfigError, match=r"^filters\.attributes\..*labels: 1 yes of 1"):
        audits.load(changed(*LABELLED, table=table), base=EXAMPLE)


def test_a_text_without_a_vector() -> None:
    table = pa.csv.read_csv(EXAMPLE / "texts.csv").slice(0, 20)
    with pytest.raises(DataError) as caught:
        audits.load(changed("similarity", "captions", file=table), base=EXAMPLE)
    assert str(caught.value.file).startswith("similarity, captions")


def test_too_many_images_without_a_vector() -> None:
    table = pa.parquet.read_table(EXAMPLE / "images.parquet").slice(0, 500)
    with pytest.raises(DataError) as caught:
        audits.load(changed("similarity", "images", file=table), base=EXAMPLE)
    assert re.match(r"\d+ of 95\d images", caught.value.problem)
    assert "extraction.max_failures" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({}, "captions: required"),
        ({"captions": CAPTIONS}, "generator: required"),
        (GENERATED | {"attributes": ["gender"]}, "attributes: "),
        (GENERATED | {"images": TABLE["images"]}, "images: "),
        ({"images": TABLE["images"]}, "attributes: required"),
        (
            TABLE | {"images": {"table": "a.csv"}, "filters": {"similarity": SIMILARITY}},
            r"images\.path: required.*filters\.similarity\.model",
        ),
        (TABLE | {"images": {"table": "a", "generations": "b"}}, "'generations' or 'table'"),
        (TABLE | {"groups": ["gendre"]}, r"groups\[0\]: .*'gendre'.*did you mean 'gender'"),
        (
            TABLE | {"gate": [{"metric": "rejection_gap", "max": 0.1, "groups": ["race"]}]},
            r"gate\[0\]\.groups: ",
        ),
        (
            GENERATED | {"captions": {"source": "howard_2024", "prefixes": ["A"]}},
            "captions: 'prefixes'",
        ),
        (GENERATED | {"captions": {"subjects": ["a"]}}, "captions: 'attributes'"),
        (GENERATED | {"captions": CAPTIONS | {"combinations": [["race"]]}}, r"captions: .*race"),
        (GENERATED | {"generator": {"model": "hf:a/b"}}, r"generator\.model: "),
        (
            GENERATED | {"generator": {"model": "diffusers:a/b", "shared": [0.9, 0.1]}},
            "generator: shared: ",
        ),
        (
            GENERATED | {"generator": {"model": "diffusers:a/b", "height": 30}},
            "generator: .*height is 30",
        ),
        (TABLE | {"filters": {"best": 1}}, "filters: best: "),
        (
            TABLE | {"filters": {"similarity": {"images": {"file": "a.npy"}}}},
            r"filters\.similarity: ",
        ),
        (
            TABLE | {"filters": {"attributes": {"model": CLIP}}},
            r"filters\.attributes: .*'thresholds'",
        ),
        (
            TABLE | {"filters": {"attributes": {"thresholds": {"gender": 1.0}}}},
            "filters: attributes: ",
        ),
        (
            TABLE
            | {
                "filters": {
                    "attributes": {
                        "model": CLIP,
                        "thresholds": {"gender": 1.0},
                        "templates": "a person",
                    }
                }
            },
            r"filters\.attributes: templates: ",
        ),
        (TABLE | {"filters": {"content": {"model": CLIP}}}, r"filters\.content\.unsafe: "),
        (TABLE | {"filters": {"content": {"unsafe": ["nsfw"]}}}, r"filters\.content: .*'scores'"),
        (
            TABLE
            | {"filters": {"similarity": SIMILARITY, "attributes": {"thresholds": {"gender": 1}}}},
            r"filters\.attributes\.thresholds.*a number of images from 2",
        ),
    ],
)
def test_a_wrong_configuration_names_its_key(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        audits.parse_config({"audit": "generation", **values})


@pytest.mark.parametrize("values", [TABLE | {"filters": {"similarity": SIMILARITY}}, GENERATED])
def test_a_resolved_configuration_reads_back_as_the_same(values: dict[str, Any]) -> None:
    config = audits.parse_config({"audit": "generation", **values})
    assert audits.parse_config(config.resolved) == config
