"""Rows of text counted as they are read: as when each column is encoded first."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.metrics import columns, sorted_pairs, text_tally, texts
from equipoise.metrics.counts import Counts, count
from equipoise.stats import threads

ROWS = 3_000
RNG = np.random.default_rng(5)
# Some texts are short, some missing or "", some stand at two places of the memory.
TRUTHS = [f"occupation of a long name {code % 17}" for code in range(20)]
LABELS = [None, "", *(f"an answer of a long name {code % 150}" for code in range(160))]
GROUPS = ["a", None, "b", "group of a long name", "group of a long name", "c", "d"]


def drawn(words: list[str | None], late: int = 0) -> pl.Series:
    """Rows that share the memory of their texts.

    Of the last `late` texts one half is met in the middle third of rows only, the other in the
    last: threads meet others first.
    """
    codes = RNG.integers(0, len(words) - late, ROWS)
    for part in range(2 if late else 0):
        rows = np.arange((part + 1) * ROWS // 3, (part + 2) * ROWS // 3, 3)
        begin = len(words) - late + part * (late // 2)
        codes[rows] = RNG.integers(begin, begin + late // 2, len(rows))
    return pl.Series(words, dtype=pl.String).gather(codes)


def plain(column: pl.Series) -> np.ndarray:
    return np.array(column.to_list(), dtype=object)


def everything_of(counts: Counts) -> tuple[Any, ...]:
    arrays = (counts.table, counts.truth, counts.prediction, counts.groups.counts)
    names = (counts.classes, counts.groups.levels, dict(counts.excluded))
    codes = counts.groups.codes
    return (*names, codes.tolist(), *((one.dtype, one.shape, one.tobytes()) for one in arrays))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are counted in the way of many."""
    monkeypatch.setattr(columns, "_MANY", 1)
    monkeypatch.setattr(threads, "_FEW", 1)
    monkeypatch.setattr(text_tally, "_CHUNK", 256)
    monkeypatch.setattr(text_tally, "_SOME", 8)
    monkeypatch.setattr(sorted_pairs, "_BLOCK", 16)
    monkeypatch.setattr(texts, "_ROOM", 256)
    monkeypatch.setattr(texts, "_TRIED", 8)
    monkeypatch.setattr(texts, "_APART", 1_000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", ["1", "2", "3"])
@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("late", [(0, 0, 0), (0, 100, 0), (2, 100, 2)])
def test_counted_as_columns_are(
    workers: str, wide: bool, late: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [drawn(*one) for one in zip((TRUTHS, LABELS, GROUPS), late, strict=True)]
    monkeypatch.setenv("EQUIPOISE_THREADS", workers)
    if wide:
        monkeypatch.setattr(sorted_pairs, "NARROW", 0)
        monkeypatch.setattr(text_tally, "NARROW", 0)
    assert text_tally.text_tally(*rows) is not None
    expected = count(*(plain(column) for column in rows))
    assert everything_of(count(*rows)) == everything_of(expected)


@pytest.mark.usefixtures("small")
def test_columns_in_several_chunks() -> None:
    first = [drawn(words) for words in (TRUTHS, LABELS, GROUPS)]
    rows = [pl.concat([one, one[700:], one[:3]], rechunk=False) for one in first]
    assert text_tally.text_tally(*rows) is not None
    expected = count(*(plain(column) for column in rows))
    assert everything_of(count(*rows)) == everything_of(expected)


@pytest.mark.usefixtures("small")
def test_a_truth_or_label_is_of_one_class_whichever_column_it_is_in() -> None:
    rows = (drawn(["a", "b", "only true"]), drawn(["b", "a", "only answered"]), drawn(["x", "y"]))
    found = text_tally.text_tally(*rows)
    assert found is not None
    assert found.classes == ("a", "b", "only answered", "only true")
    assert everything_of(count(*rows)) == everything_of(count(*map(plain, rows)))


@pytest.mark.usefixtures("small")
def test_more_groups_or_truths_than_the_first_rows_promise() -> None:
    few, many = pl.Series(["a", "b"]), pl.Series([f"group {code}" for code in range(60)])
    first = few.gather(np.arange(ROWS) % 2)
    later = many.gather(np.arange(ROWS) % 60)
    grown = pl.concat([first, later])
    others = [pl.concat([drawn(TRUTHS), drawn(TRUTHS)]), pl.concat([drawn(LABELS), drawn(LABELS)])]
    for rows in ((*others, grown), (grown, others[1], others[0])):
        assert text_tally.text_tally(*rows) is None
        assert everything_of(count(*rows)) == everything_of(count(*map(plain, rows)))


@pytest.mark.usefixtures("small")
def test_columns_of_different_lengths_are_left_to_the_check() -> None:
    assert text_tally.text_tally(drawn(TRUTHS), drawn(LABELS)[1:], drawn(GROUPS)) is None


@pytest.mark.usefixtures("small")
def test_more_rows_than_32_bits_count_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tally, "_MOST", ROWS)
    assert text_tally.text_tally(drawn(TRUTHS), drawn(LABELS), drawn(GROUPS)) is None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("nothing", ["", None])
@pytest.mark.parametrize("place", range(3))
def test_a_column_without_any_text(nothing: str | None, place: int) -> None:
    rows = [drawn(TRUTHS), drawn(LABELS), drawn(GROUPS)]
    rows[place] = pl.Series([nothing] * ROWS, dtype=pl.String)
    assert text_tally.text_tally(*rows) is not None
    with pytest.raises(InputError, match="no row has a true class, a prediction and a group"):
        count(*rows)


def test_few_rows_and_numbers_are_left_to_others() -> None:
    assert text_tally.text_tally(drawn(TRUTHS), drawn(LABELS), drawn(GROUPS)) is None
    numbers = np.zeros(columns._MANY, dtype=np.int64)
    assert text_tally.text_tally(numbers, numbers, numbers) is None


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_rows_in_any_order_on_any_number_of_threads(seed: int, workers: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(ROWS) // 11 * 11 % ROWS
    rows = [drawn(words)[order.tolist()] for words in (TRUTHS, LABELS, GROUPS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQUIPOISE_THREADS", str(workers))
        patch.setattr(threads, "_FEW", 1)
        patch.setattr(columns, "_MANY", 1)
        patch.setattr(texts, "_APART", 1_000)
        patch.setattr(text_tally, "_CHUNK", 100)
        assert everything_of(count(*rows)) == everything_of(count(*map(plain, rows)))
