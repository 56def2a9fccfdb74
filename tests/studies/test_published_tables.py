"""A run's numbers beside those that a source prints, whatever the run calls its models."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pydantic import ValidationError

from audits.planted_findings import effect, level
from equipoise import audits
from equipoise.core import Aggregate, AuditResult, ConfigError, DataError, Verdict
from equipoise.report.blocks import Fold, Number, Table, Words
from equipoise.studies import STUDIES
from equipoise.studies.page import count_claims, source_tables
from equipoise.studies.quantities import MISSING, SEVERAL, UNDEFINED
from equipoise.studies.repetition import Repetition, contains, differing
from equipoise.studies.study import Study, StudyTable, read_study
from report.synthetic import NAN, finding, manifest

SHAPES = {"without class 0": "square", "without class 1": "ellipse", "without class 2": "heart"}


def sprites(names=None, **facts):
    """Return a run of the study of shapes and colours, whose models have names of their own."""
    from yaml import safe_load

    [config, *_] = read_study("skewsize-dsprites").configs.values()
    names = names or {}
    models = safe_load(config)["models"]
    findings = [
        effect(
            shape, 0.7 if SHAPES.get(model) == shape else 0.4 if model == "mild" else 0.02, 0.01,
            model=names.get(model, model), chance=0.03,
        )
        for model in models
        for shape in SHAPES.values()
    ]  # fmt: skip
    findings += [
        effect(shape, 0.3, model=names.get(model, model), metric=metric,
               aggregate=Aggregate.DIFFERENCE, verdict=Verdict.DISPARITY)
        for model in models
        for shape in SHAPES.values()
        for metric in ("demographic_parity", "equalized_odds")
    ]  # fmt: skip
    resolved = {
        "study": "skewsize-dsprites", "audit": "predictions",
        "models": {names.get(model, model): {**settings, "scores": None}
                   for model, settings in models.items()},
    }  # fmt: skip
    return AuditResult((*findings,), manifest(resolved=resolved | facts))


def page_tables(result):
    """Return the tables of the section by caption, up to the colon."""
    blocks = source_tables(result).blocks
    return {block.caption.partition(":")[0]: block for block in blocks if isinstance(block, Table)}


def cells(table, row):
    """Return the cells of a row by their heading."""
    [line] = [line for line in table.rows if line[0] == row]
    return {column.title: cell for column, cell in zip(table.columns[1:], line[1:], strict=True)}


def notes(result):
    blocks = source_tables(result).blocks
    return [text for block in blocks if isinstance(block, Words) for text in block.items]


def test_a_cell_has_the_number_its_interval_chance_and_the_printed_number():
    cell = cells(page_tables(sprites())["Table 1"], "Class 0")["Effect size, class 0 ↓"]
    assert (cell.value, cell.low, cell.high) == (0.7, 0.69, 0.71)
    assert str(cell) == "0.700 [0.690, 0.710]; chance 0.030; printed 0.705"


def test_tables_have_the_rows_columns_and_directions_of_the_source():
    printed = read_study("skewsize-dsprites").work.tables["Table 1"]
    table = page_tables(sprites())["Table 1"]
    assert [line[0] for line in table.rows] == [*printed.rows]
    arrows = {"higher": " ↑", "lower": " ↓"}
    titles = [f"{name}{arrows[printed.better[name]]}" for name in printed.columns]
    assert [column.title for column in table.columns[1:]] == titles


def test_numbers_that_the_run_lacks_say_so_beside_the_printed_ones():
    table = page_tables(sprites())["Table 1"]
    assert str(cells(table, "Class 0")["Accuracy ↑"]) == f"{MISSING}; printed 0.888"
    # A column that the study doesn't measure has the printed numbers.
    phi = cells(page_tables(sprites())["Table 5"], "Class 0")
    assert not isinstance(phi["Phi, class 0"], Number) or "printed 0.948" in str(
        phi["Phi, class 0"]
    )


def test_units_and_errata_stand_under_the_table():
    printed = read_study("skewsize-dsprites").work.tables["Table 1"]
    [note] = [text for text in notes(sprites()) if printed.note in text]
    assert printed.units in note


NAMES = {
    "unbiased": "all colours", "without class 0": "no green squares",
    "without class 1": "no green ellipses", "without class 2": "no green hearts",
    "mild": "5k", "medium": "2k",
}  # fmt: skip
SWAPPED = {"without class 0": "without class 1", "without class 1": "without class 0"}


@pytest.mark.parametrize("names", [NAMES, SWAPPED])
def test_renamed_models_fill_the_same_cells(names):
    tables, renamed = page_tables(sprites()), page_tables(sprites(names))
    assert [*tables] == [*renamed]
    for name, table in tables.items():
        if name != "Claims of the source":
            assert table.rows == renamed[name].rows


def test_models_of_other_settings_are_named():
    result = sprites()
    models = result.manifest.resolved["models"]
    changed = {**models, "mild": {**models["mild"], "prediction": "another network"}}
    other = sprites(models=changed)
    assert not any("other settings" in text for text in notes(result))
    [note] = [text for text in notes(other) if "other settings" in text]
    assert note.startswith("mild ")
    # Its numbers are those of the name, as no model has the settings.
    assert isinstance(
        cells(page_tables(other)["Table 2"], "Mild")["Effect size, class 1 ↓"], Number
    )


def concepts(versions, rules=(), **choices):
    """Return a run with a finding of each version, and the baseline."""
    values = {"versions": versions, "choices": {"prevalence": "observed", "ratio": 5, **choices},
              "data": {"groups": [["gender"]], "images": {
                  "format": "visual_genome", "rules": rules,
                  "files": {"objects": "o.json", "image_data": "i.json"}}}}  # fmt: skip
    findings = [
        finding(metric="average_precision", aggregate="difference", groups="gender", model="clip",
                compared_to="", version=name, value=place / 10)
        for place, name in enumerate(["baseline", *versions])
    ]  # fmt: skip
    return AuditResult((*findings,), manifest(resolved=values))


def boxes(**settings):
    return {"rule": "hall_boxes", "size": "all boxes", "parents_and_children": True, "version": "",
            **settings}  # fmt: skip


def repeated(versions, rules, names, config):
    """Return the values of a study's versions in a run that has names of its own for them."""
    result = concepts({names.get(name, name): changes for name, changes in versions.items()}, rules)
    run = Repetition(result, [config])
    values = {}
    for version in config["versions"]:
        where = {"metric": "average_precision", "aggregate": "difference", "version": version}
        table = StudyTable.model_validate(
            {"title": "T", "rows": {"r": where}, "columns": {"c": {}}}
        )
        values[version] = table.quantity("r", "c").read(run).value
    return values


