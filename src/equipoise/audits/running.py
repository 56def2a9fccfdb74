"""Running an audit: open, plan, measure, conclude."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.adjusting import adjust
from equipoise.audits.config import AuditConfig
from equipoise.audits.explaining import Explanation, explain
from equipoise.audits.findings import conclude
from equipoise.audits.gallery import pictures_of_findings
from equipoise.audits.group_sizes import FAILURES, Row
from equipoise.audits.group_sources import notes_on_sources, read_sources
from equipoise.audits.manifest import Account, account_of, budgets_named, manifest_of_run
from equipoise.audits.measuring import checked_designs, measure_designs
from equipoise.audits.notes import merged
from equipoise.audits.opening import AnyInputs, Inputs, prepare
from equipoise.audits.outputs import IMAGES
from equipoise.audits.pages import kind_page
from equipoise.audits.plugins import plugin_versions
from equipoise.audits.predicted_groups import correct
from equipoise.audits.runs import AuditOrigin
from equipoise.core import DataError, Finding, Progress
from equipoise.core.conclusion import Conclusion
from equipoise.report.choice_effects import conclusions_of_choices, with_effects
from equipoise.report.concluding import conclusions_of
from equipoise.report.ranking_models import rank_models
from equipoise.report.result import Result
from equipoise.report.selecting import Selector
from equipoise.studies.claims import with_claims


def run(
    config: AuditConfig | AnyInputs,
    *,
    base: Path = Path(),
    progress: Progress | None = None,
) -> Result:
    """Run an audit.

    Parameters
    ----------
    config : AuditConfig or Inputs
        A config, or what `prepare` returned.
    base : Path
        Relative paths are relative to this folder.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Result
        The same findings, byte for byte, for the same data and config.

    Raises
    ------
    DataError
        If a file can't be used, or nothing is left to compare.

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
    >>> audits.run(config).plot()
    <Plot: True positive rate by gender, 4 values>
    """
    started = perf_counter()
    inputs = config if isinstance(config, Inputs) else prepare(config, base=base, progress=progress)
    settings, audit, data = inputs.config, inputs.audit, inputs.data
    with budgets_named(inputs):
        designs, left_out = checked_designs(audit, settings, data)
    sources = read_sources(settings, inputs.models.base)
    as_predicted, not_measured = measure_designs(audit, settings, data, designs, progress)
    sizes = [*audit.sizes(settings, data)]
    measured = correct(settings, sources, as_predicted, sizes)
    findings = conclude(measured.findings, settings.testing)
    written = audit.write(settings, data)
    account = account_of(inputs)
    manifest = manifest_of_run(
        inputs, designs, account, refused=(*left_out, *not_measured),
        measured=(
            *measured.notes, *notes_on_sources(settings, sources), *written,
            *_lost_pictures(inputs),
        ),
        base=base, seconds=perf_counter() - started,
    )  # fmt: skip
    tables = {**measured.tables, **_shared_tables(sizes, account)}
    page = kind_page(settings.audit, settings.study)
    harms = [draft.harm for draft in measured.findings]
    # These count again, by the groups that were predicted.
    explanation = (
        Explanation((), ()) if sources
        else explain(audit, settings, data, designs, findings, harms)
    )  # fmt: skip
    plugins = plugin_versions(manifest.resolved, {finding.metric for finding in findings})
    manifest = replace(
        manifest,
        notes=merged([*manifest.notes, *explanation.notes]),
        versions={**manifest.versions, **plugins},
    )
    adjustments = {} if sources else adjust(audit, settings, designs, findings)
    leads = page.leads if page else ()
    about_groups = conclusions_of(
        findings, leads, explanation.causes, adjustments, settings.testing.alpha
    )
    conclusions = (
        *conclusions_of_choices(tables, findings),
        *(() if sources else _ranking(inputs, findings, leads)),
        *with_effects(about_groups, tables, findings),
    )
    result = Result(findings, manifest, tables, conclusions, page)
    return replace(_with_gallery(with_claims(result), inputs), origin=AuditOrigin(inputs))


def _ranking(
    inputs: AnyInputs, findings: Sequence[Finding], leads: Sequence[Selector]
) -> Iterator[Conclusion]:
    """Yield the conclusion that ranks the models of a run, where they can be compared."""
    config = inputs.config
    n_models = len({finding.model for finding in findings if finding.model})
    # The best and the worst are the widest of all pairs.
    level = 1 - (1 - config.resampling.level) / max(math.comb(n_models, 2), 1)
    resampling = config.resampling.model_copy(update={"level": level})
    paired = config.model_copy(update={"resampling": resampling})

    def contrast(best: Finding, worst: Finding) -> Finding | None:
        return inputs.audit.contrast(paired, inputs.data, findings, (best, worst))

    ranking = rank_models(findings, leads, contrast)
    if ranking is not None:
        yield ranking


def _shared_tables(sizes: Sequence[Row], account: Account) -> dict[str, pa.Table]:
    """Return the tables that every kind has: sizes of groups, and failures of models."""
    tables = dict[str, pa.Table]()
    if sizes:
        tables["group_sizes"] = group_sizes.table(sizes)
    if account.failures:
        tables["failures"] = pa.Table.from_pylist(account.failures, FAILURES)
    return tables


def _with_gallery(result: Result, inputs: AnyInputs) -> Result:
    """Add pictures of the leading findings where there are some, and the kind has none of its own.

    Numbers never depend on it: pictures that are gone leave the report without them.
    """
    image_set, config = inputs.models.sets.get(IMAGES), inputs.config
    if image_set is None or not config.report.images or {"gallery"} & {*result.tables}:
        return result
    try:
        pictures = image_set.pictures
    except DataError:
        return result
    if pictures is None or result.page is None:
        return result
    members = inputs.audit.members(config, inputs.data, IMAGES)
    examples, ids = inputs.examples, inputs.data.ids
    gallery = pictures_of_findings(result, result.page, config, pictures, members, examples, ids)
    if gallery is None:
        return result
    return replace(result, tables={**result.tables, "gallery": gallery})


def _lost_pictures(inputs: AnyInputs) -> Iterator[str]:
    """Say that pictures aren't where the config says."""
    image_set = inputs.models.sets.get(IMAGES)
    try:
        _ = None if image_set is None else image_set.pictures
    except DataError as error:
        yield f"The report has no pictures, and `equipoise review` can show none: {error}"
