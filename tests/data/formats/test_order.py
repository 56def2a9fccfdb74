"""The order of records in a file changes nothing."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data import Boxes, Captions, ImageSet, Pairs, provenance
from image_files import FORMATS, Format


def content(images: ImageSet) -> dict[str, object]:
    """All that a set holds, but for the digests of its files."""
    found: dict[str, object] = {
        "ids": images.ids.tolist(),
        "columns": {n: c.values.tolist() for n, c in images.columns.items()},
        "provenance": provenance(images) | {"inputs": None},
    }
    for part in (images.labels, images.captions, images.boxes):
        found |= {} if part is None else {type(part).__name__: listed(part)}
    return found


def listed(part: Pairs | Captions | Boxes) -> list[object]:
    rows: list[object] = [part.image.tolist()]
    rows += [part.texts.tolist()] if isinstance(part, Captions) else [part.label.values.tolist()]
    return rows + ([part.corners.tolist()] if isinstance(part, Boxes) else [])


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_order_changes_nothing(one: Format, seed: int) -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        plain, mixed = one.read(Path(first), None), one.read(Path(second), seed)
    assert content(plain) == content(mixed)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_part_of_the_images_keeps_what_is_theirs(one: Format, tmp_path: Path) -> None:
    images = one.read(tmp_path, None)
    kept = np.arange(len(images)) % 2 == 0
    step = images.steps[0] if images.steps else None
    part = images.take(kept, step)  # type: ignore[arg-type]
    assert part.ids.tolist() == images.ids[kept].tolist()
    assert part.image_table().equals(images.image_table().filter(kept))
    if images.labels is not None:
        whole = images.label_table()
        mine = whole.filter(whole["image_id"].is_in(part.ids.tolist()))
        assert part.label_table().equals(mine)
