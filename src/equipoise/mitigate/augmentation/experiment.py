"""Train on biased, mixed, noisy and balanced images, and compare on a balanced test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics import association_score
from equipoise.mitigate.augmentation.checks import check_sets, counted
from equipoise.mitigate.augmentation.datasets import Faces, MixedFaces, NoisyFaces, PlainFaces
from equipoise.mitigate.augmentation.mixing import cover_region
from equipoise.mitigate.augmentation.networks import check_networks
from equipoise.mitigate.augmentation.training import Job, Said, Schedule, say, train
from equipoise.stats.resampling import Bootstrap, Resampling

__all__ = ["ARMS", "Experiment", "Schedule", "augmentation_experiment"]

ARMS = ("biased", "partial mixing", "uniform noise", "balanced")
"""What a network is trained on; the order of the source's Table 10.1."""

Progress = Callable[[str, int, int | None], None]
Named = tuple[str, str]
"""A network and what it was trained on."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """What every network says of the test images after each training.

    Attributes
    ----------
    networks, classes, groups : tuple of str
    truth : ndarray of int64, shape (n,)
        Class of each test image.
    said : mapping of (str, str) to ndarray of int64, shape (repeats, n)
        By network and arm: the class that each training run gives.
    associations : mapping of (str, str) to mapping of (str, str) to Estimate
        By network and arm, then by class and "whole" or "masked": how much closer the features
        of the class are to faces of the first group than to those of the second; first run.
    missing : mapping of str to mapping of str to (int, int)
        By set of images and group: images without a face, and all.
    counts : mapping of str to mapping of (str, str) to int
        By set of images, then by class and group: images.
    """

    networks: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    truth: NDArray[np.int64]
    said: Mapping[Named, NDArray[np.int64]]
    associations: Mapping[Named, Mapping[tuple[str, str], Estimate]]
    missing: Mapping[str, Mapping[str, tuple[int, int]]]
    counts: Mapping[str, Mapping[tuple[str, str], int]] = field(default_factory=dict)

    def right(self, network: str, arm: str) -> NDArray[np.float64]:
        """Return whether each run is right on each image, (repeats, n)."""
        return np.asarray(self.said[network, arm] == self.truth, dtype=np.float64)


def augmentation_experiment(  # noqa: PLR0913 - what an experiment is made of
    biased: Faces,
    balanced: Faces,
    test: Faces,
    folder: Path,
    *,
    networks: Sequence[str] = ("cnn", "vit"),
    repeats: int = 3,
    schedule: Schedule | None = None,
    schedules: Mapping[str, Schedule] | None = None,
    resampling: Resampling | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Experiment:
    """Train every network on each arm, several times, and run it over the test images.

    Parameters
    ----------
    biased : Faces
        Training images in which group and class go together; mixed and noisy faces are theirs.
    balanced : Faces
        As many training images in which they do not.
    test : Faces
        Of the same classes, as many of each group with each class; none is trained on.
    folder : Path
        Where the state of each training is kept: a killed experiment goes on where it was.
    networks : sequence of str
        See `network`.
    repeats : int
        Training runs of each arm. Runs of one number share first weights and order over arms.
    schedule : Schedule, optional
        Of every network.
    schedules : mapping of str to Schedule, optional
        Of single networks, in place of `schedule`.
    resampling : Bootstrap, Permutation, Exact or None
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
        twice, there are not two groups, one has no face in the biased images, or a test image is
        trained on.
    ModelError
        When a network cannot be trained.

    References
    ----------
    Mandal 2024, chapter 10.
    """
    classes, groups = check_sets(biased, balanced, test)
    if len({*networks}) < len(networks) or not networks or repeats < 1:
        raise InputError("expected different networks, at least one, and at least one repeat")
    check_networks(networks, np.asarray(test.images[0]).shape[0])
    places = {name: place for place, name in enumerate(classes)}
    truth = np.array([places[str(label)] for label in test.labels], dtype=np.int64)
    covered = _covered(test)
    said: dict[Named, NDArray[np.int64]] = {}
    associations: dict[Named, dict[tuple[str, str], Estimate]] = {}
    todo = [(name, arm) for name in networks for arm in ARMS]
    for number, (name, arm) in enumerate(todo):
        plan = (schedules or {}).get(name, schedule or Schedule())
        runs = []
        for run in range(repeats):
            if progress is not None:
                progress("training", number * repeats + run, len(todo) * repeats)
            data = _arm(arm, biased, balanced, seed + run)
            job = Job(name, classes, seed + run, plan)
            module = train(job, data, folder / _state(job, arm, run))
            whole = say(module, [*test.images])
            runs.append(whole.codes)
            if run == 0:
                masked = say(module, covered)
                how = Bootstrap() if resampling is None else resampling
                associations[name, arm] = _associations(
                    whole, masked, truth, test, (classes, groups), how, seed
                )
        said[name, arm] = np.stack(runs)
    sets = {"biased": biased, "balanced": balanced, "test": test}
    missing = {key: faces.regions.missing(faces.groups) for key, faces in sets.items()}
    counts = {key: counted(faces) for key, faces in sets.items()}
    names = tuple(networks), classes, groups
    return Experiment(*names, truth, said, associations, missing, counts)


def _arm(arm: str, biased: Faces, balanced: Faces, seed: int) -> PlainFaces:
    if arm == "partial mixing":
        return MixedFaces(biased, seed=seed)
    if arm == "uniform noise":
        return NoisyFaces(biased, seed=seed)
    return PlainFaces(balanced if arm == "balanced" else biased)


def _state(job: Job, arm: str, run: int) -> str:
    """Name the file of a training's state: another schedule has another, and begins anew."""
    words = "-".join((job.name, arm, str(run))).replace(":", "-").replace(" ", "-")
    return f"{words}-{sha256(repr(job).encode()).hexdigest()[:8]}.pt"


def _covered(test: Faces) -> list[NDArray[np.uint8]]:
    boxes = [test.regions.box(place) for place in range(len(test))]
    pictures = [np.asarray(image) for image in test.images]
    return [
        image if box is None else cover_region(image, box)
        for image, box in zip(pictures, boxes, strict=True)
    ]


def _associations(
    whole: Said,
    masked: Said,
    truth: NDArray[np.int64],
    test: Faces,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    resampling: Resampling,
    seed: int,
) -> dict[tuple[str, str], Estimate]:
    """Return the image-image association of each class with the groups' faces of other classes."""
    found = {}
    classes, groups = names
    first = test.groups == groups[0]
    for code, name in enumerate(classes):
        own, others = truth == code, truth != code
        for version, said in (("whole", whole), ("masked", masked)):
            found[name, version] = association_score(
                said.features[own],
                whole.features[others & first],
                whole.features[others & ~first],
                resampling=resampling,
                rng=seed,
            )
    return found
