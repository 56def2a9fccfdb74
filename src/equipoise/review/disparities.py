"""The disparity of a finding: groups and the outcome of each image."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.audits.concepts.config import Config as Concepts
from equipoise.audits.concepts.config import in_version
from equipoise.audits.group_sources import are_predicted, predicted_attributes
from equipoise.core import (
    Aggregate,
    Booleans,
    ConfigError,
    Finding,
    Floats,
    Groups,
    Objects,
    RunError,
    record,
)
from equipoise.data.problems import nearest
from equipoise.evidence.examples import LABELLED
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.spec import spec_of
from equipoise.report import read
from equipoise.report.concluding import in_order
from equipoise.report.page_verdicts import with_page_verdicts
from equipoise.review.examples import Examples
from equipoise.review.labels import look_up_values
from equipoise.review.outcomes import outcome_of, rate_of
from equipoise.review.run_configs import config_of_run
from equipoise.review.sampling import RunImages, load_images


@record
class Disparity:
    """A finding as an outcome of each image.

    Attributes
    ----------
    finding : Finding
    ids : ndarray of str objects, shape (n,)
    groups : Groups
    group : str
        Group that is compared with all others.
    outcome : ndarray, shape (n,)
        NaN for images that the finding isn't about.
    shows : str
        Name of the mean of the outcome.
    labels : ndarray of str objects, shape (n,)
        Label of each image, None where unknown; of a concept, the concept or None.
    images : RunImages
    predicted : bool
        Whether a model predicted the groups.
    """

    finding: Finding
    ids: Objects
    groups: Groups
    group: str
    outcome: Floats
    shows: str
    labels: Objects
    images: RunImages
    predicted: bool = False

    @property
    def others(self) -> str:
        """Name of the other group, or of all others."""
        groups = zip(self.groups.names, self.groups.usable, strict=True)
        other_names = [name for name, large in groups if large and name != self.group]
        return other_names[0] if len(other_names) == 1 else OTHERS

    @property
    def about(self) -> Booleans:
        """Whether the finding is about each image."""
        return ~np.isnan(self.outcome)

    @property
    def sides(self) -> dict[str, Booleans]:
        """Images of the group and of the others that the finding is about, by name."""
        code, large = self.groups.names.index(self.group), self.groups.large
        return {
            self.group: self.about & (large == code),
            self.others: self.about & (large >= 0) & (large != code),
        }

    def compute_outcome(self, rows: pl.DataFrame, ids: Objects) -> Floats:
        """Return the outcome of each image in another run of the model.

        Parameters
        ----------
        rows : polars.DataFrame
            Examples of the run, see `equipoise.evidence.write_examples`.
        ids : ndarray of str objects
            Images of the run.
        """
        if self.images.config.audit == "concepts":
            examples = rows.filter(pl.col("outcome").is_in(LABELLED), subject=self.finding.subject)
            score = self.align(pl.Series(ids[examples["place"]]), examples["score"])
            return score.cast(pl.Float64).fill_null(np.nan).to_numpy()
        examples = rows.filter(pl.col("outcome") != "false alarm")
        predicted = self.align(pl.Series(ids[examples["place"]]), examples["label"])
        right = (
            pl.when(pl.col("target") == predicted).then(pl.lit("right")).otherwise(pl.lit("wrong"))
        )
        table = self.images.table.with_columns(prediction=predicted, right=right)
        images = replace(self.images, table=table)
        return _compute_outcome(images, self.finding.metric, self.finding.subject)[0]

    def align(self, ids: pl.Series, values: pl.Series) -> pl.Series:
        """Return the value of each image of the run, null where it has none."""
        return look_up_values(self.ids.tolist(), ids, values)


def _match_class(images: RunImages, name: str, subject: str) -> Booleans:
    return (images.table[name] == subject).fill_null(value=False).to_numpy()


def _compute_outcome(images: RunImages, metric: str, subject: str) -> tuple[Floats, str]:
    """Return each image's outcome, NaN outside the metric, and its name."""
    if not subject:
        right = (images.table["right"] == "right").to_numpy()
        return np.where(images.table["target"].is_null(), np.nan, right), metric
    predicted = _match_class(images, "prediction", subject)
    actual = _match_class(images, "target", subject)
    rate = rate_of(metric)
    assert rate is not None  # noqa: S101 - only findings of rates have outcomes
    outcome = outcome_of(rate)
    about = True if outcome.about is None else outcome.about(predicted, actual)
    numbers = np.where(about, outcome.counts(predicted, actual), np.nan)
    return numbers, outcome.shows.format(subject=subject)


