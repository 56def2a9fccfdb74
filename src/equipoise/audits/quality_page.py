"""The section on the quality of images."""

from equipoise.core import AuditResult
from equipoise.metrics.spec import SPECS
from equipoise.report.blocks import NUMBER, Column, Section, Table, title_of

_MEASURES = [name for name, spec in SPECS.items() if {"generation", "diversity"} <= {*spec.kinds}]


def quality(result: AuditResult) -> Section | None:
    """Return the distance from the reference images, and the inception score."""
    measured = [vars(finding) for finding in result.findings if finding.metric in _MEASURES]
    models = len({row["model"] for row in measured})
    columns = [
        Column("Measure", title_of),
        Column("Of", "subject"),
        Column("Value", "value", NUMBER),
        Column("Spread", ("ci_low", "ci_high"), NUMBER),
        Column("By chance", "chance", NUMBER),
        Column("Images", "n", NUMBER),
        Column("Method", "method"),
        *([Column("Model", "model")] if models > 1 else []),
    ]
    text = (
        "Both depend on the model and are biased where images are few. By chance: the distance of "
        "as many images of the reference, at most half of them, from its others. The score has no "
        "chance level: compare sets of the same size."
    )
    table = Table.of("Distance from the reference, and inception score", columns, measured)
    return Section.of("quality", "Quality of the images", text, table) if measured else None
