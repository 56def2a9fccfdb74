"""Detections in the form of COCO, beside the annotations: boxes that were found and missed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from equipoise.core import Fields
from equipoise.data.files import parse_json
from equipoise.data.results import Files, ResultFile, ResultsReader, Sample, as_text

LEAST_OVERLAP = 0.5
"""Intersection over union from which on a detection finds a box."""
_BOX = {"id", "image_id", "category_id", "bbox", "segmentation", "area", "iscrowd", "keypoints",
        "num_keypoints"}  # fmt: skip
_Place: TypeAlias = tuple[str, str]
"""An image and a category."""


def read(files: Files) -> Iterator[Sample]:
    """Yield a sample for each annotated box and file of detections; crowds are no boxes."""
    values = [(file, _parsed(file)) for file in files]
    truths = [(file, value) for file, value in values if isinstance(value, dict)]
    detections = [(file, value) for file, value in values if isinstance(value, list)]
    if len(truths) != 1 or not detections:
        problem = (
            f"there are {len(truths)} files of annotations and {len(detections)} of detections"
        )
        raise READER.error(problem, files[0].path.parent)
    ((_, truth),) = truths
    names = {str(row["id"]): str(row["name"]) for row in truth["categories"]}
    boxes = [row for row in truth["annotations"] if not row.get("iscrowd")]
    for file, rows in detections:
        scores = _found(boxes, rows)
        for box in boxes:
            yield _sample(box, names, scores.get(str(box["id"])), file.path.stem)


def _parsed(file: ResultFile) -> Any:
    try:
        return parse_json(file.text)
    except ValueError as error:
        raise READER.error(f"it is no JSON ({error})", file.path) from None


def _sample(
    box: Fields, names: Mapping[str, str], score: float | None, model: str
) -> Sample:  # fmt: skip
    return Sample(
        id=str(box["id"]),
        answer="missed" if score is None else "found",
        target=names[str(box["category_id"])],
        correct=score is not None,
        score=score,
        model=model,
        metadata={"image": as_text(box["image_id"])}
        | {name: value for name, value in box.items() if name not in _BOX},
    )


def _found(boxes: Sequence[Fields], detections: Sequence[Fields]) -> dict[str, float]:
    """Return the score of the detection that finds each box, by its id.

    Detections take boxes in the order of their scores, each the box with the largest overlap that
    is left.
    """
    by_place: dict[_Place, list[Fields]] = defaultdict(list)
    for box in boxes:
        by_place[_place(box)].append(box)
    scores: dict[str, float] = {}
    for row in sorted(detections, key=lambda row: -float(row["score"])):
        candidates = [
            (overlap(box["bbox"], row["bbox"]), -place, box)
            for place, box in enumerate(by_place[_place(row)])
            if str(box["id"]) not in scores
        ]
        if candidates:
            size, _, box = max(candidates, key=lambda candidate: candidate[:2])
            if size >= LEAST_OVERLAP:
                scores[str(box["id"])] = float(row["score"])
    return scores


def _place(row: Fields) -> _Place:
    return str(row["image_id"]), str(row["category_id"])


def overlap(box: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection over union of two boxes: left, top, width and height.

    Examples
    --------
    >>> overlap([0, 0, 2, 2], [1, 0, 2, 2])
    0.3333333333333333
    """
    sides = [
        max(0.0, min(box[axis] + box[axis + 2], other[axis] + other[axis + 2])
            - max(box[axis], other[axis]))
        for axis in (0, 1)
    ]  # fmt: skip
    shared = sides[0] * sides[1]
    union = box[2] * box[3] + other[2] * other[3] - shared
    return shared / union if union > 0 else 0.0


READER = ResultsReader(
    "detectors in the form of COCO",
    "a folder with a .json of annotations, and one of detections for each model",
    r".*\.json",
    read,
    mark="(?!)",
)
