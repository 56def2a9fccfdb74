"""Next steps: commands that a run has what they need for, with its path as it was written."""

import shlex
from dataclasses import replace

import pytest

from equipoise.audits.concepts.page import PAGE as CONCEPTS
from equipoise.audits.labels.dataset.page import PAGE as DATASET
from equipoise.audits.labels.predictions.page import PAGE as PREDICTIONS
from equipoise.audits.rankings.retrieval.page import PAGE as RETRIEVAL
from equipoise.core import AuditResult, Verdict
from equipoise.report import next_steps, render
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.next_steps import INSTALL_REVIEW, Place
from equipoise.report.result import first_screen
from report.synthetic import comparison, finding, group_values, manifest, table

CELLS = {("women",): (10, 100), ("men",): (40, 100)}
SIZES = table(
    "group groups attributes levels n usable note",
    [
        (level, name, [name], [level], 100, True, "")
        for name, levels in (("gender", ("women", "men")), ("race", ("a", "b")))
        for level in levels
    ],
)
WITHOUT_IMAGES = Place("runs/my run", examples=False)
WITH_IMAGES = Place("runs/my run", examples=True)


def run_of(*models, gate=(), loaded=(), verdict=Verdict.DISPARITY, target="label"):
    findings = tuple(
        finding(
            model=model, groups="gender", metric="accuracy", verdict=verdict,
            by_group=group_values(CELLS),
        )
        for model in models
    )  # fmt: skip
    record = manifest(
        resolved={"gate": list(gate), "data": {"target": target}},
        models={name: {"name": name} for name in loaded},
    )
    return AuditResult(findings, record, {"group_sizes": SIZES})


def commands(result, page=PREDICTIONS, place=WITHOUT_IMAGES):
    steps = first_screen(result, page, place).commands
    return [shlex.split(step.command) for step in steps if step.command]


def test_a_run_without_images_has_no_review():
    assert ["equipoise", "review", "runs/my run"] not in commands(run_of("m"))
    assert ["equipoise", "review", "runs/my run"] in commands(run_of("m"), place=WITH_IMAGES)


def test_a_review_without_its_packages_is_installed_first(monkeypatch):
    monkeypatch.setattr(next_steps, "REVIEW_PACKAGES", ("no_such_package_at_all",))
    first, second, *_ = commands(run_of("m"), place=WITH_IMAGES)
    assert first == shlex.split(INSTALL_REVIEW)
    assert second[:2] == ["equipoise", "review"]


def test_other_attributes_of_the_run_are_tested_as_causes():
    causes = [command for command in commands(run_of("m")) if command[1] == "causes"]
    assert causes == [["equipoise", "causes", "runs/my run", "--cause", "race"]]
    # The label itself explains all of a difference.
    labels = run_of("m", target="race")
    assert not [command for command in commands(labels) if command[1] == "causes"]
    alone = replace(run_of("m"), tables={})
    assert not [command for command in commands(alone) if command[1] == "causes"]


@pytest.mark.parametrize(
    ("hits", "verdict", "expected"),
    [
        ((0, 100), Verdict.DISPARITY, False), ((1, 100), Verdict.DISPARITY, True),
        ((40, 60), Verdict.NONE, False),
    ],
)  # fmt: skip
def test_an_attribute_that_is_a_prediction_or_the_label_is_no_cause(hits, verdict, expected):
    result = run_of("m")
    shares = finding(
        model="m", groups="race", metric="selection_rate", subject="cup", verdict=verdict,
        aggregate="difference",
        by_group=group_values({(name,): (n, 100) for name, n in zip("ab", hits, strict=True)}),
    )  # fmt: skip
    result = replace(result, findings=(*result.findings, shares))
    steps = next_steps.next_steps(result, PREDICTIONS, WITHOUT_IMAGES, result.findings[0])
    assert any("--cause race" in step.command for step in steps) == expected


@pytest.mark.parametrize(
    ("page", "expected"), [(PREDICTIONS, True), (CONCEPTS, True), (RETRIEVAL, False)]
)
def test_causes_are_for_kinds_whose_images_have_outcomes(page, expected):
    assert any(command[1] == "causes" for command in commands(run_of("m"), page)) == expected


def test_models_are_compared_where_a_run_has_two():
    compare = ["equipoise", "compare", "runs/my run", "--out", "runs/my run-compared"]
    assert compare in commands(run_of("a", "b"))
    assert compare not in commands(run_of("a"))
    assert compare not in commands(run_of("a", "b"), DATASET)


def test_a_comparison_is_not_compared_again():
    # Nor has it a gate: the rules of its runs are about their models.
    result = comparison()
    rules = {"gate": [{"metric": "accuracy", "min": 0.5}]}
    result = replace(result, manifest=replace(result.manifest, resolved=rules))
    assert next_steps.next_steps(result, COMPARISON, WITHOUT_IMAGES, result.findings[0]) == ()


def test_a_gate_is_checked_where_the_config_has_rules():
    rule = {"metric": "accuracy", "min": 0.5}
    assert ["equipoise", "check", "runs/my run"] in commands(run_of("m", gate=[rule]))
    assert ["equipoise", "check", "runs/my run"] not in commands(run_of("m"))


@pytest.mark.parametrize(
    ("page", "name", "expected"),
    [
        (RETRIEVAL, "hf:org/clip", True),
        (RETRIEVAL, "python:mine:load", False),
        (PREDICTIONS, "hf:org/clip", False),
    ],
)
def test_mitigation_is_for_models_that_it_can_load(page, name, expected):
    steps = first_screen(run_of("m", loaded=[name]), page, WITHOUT_IMAGES).commands
    assert any("equipoise mitigate" in step.text for step in steps) == expected


@pytest.mark.parametrize("verdict", [Verdict.INCONCLUSIVE, Verdict.BELOW_THRESHOLD])
def test_without_a_difference_nothing_is_looked_into(verdict):
    assert commands(run_of("a", "b", verdict=verdict), place=WITH_IMAGES) == []


def test_the_page_shows_each_command_in_a_line_to_copy():
    html = render(run_of("a", "b"), PREDICTIONS, WITH_IMAGES)
    text = html.replace("<span>", "").replace("</span>", "")
    assert "<code>equipoise review &#39;runs/my run&#39;</code>" in text
    assert html.count("data-copy>") == len(commands(run_of("a", "b"), place=WITH_IMAGES))


def test_a_page_without_a_place_names_no_path():
    assert not [step for step in first_screen(run_of("a"), PREDICTIONS).commands if step.command]