def test_renamed_versions_fill_the_same_cells():
    versions = {
        "V2": {"columns": {"gender": "gender (V2)"}},
        "V3": {"columns": {"gender": "gender (V3)"}},
        "Reliable": {"columns": {"gender": "gender (V3)"}, "prevalence": "hall"},
    }
    rules = [
        boxes(), boxes(size="large boxes", version="V2"),
        boxes(size="large boxes", parents_and_children=False, version="V3"),
    ]  # fmt: skip
    config = {"versions": versions, "data": {"groups": ["gender"], "images": {
        "format": "visual_genome", "files": {"objects": "o", "image_data": "i"},
        # As a study writes them: without defaults.
        "rules": [{"rule": "hall_boxes"},
                  {"rule": "hall_boxes", "size": "large boxes", "version": "V2"},
                  {"rule": "hall_boxes", "size": "large boxes", "parents_and_children": False,
                   "version": "V3"}],
    }}}  # fmt: skip
    names = {"V2": "large boxes", "V3": "no parents", "Reliable": "V2"}
    expected = {"V2": 0.1, "V3": 0.2, "Reliable": 0.3}
    assert repeated(versions, rules, {}, config) == pytest.approx(expected)
    assert repeated(versions, rules, names, config) == pytest.approx(expected)
    # A rule may have another version name, too.
    renamed = {
        name: {**changes, "columns": {"gender": f"gender ({name} boxes)"}}
        for name, changes in versions.items()
    }
    other_rules = [
        boxes(), *(boxes(size="large boxes", version=f"{name} boxes",
                         parents_and_children=name == "V2") for name in versions),
    ]  # fmt: skip
    assert repeated(renamed, other_rules, names, config) == pytest.approx(expected)


