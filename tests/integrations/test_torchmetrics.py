"""Metrics of groups in torchmetrics: batches, processes, and the metrics behind them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import equipoise
from equipoise.core import REAL, InputError, Verdict
from integrations.page import block

torch = pytest.importorskip("torch")

GROUPS = ("women", "men")


@pytest.fixture(scope="module")
def fair():
    """Import the metrics where their tests run: all workers read this file, and they are large."""
    pytest.importorskip("torchmetrics")
    import equipoise.integrations.torchmetrics as metrics_of_groups

    return metrics_of_groups


def rows(n=600, classes=2):
    rng = np.random.default_rng(0)
    target, groups = rng.integers(0, classes, n), rng.integers(0, 2, n)
    wrong = (rng.random(n) < 0.4) & (groups == 0)
    return (*map(torch.tensor, (np.where(wrong, (target + 1) % classes, target), target, groups)),)


def updated(metric, columns, batch=70):
    for start in range(0, len(columns[0]), batch):
        metric.update(*(column[start : start + batch] for column in columns))
    return metric


@pytest.mark.parametrize(
    ("metric", "name", "options"),
    [
        ("AccuracyDifference", "accuracy.difference", {}),
        ("WorstGroupAccuracy", "worst_group_accuracy", {}),
        ("DemographicParityDifference", "demographic_parity", {}),
        ("EqualOpportunityDifference", "true_positive_rate.difference", {"positive": 1}),
        ("SkewSize", "skewsize", {}),
    ],
)
def test_batches_give_the_value_of_the_metric(fair, metric, name, options):
    predicted, target, groups = columns = rows(classes=2 if options else 4)
    collected = updated(getattr(fair, metric)(GROUPS), columns)
    names = np.array(GROUPS)[groups]
    expected = equipoise.metrics.evaluate(target, predicted, names, {name: options})[name]
    assert float(collected.compute()) == pytest.approx(expected.value)
    assert repr(collected.estimate()) == repr(expected)
    assert {*collected.estimate().n} == {*GROUPS}


def test_the_skew_of_scores_is_that_of_all_batches(fair):
    scores, groups = torch.linspace(1, 0, 200), torch.tensor([1] * 60 + [0, 1] * 70)
    collected = updated(fair.MaxSkew(20, GROUPS), (scores, groups))
    expected = equipoise.metrics.max_skew(scores.double(), np.array(GROUPS)[groups], k=20)
    assert float(collected.compute()) == pytest.approx(expected.value)
    assert repr(collected.estimate()) == repr(expected)
    assert collected.verdict() == "disparity"


def wrapped(base):
    return [part for each in base.__subclasses__() for part in (each, *wrapped(each))]


def test_a_group_that_is_always_wrong_is_no_small_difference(fair):
    # All women have the class 1 and get 0; men are always right.
    groups, target = torch.tensor([0, 1] * 200), torch.tensor([1, 1, 1, 0] * 100)
    predicted = torch.where(groups == 0, 1 - target, target)
    for metric in wrapped(fair.GroupMetric):
        if metric is fair.MaxSkew:
            collected = updated(metric(50, GROUPS), (predicted + 0.0, groups))
        else:
            collected = updated(metric(GROUPS), (predicted, target, groups))
        # Few classes have no skew of effect sizes.
        real = {Verdict.NOT_ESTIMABLE} if metric is fair.SkewSize else {*REAL}
        assert collected.verdict() in real, metric


def test_a_worst_group_is_judged_by_its_distance_from_chance(fair):
    _, target, groups = rows()
    alike = updated(fair.WorstGroupAccuracy(GROUPS), (target, target, groups))
    assert alike.verdict() == Verdict.BELOW_THRESHOLD
    apart = updated(fair.WorstGroupAccuracy(GROUPS), rows(4000))
    assert apart.verdict() == Verdict.DISPARITY


def test_predictions_may_be_probabilities_or_scores_of_classes(fair):
    predicted, target, groups = rows()
    value = updated(fair.AccuracyDifference(), (predicted, target, groups)).compute()
    for form in (predicted * 0.8, torch.nn.functional.one_hot(predicted).float()):
        assert updated(fair.AccuracyDifference(), (form, target, groups)).compute() == value
    with pytest.raises(InputError, match="numbers outside 0 to 1"):
        fair.AccuracyDifference().update(predicted * 3.0, target, groups)


def test_groups_have_names_that_all_processes_know(fair):
    predicted, target, groups = rows()
    metric = fair.AccuracyDifference(GROUPS)
    metric.update(predicted, target, [GROUPS[code] for code in groups])
    assert metric.compute() == updated(fair.AccuracyDifference(), rows()).compute()
    with pytest.raises(InputError, match="'children' is no name"):
        metric.update(predicted[:1], target[:1], ["children"])
    with pytest.raises(InputError, match="2 for 1 rows"):
        metric.update(predicted[:1], target[:1], groups[:2])
    with pytest.raises(InputError, match="numbers from 1 to 2"):
        updated(fair.AccuracyDifference(GROUPS), (predicted, target, groups + 1)).compute()


def test_reset_forgets_rows_and_forward_returns_the_value_of_the_batch(fair):
    metric, columns = fair.WorstGroupAccuracy(GROUPS), rows()
    assert float(metric(*columns)) == pytest.approx(float(metric.compute()))
    metric.reset()
    assert metric.rows == []
    # Too few rows of each group have no value.
    assert torch.isnan(metric(*(column[:20] for column in columns)))


def test_the_block_of_the_page_runs(fair):
    preds, target, groups = rows()
    names = {"preds": preds, "target": target, "groups": groups}
    exec(block("torchmetrics"), names)
    assert names["metric"].compute() == updated(fair.AccuracyDifference(), rows()).compute()


PROCESS = """
import sys, torch, torch.distributed as dist
sys.path[:0] = [sys.argv[3], sys.argv[3] + "/.."]
import equipoise.integrations.torchmetrics as fair
from test_torchmetrics import GROUPS, rows, updated
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
# The processes have parts of different sizes.
part = slice(0, 250) if rank == 0 else slice(250, None)
metric = updated(fair.AccuracyDifference(GROUPS), [column[part] for column in rows()])
print(float(metric.compute()), metric.estimate(), metric.verdict(), len(metric.rows), sep="|")
dist.destroy_process_group()
"""


def test_two_processes_have_the_value_of_all_rows(fair, tmp_path):
    command = [sys.executable, "-c", PROCESS]
    arguments = [str(tmp_path / "store"), str(Path(__file__).parent)]
    processes = [
        subprocess.Popen([*command, str(rank), *arguments], stdout=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    printed = [process.communicate(timeout=240)[0].strip() for process in processes]
    metric = updated(fair.AccuracyDifference(GROUPS), rows())
    value, estimate = float(metric.compute()), metric.estimate()
    # After the synchronisation each process has its own batches again: 250 and 350 rows of 70.
    expected = [f"{value}|{estimate}|disparity|{batches}" for batches in (4, 5)]
    assert printed == expected
