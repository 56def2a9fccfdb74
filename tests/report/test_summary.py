"""The first screen: which finding leads, for whom, and what to do next."""

import re
from dataclasses import replace

import polars as pl
import pytest

import equipoise
from equipoise.core import Aggregate, AuditResult, Family, GroupValue, Verdict
from equipoise.core.sentences import Sentence, named
from equipoise.report import card
from equipoise.report.by_group import group_table
from equipoise.report.concluding import conclusions_of
from equipoise.report.leading_chart import MOST_PANELS, chart_of
from equipoise.report.result import first_screen
from equipoise.report.short_lines import short_line, wanted_data
from equipoise.report.summary import MOST_MODELS, statements_of, summarize
from equipoise.report.text import counted
from equipoise.report.words import difference_name, group_value_name, has_shares, name_of
from report.synthetic import finding, group_values, manifest

CELLS = {("a",): (10, 100), ("b",): (40, 100), ("c",): (41, 100)}
GAP = {"metric": "accuracy", "aggregate": Aggregate.DIFFERENCE, "compared_to": "overall"}
LEADS = (("accuracy", Aggregate.WORST_GROUP), ("accuracy", Aggregate.DIFFERENCE))


def result(*findings):
    return AuditResult(findings, manifest())


def gap(verdict, **changes):
    by_group = group_values(CELLS)
    return finding(model="m", groups="g", by_group=by_group, **{"verdict": verdict} | changes)


def test_the_declared_metric_leads_whatever_the_excess_of_others():
    larger = gap(Verdict.DISPARITY, metric="demographic_parity", excess=9.0)
    lead = gap(Verdict.DISPARITY, **GAP)
    (statement,) = summarize(result(larger, lead), LEADS).statements
    assert statement.finding == lead


def test_not_enough_data_is_a_headline_of_its_own():
    findings = [gap(Verdict.INCONCLUSIVE, subject=str(place)) for place in range(3)]
    below = gap(Verdict.BELOW_THRESHOLD, subject="x")
    summary = summarize(result(*findings, below), LEADS)
    (statement,) = summary.statements
    assert statement.badge is not None
    assert statement.badge.verdict == Verdict.INCONCLUSIVE
    assert statement.finding in findings
    assert any("images of each group" in step for step in summary.steps)
    uneven = [replace(part, n=part.n + place) for place, part in enumerate(findings[0].by_group)]
    uneven_finding = replace(findings[0], by_group=tuple(uneven))
    assert any("smallest groups" in step for step in summarize(result(uneven_finding), LEADS).steps)


def test_models_with_disparities_come_first():
    fine = [gap(Verdict.BELOW_THRESHOLD) for _ in range(MOST_MODELS + 1)]
    named = [replace(gap_finding, model=f"fine {place}") for place, gap_finding in enumerate(fine)]
    summary = summarize(result(*named, gap(Verdict.DISPARITY)), LEADS)
    assert summary.statements[0].finding == gap(Verdict.DISPARITY)
    assert len([shown for shown in summary.statements if shown.finding]) == MOST_MODELS


@pytest.mark.parametrize("n_more", [0, 1, 3])
def test_models_without_a_statement_or_a_panel_are_counted(n_more):
    models = [f"m{place}" for place in range(MOST_MODELS + n_more)]
    gaps = [replace(gap(Verdict.DISPARITY, **GAP), model=model) for model in models]
    summary = summarize(result(*gaps), LEADS)
    counted = [shown.text for shown in summary.statements if shown.finding is None]
    assert len(counted) == bool(n_more)
    assert all(f"{n_more} more model" in text for text in counted)
    lead = summary.statements[0]
    chart = chart_of(lead.finding, lead.conclusion, gaps)
    assert len(chart.panels) == MOST_PANELS
    assert f"{len(models) - MOST_PANELS} more models" in chart.note
    few = gaps[:MOST_PANELS]
    assert "more model" not in chart_of(lead.finding, lead.conclusion, few).note


def test_a_finding_of_no_model_leads_only_with_a_disparity():
    people = replace(gap(Verdict.BELOW_THRESHOLD), model="")
    summary = summarize(result(gap(Verdict.DISPARITY), people), LEADS)
    assert [statement.finding.model for statement in summary.statements] == ["m"]


