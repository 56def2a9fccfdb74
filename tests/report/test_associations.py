"""The report of an audit of associations: its sections, its words, and untrusted names."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from audits.associations.association_world import asked, model, run
from equipoise.core import AuditResult, Verdict
from equipoise.core.finding import Family
from equipoise.report.blocks import Chart, Fold, Section, Table, Words
from equipoise.report.page import render
from equipoise.report.sections import associations, associations_outside, associations_parts
from equipoise.report.sections.associations import sides_of
from equipoise.report.sections.summary import summary
from equipoise.report.voices import voice
from equipoise.report.voices.associations import VOICE
from equipoise.report.words import sentence
from report.drawn import charts

SALARIES = {
    "table": pl.DataFrame({"name": ["doctor", "nurse", "odd"], "salary": [200, 80, 100]}),
    "subject": "name",
    "value": "salary",
}
GROUPED = {"images": "images", "groups": "gender"}
WORDS = {"regions": "region", "positive": "good", "negative": "bad"}
ODD = {"odd": {"images": ["p01", "p02"], "words": ["honest", "lazy"]}}


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return run(
        asked("association_score", "doctor", "nurse"),
        asked("weat", "science", "arts"),
        {
            "metric": "mcas",
            "targets": {"care": ["nurse"], "other": ["doctor", "odd"]},
            "attributes": ["men", "women"],
            "generated": True,
        },
        asked("xmcas", "doctor", further="odd"),
        asked("total_absolute_association", "doctor", "nurse", modalities=["II"]),
        {"metric": "predicted_label_weat", **GROUPED, "labels": "prompts",
         "attributes": ["men", "women"]},
        {"metric": "gender_difference", **GROUPED, **WORDS},
        asked("correlation", "doctor", "nurse", "odd", modalities=["II"], outside=SALARIES),
        models={"m": model(), "<i>n": model(0.2)},
        sets=ODD,
    )  # fmt: skip


def section(made: Section | None) -> Section:
    assert made is not None
    return made


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    (rows,) = chart.data.values()
    return [dict(row) for row in rows]


def test_every_section_is_on_the_page_and_names_are_escaped(result: AuditResult) -> None:
    page = render(result)
    for made in (section(one(result)) for one in VOICE.sections()):
        assert f'id="{made.id}"' in page
    assert "<i>n" not in page
    assert "&lt;i&gt;n" in page


def test_without_its_tables_there_is_no_section(result: AuditResult) -> None:
    bare = AuditResult((), result.manifest, {})
    assert [one(bare) for one in VOICE.sections()] == [None] * len(VOICE.sections())


def test_a_forest_has_a_row_for_each_target_and_modality(result: AuditResult) -> None:
    forest = charts(section(associations.leaning(result)).blocks)[0]
    assert forest.title == "Association score, m: men against women"
    rows = rows_of(forest)
    assert {(row["label"], row["series"]) for row in rows} >= {
        (target, modality)
        for target in ("doctor", "nurse")
        for modality in ("II", "ITP", "ITA", "TT")
    }
    # Those that lean most to the first set stand on top.
    assert rows[0]["label"] == "doctor"
    assert rows[-1]["label"] == "nurse"
    assert "closer to women · closer to men" in str(forest.spec)
    assert forest.table is not None
    assert forest.table.rows[0][-1] == "doctor is closer to men than to women (images with images)"


def test_a_weat_has_no_side_of_its_own(result: AuditResult) -> None:
    every = charts(section(associations.leaning(result)).blocks)
    weats = [chart for chart in every if chart.title.startswith("WEAT")]
    assert len(weats) == 2
    assert all("closer to" not in str(chart.spec) for chart in weats)


def test_parts_of_mcas_add_up_to_the_diamond(result: AuditResult) -> None:
    rows = rows_of(charts(section(associations_parts.parts(result)).blocks)[0])
    for target in ("doctor", "nurse", "odd"):
        four = [row for row in rows if row["label"] == target]
        assert len(four) == 4
        assert sum(row["value"] for row in four) == pytest.approx(four[0]["total"])


def test_summaries_by_category_name_the_side(result: AuditResult) -> None:
    (fold,) = (b for b in section(associations.leaning(result)).blocks if isinstance(b, Fold))
    (table,) = fold.blocks
    assert isinstance(table, Table)
    assert {row[1] for row in table.rows} == {"to men", "to women", "both ways"}


def test_targets_whose_amplification_cannot_be_estimated_are_named(result: AuditResult) -> None:
    table = result.tables["amplification"].to_pylist()
    nothing = [{**row, "bias_amplification": None, "reason": "why"} for row in table]
    made = AuditResult(
        result.findings,
        result.manifest,
        {"amplification": result.tables["amplification"].from_pylist(nothing)},
    )
    told = section(associations_parts.amplification(made)).blocks
    assert charts(told) == []
    assert isinstance(told[1], Words)
    assert told[1].items[0] == (
        "m, men against women: not estimable for nurse, doctor and odd, whose texts lean to "
        "neither group with certainty: the quotient would explode."
    )


def test_a_scatter_says_r_its_interval_and_p(result: AuditResult) -> None:
    made = section(associations_outside.figures(result))
    assert isinstance(made.blocks[0], Words)
    assert made.blocks[0].items[0].endswith("A name without room is in its tooltip.")
    plot = charts(made.blocks)[0]
    assert plot.title.startswith("Association score and salary, m: men against women (II). r = ")
    assert ", p = " in plot.title
    assert [row["name"] for row in rows_of(plot)] == ["nurse", "odd", "doctor"]


def test_heat_maps_of_one_model_share_their_scale(result: AuditResult) -> None:
    plots = charts(section(associations_outside.regions(result)).blocks)
    maps = [chart for chart in plots if chart.title in ("Female", "Male")]
    assert len(maps) == 4
    ends = [chart.spec["encoding"]["color"]["scale"]["domain"] for chart in maps]
    assert ends[0] == ends[1]
    assert {row["region"] for row in rows_of(maps[0])} == {"north", "south", "east"}


def test_models_stand_side_by_side(result: AuditResult) -> None:
    (plot,) = charts(section(associations_parts.totals(result)).blocks)
    assert [row["label"] for row in rows_of(plot)] == ["m", "<i>n"]


def test_shares_of_labels_by_group(result: AuditResult) -> None:
    plot = charts(section(associations_outside.labels(result)).blocks)[0]
    for group in ("Female", "Male"):
        shares = [row["share"] for row in rows_of(plot) if row["series"] == group]
        assert sum(shares) == pytest.approx(1.0)


def test_sentences_say_who_leans_to_whom(result: AuditResult) -> None:
    told = {sentence(finding) for finding in result.findings if finding.model == "m"}
    assert any(
        one.startswith("For m, “doctor” has an association score of ")
        and one.endswith("Doctor is closer to men than to women (texts with texts).")
        for one in told
    )
    assert any(
        one.endswith("Science goes with men, arts with women (texts with texts).") for one in told
    )


def test_in_short_tells_a_composite_before_a_larger_effect_of_one_word(result: AuditResult) -> None:
    (weat,) = (f for f in result.findings if (f.metric, f.model, f.version) == ("weat", "m", "TT"))
    composite = replace(weat, verdict=Verdict.DISPARITY)
    word = replace(
        composite, metric="sc_weat", subject="physics", family=Family.LEAF, excess=9.0, value=9.0
    )
    section = summary(replace(result, findings=(word, composite)))
    assert section is not None
    count = "m: 2 of 2 findings with a verdict are disparities, 0 inconclusive."
    assert words_of(section) == [f"{count} {sentence(composite)} {sentence(word)}"]
    alone = summary(replace(result, findings=(word,)))
    assert alone is not None
    count = "m: 1 of 1 finding with a verdict is a disparity, 0 inconclusive."
    assert words_of(alone) == [f"{count} {sentence(word)}"]


def test_in_short_is_a_sentence_for_each_of_many_models(result: AuditResult) -> None:
    (weat,) = (f for f in result.findings if (f.metric, f.model, f.version) == ("weat", "m", "TT"))
    many = tuple(
        replace(weat, verdict=Verdict.DISPARITY, model=f"model {index}") for index in range(10)
    )
    section = summary(replace(result, findings=many))
    assert section is not None
    told = [sentence(one) for one in many[:8]]
    assert words_of(section) == [*told, "2 further models: see below."]


def test_in_short_begins_with_what_a_kind_of_audit_is_for(result: AuditResult) -> None:
    (weat,) = (f for f in result.findings if (f.metric, f.model, f.version) == ("weat", "m", "TT"))
    skew, mad = (
        replace(
            weat, audit="retrieval", metric=metric, verdict=Verdict.DISPARITY, excess=excess,
            family=Family.COMPOSITE, by_group=(), direction="",
        )
        for metric, excess in (("max_skew", 0.5), ("normalized_similarity_mad", 3.0))
    )  # fmt: skip
    section = summary(replace(result, findings=(mad, skew)))
    assert section is not None
    count = "m: 2 of 2 findings with a verdict are disparities, 0 inconclusive."
    spoken = voice("retrieval")
    assert spoken is not None
    assert words_of(section) == [f"{count} {sentence(skew)}", spoken.caveat]


def words_of(section: Section) -> list[str]:
    return [text for block in section.blocks if isinstance(block, Words) for text in block.items]


def test_the_question_names_both_sets_or_the_groups(result: AuditResult) -> None:
    assert VOICE.question(result) == (
        "Do m and <i>n place what people do and words for it closer to one of men and women than "
        "to the other?"
    )
    grouped = run({"metric": "gender_difference", **GROUPED, **WORDS})
    assert VOICE.question(grouped) == "Does m place images of different gender alike to words?"
    facts = dict(VOICE.facts(result))
    assert facts["Items"] == "images: 64 images; words: 20 texts"
    assert facts["Targets"].startswith("doctor, nurse, science")
    assert "In brackets" not in {name for name, text in VOICE.facts(grouped) if text}


def test_sides_of_two_sets() -> None:
    assert sides_of("men against women") == ("women", "men")
    assert sides_of("gender") is None


def test_the_example_is_of_the_metric_and_the_groups_that_were_told(result: AuditResult) -> None:
    (weat,) = (f for f in result.findings if (f.metric, f.model, f.version) == ("weat", "m", "TT"))
    told = replace(weat, audit="retrieval", metric="max_skew", verdict=Verdict.DISPARITY)
    whole = replace(told, subject="", groups="race", family=Family.COMPOSITE, version="default")
    held = replace(whole, version="within age", excess=99.0)
    part = replace(whole, subject="nurse", family=Family.LEAF, excess=0.1)
    other = replace(part, groups="gender", excess=50.0)
    larger = replace(part, metric="ndkl", excess=60.0)
    section = summary(replace(result, findings=(larger, held, other, part, whole)))
    assert section is not None
    text, _ = words_of(section)
    assert text.endswith(f"{sentence(whole)} {sentence(part)}")
