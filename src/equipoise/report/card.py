"""A run as a section of a model card."""

from equipoise.core import Manifest
from equipoise.core.views import as_markdown
from equipoise.report.blocks import Statement
from equipoise.report.result import Result, first_screen
from equipoise.report.text import listed


def card(result: Result) -> str:
    """Return a run as a section of a model card, in the Markdown of the Hugging Face Hub.

    Parameters
    ----------
    result : Result

    Returns
    -------
    str
        What the report says first, the results by group, how they were measured, and what to know
        before using them.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> print(report.card(result).splitlines()[0])
    ## Bias evaluation
    """
    manifest, summary = result.manifest, first_screen(result, result.shown_page)
    table = result.table()
    notes = dict.fromkeys((*manifest.warnings, *manifest.notes))
    lines = [
        "## Bias evaluation",
        "",
        *map(_list_item, summary.statements),
        "",
        f"{as_markdown(table.caption)}",
        "",
        table.to_markdown(),
        f"Measured with equipoise {manifest.versions.get('equipoise', '')} on "
        f"{manifest.started[:10]}, seed {manifest.seed}; data: "
        f"{as_markdown(listed([*manifest.inputs]))}. Intervals have 95 % confidence."
        f"{_correction(manifest)}",
        "",
        "### Limitations",
        "",
        *(f"- {as_markdown(text)}" for text in notes),
    ]
    return "\n".join(lines) + "\n"


def _list_item(statement: Statement) -> str:
    text = as_markdown(f"{statement.text} {statement.certainty}".strip())
    if statement.badge:
        text = f"**{statement.badge.word}.** {text}"
    return f"- {text}"


def _correction(manifest: Manifest) -> str:
    """Say how tests are corrected for their number; nothing without a level."""
    testing = manifest.resolved.get("testing")
    if not isinstance(testing, dict) or not testing.get("alpha"):
        return ""
    return f" Tests are corrected for their number (false discoveries ≤ {testing['alpha']})."
