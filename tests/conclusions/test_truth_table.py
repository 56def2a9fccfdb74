"""Constructed runs whose truth is known: what must lead on every surface, and what must not."""

import json
import math
import re
from functools import cache, partial
from html import unescape
from typing import Any, NamedTuple

import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

import equipoise
from conclusions import worlds
from equipoise import audits, report
from equipoise.cli.app import app
from equipoise.cli.runs import page_of
from equipoise.report.leading_chart import chart_of
from equipoise.report.words import metric_verdict
from equipoise.review.server import application
from review.browser import HOST, TOKEN, ask
from review.project import finished


class Lead(NamedTuple):
    """Records of the first conclusion of a model; None and "any" are not checked.

    Attributes
    ----------
    size : float or None
        Without its sign, which `group` and `other` give.
    within : float
        How far the size may be off.
    values : tuple of float
        Of the group that is worse off and of the other.
    """

    verdict: str
    groups: str
    group: str = "any"
    other: str = "any"
    subject: str | tuple[str, ...] = ""
    metric: str | tuple[str, ...] = "any"
    size: float | None = None
    within: float = 0.06
    values: tuple[float, float] | None = None
    model: str = "m"


class Case(NamedTuple):
    """What must lead for each model, and records that no leading conclusion may have."""

    build: Any
    leads: tuple[Lead, ...]
    never: tuple[dict[str, str], ...] = ()