def test_versions_of_other_settings_are_named():
    config = {"versions": {"V2": {"prevalence": "hall"}, "V3": {"ratio": 3}}}
    result = concepts({"V2": {"prevalence": "weighted"}, "V3": {"ratio": 3}, "mine": {"ratio": 2}})
    assert Repetition(result, [config]).changed() == ["V2"]


def test_versions_are_named_by_settings():
    rules = [boxes(), boxes(size="large boxes", version="V2")]
    result = concepts(
        {"mine": {"columns": {"gender": "gender (V2)"}}, "sampled": {"prevalence": "hall"}}, rules
    )
    run = Repetition(result)
    assert run.versions({"prevalence": "hall"}) == ["sampled"]
    assert run.versions({"rules": {"gender": {"size": "large boxes"}}}) == ["mine"]
    base = {"prevalence": "observed", "rules": {"gender": {"size": "all boxes"}}}
    assert run.versions(base) == ["baseline"]
    assert run.versions({"prevalence": "weighted"}) == []
    assert run.versions({"ratio": 5}) == ["baseline", "mine", "sampled"]


def test_models_are_named_by_settings():
    models = {
        "small": {"model": "hf:a", "device": None},
        "large": {"model": "hf:b", "device": None},
    }
    run = Repetition(AuditResult((), manifest(resolved={"models": models})))
    assert run.models({"model": "hf:b"}) == ["large"]
    assert run.models({"device": None}) == ["small", "large"]
    assert run.models("small") == ["small"]


def test_a_mean_over_subjects_has_an_interval():
    planted = [effect(f"s{place}", place / 10) for place in range(5)]
    [[mean], [none]] = table_of(
        {"a": {"mean": {"metric": "cramers_v"}}, "b": {"mean": {"metric": "auroc"}}}, {"c": {}},
        *planted,
    )  # fmt: skip
    assert mean.low < 0.2 < mean.high
    assert mean.has_interval
    assert none.missing == MISSING


def test_generators_are_models_by_their_settings():
    resolved = {"models": {"clip": {"model": "hf:c"}}, "generators": {"mine": {"model": "x:a"}}}
    config = {"generators": {"study's": {"model": "x:a"}}}
    run = Repetition(AuditResult((), manifest(resolved=resolved)), [config])
    assert run.models("study's") == ["mine"]
    assert run.models({"model": "hf:c"}) == ["clip"]
    other = {**resolved, "generators": {"study's": {"model": "x:b"}}}
    assert Repetition(AuditResult((), manifest(resolved=other)), [config]).changed() == ["study's"]


def test_configurations_of_studies_differ_in_nothing_from_themselves():
    compared = 0
    for name in STUDIES:
        for config in read_study(name).parsed_configs:
            try:
                record = audits.parse_config(config).record["config"]
            except (ConfigError, DataError):
                continue  # no audit, or its tables aren't there
            run = Repetition(AuditResult((), replace(manifest(), config=record)), [config])
            assert run.changed_settings() == [], (name, config)
            compared += 1
    assert compared > 40


def test_settings_that_differ_are_named_by_their_key():
    assert differing({"a": {"b": 1, "c": [1, 2]}}, {"a": {"b": 2, "c": [1, 2]}}) == ["a.b"]
    assert differing({"a": [1, 2], "d": 1}, {"a": [1, 3]}) == ["a", "d"]
    assert differing({"where": {"x": {"values": ["y"]}}}, {"where": {"x": ["y"]}}) == []
    assert differing({"groups": [["a", "b"], ["c"]]}, {"groups": [["a", "b"], "c"]}) == []
    assert differing({"table": "t.csv", "words": ["a"]}, {"table": "${d}", "words": "${w}"}) == []


