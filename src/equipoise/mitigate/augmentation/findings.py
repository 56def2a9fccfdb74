"""An experiment as findings and tables: the gain of each training, and associations of faces."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy import stats

from equipoise.audits.columns import Row, table_of
from equipoise.core import Family, Finding, Floats, Verdict
from equipoise.metrics import accuracy_difference
from equipoise.mitigate.augmentation.experiment import ARMS, Experiment
from equipoise.stats.chance import benjamini_hochberg
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.verdict import harmful_reach, judge

THRESHOLD = 0.01
"""Default for the least difference in accuracy that matters."""

LEVEL = 0.95
LEAST_FACES = 0.5
"""Share of a group's biased images that need a face for a verdict on mixed and noisy faces."""


class Gain(NamedTuple):
    """Difference of a network's accuracy after two trainings, its interval and the test of none."""

    value: float
    low: float
    high: float
    p_value: float
    method: str


def gain(second: Floats, first: Floats) -> Gain:
    """Compare two trainings, each repeated, on the same test images.

    Parameters
    ----------
    second, first : ndarray, shape (repeats, n)
        Whether each run is right on each image; runs of one number belong together.

    Returns
    -------
    Gain
        Student's interval with one degree of freedom less than repeats. Its variance is that of
        the runs' differences plus that of the images' mean differences, each over their number:
        too large rather than too small, since the runs share the images. With one run it is that
        of the images alone, and speaks of these two networks, not of training again. The interval
        reaches at least as far as n images that show nothing leave open (Clopper & Pearson):
        two trainings that are both right on every image may still differ on others.
    """
    apart = second - first
    runs, images = apart.shape
    value = float(apart.mean())
    variance = float(apart.mean(axis=0).var(ddof=1)) / images if images > 1 else math.nan
    if runs > 1:
        variance += float(apart.mean(axis=1).var(ddof=1)) / runs
        freedom, over = runs - 1, f"{runs} training runs and {images} images"
    else:
        freedom = images - 1
        over = f"{images} images; one training run, which says nothing of training again"
    error = math.sqrt(variance)
    half = max(float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error, _unseen(images))
    p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error else float(value == 0)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Gain(value, low, high, p, f"Student's t over {over}, paired")


