"""Several metrics of the same predictions at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Aggregate, Estimate, GroupLabels, InputError, Labels, record
from equipoise.core.estimate import BY_GROUP
from equipoise.core.frames import Frame, frame_of
from equipoise.core.views import Mark, Plot
from equipoise.metrics.labels import count
from equipoise.metrics.measure import DEFAULT, Measure, measure
from equipoise.metrics.naming import find_records, search
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.registry import Function, function_of
from equipoise.metrics.spec import SPECS, MetricSpec
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Options = Mapping[str, Any]
Input = Literal["labels", "numbers"]
_ROWS = ("y_true", "y_pred", "groups")
_OVERALL: Mapping[str, type] = {
    "metric": str,
    **dict.fromkeys(("value", "low", "high", "chance", "p_value"), float),
    "n": int,
}


@record
class Evaluation(Mapping[str, Estimate]):
    """Estimates by name, as `evaluate` returns them.

    Attributes
    ----------
    estimates : mapping of str to Estimate

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> ages = m.evaluate([20, 30] * 60, [21, 30] * 60, ["women", "men"] * 60, ["mean_error"])
    >>> ages.overall["metric", "value", "n"].rows()
    [('mean_error', 0.5, 120)]
    """

    estimates: Mapping[str, Estimate]

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    @property
    def overall(self) -> Frame:
        """The value of each metric: `metric`, `value`, its interval, `chance`, `p_value`, `n`."""
        rows = []
        for name, estimate in self.items():
            ends, chance = estimate.interval(), estimate.chance
            mean = None if chance is None else chance.mean
            n = sum(estimate.n.values())
            rows.append((name, estimate.value, ends.low, ends.high, mean, estimate.p_value, n))
        return frame_of(_OVERALL, rows)

    @property
    def by_group(self) -> Frame:
        """The groups' own values, see `Estimate.by_group`; once where metrics share them."""
        rows = (row for estimate in self.values() for row in estimate.by_group.rows())
        return frame_of(BY_GROUP, dict.fromkeys(rows))

    def plot(self, ax: Axes | None = None) -> Plot:
        """Return the groups' own values as a chart; `ax` of matplotlib is drawn into, too."""
        marks = tuple(
            Mark(" ".join(filter(None, (label, group))), value, low, high, metric)
            for metric, label, group, value, low, high, _ in self.by_group.rows()
            if value == value  # noqa: PLR0124 - not NaN
        )
        plot = Plot("Values by group", marks)
        if ax is not None:
            plot.draw(ax)
        return plot

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(repr(estimate)[1:-1])}</li>" for estimate in self.values())
        return f"<ul>{lines}</ul>{self.plot().to_svg()}"