DISPARITY, DETECTED = "disparity", "detected"
SMALL, OPEN = "below threshold", "inconclusive"
TWINS = tuple({"metric": name} for name in ("false_negative_rate", "equalized_odds", "precision"))
PARITY = ({"metric": "selection_rate"}, {"metric": "demographic_parity"})
OF_MISTAKES = ("cramers_v", "effect_size_mean", "skewsize")
CASES = {
    "a class of a group": Case(
        worlds.one_cell,
        (Lead(DISPARITY, "gender", "woman", "man", "nurse", "true_positive_rate", 0.32,
              values=(0.60, 0.92)),),
        TWINS,
    ),
    "two causes": Case(
        worlds.two_causes,
        (Lead(DISPARITY, "age", "old", subject="pilot", metric="true_positive_rate", size=0.37,
              values=(0.55, 0.92)),),
        TWINS,
    ),
    "an intersection": Case(
        worlds.intersection,
        (Lead(DISPARITY, "gender × age", "woman, old", metric="accuracy", size=0.20),),
        ({"groups": "gender"}, {"groups": "age"}),
    ),
    "a group beside noise": Case(
        worlds.main_effect,
        (Lead(DISPARITY, "gender", "woman", "man", metric="accuracy", size=0.14,
              values=(0.78, 0.92)),),
        ({"groups": "hair"}, {"groups": "gender × hair"}),
    ),
    "a group beside a copy with errors": Case(
        worlds.noisy_copy,
        (Lead(DISPARITY, "gender", "woman", "man", metric="accuracy", size=0.16),),
        ({"groups": "hair"}, {"groups": "gender × hair"}),
    ),
    "a group of three classes": Case(
        worlds.three_classes,
        (Lead(DISPARITY, "gender", "woman", "man", metric="accuracy", size=0.08, within=0.0001,
              values=(0.78, 0.86)),),
        ({"compared_to": "overall"},),
    ),
    "attributes that add up": Case(
        worlds.additive,
        (Lead(DISPARITY, "skin", "dark", "light", metric="accuracy", values=(0.80, 0.90)),),
        ({"groups": "gender × skin"},),
    ),
    "a group that is better off": Case(
        partial(worlds.one_group_of_three, 0.95, 0.75),
        (Lead(DISPARITY, "origin", "west", "all other groups", metric="accuracy",
              values=(0.95, 0.75)),),
        ({"group": "east"}, {"group": "north"}),
    ),
    "a group that is worse off": Case(
        partial(worlds.one_group_of_three, 0.75, 0.95),
        (Lead(DISPARITY, "origin", "west", metric="accuracy", values=(0.75, 0.95)),),
    ),
    "no answer, and no other cause": Case(
        worlds.refused_alone,
        (Lead(DISPARITY, "gender", "woman", "man", "unanswered", size=0.3, within=0.001),),
        ({"metric": "right_rate"},),
    ),
    "models with opposite differences": Case(
        worlds.opposite_models,
        (Lead(DISPARITY, "gender", metric="accuracy", model=""),
         Lead(DISPARITY, "gender", "man", "woman", metric="accuracy", values=(0.77, 0.92),
              model="harsh on man"),
         Lead(DISPARITY, "gender", "woman", "man", metric="accuracy", values=(0.77, 0.92),
              model="harsh on woman")),
    ),
    "parity that labels have in part": Case(
        worlds.labels_in_part,
        (Lead(DISPARITY, "gender", "woman", "man", "yes", "false_positive_rate", 0.3, 0.001,
              values=(0.3, 0.0)),),
        PARITY,
    ),
    "preferences that cancel": Case(
        worlds.opposite_preferences,
        (Lead(DISPARITY, "gender", subject=("builder", "engineer", "pilot", "baker", "nurse",
                                            "tailor")),),
        ({"metric": "systematic_preference"},),
    ),
    "no answer for a group": Case(
        worlds.refusal,
        (Lead(DISPARITY, "gender", "woman", "man", "unanswered", size=0.2925, within=0.001,
              values=(0.2925, 0.0)),),
        ({"metric": "accuracy"},),
    ),
    "a level": Case(
        worlds.level, (Lead(DISPARITY, "", "female", "expected", size=0.4, values=(0.1, 0.5)),),
        ({"groups": "scene"},),
    ),
    # The rates of both groups are equal, and at equal classes so is their accuracy.
    "another mix of classes": Case(
        worlds.mixed_classes, (Lead(SMALL, "gender", metric="accuracy", size=0.0),), PARITY
    ),
    "Simpson": Case(
        worlds.simpson,
        (Lead(DISPARITY, "skin", "dark", "light", metric="accuracy", values=(0.67, 0.92)),),
        ({"groups": "gender"},),
    ),
    "a fair model": Case(
        worlds.fair, (Lead(SMALL, "income", metric="accuracy", size=0.0, within=0.03),)
    ),
    "few rows": Case(worlds.few, (Lead(OPEN, "gender", metric="accuracy"),)),
    "one answer to all": Case(
        worlds.one_answer, (Lead(DISPARITY, "", metric="dominant_answer", size=1.0, within=0.0),),
        ({"groups": "gender"},),
    ),
    "base rates of the labels": Case(
        worlds.labels_alone, (Lead(SMALL, "gender", metric="accuracy", size=0.0, within=0.0),),
        PARITY,
    ),
    "rare errors": Case(
        worlds.rare_errors,
        (Lead(DISPARITY, "ethnicity", "east", "west", "yes", "false_positive_rate",
              values=(0.01, 0.001)),),
        ({"metric": "precision"},),
    ),
    "shares against statistics": Case(
        worlds.outside_shares,
        (Lead(DISPARITY, "gender", "woman", subject="bartender", size=0.36, model="painter"),),
        ({"subject": "roofer"},),
    ),
    "ties": Case(worlds.ties, (Lead(SMALL, "gender", "", "", metric="accuracy", size=0.0,
                                    within=0.0),)),
    "mistakes of one of two models": Case(
        worlds.two_models,
        (Lead(DISPARITY, "gender", subject=("", *worlds.JOBS), metric=OF_MISTAKES, size=0.55,
              model="skewed"),
         Lead(SMALL, "gender", metric="accuracy", size=0.0, within=0.0, model="even")),
    ),
    "a sentinel": Case(
        worlds.sentinel, (Lead(SMALL, "skin_type", metric="accuracy", size=0.0),),
        ({"group": "-1"},),
    ),
    "a group too small": Case(
        worlds.small_group,
        (Lead(DISPARITY, "origin", "west", "east", metric="accuracy",
              values=(0.75, 0.92)),),
        ({"group": "few"},),
    ),
    "neutral answers": Case(
        worlds.neutral_answers, (Lead(SMALL, "any", subject="any"),), ({"verdict": DISPARITY},)
    ),
    "answers of a group": Case(
        worlds.answers_of_a_group,
        (Lead(DISPARITY, "gender", subject=("doctor", "nurse"), metric="answer_gap", size=0.39),),
    ),
    "images of one prompt": Case(
        worlds.text_to_image,
        (Lead(DISPARITY, "gender", "woman", "man", "builder", size=0.9, within=0.0001,
              model="painter"),),
    ),
    "associations of one job": Case(
        worlds.associations,
        (Lead(DISPARITY, "men against women", "women", "men", "builder", "association_score",
              0.37),),
    ),
    "diversity of one region": Case(
        worlds.diversity, (Lead(DISPARITY, "region", "north", "any", "any", size=0.47),)
    ),
    "rejected images of a group": Case(
        worlds.generation,
        (Lead(DISPARITY, "gender", "woman", "man", "caption similarity", "rejected_share", 0.27,
              model="images"),),
    ),
    "a concept of a group": Case(
        worlds.concepts,
        (Lead(DISPARITY, "gender", "woman", "man", "tie", "average_precision", 0.55, 0.1),),
    ),
    "similarity of one prompt": Case(
        worlds.one_prompt,
        (Lead(DISPARITY, "gender", "woman", "man", "builder", "logit_gap", 2.6, 0.5),),
    ),
    "counterfactual sets": Case(
        worlds.ranked_sets, (Lead(DISPARITY, "gender", "woman", "man", "any", size=0.5),)
    ),
    "maps of a group": Case(
        worlds.activations,
        (Lead(DISPARITY, "gender", "woman", "man", "face", "activation_share", 0.21),),
    ),
    "predicted ages of a group": Case(
        worlds.regression,
        (Lead(DISPARITY, "gender", "woman", "man", "any", "mean_absolute_error", 3.2, 0.8),),
    ),
    "an option for one group": Case(
        worlds.questions,
        (Lead(DISPARITY, "gender", "woman", "man", "", "paired_outcome_gap", 0.2, 0.1),),
    ),
    "answers by position": Case(
        partial(worlds.questions, gap=0.0, inconsistency=1.0),
        (Lead(DETECTED, "", "", "", "", "order_inconsistency", 1.0, 1e-9),),
    ),
    "too many of one group": Case(
        partial(worlds.shares_of_three, asian=600, black=200, white=200),
        (Lead(DISPARITY, "race", "asian", "expected", "asian", size=math.log(1.8), within=1e-6,
              values=(0.6, 1 / 3), model="the data set"),),
    ),
    "too many of one group and too few of another": Case(
        partial(worlds.shares_of_three, asian=600, black=100, white=300),
        (Lead(DISPARITY, "race", "black", "expected", "black", size=math.log(10 / 3), within=1e-6,
              values=(0.1, 1 / 3), model="the data set"),),
    ),
    "a reference population": Case(
        worlds.dataset,
        (Lead(DISPARITY, "gender", "woman", "expected", "woman", size=math.log(5),
              within=1e-6, values=(0.1, 0.5), model="the data set"),),
    ),
}  # fmt: skip


