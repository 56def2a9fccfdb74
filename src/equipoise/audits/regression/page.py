"""The page of an audit of regression."""

from equipoise.core import Aggregate, AuditResult
from equipoise.report.blocks import Page, Pairs, image_count


def facts(result: AuditResult) -> Pairs:
    """Return the number of images, and what is predicted."""
    data = result.manifest.resolved.get("data", {})
    return (image_count(result), ("Target", str(data.get("target", ""))))


PAGE = Page(
    leads=(
        ("mean_absolute_error", Aggregate.DIFFERENCE),
        ("mean_error", Aggregate.DIFFERENCE),
        ("share_within_tolerance", Aggregate.DIFFERENCE),
    ),
    by_group=(
        ("mean_absolute_error", Aggregate.DIFFERENCE),
        ("mean_error", Aggregate.DIFFERENCE),
        ("share_within_tolerance", Aggregate.DIFFERENCE),
    ),
    subjects="images",
    look="Look at images of {group} with the largest errors.",
    facts=facts,
)
"""The page of an audit of regression."""
