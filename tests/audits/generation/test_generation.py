"""Audits of generation of what is there already, and what configurations may not say."""

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from equipoise import audits
from equipoise.audits.generation.designs import designs
from equipoise.core import AuditResult, ConfigError, DataError, Verdict

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "generation"
CLIP = "hf:openai/clip-vit-base-patch32"
CAPTIONS = {"subjects": ["doctor", "nurse"], "attributes": {"gender": ["male", "female"]}}
GENERATOR = {"model": "diffusers:a/b"}
GIVEN = {"table": "images.csv", "path": "file"}
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
    written, kept = (pa.parquet.read_table(one / "images.parquet") for one in (tmp_path, EXAMPLE))
    assert written.equals(kept)
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 230_000


def test_what_is_planted_is_found_and_nothing_else(result: AuditResult) -> None:
    found = {
        (f.subject.partition(",")[0], f.groups)
        for f in result.findings if f.verdict == Verdict.DISPARITY
    }  # fmt: skip
    assert {("caption similarity", "gender"), ("race shown", "race")} <= found
    assert found <= {
        ("caption similarity", "gender"), ("pair similarity", "gender"), ("race shown", "race"),
    }  # fmt: skip
    worst = next(f for f in result.findings if (f.subject, f.groups) == ("race shown", "race"))
    assert worst.direction == (
        "share rejected: lowest for White (4.4\u00a0%), highest for Middle Eastern (42.6\u00a0%)"
    )


def test_a_check_counts_once_in_a_family(result: AuditResult) -> None:
    """Where sets are of several kinds these are the leaves, and all of them together is none."""
    tested = [f for f in result.findings if f.metric == "rejection_gap"]
    both = [f for f in tested if (f.subject, f.groups) == ("content", "gender")]
    assert [f.family.value for f in both] == ["composite"]
    kinds = [f for f in tested if f.subject.startswith("content, sets of") and f.groups == "gender"]
    assert {f.family.value for f in kinds} == {"leaf"}
    assert sum(f.n for f in kinds) == both[0].n
    alone = [f for f in tested if f.subject == "content" and f.groups == "race"]
    assert [f.family.value for f in alone] == ["leaf"]


def test_only_sets_that_come_as_far_are_checked(result: AuditResult) -> None:
    stages = {row["stage"]: row for row in result.tables["stages"].to_pylist()
              if row["attributes"] == "all"}  # fmt: skip
    for finding in result.findings:
        if (finding.subject, finding.groups) == ("content", "gender"):
            assert finding.n == stages["content"]["images_before"]


def test_intervals_resample_caption_sets_where_there_are_ten() -> None:
    config: Any = audits.load_config(EXAMPLE / "audit.yaml")
    data: Any = audits.load(config, base=EXAMPLE)
    every = [*designs(config, data)]
    assert all(one.by_caption_set for one in every)
    one = every[0]
    assert len({*one.clusters.tolist()}) < len({*one.sets.tolist()})


def test_learned_and_given_thresholds_stand_together(result: AuditResult) -> None:
    rows = {
        (row["attributes"], row["attribute"]): row
        for row in result.tables["thresholds"].to_pylist()
    }
    learned = rows["race-gender", "race"]
    assert (learned["learned"], learned["threshold"], learned["labels"]) == (True, 6, 80)
    assert learned["accuracy"] > learned["majority"]
    given = rows["race-gender", "gender"]
    assert (given["learned"], given["threshold"], given["labels"]) == (False, 8, None)


def test_no_pictures_no_data_set(result: AuditResult) -> None:
    assert any("not written as a data set" in note for note in result.manifest.notes)
    assert "gallery" not in result.tables


def changed(**more: Any) -> Any:
    """The example with another image table or filter."""
    values = audits.load_config(EXAMPLE / "audit.yaml").model_dump()
    for name in ("captions", "generator"):
        values.pop(name)
    return audits.parse_config(values | more)


def test_labels_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    about = changed().filters.attributes

    def run(table: pa.Table) -> Any:
        labels = about.labels.model_copy(update={"table": table})
        shown = about.model_copy(update={"labels": labels})
        config = changed()
        filters = config.filters.model_copy(update={"attributes": shown})
        return audits.run(config.model_copy(update={"filters": filters}), base=EXAMPLE)

    with pytest.raises(DataError, match=r"row 1: 'perhaps' is neither yes nor no.*one of yes, t"):
        run(pa.table({"set": ["race-gender-cook#0"], "shows race": ["perhaps"]}))
    with pytest.raises(DataError, match="none of the 1 rows is about a set of images, such as 'x'"):
        run(pa.table({"set": ["x"], "shows race": ["yes"]}))
    with pytest.raises(ConfigError, match=r"race in sets of race-gender: labels: 1 yes of 1; exp"):
        run(pa.table({"set": ["race-gender-cook#0"], "shows race": ["yes"]}))