def test_settings_are_contained_at_any_depth():
    assert contains({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}})
    assert not contains({"a": {"b": [1, 2]}}, {"a": {"b": [1]}})
    assert not contains({"a": 1}, {"a": {"b": 1}})
    assert contains({"a": "/data/x"}, {"a": "${data}/x"})
    # A key that isn't there has no value.
    assert contains({}, {"a": None})
    assert not contains({"a": 1}, {"a": None})
    assert not contains({"a": {"file": "withheld.txt"}}, {"a": None})


def table_of(rows, columns, *findings, **facts):
    """Return the cells of a table of one's own."""
    table = StudyTable.model_validate({"title": "T", "rows": rows, "columns": columns})
    run = Repetition(AuditResult(findings, manifest(**facts)))
    return [
        [table.quantity(row, column).read(run) for column in table.columns] for row in table.rows
    ]


def test_cells_show_several_kinds_of_numbers():
    planted = [effect(f"s{place}", place / 10) for place in range(5)]
    planted += [
        finding(metric="precision", subject=f"s{place}", model="m", groups="", value=1 - place / 9)
        for place in range(5)
    ]
    planted += [effect("", 0.25, by_group=(level("red", 0.4),), parameters={"k": 7})]
    v = {"metric": "cramers_v"}
    precision = {"metric": "precision", "aggregate": "difference"}
    rows = {
        "percent": {**v, "subject": "", "times": 100},
        "red": {**v, "subject": "", "level": "red"},
        "k": {**v, "subject": "", "parameter": "k"},
        "r": {"correlation": [v, precision]},
        "large": {"count": v, "reaching": 0.3},
        "mean": {"mean": v},
        "mean of two": {"mean": v, "subjects": ["s0", "s4", "s9"]},
        "images": {"recorded": "images.rows"},
        "none": {**v, "subject": "nobody"},
        "several": v,
    }
    [*numbers, [none], [several]] = table_of(
        rows, {"c": {}}, *planted, counts={"images": {"rows": 9}}
    )
    values = [reading.value for [reading] in numbers]
    assert values == pytest.approx([25, 0.4, 7, -1, 2, 0.2, 0.2, 9])
    assert (none.missing, several.missing) == (MISSING, SEVERAL)


def test_fields_of_a_column_enter_the_findings_of_a_row():
    planted = [effect(f"s{place}", place / 10, model=m) for place in range(5) for m in "ab"]
    planted += [effect("s9", 0.9, model="b")]
    rows, columns = {"large": {"count": {"metric": "cramers_v"}, "reaching": 0.3}}, "ab"
    [[first, second]] = table_of(rows, {m: {"model": m} for m in columns}, *planted)
    assert (first.value, second.value) == (2, 3)


def test_values_of_an_attribute_are_compared_over_their_subjects():
    planted = [
        effect(f"{job} | {race}", skew + place / 10, part_of=job, within="race", within_value=race)
        for race, skew in (("Indian", 0.5), ("Latino", 0.2))
        for place, job in enumerate(("cook", "doctor", "judge"))
    ]
    change = [{"metric": "cramers_v", "within_value": race} for race in ("Indian", "Latino")]
    [[reading]] = table_of({"a": {"change": change}}, {"c": {}}, *planted)
    assert reading.value == pytest.approx(0.3)


