"""The page of an audit of activations."""

from equipoise.core import Aggregate, AuditResult
from equipoise.report.blocks import NUMBER, P_VALUE, Column, Page, Pairs, TableSection
from equipoise.report.text import count


def facts(result: AuditResult) -> Pairs:
    """Return how many images there are, and how maps were made."""
    data = result.manifest.resolved.get("data", {})
    n = max((finding.n for finding in result.findings), default=0)
    unit = data.get("unit")
    return (
        ("Images with a region and a map", count(n)),
        ("Resampled together", f"images of one {unit}" if unit else ""),
    )


shares = TableSection(
    name="shares",
    heading="Share of the maps inside each region",
    caption="Share of maps inside regions",
    source="activation_shares",
    columns=[
        Column("Group", "group"),
        Column("Model", "model"),
        Column("Attributes", "groups"),
        Column("Region", "region"),
        Column("n", "n", NUMBER),
        Column("Share", "share", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Area", "area", NUMBER),
        Column("By chance", ("chance_low", "chance_high"), NUMBER),
    ],
    text=(
        "Area is the share of the image that the region covers. A map without a preference has "
        "this share of its weight there. By chance: the range of 95 of 100 shares when maps are "
        "exchanged between images, as for a model that always looks at the same place. The model "
        "looks at the region if the share is above both."
    ),
)


questions = TableSection(
    name="questions",
    heading="Which person each prompt points to",
    caption="Share of the map on the first person less that on the second",
    source="questions",
    columns=[
        Column("Prompt", "prompt"),
        Column("Model", "model"),
        Column("Group", "group"),
        Column("n", "n", NUMBER),
        Column("Difference", "difference", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("p", "p_value", P_VALUE),
        Column("When hidden", "fall", NUMBER),
        Column("Agree", "agree", NUMBER),
    ],
    text=(
        "Above 0 more of the map is on the first person. Controls are subtracted. When hidden: "
        "how much more the model's score falls when the first person is hidden than when the "
        "second is. Agree: share of images in which map and hiding point to the same person."
    ),
)


LEADS = ("paired_share_difference", ("activation_share", Aggregate.DIFFERENCE))
PAGE = Page(
    leads=LEADS,
    by_group=LEADS[::-1],
    subjects="regions",
    look="Look at maps of {group}, and check the boxes of the regions.",
    steps=("Train on changed images (“equipoise augment”), or choose another model.",),
    sections=(shares, questions),
    facts=facts,
)
