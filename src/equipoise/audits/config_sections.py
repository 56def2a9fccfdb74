"""The sections that the configurations of all audits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Protocol
from urllib.parse import quote

from pydantic import Field, ValidationInfo, field_validator, model_validator

from equipoise.audits.config_fields import Group, Label, Section
from equipoise.audits.config_problems import nearest
from equipoise.audits.running.config import ExtractionConfig
from equipoise.metrics.spec import SPECS

_MAX_NAME = 200


def known_metrics(info: ValidationInfo) -> list[str]:
    """Return the metrics of the audit that is being configured; of every audit where none is."""
    audit = (info.context or {}).get("audit")
    return [name for name, spec in SPECS.items() if audit in (None, *spec.kinds)]


def check_metric(name: object, info: ValidationInfo) -> None:
    """Refuse a name that is no metric of the audit that is being configured.

    Raises
    ------
    ValueError
        Whether there is no such metric, or none in audits of this kind; and what is allowed.
    """
    known = known_metrics(info)
    if name in known:
        return
    allowed = f"Allowed: {', '.join(known)}"
    if isinstance(name, str) and name in SPECS:
        audit = str((info.context or {}).get("audit")).replace("_", " ")
        raise ValueError(f"{name!r} is not measured by audits of {audit}. {allowed}")
    raise ValueError(f"no metric is called {name!r}. {allowed}{nearest(name, known)}")


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
    model, groups, subject, version : optional
        Restrict the rule to one model, one entry of `data.groups`, one class, one version of the
        design choices; every finding of the metric otherwise.
    """

    metric: str
    min: float | None = None
    max: float | None = None
    on: Literal["value", "lower", "upper"] = "value"
    model: Label | None = None
    groups: Group | None = None
    subject: Label | None = None
    version: Label | None = None

    @model_validator(mode="after")
    def _bounded(self, info: ValidationInfo) -> GateConfig:
        check_metric(self.metric, info)
        if self.min is None and self.max is None:
            raise ValueError("neither 'min' nor 'max' is given; expected at least one of them")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' {self.min} is above 'max' {self.max}")
        return self


class ReportConfig(Section):
    """What the report is called."""

    title: str = ""


class TestingConfig(Section):
    """When a difference counts.

    Attributes
    ----------
    alpha : float
        Level of significance of the corrected p-values.
    correction : str
        Benjamini-Hochberg (false discovery rate) or Holm (family-wise error).
    thresholds : mapping of str to float
        Practical threshold on the excess over chance, per metric, in place of the default, or
        where the metric has none.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    correction: Literal["benjamini-hochberg", "holm"] = "benjamini-hochberg"
    thresholds: Mapping[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @field_validator("thresholds", mode="before")
    @classmethod
    def _known(cls, value: object, info: ValidationInfo) -> object:
        for name in value if isinstance(value, Mapping) else ():
            check_metric(name, info)
        return value

    def threshold(self, metric: str) -> float | None:
        """Return the practical threshold of a metric, or of what it is the gap of; None: none."""
        name = metric if metric in SPECS else metric.removesuffix("_gap")
        return self.thresholds.get(name, SPECS[name].threshold if name in SPECS else None)


class Attributes(Protocol):
    """A section about a table, or about images that a table is made of."""

    @property
    def has_missing(self) -> bool:
        """Whether the key `missing` goes with it: with tables, not folders or other formats."""


class AuditConfig(Section):
    """What every audit is configured by, beside its own data, models and metrics."""

    models_key: ClassVar[str] = "models"
    """Section whose keys name the models."""

    audit: str
    extraction: ExtractionConfig = ExtractionConfig()
    resampling: ResamplingConfig = ResamplingConfig()
    testing: TestingConfig = TestingConfig()
    gate: Annotated[tuple[GateConfig, ...], Field(strict=False)] = ()
    report: ReportConfig = ReportConfig()

    @model_validator(mode="after")
    def _tests_can_reject(self) -> AuditConfig:
        count, alpha = self.resampling.permutations, self.testing.alpha
        if count is not None and 1 / (1 + count) > alpha:
            raise ValueError(
                f"resampling.permutations: with {count} no p-value is below {1 / (1 + count):.3g}, "
                f"and testing.alpha is {alpha}; expected at least {ceil(1 / alpha - 1e-9) - 1}"
            )
        return self

    @model_validator(mode="after")
    def _models_can_be_files(self) -> AuditConfig:
        file_names(getattr(self, "models", {}))
        return self

    @model_validator(mode="after")
    def _gate_can_match(self) -> AuditConfig:
        for index, rule in enumerate(self.gate if self.group_names is not None else ()):
            among(f"gate[{index}].model", rule.model, [*self.model_names])
            groups = group_name(rule.groups or ()) or None
            among(f"gate[{index}].groups", groups, [*(self.group_names or ())])
        return self

    @property
    def model_names(self) -> Sequence[str]:
        """Names of the models that findings are about."""
        return (*getattr(self, "models", {}),)

    @property
    def group_names(self) -> Sequence[str] | None:
        """Names of the choices of groups, for the gate; None of a kind that checks them itself."""
        return None

    @property
    def attributes_section(self) -> Attributes | None:
        """The section that the groups' attributes come from; None where the config lists them."""
        section: Attributes = getattr(self, "data")  # noqa: B009 - each kind has its own type
        return section

    @property
    def resolved(self) -> dict[str, Any]:
        """The configuration with every default filled in, as plain JSON values."""
        return self.model_dump(mode="json")


def group_name(attributes: tuple[str, ...]) -> str:
    """Return how findings call one attribute or an intersection: names joined by " × "."""
    return " × ".join(attributes)


def among(key: str, value: str | None, allowed: list[str]) -> None:
    """Refuse a value that names none of the allowed ones; None names nothing.

    Raises
    ------
    ValueError
        With the key, the value, what is allowed, and the nearest of it.
    """
    if value is not None and value not in allowed:
        raise ValueError(
            f"{key}: given {value!r}. Allowed: {', '.join(allowed)}{nearest(value, allowed)}"
        )


def file_names(models: Mapping[str, Any]) -> None:
    """Refuse names of models that cannot be told apart as names of files.

    Raises
    ------
    ValueError
        Naming the models.
    """
    seen: dict[str, str] = {}
    for name in models:
        if len(quote(name, safe="")) > _MAX_NAME:
            raise ValueError(f"models: the name {name[:40]!r}… is too long; expected a shorter one")
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise ValueError(
                f"models: {other!r} and {name!r} differ in case only; expected distinct names"
            )
