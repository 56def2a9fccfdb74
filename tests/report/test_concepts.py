"""How the report speaks of concepts and of what choices do to them."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from equipoise import audits
from equipoise.core import AuditResult
from equipoise.report import render
from equipoise.report.blocks import Table, Words
from equipoise.report.sections import concepts, concepts_plots
from equipoise.report.voices import voice
from equipoise.report.words import sentence as finding_sentence
from equipoise.report.words_concepts import order_sentence, sentence, versions_of
from report.drawn import charts
from report.synthetic import faces

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "concepts"

VERSIONS = versions_of(
    [
        {"version": "baseline", "changes": "", "keys": [], "prevalence": "observed", "ratio": 5.0},
        {
            "version": "fixed", "changes": "prevalence held fixed", "keys": ["prevalence"],
            "prevalence": "weighted", "ratio": 5.0,
        },
        {
            "version": "hall", "changes": "samples", "keys": ["prevalence", "ratio"],
            "prevalence": "hall", "ratio": 4.0,
        },
        {
            "version": "observed", "changes": "as it is", "keys": ["prevalence"],
            "prevalence": "observed", "ratio": 5.0,
        },
        {
            "version": "boxes", "changes": "rows whose box is at least 0.05",
            "keys": ["where.box"], "prevalence": "observed", "ratio": 5.0,
        },
    ]
)  # fmt: skip


def row(effect: str, version: str, **changes: Any) -> dict[str, Any]:
    base = {
        "metric": "average_precision", "concept": "chef", "group_a": "men", "group_b": "women",
        "version": version, "effect": effect, "baseline_value": 0.12, "value": 0.01,
        "low": -0.02, "high": 0.04, "change": -0.11, "change_low": -0.15, "change_high": -0.08,
    }  # fmt: skip
    return base | changes


SAID = [
    (
        [row("explains", "fixed")],
        "chef: the disparity in average precision between men and women (0.12) is explained by "
        "prevalence: with 5 negatives for each positive in every group it is 0.01 [−0.02, 0.04].",
    ),
    (
        [row("explains", "fixed"), row("explains", "hall", value=0.02, low=-0.03, high=0.05)],
        "chef: the disparity in average precision between men and women (0.12) is explained by "
        "prevalence: with 5 negatives for each positive in every group it is 0.01 [−0.02, 0.04]; "
        "so too under “hall” (0.02 [−0.03, 0.05]).",
    ),
    (
        [row("explains", "boxes", baseline_value=-0.12, value=-0.01, low=-0.04, high=0.02)],
        "chef: the disparity in average precision between men and women (0.12) is explained by "
        "“boxes” (rows whose box is at least 0.05): there it is 0.01 [−0.02, 0.04].",
    ),
    (
        [row("surfaces", "observed", baseline_value=0.01, value=0.2, low=0.1, high=0.3)],
        "chef: the disparity in average precision between men and women surfaces with prevalence "
        "as the data have it: 0.20 [0.10, 0.30], worse for women, against 0.01 in the baseline. "
        "It is one of prevalence.",
    ),
    (
        [
            row(
                "surfaces", "observed", baseline_value=0.01, value=0.2, low=0.1, high=0.3,
                change_low=-0.1, change_high=0.3,
            )
        ],
        "chef: the disparity in average precision between men and women surfaces with prevalence "
        "as the data have it: 0.20 [0.10, 0.30], worse for women, against 0.01 in the baseline.",
    ),
    (
        [row("switches", "boxes", value=-0.3, low=-0.4, high=-0.2)],
        "chef: the disparity in average precision between men and women switches under “boxes” "
        "(rows whose box is at least 0.05): worse for men by 0.30 [0.20, 0.40], in the baseline "
        "for women by 0.12.",
    ),
    (
        [row("magnifies", "boxes", concept="", metric="auroc", value=0.3, low=0.2, high=0.4)],
        "Mean over concepts: the disparity in AUROC between men and women (0.12) grows under "
        "“boxes” (rows whose box is at least 0.05): 0.30 [0.20, 0.40].",
    ),
    (
        [row("lost power", "boxes", value=0.1, low=-0.1, high=0.3)],
        "chef: the disparity in average precision between men and women (0.12) is not significant "
        "under “boxes” (rows whose box is at least 0.05): 0.10 [−0.10, 0.30]; the change may be "
        "chance, so nothing is explained.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "text"), SAID)
def test_an_effect_in_words(rows: list[dict[str, Any]], text: str) -> None:
    assert sentence(rows, VERSIONS) == text


def test_of_false_positives_the_higher_rate_is_worse() -> None:
    told = sentence(
        [row("switches", "boxes", metric="false_positive_rate", value=-0.3, low=-0.4, high=-0.2)],
        VERSIONS,
    )
    assert "worse for women by 0.30 [0.20, 0.40], in the baseline for men by 0.12." in told


def test_an_order_that_switches_in_words() -> None:
    switched = {
        "concept": "chef", "group_a": "men", "group_b": "women", "model_a": "a", "model_b": "b",
        "version": "boxes", "baseline_larger": "a", "larger": "b", "difference": -0.2,
        "low": -0.3, "high": -0.1,
    }  # fmt: skip
    assert order_sentence([switched, switched | {"version": "hall"}]) == (
        "chef, men and women: the larger disparity is that of a in the baseline, and that of b "
        "under “boxes” by 0.20 [0.10, 0.30], “hall” by 0.20 [0.10, 0.30]."
    )


@cache
def example() -> AuditResult:
    config = audits.load_config(EXAMPLE / "audit.yaml")
    return audits.run(config, base=EXAMPLE)


def test_the_matrix_has_a_symbol_for_every_concept_and_version() -> None:
    section = concepts.versions(example())
    assert section is not None
    data = charts(section.blocks)[0].data["rows"]
    assert len(data) == 7 * 6
    symbols = {(cell["concept"], cell["version"]): cell["symbol"] for cell in data}
    assert symbols["nurse", "large boxes"] == "⇄"
    assert symbols["guitar", "adults only"] == "×"
    assert symbols["chef", "observed prevalence"] == "+"
    assert symbols["chef", "large boxes"] == "–"
    assert symbols["wheelchair", "baseline"] == "●"
    assert data[0]["concept"] == "mean over concepts"


def test_effects_are_counted_by_version() -> None:
    section = concepts.versions(example())
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert table.caption == "How many concepts each version changes"
    titles = [column.title for column in table.columns]
    large = dict(
        zip(titles, next(row for row in table.rows if row[0] == "large boxes"), strict=True)
    )
    assert large["⇄ switches"] == "1"
    assert large["– none"] == "1"
    assert sum(int(str(cell)) for name, cell in large.items() if name != "Version") == 6


def test_every_version_is_a_row_of_a_concept_s_plot() -> None:
    section = concepts_plots.side_by_side(example())
    assert section is not None
    plots = {chart.title: chart for chart in charts(section.blocks)[:7]}
    nurse = plots["nurse: Female − Male"].data["rows"]
    assert [point["label"] for point in nurse][:2] == ["● baseline", "● observed prevalence"]
    assert [point["value"] > 0 for point in nurse] == [False] * 4 + [True, False]
    # What cannot be estimated has no row.
    assert len(plots["chef: Female − Male"].data["rows"]) == 5


def test_average_precision_stands_beside_prevalence() -> None:
    section = concepts_plots.prevalence(example())
    assert section is not None
    value, share = charts(section.blocks)[:2]
    assert [one["concept"] for one in value.data["rows"]] == [
        one["concept"] for one in share.data["rows"]
    ]
    chef = [one["value"] for one in share.data["rows"] if one["concept"] == "chef"]
    assert max(chef) - min(chef) > 0.25
    said = [block.items[0] for block in section.blocks if isinstance(block, Words)]
    assert "Version: observed prevalence" in said


def test_conclusions_that_hold_are_counted() -> None:
    section = concepts.robust(example())
    assert section is not None
    lists = [b.items for b in section.blocks if isinstance(b, Words) and b.style == "list"]
    assert lists[1][0].startswith("Of 5 significant differences of the baseline, 3 hold in every")
    assert "wheelchair: worse for Female than for Male, in all 6 versions." in lists[1]


def test_the_order_of_two_models_switches_with_the_mapping() -> None:
    section = concepts_plots.order(example())
    assert section is not None
    told = [text for block in section.blocks if isinstance(block, Words) for text in block.items]
    assert any(
        text.startswith(
            "laptop, Female and Male: the larger disparity is that of older in the baseline, and "
            "that of ours under “narrow mapping”"
        )
        for text in told
    )


def test_findings_read_with_prevalence_and_who_is_worse_off() -> None:
    found = {
        (f.model, f.metric, f.subject): finding_sentence(f)
        for f in example().findings
        if f.version == "baseline"
    }
    assert found["ours", "average_precision", "wheelchair"] == (
        "Average precision difference of ours (baseline) for “wheelchair” is 0.268 (gender). Worse "
        "for Female: average precision 0.467 (241 of 721 positive), against 0.735 (258 of 779 "
        "positive) for Male."
    )
    assert found["ours", "auroc", ""].startswith("AUROC difference of ours (baseline) is 0.")


def test_the_question_and_the_facts() -> None:
    spoken = voice("concepts")
    assert spoken is not None
    assert spoken.question(example()) == (
        "Do ours and older recognise 6 concepts equally well in images of different gender, and "
        "would 5 other choices say the same?"
    )
    facts = dict(spoken.facts(example()))
    assert facts["Images"] == "1\u202f500, from images.csv"
    assert facts["Metrics"] == "Average precision and AUROC"


def test_results_without_the_tables_have_no_sections() -> None:
    spoken = voice("concepts")
    assert spoken is not None
    assert [section(faces()) for section in spoken.sections()] == 5 * [None]


def test_a_result_without_versions_keeps_what_it_has() -> None:
    tables = {
        name: table
        for name, table in example().tables.items()
        if name not in ("choices", "robust", "model_order")
    }
    alone = replace(example(), tables=tables)
    assert concepts.versions(alone) is None
    assert concepts_plots.prevalence(alone) is not None
    assert 'id="prevalence"' in render(alone)


def test_names_from_the_data_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    tables = dict(example().tables)
    for name in ("choices", "robust", "concept_groups", "concepts", "model_order"):
        table = tables[name]
        place = table.column_names.index("concept")
        cells = [hostile if one == "nurse" else one for one in table["concept"].to_pylist()]
        tables[name] = table.set_column(place, "concept", pa.array(cells, pa.string()))
    page = render(replace(example(), tables=tables))
    assert hostile not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_unknown_values_are_no_numbers_on_the_page() -> None:
    data = charts((concepts.versions(example()) or pytest.fail("no section")).blocks)[0].data
    assert not any(isinstance(v, float) and math.isnan(v) for r in data["rows"] for v in r.values())
