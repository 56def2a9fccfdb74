"""Metrics of sets of vectors: a number of them with its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from inspect import Parameter, signature

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Estimate,
    Floats,
    InputError,
    IntervalKind,
    NullHypothesis,
    Strings,
    integers,
    numbered,
    record,
)
from equipoise.metrics.building import (
    PERCENTILE,
    UNTESTED,
    ChanceTest,
    compare_with_null,
    ends_of,
    explain_undefined,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.measure import DEFAULT, NO_REPLICATES
from equipoise.metrics.spec import OF_TARGETS, SETS, MetricSpec
from equipoise.metrics.vectors.resampling import SetUnits, Space, permutations
from equipoise.metrics.vectors.sets import Similarity
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.exchange import Exchange
from equipoise.stats.streams import Seed, stream

Vectors = Mapping[str, Floats]


@record
class VectorMetric(Form):
    """A number of sets of vectors as a metric: call it with embeddings of the sets.

    Its function takes one set of targets, or two, and then two sets of attributes, each of unit
    vectors (n, d): `targets @ a.T` holds cosines, or the scores of a model that scores pairs.

    Attributes
    ----------
    declared : MetricSpec
        The record as it is declared.
    statistic : callable
        From three or four sets to a number, NaN where it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> @m.metric(
    ...     m.MetricSpec(
    ...         name="nearest_lean",
    ...         kinds=("associations",),
    ...         definition="Share of targets that are nearest to a member of the first set.",
    ...         direction="Higher: more targets are nearest to the first set.",
    ...         reference="an example",
    ...     ),
    ...     form=m.VectorMetric,
    ... )
    ... def nearest_lean(targets, a, b):
    ...     return ((targets @ a.T).max(axis=1) > (targets @ b.T).max(axis=1)).mean()
    >>> rng = np.random.default_rng(0)
    >>> art, men, women = rng.normal(size=(3, 12, 8)) + np.eye(3, 8)[[0, 0, 1], None]
    >>> nearest_lean(art, men, women).value
    0.5833333333333334
    """

    declared: MetricSpec
    statistic: Callable[..., float]

    @cached_property
    def spec(self) -> MetricSpec:
        """The record, with the sets that its measurement needs."""
        return replace(
            self.declared,
            needs=SETS,
            takes=("modalities", "each_member", "resample_texts", *OF_TARGETS),
            targets="each" if len(set_names(self)) == 3 else "two",
            null_kind=NullHypothesis.MEMBERS,
        )

    def __call__(
        self,
        *sets: ArrayLike,
        fixed: Collection[str] = (),
        similarity: Similarity | None = None,
        units: SetUnits | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Estimate:
        """Return the number with interval, chance and p; see `equipoise.metrics.association_score`.

        Members of two targets exchange, else those of the two sets of attributes.
        """
        names, name = set_names(self), self.spec.name
        if len(sets) != len(names) or len(names) not in (3, 4):
            raise InputError(
                f"{name}: {len(sets)} sets for {', '.join(names)}; expected one set of targets or "
                "two, and two of attributes"
            )
        by_name = dict(zip(names, sets, strict=True))
        attributes = {attribute: by_name.pop(attribute) for attribute in names[-2:]}
        space = Space.of(by_name, attributes, fixed, similarity, units, resampling, rng)
        vectors = {set_name: members.vectors for set_name, members in space.sets.items()}
        value = self._number(vectors)
        first, second = names[:2] if len(names) == 4 else names[-2:]
        boot, method = None, NO_REPLICATES
        if isinstance(resampling, Bootstrap) and space.varied:
            drawn = _resampled(space, vectors, resampling.replicates)
            boot = np.array([*map(self._number, drawn)])
            method = f"{PERCENTILE}, {len(boot)} replicates,"
        return space.estimate(
            name,
            value,
            (),
            self._chance_test(space, vectors, value, first, second),
            jackknife=None,
            ends=ends_of(boot),
            kind=method,
            interval_kind=IntervalKind.PERCENTILE,
            pairs=[(first, second)],
            reason=explain_undefined(value, "the metric is undefined for these sets"),
        )

    def _number(self, vectors: Vectors) -> float:
        if not all(map(len, vectors.values())):
            return math.nan
        number = np.asarray(self.statistic(*vectors.values()), dtype=np.float64)
        if number.shape or np.isinf(number):
            raise InputError(
                f"metric {self.spec.name!r}: gave {number} of shape {number.shape}. To do: return "
                "a finite number, NaN for none"
            )
        self.spec.check_values(number)
        return float(number)

    def _chance_test(
        self, space: Space, vectors: Vectors, value: float, first: str, second: str
    ) -> ChanceTest:
        """Hold the number against exchanged members of two sets."""
        if space.resampling is None:
            return UNTESTED
        low, high = space[first], space[second]
        pooled = np.concatenate([vectors[first], vectors[second]])
        group = integers(np.arange(len(pooled)) >= len(low))
        unit = np.arange(len(pooled))
        if low.units is not None and high.units is not None:
            unit = numbered([*low.units, *high.units])
        exchange = Exchange.within(group, unit, np.zeros_like(unit))
        random = stream(space.seed, "permutation", "members")
        null = np.empty(permutations(len(pooled), space.resampling))
        for draw in range(len(null)):
            exchanged = exchange.shuffle(group, random)
            sets = {first: pooled[exchanged == 0], second: pooled[exchanged == 1]}
            null[draw] = self._number({**vectors, **sets})
        text = f"the members of {first} and {second} are exchangeable; {len(null)} permutations"
        finest = space.resampling.resolution
        return compare_with_null(null, value, self.spec.value_harm, text, resolution=finest)


def set_names(metric: Callable[..., Estimate]) -> Strings:
    """Return the names of the sets that a metric takes: targets, then attributes."""
    function = metric.statistic if isinstance(metric, VectorMetric) else metric
    parameters = signature(function).parameters.values()
    named = Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY
    return tuple(parameter.name for parameter in parameters if parameter.kind in named)


def _resampled(space: Space, vectors: Vectors, replicates: int) -> Iterator[Vectors]:
    """Draw members, or units of them, of each sample of sets with replacement."""
    random = stream(space.seed, "bootstrap", "members")
    codes = [space.codes(sample) for sample in space.samples(space.sets)]
    for _ in range(replicates):
        drawn = dict(vectors)
        for by_set in codes:
            size = 1 + max(int(set_codes.max()) for set_codes in by_set.values())
            times = np.bincount(random.integers(size, size=size), minlength=size)
            for name, set_codes in by_set.items():
                places = np.repeat(np.arange(len(set_codes)), times[set_codes])
                drawn[name] = vectors[name][places]
        yield drawn
