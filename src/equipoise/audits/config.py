"""The configuration of an audit: one strict schema, the same names in YAML and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field, ValidationError, model_validator

from equipoise.audits.config_fields import Group, Label, Section
from equipoise.audits.config_inputs import DataConfig, ModelConfig
from equipoise.audits.config_metrics import MetricsConfig, TestingConfig
from equipoise.audits.config_problems import explain, nearest
from equipoise.audits.config_yaml import parse_yaml
from equipoise.core.errors import ConfigError
from equipoise.metrics.cards import CARDS

_MAX_NAME = 200


class ResamplingConfig(Section):
    """How intervals and chance levels are made.

    Attributes
    ----------
    method : str
        `bootstrap`, or `none` for values alone.
    replicates : int
        Bootstrap replicates.
    permutations : int, optional
        Per test; chosen from the number of tests and alpha unless given.
    seed : int
    level : float
        Confidence level of the intervals.
    """

    method: Literal["bootstrap", "none"] = "bootstrap"
    replicates: Annotated[int, Field(ge=10, le=1_000_000)] = 1000
    permutations: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


class GateConfig(Section):
    """One requirement that `equipoise check` enforces.

    Attributes
    ----------
    metric : str
        Name of the metric, as in the findings.
    min, max : float, optional
        Bounds, both allowed values themselves.
    on : str
        What is compared: the value, or the lower or upper end of its interval.
    model, groups, subject : optional
        Restrict the rule to one model, one entry of `data.groups`, one class; every finding of
        the metric otherwise.
    """

    metric: str
    min: float | None = None
    max: float | None = None
    on: Literal["value", "lower", "upper"] = "value"
    model: Label | None = None
    groups: Group | None = None
    subject: Label | None = None

    @model_validator(mode="after")
    def _bounded(self) -> GateConfig:
        known = [name for name, card in CARDS.items() if card.family == "predictions"]
        if self.metric not in known:
            raise ValueError(
                f"no metric is called {self.metric!r}. Allowed: {', '.join(known)}"
                f"{nearest(self.metric, known)}"
            )
        if self.min is None and self.max is None:
            raise ValueError("neither 'min' nor 'max' is given; expected at least one of them")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' {self.min} is above 'max' {self.max}")
        return self


class ReportConfig(Section):
    """What the report is called."""

    title: str = ""


class Config(Section):
    """The configuration of an audit of predictions; see docs/config.md for every key."""

    audit: Literal["predictions"]
    data: DataConfig
    models: Annotated[
        Mapping[Annotated[Label, Field(min_length=1)], ModelConfig], Field(min_length=1)
    ]
    metrics: MetricsConfig = MetricsConfig()
    resampling: ResamplingConfig = ResamplingConfig()
    testing: TestingConfig = TestingConfig()
    gate: Annotated[tuple[GateConfig, ...], Field(strict=False)] = ()
    report: ReportConfig = ReportConfig()

    @model_validator(mode="after")
    def _models_can_be_files(self) -> Config:
        seen: dict[str, str] = {}
        for name in self.models:
            if len(quote(name, safe="")) > _MAX_NAME:
                raise ValueError(
                    f"models: the name {name[:40]!r}… is too long; expected a shorter one"
                )
            other = seen.setdefault(name.casefold(), name)
            if other != name:
                raise ValueError(
                    f"models: {other!r} and {name!r} differ in case only; expected distinct names"
                )
        return self

    @model_validator(mode="after")
    def _gate_can_match(self) -> Config:
        groups = [group_name(group) for group in self.data.groups]
        for index, rule in enumerate(self.gate):
            _among(f"gate[{index}].model", rule.model, [*self.models])
            _among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, groups)
        return self

    @model_validator(mode="after")
    def _tests_can_reject(self) -> Config:
        count, alpha = self.resampling.permutations, self.testing.alpha
        if count is not None and 1 / (1 + count) > alpha:
            raise ValueError(
                f"resampling.permutations: with {count} no p-value is below {1 / (1 + count):.3g}, "
                f"and testing.alpha is {alpha}; expected at least {ceil(1 / alpha - 1e-9) - 1}"
            )
        return self

    @property
    def resolved(self) -> dict[str, Any]:
        """The configuration with every default filled in, as plain JSON values."""
        return self.model_dump(mode="json")


def group_name(attributes: tuple[str, ...]) -> str:
    """Return how findings call one attribute or an intersection: names joined by " × "."""
    return " × ".join(attributes)


def _among(key: str, value: str | None, allowed: list[str]) -> None:
    if value is not None and value not in allowed:
        raise ValueError(
            f"{key}: given {value!r}. Allowed: {', '.join(allowed)}{nearest(value, allowed)}"
        )


def parse_config(values: Any, *, source: str = "configuration") -> Config:
    """Check a configuration given as Python values.

    Parameters
    ----------
    values : mapping
        The keys of docs/config.md. A table may be a path or any data frame.
    source : str
        What to call it in errors.

    Raises
    ------
    ConfigError
        Naming each key that is wrong, what was given there and what is allowed.
    """
    return _validated(values, source, None)


def load_config(path: str | Path) -> Config:
    """Read and check a configuration file.

    Parameters
    ----------
    path : str or Path
        A YAML file. Relative paths in it are relative to its folder.

    Raises
    ------
    ConfigError
        When it cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    return _validated(*read_values(path))


def read_values(path: str | Path) -> tuple[Any, str, Any]:
    """Read a configuration file without checking its keys: values, source name, YAML node."""
    source = str(path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{source}: no such file. To do: create one with 'equipoise new {source}'"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    values, node = parse_yaml(content, source)
    return values, source, node


def _validated(values: Any, source: str, node: Any) -> Config:
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{source}: {'empty' if values is None else 'not a mapping'}; expected the keys "
            f"{', '.join(Config.model_fields)}. To do: start from 'equipoise new'"
        )
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(explain(error, Config, source, node)) from None
    except RecursionError:
        raise ConfigError(f"{source}: refers to itself; expected a plain tree of values") from None
