"""For the planted scenes: the strength planted for each subject, and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import Chart, Section, Table
from equipoise.report.plots import Axis, scatter
from equipoise.report.tables import Row, distinct, panels, rows
from equipoise.report.text import number


def planted_scenes(result: AuditResult) -> Section:
    """Return what was planted for each subject beside the gaps and rankings found."""
    found = rows(result, "planted_scenes")
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
    every = panels(found, "attribute").items()
    charts = [_chart(attribute, panel) for (attribute,), panel in every]
    models = Table.of(
        "Over subjects: do preferences follow what was planted in the biased model?",
        _MODELS,
        rows(result, "planted_over_subjects"),
        source="planted_over_subjects",
    )
    subjects = Table.of(
        "Planted strength and results by subject", _SUBJECTS, found, source="planted_scenes"
    )
    title = "Ground truth by subject"
    return Section.of("scenes", title, intro, charts, gap, _OVER, models, subjects)


_SUBJECTS = {
    "Subject": "subject", "Model": "model", "Attribute": "attribute", "Favourite": "favourite",
    "#Planted": "strength", "#Gap": "gap", "#NDKL": "ndkl",
}  # fmt: skip
_MODELS = {
    "Model": "model", "Attribute": "attribute", "#Favourites": "favourite_gap", "#p": "p_value",
    "#Rank of gap": "rank_gap", "#Rank of NDKL": "rank_ndkl", "#Mean gap": "mean_gap",
    "#Largest gap": "largest_gap", "#Beyond chance": "largest_excess",
}  # fmt: skip


_OVER = (
    "Favourites: mean gap over subjects, tested by permuting the favourites. Rank of gap, of NDKL: "
    "rank correlation with the planted strength. Mean and largest gap: between any two values. "
    "Beyond chance: how far a gap exceeds noise. A trained model has small preferences of its own; "
    "planted ones are larger and follow the favourites."
)


def _chart(attribute: str, found: Sequence[Row]) -> Chart:
    """Draw a subject's models at one strength: those without ties would all stand at 0."""
    strongest = {
        subject: max(row["strength"] for row in same)
        for (subject,), same in panels(found, "subject").items()
    }
    points = [
        {
            "series": row["model"],
            "x": strongest[row["subject"]],
            "y": row["gap"],
            "tip": f"{row['model']}, {row['subject']}: {row['favourite']} planted at "
            f"{number(row['strength'])}, gap {number(row['gap'])}",
        }
        for row in found
    ]
    label = (
        f"Similarity gap over the strength planted in the biased model, by {attribute}, a mark for "
        "each subject and model."
    )
    axes = Axis("strength planted in the biased model"), Axis("similarity gap (logits)")
    title, models = f"Gap of the favourite {attribute}", distinct(found, "model")
    return scatter(points, label, *axes, title=title, series=models)
