"""Sets of the planted pipeline, by its name: the whole way from captions to pictures."""

from pathlib import Path

import numpy as np
import pytest

from equipoise.counterfactuals import Generated, caption_sets, generate_sets
from equipoise.evidence import decode
from equipoise.models import Sampling
from equipoise.planted.scenes.render import HUES, SUBJECTS

NAME = "python:equipoise.planted.scenes.diffusion:load_generator"
SETS = 2
CAPTIONS = caption_sets(
    SUBJECTS[:SETS], {"hue": HUES}, prefixes=["a"], template="{prefix} {attributes} {subject}"
)
SAMPLING = Sampling(steps=20, guidance=3.0)


def made(store: Path, share: float) -> Generated:
    how = {"candidates": 1, "shared": (share, share), "shared_self": share}
    return generate_sets(CAPTIONS, NAME, store, sampling=SAMPLING, **how)


def images(found: Generated) -> np.ndarray:
    """Shape (sets, hues, height, width, 3)."""
    places = {name: place for place, name in enumerate(found.pictures.ids)}
    rows = [decode(found.pictures.read(places[one.as_py()])) for one in found.table["image_id"]]
    return np.stack(rows).reshape(SETS, len(HUES), 32, 32, 3)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[Generated]:
    store = tmp_path_factory.mktemp("planted")
    return [made(store, 0.0), made(store, 0.8)]


def test_the_base_is_as_the_model_makes_it_alone(both: list[Generated]) -> None:
    alone, shared = (images(one).reshape(-1, 32, 32, 3) for one in both)
    rows = both[1].table.to_pylist()
    bases = [place for place, row in enumerate(rows) if row["caption_id"] == row["base"]]
    assert len(bases) == SETS
    moved = np.abs(alone.astype(int) - shared).max(axis=(1, 2, 3))
    assert moved[bases].max() <= 1
    assert np.delete(moved, bases).min() > 1
    assert both[0].table["seed"].equals(both[1].table["seed"])
