"""Associations of classes with groups in trained networks, over training runs and families."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise.core import (
    Booleans,
    Estimate,
    Family,
    Finding,
    Floats32,
    InputError,
    Integers,
    NullHypothesis,
    Objects,
    record,
)
from equipoise.metrics import association_score
from equipoise.mitigate.augmentation.faces import Faces
from equipoise.stats import Resampling
from equipoise.stats.intervals import mean_t
from equipoise.stats.streams import stream

Key = tuple[str, str]
FACES = ("whole", "masked")
LEVEL = 0.95


@record
class AttributeImages:
    """Images of each group for associations, and how many images a training run draws.

    Attributes
    ----------
    faces : Faces, optional
        Images of the groups alone; unless given, the test images of other classes.
    attributes, targets : int, optional
        Images of each group, and test images of each class and group, that each run draws; none
        is drawn twice. All unless given.
    """

    faces: Faces | None = None
    attributes: int | None = None
    targets: int | None = None


@dataclass(frozen=True)
class Draws:
    """Images of a training run: targets by class, attributes by group."""

    targets: Mapping[str, Integers]
    attributes: Mapping[str, Integers]


def draw_images(images: AttributeImages, test: Faces, runs: int, seed: int) -> list[Draws]:
    """Return the images of each run.

    Raises
    ------
    InputError
        When there are too few images for all runs, or the groups differ.
    """
    targets = {
        label: _draw_rows(
            _rows_by_group(test.groups, test.labels == label), images.targets, runs,
            f"test images of {label}", seed,
        )
        for label in sorted({*map(str, test.labels)})
    }  # fmt: skip
    groups, attributes = sorted({*map(str, test.groups)}), list[Mapping[str, Integers]]()
    if images.faces is not None:
        faces = images.faces
        if (attribute_groups := sorted({*map(str, faces.groups)})) != groups:
            raise InputError(f"attributes: images of {attribute_groups}; expected {groups}")
        rows = _rows_by_group(faces.groups, np.ones(len(faces), np.bool_))
        attributes = _draw_rows(rows, images.attributes, runs, "attributes", seed)
    return [
        Draws(
            {
                label: np.concatenate([*rows_by_run[run].values()])
                for label, rows_by_run in targets.items()
            },
            attributes[run] if attributes else {},
        )
        for run in range(runs)
    ]


def _rows_by_group(groups: Objects, selected: Booleans) -> dict[str, Integers]:
    names = sorted({*map(str, groups)})
    return {name: np.flatnonzero(selected & (groups == name)) for name in names}


def _draw_rows(
    rows: Mapping[str, Integers],
    n: int | None,
    runs: int,
    name: str,
    seed: int,
) -> list[Mapping[str, Integers]]:
    """Return rows of each group for each run, no row for two runs."""
    if n is None:
        return [rows] * runs
    for group, members in rows.items():
        if len(members) < runs * n:
            raise InputError(
                f"{name}: {len(members)} of {group}; expected {runs} runs of {n} different images. "
                "To do: add images, or draw fewer"
            )
    mixed = {
        group: stream(seed, "draws", name, group).permutation(members)
        for group, members in rows.items()
    }
    return [
        {group: np.sort(members[run * n : (run + 1) * n]) for group, members in mixed.items()}
        for run in range(runs)
    ]


def class_associations(
    features: Mapping[str, Floats32],
    attribute_features: Floats32 | None,
    test: Faces,
    draws: Draws,
    resampling: Resampling,
    seed: int,
) -> dict[Key, Estimate]:
    """Return associations of classes with groups, by class and kind of faces.

    Parameters
    ----------
    features : mapping of str to ndarray, shape (n, d)
        Of the test images, by kind of faces.
    attribute_features : ndarray, shape (m, d), optional
        Of images of the groups alone; otherwise groups are the whole test images of other classes.
    test : Faces
    draws : Draws
    resampling : Resampling
    seed : int
    """
    groups, associations = sorted({*map(str, test.groups)}), dict[Key, Estimate]()
    for label, targets in draws.targets.items():
        if attribute_features is None:
            other_class = test.labels != label
            sides = [features[FACES[0]][other_class & (test.groups == group)] for group in groups]
        else:
            sides = [attribute_features[draws.attributes[group]] for group in groups]
        for kind, vectors in features.items():
            associations[label, kind] = association_score(
                vectors[targets], *sides, resampling=resampling, rng=seed
            )
    return associations


class Mean(NamedTuple):
    """A mean over runs with its interval."""

    value: float
    low: float
    high: float


def association_findings(
    associations: Mapping[Key, Sequence[Mapping[Key, Estimate]]],
    groups: Sequence[str],
    families: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:
    """Yield associations of classes as means over runs, of networks and of families.

    Beside them stands the sum over classes of their sizes. Its interval is wide rather than narrow:
    it adds up the ends of the classes' intervals.

    Parameters
    ----------
    associations : mapping of (str, str) to sequence of mapping
        By network and arm, for each run by class and kind of faces.
    groups : sequence of two str
        Positive values lean to the first.
    families : mapping of str to sequence of str

    References
    ----------
    Mandal 2024, Table 7.3.
    """
    arms = dict.fromkeys(arm for _, arm in associations)
    members = {network: (network,) for network, _ in associations} | dict(families)
    for name, networks in members.items():
        for arm in arms:
            trained = [associations[network, arm] for network in networks]
            means = {key: _mean_over_runs(trained, key) for key in trained[0][0]}
            model, runs = f"{name} ({arm})", len(trained[0])
            for (label, kind), mean in means.items():
                metric = trained[0][0][label, kind].metric
                yield _finding(metric, model, kind, groups, runs, mean, label)
            for kind in dict.fromkeys(kind for _, kind in means):
                parts = [mean for (_, of), mean in means.items() if of == kind]
                total = _total(parts)
                yield _finding("total_absolute_association", model, kind, groups, runs, total)


def _mean_over_runs(trained: Sequence[Sequence[Mapping[Key, Estimate]]], key: Key) -> Mean:
    """Return the mean over networks and runs, by Student's t over runs."""
    estimates = [[run[key] for run in runs] for runs in trained]
    values = np.array([[estimate.value for estimate in runs] for runs in estimates]).mean(axis=0)
    if values.size == len(estimates) == 1:
        span = estimates[0][0].interval()
        return Mean(float(values[0]), span.low, span.high)
    # A difference of two cosines is at most 2.
    low, high = np.clip(mean_t(values, LEVEL), -2.0, 2.0).tolist()
    return Mean(float(values.mean()), low, high)


def _total(means: Sequence[Mean]) -> Mean:
    low = sum(0.0 if m.low <= 0 <= m.high else min(abs(m.low), abs(m.high)) for m in means)
    high = sum(max(abs(m.low), abs(m.high)) for m in means)
    if any(math.isnan(m.low) for m in means):
        low = high = math.nan
    return Mean(sum(abs(m.value) for m in means), low, high)


def _finding(
    metric: str,
    model: str,
    kind: str,
    groups: Sequence[str],
    runs: int,
    mean: Mean,
    subject: str = "",
) -> Finding:
    return Finding(
        audit="augmentation", model=model, metric=metric, subject=subject,
        groups=" against ".join(groups), version=kind, family=Family.DESCRIPTIVE,
        value=mean.value, ci_low=mean.low, ci_high=mean.high, level=LEVEL, n=runs,
        unit="training run", method="Student's t over training runs, each with images of its own",
        parameters={}, p_value=math.nan, null=NullHypothesis.NONE,
        reason="described, without a verdict", citation="Mandal 2024, Table 7.3",
    )  # fmt: skip
