"""Train on biased, mixed, noisy and balanced images, and compare on a balanced test set."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from itertools import (
    combinations,
    product,
)
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy import stats

from equipoise.audits.columns import Row
from equipoise.core import (
    Estimate,
    Family,
    Finding,
    Floats,
    InputError,
    Integers,
    NullHypothesis,
    Progress,
    Verdict,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence
from equipoise.metrics import accuracy_difference
from equipoise.mitigate.augmentation.associations import (
    FACES,
    AttributeImages,
    class_associations,
    draw_images,
)
from equipoise.mitigate.augmentation.changes import ARMS, Changes
from equipoise.mitigate.augmentation.faces import Faces
from equipoise.mitigate.measuring import ACCURACY
from equipoise.mitigate.training import (
    Job,
    Schedule,
    check_networks,
    class_codes,
    predict,
    save_network,
    train,
)
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.chance import benjamini_hochberg
from equipoise.stats.streams import stream
from equipoise.stats.verdict import harmful_reach, judge

Pair = tuple[str, str]


@record
class Experiment:
    """Predictions of every network for the test images after each training.

    Attributes
    ----------
    networks, classes, groups : tuple of str
    truth : ndarray of int64, shape (n,)
        Class of each test image.
    answers : mapping of (str, str) to ndarray of int64, shape (repeats, n)
        By network and arm: the class that each training run gives.
    associations : mapping of (str, str) to sequence of mapping of (str, str) to Estimate
        By network and arm, for each run, then by class and "whole" or "masked": how much closer
        the features of the class are to images of the first group than to those of the second.
    missing : mapping of str to mapping of str to (int, int)
        By set of images and group: images without a face, and all.
    counts : mapping of str to mapping of (str, str) to int
        By set of images, then by class and group: images.
    """

    networks: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    truth: Integers
    answers: Mapping[Pair, Integers]
    associations: Mapping[Pair, Sequence[Mapping[Pair, Estimate]]]
    missing: Mapping[str, Mapping[str, tuple[int, int]]]
    counts: Mapping[str, Mapping[Pair, int]] = field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that networks are trained on, in the order of `ARMS`."""
        return tuple(arm for arm in ARMS if (self.networks[0], arm) in self.answers)

    def is_right(self, network: str, arm: str) -> Floats:
        """Return whether each run classifies each image correctly, (repeats, n)."""
        return np.asarray(self.answers[network, arm] == self.truth, dtype=np.float64)


