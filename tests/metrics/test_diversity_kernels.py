"""Kernels of diversity: against plain formulas, for every type of number, whatever the threads."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.metrics.diversity import exchange, sums
from equipoise.metrics.diversity.exchange import exchanged
from equipoise.metrics.diversity.iss import iss_cross, iss_intra
from equipoise.metrics.diversity.sums import UnitSums, projections
from equipoise.metrics.unit_rows import inverse_lengths, project
from equipoise.stats.resampling import Permutation
from equipoise.stats.shuffling import keys, shuffle


def cloud(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) + 0.1


def unit(rows: np.ndarray) -> np.ndarray:
    double = rows.astype(np.float64)
    return np.asarray(double / np.linalg.norm(double, axis=1, keepdims=True))


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small sets into many spans and blocks."""
    monkeypatch.setattr(sums, "_CHUNK", 2000)
    monkeypatch.setattr(sums, "_BLOCK", 700)


@pytest.mark.parametrize("d", [1, 5, 63, 64, 65, 200])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_lengths_and_projections_are_those_of_numpy(d: int, kind: str) -> None:
    rows, directions = cloud(d, 20, d).astype(kind), cloud(1, 3, d)
    scale, found = np.empty(20), np.empty((20, 3))
    assert inverse_lengths(rows, scale)
    assert scale == pytest.approx(1 / np.linalg.norm(rows.astype(np.float64), axis=1), rel=1e-14)
    project(rows, scale, directions, found)
    assert found == pytest.approx(unit(rows) @ directions.T, abs=1e-13)


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", ">f4", "int64", "uint8", "longdouble"]
)
def test_sums_are_those_of_numpy_for_every_type(kind: str) -> None:
    rows = (100 * np.abs(cloud(3, 150, 70))).astype(kind)
    found = UnitSums.of(rows)
    assert found.total == pytest.approx(unit(rows).sum(axis=0), rel=1e-13)
    assert (found.count, found.zeros) == (150, 0)
    assert (UnitSums.of(rows.astype(np.float64)).total == found.total).all()
    assert projections(rows, found.mean) == pytest.approx(unit(rows) @ found.mean, abs=1e-13)


@pytest.mark.usefixtures("small_spans")
def test_arrays_laid_out_in_other_ways_give_the_same_bytes(tmp_path: Path) -> None:
    rows = cloud(4, 150, 70).astype(np.float32)
    expected = UnitSums.of(rows).total.tobytes()
    strided = np.repeat(rows, 2, axis=1)[:, ::2]
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    packed = np.frombuffer(b"x" + rows.tobytes(), dtype=np.uint8)[1:].view("f4").reshape(150, 70)
    for other in (np.asfortranarray(rows), strided, mapped, packed):
        assert UnitSums.of(other).total.tobytes() == expected


@pytest.mark.usefixtures("small_spans")
def test_extreme_rows_leave_the_sums_of_the_others_as_they_are() -> None:
    rows = cloud(5, 30, 8)
    scaled = rows * np.ldexp(1.0, np.resize([0, 700, 0, -900], 30))[:, None]
    assert (UnitSums.of(scaled).total == UnitSums.of(rows).total).all()
    # Their squares sum to exactly 0, and they still have a direction.
    tiny = np.full((2, 4), 1e-200)
    assert UnitSums.of(tiny).count == 2
    assert iss_intra(tiny).value == pytest.approx(0.0, abs=1e-15)


@pytest.mark.usefixtures("small_spans")
def test_results_have_the_same_bytes_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [cloud(i, 100 + i, 70).astype(np.float32) for i in range(3)]
    found = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv("EQUIPOISE_THREADS", count)
        cross, intra = iss_cross(sets, resampling=Permutation(200)), iss_intra(sets[0])
        assert cross.chance is not None
        low, high = cross.interval().low, cross.interval().high
        numbers = [cross.value, low, high, cross.chance.low, cross.chance.high, cross.p_value]
        found.append([*numbers, intra.value, intra.interval().low])
    assert found[0] == found[1] == found[2]


def labels_of(counts: list[int], many: int, seed: int) -> np.ndarray:
    labels = np.tile(np.repeat(np.arange(len(counts), dtype=np.uint32), counts), (many, 1))
    shuffle(keys(seed, "exchange", many=many), labels)
    return labels


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize("d", [5, 64, 70])
def test_exchanges_are_those_of_the_labels(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [cloud(i, n, d) for i, n in enumerate((30, 75, 12))]
    sets[1][[0, 40, 74]] = 0.0
    counts = [30, 72, 12]
    rows = unit(np.concatenate(sets)[np.concatenate(sets).any(axis=1)])
    expected = []
    for line in labels_of(counts, 10, 7):
        means = np.stack([rows[line == one].mean(axis=0) for one in range(3)])
        cosines = means @ means.T
        expected.append(1 - (cosines[0, 1] + cosines[0, 2] + cosines[1, 2]) / 3)
    found = exchanged(sets, counts, 10, 7)
    assert found == pytest.approx(expected, abs=1e-13)
    monkeypatch.setattr(exchange, "_TOGETHER", 3)
    assert (exchanged(sets, counts, 10, 7) == found).all()
    assert (exchanged(sets, counts, 4, 7) == found[:4]).all()
    monkeypatch.setattr(exchange, "_FEW", 2)  # Labels of 16 bits.
    assert (exchanged(sets, counts, 10, 7) == found).all()


def test_memory_does_not_grow_with_the_images(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    rows = np.lib.format.open_memmap(file, mode="w+", dtype=np.float16, shape=(40_000, 128))
    rows[:] = cloud(0, 1000, 128).astype(np.float16).repeat(40, axis=0)
    rows.flush()
    mapped = np.load(file, mmap_mode="r")
    iss_intra(mapped[:10])
    tracemalloc.start()
    iss_intra(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # As float64 the rows would take 41 MB.
    assert peak < 10e6


def test_more_sets_than_labels_tell_apart_are_refused() -> None:
    with pytest.raises(InputError, match="^sets: 65537; expected at most 65,536 that exchange"):
        exchanged([np.ones((1, 2))] * 65537, [1] * 65537, 1, 0)
