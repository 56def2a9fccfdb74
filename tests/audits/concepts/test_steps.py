"""What other choices do to conclusions: planted effects, the steps compared, and all surfaces."""

import json
from functools import cache

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import equipoise
from audits.concepts.worlds import frame, run, tables, values
from equipoise import audits, report
from equipoise.audits.concepts.steps import steps_of
from equipoise.cli.app import app
from equipoise.core import ConfigError, Verdict
from equipoise.report.choice_effects import chart_of_choices, table_of_steps
from equipoise.report.summary import summarize

# Effect of fixed prevalence: shares of positives in groups a and b, and how far they stand out.
EFFECTS = {
    "explains": (0.35, 0.15, 1.6, 1.6),
    "surfaces": (0.35, 0.15, 1.2, 1.9),
    "switches": (0.40, 0.12, 1.3, 1.75),
    "magnifies": (0.12, 0.25, 2.4, 1.4),
    "shrinks": (0.35, 0.15, 1.9, 1.5),
    "stays": (0.20, 0.20, 2.0, 1.3),
    "absent": (0.20, 0.20, 1.6, 1.6),
}
CHANGED = ("explains", "surfaces", "switches")


def data_of(effects, seed=2, n=6000):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    shares = np.array([effect[:2] for effect in effects])[:, group].T
    strength = np.array([effect[2:] for effect in effects])[:, group].T
    labels = rng.random(shares.shape) < shares
    scores = rng.standard_normal(shares.shape) + labels * strength
    kept = (rng.random(n) < 0.9).astype(int)
    return tables(scores, labels, np.array(["a", "b"])[group], kept=kept)


def rename(data):
    names = dict(zip(map(str, range(len(EFFECTS))), EFFECTS, strict=True))
    return {
        name: table.rename({old: new for old, new in names.items() if old in table.columns})
        for name, table in data.items()
    }


def settings(**changes):
    base = {
        "choices": {"prevalence": "observed", "min_positives": 20},
        "versions": {
            "most": {"where": {"kept": {"min": 1}}},
            "reliable": {"where": {"kept": {"min": 1}}, "prevalence": "weighted"},
        },
        "metrics": ["average_precision", "auroc"],
        "resampling": {"replicates": 200, "permutations": 400, "seed": 1},
    }
    return values(rename(data_of([*EFFECTS.values()])), **base | changes)


@cache
def planted():
    return run(settings())


def effects(baseline, version, metric="average_precision"):
    rows = frame(planted(), "choices").filter(baseline=baseline, version=version, metric=metric)
    return {row["concept"]: row["effect"] for row in rows.iter_rows(named=True) if row["concept"]}


def about_choices(result, metric="average_precision"):
    (conclusion,) = [c for c in result.conclusions if c.steps and c.metric == metric]
    return conclusion


def test_each_planted_effect_has_its_word():
    assert effects("most", "reliable") == {name: name for name in EFFECTS}
    # Read from the other end, what surfaces is explained and what grows shrinks.
    backwards = run(settings(steps=[["reliable", "most"]], metrics=["average_precision"]))
    rows = frame(backwards, "choices").filter(metric="average_precision")
    turned = dict(zip(rows["concept"], rows["effect"], strict=True))
    assert turned["surfaces"] == "explains"
    assert turned["explains"] == "surfaces"
    assert turned["magnifies"] == "shrinks"
    assert turned["shrinks"] == "magnifies"


def test_a_choice_without_effect_has_none():
    assert not {*effects("baseline", "most").values()} & {*CHANGED, "magnifies", "shrinks"}


def test_conclusions_on_choices_count_effects():
    conclusion = about_choices(planted())
    steps = {(step.baseline, step.version): step for step in conclusion.steps}
    assert [*steps] == [("baseline", "most"), ("baseline", "reliable"), ("most", "reliable")]
    step = steps["most", "reliable"]
    assert conclusion.leading_step == step
    assert step.choices == ("prevalence",)
    rows = frame(planted(), "choices").filter(
        baseline="most", version="reliable", metric="average_precision"
    )
    for name in (*CHANGED, "magnifies", "shrinks"):
        assert getattr(step, name) == (rows["effect"] == name).sum() >= 1, name
    assert step.found == (~rows["effect"].is_in(["absent", "not estimable"])).sum()
    assert conclusion.size == step.changed / step.found
    assert conclusion.n == step.found
    assert conclusion.verdict is Verdict.NONE
    assert not conclusion.about_groups
    # The last version against the baseline differs in both choices.
    assert steps["baseline", "reliable"].choices == ("prevalence", "where.kept")


def test_disparities_say_what_becomes_of_them():
    becomes = {
        conclusion.subject: (conclusion.effect, conclusion.change)
        for conclusion in planted().conclusions
        if conclusion.real and conclusion.metric == "average_precision"
    }
    for name in ("explains", "switches", "shrinks", "stays"):
        assert becomes[name] == (name, "prevalence is fixed"), name
    alone = run(settings(versions={}, metrics=["average_precision"]))
    assert all(not conclusion.effect for conclusion in alone.conclusions)


def test_prevalence_changes_no_conclusion_on_a_metric_that_does_not_depend_on_it():
    steps = about_choices(planted(), "auroc").steps
    assert all(step.changed == 0 for step in steps)
    assert all(step.found >= 4 for step in steps)