def augmentation_experiment(  # noqa: PLR0913 - the parts of an experiment
    biased: Faces,
    balanced: Faces,
    test: Faces,
    folder: Path,
    *,
    networks: Sequence[str] | Mapping[str, str] = ("cnn", "vit"),
    arms: Sequence[str] = ARMS,
    repeats: int = 3,
    schedules: Mapping[str, Schedule],
    changes: Changes | None = None,
    attributes: AttributeImages | None = None,
    saved: Path | None = None,
    every_run: bool = False,
    resampling: Resampling | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Experiment:
    """Train every network on each arm several times, and run it on the test images.

    Parameters
    ----------
    biased : Faces
        Training images in which group and class go together; mixed and noisy faces are theirs.
    balanced : Faces
        As many training images in which they do not.
    test : Faces
        Of the same classes, as many of each group with each class; none is trained on.
    folder : Path
        Where the state of each training is kept: a killed experiment resumes.
    networks : sequence of str, or mapping of str to str
        See `network`; or networks by the names of results.
    arms : sequence of str
        Of `ARMS`, "biased" among them.
    repeats : int
        Training runs of each arm. Runs of one number share first weights and order over arms.
    schedules : mapping of str to Schedule
        Of each network.
    changes : Changes, optional
        How faces are mixed and get noise.
    attributes : AttributeImages, optional
        Images of the groups alone for associations, and how many a run draws.
    saved : Path, optional
        Folder that gets the networks of the first run, as `save_network` writes them.
    every_run : bool
        Save the networks of all runs.
    resampling : Bootstrap, Permutation or None
        Of the associations; Bootstrap() unless given.
    seed : int
    progress : callable, optional

    Returns
    -------
    Experiment

    Raises
    ------
    InputError
        When classes or groups differ between the sets, images differ in size, a network is named
        twice, there are not two groups, one has no face in the biased images, a test image is
        trained on, or there are too few images for the draws of all runs.
    ModelError
        When a network cannot be trained.

    References
    ----------
    Mandal 2024, chapters 7 and 10.
    """
    sets = {"biased": biased, "balanced": balanced, "test": test}
    classes, groups = _check_sets(sets)
    if len({*networks}) < len(networks) or not networks or repeats < 1:
        raise InputError("expected different networks, at least one, and at least one repeat")
    kinds = networks if isinstance(networks, Mapping) else {name: name for name in networks}
    size, people = np.asarray(test.images[0]).shape[0], attributes or AttributeImages()
    check_networks([(kinds[name], schedules[name]) for name in networks], size)
    draws = draw_images(people, test, repeats, seed)
    covered = [*map(test.cover_face, range(len(test)))]
    images = {FACES[0]: [*map(np.asarray, test.images)], FACES[1]: covered}
    answers: dict[Pair, Integers] = {}
    associations: dict[Pair, list[Mapping[Pair, Estimate]]] = {}
    trainings = [(name, arm) for name in networks for arm in ARMS if arm in arms]
    for number, (name, arm) in enumerate(trainings):
        runs, scores = list[Integers](), list[Mapping[Pair, Estimate]]()
        for run in range(repeats):
            if progress is not None:
                progress("training", number * repeats + run, len(trainings) * repeats)
            change = changes or Changes()
            job = Job(kinds[name], classes, seed + run, schedules[name], change.described(arm))
            stem = re.sub(r"[^\w.]+", "-", f"{name}-{arm}-{run}")
            data = change.training_data(arm, sets, seed + run)
            module = train(job, data, folder / f"{stem}-{job.file}")
            predictions = {kind: predict(module, pictures) for kind, pictures in images.items()}
            runs.append(predictions[FACES[0]][0])
            scores.append(class_associations(
                {kind: features for kind, (_, features) in predictions.items()},
                None if people.faces is None else predict(module, [*people.faces.images])[1],
                test, draws[run], resampling or Bootstrap(), seed,
            ))  # fmt: skip
            if saved is not None and (every_run or run == 0):
                save_network(module, classes, size, saved, name_of_run(name, arm, run))
        answers[name, arm], associations[name, arm] = np.stack(runs), scores
    missing = {key: faces.regions.missing(faces.groups) for key, faces in sets.items()}
    counts = {key: _count(faces) for key, faces in sets.items()}
    truth, names = class_codes(classes, test.labels), tuple(networks)
    return Experiment(names, classes, groups, truth, answers, associations, missing, counts)


def name_of_run(network: str, arm: str, run: int) -> str:
    """Return the name of a training run; the first has none of its own."""
    return f"{network}, {arm}" + (f", run {run + 1}" if run else "")


def _check_sets(sets: Mapping[str, Faces]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the classes and the groups that all three sets have.

    Raises
    ------
    InputError
        See `augmentation_experiment`.
    """
    expected = [*_count(sets["biased"])]
    classes, groups = map(_distinct, zip(*expected, strict=True))
    for name, faces in sets.items():
        pairs = [*_count(faces)]
        if pairs != expected:
            raise InputError(
                f"the {name} images have the classes and groups {pairs}; expected "
                f"the same as the biased images: {expected}"
            )
    if len(groups) != 2 or len(classes) < 2:
        raise InputError(f"{len(groups)} groups and {len(classes)} classes; expected two and more")
    sizes: set[tuple[int, ...]] = set()
    for faces in sets.values():
        sizes.update(np.asarray(image).shape for image in faces.images)
    if len(sizes) > 1 or any(len(size) != 3 or size[0] != size[1] for size in sizes):
        raise InputError(f"images of the shapes {sizes}; expected squares of one size, (s, s, 3)")
    biased = sets["biased"]
    for group, (without, n) in biased.regions.missing(biased.groups).items():
        if without == n:
            raise InputError(
                f"biased images: no face was found in any image of {group}, so that no face could "
                "be mixed with one of the other group. To do: give the boxes of faces in columns, "
                "or another detector"
            )
    _refuse_trained_on(sets)
    return classes, groups


def _refuse_trained_on(sets: Mapping[str, Faces]) -> None:
    """Refuse test images with the same pixels as a training image."""
    trained: dict[bytes, str] = {}
    shared: list[str] = []
    for name in ("biased", "balanced", "test"):
        faces = sets[name]
        for place, image in enumerate(faces.images):
            digest = sha256(np.ascontiguousarray(image).data).digest()
            source = f"image {place}" if faces.sources is None else faces.sources[place]
            if name != "test":
                trained[digest] = f"{source} of the {name} images"
            elif digest in trained:
                shared.append(f"{source}, the same picture as {trained[digest]}")
    if shared:
        raise InputError(
            f"{len(shared)} of {len(sets['test'])} test images are also trained on; the first is "
            f"{shared[0]}. To do: test on other images"
        )


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names}))


def _count(faces: Faces) -> dict[Pair, int]:
    """Count the images of each class and group; pairs without an image count 0."""
    counts = Counter(zip(map(str, faces.labels), map(str, faces.groups), strict=True))
    labels, groups = map(_distinct, zip(*counts, strict=True))
    return {pair: counts[pair] for pair in product(labels, groups)}


THRESHOLD = 0.01
"""Default for the least difference in accuracy that matters."""

LEVEL = 0.95
LEAST_FACES = 0.5
"""Share of a group's biased images that need a face for a verdict on mixed and noisy faces."""


class Gain(NamedTuple):
    """Difference in accuracy after two trainings, with interval and p-value."""

    value: float
    low: float
    high: float
    p_value: float
    method: str


def compare_trainings(second: Floats, first: Floats) -> Gain:
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
    differences = second - first
    runs, images = differences.shape
    value = float(differences.mean())
    variance = float(differences.mean(axis=0).var(ddof=1)) / images if images > 1 else math.nan
    if runs > 1:
        variance += float(differences.mean(axis=1).var(ddof=1)) / runs
        freedom, over = runs - 1, f"{runs} training runs and {images} images"
    else:
        freedom = images - 1
        over = f"{images} images; one training run, which says nothing of training again"
    error = math.sqrt(variance)
    half = max(float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error, _unseen_share(images))
    p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error else float(value == 0)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Gain(value, low, high, p, f"Student's t over {over}, paired")


def _unseen_share(images: int) -> float:
    """Return the upper 95 % limit of a share with no case in n images."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / images))


def findings_of(
    done: Experiment, *, threshold: float = THRESHOLD, alpha: float = 0.05
) -> tuple[Finding, ...]:
    """Return a finding for each network and each arm except the biased one.

    Each is the gain in accuracy over training on the biased images as they are. All are one
    family of tests. A finding from which nothing follows has no verdict, and says why: changed
    faces where few biased images of a group have one (`LEAST_FACES`), and what is alike in a
    network that is not shown to do better than always naming the most frequent class after any of
    its trainings.
    """
    uncorrected = {
        (network, arm): _make_finding(done, network, arm, threshold)
        for network in done.networks
        for arm in done.arms
        if arm != ARMS[0]
    }
    few = [
        f"{n - without} of {n} biased images of {group}"
        for group, (without, n) in done.missing.get("biased", {}).items()
        if n - without < LEAST_FACES * n
    ]
    learning_networks = {
        network
        for network in done.networks
        if any(
            _estimate_accuracy(done, network, arm).low > _majority_share(done) for arm in done.arms
        )
    }
    p_values = [finding.p_value for finding in uncorrected.values()]
    q_values = benjamini_hochberg(p_values).tolist()
    findings = []
    for ((network, arm), finding), q in zip(uncorrected.items(), q_values, strict=True):
        verdict, explanation = judge(
            value=finding.value, excess=abs(finding.value),
            reach=harmful_reach(finding.ci_low, finding.ci_high, "either"), q=q,
            threshold=threshold, alpha=alpha,
        )  # fmt: skip
        reason = explanation.replace("excess over chance", "difference").replace(
            "disparity", "difference"
        )
        if few and arm != ARMS[-1]:
            verdict = Verdict.NONE
            reason = f"faces are in only {' and '.join(few)}; the other images stay unchanged"
        # Two trainings that are shown to differ are not both at chance.
        elif network not in learning_networks and verdict != Verdict.DISPARITY:
            verdict, reason = Verdict.NONE, f"no training of {network} is shown to beat guessing"
        findings.append(replace(finding, q_value=q, verdict=verdict, reason=reason))
    return tuple(findings)


def _make_finding(done: Experiment, network: str, arm: str, threshold: float) -> Finding:
    first, second = done.is_right(network, ARMS[0]), done.is_right(network, arm)
    change = compare_trainings(second, first)
    models = (f"{network} ({ARMS[0]})", f"{network} ({arm})")
    worse = models[0 if change.value > 0 else 1] if change.value else ""
    parameters = {
        "model_a": models[0], "model_b": models[1], "value_a": float(first.mean()),
        "value_b": float(second.mean()), "worse": worse, "runs": len(first),
        "network": network, "arm": arm,
    }  # fmt: skip
    return Finding(
        audit="comparison", model=f"{models[1]} − {models[0]}", metric=ACCURACY,
        change_from=models[0], groups="",
        family=Family.COMPOSITE, value=change.value, ci_low=change.low, ci_high=change.high,
        level=LEVEL, chance=0.0, excess=change.value, p_value=change.p_value,
        threshold=threshold, n=first.shape[1], unit="image and training run", method=change.method,
        null=NullHypothesis.MODELS,
        null_drawn="the two trainings are alike: their mean difference is 0",
        parameters=plain_parameters(parameters),
        direction=Sentence(f"accuracy is worse for {worse}" if worse else ""),
        citation="Mandal 2024, chapter 10",
    )  # fmt: skip


def accuracy_findings(done: Experiment) -> Iterator[Finding]:
    """Yield the accuracy of each network after each training (Mandal 2024, Table 10.1)."""
    for network in done.networks:
        for arm in done.arms:
            accuracy = _estimate_accuracy(done, network, arm)
            yield Finding(
                audit="augmentation", model=f"{network} ({arm})", metric=ACCURACY, groups="",
                family=Family.DESCRIPTIVE, value=accuracy.value, ci_low=max(accuracy.low, 0.0),
                ci_high=min(accuracy.high, 1.0), level=LEVEL, chance=_majority_share(done),
                n=len(done.truth), unit="image and training run", method=accuracy.method,
                parameters={"runs": len(done.answers[network, arm])}, p_value=math.nan,
                null=NullHypothesis.NONE, reason="described, without a verdict",
                citation="Mandal 2024, chapter 10",
            )  # fmt: skip


def difference_findings(
    done: Experiment,
    families: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
    replicates: int = 1000,
) -> tuple[Finding, ...]:
    """Return Accuracy Differences of networks and families (Mandal 2024, Table 7.2).

    Δ = |A_balanced − A_biased| of each network, of the mean accuracies of all runs; %Δ is the
    version "percent". The versions "runs" and "percent, runs" are means over runs of Δ and %Δ of
    each: above 0 where runs differ by luck alone. Families have the means of their networks, and
    each two of them the difference of these means.

    Parameters
    ----------
    done : Experiment
    families : mapping of str to sequence of str
        Family to its networks.
    seed, replicates : int
        Of the bootstrap over test images, which all networks share.

    References
    ----------
    Mandal 2024, chapter 7.
    """
    if ARMS[-1] not in done.arms:
        return ()
    names, n = done.networks, len(done.truth)
    replicate_weights = (
        stream(seed, "differences").multinomial(n, np.full(n, 1 / n), replicates) / n
    )
    # The first row is of the images themselves.
    weights = np.vstack([np.full(n, 1 / n), replicate_weights])
    versions = [_difference_versions(done, name, weights) for name in names]
    tail = (1 - LEVEL) / 2
    findings = list[Finding]()
    for version in versions[0]:
        networks = dict(zip(names, (numbers[version] for numbers in versions), strict=True))
        means = {
            family: np.mean([networks[name] for name in members], axis=0)
            for family, members in families.items()
        }
        between = {f"{a} − {b}": means[a] - means[b] for a, b in combinations(means, 2)}
        for model, sample in (networks | means | between).items():
            low, high = np.nanquantile(sample[1:], (tail, 1 - tail)).tolist()
            findings.append(Finding(
                audit="augmentation", model=model, metric="accuracy_difference", groups="",
                version=version, family=Family.DESCRIPTIVE, value=float(sample[0]),
                ci_low=low, ci_high=high, level=LEVEL, n=n, unit="image", p_value=math.nan,
                method=f"paired bootstrap over test images, {replicates} replicates",
                parameters={}, null=NullHypothesis.NONE, reason="described, without a verdict",
                citation="Mandal 2024, chapter 7",
            ))  # fmt: skip
    return tuple(findings)


def _difference_versions(done: Experiment, name: str, weights: Floats) -> dict[str, Floats]:
    """Return Δ and %Δ of a network, each of mean accuracies and as mean over runs."""
    biased, balanced = (weights @ done.is_right(name, arm).T for arm in (ARMS[0], ARMS[-1]))
    mean = balanced.mean(axis=1)
    delta, by_run = np.abs(mean - biased.mean(axis=1)), np.abs(balanced - biased)
    with np.errstate(divide="ignore", invalid="ignore"):
        percent, percent_by_run = 100 * delta / mean, 100 * by_run / balanced
    return {
        "default": delta, "percent": percent,
        "runs": by_run.mean(axis=1), "percent, runs": percent_by_run.mean(axis=1),
    }  # fmt: skip


def _estimate_accuracy(done: Experiment, network: str, arm: str) -> Gain:
    right = done.is_right(network, arm)
    return compare_trainings(right, np.zeros_like(right))


def _majority_share(done: Experiment) -> float:
    """Return the accuracy of always naming the most frequent class."""
    return float(np.bincount(done.truth).max() / len(done.truth))


def tables_of(done: Experiment, *, seed: int = 0, replicates: int = 1000) -> dict[str, pa.Table]:
    """Return the tables of an experiment.

    They are `augmentation`, `augmentation_associations`, `augmentation_images` (how many of each
    set, class and group) and `faces_missing`.

    The first has the form of the source's Table 10.1, a row for each network and arm: accuracy
    with its interval, `chance` that of always naming the most frequent class, and the Accuracy
    Difference to the network trained on balanced images.
    """
    numbers = {
        ACCURACY: NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "difference": NUMBER,
        "difference_low": NUMBER,
        "difference_high": NUMBER,
        "percent_difference": NUMBER,
        "percent_low": NUMBER,
        "percent_high": NUMBER,
        "runs_low": NUMBER,
        "runs_high": NUMBER,
        "chance": NUMBER,
    }
    measured = {
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "chance_low": NUMBER,
        "chance_high": NUMBER,
        "p_value": NUMBER,
    }
    trained = {"network": TEXT, "arm": TEXT, "runs": INTEGER, "images": INTEGER}
    association = {
        "network": TEXT,
        "arm": TEXT,
        "run": INTEGER,
        "class": TEXT,
        "faces": TEXT,
        "towards": TEXT,
    }
    counted = {"images": TEXT, "class": TEXT, "group": TEXT, "count": INTEGER}
    without_face = {"images": TEXT, "group": TEXT, "without": INTEGER, "of": INTEGER}
    accuracies = _accuracy_rows(done, seed, replicates)
    return {
        "augmentation": table_of(accuracies, trained | numbers),
        "augmentation_associations": table_of(_association_rows(done), association | measured),
        "augmentation_images": table_of(_image_counts(done), counted),
        "faces_missing": table_of(_missing_faces(done), without_face),
    }


def _image_counts(done: Experiment) -> Iterator[Row]:
    for name, counts in done.counts.items():
        for (label, group), count in counts.items():
            yield {"images": name, "class": label, "group": group, "count": count}


def _missing_faces(done: Experiment) -> Iterator[Row]:
    for name, groups in done.missing.items():
        for group, (without, n) in groups.items():
            yield {"images": name, "group": group, "without": without, "of": n}


def _accuracy_rows(done: Experiment, seed: int, replicates: int) -> Iterator[Row]:
    resampling, unseen = Bootstrap(replicates=replicates), _unseen_share(len(done.truth))
    for network in done.networks:
        for arm in done.arms:
            accuracy, answers = _estimate_accuracy(done, network, arm), done.answers[network, arm]
            row: Row = {
                "network": network, "arm": arm, "runs": len(answers), "images": len(done.truth),
                ACCURACY: accuracy.value, "low": max(accuracy.low, 0.0),
                "high": min(accuracy.high, 1.0),
                "chance": _majority_share(done),
            }  # fmt: skip
            if arm != ARMS[-1] and ARMS[-1] in done.arms:
                estimate = accuracy_difference(
                    done.truth, done.answers[network, ARMS[-1]], answers,
                    resampling=resampling, rng=seed,
                )  # fmt: skip
                parts = {part.metric: part for part in estimate.parts}
                percent, ends = parts["percent_difference"], estimate.interval()
                row |= {"difference": estimate.value, "percent_difference": percent.value}
                row |= _widen("difference", ends.low, ends.high, estimate.value, unseen)
                row |= _widen("percent", percent.low, percent.high, percent.value, 100 * unseen)
                if (over := parts.get("mean_over_runs")) is not None:
                    row |= _widen("runs", over.low, over.high, estimate.value, unseen)
            yield row


def _widen(name: str, low: float, high: float, value: float, least: float) -> dict[str, float]:
    """Widen an interval to at least `least` on both sides of the value."""
    low, high = min(low, max(value - least, 0.0)), max(high, value + least)
    return {f"{name}_low": low, f"{name}_high": high}


def _association_rows(done: Experiment) -> Iterator[Row]:
    for (network, arm), runs in done.associations.items():
        for run, estimates in enumerate(runs, 1):
            for (label, faces), estimate in estimates.items():
                interval, chance = estimate.interval(), estimate.chance
                yield {
                    "network": network, "arm": arm, "run": run, "class": label, "faces": faces,
                    "towards": done.groups[0 if estimate.value > 0 else 1],
                    "value": estimate.value, "low": interval.low, "high": interval.high,
                    "chance_low": math.nan if chance is None else chance.low,
                    "chance_high": math.nan if chance is None else chance.high,
                    "p_value": estimate.p_value,
                }  # fmt: skip