def test_a_text_without_a_vector_is_told() -> None:
    config = changed()
    texts = config.filters.similarity.captions.model_copy(
        update={"file": pa.csv.read_csv(EXAMPLE / "texts.csv").slice(0, 20)}
    )
    alike = config.filters.similarity.model_copy(update={"captions": texts})
    filters = config.filters.model_copy(update={"similarity": alike})
    with pytest.raises(DataError, match="there is no vector of 'A photo of a"):
        audits.run(config.model_copy(update={"filters": filters}), base=EXAMPLE)


def test_too_many_images_without_a_vector_are_an_error() -> None:
    config = changed()
    few = pa.parquet.read_table(EXAMPLE / "images.parquet").slice(0, 500)
    images = config.filters.similarity.images.model_copy(update={"file": few})
    alike = config.filters.similarity.model_copy(update={"images": images})
    filters = config.filters.model_copy(update={"similarity": alike})
    with pytest.raises(DataError, match=r"of 95\d images have nothing that a filter could go by"):
        audits.run(config.model_copy(update={"filters": filters}), base=EXAMPLE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "captions: required, and missing, where there are no 'images' made before"),
        ({"captions": CAPTIONS}, "generator: required, and missing"),
        (
            {"captions": CAPTIONS, "generator": GENERATOR, "attributes": ["gender"]},
            "attributes: given, and captions name their own",
        ),
        (
            {"captions": CAPTIONS, "generator": GENERATOR, "images": GIVEN},
            "images: given beside captions or a generator; expected one source",
        ),
        ({"images": GIVEN}, "attributes: required, and missing: which columns vary within sets"),
        (
            {"images": {"table": "a.csv"}, "attributes": ["gender"],
             "filters": {"similarity": SIMILARITY}},
            r"images.path: required, and missing: filters.similarity.model looks at the images",
        ),
        (
            {"images": {"table": "a.csv", "generations": "b"}, "attributes": ["gender"]},
            "'generations' or 'table': both are given",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"], "groups": ["gendre"]},
            r"groups\[0\]: given 'gendre'. Allowed: gender; did you mean 'gender'\?",
        ),
        (
            {"captions": {"source": "howard_2024", "prefixes": ["A"]}, "generator": GENERATOR},
            "'prefixes' is given, and howard_2024 has its own",
        ),
        ({"captions": {"subjects": ["a"]}, "generator": GENERATOR}, "'attributes' is missing"),
        (
            {"captions": {**CAPTIONS, "combinations": [["race"]]}, "generator": GENERATOR},
            r"the combination \['race'\] is not of different types",
        ),
        (
            {"captions": CAPTIONS, "generator": {"model": "hf:a/b"}},
            "expected a name such as 'diffusers:",
        ),
        (
            {"captions": CAPTIONS, "generator": {**GENERATOR, "shared": [0.9, 0.1]}},
            "expected the lower share first",
        ),
        (
            {"captions": CAPTIONS, "generator": {**GENERATOR, "height": 30}},
            "height is 30; expected a multiple of 8",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"], "filters": {"best": 1}},
            "best: it goes by the filter of similarity, which is not given",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"similarity": {"images": {"file": "a.npy"}}}},
            "expected 'model', or 'images' and 'captions': vectors in one space",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"attributes": {"model": CLIP}}},
            "how many images must show their attribute is not said",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"attributes": {"thresholds": {"gender": 1.0}}}},
            "expected 'model', 'images' with 'texts', or a filter of similarity",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"attributes": {"model": CLIP, "thresholds": {"gender": 1.0},
                                        "templates": "a person"}}},
            r"templates: 'a person'; expected one '\{\}'",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"], "filters": {"content": {"model": CLIP}}},
            "unsafe: required, and missing",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"content": {"unsafe": ["nsfw"]}}},
            "expected 'model', a classifier, or 'scores'",
        ),
        (
            {"images": GIVEN, "attributes": ["gender"],
             "filters": {"similarity": SIMILARITY,
                         "attributes": {"thresholds": {"gender": 1}}}},
            "expected a number of images from 2, or a share such as 0.75",
        ),
    ],
)  # fmt: skip
def test_what_a_configuration_may_not_say(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        audits.parse_config({"audit": "generation", **values})


def test_a_resolved_configuration_reads_back_as_the_same() -> None:
    for given in (
        {"images": GIVEN, "attributes": ["gender"], "filters": {"similarity": SIMILARITY}},
        {"captions": CAPTIONS, "generator": GENERATOR},
    ):
        config = audits.parse_config({"audit": "generation", **given})
        assert audits.parse_config(config.resolved) == config