@pytest.mark.parametrize("verdict", ["detected", "inconclusive", "below threshold"])
def test_every_judgement_without_a_disparity_has_advice(verdict):
    assert summarize(result(gap(Verdict(verdict))), LEADS).steps


def test_the_table_by_group_has_a_row_for_each_group_and_marks_the_worst():
    section = group_table(result(gap(Verdict.DISPARITY)), (("accuracy", Aggregate.DIFFERENCE),))
    assert section is not None
    note, table = section.blocks
    assert "▲ worst off" in note.items[0]
    assert [row[0] for row in table.rows] == ["a", "b", "c"]
    marked = [row[0] for row in table.rows if "▲" in str(row[-1])]
    assert marked == ["a"]
    raw = replace(gap(Verdict.NONE), version="raw")
    with_raw = group_table(
        result(gap(Verdict.DISPARITY), raw), (("accuracy", Aggregate.DIFFERENCE),)
    )
    assert with_raw.blocks[1].rows == table.rows


def against_rest(group, value, rest_value, **changes):
    """A leaf of the accuracy of one group against all others."""
    parts = tuple(
        GroupValue(name, (name,), n, share, share - 0.02, share + 0.02)
        for name, n, share in ((group, 200, value), ("all other groups", 800, rest_value))
    )
    difference = value - rest_value
    leaf = {
        "metric": "accuracy", "aggregate": Aggregate.AGAINST_REST, "group": group,
        "by_group": parts, "value": difference,
        "ci_low": difference - 0.03, "ci_high": difference + 0.03, "chance": 0.0,
        "excess": difference,
        "family": Family.LEAF,
    }  # fmt: skip
    return finding(**leaf | changes)


def test_the_group_that_is_worst_off_leads_with_the_chart_of_all_groups():
    values = {"a": 0.6, "b": 0.93, "c": 0.95}
    parts = tuple(
        GroupValue(name, (name,), 300, share, share, share) for name, share in values.items()
    )
    gap = finding(**GAP, by_group=parts)
    better, worse = against_rest("c", 0.95, 0.7), against_rest("a", 0.6, 0.94)
    leads = ("accuracy", ("accuracy", Aggregate.DIFFERENCE, "overall"))
    summary = summarize(result(gap, better, worse), leads)
    assert summary.statements[0].finding == worse
    assert "60.0" in summary.statements[0].text
    labels = {row["label"].split(" (")[0] for row in summary.chart.rows}
    assert labels == {*values, "all other groups"}


def test_differences_of_the_labels_never_lead():
    parity = gap(Verdict.DISPARITY, metric="demographic_parity", leads=False)
    (statement,) = summarize(result(gap(Verdict.BELOW_THRESHOLD), parity), LEADS).statements
    assert statement.badge.verdict == Verdict.BELOW_THRESHOLD
    assert statement.finding.metric != "demographic_parity"
    assert not statement.others


def test_preferences_of_groups_are_differences_and_never_shares():
    parts = tuple(
        GroupValue(name, (name,), 300, share, share, share)
        for name, share in zip("ab", (0.0, 1.0), strict=True)
    )
    preferred = finding(metric="systematic_preference", by_group=parts)
    assert not has_shares(preferred)
    assert has_shares(finding(**GAP, by_group=parts))


def test_undecided_and_decided_results_have_different_steps():
    undecided, decided = (
        summarize(result(gap(verdict)), LEADS).steps
        for verdict in (Verdict.INCONCLUSIVE, Verdict.BELOW_THRESHOLD)
    )
    assert not {*undecided} & {*decided}


def undecided(groups, **changes):
    values = group_values({("a",): (40, 50), ("b",): (42, 50)})
    return finding(
        groups=groups, by_group=values, value=0.04, ci_low=0.0, ci_high=0.2, q_value=1.0,
        verdict=Verdict.INCONCLUSIVE, compared_to="", more=900.0, more_of="a and b", **changes,
    )  # fmt: skip


def test_the_data_that_would_decide_stand_beside_the_leading_comparison_alone():
    findings = undecided("gender"), undecided("race")
    result = AuditResult(findings, manifest(), {}, conclusions_of(findings))
    (statement,) = statements_of(result)
    (remark,) = statement.others
    assert "900" in statement.certainty
    assert "900" not in remark.text


