"""The first step of an audit: its models run, its data loaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic

import polars as pl

from equipoise.audits.config import AuditConfig, runs_models
from equipoise.audits.kind import AnyAudit, ConfigT, DataT, audit_of
from equipoise.audits.measuring import checked_designs
from equipoise.audits.outputs import DryRun, Models
from equipoise.core import Progress, record
from equipoise.evidence import with_every_column


@record
class Inputs(Generic[ConfigT, DataT]):
    """A config with its data loaded and its models run.

    Attributes
    ----------
    config : AuditConfig
    data : object
        The kind's own type.
    models : Models
        What was read and run on the way.
    """

    config: ConfigT
    data: DataT
    models: Models

    @property
    def audit(self) -> AnyAudit:
        """The kind of audit."""
        return audit_of(self.config.audit)

    @cached_property
    def examples(self) -> Mapping[str, pl.DataFrame]:
        """The images behind the findings of each model, with every column."""
        images_by_model = self.audit.examples(self.config, self.data)
        return {model: with_every_column(rows) for model, rows in images_by_model.items()}


AnyInputs = Inputs[Any, Any]
"""Of any kind of audit."""


def prepare(
    config: AuditConfig, *, base: Path = Path(), progress: Progress | None = None
) -> AnyInputs:
    """Run the models that a config names, and load its data.

    Model outputs are kept in the store (`extraction.store`) and read from there. If images are
    left to do, every model is opened and the audit planned first, so that an audit that can't work
    is refused before a model runs.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        Relative paths are relative to this folder.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Inputs
        For `run`, in place of the config.

    Raises
    ------
    ConfigError
        If a model can't do what the audit needs.
    DataError
        If a file or images can't be used, or more than `extraction.max_failures` fail.
    ModelError
        If a model can't be loaded or run.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> audits.run(audits.prepare(config)).plot()
    <Plot: True positive rate by gender, 4 values>
    """
    live = Models(config, base, progress)
    audit = audit_of(config.audit)
    if runs_models(config):
        dry = DryRun(config, base, live)
        data = audit.load(config, dry)
        if any(outputs.pending and outputs.pending["to_do"] for outputs in dry.outputs):
            checked_designs(audit, config, data)
    return Inputs(config, audit.load(config, live), live)
