"""The one decorator of metrics, and the function of every name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter, isfunction, signature, unwrap
from typing import Any, Protocol, TypeVar, cast, get_type_hints, overload

import numpy as np

from equipoise.core import Aggregate, ComparedTo, Estimate, Facts, InputError
from equipoise.core.errors import PluginError
from equipoise.discovery import calling_module, guarded
from equipoise.metrics.documenting import document
from equipoise.metrics.spec import SPECS, MetricSpec, register_for, spec_of, unregister

Function = Callable[..., Estimate]
Definition = Callable[..., Any]
OptionTypes = Mapping[str, Any]
"""Types of options, as annotations have them, by name."""
Key = tuple[str, Aggregate, ComparedTo]


class Metric(Protocol):
    """A statistic with its record, as a form makes it; it is called as functions are."""

    @property
    def spec(self) -> MetricSpec:
        """The record, with what the form says of all its metrics."""


class SwitchedMetric(Metric, Protocol):
    """A metric that the section `metrics:` of a configuration switches by its name."""

    @property
    def options(self) -> OptionTypes:
        """Types of the options that it takes in a configuration, by name."""


EstimateFunction = TypeVar("EstimateFunction", bound=Function)
Statistic = TypeVar("Statistic", bound=Callable[..., object])
MetricOfForm = TypeVar("MetricOfForm", bound=Metric)

_FUNCTIONS: dict[Key, Any] = {}


@overload
def metric(*records: MetricSpec) -> Callable[[EstimateFunction], EstimateFunction]: ...
@overload
def metric(
    *records: MetricSpec, form: Callable[[MetricSpec, Statistic], MetricOfForm]
) -> Callable[[Statistic], MetricOfForm]: ...
def metric(*records: MetricSpec, form: Definition | None = None) -> Definition:
    """Register a function as a metric.

    Parameters
    ----------
    *records : MetricSpec
        What is known about it. A function of several names has a record for each.
    form : callable, optional
        What makes a metric of a statistic and its record: `CountMetric` of a number for each count
        table, `NumberMetric` of a number for each row. They add groups, interval, chance level and
        p-value. Without a form the function returns an `Estimate` itself.

    Raises
    ------
    PluginError
        When the name is taken, a field of the record is wrong, or the form isn't callable.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> @m.metric(
    ...     m.MetricSpec(
    ...         name="mean_doubled_error",
    ...         kinds=("regression",),
    ...         definition="Twice the mean distance of predicted from true numbers.",
    ...         direction="Higher: predictions are farther from the truth.",
    ...         reference="an example",
    ...         range=(0.0, float("inf")),
    ...     ),
    ...     form=m.NumberMetric.of,
    ... )
    ... def mean_doubled_error(y_true, y_pred):
    ...     return 2 * abs(y_pred - y_true)
    >>> mean_doubled_error([20, 30], [21, 33]).value
    4.0
    >>> from equipoise.metrics.registry import remove
    >>> remove("mean_doubled_error")
    """

    def registered(function: Definition) -> Definition:
        module, qualname = calling_module(), str(getattr(function, "__qualname__", ""))
        form_of = getattr(form, "of", form)
        if form_of is not None and not callable(form_of):
            raise PluginError(
                f"form: given {form!r}; expected a form such as CountMetric, or none",
                "name a form of equipoise.metrics",
                noun="metric", name=records[0].name, packages=("",),
            )  # fmt: skip
        # A metric object stays as it is: it has methods.
        if form_of is not None or isfunction(function):
            function = _guarded(function, records[0].name, module)
        measured, specs = function, records
        if form_of is not None:
            metric_of_form = form_of(*records, function)
            measured, specs = metric_of_form, (metric_of_form.spec,)
        document(measured, specs[0], function)
        for name in {spec.name for spec in specs}:
            if SPECS.is_redefined(name, module, qualname):
                remove(name)
        for spec in specs:
            register_for(module, spec, qualname)
            _FUNCTIONS[_key(spec)] = measured
        return measured

    return registered


def _guarded(function: Definition, name: str, module: str) -> Definition:
    """Make errors of a metric's function name the metric, see `discovery.guarded`."""
    fix = f"mend it, or switch it off with `metrics: {{{name}: false}}`"
    return guarded(function, SPECS.place(name, module), fix, _not_numbers)