@cache
def result_of(name):
    return audits.run(audits.parse_config(CASES[name].build()))


def agrees(expected, conclusion):
    """Whether a conclusion has the declared records; for the numbers see `is_near`."""
    for field in ("verdict", "groups", "group", "other", "subject", "metric"):
        wanted = getattr(expected, field)
        if wanted != "any" and getattr(conclusion, field) not in (
            wanted if isinstance(wanted, tuple) else (wanted,)
        ):
            return False
    return True


def first_of(result, model):
    return next(conclusion for conclusion in result.conclusions if conclusion.model == model)


@pytest.mark.parametrize("name", CASES)
def test_what_was_planted_leads_and_nothing_else(name):
    case, result = CASES[name], result_of(name)
    for expected in case.leads:
        lead = first_of(result, expected.model)
        assert agrees(expected, lead), lead
        if expected.size is not None:
            assert abs(lead.size) == pytest.approx(expected.size, abs=expected.within), lead
        if expected.values is not None:
            values = lead.group_value, lead.other_value
            assert values == pytest.approx(expected.values, abs=expected.within), lead
        for records in case.never:
            assert any(getattr(lead, field) != value for field, value in records.items()), lead


def squeezed(text):
    """Return text without white space and marks, as surfaces break and escape it differently."""
    return re.sub(r"[\s\\\u2028\u2029]", "", text)


def visible(html):
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", html)
    return unescape(re.sub(r"<[^>]+>", "", body))


