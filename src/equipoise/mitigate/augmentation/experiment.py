"""Train on biased, mixed, noisy and balanced images, and compare on a balanced test set."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np

from equipoise.core import Estimate, Floats, InputError, Integers
from equipoise.metrics import association_score
from equipoise.mitigate.augmentation.faces import (
    Faces,
    MixedFaces,
    NoisyFaces,
    PlainFaces,
    cover_region,
)
from equipoise.mitigate.augmentation.training import (
    Job,
    Schedule,
    check_networks,
    class_codes,
    predict,
    train,
)
from equipoise.mitigate.recipe import Progress
from equipoise.stats.resampling import Bootstrap, Resampling

ARMS = ("biased", "partial mixing", "uniform noise", "balanced")
"""Training images of a network, in the order of the source's Table 10.1."""

_CHANGES = {"partial mixing": (MixedFaces, "biased"), "uniform noise": (NoisyFaces, "biased")}
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Predictions of every network for the test images after each training.

    Attributes
    ----------
    networks, classes, groups : tuple of str
    truth : ndarray of int64, shape (n,)
        Class of each test image.
    answers : mapping of (str, str) to ndarray of int64, shape (repeats, n)
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
    truth: Integers
    answers: Mapping[Pair, Integers]
    associations: Mapping[Pair, Mapping[Pair, Estimate]]
    missing: Mapping[str, Mapping[str, tuple[int, int]]]
    counts: Mapping[str, Mapping[Pair, int]] = field(default_factory=dict)

    def right(self, network: str, arm: str) -> Floats:
        """Return whether each run is right on each image, (repeats, n)."""
        return np.asarray(self.answers[network, arm] == self.truth, dtype=np.float64)


def augmentation_experiment(  # noqa: PLR0913 - the parts of an experiment
    biased: Faces,
    balanced: Faces,
    test: Faces,
    folder: Path,
    *,
    networks: Sequence[str] = ("cnn", "vit"),
    repeats: int = 3,
    schedules: Mapping[str, Schedule],
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
        Where the state of each training is kept: a killed experiment resumes.
    networks : sequence of str
        See `network`.
    repeats : int
        Training runs of each arm. Runs of one number share first weights and order over arms.
    schedules : mapping of str to Schedule
        Of each network.
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
        twice, there are not two groups, one has no face in the biased images, or a test image is
        trained on.
    ModelError
        When a network cannot be trained.

    References
    ----------
    Mandal 2024, chapter 10.
    """
    sets = {"biased": biased, "balanced": balanced, "test": test}
    classes, groups = _check_sets(sets)
    if len({*networks}) < len(networks) or not networks or repeats < 1:
        raise InputError("expected different networks, at least one, and at least one repeat")
    check_networks(networks, np.asarray(test.images[0]).shape[0])
    images = [np.asarray(image) for image in test.images]
    boxes = map(test.regions.box, range(len(test)))
    covered = [
        image if box is None else cover_region(image, box)
        for image, box in zip(images, boxes, strict=True)
    ]
    answers: dict[Pair, Integers] = {}
    associations: dict[Pair, dict[Pair, Estimate]] = {}
    todo = [(name, arm) for name in networks for arm in ARMS]
    for number, (name, arm) in enumerate(todo):
        runs = []
        for run in range(repeats):
            if progress is not None:
                progress("training", number * repeats + run, len(todo) * repeats)
            job = Job(name, classes, seed + run, schedules[name])
            # Another schedule has another file, and begins anew.
            words = f"{name}-{arm}-{run}".replace(":", "-").replace(" ", "-")
            state = folder / f"{words}-{sha256(repr(job).encode()).hexdigest()[:8]}.pt"
            changed, of = _CHANGES.get(arm, (PlainFaces, arm))
            module = train(job, changed(sets[of], seed=seed + run), state)
            codes, whole = predict(module, images)
            runs.append(codes)
            if run == 0:
                versions = {"whole": whole, "masked": predict(module, covered)[1]}
                associations[name, arm] = {
                    (label, version): association_score(
                        features[test.labels == label],
                        *(whole[(test.labels != label) & (test.groups == one)] for one in groups),
                        resampling=resampling or Bootstrap(),
                        rng=seed,
                    )
                    for label in classes
                    for version, features in versions.items()
                }
        answers[name, arm] = np.stack(runs)
    missing = {key: faces.regions.missing(faces.groups) for key, faces in sets.items()}
    counts = {key: _count(faces) for key, faces in sets.items()}
    truth, names = class_codes(classes, test.labels), tuple(networks)
    return Experiment(names, classes, groups, truth, answers, associations, missing, counts)


def _check_sets(sets: Mapping[str, Faces]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the classes and the groups that all three sets have.

    Raises
    ------
    InputError
        See `augmentation_experiment`.
    """
    known = {name: tuple(_count(faces)) for name, faces in sets.items()}
    classes, groups = (tuple(sorted({pair[side] for pair in known["biased"]})) for side in (0, 1))
    for name, pairs in known.items():
        if pairs != known["biased"]:
            raise InputError(
                f"the {name} images have the classes and groups {[*pairs]}; expected those of the "
                f"biased ones: {[*known['biased']]}"
            )
    if len(groups) != 2 or len(classes) < 2:
        raise InputError(f"{len(groups)} groups and {len(classes)} classes; expected two and more")
    sizes = {np.asarray(image).shape for faces in sets.values() for image in faces.images}
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
    """Refuse test images that are also trained on: the same pixels, whatever their files."""
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


def _count(faces: Faces) -> dict[Pair, int]:
    """Count the images of each class and group; pairs without an image count 0."""
    counts = Counter(zip(map(str, faces.labels), map(str, faces.groups), strict=True))
    labels, groups = (sorted({pair[side] for pair in counts}) for side in (0, 1))
    return {(label, group): counts[label, group] for label in labels for group in groups}