def _unseen(images: int) -> float:
    """Return the largest share that may well be in none of n images."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / images))


def findings_of(
    done: Experiment, *, threshold: float = THRESHOLD, alpha: float = 0.05
) -> tuple[Finding, ...]:
    """Return a finding for each network and each arm but the biased one.

    Each is the gain in accuracy over training on the biased images as they are. All are one
    family of tests. A finding from which nothing follows has no verdict, and says why: changed
    faces where few biased images of a group have one (`LEAST_FACES`), and what is alike in a
    network that is not shown to do better than always naming the most frequent class after any of
    its trainings.
    """
    own = [
        (network, arm, _finding(done, network, arm, threshold))
        for network in done.networks
        for arm in ARMS[1:]
    ]
    few = [
        f"{n - lost} of {n} biased images of {group}"
        for group, (lost, n) in done.missing.get("biased", {}).items()
        if n - lost < LEAST_FACES * n
    ]
    taught = {
        network
        for network in done.networks
        if any(_accuracy(done, network, arm).low > _chance(done) for arm in ARMS)
    }
    q_values = benjamini_hochberg([finding.p_value for *_, finding in own]).tolist()
    findings = []
    for (network, arm, finding), q in zip(own, q_values, strict=True):
        verdict, why = judge(
            value=finding.value, excess=abs(finding.value),
            reach=harmful_reach(finding.ci_low, finding.ci_high, "either"), q=q,
            threshold=threshold, alpha=alpha,
        )  # fmt: skip
        reason = why.replace("excess over chance", "difference").replace("disparity", "difference")
        if few and arm != ARMS[-1]:
            verdict = Verdict.NONE
            reason = f"faces are in only {' and '.join(few)}; the other images stay as they are"
        # Two trainings that are shown to differ are not both at chance.
        elif network not in taught and verdict != Verdict.DISPARITY:
            verdict, reason = Verdict.NONE, f"no training of {network} is shown to beat guessing"
        findings.append(replace(finding, q_value=q, verdict=verdict, reason=reason))
    return tuple(findings)


def _finding(done: Experiment, network: str, arm: str, threshold: float) -> Finding:
    first, second = done.right(network, ARMS[0]), done.right(network, arm)
    change = gain(second, first)
    models = (f"{network} ({ARMS[0]})", f"{network} ({arm})")
    worse = models[0 if change.value > 0 else 1] if change.value else ""
    known = {
        "model_a": models[0], "model_b": models[1], "value_a": float(first.mean()),
        "value_b": float(second.mean()), "worse": worse, "runs": len(first),
        "network": network, "arm": arm,
    }  # fmt: skip
    return Finding(
        audit="comparison", model=f"{models[1]} − {models[0]}", metric="accuracy", groups="",
        family=Family.COMPOSITE, value=change.value, ci_low=change.low, ci_high=change.high,
        level=LEVEL, chance=0.0, excess=change.value, p_value=change.p_value,
        threshold=threshold, n=first.shape[1], unit="image and training run", method=change.method,
        null="the two trainings are alike: their mean difference is 0",
        parameters=json.dumps(known, ensure_ascii=False),
        direction=f"accuracy is worse for {worse}" if worse else "",
        citation="Mandal 2024, chapter 10",
    )  # fmt: skip


def _accuracy(done: Experiment, network: str, arm: str) -> Gain:
    right = done.right(network, arm)
    return gain(right, np.zeros_like(right))


def _chance(done: Experiment) -> float:
    """Return how often always naming the most frequent class is right."""
    return float(np.bincount(done.truth).max() / len(done.truth))


def tables_of(done: Experiment, *, seed: int = 0, replicates: int = 1000) -> dict[str, pa.Table]:
    """Return the tables of an experiment.

    They are `augmentation`, `augmentation_associations`, `augmentation_images` (how many of each
    set, class and group) and `faces_missing`.

    The first has the form of the source's Table 10.1, a row for each network and arm: accuracy
    with its interval, `chance` that of always naming the most frequent class, and the Accuracy
    Difference to the network trained on balanced images.
    """
    images = (
        {"images": name, "class": label, "group": group, "count": count}
        for name, counts in done.counts.items()
        for (label, group), count in counts.items()
    )
    missing = (
        {"images": name, "group": group, "without": without, "of": n}
        for name, groups in done.missing.items()
        for group, (without, n) in groups.items()
    )
    numbers = (
        "#accuracy #low #high #difference #difference_low #difference_high #percent_difference "
        "#percent_low #percent_high #runs_low #runs_high #chance"
    )
    measured = "#value #low #high #chance_low #chance_high #p_value"
    return {
        "augmentation": table_of(
            _accuracies(done, seed, replicates), f"network arm +runs +images {numbers}"
        ),
        "augmentation_associations": table_of(
            _associations(done), f"network arm class faces towards {measured}"
        ),
        "augmentation_images": table_of(images, "images class group +count"),
        "faces_missing": table_of(missing, "images group +without +of"),
    }  # fmt: skip


def _accuracies(done: Experiment, seed: int, replicates: int) -> Iterator[Row]:
    resampling, unseen = Bootstrap(replicates=replicates), _unseen(len(done.truth))
    for network in done.networks:
        for arm in ARMS:
            own, answers = _accuracy(done, network, arm), done.answers[network, arm]
            row: Row = {
                "network": network, "arm": arm, "runs": len(answers), "images": len(done.truth),
                "accuracy": own.value, "low": max(own.low, 0.0), "high": min(own.high, 1.0),
                "chance": _chance(done),
            }  # fmt: skip
            if arm != ARMS[-1]:
                apart = accuracy_difference(
                    done.truth, done.answers[network, ARMS[-1]], answers,
                    resampling=resampling, rng=seed,
                )  # fmt: skip
                parts = {part.metric: part for part in apart.parts}
                percent, ends = parts["percent_difference"], apart.interval()
                row |= {"difference": apart.value, "percent_difference": percent.value}
                row |= _reaching("difference", ends.low, ends.high, apart.value, unseen)
                row |= _reaching("percent", percent.low, percent.high, percent.value, 100 * unseen)
                if (over := parts.get("mean_over_runs")) is not None:
                    row |= _reaching("runs", over.low, over.high, apart.value, unseen)
            yield row


def _reaching(name: str, low: float, high: float, value: float, least: float) -> dict[str, float]:
    """Widen an interval of a size to `least` on both sides: where no image tells, it has none."""
    low, high = min(low, max(value - least, 0.0)), max(high, value + least)
    return {f"{name}_low": low, f"{name}_high": high}


def _associations(done: Experiment) -> Iterator[Row]:
    for (network, arm), estimates in done.associations.items():
        for (label, faces), estimate in estimates.items():
            interval, chance = estimate.interval(), estimate.chance
            yield {
                "network": network, "arm": arm, "class": label, "faces": faces,
                "towards": done.groups[0 if estimate.value > 0 else 1], "value": estimate.value,
                "low": interval.low, "high": interval.high,
                "chance_low": math.nan if chance is None else chance.low,
                "chance_high": math.nan if chance is None else chance.high,
                "p_value": estimate.p_value,
            }  # fmt: skip
