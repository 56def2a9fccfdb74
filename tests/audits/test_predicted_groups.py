"""Groups that a model predicted: corrected by labelled rows, or without a verdict."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import Aggregate, ConfigError, DataError, Verdict

JUDGED = (Verdict.DISPARITY, Verdict.DETECTED, Verdict.BELOW_THRESHOLD)


def people(seed=0, n=4000, gap=0.1, error=0.1, share=0.1, labelled=600):
    """Return rows of which a model right in 90 % predicts the group; "b" has less accuracy."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < share, "b", "a")
    target = rng.choice(["x", "y"], n)
    right = rng.random(n) < np.where(group == "b", 0.9 - gap, 0.9)
    return pl.DataFrame({
        "id": [f"i{place}" for place in range(n)],
        "target": target,
        "prediction": np.where(right, target, np.where(target == "x", "y", "x")),
        "gender_pred": np.where(rng.random(n) < error, np.where(group == "a", "b", "a"), group),
        "gender": [name if place < labelled else None for place, name in enumerate(group)],
        "person": rng.integers(0, n // 3, n).astype(str),
    })  # fmt: skip


def run(rows, sources=None, groups=("gender_pred",), **data):
    table = {"table": rows, "id": "id", "target": "target", "groups": [*groups], **data}
    config = {
        "audit": "predictions",
        "data": table,
        "models": {"ours": {"table": rows, "prediction": "prediction"}},
        "metrics": dict.fromkeys(("effect_sizes", "skewsize", "unanswered_rate"), False),
        "resampling": {"permutations": 200, "replicates": 100},
    }
    if sources is not None:
        config["group_sources"] = sources
    return audits.run(audits.parse_config(config))


def gap(result, metric="accuracy"):
    """Return the difference between groups in a metric, without a class."""
    return next(
        finding
        for finding in result.findings
        if (finding.metric, finding.aggregate, finding.compared_to, finding.subject)
        == (metric, Aggregate.DIFFERENCE, "", "")
    )


def machine(**keys):
    return {"gender_pred": {"source": "machine", **keys}}


ROWS = people()
LABELLED = machine(labelled={"table": ROWS, "true": "gender"})


def test_the_corrected_gap_covers_what_errors_of_the_groups_hide():
    raw, corrected = gap(run(ROWS)), gap(run(ROWS, LABELLED))
    assert raw.value < 0.07
    assert raw.ci_high < 0.1
    assert corrected.value == pytest.approx(0.1, abs=0.04)
    assert corrected.ci_low <= 0.1 <= corrected.ci_high
    shares = {group.group: group for group in corrected.by_group}
    assert shares["b"].n == pytest.approx(400, abs=80)
    assert shares["b"].low < shares["b"].value < shares["b"].high
    assert corrected.value == pytest.approx(shares["a"].value - shares["b"].value)
    assert corrected.p_value == raw.p_value


def test_a_gap_of_no_errors_is_that_of_the_rows():
    rows = people(error=0.0, labelled=4000)
    raw = gap(run(rows))
    corrected = gap(run(rows, machine(labelled={"table": rows, "true": "gender"})))
    assert corrected.value == pytest.approx(raw.value, abs=1e-9)
    assert corrected.ci_low == pytest.approx(raw.ci_low, abs=0.01)
    assert corrected.ci_high == pytest.approx(raw.ci_high, abs=0.01)


def test_counts_of_labelled_rows_are_as_good_as_the_rows():
    labelled = ROWS.filter(pl.col("gender").is_not_null())
    counts = {
        true: {
            predicted: labelled.filter(gender=true, gender_pred=predicted).height
            for predicted in "ab"
        }
        for true in "ab"
    }
    by_counts, by_rows = gap(run(ROWS, machine(confusion=counts))), gap(run(ROWS, LABELLED))
    assert by_counts.value == pytest.approx(by_rows.value, abs=1e-12)
    assert by_counts.ci_high == pytest.approx(by_rows.ci_high, abs=0.01)


def counts_of(times):
    """Return the counts of a model right in 90 %, so many times ten labelled rows of each group."""
    return {"a": {"a": 9 * times, "b": times}, "b": {"a": times, "b": 9 * times}}


def test_fewer_labelled_rows_and_repeated_persons_widen_the_interval():
    few, many = (gap(run(ROWS, machine(confusion=counts_of(times)))) for times in (2, 100))
    assert few.ci_high - few.ci_low > 1.1 * (many.ci_high - many.ci_low)
    # Three copies of each row, by person, say as much as the rows.
    copies = pl.concat(
        [ROWS.with_columns(pl.col("id") + f"-{copy}", person=pl.col("id")) for copy in range(3)]
    )
    repeated = gap(run(copies, machine(confusion=counts_of(100)), unit="person"))
    assert repeated.ci_high - repeated.ci_low == pytest.approx(many.ci_high - many.ci_low, rel=0.35)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"confusion": {"a": {"a": 5, "b": 1}, "b": {"b": 5}}},
        {"confusion": {"a": {"a": 50, "b": 50}, "b": {"a": 50, "b": 51}}},
    ],
)
def test_without_a_usable_confusion_nothing_has_a_verdict(keys):
    result = run(people(gap=0.5), machine(**keys))
    judged = {finding.verdict for finding in result.findings}
    assert Verdict.INCONCLUSIVE in judged
    assert not judged & {*JUDGED}
    finding = gap(result)
    assert np.isnan([finding.p_value, finding.ci_low, finding.ci_high]).all()
    assert all(not conclusion.real for conclusion in result.conclusions)
    assert any(note.startswith("gender_pred: ") for note in result.manifest.notes)


