"""What a plan says that a design can't give, before any model runs."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from audits.concepts import worlds as concepts
from equipoise import audits
from equipoise.audits.limits import Assumed, limit_of_concepts, limit_of_mistakes, limit_of_sets
from equipoise.cli.app import app
from equipoise.core import InputError
from equipoise.metrics import count, mev_sweep


def cells(classes, groups, rows):
    return np.full((classes, groups), rows)


@pytest.mark.parametrize(
    ("rows", "needed", "share"), [(20, 115, 0.25), (200, 115, 0.025)], ids=["20", "200"]
)
def test_a_wrong_label_must_be_that_common(rows, needed, share):
    limit = limit_of_mistakes("m", cells(200, 23, rows), 5, Assumed(0.2))
    assert limit.of == "mistakes"
    assert limit.numbers["rows_of_a_class"] == 23 * rows
    # The smallest expected count is that of any group here: a share of 5 in its rows.
    assert limit.numbers["wrong_labels_needed"] == needed
    assert limit.numbers["share_needed"] == share
    # A class of 20 % errors, spread over 6 labels, has one of them 5 times in 150 rows.
    assert limit.numbers["rows_of_a_cell_needed"] == 150


def world(rng, classes, groups, rows):
    """Mistakes with 6 labels, by group; a fifth are wrong, and classes differ in it."""
    truth, label, group = [], [], []
    for name in range(classes):
        right = rng.beta(8, 2.2)
        for place in range(groups):
            wrong = rng.random(rows) > np.clip(right + rng.normal(0, 0.07), 0.02, 1)
            labels = np.full(rows, name)
            mistakes = rng.choice(6, wrong.sum(), p=rng.dirichlet(np.full(6, 0.6)))
            labels[wrong] = classes + 6 * name + mistakes
            truth += [name] * rows
            label += labels.tolist()
            group += [f"g{place}"] * rows
    return np.array(truth), np.array(label), np.array(group)


@pytest.mark.parametrize(
    ("classes", "groups", "rows", "least"),
    [(60, 23, 20, 5), (60, 23, 200, 5), (100, 2, 20, 5), (100, 2, 100, 5), (100, 2, 100, 2)],
)
def test_classes_that_are_left_lie_between_the_stated_ends(classes, groups, rows, least):
    table = count(*world(np.random.default_rng(0), classes, groups, rows))
    left = mev_sweep(table, (least,))["classes"][0].as_py()
    limit = limit_of_mistakes("m", cells(classes, groups, rows), least, Assumed(0.216))
    if limit is None:
        assert left >= 0.9 * classes
        return
    numbers = limit.numbers
    error = 2 * np.sqrt(classes / 4)
    assert numbers["classes_left"] - error <= left <= numbers["classes_left_at_most"] + error


def test_enough_rows_are_no_limit():
    assert limit_of_mistakes("m", cells(50, 2, 2000), 5, Assumed(0.2)) is None
    assert limit_of_mistakes("m", cells(50, 2, 20), 0, Assumed(0.2)) is None
    # Of groups that lack a class, the others are compared.
    lacking = np.array([[40, 40, 0], [40, 0, 0]])
    assert limit_of_mistakes("m", lacking, 5, Assumed(0.2)).numbers["classes"] == 1


def test_more_mistakes_leave_more_classes():
    low, high = (
        limit_of_mistakes("m", cells(100, 2, 60), 5, Assumed(rate)).numbers for rate in (0.1, 0.3)
    )
    assert low["classes_left"] < high["classes_left"]
    assert low["rows_of_a_cell_needed"] > high["rows_of_a_cell_needed"]


def predictions(rows, error=0.3):
    rng = np.random.default_rng(1)
    truth = np.repeat([f"c{place}" for place in range(8)], 2 * rows)
    wrong = rng.random(len(truth)) < error
    label = np.where(wrong, rng.permutation(truth), truth)
    return pl.DataFrame({
        "id": np.arange(len(truth)), "truth": truth, "label": label,
        "gender": ["women", "men"] * (len(truth) // 2),
    })  # fmt: skip


def predictions_config(table, **changes):
    return audits.parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": ["gender"]},
        "models": {"m": {"table": table, "prediction": "label"}},
    } | changes)  # fmt: skip


def test_of_predictions_at_hand_classes_are_counted():
    table = predictions(30)
    config = predictions_config(table)
    (limit,) = audits.plan(config).limits
    left = audits.run(config).tables["classes"]["effect_size"]
    estimable = int(np.isfinite(left.to_numpy(zero_copy_only=False)).sum())
    assert limit.numbers["classes_left"] == limit.numbers["classes_left_at_most"] == estimable
    assert limit.numbers["error_rate"] is None
    assert limit.numbers["share_needed"] == pytest.approx(5 / 30)
    assert audits.plan(predictions_config(table, metrics={"effect_sizes": False})).limits == ()
    assert audits.plan(predictions_config(predictions(400))).limits == ()


def concept_config(**versions):
    scores, labels, group = concepts.world(3, n=600)
    labels[np.flatnonzero(labels[:, 1])[30:], 1] = False
    data = concepts.tables(scores, labels, group)
    return audits.parse_config(concepts.values(data, versions=versions))


def test_concepts_with_enough_images_in_every_group_are_counted():
    config = concept_config(strict={"min_positives": 70}, same={"prevalence": "observed"})
    first, strict = audits.plan(config).limits
    assert (first.of, first.numbers["concepts"]) == ("concepts", 4)
    assert first.numbers["in_every_group"] == 3
    assert first.numbers["left_out"] == 1
    assert 0 < first.numbers["enough_for_most"] < 20
    assert strict.numbers["min_positives"] == 70
    assert strict.numbers["in_every_group"] < 3


def test_concepts_that_all_have_enough_are_no_limit():
    positives = np.array([[50, 60], [70, 50]])
    assert limit_of_concepts("m", positives, 50) is None
    numbers = limit_of_concepts("m", positives, 51).numbers
    assert (numbers["in_every_group"], numbers["enough_for_most"]) == (0, 50)


def test_sets_that_pass_the_filters():
    assert limit_of_sets("s", 1000, 40, 30, Assumed()) is None
    assert limit_of_sets("s", 1000, None, 30, Assumed(kept_share=0.05)) is None
    few = limit_of_sets("s", 1000, 12, 30, Assumed(kept_share=0.9)).numbers
    assert few == {
        "candidates": 1000, "kept": 12, "kept_share": 0.012, "sets_needed": 30,
        "kept_share_needed": 0.03,
    }  # fmt: skip
    stated = limit_of_sets("s", 1000, None, 30, Assumed(kept_share=0.01)).numbers
    assert (stated["kept"], stated["kept_share"]) == (10, 0.01)
    unknown = limit_of_sets("s", 1000, None, 30, Assumed()).numbers
    assert (unknown["kept"], unknown["kept_share_needed"]) == (None, 0.03)


def test_kept_sets_at_hand_are_counted():
    path = Path(__file__).resolve().parents[2] / "examples/generation/audit.yaml"
    config = audits.load_config(path)
    shares = {
        finding.subject: finding.value
        for finding in audits.run(config, base=path.parent).findings
        if finding.metric == "kept_share" and finding.subject
    }
    assert audits.plan(config, base=path.parent).limits == ()
    strict = config.model_copy(update={"min_group_size": 70})
    limits = audits.plan(strict, base=path.parent, kept_share=0.99).limits
    assert {limit.place: limit.numbers["kept_share"] for limit in limits} == shares
    assert {limit.numbers["kept_share_needed"] for limit in limits} == {70 / 80}


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2])
def test_bad_shares(share):
    config = predictions_config(predictions(30))
    for name in ("error_rate", "kept_share"):
        with pytest.raises(InputError, match=f"^{name}"):
            audits.plan(config, **{name: share})


def test_the_command_prints_limits(tmp_path):
    predictions(30).write_csv(tmp_path / "rows.csv")
    file = tmp_path / "c.yaml"
    file.write_text(
        "audit: predictions\n"
        "data: {table: rows.csv, id: id, target: truth, groups: [gender]}\n"
        "models: {m: {table: rows.csv, prediction: label}}\n"
    )
    shown = CliRunner().invoke(app, ["plan", str(file), "--error-rate", "0.3"])
    (limit,) = audits.plan(audits.load_config(file), base=tmp_path, error_rate=0.3).limits
    assert f"limit: {limit.text}" in shown.output
    facts = json.loads(
        CliRunner().invoke(app, ["plan", str(file), "--kept-sets", "0.1", "--json"]).output
    )
    assert facts["limits"][0]["of"] == "mistakes"
    assert facts["limits"][0]["classes"] == 8
    assert CliRunner().invoke(app, ["plan", str(file), "--error-rate", "1.5"]).exit_code != 0