def test_a_cell_of_the_record_has_the_number_of_its_row():
    spread = [
        {"model": "mine", "metric": "ndkl", "sd": 0.2, "sets": 4, "lost": 1},
        {"model": "mine", "metric": "max_skew", "sd": 0.3, "sets": 0, "lost": 0},
        {"model": "other", "metric": "ndkl", "sd": 0.4, "sets": None, "lost": 1},
    ]
    resolved = {"models": {"mine": {"model": "hf:a"}, "other": {"model": "hf:b"}}}
    tables = {"spread": pa.Table.from_pylist(spread)}
    run = Repetition(AuditResult((), manifest(resolved=resolved), tables))
    rows = {"a": {"model": {"model": "hf:a"}}, "b": {"model": "other"}, "c": {"model": "none"}}
    ndkl = {"table": "spread", "row": {"metric": "ndkl"}}
    columns = {
        "sd": {**ndkl, "column": "sd"},
        "share": {**ndkl, "column": "lost", "per": "sets", "times": 100},
        "several": {"table": "spread", "row": {}, "column": "sd"},
        "empty": {**ndkl, "row": {"metric": "max_skew"}, "column": "lost", "per": "sets"},
        "absent": {"table": "curves", "row": {}, "column": "sd"},
    }  # fmt: skip
    shown = StudyTable.model_validate({"title": "T", "rows": rows, "columns": columns})
    numbers = {
        (row, column): shown.quantity(row, column).read(run) for row in rows for column in columns
    }
    assert (numbers["a", "sd"].value, numbers["b", "sd"].value) == (0.2, 0.4)
    assert numbers["a", "share"].value == 25
    reasons = [numbers["a", column].missing for column in ("several", "empty", "absent")]
    assert reasons == [SEVERAL, UNDEFINED, MISSING]
    assert numbers["b", "share"].missing == numbers["c", "sd"].missing == MISSING
    # An estimate without an interval decides no claim.
    assert not numbers["a", "sd"].has_interval


def test_names_of_row_and_column_stand_in_texts():
    planted = (effect("nurse: red", 0.1), effect("nurse: blue", 0.2))
    rows = {"red": {"metric": "cramers_v"}, "blue": {"metric": "cramers_v"}}
    numbers = table_of(rows, {"nurse": {"subject": "{column}: {row}"}}, *planted)
    assert [reading.value for [reading] in numbers] == [0.1, 0.2]


def test_an_undefined_number_says_so():
    [[reading]] = table_of(
        {"a": {"subject": "a"}}, {"c": {"metric": "cramers_v"}}, effect("a", NAN)
    )
    assert reading.missing == UNDEFINED


@pytest.mark.parametrize(
    "table",
    [
        {"rows": ["a"], "columns": ["b"]},
        {"of": "Table 1", "title": "T", "rows": ["a"], "columns": ["b"]},
        {"title": "T", "rows": {}, "columns": ["b"]},
        {"title": "T", "rows": {"a": {"metrc": "x"}}, "columns": {"b": {}}},
    ],
)
def test_a_table_that_cannot_be_shown_is_refused(table):
    with pytest.raises(ValidationError):
        StudyTable.model_validate(table)


@pytest.mark.parametrize(
    "changes",
    [
        {"tables": [{"of": "Table 99", "rows": ["a"], "columns": ["b"]}]},
        {"tables": [{"of": "Table 4", "rows": ["a"], "columns": {"Sports": {}}}]},
        {"tables": [{"of": "Table 4", "rows": ["BLIP2-2.7B"], "columns": {"Chess": {}}}]},
        {"claims": [{"of": "S99", "why": "there is none"}]},
        {"left_out": {"Table 99": "there is none"}},
    ],
)
def test_a_study_names_tables_and_claims_of_its_source(changes):
    plain = {
        "question": "?", "published": "skewsize_2024", "data": "d", "licence": "l", "size": "s",
        "time": "t", "guide": "g", "configs": {"a": "audit: predictions"},
    }  # fmt: skip
    assert Study.model_validate(plain).source
    with pytest.raises(ValidationError):
        Study.model_validate(plain | changes)


def test_claims_stand_under_the_tables_with_their_marks():
    from equipoise.studies.claims import claims_of, with_claims

    judged = with_claims(sprites())
    table = page_tables(judged)["Claims of the source"]
    results = {line[0]: line[1] for line in table.rows}
    assert results["S2"] == "✓ holds in your run"
    assert results["S3"] == "✗ doesn't"
    assert isinstance(source_tables(judged).blocks[-1], Fold)
    assert count_claims(judged).startswith("1 of 2 claims of the source holds, 1 doesn't")
    by_claim = {claim["claim"]: claim for claim in claims_of(judged)}
    assert by_claim["S2"]["mark"] == "holds"
    assert len(by_claim["S3"]["comparisons"]) == 7
    assert count_claims(sprites()) == ""


