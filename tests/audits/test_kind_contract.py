"""What every kind of audit promises, on its example with few draws and on pictures with a model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
import yaml

import equipoise
from audits.comparisons import images as predicted
from audits.live_models import worlds
from audits.live_models.fakes import Answerer
from audits.live_models.worlds import CHOSEN, IMAGES, TEXTS
from equipoise import audits, report
from equipoise.audits.findings import fact_of
from equipoise.audits.kind import audit_of
from equipoise.cli.runs import page_of
from equipoise.core import AuditResult, DataError, Family, Verdict
from equipoise.discovery import KINDS
from equipoise.metrics.spec import spec_of_finding
from equipoise.report import GateRule, gate
from equipoise.report.words import has_shares

QUICK = {"replicates": 50, "permutations": 100}

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DOCS = EXAMPLES.parent / "docs" / "audits"


class Audited(NamedTuple):
    """A config, its base folder, what `run` returned, and a second result of the same config."""

    config: Any
    base: Path
    result: AuditResult
    second: AuditResult


@pytest.fixture(scope="module", params=KINDS)
def audited(request):
    base = EXAMPLES / request.param
    if request.param == "predictions":
        values = {
            "audit": "predictions",
            "data": {"table": predicted(300), "id": "id", "target": "kind", "groups": ["place"]},
            "models": {"poor": {"table": predicted(300), "prediction": "poor"}},
        }
    else:
        values = yaml.safe_load((base / "audit.yaml").read_text())
    values["resampling"] = values.get("resampling", {}) | {"replicates": 20, "permutations": 200}
    config = audits.parse_config(values)
    return Audited(config, base, *(audits.run(config, base=base) for _ in range(2)))


def test_every_metric_can_be_switched_off_by_its_name(audited):
    section, kind = type(audited.config.metrics), audited.config.audit
    assert audited.result.findings
    for finding in audited.result.findings:
        off = section.model_validate({finding.metric: False}, context={"audit": kind})
        unmeasured = finding.metric in {*section.switched()} - {*off.measured}
        assert unmeasured or not off.reports(fact_of(finding))
        assert audited.config.metrics.reports(fact_of(finding))


def test_the_same_config_gives_the_same_bytes_and_the_page_of_the_docs(audited, tmp_path):
    folders = tmp_path / "first", tmp_path / "again"
    for folder, result in zip(folders, audited[2:], strict=True):
        folder.mkdir()
        report.write(result, folder, page_of(result))
    for name in ("findings.parquet", "findings.json"):
        first, second = ((folder / name).read_bytes() for folder in folders)
        assert first == second, name
    read = report.read(folders[0])
    assert [repr(finding) for finding in read.findings] == [
        repr(finding) for finding in audited.result.findings
    ]
    page = (folders[0] / "report.html").read_text(encoding="utf-8")
    kind = audited.config.audit
    documented = (DOCS / f"{kind}.md").read_text(encoding="utf-8") if kind != "predictions" else ""
    sections = [make(audited.result) for make in page_of(audited.result).sections]
    assert any(sections)
    for section in filter(None, sections):
        assert f'id="{section.id}"' in page
        assert kind == "predictions" or f"“{section.title}”" in documented


def test_a_loaded_result_has_the_same_images_behind_its_findings(audited, tmp_path):
    audited.result.save(tmp_path / "run")
    loaded = equipoise.load(tmp_path / "run")
    findings = {(f.model, f.groups, f.subject, f.version): f for f in audited.result.findings}
    for finding in [*findings.values()][:40]:
        images = audited.result.images(finding)
        assert loaded.images(finding).equals(images)
        assert loaded.images(finding).schema == images.schema
    sizes = [audited.result.images(finding).height for finding in findings.values()]
    assert min(sizes) > 0


def test_the_plan_names_the_models_and_groups_that_the_run_has(audited):
    planned, result = audits.plan(audited.config, base=audited.base), audited.result
    named = {row["model"] for row in planned.details.get("models", ())}
    assert named <= {finding.model for finding in result.findings}
    sizes = result.tables.get("group_sizes")
    rows = [] if sizes is None else sizes.to_pylist()
    for planned_row in planned.groups:
        name = planned_row["group"]
        # Diversity measures groups within concepts: "street: Peru" for "Peru".
        matching = [r for r in rows if r["groups"] == planned_row["groups"]
               and (r["group"] == name or r["group"].endswith(f": {name}"))]  # fmt: skip
        n = planned_row[audit_of(audited.config.audit).items]
        assert not name or sum(r["n"] for r in matching) == n
        if len(matching) == 1:
            name = "labels_compared" if "labels_compared" in planned_row else "compared"
            assert matching[0]["usable"] == planned_row[name]
    assert planned.seconds > 0
    assert not planned.runs


def test_findings_have_numbers_or_a_reason(audited):
    assert audited.result.findings
    for finding in audited.result.findings:
        if finding.verdict in (Verdict.NONE, Verdict.NOT_ESTIMABLE):
            assert finding.reason, finding
        elif finding.family is Family.FOLD:
            assert not np.isnan((finding.value, finding.q_value)).any(), finding
            assert finding.reason.startswith("the same fact as "), finding
        else:
            numbers = finding.value, finding.chance, finding.p_value, finding.q_value
            assert not np.isnan(numbers).any(), finding
            assert finding.n > 0
            assert all((finding.method, finding.null, finding.citation)), finding


def test_findings_end_in_the_range_of_their_metrics_which_list_the_kind(audited):
    for finding in audited.result.findings:
        spec = spec_of_finding(finding)
        assert audited.config.audit in spec.kinds, finding
        least, most = (-np.inf, np.inf) if spec.range_note else spec.range
        for end in (finding.ci_low, finding.ci_high):
            assert np.isnan(end) or least <= end <= most, finding
        for part in finding.by_group if has_shares(finding) else ():
            assert np.isnan(part.low) or 0.0 <= part.low <= part.high <= 1.0, finding


def test_a_gate_holds_at_the_value_and_breaks_below_it(audited):
    first = next(finding for finding in audited.result.findings if not np.isnan(finding.value))

    def broken(bound):
        rule = GateRule(first.metric, of=first.aggregate.value, max=bound)
        return bool(gate(audited.result, [rule]).breaches)

    assert broken(first.value - 1e-6)
    same = [
        finding.value
        for finding in audited.result.findings
        if (finding.metric, finding.aggregate) == (first.metric, first.aggregate)
    ]
    assert not broken(float(np.nanmax(same)))
    assert gate(audited.result, [GateRule("no_such_metric", max=1)]).exit_code == 2


LACKING, FAILED = 8, 10  # of 96 images: 8.3 % and 10.4 %
VECTORS = {"file": "vectors.csv", "id": "image_id"}
PAIRS = {"images": VECTORS, "queries": {"file": "query_vectors.csv", "id": "id"}}
QUERIES = TEXTS | {"subject": "subject"}
CLIP = {"model": "hf:clip"}
LABELS = {"table": "labels_of.csv", "id": "image_id"}
# Per kind: the data, other sections, a live model, and one of a file that lacks images.
LIVE = {
    "predictions": (
        {"target": "subject", "groups": ["frame"]}, {},
        CLIP | {"vocabulary": [*CHOSEN]}, LABELS | {"prediction": "subject"},
    ),
    "answers": (
        {"groups": ["frame"]}, {},
        {"model": Answerer(), "question": "What is it?"}, LABELS | {"answer": "subject"},
    ),
    "concepts": (
        {"groups": ["frame"], "labels": {"file": "labels.csv"}, "min_group_size": 5},
        {"choices": {"min_positives": 4}}, CLIP, {"file": "scores.csv", "id": "image_id"},
    ),
    "diversity": ({"sets": ["frame"]}, {}, CLIP, VECTORS),
    "dataset": ({"groups": ["frame"], "labels": ["subject"]}, {}, CLIP, VECTORS),
    "retrieval": (
        {"groups": ["frame"], "subject": "subject", "sets": "set"},
        {"queries": QUERIES, "ranking": {"k": 4, "curves": False}}, CLIP, PAIRS,
    ),
    "similarity": (
        {"groups": ["frame"], "subject": "subject", "sets": "set"},
        {"queries": QUERIES}, CLIP, PAIRS,
    ),
    "counterfactuals": ({"groups": [["hue", "frame"]]}, {"queries": QUERIES}, CLIP, PAIRS),
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Pictures of which ten can't be decoded, and files of models that lack eight images."""
    root = tmp_path_factory.mktemp("contract") / "world"
    worlds.make(root)
    for picture in sorted((root / "pictures").iterdir())[:FAILED]:
        picture.write_bytes(b"no picture")
    table = pl.read_csv(root / "images.csv")
    labelled = table[:-LACKING]
    labelled.select("image_id", "subject").write_csv(root / "labels_of.csv")
    place = pl.int_range(pl.len())
    labelled.select("image_id", a=place + 1.0, b=1.0).write_csv(root / "vectors.csv")
    scores = {name: (place % (3 + n)).cast(float) for n, name in enumerate(CHOSEN)}
    labelled.select("image_id", **scores).write_csv(root / "scores.csv")
    queries = pl.DataFrame({"id": [f"q{n}" for n in range(4)], "a": [1.0, 2, 3, 4], "b": 1.0})
    queries.write_csv(root / "query_vectors.csv")
    return root


