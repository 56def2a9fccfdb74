"""The section `metrics:` of a config: which metrics are measured, with what options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from pydantic import (
    ConfigDict,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from equipoise.config.fields import Name, Section, distinct
from equipoise.config.files import as_yaml, nearest
from equipoise.config.metric_names import find_metric, kind_of, metrics_of_kind, refused
from equipoise.core import Aggregate, Fact, Facts, Strings
from equipoise.data.problems import expected_value
from equipoise.metrics.naming import comparison_of, find_records, full_name
from equipoise.metrics.registry import Function, OptionTypes, SwitchedMetric, metrics_of, name_of
from equipoise.metrics.spec import SPECS


class MetricSwitches(Section):
    """Options of metrics by name: `false` switches a metric off, `true` on.

    A list of names in place of the section switches all others off that the kind can switch. The
    field's other names of a metric stand for its name, and those of a comparison of groups for the
    comparison alone: `equal_opportunity`, `recall_difference`. Findings of a metric that is off are
    left out. Fields are metrics with options of the kind's own.

    Attributes
    ----------
    only : tuple of str
        The names of a list, in its order; () without one.
    kind : str
        The kind of audit; "" as the config says.
    forms : tuple of type
        Forms of the metrics that the kind measures because the registry has them.
    functions : tuple of callable
        Metrics without a form that the kind measures.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Name, Mapping[Name, Any] | bool]
    kind: ClassVar[str] = ""
    forms: ClassVar[tuple[type[SwitchedMetric], ...]] = ()
    functions: ClassVar[tuple[Function, ...]] = ()
    only: Strings = ()

    @classmethod
    def registered(cls) -> dict[str, OptionTypes]:
        """Return the metrics without a field that the kind measures, with types of options."""
        metrics: dict[str, SwitchedMetric] = {}
        for form in cls.forms:
            metrics |= metrics_of(form, cls.kind)
        options = {name: metric.options for name, metric in metrics.items()}
        return options | {name_of(function): {} for function in cls.functions}

    @classmethod
    def parts(cls) -> Mapping[str, str]:
        """Return the metrics that another one's switch measures, with that one."""
        return {}

    @classmethod
    def switched(cls) -> list[str]:
        """Return the metrics that are measured only where they are on: fields come first."""
        fields = [name for name in cls.model_fields if name not in MetricSwitches.model_fields]
        return list(dict.fromkeys([*fields, *cls.registered()]))

    @classmethod
    def _as_mapping(cls, values: Any) -> Any:
        return {"only": values} if isinstance(values, list | tuple) else values

    @classmethod
    def _checked_keys(
        cls, values: Mapping[Any, Any], info: ValidationInfo
    ) -> tuple[Mapping[Any, Any], list[PydanticCustomError]]:
        """Return switches under the names of metrics, with options in the types that they take."""
        kind = cls.kind or kind_of(info)
        checked: dict[str, Any] = {}
        problems = []
        for key, options in values.items():
            if key == "only":
                continue
            try:
                name, value = cls._switch(key, options, kind)
                if name in checked:
                    raise refused(str(key), f"{key!r} is {name}, which is given already")
                checked[name] = value
            except PydanticCustomError as problem:
                problems.append(problem)
        if "only" in values:
            try:
                checked |= cls._listed(values["only"], cls.switched(), kind)
            except PydanticCustomError as problem:
                problems.append(problem)
        return checked, problems

    @classmethod
    def _switch(cls, key: object, options: object, kind: str) -> tuple[str, object]:
        """Return the name of a switch, and its options."""
        switched = cls.switched()
        if key not in switched and key in SPECS.broken:
            raise SPECS.broken[str(key)]
        name = _name_of(key, str(key), switched, kind)
        if name in cls.model_fields:
            return name, options
        return name, _checked(str(key), options, cls.registered().get(name, {}))

    @classmethod
    def _listed(cls, only: Any, switched: Sequence[str], kind: str) -> dict[str, Any]:
        """Return the names of a list, and `false` for all others that the switches have."""
        if not isinstance(only, list | tuple):
            return {"only": only}
        parts = cls.parts()
        allowed = dict.fromkeys([*switched, *parts])
        listed = [
            name
            if isinstance(name, str) and name in allowed
            else full_name(find_metric(name, place, kind, allowed))
            for place, name in enumerate(only)
        ]
        if not listed:
            raise refused("only", "an empty list; expected names of metrics")
        distinct(tuple(listed))
        names = [*dict.fromkeys(parts.get(name, name) for name in listed)]
        left_out = [
            part for part, whole in parts.items()
            if whole in names and whole not in listed and part not in listed
        ]  # fmt: skip
        off = [name for name in cls.model_fields if name in switched and name not in names]
        return {**dict.fromkeys([*off, *left_out], False), "only": tuple(names)}

    @model_serializer(mode="wrap")
    def _without_empty_list(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        return values if self.only else {k: v for k, v in values.items() if k != "only"}

    def options(self, metric: str) -> Facts | None:
        """Return the options of a metric, None if it is off."""
        if metric in type(self).model_fields:
            section: Section | Facts | None = getattr(self, metric)
            return section.model_dump() if isinstance(section, Section) else section
        extra = self.__pydantic_extra__ or {}
        on = metric not in SPECS or SPECS[metric].is_default_of(self.kind)
        if self.only and metric in self.switched():
            on = metric in self.only
        options = extra.get(metric, on)
        if isinstance(options, Mapping):
            return options
        return {} if options else None

    def has(self, function: Function) -> bool:
        """Return whether a metric is on, by its function."""
        return self.options(name_of(function)) is not None

    @property
    def measured(self) -> dict[str, Facts]:
        """Options of the metrics that are switched on, by name: a list's in its order."""
        names = [name for name in self.switched() if name not in self.only]
        options = {name: self.options(name) for name in (*self.only, *names)}
        return {name: facts for name, facts in options.items() if facts is not None}

    def reports(self, fact: Fact) -> bool:
        """Whether a number is reported: neither its metric nor how groups compare in it is off."""
        return not any(
            fact.metric == metric and aggregate in (None, fact.aggregate)
            for metric, aggregate in self._left_out
        )

    @cached_property
    def _left_out(self) -> list[tuple[str, Aggregate | None]]:
        """Metrics without findings, with the aggregate of a comparison that is off alone."""
        switched, extra = {*self.switched()}, self.__pydantic_extra__ or {}
        names = [name for name, on in extra.items() if on is False and name not in switched]
        records = (record for name in names for record in find_records(name)[:1])
        return [(record.name, comparison_of(record)) for record in records]


def _name_of(key: object, place: str | int, switched: Sequence[str], kind: str = "") -> str:
    """Return the name of a switch, whatever the field calls it.

    Without a kind it is among those that are switched, and else of any metric of the kind, or of a
    comparison of groups in it.
    """
    name = str(key)
    if name in switched:
        return name
    names = [*switched, *metrics_of_kind(kind)] if kind else switched
    return full_name(find_metric(name, place, kind, dict.fromkeys(names)))


def _checked(key: str, options: object, types: OptionTypes) -> dict[str, Any] | bool:
    """Return options of a metric in the types that it takes.

    Raises
    ------
    PydanticCustomError
        When it doesn't take an option, or not this value.
    """
    if options is None or isinstance(options, bool):
        return options is not False
    if not isinstance(options, Mapping):
        raise refused(
            key, f"given {as_yaml(options)}; expected true, false or a mapping of options"
        )
    checked = {}
    for name, value in options.items():
        if name not in types:
            allowed = f"Allowed: {', '.join(types) or 'nothing'}{nearest(name, types)}"
            raise refused(key, f"unknown option {name!r}. {allowed}")
        try:
            checked[name] = TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            expected = expected_value(first["type"], first["msg"])
            raise refused(key, f"{name}: given {as_yaml(value)}; expected {expected}") from None
    return checked
