"""Metrics of groups for torchmetrics: updated batch by batch, synchronised over processes.

Each class collects rows and measures them with the metric of `equipoise.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypedDict, Unpack

import numpy as np

from equipoise.core import Estimate, Facts, InputError, Verdict
from equipoise.core.errors import MissingExtraError
from equipoise.integrations.verdicts import verdict_of
from equipoise.metrics import evaluate
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.registry import function_of
from equipoise.stats import Resampling

try:
    import torch
    import torchmetrics
    from torchmetrics.utilities import dim_zero_cat
except ModuleNotFoundError as error:
    raise MissingExtraError("torchmetrics", "torchmetrics") from error

Codes: TypeAlias = "torch.Tensor | Sequence[str]"
"""Groups of a batch: numbers, or names that the metric knows."""


class Settings(TypedDict, total=False):
    """Settings that all metrics of torchmetrics take; see its documentation."""

    compute_on_cpu: bool
    compute_with_cache: bool
    dist_sync_on_step: bool
    distributed_available_fn: Callable[[], bool]
    dist_sync_fn: Callable[..., Any]
    process_group: Any
    sync_on_compute: bool


class GroupMetric(torchmetrics.Metric):  # type: ignore[misc]
    """A metric of labels by group.

    Attributes
    ----------
    name : str
        Name of the metric, as `equipoise.metrics.evaluate` takes it.
    defaults : mapping
        Options unless the user gives them.

    Parameters
    ----------
    groups : sequence of str
        Names of groups, in the order of their numbers. Batches may then name them.
    threshold : float
        Lowest probability that counts as the class 1, of predictions that are probabilities.
    options : mapping, optional
        Options of the metric, such as ``{"null": "class"}``.
    **settings
        Of `torchmetrics.Metric`.
    """

    name: ClassVar[str]
    defaults: ClassVar[Facts] = MappingProxyType({})
    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    codes: list[torch.Tensor]
    rows: list[torch.Tensor]

    def __init__(
        self,
        groups: Sequence[str] = (),
        *,
        threshold: float = 0.5,
        options: Facts | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.groups, self.threshold = tuple(groups), threshold
        self.options = {**self.defaults, **(options or {})}
        self.add_state("codes", default=[], dist_reduce_fx="cat")
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    def update(self, preds: torch.Tensor, target: torch.Tensor, groups: Codes) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : tensor
            Labels (n,), probabilities of the class 1 (n,), or scores of classes (n, classes).
        target : tensor, shape (n,)
            True labels.
        groups : tensor, shape (n,), or sequence of str
        """
        labels = self._labels(preds)
        self._add(torch.stack([target.flatten().long(), labels], dim=1), groups)

    def compute(self) -> torch.Tensor:
        """Return the value; NaN where groups are too few or too small."""
        return torch.tensor(self._measure(None).value, device=self.device)

    def estimate(self, resampling: Resampling = DEFAULT, *, rng: int = 0) -> Estimate:
        """Return the value over all processes with its interval, chance level and p-value."""
        with self.sync_context():
            return self._measure(resampling, rng)

    def verdict(self) -> Verdict:
        """Return the verdict over all processes, by the metric's own practical threshold."""
        return verdict_of(self.estimate())[0]

    def _labels(self, preds: torch.Tensor) -> torch.Tensor:
        if preds.ndim > 1:
            return preds.argmax(dim=1)
        if not preds.is_floating_point():
            return preds.long()
        if len(preds) and not 0 <= float(preds.min()) <= float(preds.max()) <= 1:
            raise InputError(
                "preds: numbers outside 0 to 1; expected labels, probabilities, or a column of "
                "scores for each class"
            )
        return (preds >= self.threshold).long()

    def _add(self, rows: torch.Tensor, groups: Codes) -> None:
        if not isinstance(groups, torch.Tensor):
            unknown = sorted({*groups} - {*self.groups})
            if unknown:
                raise InputError(
                    f"groups: {unknown[0]!r} is no name of {type(self).__name__}(groups=…), which "
                    "gives groups the same number in all processes"
                )
            groups = torch.tensor([self.groups.index(group) for group in groups])
        codes = groups.flatten().long().to(rows.device)
        if len(codes) != len(rows):
            raise InputError(f"groups: {len(codes)} for {len(rows)} rows")
        self.rows.append(rows)
        self.codes.append(codes)

    def _collected(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the rows, and the name of each row's group."""
        codes = dim_zero_cat(self.codes).cpu().numpy()
        names = self.groups or tuple(map(str, range(int(codes.max(initial=-1)) + 1)))
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
            raise InputError(
                f"groups: numbers from {codes.min()} to {codes.max()}; expected 0 to "
                f"{len(names) - 1}"
            )
        return dim_zero_cat(self.rows).cpu().numpy(), np.asarray(names, dtype=str)[codes]

    def _measure(self, resampling: Resampling | None, rng: int = 0) -> Estimate:
        rows, groups = self._collected()
        options = {self.name: self.options}
        return evaluate(rows[:, 0], rows[:, 1], groups, options, resampling=resampling, rng=rng)[
            self.name
        ]


class AccuracyDifference(GroupMetric):
    """Highest minus lowest accuracy of groups."""

    name = "accuracy.difference"


class WorstGroupAccuracy(GroupMetric):
    """Lowest accuracy of groups."""

    name = "worst_group_accuracy"
    higher_is_better = True


class DemographicParityDifference(GroupMetric):
    """Largest difference between groups in how often a label is predicted."""

    name = "demographic_parity"


class EqualOpportunityDifference(GroupMetric):
    """Highest minus lowest true positive rate of groups.

    The positive class is 1; name another as ``options={"positive": 3}``.
    """

    name = "true_positive_rate.difference"
    defaults = MappingProxyType({"positive": 1})


class SkewSize(GroupMetric):
    """Skewness of the effect sizes of classes between groups and predictions (SkewSize)."""

    name = "skewsize"


class MaxSkew(GroupMetric):
    """Skew of the most over-represented group among the `k` highest scores (MaxSkew@K).

    Parameters
    ----------
    k : int
    groups, options, **settings
        As in `GroupMetric`.
    """

    name = "max_skew"

    def __init__(
        self,
        k: int,
        groups: Sequence[str] = (),
        *,
        options: Facts | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(groups, options={"k": k, **(options or {})}, **settings)

    def update(self, scores: torch.Tensor, groups: Codes) -> None:  # type: ignore[override]
        """Add the scores of images, shape (n,), and their groups."""
        self._add(scores.flatten().double()[:, None], groups)

    def _measure(self, resampling: Resampling | None, rng: int = 0) -> Estimate:
        rows, groups = self._collected()
        max_skew = function_of(self.name)
        return max_skew(rows[:, 0], groups, resampling=resampling, rng=rng, **self.options)
