"""For the planted scenes: the strength planted for each subject, and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Chart, Section, Table, Words
from equipoise.report.plots import Axis, scatter
from equipoise.report.tables import Row, distinct, panels, rows
from equipoise.report.text import number, p_value


def planted_scenes(result: AuditResult) -> Section | None:
    """Return what was planted for each subject beside the gaps and rankings found."""
    found = rows(result, "planted_scenes")
    if not found:
        return None
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
    charts = [
        _chart(attribute, panel) for (attribute,), panel in panels(found, "attribute").items()
    ]
    blocks: list[Block] = [Words((intro,)), *charts, Words((gap,))]
    over = rows(result, "planted_over_subjects")
    if over:
        blocks += [Words((_OVER,)), _over_subjects(over)]
    blocks.append(_table(found))
    return Section("scenes", "Ground truth by subject", tuple(blocks))


_OVER = (
    "Favourites: mean gap over subjects, tested by permuting the favourites. Rank of gap, of NDKL: "
    "rank correlation with the planted strength. Mean and largest gap: between any two values. "
    "Beyond chance: how far a gap exceeds noise. A trained model has small preferences of its own; "
    "planted ones are larger and follow the favourites."
)


def _over_subjects(found: Sequence[Row]) -> Table:
    columns = [
        "Model", "Attribute", "#Favourites", "#p", "#Rank of gap", "#Rank of NDKL",
        "#Mean gap", "#Largest gap", "#Beyond chance",
    ]  # fmt: skip
    cells = [
        (
            row["model"], row["attribute"], number(row["favourite_gap"]), p_value(row["p_value"]),
            number(row["rank_gap"]), number(row["rank_ndkl"]), number(row["mean_gap"]),
            number(row["largest_gap"]), number(row["largest_excess"]),
        )
        for row in found
    ]  # fmt: skip
    caption = "Over subjects: do preferences follow what was planted in the biased model?"
    return Table.of(caption, columns, cells, source="planted_over_subjects")


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


def _table(found: Sequence[Row]) -> Table:
    columns = ["Subject", "Model", "Attribute", "Favourite", "#Planted", "#Gap", "#NDKL"]
    cells = [
        (
            row["subject"], row["model"], row["attribute"], row["favourite"],
            number(row["strength"]), number(row["gap"]), number(row["ndkl"]),
        )
        for row in found
    ]  # fmt: skip
    caption = "Planted strength and results by subject"
    return Table.of(caption, columns, cells, source="planted_scenes")
