"""Training that resumes, and an experiment that says with intervals what helped."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from equipoise.core import InputError, Verdict
from equipoise.mitigate import Faces, MixedFaces, Regions, Schedule, augmentation_experiment
from equipoise.mitigate.augmentation.changes import ARMS
from equipoise.mitigate.augmentation.experiment import (
    Experiment,
    compare_trainings,
    difference_findings,
    findings_of,
    tables_of,
)
from equipoise.mitigate.training import Job, network, predict, train
from equipoise.planted.faces import TOOLS, draw_faces

BIASED = (0.05, 0.05, 0.95, 0.95)
SHORT = Schedule(epochs=2, batch=32)


def faces(n, shares, seed):
    sample = draw_faces(n, long_hair=shares, seed=seed)
    regions = Regions(sample.boxes, np.ones(n, dtype=bool))
    return Faces(sample.images, sample.labels, sample.groups, regions)


def weights(module):
    return [value.detach().numpy() for value in module.state_dict().values()]


@pytest.mark.parametrize("name", ["cnn", "vit", "timm:resnet10t"])
def test_networks_by_name_start_from_their_seed(name):
    before = torch.get_rng_state()
    module, same, other = (network(name, 4, 40, seed=seed) for seed in (1, 1, 2))
    for first, second in zip(weights(module), weights(same), strict=True):
        np.testing.assert_array_equal(first, second)
    assert any((a != b).any() for a, b in zip(weights(module), weights(other), strict=True))
    assert torch.equal(before, torch.get_rng_state())
    codes, features = predict(module.eval(), [np.zeros((40, 40, 3), np.uint8)] * 3)
    assert len(codes) == len(features) == 3


@pytest.mark.parametrize("name", ["cnn", "vit"])
def test_a_training_taken_up_gives_the_same_weights(name, tmp_path):
    job = Job(name, TOOLS, 3, Schedule(epochs=3, batch=32))
    uninterrupted = train(job, MixedFaces(faces(64, BIASED, 1), seed=2), tmp_path / "whole.pt")

    class Stopped(MixedFaces):
        def training_image(self, place):
            if self.epoch == 1:
                raise KeyboardInterrupt
            return super().training_image(place)

    with pytest.raises(KeyboardInterrupt):
        train(job, Stopped(faces(64, BIASED, 1), seed=2), tmp_path / "cut.pt")
    torch.manual_seed(99)

    class Resumed(MixedFaces):
        def training_image(self, place):
            assert self.epoch > 0
            return super().training_image(place)

    resumed = train(job, Resumed(faces(64, BIASED, 1), seed=2), tmp_path / "cut.pt")
    for expected, other in zip(weights(uninterrupted), weights(resumed), strict=True):
        np.testing.assert_array_equal(expected, other)


def run(tmp_path, **changed):
    sets = {"biased": faces(64, BIASED, 1), "balanced": faces(64, (0.5,) * 4, 2),
            "test": faces(80, (0.5,) * 4, 3)} | changed  # fmt: skip
    return augmentation_experiment(
        sets["biased"], sets["balanced"], sets["test"], tmp_path,
        networks=("cnn",), repeats=2, schedules={"cnn": SHORT},
    )  # fmt: skip


def test_the_tables_and_findings_of_an_experiment(tmp_path):
    small = run(tmp_path)
    tables, findings = tables_of(small, replicates=100), findings_of(small)
    rows = tables["augmentation"].to_pylist()
    assert [row["arm"] for row in rows] == [*ARMS]
    right = small.is_right("cnn", "biased")
    assert rows[0]["accuracy"] == right.mean()
    balanced = small.is_right("cnn", "balanced").mean()
    assert rows[0]["difference"] == pytest.approx(abs(balanced - right.mean()), abs=1e-12)
    percent = 100 * abs(balanced - right.mean()) / balanced
    assert rows[0]["percent_difference"] == pytest.approx(percent, abs=1e-9)
    assert rows[0]["percent_low"] <= rows[0]["percent_difference"] <= rows[0]["percent_high"]
    assert rows[-1]["difference"] is None
    assert rows[0]["chance"] == 0.25
    # For each of four arms and two runs, by class and kind of faces.
    assert tables["augmentation_associations"].num_rows == 4 * 2 * 4 * 2
    counts = tables["augmentation_images"].to_pylist()
    assert [row["count"] for row in counts[:2]] == [15, 1]
    assert sum(row["count"] for row in counts) == 64 + 64 + 80
    assert [finding.model for finding in findings] == [
        f"cnn ({arm}) − cnn (biased)" for arm in ARMS[1:]
    ]
    assert findings[0].value == pytest.approx(
        small.is_right("cnn", "partial mixing").mean() - right.mean(), abs=1e-12
    )


def test_what_is_no_experiment(tmp_path):
    short = faces(64, (0.0,) * 4, 1)
    with pytest.raises(InputError, match="^the balanced images have the classes and groups"):
        run(tmp_path, balanced=short)
    grown = replace(faces(8, (0.5,) * 4, 1), images=np.zeros((8, 48, 48, 3), np.uint8))
    with pytest.raises(InputError, match=r"^images of the shapes "):
        run(tmp_path, test=grown)
    tested = faces(80, (0.5,) * 4, 3)
    images = np.array(tested.images)
    images[[3, 7]] = np.asarray(faces(64, (0.5,) * 4, 2).images)[[5, 0]]
    overlapping = replace(tested, images=images)
    with pytest.raises(InputError, match="^2 of 80 test images are also .* image 3, .* image 5 of"):
        run(tmp_path, test=overlapping)


def test_the_gain_of_one_run_is_the_paired_t_of_its_images():
    random = np.random.default_rng(0)
    second, first = (random.random((1, 200)) < share for share in (0.7, 0.6))
    change = compare_trainings(second.astype(float), first.astype(float))
    test = stats.ttest_rel(second[0].astype(float), first[0].astype(float))
    assert change.p_value == pytest.approx(test.pvalue, abs=1e-12)
    ends = test.confidence_interval()
    assert (change.low, change.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert "says nothing of training again" in change.method


def test_the_interval_of_a_gain_covers_over_runs_and_images():
    random, n_covered, quiet = np.random.default_rng(5), 0, 0
    for _ in range(400):
        ease = random.normal(0, 1, 150)
        luck = random.normal(0, 0.3, (2, 3, 1))
        right = (random.normal(0, 1, (2, 3, 150)) + ease + luck > 0).astype(float)
        change = compare_trainings(right[0], right[1])
        n_covered += change.low <= 0 <= change.high
        quiet += change.p_value > 0.05
    assert n_covered / 400 >= 0.94
    assert n_covered == quiet


def test_images_that_show_nothing_leave_something_open():
    """What is never seen in n images is, at 95 %, in at most as many as Clopper-Pearson allows."""
    right = np.ones((3, 200))
    bound = stats.binomtest(0, 200).proportion_ci(0.95, "exact").high
    change = compare_trainings(right, right)
    assert (change.low, change.high) == pytest.approx((-bound, bound), abs=1e-12)
    alone = compare_trainings(right, 0 * right)
    assert (alone.low, alone.high) == pytest.approx((1 - bound, 1.0), abs=1e-12)
    truth = np.arange(200) % 2
    answers = {("cnn", arm): np.tile(truth, (3, 1)) for arm in ARMS}
    done = Experiment(("cnn",), ("a", "b"), ("x", "y"), truth, answers, {}, {})
    row = tables_of(done, replicates=100)["augmentation"].to_pylist()[0]
    for name, scale in (("difference", 1), ("runs", 1), ("percent", 100)):
        assert (row[f"{name}_low"], row[f"{name}_high"]) == (0.0, pytest.approx(scale * bound))
    assert [finding.verdict for finding in findings_of(done)] == [Verdict.INCONCLUSIVE] * 3


def experiment(shares, runs, images, missing):
    """Return predictions that are right as often as shares say, after each training."""
    truth, random = np.arange(images) % 2, np.random.default_rng(0)
    answers = {
        ("cnn", arm): np.where(random.random((runs, images)) < share, truth, 1 - truth)
        for arm, share in zip(ARMS, shares, strict=True)
    }
    return Experiment(("cnn",), ("a", "b"), ("x", "y"), truth, answers, {}, missing)


def test_changed_faces_are_judged_where_half_of_each_group_has_one():
    half_covered, few = (
        findings_of(experiment((0.6, 0.95, 0.95, 0.97), 3, 400, {"biased": missing}))
        for missing in ({"x": (0, 9), "y": (5, 10)}, {"x": (0, 9), "y": (6, 10)})
    )
    assert [finding.verdict for finding in half_covered] == [Verdict.DISPARITY] * 3
    assert [finding.verdict for finding in few] == [Verdict.NONE, Verdict.NONE, Verdict.DISPARITY]
    assert all("4 of 10 biased images of y" in finding.reason for finding in few[:2])
    assert [finding.q_value for finding in few] == [finding.q_value for finding in half_covered]


def test_a_network_that_learned_nothing_has_no_verdict_of_likeness():
    untaught, taught = (
        [
            finding.verdict
            for finding in findings_of(experiment(shares, 5, 4000, {}), threshold=0.05)
        ]
        for shares in ((0.5,) * 4, (0.5, 0.5, 0.5, 0.9))
    )
    assert untaught == [Verdict.NONE] * 3
    # One that learns from balanced images tells that the others taught it nothing.
    assert taught == [Verdict.BELOW_THRESHOLD, Verdict.BELOW_THRESHOLD, Verdict.DISPARITY]


def test_families_differ_by_the_mean_of_their_differences():
    """Against arithmetic by hand, with a bootstrap interval that holds the truth as often."""
    random, n = np.random.default_rng(3), 400
    truth = np.arange(n) % 2
    shares = {"a": (0.6, 0.9), "b": (0.7, 0.8), "c": (0.5, 0.55)}
    answers = {}
    for name, (biased, balanced) in shares.items():
        for arm in ARMS:
            share = balanced if arm == "balanced" else biased
            answers[name, arm] = np.where(random.random((2, n)) < share, truth, 1 - truth)
    done = Experiment(tuple(shares), ("x", "y"), ("f", "m"), truth, answers, {}, {})
    findings = difference_findings(done, {"CNN": ["a", "b"], "ViT": ["c"]}, replicates=300)
    values = {(finding.model, finding.version): finding for finding in findings}
    accuracy = {key: (codes == truth).mean() for key, codes in answers.items()}
    delta = {name: abs(accuracy[name, "balanced"] - accuracy[name, "biased"]) for name in shares}
    for name, expected in delta.items():
        assert values[name, "default"].value == pytest.approx(expected, abs=1e-12)
        percent = 100 * expected / accuracy[name, "balanced"]
        assert values[name, "percent"].value == pytest.approx(percent, abs=1e-9)
    difference = (delta["a"] + delta["b"]) / 2 - delta["c"]
    family = values["CNN − ViT", "default"]
    assert family.value == pytest.approx(difference, abs=1e-12)
    assert family.ci_low < difference < family.ci_high
    # The standard error by hand: images are independent, runs of one image aren't.
    signed = {
        name: (answers[name, "balanced"] == truth).mean(0) * 1.0
        - (answers[name, "biased"] == truth).mean(0)
        for name in shares
    }
    error = np.std((signed["a"] + signed["b"]) / 2 - signed["c"]) / np.sqrt(n)
    width = (family.ci_high - family.ci_low) / (2 * stats.norm.ppf(0.975))
    assert width == pytest.approx(error, rel=0.2)
    assert {finding.verdict for finding in findings} == {Verdict.NONE}
