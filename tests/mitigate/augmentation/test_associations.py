"""Associations of trained networks: what each run draws, and means over runs and families."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from equipoise.core import InputError
from equipoise.metrics import association_score
from equipoise.mitigate import Faces, Regions, Schedule, augmentation_experiment
from equipoise.mitigate.augmentation.associations import (
    AttributeImages,
    association_findings,
    draw_images,
)
from equipoise.mitigate.augmentation.changes import Changes, Noise
from equipoise.mitigate.augmentation.experiment import (
    accuracy_findings,
    difference_findings,
    findings_of,
    tables_of,
)
from equipoise.planted.faces import draw_faces

GROUPS = ("long hair", "short hair")
CLASSES = ("bar", "cross")


def faces(n, seed):
    drawn = draw_faces(n, long_hair=(0.5,) * 4, seed=seed)
    regions = Regions(drawn.boxes, np.ones(n, dtype=bool))
    return Faces(drawn.images, drawn.labels, drawn.groups, regions)


def test_no_image_is_drawn_for_two_runs():
    test, people = faces(96, 1), faces(40, 2)
    runs = draw_images(AttributeImages(people, attributes=4, targets=3), test, 3, seed=7)
    for label in {*test.labels}:
        for run in runs:
            targets = run.targets[label]
            assert {*test.labels[targets]} == {label}
            assert sorted(test.groups[targets]) == [*GROUPS[:1] * 3, *GROUPS[1:] * 3]
        for a, b in combinations(runs, 2):
            assert not {*a.targets[label]} & {*b.targets[label]}
    for run in runs:
        for group, rows in run.attributes.items():
            assert len(rows) == 4
            assert {*people.groups[rows]} == {group}
    drawn = [row for run in runs for rows in run.attributes.values() for row in rows]
    assert len({*drawn}) == len(drawn) == 3 * 2 * 4
    again = draw_images(AttributeImages(people, attributes=4, targets=3), test, 3, seed=7)
    other = draw_images(AttributeImages(people, attributes=4, targets=3), test, 3, seed=8)
    for name in GROUPS:
        assert runs[0].attributes[name].tolist() == again[0].attributes[name].tolist()
    assert any((runs[0].targets[n] != other[0].targets[n]).any() for n in runs[0].targets)


def test_too_few_images_are_refused():
    test, people = faces(32, 1), faces(40, 2)
    with pytest.raises(InputError, match="test images of bar: 4 of long hair; expected 3 runs of"):
        draw_images(AttributeImages(people, targets=2), test, 3, seed=7)
    with pytest.raises(InputError, match="attributes: 20 of long hair; expected 3 runs of 7"):
        draw_images(AttributeImages(people, attributes=7), test, 3, seed=7)


def estimates(random):
    return {
        (label, kind): association_score(*random.normal(size=(3, 6, 4)), resampling=None)
        for label in CLASSES
        for kind in ("whole", "masked")
    }


def test_means_are_over_runs_and_families_and_the_total_over_classes():
    random = np.random.default_rng(0)
    associations = {
        (network, arm): [estimates(random) for _ in range(3)]
        for network in ("a", "b")
        for arm in ("biased", "balanced")
    }
    findings = association_findings(associations, GROUPS, {"both": ["a", "b"]})
    by_key = {(f.model, f.metric, f.subject, f.version): f for f in findings}
    values = {
        label: np.array([
            [run[label, "masked"].value for run in associations[network, "biased"]]
            for network in ("a", "b")
        ])
        for label in CLASSES
    }  # fmt: skip
    for label, numbers in values.items():
        finding = by_key["both (biased)", "association_score", label, "masked"]
        over_runs = numbers.mean(axis=0)
        assert finding.value == pytest.approx(numbers.mean(), abs=1e-12)
        error = stats.sem(over_runs)
        expected = stats.t.interval(0.95, 2, loc=over_runs.mean(), scale=error)
        assert (finding.ci_low, finding.ci_high) == pytest.approx(expected, abs=1e-12)
        alone = by_key["a (biased)", "association_score", label, "masked"]
        assert alone.value == pytest.approx(numbers[0].mean(), abs=1e-12)
    total = by_key["both (biased)", "total_absolute_association", "", "masked"]
    assert total.value == pytest.approx(sum(abs(n.mean()) for n in values.values()), abs=1e-12)
    assert total.ci_low <= total.value <= total.ci_high
    assert total.groups == "long hair against short hair"
    assert not total.tested


def test_two_arms_with_attributes_of_their_own(tmp_path):
    sets = faces(24, 1), faces(24, 2), faces(32, 3)
    done = augmentation_experiment(
        *sets, tmp_path, networks=("cnn",), arms=("balanced", "biased"), repeats=2,
        schedules={"cnn": Schedule(epochs=1, batch=12)}, resampling=None,
        changes=Changes(noise=Noise(kind="added")),
        attributes=AttributeImages(faces(16, 4), attributes=2, targets=1),
    )  # fmt: skip
    assert done.arms == ("biased", "balanced")
    runs = done.associations["cnn", "biased"]
    assert len(runs) == 2
    assert runs[0]["bar", "whole"].n == {"targets": 2, "a": 2, "b": 2}
    assert [f.model for f in findings_of(done)] == ["cnn (balanced) − cnn (biased)"]
    accuracies = {finding.model: finding for finding in accuracy_findings(done)}
    right = done.is_right("cnn", "balanced").mean()
    assert accuracies["cnn (balanced)"].value == pytest.approx(right, abs=1e-12)
    rows = tables_of(done, replicates=100)["augmentation"].to_pylist()
    assert [row["arm"] for row in rows] == ["biased", "balanced"]
    by_run = [done.is_right("cnn", arm).mean(axis=1) for arm in ("biased", "balanced")]
    differences = {f.version: f.value for f in difference_findings(done, {}, replicates=100)}
    delta = np.abs(by_run[1] - by_run[0])
    assert differences["runs"] == pytest.approx(delta.mean(), abs=1e-12)
    assert differences["percent, runs"] == pytest.approx((100 * delta / by_run[1]).mean())
    assert differences["default"] <= differences["runs"] + 1e-12
