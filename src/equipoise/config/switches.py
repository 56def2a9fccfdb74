"""The section `metrics:` of a kind of audit: which metrics are measured, with what options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError, model_validator

from equipoise.config.fields import Name, Section, among
from equipoise.core import Facts
from equipoise.metrics.registry import OptionTypes, SwitchedMetric, metrics_of
from equipoise.metrics.spec import SPECS


class MetricSwitches(Section):
    """Options of metrics by name; `false` switches one off, and all others are on.

    Fields are metrics with options of the kind's own. What the registry has of the kind's form is
    switched by name, also metrics of plugins.

    Attributes
    ----------
    kind : str
        The kind of audit.
    form : type
        Form of the metrics that it measures because the registry has them.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Name, Mapping[Name, Any] | bool]
    kind: ClassVar[str]
    form: ClassVar[type[SwitchedMetric]]

    @classmethod
    def registered(cls) -> Mapping[str, SwitchedMetric]:
        """Return the metrics that the registry has of the form."""
        return metrics_of(cls.form, cls.kind)

    @classmethod
    def allowed_keys(cls) -> list[str]:
        """Return the fields, then the metrics of the registry."""
        return list(dict.fromkeys([*super().allowed_keys(), *cls.registered()]))

    @model_validator(mode="before")
    @classmethod
    def _check_plugins(cls, values: Any) -> Any:
        """Refuse a metric of a plugin that can't be imported."""
        for name in values if isinstance(values, Mapping) else ():
            if name not in cls.model_fields and name in SPECS.broken:
                raise SPECS.broken[name]
        return values

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        extra = self.__pydantic_extra__ or {}
        for name, options in extra.items():
            if isinstance(options, Mapping):
                extra[name] = _checked(name, options, self.registered()[name].options)
        return self

    def options(self, metric: str) -> Facts | None:
        """Return the options of a metric, None if it is off."""
        if metric in type(self).model_fields:
            section: Section | Facts | None = getattr(self, metric)
            return section.model_dump() if isinstance(section, Section) else section
        options = (self.__pydantic_extra__ or {}).get(metric, SPECS[metric].by_default)
        if isinstance(options, Mapping):
            return options
        return {} if options else None

    @property
    def of_registry(self) -> Mapping[str, Facts]:
        """Options of the metrics of the registry that are switched on, by name."""
        options = {name: self.options(name) for name in self.registered()}
        return {name: facts for name, facts in options.items() if facts is not None}


def _checked(metric: str, options: Facts, types: OptionTypes) -> dict[str, Any]:
    """Return options of a metric in the types that it takes.

    Raises
    ------
    ValueError
        When it doesn't take an option, or not this value.
    """
    checked = {}
    for name, value in options.items():
        among(metric, name, types)
        try:
            checked[name] = TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise ValueError(f"{metric}.{name}: {problem[0].lower()}{problem[1:]}") from None
    return checked