def test_conclusions_on_choices_are_stored_and_read(tmp_path):
    report.write(planted(), tmp_path)
    assert repr(report.read(tmp_path).conclusions) == repr(planted().conclusions)
    written = json.loads((tmp_path / "conclusions.json").read_text("utf-8"))
    assert written[0]["steps"][-1]["choices"] == ["prevalence"]


def on_terminal(*arguments):
    outcome = CliRunner().invoke(app, [*map(str, arguments)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_all_surfaces_start_with_the_conclusion_on_choices(tmp_path):
    result = planted()
    sentence = repr(result).splitlines()[1].removeprefix("- ")
    step = about_choices(result).leading_step
    assert sentence.startswith(f"{step.changed} of {step.found} conclusions on average precision")
    report.write(result, tmp_path, result.shown_page)
    loaded = equipoise.load(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    title = page.split('<h1 id="summary-title">')[1].split("</h1>")[0]
    plain = "".join(sentence.split())
    assert "".join(title.split()) == plain
    assert "".join(on_terminal("show", tmp_path).split()).startswith(plain)
    for text in (repr(loaded), loaded._repr_html_(), report.card(loaded)):
        assert plain in "".join(text.split())
    shown = json.loads(on_terminal("show", tmp_path, "--json"))
    assert shown["conclusions"][0]["sentence"] == sentence
    assert sum(shown["verdicts"].values()) == sum(c.about_groups for c in result.conclusions)


def test_the_first_screen_has_the_versions_and_the_choices():
    result = planted()
    conclusion = about_choices(result)
    record = chart_of_choices(result, conclusion)
    labels = [*dict.fromkeys(mark.label for mark in record.marks)]
    # What changes comes first, and three versions have a mark in each row.
    assert {*CHANGED} <= {*labels[:4]}
    assert [mark.name for mark in record.marks[:3]] == ["baseline", "most", "reliable"]
    colored = {mark.label for mark in record.marks if mark.role}
    assert {"stays", "absent", "magnifies", "shrinks"} & colored == set()
    assert {*CHANGED} <= colored
    table = table_of_steps(conclusion)
    assert len(table.rows) == len(conclusion.steps)
    counts = [*table.rows[-1][1:]]
    step = conclusion.steps[-1]
    resized = step.magnifies + step.shrinks
    assert counts == [str(n) for n in (step.surfaces, step.explains, resized, step.switches)]
    summary = summarize(result, ())
    assert summary.table.rows == table.rows
    assert summary.chart is not None
    assert summary.chart.title == record.title


def test_without_a_change_the_disparity_leads():
    most = {"most": {"where": {"kept": {"min": 1}}}}
    result = run(settings(versions=most, metrics=["average_precision"]))
    assert about_choices(result).steps[0].changed == 0
    summary = summarize(result, ("average_precision",))
    assert summary.table is None
    assert summary.statements[0].finding is not None
    assert summary.statements[-1].finding is None


def test_default_steps_start_where_fewest_choices_differ():
    config = audits.parse_config(
        settings(
            versions={
                "few": {"min_positives": 10},
                "fixed": {"min_positives": 10, "prevalence": "hall", "ratio": 4},
                "alone": {"validation": 0.3},
            }
        ),
        source="c",
    )
    assert [step.names for step in steps_of(config)] == [
        ("baseline", "few"), ("baseline", "fixed"), ("few", "fixed"), ("baseline", "alone"),
    ]  # fmt: skip
    # How many negatives count is part of how prevalence is fixed.
    assert [step.choices for step in steps_of(config)] == [
        ("min_positives",), ("prevalence", "min_positives"), ("prevalence",), ("validation",),
    ]  # fmt: skip


@pytest.mark.parametrize("steps", [[["baseline", "mots"]], [["most", "most"]], [["most"]]])
def test_bad_steps(steps):
    with pytest.raises(ConfigError) as error:
        audits.parse_config(settings(steps=steps), source="c")
    assert "steps" in str(error.value)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ({"prevalence": "hall"}, "prevalence is fixed"),
        ({"map": None, "ratio": 3, "prevalence": "weighted"}, "prevalence is fixed"),
        ({"min_positives": 9}, "a group needs 9 positives"),
        ({"metric": "auroc"}, "AUROC is measured"),
        ({"unlabelled": "leave out"}, "images without a concept are left out"),
        ({"incomplete": "concept"}, "a concept with few positives of a group is left out"),
        ({"columns": {"gender": "kept"}}, "gender is read from “kept”"),
        ({"terms": {"gender": {"x": ["a"], "y": ["b"]}}}, "other terms stand for gender"),
        ({"where": {"kept": {"min": 1}}}, "rows are selected by kept"),
        ({"validation": 0.3}, "thresholds are tuned on 30 % of rows"),
    ],
)
def test_every_choice_has_words(version, text):
    config = audits.parse_config(settings(versions={"v": version}), source="c")
    (step,) = steps_of(config)
    assert step.change.replace("\u00a0", " ") == text


def test_steps_table_names_choices():
    table = pl.from_arrow(planted().tables["steps"])
    assert table["choices"].to_list()[-1] == ["prevalence"]
