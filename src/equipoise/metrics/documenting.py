"""Names, texts and signatures of metrics that forms make, as `help` and completion show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial, wraps
from inspect import Parameter, Signature, getdoc, isfunction, signature, unwrap
from typing import Any, TypeVar

from equipoise.core import InputError
from equipoise.metrics.spec import MetricSpec

Definition = Callable[..., object]
Result = TypeVar("Result")
_HEADING = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def document(metric: Definition, spec: MetricSpec, statistic: Definition) -> None:
    """Give a metric that a form made the name, text and signature of a function.

    Parameters
    ----------
    metric : callable
    spec : MetricSpec
    statistic : callable
        The function that the record describes; the metric itself where there is none. A function
        that is a metric itself keeps its own.
    """
    if isinstance(metric, partial) or not hasattr(metric, "__dict__") or isfunction(metric):
        return
    text = _text(metric, spec, statistic)
    vars(metric).update(__name__=spec.name, __qualname__=spec.name, __doc__=text)
    if metric is not statistic and not hasattr(type(metric), "__signature__"):
        vars(metric).update(__signature__=_signature(metric, statistic))


class Form:
    """What forms of metrics have in common: a metric shows its name and parameters."""

    def __repr__(self) -> str:
        name = vars(self).get("__name__", type(self).__name__)
        parameters = _names_of(signature(self)) if callable(self) else ()
        return f"<metric {name}({', '.join(parameters)})>"

    def __init_subclass__(cls) -> None:
        """Have calls with other arguments than a metric takes name those that it takes."""
        if "__call__" in vars(cls):
            cls.__call__ = _checked_call(vars(cls)["__call__"])  # type: ignore[method-assign]


def _checked_call(call: Callable[..., Result]) -> Callable[..., Result]:
    """Refuse arguments that a call doesn't take.

    Raises
    ------
    InputError
        With the arguments that it takes.
    """
    parameters = signature(call)

    @wraps(call)
    def checked(metric: Form, *data: Any, **named: Any) -> Result:
        try:
            parameters.bind(metric, *data, **named)
        except TypeError as error:
            raise InputError(f"{error}; expected as in {metric!r}") from None
        return call(metric, *data, **named)

    return checked


def _names_of(call: Signature) -> Iterator[str]:
    """Yield the names of parameters, with "*" before keywords."""
    kinds = [parameter.kind for parameter in call.parameters.values()]
    for place, (name, kind) in enumerate(zip(call.parameters, kinds, strict=True)):
        if kind is Parameter.KEYWORD_ONLY and Parameter.KEYWORD_ONLY not in kinds[:place]:
            yield "*"
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind.name, "")
        yield stars + name


def _text(metric: Definition, spec: MetricSpec, statistic: Definition) -> str:
    """Return the text of the statistic, with that of the form on how to call it."""
    described = unwrap(statistic.func if isinstance(statistic, partial) else statistic)
    text = (getdoc(described) if isfunction(described) else "") or spec.definition
    if "Examples\n--------" in text:
        return text
    about, form = _sections(type(metric)), _sections(type(metric).__call__)
    _, *paragraphs = about.pop("").split("\n\n")
    parts = [text, *paragraphs]
    for heading, section in (("Parameters", form), ("Examples", about)):
        if heading in section:
            parts.append(f"{heading}\n{'-' * len(heading)}\n{section[heading]}")
    return "\n\n".join(parts)


def _sections(documented: object) -> dict[str, str]:
    """Return the sections of a docstring by heading, the text above them under ""."""
    text, *sections = _HEADING.split(getdoc(documented) or "")
    texts = map(str.strip, sections[1::2])
    return {"": text.strip(), **dict(zip(sections[::2], texts, strict=True))}


def _signature(metric: Definition, statistic: Definition) -> Signature:
    """Return the parameters of a call, with the names of the data and options of the statistic."""
    call = signature(metric)
    return call.replace(parameters=[*_parameters(call, signature(statistic))])


def _parameters(call: Signature, statistic: Signature) -> Iterator[Parameter]:
    for parameter in call.parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            for data in statistic.parameters.values():
                if data.kind is not Parameter.KEYWORD_ONLY:
                    yield data.replace(annotation=parameter.annotation)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            for option in statistic.parameters.values():
                if option.kind is Parameter.KEYWORD_ONLY:
                    default = None if option.default is Parameter.empty else option.default
                    yield option.replace(default=default)
        else:
            yield parameter