def test_a_run_of_no_study_has_no_section():
    result = sprites()
    resolved = {key: value for key, value in result.manifest.resolved.items() if key != "study"}
    assert source_tables(replace(result, manifest=manifest(resolved=resolved))) is None


def test_claims_are_in_the_result_of_an_audit(tmp_path):
    import polars as pl

    colours, shapes = ["red", "green"] * 60, ["square", "ellipse", "heart"] * 40
    people = pl.DataFrame({"id": range(120), "colour": colours, "shape": shapes, "said": shapes})
    config = audits.parse_config({
        "audit": "predictions", "study": "skewsize-dsprites",
        "data": {"table": people, "id": "id", "target": "shape", "groups": ["colour"]},
        "models": {"unbiased": {"table": people, "prediction": "said"}},
        "resampling": {"replicates": 20, "permutations": 99},
    })  # fmt: skip
    rows = audits.run(config).tables["claims"].to_pylist()
    assert {row["claim"]: row["mark"] for row in rows} == {"S2": "can't tell", "S3": "can't tell"}


def test_claims_are_in_json_and_a_line_of_the_terminal(tmp_path, capsys):
    from equipoise.cli.runs import facts, show
    from equipoise.studies.claims import claims_of, with_claims

    judged = with_claims(sprites())
    assert facts(judged, tmp_path)["claims"] == claims_of(judged)
    show(judged, tmp_path)
    assert count_claims(judged) in " ".join(capsys.readouterr().out.split())
    assert "claims" not in facts(sprites(), tmp_path)


def test_claims_survive_a_file(tmp_path):
    from equipoise.report import read, write
    from equipoise.studies.claims import claims_of, with_claims

    judged = with_claims(sprites())
    write(judged, tmp_path)
    assert claims_of(read(tmp_path)) == claims_of(judged)


def test_means_and_counts_may_be_of_parts():
    planted = [
        effect(f"{query}: {region}", value, part_of=query)
        for query, values in {"a": (0.1, 0.3), "b": (0.5, 0.9)}.items()
        for region, value in zip("xy", values, strict=True)
    ]
    planted += [effect("a", 0.2, metric="phi"), effect("b", 0.95, metric="phi")]
    v, phi = {"metric": "cramers_v"}, {"metric": "phi"}
    columns = {
        "mean": {"mean": {**v, "part_of": "{row}", "subject": None}},
        "below the whole": {"count": {**v, "part_of": "{row}", "subject": None}, "total": phi,
                            "below": 0.0},
    }  # fmt: skip
    rows = {"a": {"subject": "a"}, "b": {"subject": "b"}, "all": {"mean": {"part_of": None}}}
    [first, second, overall] = table_of(rows, {"mean": columns["mean"]}, *planted)
    assert [reading.value for [reading] in (first, second, overall)] == pytest.approx(
        [0.2, 0.7, 0.45]
    )
    assert first[0].low < 0.1
    assert first[0].high > 0.3
    rows = {"a": {}, "b": {}, "all": {"count": {"part_of": None}}}
    counts = table_of(rows, {"n": columns["below the whole"]}, *planted)
    assert [reading.value for [reading] in counts] == [1, 2, 3]
    [[missing]] = table_of({"a": {"mean": v}}, {"c": {"subject": "c"}}, *planted)
    assert missing.missing == MISSING


def test_recomputed_numbers_arent_called_printed():
    study = read_study("attributes-by-region")
    table = study.work.tables["Table 4.2, from Table A.2"]
    assert table.origin == "recomputed"
    planted = finding(metric="trend", subject="SSA", groups="gender", model="clip",
                      version="default", by_group=(level("Male", -0.05),))  # fmt: skip
    result = AuditResult((planted,), manifest(resolved={"study": "attributes-by-region"}))
    cell = cells(page_tables(result)["Table 4.2, from Table A.2"], "Man, trend")["SSA"]
    assert str(cell).endswith("; recomputed −0.046")
