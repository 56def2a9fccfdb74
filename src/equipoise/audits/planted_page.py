"""The section that holds audits of planted scenes against the ground truth."""

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.planted.scenes.variants import BIASED
from equipoise.report.blocks import (
    Chart,
    Column,
    Format,
    Row,
    Section,
    Table,
    distinct,
    panels,
    rows,
)
from equipoise.report.plots import Axis, scatter
from equipoise.report.text import number


def planted_scenes(result: AuditResult) -> Section:
    """Return the planted strength of each subject with its gaps and rankings."""
    scene_rows = rows(result, "planted_scenes")
    intro = (
        "Captions tied each subject to a favourite hue and frame on purpose. The truth is known: "
        "the stronger the tie, the more the neutral prompt of a subject should prefer its "
        "favourite. The null model was trained without ties."
    )
    gap = (
        "Gap: mean logit of the neutral prompt over a subject's images with the favourite, minus "
        "the others, in sets that differ in hue and frame alone. Marks of the null model stand at "
        "their subject's strength in the biased model."
    )
    attribute_panels = panels(scene_rows, "attribute").items()
    charts = [_chart(attribute, panel) for (attribute,), panel in attribute_panels]
    columns = [
        Column("Subject", "subject"),
        Column("Model", "model"),
        Column("Attribute", "attribute"),
        Column("Favourite", "favourite"),
        Column("Planted", "strength", Format.NUMBER),
        Column("Gap", "gap", Format.NUMBER),
        Column("NDKL", "ndkl", Format.NUMBER),
    ]
    caption = "Planted strength and results by subject"
    subjects = Table.of(caption, columns, scene_rows, source="planted_scenes")
    return Section.of("scenes", "Ground truth by subject", intro, charts, gap, subjects)


def _chart(attribute: str, scene_rows: Sequence[Row]) -> Chart:
    """Draw both models of a subject at the strength of the biased model."""
    planted = {row["subject"]: row["strength"] for row in scene_rows if row["model"] == BIASED.name}
    points = [
        {
            "series": row["model"],
            "x": planted[row["subject"]],
            "y": row["gap"],
            "tip": f"{row['model']}, {row['subject']}: {row['favourite']} planted at "
            f"{number(row['strength'])}, gap {number(row['gap'])}",
        }
        for row in scene_rows
    ]
    label = (
        f"Similarity gap over the strength planted in the biased model, by {attribute}, a mark for "
        "each subject and model."
    )
    axes = Axis("strength planted in the biased model"), Axis("similarity gap (logits)")
    title, models = f"Gap of the favourite {attribute}", distinct(scene_rows, "model")
    return scatter(points, label, *axes, title=title, series=models)