def numbers(counts):
    """Every count, however deep."""
    if isinstance(counts, Mapping):
        for part in counts.values():
            yield from numbers(part)
    elif isinstance(counts, int):
        yield counts


@pytest.mark.parametrize("kind", LIVE)
def test_failed_images_are_counted_and_do_not_raise_the_limit_of_unmatched_rows(kind, world):
    data, sections, live, file = LIVE[kind]

    def run(models, **more):
        values = {
            "audit": kind, "data": {"images": IMAGES} | data | more, "models": models,
            "extraction": {"max_failures": 0.2}, "resampling": QUICK,
        } | sections  # fmt: skip
        return audits.run(audits.parse_config(values), base=world)

    failed = run({"m": live})
    # Before this the model had no outputs in the store; from here on it has.
    with pytest.raises(DataError) as raised:
        run({"m": live, "file": file})
    assert f"{LACKING} of 96" in raised.value.problem
    combined = run({"m": live, "file": file}, max_unmatched=0.1)
    assert LACKING in numbers(combined.manifest.counts["models"]["file"])
    for result in (failed, combined):
        rows = result.tables["failures"].to_pylist()
        assert {row["model"] for row in rows} == {"m"}
        assert sum(row["n"] for row in rows if not row["group"]) == FAILED
        assert json.dumps(dict(result.manifest.models))
