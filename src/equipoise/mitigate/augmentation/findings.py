"""An experiment as findings and tables: what helped, by how much, and what faces still tell."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from equipoise.core.finding import Family, Finding, Verdict
from equipoise.metrics import accuracy_difference
from equipoise.mitigate.augmentation.checks import few_faces
from equipoise.mitigate.augmentation.experiment import ARMS, Experiment
from equipoise.stats.chance import benjamini_hochberg
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.verdict import judge

Floats = NDArray[np.float64]

AUDIT = "comparison"
THRESHOLD = 0.01
"""Least difference in accuracy that matters, unless another is given."""


@dataclass(frozen=True)
class Gain:
    """How much more often a network is right after one training than after another.

    Attributes
    ----------
    value, low, high, p_value : float
        Difference of accuracies, its interval and the test of none.
    method : str
    """

    value: float
    low: float
    high: float
    p_value: float
    method: str


def gain(second: Floats, first: Floats, *, level: float = 0.95) -> Gain:
    """Compare two trainings, each repeated, on the same test images.

    Parameters
    ----------
    second, first : ndarray, shape (repeats, n)
        Whether each run is right on each image; runs of one number belong together.
    level : float

    Returns
    -------
    Gain
        Student's interval with one degree of freedom less than repeats. Its variance is that of
        the runs' differences plus that of the images' mean differences, each over their number:
        too large rather than too small, since the runs share the images. With one run it is that
        of the images alone, and speaks of these two networks, not of training again. The interval
        reaches at least as far as what n images that show nothing leave open (Clopper & Pearson):
        two trainings that are both right on every image may still differ on others.
    """
    apart = second - first
    runs, images = apart.shape
    value = float(apart.mean())
    of_images = float(apart.mean(axis=0).var(ddof=1)) / images if images > 1 else math.nan
    if runs > 1:
        error = math.sqrt(float(apart.mean(axis=1).var(ddof=1)) / runs + of_images)
        freedom, over = runs - 1, f"{runs} training runs and {images} images"
    else:
        error, freedom = math.sqrt(of_images), images - 1
        over = f"{images} images; one training run, which says nothing of training again"
    half = max(float(stats.t.ppf((1 + level) / 2, freedom)) * error, _unseen(images, level))
    p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error else float(value == 0)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Gain(value, low, high, p, f"Student's t over {over}, paired")


def _unseen(images: int, level: float) -> float:
    """Return the largest share that may well be in none of n images."""
    return float(1 - ((1 - level) / 2) ** (1 / images))


def findings_of(
    done: Experiment, *, threshold: float = THRESHOLD, alpha: float = 0.05, level: float = 0.95
) -> tuple[Finding, ...]:
    """Return a finding for each network and each arm that is not the biased one.

    Each is the gain in accuracy over training on the biased images as they are. All are one
    family of tests. What says nothing has no verdict, and says why: changed faces where few
    biased images of a group have one (`LEAST_FACES`), and what is alike in a network that is not
    shown to do better than always naming the most frequent class after any of its trainings.
    """
    drafts = [
        _finding(done, network, arm, threshold, level)
        for network in done.networks
        for arm in ARMS[1:]
    ]
    q_values = benjamini_hochberg([one.p_value for one in drafts]).tolist()
    judged = (_judged(one, q, alpha) for one, q in zip(drafts, q_values, strict=True))
    return tuple(_reserved(done, one) for one in judged)


def _finding(done: Experiment, network: str, arm: str, threshold: float, level: float) -> Finding:
    first, second = done.right(network, ARMS[0]), done.right(network, arm)
    found = gain(second, first, level=level)
    models = (f"{network} ({ARMS[0]})", f"{network} ({arm})")
    worse = models[0 if found.value > 0 else 1] if found.value else ""
    known = {
        "model_a": models[0], "model_b": models[1], "value_a": float(first.mean()),
        "value_b": float(second.mean()), "worse": worse, "runs": len(first),
        "network": network, "arm": arm,
    }  # fmt: skip
    return Finding(
        audit=AUDIT, model=f"{models[1]} − {models[0]}", metric="accuracy", subject="", groups="",
        version="default", family=Family.COMPOSITE, value=found.value, ci_low=found.low,
        ci_high=found.high, level=level, chance=0.0, chance_low=math.nan, chance_high=math.nan,
        excess=found.value, p_value=found.p_value, q_value=math.nan, threshold=threshold,
        n=first.shape[1], by_group=(), excluded=(), unit="image and training run",
        method=found.method, null="the two trainings are alike: their mean difference is 0",
        parameters=json.dumps(known, ensure_ascii=False),
        direction=f"accuracy is worse for {worse}" if worse else "", verdict=Verdict.NONE,
        reason="", citation="Mandal 2024, chapter 10",
    )  # fmt: skip


def _judged(finding: Finding, q: float, alpha: float) -> Finding:
    verdict, why = judge(
        value=finding.value, low=finding.ci_low, high=finding.ci_high, chance_mean=0.0, q=q,
        threshold=finding.threshold, alpha=alpha, harm="either",
    )  # fmt: skip
    reason = why.replace("excess over chance", "difference").replace("disparity", "difference")
    return replace(finding, q_value=q, verdict=verdict, reason=reason)


def _reserved(done: Experiment, finding: Finding) -> Finding:
    """Take the verdict from a finding from which nothing follows."""
    known = json.loads(finding.parameters)
    why = few_faces(done.missing.get("biased", {})) if known["arm"] != ARMS[-1] else ""
    # Two trainings that are shown to differ are not both at chance.
    if not why and finding.verdict != Verdict.DISPARITY and _untaught(done, known["network"]):
        why = (
            f"{known['network']} is not shown to be right more often than always naming the most "
            "frequent class after any of its trainings, and nothing follows from it"
        )
    return replace(finding, verdict=Verdict.NONE, reason=why) if why else finding


def _untaught(done: Experiment, network: str) -> bool:
    """Return whether a network is not shown to do better than chance after any training."""
    own = [done.right(network, arm) for arm in ARMS]
    return not any(gain(right, np.zeros_like(right)).low > _chance(done) for right in own)


def _chance(done: Experiment) -> float:
    """Return how often always naming the most frequent class is right."""
    return float(np.bincount(done.truth).max() / len(done.truth))


_ACCURACIES = pa.schema(
    [("network", pa.string()), ("arm", pa.string()), ("runs", pa.int64()), ("images", pa.int64())]
    + [
        (name, pa.float64())
        for name in (
            "accuracy", "low", "high", "difference", "difference_low", "difference_high",
            "percent_difference", "percent_low", "percent_high", "runs_low", "runs_high", "chance",
        )
    ]
)  # fmt: skip
_ASSOCIATIONS = pa.schema(
    [(name, pa.string()) for name in ("network", "arm", "class", "faces", "towards")]
    + [
        (name, pa.float64())
        for name in ("value", "low", "high", "chance_low", "chance_high", "p_value")
    ]
)
_MISSING = pa.schema(
    [("images", pa.string()), ("group", pa.string()), ("without", pa.int64()), ("of", pa.int64())]
)
_IMAGES = pa.schema(
    [(name, pa.string()) for name in ("images", "class", "group")] + [("count", pa.int64())]
)


def tables_of(done: Experiment, *, seed: int = 0, replicates: int = 1000) -> dict[str, pa.Table]:
    """Return the tables of an experiment.

    They are `augmentation`, `augmentation_associations`, `augmentation_images` (how many of each
    set, class and group) and `faces_missing`.

    The first has the form of the source's Table 10.1, a row for each network and arm: accuracy
    with its interval, `chance` that of always naming the most frequent class, and the Accuracy
    Difference to the network trained on balanced images.
    """
    rows = {
        "augmentation": (_accuracies(done, seed, replicates), _ACCURACIES),
        "augmentation_associations": (_associated(done), _ASSOCIATIONS),
        "augmentation_images": (_counts(done), _IMAGES),
        "faces_missing": (_missing(done), _MISSING),
    }
    return {name: pa.Table.from_pylist([*found], schema) for name, (found, schema) in rows.items()}


def _accuracies(done: Experiment, seed: int, replicates: int) -> Iterator[dict[str, object]]:
    for network in done.networks:
        balanced = done.said[network, ARMS[-1]]
        for arm in ARMS:
            right = done.right(network, arm)
            own = gain(right, np.zeros_like(right))
            row: dict[str, object] = {
                "network": network, "arm": arm, "runs": len(right), "images": right.shape[1],
                "accuracy": own.value, "low": max(own.low, 0.0), "high": min(own.high, 1.0),
                "chance": _chance(done),
            }  # fmt: skip
            if arm != ARMS[-1]:
                row |= _difference(done, balanced, done.said[network, arm], seed, replicates)
            yield row


def _difference(
    done: Experiment, balanced: NDArray[np.int64], other: NDArray[np.int64], seed: int, many: int
) -> dict[str, object]:
    found = accuracy_difference(
        done.truth, balanced, other, resampling=Bootstrap(replicates=many), rng=seed
    )
    interval = found.interval()
    parts = {part.metric: part for part in found.parts}
    over, percent = parts.get("mean_over_runs"), parts["percent_difference"]
    unseen = _unseen(len(done.truth), 0.95)
    ends = {
        "difference": _reaching(interval.low, interval.high, found.value, unseen),
        "percent": _reaching(percent.low, percent.high, percent.value, 100 * unseen),
    }
    if over is not None:
        ends["runs"] = _reaching(over.low, over.high, found.value, unseen)
    row: dict[str, object] = {
        "difference": found.value, "percent_difference": percent.value,
    }  # fmt: skip
    for name, (low, high) in ends.items():
        row |= {f"{name}_low": low, f"{name}_high": high}
    return row


def _reaching(low: float, high: float, value: float, least: float) -> tuple[float, float]:
    """Widen an interval of a size to `least` on both sides: where no image tells, it has none."""
    return min(low, max(value - least, 0.0)), max(high, value + least)


def _associated(done: Experiment) -> Iterator[dict[str, object]]:
    for (network, arm), found in done.associations.items():
        for (name, faces), estimate in found.items():
            interval, chance = estimate.interval(), estimate.chance
            yield {
                "network": network, "arm": arm, "class": name, "faces": faces,
                "towards": done.groups[0 if estimate.value > 0 else 1], "value": estimate.value,
                "low": interval.low, "high": interval.high,
                "chance_low": math.nan if chance is None else chance.low,
                "chance_high": math.nan if chance is None else chance.high,
                "p_value": estimate.p_value,
            }  # fmt: skip


def _missing(done: Experiment) -> Iterator[dict[str, object]]:
    for images, groups in done.missing.items():
        for group, (without, of) in groups.items():
            yield {"images": images, "group": group, "without": without, "of": of}


def _counts(done: Experiment) -> Iterator[dict[str, object]]:
    for images, counts in done.counts.items():
        for (name, group), count in counts.items():
            yield {"images": images, "class": name, "group": group, "count": count}
