"""What reading a mapped file takes is given back, and nothing that could be lost."""

from pathlib import Path

import numpy as np
import pytest

from equipoise.core import mapped
from equipoise.core.mapped import Mapped
from equipoise.metrics.chosen_rows import ChosenRows

ROWS, NUMBERS = 20_000, 256


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(ROWS * NUMBERS, dtype=np.float32).reshape(ROWS, NUMBERS))
    return path


def resident(path: Path) -> int:
    """Return the bytes of a file that are memory of this process, as Linux tells."""
    smaps = Path("/proc/self/smaps")
    lines = smaps.read_text().splitlines() if smaps.exists() else []
    found, inside = 0, False
    for line in lines:
        first = line.split(maxsplit=1)[0]
        inside = line.endswith(str(path)) if "-" in first else inside
        found += int(line.split()[1]) * 1024 if inside and first == "Rss:" else 0
    return found


def test_memory_is_given_back_and_read_again(file: Path) -> None:
    array = np.load(file, mmap_mode="r")
    held = Mapped(array[10:])
    total = array.sum(dtype=np.float64)
    before = resident(file)
    held.give_back()
    assert resident(file) <= before // 100
    assert array.sum(dtype=np.float64) == total == (ROWS * NUMBERS) * (ROWS * NUMBERS - 1) / 2


@pytest.mark.parametrize("scattered", [False, True])
def test_chosen_rows_of_a_mapped_file_stay_small(
    file: Path, scattered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_KEPT", 1 << 21)
    array = np.load(file, mmap_mode="r")
    rows = np.random.default_rng(0).permutation(ROWS) if scattered else np.arange(ROWS)
    chosen, most = ChosenRows(array, rows), 0
    for start in range(0, ROWS, 500):
        part = np.array(chosen[start : start + 500])
        assert (part[:, 0] == rows[start : start + 500] * NUMBERS).all()
        most = max(most, resident(file))
    # The file has 20 MB.
    assert most < 8e6


def test_numbers_that_were_changed_in_memory_stay(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_KEPT", 0)
    array = np.load(file, mmap_mode="c")
    array[5] = -1.0
    chosen = ChosenRows(array, np.arange(ROWS))
    for _ in range(3):
        assert (chosen[5:6] == -1.0).all()


@pytest.mark.parametrize("array", [np.zeros((3, 2)), np.zeros((0, 2))])
def test_arrays_in_memory_are_left_alone(array: np.ndarray) -> None:
    held = Mapped(array)
    held.rows(np.arange(len(array)))
    held.run(len(array))
    held.give_back()
    assert (array == 0).all()
