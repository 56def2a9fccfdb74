"""Albums with several persons: groups vary within units, and each person's images agree."""

import math
import os

import numpy as np
import polars as pl
import pytest

from equipoise import metrics
from equipoise.audits import parse_config, run
from equipoise.core import Aggregate, Groups, Verdict
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.labels.effect_sizes import EffectSizes
from equipoise.stats import Bootstrap, Permutation

pytestmark = pytest.mark.slow

# A sample of the slow tests has fewer.
WORLDS, ALPHA = 600 if os.environ.get("EQUIPOISE_SLOW_SAMPLE", "1") == "1" else 200, 0.05
MOST = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / WORLDS)
"""Accepted share of false alarms: three standard errors above the level, 7.7 % of 600 worlds."""
PER_PERSON = 10
NULL = Permutation(99)


def persons(rng, albums, women):
    """The album and gender of each person: one to four in an album."""
    album = np.repeat(np.arange(albums), rng.integers(1, 5, albums))
    return album.astype(str), np.where(rng.random(len(album)) < women, "f", "m")


def images(rng, *columns):
    """Each person's columns on ten images, in any order."""
    order = rng.permutation(len(columns[0]) * PER_PERSON)
    return [np.repeat(column, PER_PERSON)[order] for column in columns]


def ages(rng, albums, women):
    """Images whose label depends on the person alone, as in a data set or of answers."""
    album, gender = persons(rng, albums, women)
    album, gender, age = images(rng, album, gender, rng.choice(["young", "middle", "old"],
                                                               len(album)))  # fmt: skip
    return album, gender, age, age


def predictions(rng, albums, women, *, harder=0.0):
    """Images that a model gets wrong more often of some persons, and of women where `harder`."""
    album, gender = persons(rng, albums, women)
    errors = rng.beta(1, 3, len(album)) * (1.0 - harder) + harder * (gender == "f")
    album, gender, error = images(rng, album, gender, errors)
    truth = rng.integers(0, 2, len(error))
    wrong = rng.random(len(error)) < error
    return album, gender, truth.astype(str), (truth ^ wrong).astype(str)


def has_enough(album, gender):
    return min(len({*album[gender == name]}) for name in "fm") >= 10


def p_values(kind, album, gender, truth, label, seed):
    groups = Groups.of({"gender": gender}, min_size=2)
    counts = metrics.count(truth, label, groups, units=album)
    drawing = {"units": album, "resampling": NULL, "rng": seed}
    if kind is ages:
        association = EffectSizes("cramers_v", 5.0, False, "independence")
        estimates = metrics.measure(counts, [association], NULL, seed)
        estimates.append(metrics.demographic_parity(truth, label, groups, **drawing))
    else:
        gap = Accuracy(Aggregate.DIFFERENCE, "rows")
        estimates = metrics.measure(counts, [gap], NULL, seed)
        estimates.append(metrics.equalized_odds(truth, label, groups, **drawing))
    return [estimate.p_value for estimate in estimates]


def false_alarms(kind, albums, women):
    """The share of p-values up to 5 % of each measure, and how many worlds have enough units."""
    tested = []
    for seed in range(WORLDS):
        rows = kind(np.random.default_rng([seed, albums, int(10 * women)]), albums, women)
        if has_enough(*rows[:2]):
            tested.append(p_values(kind, *rows, seed))
    return (np.array(tested) <= ALPHA).mean(axis=0), len(tested)


@pytest.mark.parametrize(("albums", "women"), [(20, 0.5), (30, 0.5), (30, 0.2), (60, 0.2)])
@pytest.mark.parametrize("kind", [ages, predictions], ids=lambda kind: kind.__name__)
def test_groups_that_vary_within_units_give_few_false_alarms(kind, albums, women):
    shares, n = false_alarms(kind, albums, women)
    assert n >= WORLDS / 2
    assert (shares <= MOST).all(), shares


def audited(kind, rows, replicates=20):
    album, gender, truth, label = rows
    table = pl.DataFrame({"id": np.arange(len(album)), "album": album, "gender": gender,
                          "truth": truth, "label": label})  # fmt: skip
    data = {"table": table, "id": "id", "groups": ["gender"], "unit": "album", "min_group_size": 2}
    config = {
        "dataset": {"data": {"images": {"table": table, "id": "id"}, "groups": ["gender"],
                             "labels": ["label"], "unit": "album", "min_group_size": 2}},
        "answers": {"data": data, "models": {"m": {"table": table, "answer": "label"}}},
        "predictions": {"data": {**data, "target": "truth"},
                        "models": {"m": {"table": table, "prediction": "label"}}},
    }[kind]  # fmt: skip
    return run(parse_config({"audit": kind, **config, "resampling": {"replicates": replicates}}))


KINDS = {"dataset": ages, "answers": ages, "predictions": predictions}


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("kind", KINDS)
def test_audits_of_groups_that_vary_within_units_are_quiet(kind):
    alarms = 0
    for seed in range(WORLDS):
        result = audited(kind, KINDS[kind](np.random.default_rng([seed, 20]), 20, 0.5))
        alarms += any(finding.verdict is Verdict.DISPARITY for finding in result.findings)
    assert alarms <= MOST * WORLDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_in_few_units_gets_no_verdict(kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        album = np.repeat(["a", "b", "c"], 2)
        gender, label = np.tile(["f", "m"], 3), np.tile(["x", "y"], 3)
        rows = images(rng, album, gender, np.tile(["x", "y", "y"], 2), label)
        result = audited(kind, rows)
        compared = [finding for finding in result.findings
                    if finding.verdict not in (Verdict.NONE, Verdict.NOT_ESTIMABLE)]  # fmt: skip
        assert compared
        assert {finding.verdict for finding in compared} == {Verdict.INCONCLUSIVE}


def coverage(albums, women, harder=0.2):
    """How often intervals hold the gap to all rows, accuracies, and how many worlds there are."""
    held, n, error = np.zeros(4), 0, 0.25 * (1.0 - harder)
    right = {"f": 1.0 - error - harder, "m": 1.0 - error}
    overall = women * right["f"] + (1.0 - women) * right["m"]
    for seed in range(WORLDS):
        rows = predictions(np.random.default_rng([seed, albums]), albums, women, harder=harder)
        album, gender, truth, label = rows
        if not has_enough(album, gender):
            continue
        counts = metrics.count(truth, label, Groups.of({"gender": gender}, min_size=2), units=album)
        measures = [Accuracy(Aggregate.DIFFERENCE, "rows", "overall"),
                    Accuracy(Aggregate.VALUE, None)]  # fmt: skip
        gap, accuracy = metrics.measure(counts, measures, Bootstrap(400, 99), seed)
        by_group = {value.levels[0]: value for value in gap.parts[0].by_group}
        # The gap to all rows is that at the groups' shares of the rows.
        shortfall = (gender == "m").mean() * (right["m"] - right["f"])
        n += 1
        held += [
            *(estimate.interval(0.95).low <= true <= estimate.interval(0.95).high
              for estimate, true in ((gap, shortfall), (accuracy, overall))),
            *(by_group[name].low <= true <= by_group[name].high for name, true in right.items()),
        ]  # fmt: skip
    return held / n, n


@pytest.mark.parametrize(("albums", "women"), [(20, 0.5), (40, 0.2)])
def test_intervals_of_units_hold_the_truth(albums, women):
    shares, n = coverage(albums, women)
    # Three standard errors of the share that is promised.
    assert (shares >= 0.93 - 3.0 * np.sqrt(0.93 * 0.07 / n)).all(), shares
