"""What is said of a recipe follows from its numbers."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from equipoise.core.finding import Verdict
from equipoise.mitigate.assessing import Row, assessed
from equipoise.mitigate.crossfit import Assessment
from equipoise.mitigate.measuring import Measured
from equipoise.mitigate.outcomes import outcomes
from equipoise.mitigate.result import findings_of, notes_of, tables_of
from equipoise.mitigate.split import Split

SUBJECTS = [f"s{number:02d}" for number in range(24)]


def found(ndkl: float, accuracy: float) -> Measured:
    wobble = {name: ndkl + 0.001 * place for place, name in enumerate(SUBJECTS)}
    right = {str(row): float(row < 1000 * accuracy) for row in range(1000)}
    return Measured({("ndkl", "hue"): wobble}, {("accuracy", "scenes"): right})


def said(after: Mapping[str, Measured], floor: Measured | None) -> dict[str, str]:
    rows = assessed(found(0.8, 0.9), after, floor)
    return {one.recipe: one.conclusion for one in outcomes(rows)}


def test_what_transfers_and_what_does_not() -> None:
    after = {
        "good": found(0.4, 0.89), "dear": found(0.4, 0.87), "part": found(0.6, 0.9),
        "none": found(0.8, 0.9), "worse": found(1.0, 0.95),
    }  # fmt: skip
    assert said(after, found(0.2, 0.9)) == {
        "good": "transfers",
        "dear": "costs too much",
        "part": "transfers in part",
        "none": "does not transfer",
        "worse": "does not transfer",
    }


def test_without_a_floor_half_of_the_number_is_asked_for() -> None:
    assert said({"a": found(0.45, 0.9)}, None) == {"a": "transfers in part"}
    assert said({"a": found(0.35, 0.9)}, None) == {"a": "transfers"}


def test_numbers_of_a_row() -> None:
    bias, utility = assessed(found(0.8, 0.9), {"a": found(0.5, 0.88)}, found(0.2, 0.9))
    assert (bias.role, bias.n, bias.difference) == ("bias", 24, pytest.approx(-0.3))
    assert bias.share == pytest.approx(0.5)
    assert bias.reaches
    assert (utility.role, utility.n) == ("utility", 1000)
    assert utility.difference == pytest.approx(-0.02)
    assert utility.low < -0.02 < utility.high
    assert math.isnan(utility.share)
    assert not utility.reaches


def test_a_fall_that_chance_explains_is_none() -> None:
    row = Row("a", "bias", "ndkl", "hue", 4, 0.8, 0.2, -0.6, -1, 0, 0.125, 0.125, "all 16 signs")
    assert not row.lowered
    assert row.open
    (outcome,) = outcomes([row])
    assert outcome.conclusion == "cannot be told"
    assert outcome.sentence == (
        "of 1 disparity of withheld subjects, 1 fell (NDKL over hue, 0.800 to 0.200) and none "
        "rose. No change is beyond chance (q < 0.05); of 1, 4 subjects cannot tell whether it "
        "fell by half. Accuracy was not measured"
    )


def price(measure: str, difference: float, low: float) -> Row:
    return Row(
        "a", "utility", measure, "scenes", 100, 0.9, 0.9 + difference, difference, low, 0.1, 0.5,
        0.5, "signs",
    )  # fmt: skip


HALF = Row(
    "a", "bias", "ndkl", "hue", 9, 0.8, 0.3, -0.5, -0.6, -0.4, 0.01, 0.01, "signs", 0.1, 0.71, 0.57,
    0.86,
)  # fmt: skip
PART = Row("a", "bias", "ndkl", "hue", 9, 0.8, 0.7, -0.1, -0.2, -0.1, 0.01, 0.01, "signs", 0.1)


def test_without_accuracy_nothing_is_said_to_transfer() -> None:
    (outcome,) = outcomes([HALF, price("text_recall_at_1", 0.0, -0.01)])
    assert outcome.conclusion == "price not measured"
    assert not outcome.transfers
    assert outcome.sentence.endswith(
        ". Accuracy was not measured; recall changed, at worst, by 0 points"
    )


@pytest.mark.parametrize("bias", [HALF, PART])
def test_a_recall_that_falls_is_a_price_too(bias: Row) -> None:
    rows = [bias, price("accuracy", 0.01, -0.01), price("text_recall_at_1", -0.9, -0.95)]
    (outcome,) = outcomes(rows)
    assert outcome.conclusion == "costs too much"
    assert outcome.sentence.endswith(
        ". Accuracy changed by +1.0 points; recall changed, at worst, by −90.0 points (its "
        "interval reaches −95.0 points). More than 2 points were lost in text retrieval R@1 on "
        "scenes"
    )


def test_a_disparity_at_the_floor_is_neither_halfway_nor_short_of_it() -> None:
    reason = "the number before is not clear of the floor"
    at_floor = replace(HALF, about="frame", before=0.11, after=0.05, share_reason=reason)
    assert not at_floor.reaches
    (outcome,) = outcomes([HALF, at_floor, price("accuracy", 0.0, -0.01)])
    assert outcome.transfers
    assert outcome.sentence == (
        "of 2 disparities of withheld subjects, 2 fell (NDKL over hue, 0.800 to 0.300; NDKL over "
        "frame, 0.110 to 0.050) and none rose. Beyond chance (q < 0.05), 2 fell (1 from near the "
        "floor). By the estimate, 1 of the 2 that fell did so at least halfway to the floor, with "
        "its whole interval. 1 was not clear of the floor before: no half can be told of it. "
        "Accuracy changed by 0 points"
    )
    (outcome,) = outcomes([at_floor, price("accuracy", 0.0, -0.01)])
    assert outcome.conclusion == "cannot be told"
    assert "Beyond chance (q < 0.05), 1 fell (1 from near the floor). 1 was not" in outcome.sentence
    (row, _) = assessed(found(0.8, 0.9), {"a": found(0.5, 0.9)}, found(0.9, 0.9))
    assert row.share_reason == reason


# The estimate is beyond the half, and its interval is not.
BARELY = replace(HALF, share_low=0.48)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([HALF], "1 fell. By the estimate, the one that fell did so at least halfway to the floor, "
         "with its whole interval"),
        ([BARELY], "1 fell. By the estimate, the one that fell did so at least halfway to the "
         "floor, not with its whole interval"),
        ([HALF, BARELY, HALF], "3 fell. By the estimate, 3 of the 3 that fell did so at least "
         "halfway to the floor, 2 with the whole interval"),
        ([BARELY, BARELY, PART], "3 fell. By the estimate, 2 of the 3 that fell did so at least "
         "halfway to the floor, none with the whole interval"),
        ([PART, replace(PART, share_reason="near")], "2 fell (1 from near the floor). By the "
         "estimate, none that was clear of the floor did so halfway to the floor. 1 was not clear "
         "of the floor before: no half can be told of it"),
        ([PART, PART], "2 fell. By the estimate, none of the 2 that fell did so halfway to the "
         "floor"),
    ],
)  # fmt: skip
def test_that_it_was_half_is_told_of_the_estimate_and_of_the_interval(
    rows: list[Row], said: str
) -> None:
    sentence = outcomes(rows)[0].sentence
    assert f". Beyond chance (q < 0.05), {said}. Accuracy was not measured" in sentence


def test_without_a_floor_the_interval_of_the_difference_is_held_against_half() -> None:
    nothing = {"floor": math.nan, "share": math.nan, "share_low": math.nan, "share_high": math.nan}
    row = replace(HALF, **nothing)
    assert row.clears
    assert not replace(row, high=-0.39).clears
    assert not replace(row, before=0.0, after=0.0, difference=0.0).clears
    said = outcomes([row])[0].sentence
    assert ". By the estimate, the one that fell did so by half or more, with its whole in" in said
    less = outcomes([replace(PART, **nothing)])[0].sentence
    assert ". By the estimate, the one that fell did not do so by half. Accuracy" in less


def test_what_rose_is_told_as_what_fell_is() -> None:
    def changed(about: str, after: float, q: float) -> Row:
        change = after - 0.8
        return replace(
            HALF, about=about, after=after, difference=change, low=change - 0.05, q_value=q
        )

    rows = [
        changed("a", 0.9, 0.5), changed("b", 0.95, 0.01), changed("c", 0.7, 0.01),
        changed("d", 0.8, 1.0), changed("e", 1.0, 0.9), changed("f", 1.1, 0.8),
        replace(changed("g", 1.2, 0.7), measure="logit_gap"), price("accuracy", 0.0, -0.01),
    ]  # fmt: skip
    (outcome,) = outcomes(rows)
    # What is shown best comes first, and of many changes three are named.
    assert outcome.sentence == (
        "of 7 disparities of withheld subjects, 1 fell (NDKL over c, 0.800 to 0.700), 5 rose (NDKL "
        "over b, 0.800 to 0.950; NDKL over a, 0.800 to 0.900; similarity gap in logits over g, "
        "0.800 to 1.200; 2 more) and 1 stayed as it was. Beyond chance (q < 0.05), 1 fell and 1 "
        "rose. By the estimate, the one that fell did not do so halfway to the floor. Accuracy "
        "changed by 0 points"
    )


def test_an_interval_beyond_the_margin_is_told() -> None:
    (outcome,) = outcomes([HALF, price("accuracy", -0.015, -0.035)])
    assert outcome.transfers
    assert outcome.sentence.endswith(
        ". Accuracy changed by −1.5 points (its interval reaches −3.5 points)"
    )
    (outcome,) = outcomes([HALF, price("accuracy", -0.015, -0.018)])
    assert outcome.sentence.endswith(". Accuracy changed by −1.5 points")


def test_an_interval_that_rules_half_of_the_way_out_is_no_transfer() -> None:
    row = Row("a", "bias", "ndkl", "hue", 9, 0.8, 0.75, -0.05, -0.3, 0.2, 0.5, 0.5, "signs", 0.1)
    assert not row.open
    assert outcomes([row])[0].conclusion == "does not transfer"


def test_an_assessment_ends_as_every_audit_does() -> None:
    before, after = found(0.8, 0.9), {"a": found(0.4, 0.9)}
    rows = assessed(before, after, found(0.2, 0.9))
    half = Split(tuple(SUBJECTS[:12]), tuple(SUBJECTS[12:]))
    other = Split(half.withheld, half.training)
    assessment = Assessment(
        rows, outcomes(rows), (half, other), before, after, found(0.2, 0.9), {"a": 1.0}, {}
    )
    findings = findings_of(assessment)
    assert [one.metric for one in findings] == ["ndkl_change", "accuracy_change"]
    assert {one.verdict for one in findings} == {Verdict.NONE}
    # A change has no chance level: nothing is drawn, and a page says none.
    assert all(math.isnan(number) for one in findings for number in (one.chance, one.excess))
    assert findings[0].direction == "NDKL of withheld subjects fell from 0.812 to 0.411"
    tables = tables_of(assessment)
    assert {name: table.num_rows for name, table in tables.items()} == {
        "mitigation": 2, "mitigation_recipes": 1, "mitigation_subjects": 24,
    }  # fmt: skip
    assert {row["fold"] for row in tables["mitigation_subjects"].to_pylist()} == {0, 1}
    assert "each of 24 subjects was withheld once, in 2 folds" in notes_of(assessment)[0]
    assert notes_of(assessment)[1].startswith(
        "A recipe transfers where every disparity fell (q < 0.05, signs of the differences "
        "exchanged over subjects), by the estimate at least halfway to the floor, and accuracy and "
    )
    words = " ".join([*notes_of(assessment), *(one.sentence for one in outcomes(rows))]).lower()
    assert not any(word in words for word in ("debias", "unbiased", "solved"))
