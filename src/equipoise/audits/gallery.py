"""Pictures behind the leading findings: drawn from each group, small, blurred on request."""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.config import AuditConfig
from equipoise.audits.group_sizes import Members, Row
from equipoise.core import (
    AuditResult,
    Bytes,
    DataError,
    Finding,
    MissingExtraError,
    ModelError,
    Objects,
    record,
    table_of,
)
from equipoise.core.columns import BYTES, TEXT
from equipoise.evidence import Pictures
from equipoise.evidence.examples import CAPTION, NO_ANSWER, WRONG
from equipoise.explain.faces import find_faces
from equipoise.explain.overlays import WHOLE, blurred
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.labels.unanswered import UNANSWERED, counts_unanswered
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import Page
from equipoise.report.result import first_screen
from equipoise.report.words import contrast, headline
from equipoise.stats.streams import stream

MOST_FINDINGS = 4
SIDE, QUALITY = 144, 80
"""Longer side of a picture in pixels, and its quality as a JPEG."""

SEARCHED = 640
"""Longer side of a picture in which faces are searched."""

MARGIN, HITS = 0.2, 3
"""Share by which the box of a face is widened, and hits that make a face: rather too many."""


@record
class GroupExamples:
    """Images of a group that a finding rests on.

    Attributes
    ----------
    captions : mapping of str to str
        By id.
    content : str
        Content of the images: "images that the model gets wrong".
    """

    captions: Mapping[str, str]
    content: str = "images"


def _examples_of(
    images_by_model: Mapping[str, pl.DataFrame],
    ids: Objects,
    finding: Finding,
    members: Collection[str],
) -> GroupExamples:
    """Return the images of a group that a finding rests on.

    Parameters
    ----------
    images_by_model : mapping of str to polars.DataFrame
        Images behind the findings of each model, see `evidence.write_examples`.
    ids : ndarray of str objects, shape (n,)
    finding : Finding
    members : collection of str
        Ids of the group.
    """
    rows = images_by_model.get(finding.model)
    if rows is None:
        return GroupExamples(dict.fromkeys(members, ""))
    if counts_unanswered(finding.metric):
        return _without_answer(rows, ids, spec_of(finding.metric).state, members)
    rows = rows.filter(pl.col("subject").is_not_null())
    all_classes = not (rows["subject"] == finding.subject).any()
    subject_rows = rows if all_classes else rows.filter(pl.col("subject") == finding.subject)
    # Wrong images explain a finding best. Of all classes together, each is there as a miss already.
    wrong_rows = subject_rows.filter(pl.col("outcome").is_in(WRONG[1:] if all_classes else WRONG))
    outcome = subject_rows["outcome"].min()
    rows_shown = (
        wrong_rows if wrong_rows.height else subject_rows.filter(pl.col("outcome") == outcome)
    )
    correct_caption = pl.col("subject") if all_classes else pl.lit("")
    caption = pl.when(pl.col("outcome").is_in(WRONG)).then(CAPTION).otherwise(correct_caption)
    named = zip(
        ids[rows_shown["place"].to_numpy()].tolist(),
        rows_shown.select(caption).to_series(),
        strict=True,
    )
    captions = {name: text or "" for name, text in named if name in members}
    content = (
        f"images that {finding.model} gets wrong"
        if wrong_rows.height
        else f"images with the outcome {str(outcome)!r}"
    )
    return (
        GroupExamples(captions, content) if captions else GroupExamples(dict.fromkeys(members, ""))
    )


def _without_answer(
    rows: pl.DataFrame, ids: Objects, state: str, members: Collection[str]
) -> GroupExamples:
    """Return the images of a group without an answer, or in one state such as "refused"."""
    in_state = pl.lit(value=True)
    if state != UNANSWERED:
        # The label says why there is no answer, where that is known.
        in_state = (pl.col("label") == state).fill_null(value=True)
    unanswered = rows.filter((pl.col("outcome") == NO_ANSWER) & in_state)
    named = ids[unanswered["place"].to_numpy()].tolist()
    captions = {name: "" for name in named if name in members}
    return GroupExamples(captions, "images without an answer")


def pictures_of_findings(
    result: AuditResult,
    page: Page,
    config: AuditConfig,
    pictures: Pictures,
    members: Members,
    examples: Mapping[str, pl.DataFrame],
    ids: Objects,
) -> pa.Table | None:
    """Return the table `gallery`: pictures of the groups that the first statements name.

    Parameters
    ----------
    result : AuditResult
    page : Page
        Of the kind of audit: it says which findings lead.
    config : AuditConfig
        `report.images` is the most of each group, drawn with the seed of the resampling.
    pictures : Pictures
    members : mapping
        Ids of the images of every group.
    examples : mapping of str to polars.DataFrame
        Images behind the findings of each model, see `evidence.write_examples`.
    ids : ndarray of str objects, shape (n,)
        That the places of `examples` stand for.

    Returns
    -------
    pyarrow.Table or None
        `section` (the finding), `group` (with how many images there are, and how some were drawn),
        `caption`, `image` (JPEG) and `image_id`; None without a picture.
    """
    leading = [
        statement.finding
        for statement in first_screen(result, page).statements
        if statement.finding
    ]
    rows = [
        row
        for finding in leading[:MOST_FINDINGS]
        for group in _groups_in_sentence(finding)
        for row in _pictures_of_group(finding, group, config, pictures, members, examples, ids)
    ]
    return (
        table_of(
            rows,
            {"section": TEXT, "group": TEXT, "caption": TEXT, "image": BYTES, "image_id": TEXT},
        )
        if rows
        else None
    )