def test_numbers_that_are_not_corrected_have_no_verdict():
    result = run(people(gap=0.5), LABELLED)
    odds = [finding for finding in result.findings if finding.metric == "equalized_odds"]
    assert odds
    assert {finding.verdict for finding in odds} == {Verdict.INCONCLUSIVE}
    assert gap(result).verdict is Verdict.DISPARITY or any(c.real for c in result.conclusions)


def test_other_attributes_keep_their_numbers():
    rows = ROWS.with_columns(
        age=pl.Series(np.random.default_rng(1).choice(["old", "new"], ROWS.height))
    )
    alone = run(rows, groups=("age",))
    beside = run(rows, LABELLED, groups=("age", "gender_pred", ["age", "gender_pred"]))

    def of_age(result):
        return [
            (finding.metric, finding.value, finding.ci_low, finding.p_value)
            for finding in result.findings
            if finding.groups == "age"
        ]

    assert str(of_age(beside)) == str(of_age(alone))
    both = [f for f in beside.findings if f.groups == "age × gender_pred"]
    corrected = [f for f in both if f.metric == "accuracy" and f.compared_to == "overall"]
    assert corrected
    assert all(len(finding.by_group) == 4 for finding in corrected)


def test_three_groups_are_held_against_all_others_corrected():
    rng = np.random.default_rng(3)
    group = rng.choice([*"abc"], 6000)
    right = rng.random(6000) < np.where(group == "c", 0.6, 0.9)
    predicted = np.where(rng.random(6000) < 0.2, rng.choice([*"abc"], 6000), group)
    target = rng.choice(["x", "y"], 6000)
    rows = pl.DataFrame({
        "id": range(6000), "target": target, "gender_pred": predicted, "gender": group,
        "prediction": np.where(right, target, np.where(target == "x", "y", "x")),
    })  # fmt: skip
    result = run(rows, machine(labelled={"table": rows, "true": "gender"}))
    leaf = next(
        finding
        for finding in result.findings
        if finding.metric == "accuracy"
        and finding.aggregate is Aggregate.AGAINST_REST
        and finding.group == "c"
    )
    assert leaf.ci_low <= -0.3 <= leaf.ci_high
    assert leaf.verdict is Verdict.DISPARITY


@pytest.mark.parametrize(
    ("name", "noted"),
    [
        ("predicted_gender", True),
        ("gender_pred", True),
        ("fairface_race", True),
        ("age.inferred", True),
        ("gender", False),
        ("predicament", False),
    ],
)
def test_a_name_that_says_that_groups_are_predicted_is_noted(name, noted):
    rows = ROWS.rename({"gender": "true"}).rename({"gender_pred": name})
    result = run(rows, groups=(name,))
    assert any("group_sources" in note for note in result.manifest.notes) == noted
    people_said = run(rows, {name: {"source": "people"}}, groups=(name,))
    assert not any("group_sources" in note for note in people_said.manifest.notes)


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        ({"race": {"source": "machine"}}, "group_sources.race"),
        ({"gender_pred": {"source": "people", "confusion": {"a": {}, "b": {}}}}, "source: machine"),
        (machine(confusion={"a": {"a": -1}, "b": {"b": 3}}), "confusion"),
        (machine(confusion={"a": {"a": 1}}), "confusion"),
        (
            machine(confusion={"a": {}, "b": {}}, labelled={"table": ROWS, "true": "gender"}),
            "expected one",
        ),
    ],
)
def test_refused_sources(sources, error):
    with pytest.raises(ConfigError, match=error):
        run(ROWS, sources)


