"""The page of an audit of regression."""

from equipoise.core import Aggregate, AuditResult
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.registry import metrics_of
from equipoise.report.blocks import NUMBER, Column, Page, Pairs, TableSection, image_count


def facts(result: AuditResult) -> Pairs:
    """Return the number of images, and the target."""
    data = result.manifest.resolved.get("data", {})
    return (image_count(result), ("Target", str(data.get("target", ""))))


over_target = TableSection(
    name="over_target",
    heading="Errors over the target",
    caption="Errors of each group by true number",
    source="errors_over_target",
    columns=[
        Column("Group", "group"),
        Column("Model", "model"),
        Column("Attributes", "groups"),
        Column("True number", ("least", "most"), NUMBER),
        Column("n", "n", NUMBER),
        Column("Mean absolute error", "mean_absolute_error", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Mean error", "mean_error", NUMBER),
    ],
    text=(
        "Images in four bands of true numbers, of about as many images each. Where groups are "
        "alike within bands, a difference comes from their true numbers."
    ),
)

DIFFERENCES = tuple((name, Aggregate.DIFFERENCE) for name in metrics_of(NumberMetric, "regression"))

PAGE = Page(
    leads=DIFFERENCES,
    by_group=DIFFERENCES,
    subjects="images",
    look="Look at images of {group} with the largest errors.",
    sections=(over_target,),
    facts=facts,
)
