"""What a difference over all rows is at equal classes, and at equal values of an attribute."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise import report
from equipoise.audits import parse_config, run

# Share of right rows of a fair model with easy positives, by class.
EASY = {"1": Fraction(95, 100), "0": Fraction(65, 100)}


def rows_of(cells):
    """Return the rows of cells: attributes with a class, the number of rows, how many are right."""
    columns = {}
    for attributes, label, n, right in cells:
        predicted = [label] * right + ["1" if label == "0" else "0"] * (n - right)
        for name, values in {
            **{name: [value] * n for name, value in attributes.items()},
            "label": [label] * n,
            "predicted": predicted,
        }.items():
            columns.setdefault(name, []).extend(values)
    table = pl.DataFrame(columns)
    return table.with_columns(id=pl.int_range(pl.len())).sample(
        fraction=1.0, shuffle=True, seed=1
    )  # fmt: skip


def mixed(base_rates, rates=None, n=1000):
    """Return rows of groups with other base rates, and the same share of right rows by class."""
    cells = []
    for index, base in enumerate(base_rates):
        right = EASY if rates is None else rates[index]
        for label, rows in (("1", round(n * base)), ("0", n - round(n * base))):
            cells.append(({"g": f"a{index}"}, label, rows, int(rows * right[label])))
    return rows_of(cells)


def simpson():
    """Return rows in which women are 13.4 points worse, and 4.8 better at equal skin."""
    cells = []
    for sex, skin, n, right in (
        ("women", "dark", 4250, 2924), ("women", "light", 750, 711),
        ("men", "dark", 750, 480), ("men", "light", 4250, 3825),
    ):  # fmt: skip
        halves = (n // 2, right // 2), (n - n // 2, right - right // 2)
        for label, (rows, hits) in zip("01", halves, strict=True):
            cells.append(({"sex": sex, "skin": skin}, label, rows, hits))
    return rows_of(cells)


def audit(table, groups=("g",), data=(), **options):
    config = {
        "audit": "predictions",
        "data": {
            "table": table, "id": "id", "target": "label", "groups": [*groups], **dict(data),
        },
        "models": {"m": {"table": table, "prediction": "predicted"}},
        "resampling": {"replicates": 200, "permutations": 1999},
        **options,
    }  # fmt: skip
    return run(parse_config(config))


def about(result, groups):
    """Return the conclusions about groups over all classes."""
    return [
        conclusion
        for conclusion in result.conclusions
        if conclusion.groups == groups and not conclusion.subject
    ]


def by_class(conclusion):
    return next(adjustment for adjustment in conclusion.adjustments if not adjustment.by)


@pytest.mark.parametrize("base_rates", [(0.2, 0.7), (0.2, 0.4, 0.6, 0.8)])
def test_equal_rates_by_class_are_no_disparity(base_rates):
    result = audit(mixed(base_rates))
    (conclusion,) = result.conclusions
    # In the pooled mix of both groups.
    pooled = (Fraction(base_rates[0]) + Fraction(base_rates[-1])) / 2
    equal = float(pooled * EASY["1"] + (1 - pooled) * EASY["0"])
    assert not conclusion.real
    assert conclusion.at_equal_mix
    assert conclusion.group_value == pytest.approx(equal, abs=1e-9)
    assert conclusion.other_value == pytest.approx(equal, abs=1e-9)
    assert conclusion.low <= conclusion.size <= conclusion.high
    assert conclusion.size == pytest.approx(0.0, abs=1e-9)
    finding = result.findings[conclusion.finding]
    assert finding.verdict == "disparity"
    moved = float((Fraction(base_rates[-1]) - Fraction(base_rates[0])) * Fraction(30, 100))
    assert by_class(conclusion).moved == pytest.approx(moved, abs=1e-9)


def test_both_numbers_stand_in_the_sentence_of_all_surfaces(tmp_path):
    result = audit(mixed((0.2, 0.7)))
    report.write(result, tmp_path)
    loaded = equipoise.load(tmp_path)
    # NaN differs from itself.
    assert repr(loaded.conclusions) == repr(result.conclusions)
    page = (tmp_path / "report.html").read_text("utf-8")
    for surface in (repr(loaded), page, loaded._repr_html_(), report.card(loaded)):
        plain = surface.replace("\xa0", " ").replace("&nbsp;", " ").replace("\u202f", " ")
        # At equal classes 78.5 % of both; over all rows 710 and 860 of 1,000.
        assert plain.count("78.5 %") >= 2
        assert "71.0 % and 86.0 %" in plain


def test_one_mix_of_classes_is_not_mentioned():
    rates = [dict.fromkeys("01", Fraction(share, 10)) for share in (8, 9)]
    result = audit(mixed((0.5, 0.5), rates))
    (conclusion,) = about(result, "g")
    assert conclusion.verdict == "disparity"
    assert conclusion.at_equal_mix is None
    assert not by_class(conclusion).moves
    assert (conclusion.group_value, conclusion.other_value) == (0.8, 0.9)
    assert "equal" not in repr(result)


def test_a_small_move_is_said_and_does_not_lead():
    # The mix moves 3 points of 13.
    rates = [EASY, {"1": Fraction(98, 100), "0": Fraction(78, 100)}]
    result = audit(mixed((0.45, 0.55), rates))
    adjusted = [by_class(conclusion) for conclusion in result.conclusions if conclusion.adjustments]
    assert adjusted
    assert not any(adjustment.leads for adjustment in adjusted)
    assert all(adjustment.moves for adjustment in adjusted)


def test_what_is_left_at_equal_classes_is_judged():
    rates = [{name: share - Fraction(1, 10) for name, share in EASY.items()}, EASY]
    result = audit(mixed((0.2, 0.7), rates, n=2000))
    real = [conclusion for conclusion in result.conclusions if conclusion.at_equal_mix]
    assert real[0].verdict == "disparity"
    assert real[0].group == "a0"
    assert real[0].size == pytest.approx(0.1, abs=1e-9)
    assert real[0].other_value - real[0].group_value == pytest.approx(0.1, abs=1e-9)


def test_a_difference_that_turns_at_equal_classes_names_the_group_that_is_worse_there():
    rates = [EASY, {name: share - Fraction(8, 100) for name, share in EASY.items()}]
    result = audit(mixed((0.1, 0.9), rates, n=4000))
    conclusion = next(item for item in result.conclusions if item.at_equal_mix)
    over_all = {part.group: part.value for part in result.findings[conclusion.finding].by_group}
    assert over_all["a0"] < over_all["a1"]
    assert (conclusion.group, conclusion.other) == ("a1", "a0")
    assert conclusion.group_value < conclusion.other_value
    assert conclusion.size == pytest.approx(0.08, abs=1e-9)


def test_differences_within_classes_lead_where_they_cancel_at_equal_classes():
    rates = [EASY, {"1": Fraction(75, 100), "0": Fraction(85, 100)}]
    conclusions = audit(mixed((0.2, 0.8), rates, n=2000)).conclusions
    within, mix = (
        [item for item in conclusions if (item.at_equal_mix is None) is real]
        for real in (True, False)
    )
    assert conclusions[0] == within[0]
    assert within[0].subject
    assert within[0].real
    assert [(item.real, item.group_value, item.other_value) for item in mix] == [
        (False, pytest.approx(0.8), pytest.approx(0.8))
    ]


def test_the_sign_turns_at_equal_levels_of_another_attribute():
    result = audit(simpson(), ("sex", "skin"))
    (skin,), (sex,) = about(result, "skin"), about(result, "sex")
    assert result.conclusions[0] == skin
    assert (sex.group, sex.other) == ("women", "men")
    assert sex.other_value - sex.group_value == pytest.approx(0.134, abs=1e-9)
    assert sex.at_equal_mix is None
    adjustment = next(item for item in sex.adjustments if item.by == "skin")
    assert adjustment.turns
    assert not adjustment.leads
    assert adjustment.size == pytest.approx(-0.048, abs=1e-9)
    assert adjustment.group_value - adjustment.other_value == pytest.approx(0.048, abs=1e-9)
    page = report.render(result, result.page).replace("\xa0", " ").replace("&nbsp;", " ")
    assert "equal skin: 4.8 points better for women" in page


def test_an_attribute_that_groups_share_turns_nothing():
    rows = simpson().with_columns(skin=pl.lit("dark"))
    half = np.arange(len(rows)) % 2 == 0
    rows = rows.with_columns(hair=pl.Series(np.where(half, "long", "short")))
    (sex,) = about(audit(rows, ("sex", "hair")), "sex")
    (hair,) = [item for item in sex.adjustments if item.by == "hair"]
    assert hair.size == pytest.approx(0.134, abs=0.01)
    assert not hair.turns


def test_groups_that_share_no_class_are_not_compared():
    table = mixed((0.0, 1.0))
    assert all(not item.adjustments for item in audit(table).conclusions)


def test_rows_of_a_unit_count_together():
    table = mixed((0.2, 0.7), n=500)
    copies = pl.concat([table] * 4).with_columns(unit="id").with_columns(id=pl.int_range(pl.len()))
    (alone,) = audit(table).conclusions
    (repeated,) = audit(copies, data={"unit": "unit"}).conclusions
    first, second = by_class(alone), by_class(repeated)
    assert second.moved == pytest.approx(first.moved, abs=1e-9)
    width = first.moved_high - first.moved_low
    assert second.moved_high - second.moved_low == pytest.approx(width, rel=0.05)


def test_without_verdicts_nothing_is_adjusted():
    result = audit(mixed((0.2, 0.7)), resampling={"method": "none"})
    assert all(not conclusion.adjustments for conclusion in result.conclusions)
    assert all(math.isnan(finding.q_value) for finding in result.findings)