def find_disparity(
    run: Path,
    *,
    metric: str = "",
    subject: str = "",
    model: str = "",
    groups: str = "",
    version: str = "",
    group: str = "",
) -> Disparity:
    """Return a finding of predictions or concepts with each image's outcome.

    Parameters
    ----------
    run : Path
    metric, subject, model, groups, version : str
        Of the finding; the most serious one that fits unless given. Of a version that groups
        otherwise, images have the version's groups.
    group : str
        Group to compare with all others; the one that is worst off unless given.

    Raises
    ------
    RunError
        If it is no run of these kinds.
    ConfigError
        If no finding fits, or there is no such group.
    """
    result = with_page_verdicts(read(run))
    kind = result.manifest.resolved.get("audit")
    if kind not in ("predictions", "concepts"):
        raise RunError(
            f"{run}: a run of {kind}; expected one of predictions or concepts, whose images have "
            "outcomes"
        )
    explainable = [f for f in in_order(result) if _is_explainable(f, str(kind))]
    options = {
        "metric": metric, "subject": subject, "model": model, "groups": groups, "version": version,
    }  # fmt: skip
    finding = next((finding for finding in explainable if _matches(finding, options)), None)
    if finding is None:
        metrics = sorted({finding.metric for finding in explainable})
        near = nearest(metric, metrics) if metric else None
        hint = f"; did you mean {near!r}? " if near and near != metric else "; "
        raise ConfigError(
            f"{run}: no finding fits {metric or 'these options'!r}{hint}"
            f"expected a metric among {', '.join(metrics)}, and a subject, model, groups and "
            "version of the run. To do: correct --finding, --subject, --model, --groups or "
            "--version",
            file=str(run),
        )
    disparity = (_load_predictions if kind == "predictions" else _load_concept)(run, finding)
    config = config_of_run(result.manifest.resolved, run)
    predicted = are_predicted(finding.groups, predicted_attributes([config]))
    rate = rate_of(finding.metric)
    higher = rate is not None and spec_of(rate.name).harm == "higher"
    return _choose_group(replace(disparity, predicted=predicted), group, max if higher else min)


def _matches(finding: Finding, options: Mapping[str, str]) -> bool:
    """Return whether a finding has the value of each option that isn't empty."""
    return all(text in ("", getattr(finding, name)) for name, text in options.items())


def has_subject(finding: Finding) -> bool:
    """Return whether a finding compares groups in a class or concept, not in a pair of groups."""
    return bool(finding.by_group and finding.subject) and not spec_of(finding.metric).of_pair


def _is_explainable(finding: Finding, kind: str) -> bool:
    if not finding.by_group:
        return False
    if kind == "concepts":
        return has_subject(finding) and finding.aggregate is Aggregate.DIFFERENCE
    rate = rate_of(finding.metric)
    return rate is not None and bool(finding.subject or not spec_of(rate.name).of_class)


def _load_predictions(run: Path, finding: Finding) -> Disparity:
    images = load_images(run, model=finding.model, groups=finding.groups)
    outcome, shows = _compute_outcome(images, finding.metric, finding.subject)
    labels: Objects = np.array(images.table["target"].to_list(), dtype=object)
    return Disparity(finding, images.ids, images.groups, "", outcome, shows, labels, images)


def _load_concept(run: Path, finding: Finding) -> Disparity:
    groups = _groups_of_version(run, finding)
    images = load_images(run, model=finding.model, groups=groups, subject=finding.subject)
    labelled = images.table["outcome"].is_in(LABELLED).fill_null(value=False).to_numpy()
    outcome = np.where(labelled, images.scores[f"score of {finding.model}"], np.nan)
    labels = np.where(labelled, finding.subject, None).astype(object)  # type: ignore[call-overload]
    shows = f"mean score of images labelled “{finding.subject}”"
    return Disparity(finding, images.ids, images.groups, "", outcome, shows, labels, images)


def _groups_of_version(run: Path, finding: Finding) -> str:
    """Return the name of the groups of a finding's version.

    Raises
    ------
    ConfigError
        If the version maps classes otherwise, whose labels a run doesn't have.
    """
    resolved = read(run).manifest.resolved
    config = config_of_run(resolved, run)
    assert isinstance(config, Concepts)  # noqa: S101 - `find_disparity` has checked the kind
    maps = {version.name: version.choices.map for version in config.every_version}
    if maps[finding.version] != config.choices.map:
        raise ConfigError(
            f"--version {finding.version}: its classes are mapped by {maps[finding.version]!r}, "
            "and a run has the labels of the baseline alone. To do: name another version"
        )
    regrouped = in_version(finding.groups, finding.version)
    return regrouped if regrouped in Examples.of(run).choices else finding.groups


def _choose_group(disparity: Disparity, group: str, worst: Callable[..., str]) -> Disparity:
    """Return a disparity with the group to compare; by default the worst off."""
    finding, groups, means = disparity.finding, disparity.groups, dict[str, float]()
    for code, (name, usable) in enumerate(zip(groups.names, groups.usable, strict=True)):
        outcomes = disparity.outcome[groups.codes == code]
        if usable and not np.isnan(outcomes).all():
            means[name] = float(np.nanmean(outcomes))
    if len(means) < 2:
        raise ConfigError(
            f"{finding.metric} of “{finding.subject}”: fewer than two groups have enough images"
        )
    group = group or finding.group or worst(means, key=lambda name: means[name])
    if group not in means and f"{finding.groups} {group}" in means:
        group = f"{finding.groups} {group}"
    if group not in means:
        raise ConfigError(f"--group {group}: expected one of {', '.join(means)}")
    return replace(disparity, group=group)
