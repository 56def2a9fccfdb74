"""A run as a section of a model card."""

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
    testing, table = manifest.resolved.get("testing"), result.table()
    alpha = testing.get("alpha") if isinstance(testing, dict) else None
    corrected = f" Tests are corrected for their number (false discoveries ≤ {alpha})." * bool(
        alpha
    )
    notes = dict.fromkeys((*manifest.warnings, *manifest.notes))
    statements = [
        f"- {_verdict(statement)}{as_markdown(statement.text)}" for statement in summary.statements
    ]
    lines = [
        "## Bias evaluation",
        "",
        *statements,
        "",
        f"{as_markdown(table.caption)}",
        "",
        table.to_markdown(),
        f"Measured with equipoise {manifest.versions.get('equipoise', '')} on "
        f"{manifest.started[:10]}, seed {manifest.seed}; data: "
        f"{as_markdown(listed([*manifest.inputs]))}. Intervals have 95 % confidence.{corrected}",
        "",
        "### Limitations",
        "",
        *(f"- {as_markdown(text)}" for text in notes),
    ]
    return "\n".join(lines) + "\n"


def _verdict(statement: Statement) -> str:
    return f"**{statement.badge.word}.** " if statement.badge else ""