def _groups_in_sentence(finding: Finding) -> tuple[str, ...]:
    """Return the groups that the sentence of a finding names, the worst first."""
    contrasted = contrast(finding)
    return (contrasted[0].group, contrasted[1].group) if contrasted else ()


def _pictures_of_group(
    finding: Finding,
    group: str,
    config: AuditConfig,
    pictures: Pictures,
    members: Members,
    images_by_model: Mapping[str, pl.DataFrame],
    ids: Objects,
) -> Iterator[Row]:
    groups = members.get(finding.groups, {})
    if group == OTHERS:
        other_groups = (
            ids_of_group for name, ids_of_group in groups.items() if name != finding.group
        )
        member_ids = frozenset[str]().union(*other_groups)
    else:
        member_ids = frozenset(groups.get(group, ()))
    places = pictures.places
    examples = _examples_of(images_by_model, ids, finding, member_ids & places.keys())
    candidates = sorted(examples.captions)
    named = (finding.model, finding.metric, finding.subject, finding.groups, group)
    seed = config.resampling.seed
    order = stream(seed, "pictures", *named).permutation(len(candidates))
    sampled = sorted(candidates[place] for place in order[: config.report.images].tolist())
    images = [(name, small) for name in sampled
             if (small := _read_small(pictures, places[name], config.report.blur))]  # fmt: skip
    n_candidates = f"{len(candidates)} {examples.content}"
    title = f"{group}: {len(images)} of {n_candidates}, drawn at random with seed {seed}"
    if len(candidates) == len(images):
        title = f"{group}: all {n_candidates}"
    for name, image in images:
        yield {
            "section": headline(finding), "group": title, "caption": examples.captions[name],
            "image": image, "image_id": name,
        }  # fmt: skip


def _read_small(
    pictures: Pictures, place: int, blur: Literal["faces", "all"] | None
) -> bytes | None:
    """Return a picture as a small JPEG, or None if it is unreadable."""
    try:
        return small_jpeg(pictures.decoded(place), SIDE, blur)
    except (DataError, OSError):
        return None


Hidden = Literal["faces", "outside", "all"]
"""What of a picture is blurred; "outside": all but its boxes."""


def small_jpeg(
    pixels: Bytes,
    side: int,
    blur: Hidden | None = None,
    boxes: Sequence[Sequence[float]] = (),
) -> bytes:
    """Return a picture as a JPEG without metadata, its longer side at most `side` pixels.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, 3)
    side : int
    blur : "faces", "outside", "all" or None
        What to hide. A picture in which no face is found is hidden whole.
    boxes : sequence of four float each
        Left, top, right and bottom in pixels of what is outlined; a smaller picture is enlarged.
    """
    from PIL import Image, ImageDraw, ImageOps

    picture = Image.fromarray(pixels)
    width, height = picture.size
    picture.thumbnail((max(side, SEARCHED), max(side, SEARCHED)))
    hidden = (
        _find_blurred_boxes(np.asarray(picture)) if blur == "faces" else [WHOLE] if blur else []
    )
    if boxes:
        picture = ImageOps.contain(picture, (side, side))
    picture.thumbnail((side, side))
    clear = np.asarray(picture)
    pixels_shown = blurred(clear, hidden)
    scale = np.tile([picture.width / width, picture.height / height], 2)
    edges = np.rint(np.reshape(boxes, (-1, 4)) * scale).astype(int).clip(0).tolist()
    for left, top, right, bottom in edges if blur == "outside" else ():
        pixels_shown[top:bottom, left:right] = clear[top:bottom, left:right]
    picture = Image.fromarray(pixels_shown)
    pen = ImageDraw.Draw(picture)
    line = max(2, max(picture.size) // 100)
    for left, top, right, bottom in edges:
        # Dark and bright side by side stand out from any picture.
        for colour, line_width in (((0, 0, 0), line + 1), ((255, 214, 10), line)):
            outer = (
                left - line_width,
                top - line_width,
                right + line_width - 1,
                bottom + line_width - 1,
            )
            pen.rectangle(outer, outline=colour, width=line_width)
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=QUALITY)
    return data.getvalue()


def _find_blurred_boxes(pixels: Bytes) -> list[tuple[float, ...]]:
    """Return the boxes to blur as shares of a picture: faces, or the whole picture."""
    try:
        # A weak hit alone may be no face, and a face may be elsewhere.
        if not len(find_faces(pixels)):
            return [WHOLE]
        boxes = find_faces(pixels, hits=HITS).astype(float)
    except (MissingExtraError, ModelError):
        return [WHOLE]
    margin = MARGIN * (boxes[:, 2:] - boxes[:, :2])
    boxes += np.hstack([-margin, margin])
    height, width = pixels.shape[:2]
    return [tuple(box) for box in (boxes / [width, height, width, height]).tolist()]
