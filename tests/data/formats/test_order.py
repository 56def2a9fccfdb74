"""The order of records in a file changes nothing."""

import tempfile
from pathlib import Path

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