def _not_numbers(value: Any) -> str:
    """Return the problem with a metric's value, "" for numbers and an `Estimate`."""
    parts = value if isinstance(value, tuple) else (value,)
    try:
        kinds = {np.asarray(part).dtype.kind for part in parts if not isinstance(part, Estimate)}
    except ValueError:
        kinds = {"O"}
    return "" if kinds <= {*"biuf"} else f"returned {reprlib.repr(value)}; expected numbers"


def function_of(
    name: str, aggregate: Aggregate | None = None, compared_to: ComparedTo = ""
) -> Function:
    """Return the function of a metric, by default of its first record.

    How groups compare in it is a function of its own, or one that the form of the metric has:
    `mean_error.difference`.

    Raises
    ------
    KeyError
        When there is none.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.function_of("mean_error") is m.mean_error
    True
    """
    SPECS.find(name)
    first = spec_of(name).aggregate
    key = (name, aggregate or first, compared_to)
    if key in _FUNCTIONS:
        function: Function = _FUNCTIONS[key]
        return function
    of_form = getattr(_FUNCTIONS.get((name, first, "")), key[1], None)
    if compared_to or not callable(of_form):
        raise KeyError(key)
    return cast("Function", of_form)


def name_of(function: Definition) -> str:
    """Return the name of a metric, of several the first.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> from equipoise.metrics.registry import name_of
    >>> name_of(m.mean_error)
    'mean_error'
    """
    return next(name for (name, *_), metric in _FUNCTIONS.items() if metric is function)


def metrics_of(form: type[MetricOfForm], kind: str = "") -> dict[str, MetricOfForm]:
    """Return the metrics of a form by name, also of plugins: of a kind of audit, or of all."""
    metrics = {name: metric_of(form, name, kind) for name in SPECS}
    return {name: metric for name, metric in metrics.items() if metric is not None}


def metric_of(form: type[MetricOfForm], name: str, kind: str = "") -> MetricOfForm | None:
    """Return a metric if it has a form and a kind of audit reports it."""
    function = _FUNCTIONS.get(_key(SPECS[name])) if SPECS.has(name) else None
    of_kind = isinstance(function, form) and kind in ("", *function.spec.kinds)
    return function if of_kind else None


def options_of(statistic: Definition) -> OptionTypes:
    """Return the types of a function's keyword-only parameters, which are options of a metric.

    Examples
    --------
    >>> from equipoise.metrics.registry import options_of
    >>> def share(counts, tables, *, k: int = 5): ...
    >>> options_of(share)
    {'k': <class 'int'>}
    """

    def options() -> None: ...

    # Types of other parameters may exist for type checkers alone.
    options.__annotations__ = {
        name: _option_type(parameter)
        for name, parameter in signature(statistic).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
    }
    return get_type_hints(options, globalns=getattr(unwrap(statistic), "__globals__", None))


def _option_type(parameter: Parameter) -> Any:
    """Return the annotation of an option, or the type of its default; numbers are floats."""
    if parameter.annotation is not Parameter.empty:
        return parameter.annotation
    return type(parameter.default) if isinstance(parameter.default, str | bool) else float


def defaults_of(statistic: Definition) -> Facts:
    """Return the defaults of a function's keyword-only parameters that have one.

    Examples
    --------
    >>> from equipoise.metrics.registry import defaults_of
    >>> def share(counts, tables, *, k: int = 5): ...
    >>> defaults_of(share)
    {'k': 5}
    """
    return {
        name: parameter.default
        for name, parameter in signature(statistic).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is not Parameter.empty
    }


def check_options(metric: str, options: Iterable[str], allowed: Collection[str]) -> None:
    """Refuse options that a metric doesn't take.

    Raises
    ------
    InputError
        With the first of them, and those that it takes.
    """
    if unknown := {*options} - {*allowed}:
        names = ", ".join(allowed) or "none"
        raise InputError(f"{metric}: unknown option {min(unknown)!r}; options: {names}")


def remove(name: str) -> None:
    """Remove a metric, to define it again."""
    for key in [key for key in _FUNCTIONS if key[0] == name]:
        del _FUNCTIONS[key]
    unregister(name)


def _key(spec: MetricSpec) -> Key:
    return spec.name, spec.aggregate, spec.compared_to