@pytest.mark.parametrize(("unit", "items"), [("row", "images"), ("unit", "rows")])
def test_rows_within_units_are_not_counted_as_images(unit, items):
    (conclusion,) = conclusions_of([undecided("gender", unit=unit)])
    text = wanted_data(undecided("gender", unit=unit), conclusion)
    assert f"900 more {items}" in text
    assert text.endswith(" would show a difference of 5 points.")


def test_no_groups_values_stand_under_the_name_of_another_number():
    odds = finding(
        metric="equalized_odds", subject="judge", value=0.046, ci_low=0.01, ci_high=0.08,
        by_group=group_values({("a",): (89, 100), ("b",): (94, 100)}),
        direction=Sentence("True positive rate for “judge”: lowest for a (89.0 %)"),
    )  # fmt: skip
    (conclusion,) = conclusions_of([odds])
    assert short_line(odds, conclusion).startswith("True positive rate")


def test_a_line_begins_with_its_direction_where_all_groups_are_compared():
    score = finding(
        metric="association_score", subject="nurse", sides=("women", "men"),
        direction=Sentence("nurse is closer to ", named("women"), " than to ", named("men")),
    )  # fmt: skip
    (conclusion,) = conclusions_of([score])
    assert short_line(score, conclusion) == "nurse is closer to women than to men"


def test_a_line_names_its_group_unless_the_direction_does():
    skew = finding(metric="skew", group="all", direction=Sentence("rarer in all of the results"))
    (conclusion,) = conclusions_of([skew])
    assert short_line(skew, conclusion) == "all: rarer in all of the results"
    by_name = replace(skew, direction=Sentence(named("all"), " is rarer"))
    assert short_line(by_name, conclusion) == "all is rarer"


def test_a_difference_in_labels_names_the_label_with_the_largest():
    labels = finding(metric="answer_gap", groups="gender", by_group_of="nurse")
    assert difference_name(labels) == "difference in share of answers (largest for “nurse”)"
    assert "largest" not in difference_name(replace(labels, subject="nurse"))


def test_the_first_conclusion_about_each_attribute_is_not_folded():
    of_g = [gap(Verdict.DISPARITY, subject=str(place), excess=9.0 - place) for place in range(6)]
    of_h = replace(gap(Verdict.INCONCLUSIVE), groups="h")
    (statement,) = statements_of(result(*of_g, of_h))
    assert [remark.groups for remark in statement.others] == ["g"] * 5 + ["h"]
    shown, folded = statement.open_and_folded(3)
    assert [remark.groups for remark in shown] == ["g", "g", "g", "h"]
    assert [remark.groups for remark in folded] == ["g", "g"]
    # Where a page shows none of them, it folds all.
    assert statement.open_and_folded(0) == ([], [*statement.others])


@pytest.mark.parametrize("metric", ["precision", "negative_predictive_value"])
def test_predictive_values_name_the_prevalence_that_they_are_at(metric):
    # As observed, women have the higher precision; at equal prevalence men have it.
    cells = {"women": (540, 60, 40, 60), "men": (55, 3, 27, 420)}
    pairs = [("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no")]
    rows = [(group, *pair) for group, sizes in cells.items()
            for pair, n in zip(pairs, sizes, strict=True) for _ in range(n)]  # fmt: skip
    table = pl.DataFrame(rows, schema=["g", "y", "p"], orient="row").with_row_index("id")
    result = equipoise.audit(
        table, kind="predictions", id="id", target="y", groups=["g"], positive="yes",
        models={"m": {"table": table, "prediction": "p"}}, metrics=[metric],
    )  # fmt: skip
    findings = [finding for finding in result.findings if finding.metric == metric]
    tested = [finding for finding in findings if finding.by_group]
    shown = first_screen(result, result.shown_page)
    texts = [statement.text for statement in shown.statements if statement.finding]
    texts += [name_of(finding) for finding in findings]
    texts += [group_value_name(finding) for finding in tested]
    texts += [str(finding.direction) for finding in tested]
    texts += [card(result), difference_name(tested[0])]
    assert texts
    assert [text for text in texts if "at equal prevalence" not in text.lower()] == []
    assert [text for text in texts if re.search(r"\(\d+ of \d+\)", text)] == []
    # A count of rows isn't a share at equal prevalence, even where they agree by accident.
    assert counted(tested[0], 0.5, 150) == "n = 150"
