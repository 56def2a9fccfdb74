"""Sentences, contrasts and numbers as a reader meets them."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import AuditResult, Family, Verdict
from equipoise.report import text
from equipoise.report.blocks import Facts
from equipoise.report.contrast import contrast
from equipoise.report.sections.overview import asked
from equipoise.report.voices import voice
from equipoise.report.words import figures, heading, ranked, sentence
from report.synthetic import NAN, faces, finding, group_values

FACES = {(f.model, f.groups, f.metric, f.subject): f for f in faces().findings}


def test_accuracy_gap_of_intersections_says_who_is_worse_off() -> None:
    found = FACES["deepface", "race × gender", "accuracy_gap", ""]
    assert sentence(found) == (
        "deepface is right on 13.0\u00a0% (28 of 216) of the images labelled Black, Female, "
        "against 97.7\u00a0% of those labelled Black, Male. "
        "The highest share is 98.3\u00a0%, for Indian, Male."
    )


def test_counterpart_that_is_the_best_group_is_named_once() -> None:
    found = FACES["facellm", "race", "accuracy_gap", ""]
    assert sentence(found) == (
        "facellm is right on 79.7\u00a0% (345 of 433) of the images labelled Black, "
        "against 93.7\u00a0% of those labelled Latino_Hispanic."
    )


def test_rate_of_a_class_names_the_class() -> None:
    found = FACES["deepface", "race", "true_positive_rate", "Female"]
    assert sentence(found) == (
        "deepface recognises “Female” on 13.0\u00a0% (28 of 216) of its images labelled Black, "
        "against 51.1\u00a0% of those labelled White."
    )


def test_higher_is_worse_for_false_positives() -> None:
    cells = {("a",): (10, 100), ("b",): (40, 100), ("c",): (5, 100)}
    found = finding(
        metric="false_positive_rate", subject="cat", by_group=group_values(cells), model="m"
    )
    assert sentence(found) == (
        "m wrongly says “cat” on 40.0\u00a0% (40 of 100) of the images of other classes labelled "
        "b, against 5.0\u00a0% of those labelled c."
    )


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (
            Verdict.DISPARITY,
            "What m answers for images of “cat” depends on race (Cramér's V 0.420, medium).",
        ),
        (
            Verdict.INCONCLUSIVE,
            "What m answers for images of “cat” may depend on race (Cramér's V 0.420, medium).",
        ),
        (
            Verdict.BELOW_THRESHOLD,
            "What m answers for images of “cat” hardly depends on race (Cramér's V 0.420, medium).",
        ),
    ],
)
def test_effect_size_claims_no_more_than_its_verdict(verdict: Verdict, expected: str) -> None:
    found = finding(
        metric="cramers_v", subject="cat", value=0.42, model="m", groups="race", verdict=verdict
    )
    assert sentence(found) == expected


def test_effect_size_says_who_is_wrong_more_often() -> None:
    assert sentence(FACES["deepface", "race", "cramers_v", "Female"]) == (
        "What deepface answers for images of “Female” depends on race (Cramér's V 0.380, medium): "
        "it is wrong on 87.0\u00a0% (188 of 216) of those labelled Black, against 48.9\u00a0% of "
        "those labelled White."
    )


@pytest.mark.parametrize(
    ("metric", "subject", "expected"),
    [
        (
            "demographic_parity",
            "",
            "How often m gives a class as its answer differs by up to 25.0 percentage points "
            "between groups of race.",
        ),
        (
            "equalized_odds",
            "cat",
            "Among images that are, or are not, of “cat”, how often m says so differs by 25.0 "
            "percentage points between groups of race.",
        ),
        (
            "effect_size_mean",
            "",
            "Over the classes, what m answers depends on race with a mean effect size of 0.250 "
            "(small).",
        ),
    ],
)
def test_metric_as_a_whole(metric: str, subject: str, expected: str) -> None:
    found = finding(metric=metric, subject=subject, value=0.25, model="m", groups="race")
    assert sentence(found) == expected


def test_lower_is_worse_for_the_worst_group() -> None:
    bad = finding(metric="worst_group_accuracy", excess=-0.5, threshold=0.05)
    mild = finding(metric="accuracy_gap", excess=0.1, threshold=0.05)
    assert [f.metric for f in ranked([mild, bad])] == ["worst_group_accuracy", "accuracy_gap"]
    assert "threshold 0.050 below chance" in figures(bad)


def test_not_estimable_gives_its_reason() -> None:
    found = finding(value=NAN, verdict=Verdict.NOT_ESTIMABLE, reason="one group only", model="m")
    assert sentence(found) == (
        "Accuracy gap (GAP): m, race × gender cannot be estimated: one group only."
    )


def test_metric_without_a_phrase_gets_its_value_and_direction() -> None:
    found = finding(metric="some_new_metric", value=0.25, model="m", direction="worse for b")
    assert sentence(found) == "Some new metric: 0.250 for m, race × gender. Worse for b."


def test_heading_names_a_version_only_where_there_are_several() -> None:
    assert heading(finding(version="raw")) == ("Accuracy gap (GAP): deepface, race × gender, raw")


def test_figures_leave_out_what_there_is_not() -> None:
    found = finding(chance=NAN, q_value=NAN, threshold=NAN)
    assert figures(found) == "Accuracy gap (GAP) 0.555 · 95 % interval [0.508, 0.596]"


def test_contrast_changes_one_attribute_only() -> None:
    cells = {("x", "f"): (1, 10), ("x", "m"): (5, 10), ("y", "m"): (9, 10), ("y", "f"): (3, 10)}
    found = contrast(group_values(cells, minimum=1), "lower")
    assert found is not None
    assert (found.worst.group, found.counterpart.group, found.best.group) == (
        "x, f", "x, m", "y, m",
    )  # fmt: skip


def test_contrast_ignores_groups_that_are_too_small() -> None:
    cells = {("a",): (0, 5), ("b",): (50, 100), ("c",): (60, 100)}
    found = contrast(group_values(cells), "lower")
    assert found is not None
    assert found.worst.group == "b"


@pytest.mark.parametrize("cells", [{}, {("a",): (50, 100)}, {("a",): (5, 50), ("b",): (10, 100)}])
def test_no_contrast_without_two_different_groups(cells: dict[tuple[str], tuple[int, int]]) -> None:
    assert contrast(group_values(cells), "lower") is None


def test_rank_is_by_verdict_then_excess_in_units_of_the_threshold() -> None:
    small = finding(metric="a", excess=0.1, threshold=0.01)
    large = finding(metric="b", excess=0.5, threshold=0.1)
    unsure = finding(metric="c", excess=9.0, verdict=Verdict.INCONCLUSIVE)
    unknown = finding(metric="d", excess=NAN, verdict=Verdict.NOT_ESTIMABLE)
    assert [f.metric for f in ranked([unknown, unsure, large, small])] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.12345, "0.123"), (-0.5, "−0.500"), (0.0, "0.000"), (0.00004, "4e−05"),
        (math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞"), (None, "–"),
    ],
)  # fmt: skip
def test_number(value: float | None, expected: str) -> None:
    assert text.number(value) == expected


def test_visible_spells_out_what_cannot_be_seen() -> None:
    assert text.visible("a\u202eb\x1b[0m\n\u2066\U000e0001") == (
        "a\\u202eb\\u001b[0m\\u000a\\u2066\\U000e0001"
    )
    assert text.visible("é 你好 क्\u200cष") == "é 你好 क्\u200cष"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.00001, "<\u00a00.0001"), (0.0123, "0.012"), (0.5, "0.50"), (NAN, "–")],
)
def test_p_value(value: float, expected: str) -> None:
    assert text.p_value(value) == expected


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"table": "labels.csv", "images": None}, "labels.csv"),
        ({"table": None, "images": {"table": "images.csv", "folder": None}}, "images.csv"),
        ({"images": {"table": None, "folder": "photos"}}, "the folder photos"),
        ({"images": {"table": None, "folder": None, "format": "coco"}}, "a data set (coco)"),
        ({}, "the table given"),
    ],
)
def test_where_images_are_from_is_told(section: dict[str, object], told: str) -> None:
    resolved = {"data": section}
    result = replace(faces(), manifest=replace(faces().manifest, resolved=resolved))
    facts = next(block for block in asked(result).blocks if isinstance(block, Facts))
    assert dict(facts.pairs)["Images"].endswith(f", from {told}")
    for kind in ("similarity", "retrieval", "diversity", "concepts"):
        spoken = voice(kind)
        assert spoken is not None
        assert dict(spoken.facts(result))["Images"].endswith(f", from {told}")


def counted(result: AuditResult) -> str:
    facts = next(block for block in asked(result).blocks if isinstance(block, Facts))
    return dict(facts.pairs)["Tests"].split(";")[0]


def test_only_what_has_a_p_value_counts_as_a_test() -> None:
    some = (
        finding(subject="cat", family=Family.LEAF),
        finding(subject="dog", family=Family.LEAF, p_value=NAN, q_value=NAN),
        finding(family=Family.COMPOSITE),
    )
    result = replace(faces(), findings=some)
    assert counted(result) == "1 test of single classes, 1 test over all classes"


def test_single_tests_of_diversity_are_about_pairs() -> None:
    pair = finding(audit="diversity", subject="a − b", family=Family.LEAF)
    result = replace(faces(), findings=(pair,))
    assert counted(result) == "1 test of single pairs of sets, 0 tests over all pairs of sets"


@given(st.floats(), st.integers(0, 6))
def test_no_number_is_written_as_a_negative_zero(value: float, digits: int) -> None:
    for shown in (text.number(value, digits), text.percent(value)):
        assert not re.fullmatch(r"[-−]0(\.0*)?(\u00a0%)?", shown)


@pytest.mark.parametrize(("value", "digits"), [(-0.5, 0), (-5e-7, 6), (-0.0004, 3)])
def test_a_small_number_keeps_its_first_digit(value: float, digits: int) -> None:
    assert text.number(value, digits) == f"{value:.1g}".replace("-", "−")
