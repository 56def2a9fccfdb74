"""Compiled kernels: on first use, kept in the user's cache, with a word where it takes long."""

import logging
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.stats import compiled as module
from equipoise.stats.compiled import cache_folder, compiled
from equipoise.stats.threads import each, threads


@compiled("float64(float64[::1])")
def total(values: np.ndarray) -> float:
    found = 0.0
    for value in values:
        found += value
    return found


@compiled("float64(float64[::1])")
def largest(values: np.ndarray) -> float:
    found = -np.inf
    for value in values:
        found = max(found, value)
    return found


def test_a_kernel_gives_what_the_function_gives() -> None:
    assert total(np.array([1.5, 2.25, -0.5])) == 3.25
    assert total.__name__ == "total"


@compiled()
def _half(value: float) -> float:
    return value / 2.0


@compiled("float64(float64[::1])")
def halves(values: np.ndarray) -> float:
    found = 0.0
    for value in values:
        found += _half(value)
    return found


def test_a_kernel_calls_others_of_its_file() -> None:
    assert halves(np.array([1.0, 2.5])) == 1.75


def test_kernels_are_kept_in_the_folder_that_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert largest(np.array([1.0, 3.0, 2.0])) == 3.0
    assert [path.suffix for path in sorted(tmp_path.rglob("*largest*"))] == [".nbc", ".nbi"]


def test_a_folder_that_cannot_be_written_compiles_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked / "below"))

    @compiled("int64(int64)")
    def twice(value: int) -> int:
        return 2 * value

    assert twice(21) == 42


def test_a_long_compilation_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)

    def slowly(function: object, signatures: object) -> object:
        time.sleep(0.5)
        return lambda value: value

    monkeypatch.setattr(module, "_cached", slowly)
    module._tell.cache_clear()
    with caplog.at_level(logging.WARNING, "equipoise"):
        assert compiled("int64(int64)")(lambda value: value)(3) == 3
        assert compiled("int64(int64)")(lambda value: value)(4) == 4
    assert caplog.messages == [
        f"compiling numeric kernels, some seconds, once on this machine (kept in {cache_folder()})"
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="the folders of Unix")
def test_the_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "equipoise" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "equipoise" / "kernels"


@pytest.mark.parametrize("count", ["1", "3"])
def test_results_come_in_the_order_of_the_items(
    count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_THREADS", count)

    def slow_for_small(item: int) -> int:
        time.sleep((5 - item) / 200)
        return item * item

    assert each(slow_for_small, range(5)) == [0, 1, 4, 9, 16]
    assert threads() == int(count)


@pytest.mark.parametrize("given", ["0", "two", "-1", "1.5"])
def test_a_count_of_threads_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_THREADS", given)
    with pytest.raises(
        InputError,
        match=f"^EQUIPOISE_THREADS is {given!r}; expected a whole number of at least 1$",
    ):
        threads()