def test_a_table_of_labelled_rows_without_the_column_is_refused():
    with pytest.raises(DataError) as raised:
        run(ROWS, machine(labelled={"table": ROWS, "true": "sex"}))
    assert raised.value.column == "sex"


def test_every_kind_withholds_verdicts_on_predicted_groups():
    rng = np.random.default_rng(4)
    images = pl.DataFrame({
        "id": range(600), "gender_pred": ["a"] * 500 + ["b"] * 100,
        "label": [*rng.choice(["x", "y"], 500, p=[0.9, 0.1]), *rng.choice(["x", "y"], 100)],
    })  # fmt: skip
    config = {
        "audit": "dataset",
        "data": {
            "images": {"table": images, "id": "id"},
            "groups": ["gender_pred"],
            "labels": ["label"],
        },
        "reference": {"shares": {"gender_pred": {"a": 0.5, "b": 0.5}}},
        "resampling": {"permutations": 400},
    }
    plain = audits.run(audits.parse_config(config))
    assert any(finding.verdict is Verdict.DISPARITY for finding in plain.findings)
    withheld = audits.run(audits.parse_config(config | {"group_sources": machine()}))
    assert not {finding.verdict for finding in withheld.findings} & {*JUDGED}
    counts = {"a": {"a": 90, "b": 10}, "b": {"a": 10, "b": 90}}
    sources = machine(confusion=counts)
    corrected = audits.run(audits.parse_config(config | {"group_sources": sources}))
    gaps = [
        next(f for f in result.findings if f.metric == "label_gap" and f.subject == "x").value
        for result in (plain, corrected)
    ]
    assert gaps[1] > 1.1 * gaps[0]


RIGHT = {"a": {"a": 90, "b": 10}, "b": {"a": 10, "b": 90}}


def represented(predicted, sources, reference=None, groups=("gender_pred",), **data):
    """Audit shares of groups; return the share of each group, and the result."""
    columns = predicted if isinstance(predicted, dict) else {"gender_pred": predicted}
    table = pl.DataFrame({"id": range(len(next(iter(columns.values())))), **columns})
    config = {
        "audit": "dataset",
        "data": {"images": {"table": table, "id": "id"}, "groups": [*groups], **data},
        "resampling": {"permutations": 400},
    }
    if reference is not None:
        name = groups[0] if isinstance(groups[0], str) else " × ".join(groups[0])
        config["reference"] = {"shares": {name: reference}}
    if sources is not None:
        config["group_sources"] = sources
    result = audits.run(audits.parse_config(config))
    leaves = [f for f in result.findings if f.metric == "representation"]
    return {leaf.subject: leaf.by_group[0] for leaf in leaves}, result


def largest_difference(result):
    return next(f for f in result.findings if f.metric == "representation_gap")


# What a model right in 90 % says of 1,800 and 200 people.
SAID = ["a"] * 1640 + ["b"] * 360


def test_shares_of_predicted_groups_are_those_of_true_groups():
    raw, plain = represented(SAID, None, {"a": 0.9, "b": 0.1})
    shares, result = represented(SAID, machine(confusion=RIGHT), {"a": 0.9, "b": 0.1})
    assert raw["b"].value == pytest.approx(0.18)
    assert largest_difference(plain).p_value < 0.05
    assert shares["b"].value == pytest.approx(0.1, abs=1e-9)
    assert shares["b"].n == 200
    assert shares["b"].low < 0.08
    assert shares["b"].high > 0.12
    corrected = largest_difference(result)
    assert corrected.value == pytest.approx(0.0, abs=1e-9)
    assert corrected.p_value > 0.05
    assert corrected.verdict not in JUDGED
    rows = {row["group"]: row for row in result.tables["representation"].to_pylist()}
    assert rows["b"]["share"] == shares["b"].value
    assert rows["b"]["ratio"] == pytest.approx(1.0)


def test_a_group_that_errors_hide_is_underrepresented():
    _, result = represented(SAID, machine(confusion=RIGHT), {"a": 0.75, "b": 0.25})
    assert largest_difference(result).value == pytest.approx(0.15)
    rarer = next(f for f in result.findings if f.subject == "b")
    assert rarer.verdict is Verdict.DISPARITY
    assert rarer.value == pytest.approx(np.log(0.4))


