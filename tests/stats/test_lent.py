"""Memory that is kept from call to call."""

import threading

import numpy as np
import pytest

from equipoise.stats import lent as module
from equipoise.stats.lent import lent

KIND = np.dtype(np.uint32)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kept", {})


def addresses(arrays: list[np.ndarray]) -> list[int]:
    return [one.__array_interface__["data"][0] for one in arrays]


def test_what_is_taken_back_is_lent_again() -> None:
    with lent([10, 20], KIND) as held:
        assert [(one.dtype, len(one)) for one in held] == [(KIND, 10), (KIND, 20)]
        first = addresses(held)
    with lent([20], KIND) as held:
        assert addresses(held) == first[1:]
    with lent([4], np.dtype(np.uint64)) as held:
        assert addresses(held) == first[:1]
        assert (held[0].dtype, len(held[0])) == (np.uint64, 4)


def test_what_is_lent_is_lent_to_nobody_else() -> None:
    with lent([100], KIND) as one, lent([100], KIND) as other:
        assert not np.shares_memory(one[0], other[0])
        one[0][:], other[0][:] = 1, 2
        assert set(one[0].tolist()) == {1}


def test_it_is_taken_back_when_the_caller_fails() -> None:
    first = []

    def fail() -> None:
        with lent([10], KIND) as held:
            first.extend(addresses(held))
            raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        fail()
    with lent([10], KIND) as held:
        assert addresses(held) == first


def test_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 80)
    with lent([10, 21], KIND):
        pass
    assert [len(one) for one in module._kept.values()] == [40]
    with lent([1] * 9, KIND):
        pass
    assert len(module._kept) == module._MOST


def test_threads_share_nothing_that_is_lent() -> None:
    found = []

    def work(value: int) -> None:
        for _ in range(200):
            with lent([1_000, 50], KIND) as held:
                held[0][:] = value
                held[1][:] = value
                found.append({*held[0].tolist(), *held[1].tolist()} == {value})

    workers = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert len(found) == 800
    assert all(found)