def on_terminal(*arguments):
    outcome = CliRunner().invoke(app, [*map(str, arguments)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def without_badges(text):
    """Return the lines of a terminal without the verdict at their right end."""
    return "\n".join(re.sub(r"\s{2,}[A-Z][A-Z ,’']+$", "", line) for line in text.splitlines())


def starts_with(text, sentences):
    """Assert that the first sentence is in a text, before each of the others."""
    text, (first, *others) = squeezed(text), map(squeezed, sentences)
    place = text.find(first)
    assert place >= 0, first
    for other in others:
        if not (first.startswith(other[:40]) or other.startswith(first[:40])):
            assert not 0 <= text.find(other) < place, other


@pytest.mark.parametrize("name", CASES)
def test_all_surfaces_start_with_the_same_sentence(name, tmp_path):
    result = result_of(name)
    report.write(result, tmp_path, page_of(result))
    shown = json.loads(on_terminal("show", tmp_path, "--json"))["conclusions"]
    sentences = [conclusion["sentence"] for conclusion in shown]
    loaded = equipoise.load(tmp_path)
    for text in (
        without_badges(on_terminal("show", tmp_path)),
        visible((tmp_path / "report.html").read_text("utf-8")),
        repr(loaded),
        visible(loaded._repr_html_()),
        report.card(loaded),
    ):
        starts_with(text, sentences)
    assert repr(loaded.conclusions) == repr(result.conclusions)


def texts_of(value):
    """Yield all texts of a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_of(item)


@pytest.mark.parametrize("name", ["one answer to all", "two causes", "a reference population"])
def test_a_missing_number_is_null_in_every_json(name, tmp_path):
    result = result_of(name)
    report.write(result, tmp_path, page_of(result))
    documents = [file.read_text("utf-8") for file in tmp_path.glob("*.json")]
    documents.append(on_terminal("show", tmp_path, "--json"))
    documents += pl.read_parquet(tmp_path / "findings.parquet")["parameters"].to_list()
    for document in documents:
        content = json.loads(document, parse_constant=pytest.fail)
        assert not {"nan", "NaN"} & {*texts_of(content)}
    assert any(": null" in document for document in documents)


@pytest.mark.parametrize("name", CASES)
def test_no_verdict_on_a_page_denies_its_conclusions(name):
    result = result_of(name)
    html = report.render(result, page_of(result))
    real = [conclusion for conclusion in result.conclusions if conclusion.real]
    badges = re.findall(r'class="badge v-(\w+)|"badge":\["(\w+)"', html)
    shown = {first or second for first, second in badges} & {DISPARITY, DETECTED}
    assert bool(shown) == bool(real)
    for conclusion in real:
        assert conclusion.verdict.value in shown
    assert real or '<td class="n differs"' not in html


@pytest.mark.parametrize("name", CASES)
def test_a_chart_draws_the_first_conclusion(name):
    result = result_of(name)
    first = result.conclusions[0]
    chart = chart_of(result.findings[first.finding], first, result.findings)
    assert chart is not None
    if first.subject and first.real:
        assert any(mark.label == first.subject and mark.role for mark in chart.marks) or any(
            mark.name == first.group and mark.role == "worse" for mark in chart.marks
        )


@pytest.mark.parametrize("name", CASES)
def test_the_findings_of_a_page_are_counted_as_conclusions(name):
    result = result_of(name)
    html = report.render(result, page_of(result))
    headings = re.findall(r"<h3>([^<]*?): (?:(\d+) conclusions?, )?\d+ numbers?</h3>", html)
    counts = {title: int(n) for title, n in headings if n}
    about_groups = [c for c in result.conclusions if not c.standings]
    assert sum(counts.values()) == len(about_groups)
    of_groups = [c for c in about_groups if not metric_verdict(result.findings[c.finding])]
    assert counts.get("Disparity", 0) == sum(c.verdict.value == DISPARITY for c in of_groups)


@pytest.mark.parametrize("name", ["a class of a group", "an intersection", "no answer for a group"])
def test_the_review_starts_with_the_same_sentence(name, tmp_path):
    config = CASES[name].build()
    Image.new("RGB", (8, 8), (90, 90, 90)).save(tmp_path / "any.png")
    data = config["data"]
    table = data.pop("table").with_columns(file=pl.lit("any.png"))
    data["images"] = {"table": table, "id": data.pop("id"), "path": "file", "root": "."}
    folder = finished(tmp_path, config)
    shown = json.loads(on_terminal("show", folder, "--json"))["conclusions"]
    status, _, page = ask(application(folder, HOST, TOKEN), "/")
    assert status == 200
    starts_with(visible(page.decode()), [conclusion["sentence"] for conclusion in shown])