def test_shares_of_groups_without_a_reference_are_corrected_too():
    shares, result = represented(SAID, machine(confusion=RIGHT))
    assert shares["b"].value == pytest.approx(0.1)
    assert not {finding.verdict for finding in result.findings} & {*JUDGED}


def test_fewer_labelled_images_and_units_widen_the_interval_of_a_share():
    def width(times, **data):
        counts = {
            true: {predicted: n * times // 10 for predicted, n in row.items()}
            for true, row in RIGHT.items()
        }
        columns = {"gender_pred": SAID, "person": [str(place // 4) for place in range(2000)]}
        shares, _ = represented(columns, machine(confusion=counts), {"a": 0.9, "b": 0.1}, **data)
        return shares["b"].high - shares["b"].low

    few, many, plenty = map(width, (2, 10, 100))
    assert few > 1.2 * many > 1.5 * plenty
    assert width(100, unit="person") > 1.5 * plenty


def test_shares_are_among_true_groups_of_the_reference():
    # Of 1,000 a, 500 b and 500 c, a tenth each is taken for each other group.
    said = ["a"] * 900 + ["b"] * 550 + ["c"] * 550
    confusion = {
        true: {predicted: 80 if true == predicted else 10 for predicted in "abc"} for true in "abc"
    }
    shares, _ = represented(said, machine(confusion=confusion), {"a": 0.5, "b": 0.5})
    assert shares["a"].value == pytest.approx(2 / 3)
    assert shares["b"].value == pytest.approx(1 / 3)


def test_images_without_a_prediction_count_for_the_groups_that_lack_it():
    # Of 1,000 a and 1,000 b, half of b has none.
    said = ["a"] * 1000 + ["b"] * 500 + [None] * 500
    confusion = {"a": {"a": 100, "b": 0}, "b": {"b": 50, "none": 50}}
    shares, _ = represented(said, machine(confusion=confusion), {"a": 0.5, "b": 0.5})
    assert shares["b"].value == pytest.approx(0.5)


def test_values_of_the_second_attribute_may_be_unpredicted():
    ages = {"old": {"old": 80, "new": 10, "none": 10}, "new": {"old": 10, "new": 80, "none": 10}}
    columns = {
        "gender_pred": [*"aabb"] * 450, "age_pred": ["old", "new"] * 900,
    }  # fmt: skip
    both = {"gender_pred": machine(confusion=RIGHT)["gender_pred"]}
    both["age_pred"] = {"source": "machine", "confusion": ages}
    shares, _ = represented(columns, both, groups=[["gender_pred", "age_pred"]])
    assert [share.value for share in shares.values()] == pytest.approx([0.25] * 4)


@pytest.mark.parametrize(
    "confusion",
    [
        {"a": {"a": 51, "b": 49}, "b": {"a": 49, "b": 51}},
        {"a": {"a": 90, "b": 10}, "b": {"none": 100}},
        {"a": {"a": 90, "c": 10}, "c": {"a": 10, "c": 90}},
    ],
)
def test_shares_have_no_verdict_where_errors_cannot_be_undone(confusion):
    shares, result = represented(SAID, machine(confusion=confusion), {"a": 0.5, "b": 0.5})
    assert np.isnan([shares["a"].low, shares["b"].high]).all()
    assert not {finding.verdict for finding in result.findings} & {*JUDGED}
    assert np.isnan([row["low"] for row in result.tables["representation"].to_pylist()]).all()


def test_the_table_of_labels_has_the_shares_of_true_groups():
    # Half of 1,800 a and all of 200 b have the label.
    columns = {
        "gender_pred": ["a"] * 1620 + ["b"] * 180 + ["a"] * 20 + ["b"] * 180,
        "label": ["x", "y"] * 900 + ["x"] * 200,
    }
    sources = machine(confusion=RIGHT)
    _, result = represented(columns, sources, {"a": 0.5, "b": 0.5}, labels=["label"])
    rows = {(row["group"], row["label"]): row for row in result.tables["label_shares"].to_pylist()}
    assert rows["b", "x"]["share"] == pytest.approx(1.0, abs=0.01)
    assert rows["a", "x"]["share"] == pytest.approx(0.5, abs=0.01)
    assert rows["b", "x"]["rest"] == rows["a", "x"]["share"]
    assert np.isnan(rows["b", "x"]["ratio_low"])
