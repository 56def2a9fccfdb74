"""Numbers that another metric's estimate holds, as metrics of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature, signature
from typing import Any, cast

from equipoise.core import (
    Chance,
    Estimate,
    GroupLabels,
    InputError,
    IntervalKind,
    Labels,
    Span,
    record,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import make_estimate, spec_of
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed

Option = Labels | GroupLabels | Resampling | Seed | None
"""What metrics take by name."""


@record
class PartMetric(Form):
    """A number of another metric's estimate as a metric: it is called as the other metric is.

    Its keyword `subject` names the class, group or answer. Its interval is at the level of
    `resampling`, and at no other.

    Attributes
    ----------
    name : str
        Name of the metric.
    whole : callable
        The other metric, which returns the estimate.
    of_whole : bool
        Whether it is the number of the whole estimate where no subject is named.
    method : callable, optional
        Returns the method of its own confidence interval from that of the whole, where they differ.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.raw_share(["man"] * 60 + ["woman"] * 40, None, subject="man")
    <raw_share 0.600 [0.502, 0.691]; n = 100>
    >>> m.representation(["women"] * 40 + ["men"] * 60, {"women": 1, "men": 1}, subject="men")
    <representation 0.182 [0.004, 0.323]; chance −0.003, p = 0.05, n = 100>
    """

    name: str
    whole: Callable[..., Estimate]
    of_whole: bool = False
    method: Callable[[str], str] | None = None

    def __call__(self, *data: Any, subject: str = "", **options: Option) -> Estimate:
        """Return the number of a subject.

        Raises
        ------
        InputError
            When the estimate has no part about the subject, or as the other metric.
        """
        estimate = self.whole(*data, **options)
        if self.of_whole and not subject:
            return replace(estimate, metric=self.name, reference=spec_of(self.name).reference)
        level = level_of(cast("Resampling | None", options.get("resampling", DEFAULT)))
        part = estimate_of_part(estimate, self.name, subject, level)
        if self.method is None:
            return part
        method = self.method(estimate.method)
        return replace(part, method=method, interval_kind=IntervalKind.CONFIDENCE)

    @property
    def __signature__(self) -> Signature:
        """Parameters of the other metric, and the subject."""
        whole = signature(self.whole)
        subject = Parameter("subject", Parameter.KEYWORD_ONLY, default="", annotation="str")
        return whole.replace(parameters=[*whole.parameters.values(), subject])


def estimate_of_part(estimate: Estimate, metric: str, subject: str, level: float) -> Estimate:
    """Return a part of an estimate as an estimate, with the part's interval at its level.

    Raises
    ------
    InputError
        When there is none about the subject.
    """
    parts = [part for part in estimate.parts if part.metric == metric] or [*estimate.parts]
    part = next((part for part in parts if part.subject == subject), None)
    if part is None:
        subjects = ", ".join(dict.fromkeys(part.subject for part in parts))
        raise InputError(f"subject {subject!r}: not among {subjects}")

    def ends(wanted: float) -> Span:
        return (part.low, part.high) if math.isclose(wanted, level) else (math.nan, math.nan)

    chance = Chance(part.chance, part.chance_low, part.chance_high, estimate.null_drawn)
    tested = not math.isnan(part.p_value)
    return make_estimate(
        metric, part.value, {"rows": part.n}, estimate.method, aggregate=part.aggregate,
        chance=chance if tested else None, p_value=part.p_value if tested else None,
        p_at_most=part.p_at_most,
        no_chance="" if tested else estimate.no_chance or "a part without a test",
        null=estimate.null, null_drawn=estimate.null_drawn if tested else "",
        params={**estimate.params, "subject": subject}, by=[part],
        excluded={item.reason: item.count for item in part.excluded} or estimate.excluded,
        unit=estimate.unit, reason=part.reason, ends=ends, corrected=part.corrected,
        interval_kind=estimate.interval_kind,
    )  # fmt: skip