def evaluate(  # noqa: PLR0913 - one keyword for each choice
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    metrics: str | Sequence[str] | Mapping[str, Options],
    *,
    positive: str | int | None = None,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Evaluation:
    """Return several metrics of the same predictions.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units, resampling, rng
        See `equipoise.metrics`.
    metrics : sequence of str, or mapping of str to mapping
        Names or aliases, maybe with how groups compare: "accuracy", "mean_error_difference",
        "accuracy.difference", "worst_group_accuracy". A mapping has the options of each:
        ``{"equalized_odds": {"aggregate": "mean"}}``.
    positive : str or int, optional
        The class that metrics of a class are of.

    Returns
    -------
    Evaluation
        A mapping of the names to estimates, with `overall` and `by_group` as data frames.

    Raises
    ------
    InputError
        When a metric is unknown, isn't of true and predicted labels by group, or needs an option.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> age, estimated = [20, 30, 40, 50] * 30, [21, 30, 44, 50] * 30
    >>> gender = ["women", "men"] * 60
    >>> ages = m.evaluate(age, estimated, gender, ["mean_error", "mean_error_difference"])
    >>> ages["mean_error"]
    <mean_error 1.250 [0.952, 1.548]; n = 120 in 2 groups>
    >>> ages.by_group["group", "value"].rows()
    [('men', 0.0), ('women', 2.5)]
    """
    names, options = _named(metrics)
    inputs = _inputs(y_true)
    records = {name: _find(name, inputs) for name in names}
    functions = {
        name: function_of(spec.name, spec.aggregate, spec.compared_to)
        for name, spec in records.items()
    }
    counted = {
        name: measure_of_counts
        for name, function in functions.items()
        if isinstance(measure_of_counts := getattr(function, "measure", None), Measure)
        and not options.get(name)
    }
    estimates = dict[str, Estimate]()
    if counted:
        counts = count(y_true, y_pred, groups, weights=weights, units=units)
        measured = measure(counts, [*counted.values()], resampling, rng)
        estimates = dict(zip(counted, measured, strict=True))
    for name in [name for name in names if name not in estimates]:
        passed = {"weights": weights, "units": units, **options.get(name, {})}
        needed = {key: value for key, value in passed.items() if value is not None}
        optional: dict[str, Any] = {"resampling": resampling, "rng": rng}
        if records[name].of_class and positive is not None:
            optional["positive"] = positive
        keywords = _keywords(name, functions[name], needed, optional)
        estimates[name] = functions[name](y_true, y_pred, groups, **keywords)
    return Evaluation({name: estimates[name] for name in names})


def _named(
    metrics: str | Sequence[str] | Mapping[str, Options],
) -> tuple[list[str], Mapping[str, Options]]:
    """Return the names of metrics, and the options of each that has some.

    Raises
    ------
    InputError
        When they are no names, or options are no mapping.
    """
    given: Any = metrics
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    options = given if isinstance(given, Mapping) else {}
    for name in names:
        if not isinstance(name, str) or not isinstance(options.get(name, {}), Mapping):
            raise InputError(
                f"metrics: given {metrics!r}; expected names of metrics, or a mapping of names to "
                "the options of each"
            )
    return names, options


def _inputs(y_true: Labels) -> frozenset[Input]:
    """Return the forms that true values can have: whole numbers are labels, too."""
    array = np.asarray(y_true)
    if array.dtype.kind not in "iuf":
        return frozenset({"labels"})
    may_be_labels = bool((np.isnan(array) | (array == np.rint(array))).all())
    return frozenset({"labels", "numbers"} if may_be_labels else {"numbers"})


def _find(name: str, inputs: frozenset[Input]) -> MetricSpec:
    """Return the record of a name, of the records with a function that takes the input."""
    records = find_records(name)
    for candidate in records:
        if _fits(candidate, inputs):
            return candidate
    fitting = [spec.name for spec in SPECS.values() if _fits(spec, inputs)]
    if records:
        problem = f"{name!r} doesn't take true and predicted {' or '.join(sorted(inputs))} by group"
        problem += _dotted(name, inputs)
    else:
        near = f"; did you mean {similar[0].name!r}?" if (similar := search(name)) else ""
        problem = f"{name!r} isn't a metric{near}"
    raise InputError(f"metrics: {problem}. Metrics of this input: {', '.join(fitting)}")


def _dotted(name: str, inputs: frozenset[Input]) -> str:
    """Return a hint at the comparison of groups that a metric's name looks like."""
    for aggregate in Aggregate:
        base = name.removesuffix(f"_{aggregate}")
        dotted = f"{base}.{aggregate}"
        if base != name and any(_fits(record, inputs) for record in find_records(dotted)):
            return f"; for the {aggregate} of groups write {dotted!r}"
    return ""


def _fits(spec: MetricSpec, inputs: frozenset[Input]) -> bool:
    """Whether the function of a record takes true values, predictions and groups."""
    try:
        function = function_of(spec.name, spec.aggregate, spec.compared_to)
    except KeyError:
        return False
    metric = _metric_of(function)
    parameters = signature(metric).parameters.values()
    names = [item.name for item in parameters if item.kind is Parameter.POSITIONAL_OR_KEYWORD]
    of_numbers = isinstance(metric, NumberMetric)
    return (*names,) == _ROWS and ("numbers" if of_numbers else "labels") in inputs


def _metric_of(function: Function) -> Function:
    """Return the metric that a comparison of groups is a method of; else the function."""
    metric: Function = getattr(function, "__self__", function)
    return metric


def _keywords(name: str, function: Function, needed: Options, optional: Options) -> dict[str, Any]:
    """Return the keywords that a function takes.

    Raises
    ------
    InputError
        When it doesn't take a keyword that is needed, or lacks one.
    """
    parameters = dict(signature(function).parameters)
    open_ended = any(item.kind is Parameter.VAR_KEYWORD for item in parameters.values())
    if open_ended:
        # A comparison of groups passes what it doesn't know to the metric.
        parameters |= signature(_metric_of(function)).parameters
    names = [key for key, item in parameters.items() if item.kind is Parameter.KEYWORD_ONLY]
    unknown = [] if open_ended else [key for key in needed if key not in names]
    missing = [
        key
        for key in names
        if parameters[key].default is Parameter.empty and key not in {**needed, **optional}
    ]
    if unknown or missing:
        problem = f"doesn't take {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
        raise InputError(f"metrics: {name!r} {problem}. Options: {', '.join(names)}")
    return {**{key: value for key, value in optional.items() if key in names}, **needed}
