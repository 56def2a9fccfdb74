"""An extraction that is killed at random moments ends as one that never was."""

import signal
from pathlib import Path

import numpy as np
import pytest

from equipoise.evidence import Extraction, extract_embeddings, pictures_in_folder
from killed_work import extract, stopped
from picture_models import write_pictures

N, KILLS, PART = 3000, 20, 32
CLIP = "hf:{}/equipoise/planted/scenes/weights/clip-biased"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "photos"
    write_pictures(folder, N)
    for place in (5, 1000, 2999):
        (folder / f"{place:05d}.png").write_bytes(b"no picture")
    return folder


def killed_often(photos: Path, store: Path, model: str) -> int:
    """Kill at 20 moments, ever later; return how many met the process at work."""
    rng = np.random.default_rng(4)
    targets = [0, *np.sort(rng.integers(1, N, KILLS - 2)).tolist(), N]
    delays = rng.uniform(0, 0.05, KILLS)
    delays[-1] = 0
    codes = [
        stopped(extract, (photos, store, model, PART), target=target, delay=delay)
        for target, delay in zip(targets, delays, strict=True)
    ]
    return codes.count(-signal.SIGKILL)


def check(found: Extraction, whole: Extraction) -> None:
    """Nothing lost, nothing doubled, nothing left behind."""
    assert found.table.equals(whole.table)
    assert found.failures.equals(whole.failures)
    assert found.inputs == whole.inputs
    names = [[path.name for path in one.folder.iterdir()] for one in (found, whole)]
    assert sorted(names[0]) == sorted(names[1])
    for part, same in zip(found.parts, whole.parts, strict=True):
        assert part.read_bytes() == same.read_bytes()


def test_killed_twenty_times_it_ends_as_if_it_never_was(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = pictures_in_folder(photos)
    model = "python:picture_models:slow_means"
    whole = extract_embeddings(pictures, model, tmp_path / "whole", part=PART)
    assert (whole.table.num_rows, whole.failures.num_rows) == (N - 3, 3)
    monkeypatch.setenv("PICTURE_SECONDS", "0.0005")
    store = tmp_path / "store"
    assert killed_often(photos, store, model) >= KILLS - 1
    found = extract_embeddings(pictures, model, store, part=PART)
    # The last kill came after the last image: at most the parts that were at work then are missing.
    assert found.computed <= 2 * PART
    check(found, whole)


@pytest.mark.slow
def test_a_trained_model_killed_twenty_times_gives_the_same_table(
    photos: Path, tmp_path: Path
) -> None:
    import equipoise

    name = CLIP.format(Path(equipoise.__file__).parent.parent)
    pictures = pictures_in_folder(photos)
    whole = extract_embeddings(pictures, name, tmp_path / "whole", part=PART)
    assert killed_often(photos, tmp_path / "store", name) >= KILLS - 1
    found = extract_embeddings(pictures, name, tmp_path / "store", part=PART)
    assert found.computed <= 2 * PART
    check(found, whole)
